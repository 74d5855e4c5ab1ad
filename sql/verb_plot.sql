-- pictures as text, and the plans that the costs of functions give
\set SHOW_CONTEXT never
CREATE VIEW band AS SELECT i AS x, CASE WHEN i <= 6 THEN i % 3 END::float8 AS y, CASE WHEN i >= 6
	THEN 0 END::float8 AS low, CASE WHEN i >= 6 THEN 1 END::float8 AS middle, CASE WHEN i >= 6
	THEN 2 END::float8 AS high
FROM generate_series(1, 9) i;
SELECT svg LIKE '<svg%</svg>' AS svg,
	(length(svg) - length(replace(svg, '<circle', ''))) / 7 AS points,
	svg LIKE '%<polygon%' AS band, svg LIKE '%<polyline%' AS line
FROM (SELECT posterior.plot(x, y, low, middle, high ORDER BY x) AS svg FROM band) s;
SELECT posterior.plot_text(x, y, low, middle, high ORDER BY x) FROM band;
SELECT posterior.plot(1, NULL, NULL, NULL, NULL) AS nothing,
	posterior.plot(NULL, 1, 1, 1, 1) AS nowhere,
	posterior.plot(1, 5, NULL, NULL, NULL) LIKE '<svg%<circle%' AS point;
SELECT posterior.plot(1, 'Infinity', NULL, NULL, NULL);
SELECT posterior.plot_histogram('{0.1,0.2,0.4,0.3}');
DROP VIEW band;
-- plans: a frame over some thousand rows is below the cost of JIT, and above that of starting
-- workers
CREATE FUNCTION plan_cost(statement text) RETURNS float8 LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || statement INTO plan;
	RETURN (plan->0->'Plan'->>'Total Cost')::float8;
END $$;
CREATE TABLE rows AS SELECT i AS x, i AS y FROM generate_series(1, 4000) i;
ANALYZE rows;
-- by the default cost, whatever the server compiles
SET jit_above_cost = 100000;
SELECT cost < current_setting('jit_above_cost')::float8 AS "no JIT",
	cost > current_setting('parallel_setup_cost')::float8 AS "workers pay"
FROM plan_cost('SELECT posterior.regress(y, x)
	OVER (ORDER BY x ROWS BETWEEN 50 PRECEDING AND 1 PRECEDING) FROM rows') cost;
SELECT cost < current_setting('jit_above_cost')::float8 AS "no JIT"
FROM plan_cost('SELECT posterior.predict(c.ctx, r.x)
	FROM (SELECT posterior.context(y, x) AS ctx FROM rows) c, rows r') cost;
SET jit = on;
DO $$
DECLARE plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT JSON) SELECT posterior.regress(y, x)
		OVER (ORDER BY x ROWS BETWEEN 50 PRECEDING AND 1 PRECEDING) FROM rows
		WHERE x <= 50' INTO plan;
	RAISE NOTICE 'compiled: %', plan->0->'JIT' IS NOT NULL;
END $$;
RESET jit;
RESET jit_above_cost;
DROP TABLE rows;
DROP FUNCTION plan_cost;
-- shares that are none
SELECT posterior.plot_histogram('{0.5,NaN}');
SELECT posterior.plot_histogram('{0.5,-0.1}');
