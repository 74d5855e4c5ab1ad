-- random numbers of verbs: what is independent stays so; answers do not depend on settings
\set SHOW_CONTEXT never
-- three independent columns, missing in the same rows; two groups; more cells than one block
CREATE TABLE apart AS SELECT i AS id, i % 2 AS g, i % 10 AS x, n[1] AS a, n[2] AS b, n[3] AS c
FROM generate_series(1, 120) i,
	LATERAL (SELECT array_agg(z) AS n FROM posterior.draw(posterior.normal(0, 1), 3, i) z) n;
UPDATE apart SET a = NULL, b = NULL, c = NULL WHERE id IN (7, 24, 64, 99);
CREATE FUNCTION drawn_apart(chained boolean) RETURNS TABLE (id int, name text, d bigint, v float8)
	LANGUAGE sql AS $$
	SELECT (row_key->>'id')::int, column_name, u.d, u.v::float8
	FROM posterior.impute('apart', '{a,b,c}', CASE WHEN chained THEN NULL ELSE '{x}'::text[] END,
		'{g}', draws => 400, key => '{id}') i, unnest(i.drawn) WITH ORDINALITY u (v, d)
$$;
CREATE TABLE drawn AS SELECT chained, i.* FROM unnest('{f,t}'::boolean[]) chained,
	drawn_apart(chained) i;
SELECT chained, count(*) AS pairs, max(abs(r)) < 0.5 AS "independent columns",
	abs(avg(r)) < 0.2 AS "in the mean"
FROM (SELECT p.chained, corr(p.v, q.v) AS r FROM drawn p JOIN drawn q USING (chained, id, d)
	WHERE p.name < q.name GROUP BY p.chained, id, p.name, q.name) r GROUP BY chained ORDER BY 1;
SELECT p.chained, max(abs(r)) < 0.3 AS "independent groups" FROM (SELECT p.chained,
		corr(p.v, q.v) AS r
	FROM drawn p JOIN drawn q USING (chained, name, d) WHERE p.id IN (7, 99) AND q.id IN (24, 64)
	GROUP BY p.chained, name, p.id, q.id) p GROUP BY p.chained ORDER BY 1;
CREATE TABLE many AS SELECT i AS id, i % 10 AS x, CASE WHEN i <= 40 THEN sin(i) END AS y
FROM generate_series(1, 600) i;
SELECT max(abs(r)) < 0.6 AS "independent blocks", count(*) AS pairs
FROM (SELECT corr(p.v::float8, q.v::float8) AS r
	FROM (SELECT row_number() OVER () AS n, drawn FROM posterior.impute('many', draws => 100,
		key => '{id}')) i, (SELECT row_number() OVER () AS n, drawn
		FROM posterior.impute('many', draws => 100, key => '{id}')) j,
		unnest(i.drawn) WITH ORDINALITY p (v, d), unnest(j.drawn) WITH ORDINALITY q (v, d)
	WHERE j.n = i.n + 256 AND i.n <= 20 AND p.d = q.d GROUP BY i.n) r;
-- labels of a column of fixed width are read whole by later columns
CREATE TABLE fixed AS SELECT i AS id, CASE WHEN i % 2 = 0 THEN 'ab' ELSE 'ac' END::char(5) AS k,
	20.0 * (i % 2) + sin(i) AS y, i % 3 AS w FROM generate_series(1, 100) i;
UPDATE fixed SET k = NULL, y = NULL WHERE id IN (5, 50, 77);
UPDATE fixed SET y = NULL WHERE id = 90;
SELECT avg(((u.v = 'ac') = (w.v::float8 > 10))::int) > 0.9 AS whole
FROM posterior.impute('fixed', draws => 50, key => '{id}') a
	JOIN posterior.impute('fixed', draws => 50, key => '{id}') b USING (row_key),
	unnest(a.drawn) WITH ORDINALITY u (v, d) JOIN unnest(b.drawn) WITH ORDINALITY w (v, d)
		USING (d)
WHERE a.column_name = 'k' AND b.column_name = 'y';
-- series
CREATE TABLE series AS SELECT s, '2024-01-01'::date + i AS day,
	10 + posterior.draw(posterior.normal(0, 1), 1, 1000 * s + i) AS y
FROM generate_series(1, 2) s, generate_series(0, 79) i;
SELECT step, abs(corr(p.v, q.v)) < 0.3 AS "independent series"
FROM posterior.forecast('series', 'day', 'y', 3, '{s}', draws => 300) f
	JOIN posterior.forecast('series', 'day', 'y', 3, '{s}', draws => 300) g USING (step),
	unnest(f.drawn) WITH ORDINALITY p (v, d), unnest(g.drawn) WITH ORDINALITY q (v, d)
WHERE f.series->>'s' = '1' AND g.series->>'s' = '2' AND p.d = q.d GROUP BY step ORDER BY step;
-- settings: of a relation whose columns are times, numbers, and texts of two collations
CREATE TABLE settings AS SELECT i AS id, '2024-01-01 00:00+00'::timestamptz
		+ i * '5 hours'::interval AS "at", i * '1 month 3 hours'::interval AS span,
	i / 3.0::float8 AS f,
	('a' || i % 3) COLLATE "C" AS c, ('b' || i % 4) COLLATE "POSIX" AS p, i % 5 + sin(i) AS y
FROM generate_series(1, 60) i;
CREATE FUNCTION answers() RETURNS TABLE (verb text, answer float8) LANGUAGE sql AS $$
	SELECT 'evaluate', crps FROM posterior.evaluate('settings', 'y', '{at,f,span,c,p}')
	UNION ALL SELECT 'anomalies', sum(surprise) FROM posterior.detect_anomalies('settings', 'y',
		'{at,f,span}', all_rows => true, key => '{id}')
	UNION ALL SELECT 'importance', sum(permutation_loss)
		FROM posterior.importance('settings', 'y', '{at,f,span}')
	UNION ALL SELECT 'forecast', sum(extract(epoch FROM at)) FROM posterior.forecast('settings',
		'at', 'y', 3)
	UNION ALL SELECT 'backtest', sum(extract(epoch FROM origin)) FROM posterior.backtest('settings',
		'at', 'y', 3, origins => 3, each_origin => true)
$$;
SET TimeZone = 'UTC';
CREATE TABLE usual AS SELECT * FROM answers();
SET TimeZone = 'Asia/Kolkata';
SET DateStyle = 'SQL, DMY';
SET IntervalStyle = 'iso_8601';
SET extra_float_digits = -5;
CREATE TABLE other AS SELECT * FROM answers();
SET DateStyle = 'German';
SET TimeZone = 'Asia/Shanghai';
CREATE TABLE third AS SELECT * FROM answers();
RESET TimeZone;
RESET DateStyle;
RESET IntervalStyle;
RESET extra_float_digits;
SELECT verb, u.answer = o.answer AS "the same", u.answer = t.answer AS "and again"
FROM usual u JOIN other o USING (verb) JOIN third t USING (verb) ORDER BY verb;
-- integer times that a double precision number tells apart, and others
CREATE TABLE stamped AS SELECT 1700000000000000001 + i * 3600000000000 AS t, sin(i) AS y
FROM generate_series(1, 50) i;
SELECT step FROM posterior.forecast('stamped', 't', 'y', 2);
CREATE VIEW counted AS SELECT t - (SELECT min(t) FROM stamped) AS t, y FROM stamped;
SELECT step, at_number FROM posterior.forecast('counted', 't', 'y', 2);
SELECT step FROM posterior.forecast('settings', 'at', 'y', 2, every => '1 microsecond');
-- no seed is an error, the largest one is not
SELECT n FROM posterior.evaluate('settings', 'y', '{f}', seed => NULL);
SELECT step FROM posterior.forecast('settings', 'at', 'y', 2, draws => 2, seed => NULL);
SELECT row_key FROM posterior.impute('many', draws => 2, key => '{id}', seed => NULL);
SELECT posterior.create_context('odd', 'settings', 'y', '{f}', 'id');
SELECT mean FROM posterior.contrast('odd', '{"f": 1}', '{"f": 2}', seed => NULL);
CREATE VIEW asked AS SELECT * FROM settings WHERE id < 6;
SELECT rank FROM posterior.suggest('odd', 'asked', seed => NULL);
SELECT gap FROM posterior.order_gap('odd', 'asked', seed => NULL);
SELECT gap IS NOT NULL AS gap FROM posterior.order_gap('odd', 'asked', 3, 0, 9223372036854775807);
SELECT count(*) FROM posterior.impute('apart', '{a,b,c,x}', '{x}', key => '{id}');
SELECT posterior.drop_context('odd');
DROP TABLE apart, drawn, many, fixed, series, settings, usual, other, third, stamped CASCADE;
DROP FUNCTION drawn_apart, answers;
