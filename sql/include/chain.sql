-- A context c of ten rows of a table, and a table whose writes do not concern it.
SELECT posterior.load_model('chain', current_setting('test.models')
		|| '/packed_causal.safetensors');
CREATE TABLE t (k int PRIMARY KEY, x float8, z int NOT NULL DEFAULT 1, y float8);
CREATE TABLE other (i int);
INSERT INTO t (k, x, y) SELECT i, i / 10.0, i FROM generate_series(1, 10) i;
SELECT posterior.create_context('c', 't', 'y', features => '{x,z}', order_by => 'k',
		model => 'chain');
