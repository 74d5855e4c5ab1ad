-- relations of every kind can be read; triggers only where they tell everything
\i sql/include/try.sql
SELECT posterior.load_model('echo', current_setting('test.models') || '/transparent.safetensors');
-- the ids of the rows that an answer has read
CREATE FUNCTION ids(named text) RETURNS text STABLE LANGUAGE sql AS
$$ SELECT string_agg(i::text, ' ' ORDER BY i)
	FROM (SELECT round(posterior.mean(posterior.predict(named, q)))::int AS bits
		FROM (SELECT 0 AS id) q) p, generate_series(0, 23) i WHERE (bits >> i) & 1 = 1 $$;
SET posterior.model = 'echo';
CREATE VIEW shown AS SELECT name, relation, maintain FROM posterior.contexts ORDER BY name;

-- a partitioned table and a partition; detach and attach
CREATE TABLE parts (id int, y float8) PARTITION BY RANGE (id);
CREATE TABLE low PARTITION OF parts FOR VALUES FROM (0) TO (10);
CREATE TABLE high PARTITION OF parts FOR VALUES FROM (10) TO (20);
INSERT INTO parts SELECT i, 0 FROM generate_series(1, 17, 4) i;
SELECT posterior.create_context('parts', 'parts', 'y', '{id}', 'id'),
	posterior.create_context('low', 'low', 'y', '{id}', 'id');
TABLE shown;
SELECT try('SELECT posterior.alter_context(''parts'', maintain => ''trigger'')'),
	try('SELECT posterior.alter_context(''low'', maintain => ''trigger'')');
SELECT ids('parts'), ids('low');
UPDATE parts SET id = 2 WHERE id = 17;
DELETE FROM parts WHERE id = 1;
SELECT ids('parts'), ids('low');
ALTER TABLE parts DETACH PARTITION low;
SELECT ids('parts'), ids('low');
SELECT posterior.alter_context('low', maintain => 'trigger');
INSERT INTO low VALUES (3, 0);
SELECT ids('parts'), ids('low');
SELECT ids('low');
ALTER TABLE parts ATTACH PARTITION low FOR VALUES FROM (0) TO (10);
SELECT ids('parts'), ids('low');
INSERT INTO parts VALUES (4, 0);
DELETE FROM parts WHERE id = 3;
SELECT ids('parts'), ids('low');
TRUNCATE parts;
SELECT ids('parts') IS NULL AS nothing, ids('low') IS NULL AS nothing_either;

-- inheritance: the rows of children belong to their parent
CREATE TABLE parent (id int, y float8);
CREATE TABLE child (note text) INHERITS (parent);
INSERT INTO parent VALUES (1, 0);
INSERT INTO child VALUES (2, 0);
SELECT posterior.create_context('parent', 'parent', 'y', '{id}', 'id'),
	posterior.create_context('child', 'child', 'y', '{id}', 'id');
SELECT ids('parent'), ids('child');
UPDATE parent SET id = id + 4;
SELECT ids('parent'), ids('child');
CREATE TABLE single (id int, y float8);
SELECT posterior.create_context('single', 'single', 'y', '{id}', 'id');
INSERT INTO single VALUES (7, 0);
SELECT ids('single');
ALTER TABLE single INHERIT parent;
UPDATE parent SET id = id + 4;
SELECT ids('parent'), ids('single');
ALTER TABLE single NO INHERIT parent;
SELECT ids('parent'), ids('single');
CREATE TABLE grown () INHERITS (single);
INSERT INTO grown VALUES (12, 0);
SELECT ids('single');
TABLE shown;

-- views, materialized views, foreign and unlogged tables
CREATE TABLE base (id int PRIMARY KEY, y float8, secret text);
INSERT INTO base SELECT i, 0 FROM generate_series(1, 5) i;
CREATE VIEW seen AS SELECT id, y FROM base WHERE id > 2;
CREATE MATERIALIZED VIEW kept AS SELECT id, y FROM base;
CREATE UNLOGGED TABLE fast AS SELECT id, y FROM base WHERE id < 4;
CREATE VIEW joined AS SELECT a.id, b.y FROM base a JOIN base b ON b.id = a.id - 3;
SELECT posterior.create_context(r, r::regclass, 'y', '{id}', 'id')
	FROM unnest('{seen,kept,fast,joined}'::text[]) r;
SELECT r, try(format('SELECT posterior.alter_context(%L, maintain => ''trigger'')', r))
	FROM unnest('{seen,kept,fast,joined}'::text[]) r;
SELECT r, ids(r) FROM unnest('{seen,kept,fast,joined}'::text[]) r;
INSERT INTO base VALUES (9, 0);
INSERT INTO fast VALUES (8, 0);
DELETE FROM base WHERE id = 3;
SELECT r, ids(r) FROM unnest('{seen,kept,fast,joined}'::text[]) r;
REFRESH MATERIALIZED VIEW kept;
SELECT ids('kept');
CREATE OR REPLACE VIEW seen AS SELECT id, y FROM base WHERE id < 3;
SELECT ids('seen');
CREATE EXTENSION file_fdw;
CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
SELECT set_config('test.file', current_setting('data_directory') || '/posterior_named_'
		|| pg_backend_pid(), false) \gset ignored_
DO $$ BEGIN
	EXECUTE format('COPY (SELECT id, y FROM base) TO %L (FORMAT csv)',
			current_setting('test.file'));
	EXECUTE format('CREATE FOREIGN TABLE far (id int, y float8) SERVER files OPTIONS (filename %L,
			format ''csv'')', current_setting('test.file'));
END $$;
SELECT posterior.create_context('far', 'far', 'y', '{id}', 'id');
SELECT ids('far');
DO $$ BEGIN EXECUTE format('COPY (SELECT 6 AS id, 0 AS y) TO %L (FORMAT csv)',
		current_setting('test.file')); END $$;
SELECT ids('far');
SELECT name, maintain FROM posterior.contexts
	WHERE name IN ('seen', 'kept', 'fast', 'joined', 'far') ORDER BY name;

-- the ways to write a table
SELECT posterior.create_context('base', 'base', 'y', '{id}', 'id');
SELECT ids('base');
COPY base (id, y) FROM stdin;
10	0
11	0
\.
SELECT ids('base');
INSERT INTO base VALUES (10, 0), (12, 0) ON CONFLICT (id) DO NOTHING;
SELECT ids('base');
INSERT INTO base VALUES (12, 0) ON CONFLICT (id) DO UPDATE SET id = 13;
SELECT ids('base');
WITH gone AS (DELETE FROM base WHERE id < 4 RETURNING id) SELECT count(*), ids('base') FROM gone;
SELECT ids('base');
CREATE FUNCTION feed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO base
	VALUES (NEW.id + 10, 0); RETURN NEW; END $$;
CREATE TABLE source (id int);
CREATE TRIGGER feed AFTER INSERT ON source FOR EACH ROW EXECUTE FUNCTION feed();
INSERT INTO source VALUES (6), (7), (8);
SELECT ids('base');
CREATE FUNCTION step(i int) RETURNS text LANGUAGE plpgsql AS $$ BEGIN INSERT INTO base
	VALUES (i, 0); RETURN ids('base'); END $$;
SELECT step(i) FROM generate_series(20, 22) i;
CLUSTER base USING base_pkey;
SELECT ids('base');
DROP VIEW seen, joined;
DROP MATERIALIZED VIEW kept;
ALTER TABLE base ALTER COLUMN y TYPE numeric;
SELECT ids('base');
TRUNCATE base;
SELECT ids('base') IS NULL AS nothing;

SELECT count(posterior.drop_context(name)) FROM posterior.contexts;
DROP VIEW shown;
DROP EXTENSION file_fdw CASCADE;
DROP TABLE parts, grown, single, child, parent, base, fast, source;
DROP FUNCTION ids, feed, step, try;
SELECT posterior.drop_model('echo');
-- a system catalog takes no triggers
SELECT posterior.create_context('catalogue', 'pg_catalog.pg_class', 'reltuples', '{relpages}',
		'relname', model => 'tabular_small');
SELECT maintain, posterior.warm_context(name) > 100 AS warm FROM posterior.contexts
	WHERE name = 'catalogue';
SELECT posterior.drop_context('catalogue');
-- a context over a view that asks more contexts than a session keeps plans for; one that asks
-- itself
SET posterior.model = 'toy';
CREATE TABLE deep AS SELECT i AS t, i / 10.0::float8 AS x, sin(i / 5.0) AS y
	FROM generate_series(1, 45) i;
SELECT count(posterior.create_context('deep ' || i, 'deep', 'y', '{x}', 't', filter => 't > '
			|| i - 40)) FROM generate_series(1, 40) i;
CREATE VIEW asking AS SELECT t, x,
	(SELECT posterior.mean(posterior.predict('deep ' || 1 + t % 40, q)) FROM (SELECT d.x) q) AS y
	FROM deep d;
SELECT posterior.create_context('asking', 'asking', 'y', '{x}', 't', max_rows => 20);
SELECT posterior.warm_context('asking') BETWEEN 11 AND 20 AS once,
	posterior.warm_context('asking') BETWEEN 11 AND 20 AS again;
CREATE VIEW circle AS SELECT t, x, y FROM deep;
SELECT posterior.create_context('circle', 'circle', 'y', '{x}', 't');
CREATE OR REPLACE VIEW circle AS SELECT t, x,
	(SELECT posterior.mean(posterior.predict('circle', q)) FROM (SELECT d.x) q) AS y FROM deep d;
\set VERBOSITY sqlstate
SELECT posterior.warm_context('circle');
\set VERBOSITY default
DROP VIEW asking, circle;
DROP TABLE deep;
RESET posterior.model;
