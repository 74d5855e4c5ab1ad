-- sums: contexts that are sums over rows: merged = at once = taken away again, bitwise, in any plan
\set VERBOSITY terse
CREATE SCHEMA sums;
SET search_path = sums, public;
SELECT posterior.load_model('sums', current_setting('test.models') || '/sums.safetensors')
	IS NOT NULL AS loaded;
SET posterior.model = 'sums';
CREATE TABLE reading (id int PRIMARY KEY, day int, a float8, b float8, c text, y float8);
INSERT INTO reading SELECT i, i % 7, sin(i), CASE WHEN i % 5 > 0 THEN cos(2.0 * i) * 3 END,
	(ARRAY['x', 'y', 'z', 'w'])[1 + i * i % 4], CASE WHEN i % 11 > 0 THEN sin(i) + cos(i) / 3 END
FROM generate_series(1, 240) i;
CREATE TABLE basis AS SELECT posterior.basis(y, a, b, c) AS basis FROM reading WHERE id <= 120;
SELECT posterior.rows(basis) AS rows, posterior.features(basis) AS features,
	pg_column_size(basis) < 1000 AS small FROM basis;
CREATE TABLE whole AS SELECT posterior.context(basis, y, a, b, c) AS context FROM reading, basis;
SELECT posterior.rows(context) AS rows, (SELECT count(y) FROM reading) AS wanted,
	posterior.basis(context) OPERATOR(posterior.=) basis AS same_basis FROM whole, basis;
-- the order of rows does not matter, nor does a cast to text and back
SELECT posterior.context(basis, y, a, b, c ORDER BY id DESC) OPERATOR(posterior.=) context AS same,
	context::text::posterior.context OPERATOR(posterior.=) context AS text
FROM reading, basis, whole GROUP BY context;
-- states of days roll up; the aggregate and the function merge, and what was merged is taken away
CREATE TABLE daily AS SELECT day, posterior.context(basis, y, a, b, c) AS context
FROM reading, basis GROUP BY day;
SELECT posterior.merge(d.context) OPERATOR(posterior.=) w.context AS same
FROM daily d, whole w GROUP BY w.context;
-- rows of contexts, stored or of a group, are added up as rows are
SELECT posterior.context(basis, c) OPERATOR(posterior.=) w.context AS same
FROM (SELECT id % 50, posterior.context(y, a, b, c) AS c FROM reading GROUP BY 1) r, basis, whole w
GROUP BY w.context;
SELECT posterior.context(basis, c) OPERATOR(posterior.=) w.context AS mixed
FROM (SELECT context AS c FROM daily WHERE day < 3
	UNION ALL SELECT posterior.context(y, a, b, c) FROM reading WHERE day >= 3
	UNION ALL SELECT NULL) r, basis, whole w GROUP BY w.context;
SELECT posterior.rows(posterior.context(basis, NULL::posterior.context)) AS none,
	posterior.merge(NULL::posterior.context) IS NULL AS nothing FROM basis;
SELECT posterior.merge(posterior.without(w.context, d.context), d.context)
	OPERATOR(posterior.=) w.context AS same,
	posterior.without(w.context, d.context) OPERATOR(posterior.=)
		(SELECT posterior.merge(o.context) FROM daily o WHERE o.day <> d.day) AS others
FROM daily d, whole w WHERE d.day < 3 ORDER BY d.day;
SELECT posterior.without(w.context, y, a, b, c) OPERATOR(posterior.=)
	(SELECT posterior.context(basis, y, a, b, c) FROM reading r, basis WHERE r.id <> o.id) AS same
FROM reading o, whole w WHERE id IN (1, 5, 8, 11) ORDER BY id;
-- a moving frame adds and takes away
SELECT id, f.context OPERATOR(posterior.=) (SELECT posterior.context(basis, y, a, b, c)
	FROM reading r, basis WHERE r.id BETWEEN f.id - 20 AND f.id + 2) AS same
FROM (SELECT id, posterior.context(basis, y, a, b, c) OVER (ORDER BY id
	ROWS BETWEEN 20 PRECEDING AND 2 FOLLOWING) AS context FROM reading, basis) f
WHERE id IN (1, 10, 30, 31, 200, 240) ORDER BY id;
SELECT day, f.context OPERATOR(posterior.=) (SELECT posterior.merge(context) FROM daily d
	WHERE d.day BETWEEN f.day - 2 AND f.day) AS same
FROM (SELECT day, posterior.merge(context) OVER (ORDER BY day ROWS 2 PRECEDING) AS context
	FROM daily) f ORDER BY day;
-- plans: in parallel, by partitions, hashed
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 3;
ALTER TABLE reading SET (parallel_workers = 3);
CREATE FUNCTION plan(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY EXECUTE 'EXPLAIN (COSTS OFF) ' || query;
END $$;
SELECT count(*) FILTER (WHERE p ~ 'Partial Aggregate') > 0 AS partial,
	count(*) FILTER (WHERE p ~ 'Gather') > 0 AS gathers
FROM plan('SELECT posterior.context((SELECT basis FROM basis), y, a, b, c) FROM reading') p;
SELECT posterior.context((SELECT basis FROM basis), y, a, b, c) OPERATOR(posterior.=)
	(SELECT context FROM whole) AS same FROM reading;
CREATE TABLE states AS SELECT id, posterior.context(basis, y, a, b, c) AS context,
	posterior.context(y, a, b, c) AS one FROM reading, basis WHERE id < 100 GROUP BY id;
ALTER TABLE states SET (parallel_workers = 3);
SELECT count(*) FILTER (WHERE p ~ 'Partial Aggregate') > 0 AS partial
FROM plan('SELECT posterior.merge(context), posterior.context((SELECT basis FROM basis), one)
	FROM states') p;
SELECT posterior.merge(s.context) OPERATOR(posterior.=)
		posterior.context((SELECT basis FROM basis), one) AS merged,
	posterior.merge(s.context) OPERATOR(posterior.=)
		(SELECT posterior.context(basis, y, a, b, c) FROM reading, basis WHERE id < 100) AS added
FROM states s;
SELECT third, s.context OPERATOR(posterior.=)
	(SELECT posterior.context((SELECT basis FROM basis), y, a, b, c) FROM reading r
		WHERE r.id < 100 AND r.id % 3 = third) AS same
FROM (SELECT id % 3 AS third, posterior.merge(context) AS context FROM states GROUP BY 1) s
ORDER BY third;
RESET max_parallel_workers_per_gather;
CREATE TABLE parts (LIKE reading) PARTITION BY HASH (day);
CREATE TABLE part0 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE part1 PARTITION OF parts FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO parts SELECT * FROM reading;
SET enable_partitionwise_aggregate = on;
SELECT count(*) FILTER (WHERE p ~ 'Partial') > 1 AS partial
FROM plan('SELECT posterior.context((SELECT basis FROM basis), y, a, b, c) FROM parts') p;
SELECT posterior.context((SELECT basis FROM basis), y, a, b, c) OPERATOR(posterior.=)
	(SELECT context FROM whole) AS same FROM parts;
SELECT p.day, posterior.context((SELECT basis FROM basis), y, a, b, c) OPERATOR(posterior.=)
	(SELECT context FROM daily d WHERE d.day = p.day) AS same FROM parts p GROUP BY p.day
ORDER BY p.day;
-- answers: those of rows under a basis of them all
CREATE VIEW answers AS SELECT r.id, posterior.predict(w.context, r.a, r.b, r.c) AS p,
	posterior.predict(v.context, r.a, r.b, r.c) AS q
FROM (SELECT posterior.context(y, a, b, c) AS context FROM reading) v,
	(SELECT posterior.context((SELECT posterior.basis(y, a, b, c) FROM reading), y, a, b, c)
		AS context FROM reading) w, reading r WHERE r.id <= 20;
SELECT count(*) AS answers, bool_and(p OPERATOR(posterior.=) q) AS same,
	max(posterior.stddev(p)) BETWEEN 0.001 AND 1 AS sure FROM answers;
CREATE TYPE cells AS (a float8, b float8, c text);
SELECT count(*) AS draws, count(DISTINCT s.y) AS different
FROM whole, posterior.sample(context,
	ARRAY[(0.1, 0.2, 'x'), (0.1, 0.2, 'x'), (3, NULL, 'new')]::cells[], 20, 7) s;
SELECT abs(posterior.log_density(context, y, a, b, c) - posterior.log_density(context, y, a, b, c
	ORDER BY id DESC)) < 1e-6 AS exchangeable
FROM whole, reading WHERE id BETWEEN 190 AND 240;
SELECT abs(posterior.log_density(context, 0.4, 0.1, 0.2, 'x')
	- posterior.log_pdf(posterior.predict(context, 0.1, 0.2, 'x'), 0.4)) < 1e-9 AS one_row
FROM whole GROUP BY context;
-- the evidence: which columns help, and in units of the target
CREATE VIEW evidence AS SELECT posterior.log_evidence(posterior.context(
		(SELECT posterior.basis(y, a, b, c) FROM reading), y, a, b, c)) AS of_all,
	posterior.log_evidence(posterior.context(
		(SELECT posterior.basis(y, c) FROM reading), y, c)) AS of_one,
	posterior.log_evidence(posterior.context(
		(SELECT posterior.basis(1000 * y, a, b, c) FROM reading), 1000 * y, a, b, c)) AS larger,
	count(y) * ln(1000) AS by
FROM reading;
SELECT of_all > of_one + 100 AS columns_help, abs(larger + by - of_all) < 0.1 AS unit FROM evidence;
-- first targets that are all equal keep no others out, whatever their unit is
SELECT unit, count(d) AS answers, bool_and(abs(posterior.mean(d) / unit) < 40) AS sane
FROM (SELECT unit, posterior.regress(CASE WHEN i <= 64 THEN unit ELSE unit * (i - 80) END, i % 9)
		OVER (PARTITION BY unit ORDER BY i) AS d
	FROM generate_series(1, 100) i, (VALUES (1e-7), (0.5), (-7e6)) c (unit)) f
GROUP BY unit ORDER BY unit;
SELECT posterior.rows(posterior.context(b.basis, y, y)) AS rows
FROM (VALUES (0), (3), (-60000)) t (y),
	(SELECT posterior.basis(0, 1.0 * i) AS basis FROM generate_series(1, 20) i) b;
-- what is refused
SELECT posterior.merge(w.context, o.context) FROM whole w,
	(SELECT posterior.context(b.basis, y, a, 1.0 * id, c) AS context FROM reading,
		(SELECT posterior.basis(y, a, 1.0 * id, c) AS basis FROM reading) b GROUP BY b.basis) o;
SELECT posterior.context(CASE WHEN id < 9 THEN basis ELSE other END, y, a, b, c)
FROM reading, basis, (SELECT posterior.basis(y, b, a, c) AS other FROM reading WHERE id < 200) o;
SELECT posterior.context(basis, y, a, b) FROM reading, basis;
SELECT posterior.context(basis, y, a, c, b) FROM reading, basis;
SELECT posterior.context(NULL::posterior.context, y, a) FROM reading;
SELECT posterior.context(basis, 1e9, a, b, c) FROM reading, basis;
SELECT posterior.without(basis, 0.1, 0.2, 0.3, 'x') FROM basis;
SELECT posterior.predict(basis, 0.2, 0.3, 'x') FROM basis;
SELECT posterior.with_estimators(context, 4) FROM whole;
SELECT posterior.basis(c) FROM (SELECT posterior.context(y, a) AS c FROM reading) s;
SELECT posterior.log_evidence(c) FROM (SELECT posterior.context(y, a) AS c FROM reading) s;
SELECT posterior.log_evidence(basis) FROM basis;
SELECT posterior.merge(c, c) FROM (SELECT posterior.context(y, a) AS c FROM reading) s;
SELECT posterior.merge(c) FROM (SELECT posterior.context(y, a) AS c FROM reading) s;
SELECT posterior.context(basis, c)
FROM basis, (SELECT posterior.context(y, a) AS c FROM reading) s;
SELECT posterior.context(basis, c)
FROM basis, (SELECT posterior.class_context(c, a, b, c) AS c FROM reading) s;
SELECT posterior.context(NULL, c) FROM (SELECT posterior.context(y, a) AS c FROM reading) s;
SELECT posterior.context(c, c) FROM (SELECT posterior.context(y, a) AS c FROM reading) s;
SET posterior.model = 'tabular';
SELECT posterior.predict(context, 0.2, 0.3, 'x') FROM whole;
SELECT posterior.basis(y, a) FROM reading;
SELECT (left(context::text, 60) || repeat('00', 20))::posterior.context FROM whole;
SET client_min_messages = warning;
DROP SCHEMA sums CASCADE;
SELECT posterior.drop_model('sums');
