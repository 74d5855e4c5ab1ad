-- parallel plans give the same values
SET posterior.model = 'tabular_small';
CREATE TABLE p AS SELECT i, sin(i * 0.1) AS y, i * 0.1 AS x, 'g' || i % 5 AS g
	FROM generate_series(1, 3000) i;
ALTER TABLE p SET (parallel_workers = 2);
ANALYZE p;
SELECT posterior.context(y, x, g)::text AS serial FROM p \gset
\i sql/include/parallel.sql
EXPLAIN (COSTS OFF) SELECT posterior.context(y, x, g) FROM p;
SELECT posterior.context(y, x, g)::text = :'serial' AS same FROM p;
CREATE TABLE c AS SELECT posterior.context(y, x, g) AS ctx FROM p WHERE i <= 200;
SELECT count(*) FROM p WHERE i > 2990
	AND posterior.mean(posterior.predict((SELECT ctx FROM c), x, g)) IS NOT NULL;
DROP TABLE p, c;
