-- posterior.context as a value: equality, storage, binary form, groups, filters, windows
CREATE TABLE t AS SELECT i, i % 3 AS g, i * 0.25 AS x, CASE WHEN i % 4 > 0 THEN 'l' || i % 4
	END AS k, i % 2 = 0 AS b, timestamp '2024-01-01' + i * interval '1 min' AS at, sin(i) AS y
	FROM generate_series(1, 60) i;
-- whatever the scan order, the plan or the path to the rows: equal bytes
CREATE INDEX t_y ON t (y);
CREATE TABLE c (how text, ctx posterior.context);
INSERT INTO c SELECT 'heap', posterior.context(y, x, k, b, at) FROM t;
INSERT INTO c SELECT 'sorted', posterior.context(y, x, k, b, at)
	FROM (SELECT * FROM t ORDER BY y DESC) s;
INSERT INTO c SELECT 'random', posterior.context(y, x, k, b, at)
	FROM (SELECT * FROM t ORDER BY hashint4(i)) s;
INSERT INTO c SELECT 'joined', posterior.context(t.y, t.x, t.k, t.b, t.at) FROM t
	JOIN (SELECT DISTINCT g FROM t) s USING (g);
INSERT INTO c SELECT 'with unknown targets', posterior.context(y, x, k, b, at)
	FROM (SELECT y, x, k, b, at FROM t UNION ALL SELECT NULL, x, k, b, at FROM t) s;
INSERT INTO c SELECT 'filtered', posterior.context(y, x, k, b, at) FILTER (WHERE f)
	FROM (SELECT y, x, k, b, at, true AS f FROM t UNION ALL SELECT 1, x, k, b, at, false FROM t) s;
INSERT INTO c SELECT 'distinct', posterior.context(DISTINCT y, x, k, b, at)
	FROM (SELECT * FROM t UNION ALL SELECT * FROM t) s;
INSERT INTO c SELECT 'text form', ctx::text::posterior.context FROM c WHERE how = 'heap';
SELECT count(*) AS rows, count(DISTINCT ctx) AS values, min(posterior.rows(ctx)),
	max(posterior.rows(ctx)) FROM c;
SELECT count(*) FROM (SELECT ctx FROM c GROUP BY ctx) s;
-- rows that are there twice count twice; -0 is 0
SELECT posterior.rows(posterior.context(y, x)) FROM (SELECT * FROM t UNION ALL SELECT * FROM t) s;
SELECT posterior.context(0.0, 0.0::float8) OPERATOR(posterior.=) posterior.context('-0'::float8,
		'-0'::float8) AS zero;
-- ORDER BY keeps the order: other bytes, and the same when asked the same way
SELECT posterior.context(y, x ORDER BY i) OPERATOR(posterior.<>) posterior.context(y, x
		ORDER BY i DESC) AS differ, posterior.context(y, x ORDER BY y) OPERATOR(posterior.=)
	(SELECT posterior.context(y, x ORDER BY y)
			FROM (SELECT * FROM t ORDER BY hashint4(i)) s) AS same FROM t;
-- comparison operators agree with each other
SELECT bool_and((a.ctx OPERATOR(posterior.<) b.ctx)::int + (a.ctx OPERATOR(posterior.=) b.ctx)::int
		+ (a.ctx OPERATOR(posterior.>) b.ctx)::int = 1) AS trichotomy,
	bool_and((a.ctx OPERATOR(posterior.<=) b.ctx) = NOT (a.ctx OPERATOR(posterior.>) b.ctx)) AS le,
		bool_and((a.ctx OPERATOR(posterior.>=) b.ctx) = NOT (a.ctx
				OPERATOR(posterior.<) b.ctx)) AS ge
FROM (SELECT posterior.context(y, x) AS ctx FROM t GROUP BY g) a,
	(SELECT posterior.context(y, x) AS ctx FROM t GROUP BY g) b;
-- binary form
SELECT set_config('test.file', current_setting('data_directory') || '/posterior_contexts_'
		|| pg_backend_pid(), false) \gset ignored_
DO $$ BEGIN
	EXECUTE format('COPY c TO %L (FORMAT binary)', current_setting('test.file'));
	CREATE TABLE e (LIKE c);
	EXECUTE format('COPY e FROM %L (FORMAT binary)', current_setting('test.file'));
END $$;
SELECT count(*) FROM c JOIN e USING (how) WHERE c.ctx OPERATOR(posterior.=) e.ctx;
SELECT posterior.features(ctx), posterior.rows(ctx) FROM e WHERE how = 'heap';
-- each group its own; as a window function, the rows of the frame in canonical order
SELECT g, posterior.rows(posterior.context(y, x)) FROM t GROUP BY g ORDER BY g;
SELECT i, posterior.rows(posterior.context(CASE WHEN i % 3 > 0 THEN y END, x)
		OVER (ORDER BY i ROWS 4 PRECEDING)) FROM t ORDER BY i LIMIT 7;
SELECT bool_and(w.ctx OPERATOR(posterior.=) (SELECT posterior.context(y, x) FROM t
			WHERE t.i <= w.i)) AS same FROM (SELECT i, posterior.context(y,
			x) OVER (ORDER BY i) AS ctx FROM t) w;
-- no rows, rows without targets, one row
SELECT posterior.context(y, x) IS NULL AS none FROM t WHERE i > 1000;
SELECT posterior.rows(posterior.context(NULL::float8, x)),
	posterior.features(posterior.context(NULL::float8, x)),
	posterior.rows(posterior.context(NULL::float8, x)::text::posterior.context) FROM t;
SELECT posterior.rows(posterior.context(y, x)),
	posterior.rows(posterior.context(y, x)::text::posterior.context) FROM t WHERE i = 1;
-- aggregates that share their rows do not disturb each other
SELECT posterior.context(y, x ORDER BY i)
	OPERATOR(posterior.=) (SELECT posterior.context(y, x ORDER BY i) FROM t WHERE i < 20) AS same,
	posterior.log_evidence(y, x ORDER BY i) = (SELECT posterior.log_evidence(y, x ORDER BY i) FROM t
		WHERE i < 20) AS also,
	posterior.context(y, x) OPERATOR(posterior.=) (SELECT posterior.context(y, x) FROM t
			WHERE i < 20) AS canonical FROM t WHERE i < 20;
-- grouping sets and hashed groups that spill
SET work_mem = '64kB';
SELECT count(*), bool_and(posterior.rows(ctx) = 2) AS two_rows, count(DISTINCT ctx)
	FROM (SELECT n / 2 AS h, posterior.context(n, n * 2, 'l' || n) AS ctx
		FROM generate_series(0, 19999) n GROUP BY n / 2) s;
RESET work_mem;
SELECT g, b, posterior.rows(posterior.context(y, x)) FROM t GROUP BY GROUPING SETS ((g), (b), ())
	ORDER BY g, b;
-- parallel workers on an aggregate with groups
\i sql/include/parallel.sql
CREATE TABLE p AS SELECT i, i % 4 AS g, sin(i) AS y, CASE WHEN i % 5 > 0 THEN i * 0.1 END AS x,
	'l' || i % 7 AS k FROM generate_series(1, 4000) i;
ALTER TABLE p SET (parallel_workers = 2);
ANALYZE p;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE serial AS SELECT g, posterior.context(y, x, k) AS ctx,
	posterior.context(NULL::float8, x) AS nothing FROM p GROUP BY g;
SET max_parallel_workers_per_gather = 2;
CREATE FUNCTION plan_of(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$ BEGIN RETURN QUERY
	EXECUTE 'EXPLAIN (COSTS OFF) ' || query; END $$;
SELECT bool_or(p ~ 'Gather') AS gathered, bool_or(p ~ 'Partial') AS partial
	FROM plan_of('SELECT g, posterior.context(y, x, k), posterior.context(NULL::float8, x) FROM p
	GROUP BY g') p;
SELECT g, s.ctx OPERATOR(posterior.=) a.ctx AS same,
	s.nothing OPERATOR(posterior.=) a.nothing AS nothing, posterior.rows(a.ctx) FROM serial s JOIN
	(SELECT g, posterior.context(y, x, k) AS ctx,
		posterior.context(NULL::float8, x) AS nothing FROM p
			GROUP BY g) a USING (g) ORDER BY g;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
RESET max_parallel_workers_per_gather;
DROP FUNCTION plan_of;
DROP TABLE t, c, e, p, serial;
-- targets that differ by little of their mean
CREATE TABLE far AS SELECT i % 10 AS x, 3.0::float8 * (i % 10) + i % 4 AS y
FROM generate_series(1, 100) i;
WITH p AS (SELECT far_off, posterior.predict(c, 5) AS p
	FROM (SELECT far_off, posterior.context(y + far_off, x) AS c
		FROM far, unnest('{0,1e8,1e10}'::float8[]) far_off GROUP BY far_off) c)
SELECT p.far_off,
	abs(posterior.mean(p.p) - p.far_off - posterior.mean(z.p)) < 1e-4 AS "mean",
	abs(posterior.stddev(p.p) / posterior.stddev(z.p) - 1) < 1e-4 AS stddev
FROM p JOIN p z ON z.far_off = 0 ORDER BY 1;
DROP TABLE far;
-- after equal targets another one is told, in frames and in named contexts, before the prefix moves
CREATE TABLE rare AS SELECT i, sin(i * i) AS x, CASE WHEN i > 70 THEN 10 + sin(i) ELSE 0 END AS y
FROM generate_series(1, 120) i;
SELECT posterior.create_context('rare', 'rare', 'y', '{x}', 'i');
SELECT posterior.mean(d) BETWEEN 8 AND 12 AS mean, posterior.surprise(d, 11) > 0.1 AS told
FROM posterior.predict('rare', '{"x": 0.5}'::jsonb) d;
SELECT i, posterior.mean(d) BETWEEN 8 AND 12 AS mean, posterior.stddev(d) > 0.5 AS wide
FROM (SELECT i, posterior.regress(y, x) OVER (ORDER BY i
		ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS d FROM rare) f
WHERE i IN (70, 71, 120) ORDER BY i;
DROP TABLE rare;
