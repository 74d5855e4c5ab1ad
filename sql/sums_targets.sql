-- sums_targets: contexts with several targets per row that are sums: merged = at once = taken away
-- again, bitwise, in any plan, and answers that are those of the rows
\set VERBOSITY terse
SET max_parallel_workers_per_gather = 0;
CREATE SCHEMA sums_targets;
SET search_path = sums_targets;
CREATE TABLE family (model text PRIMARY KEY);
INSERT INTO family VALUES ('mean_prefix'), ('mean_scaled'), ('several_mixture'), ('decoupled');
SELECT count(posterior.load_model(model, current_setting('test.models') || '/' || model
		|| '.safetensors')) AS loaded FROM family;
SELECT name, targets, any_targets, mergeable FROM posterior.models JOIN family ON model = name
	ORDER BY name COLLATE "C";
SET posterior.model = 'mean_prefix';
CREATE TABLE reading (id int PRIMARY KEY, day int, a float8, b float8, u float8, v float8);
INSERT INTO reading SELECT i, i / 50, sin(i), cos(2 * i), 10 + sin(i) + cos(i) / 3, 100 * cos(i)
	FROM generate_series(1, 512) i;
CREATE VIEW pair AS SELECT *, ARRAY[u, v] AS y FROM reading;
CREATE TABLE basis AS SELECT posterior.basis(y, a, b ORDER BY id) AS basis FROM pair;
CREATE TABLE whole AS SELECT posterior.context(basis, y, a, b) AS context FROM pair, basis;
SELECT posterior.rows(context) AS rows, posterior.targets(context) AS targets,
	posterior.features(context) AS features, pg_column_size(context) < 2000 AS small,
	posterior.basis(context) OPERATOR(posterior.=) basis AS same_basis,
	posterior.targets(basis) AS targets_of_basis FROM whole, basis;
-- answers, draws and joint densities are those of the rows, whose statistics are of all of them
CREATE TABLE by_rows AS SELECT posterior.context(y, a, b ORDER BY id) AS context FROM pair;
SELECT id FROM (SELECT id, posterior.predict_targets(w.context, a, b)::text
	= posterior.predict_targets(r.context, a, b)::text AS same
	FROM reading, whole w, by_rows r WHERE id < 10) p WHERE same IS NOT TRUE;
CREATE TYPE question AS (a float8, b float8);
SELECT count(*) AS draws, bool_and(s.y = r.y) AS same, bool_and(s.y[1] <> s.y[2]) AS differ
FROM whole w, by_rows b, (SELECT ARRAY[(0.1, 0.2), (0.3, 0.4)]::question[] AS rows) q,
	LATERAL posterior.sample_targets(w.context, q.rows, 3, 7) s,
	LATERAL posterior.sample_targets(b.context, q.rows, 3, 7) r
WHERE s.draw = r.draw AND s.ord = r.ord;
SELECT posterior.log_density(w.context, y, a, b ORDER BY id)
	= posterior.log_density(r.context, y, a, b ORDER BY id) AS same,
	posterior.log_density_averaged(w.context, 3, 1, y, a, b)
	= posterior.log_density_averaged(r.context, 3, 1, y, a, b) AS same_averaged
FROM pair, whole w, by_rows r WHERE id < 6;
-- any order; days roll up; what was merged is taken away, a day or a row
SELECT posterior.context(basis, y, a, b ORDER BY id DESC) OPERATOR(posterior.=) context AS same
FROM pair, basis, whole GROUP BY context;
CREATE TABLE daily AS SELECT day, posterior.context(basis, y, a, b) AS context
FROM pair, basis GROUP BY day;
SELECT posterior.merge(d.context) OPERATOR(posterior.=) w.context AS same
FROM daily d, whole w GROUP BY w.context;
SELECT count(*) AS days, bool_and(posterior.without(w.context, d.context) OPERATOR(posterior.=)
	(SELECT posterior.merge(o.context) FROM daily o WHERE o.day <> d.day)) AS others
FROM daily d, whole w;
SELECT bool_and(posterior.without(w.context, y, a, b) OPERATOR(posterior.=)
	(SELECT posterior.context(basis, y, a, b) FROM pair r, basis WHERE r.id <> o.id)) AS same
FROM pair o, whole w WHERE o.id % 100 = 1;
SELECT posterior.context(basis, context) OPERATOR(posterior.=) (SELECT context FROM whole) AS same
FROM basis, by_rows GROUP BY basis;
-- windows slide: of rows, and of days
SELECT id FROM (SELECT id, posterior.context(basis, y, a, b) OVER (ORDER BY id
	ROWS BETWEEN 20 PRECEDING AND 2 FOLLOWING) AS context FROM pair, basis WHERE id < 200) f
WHERE id < 190 AND (f.context OPERATOR(posterior.=) (SELECT posterior.context(basis, y, a, b)
	FROM pair r, basis WHERE r.id BETWEEN f.id - 20 AND f.id + 2)) IS NOT TRUE;
SELECT day FROM (SELECT day, posterior.merge(context) OVER (ORDER BY day ROWS 2 PRECEDING)
	AS context FROM daily) f
WHERE (f.context OPERATOR(posterior.=) (SELECT posterior.merge(context) FROM daily d
	WHERE d.day BETWEEN f.day - 2 AND f.day)) IS NOT TRUE;
-- bases of a growing frame whose first rows have no targets
SELECT count(*) AS bases FROM (SELECT id, posterior.basis(y, a, b) OVER (ORDER BY id
		ROWS BETWEEN UNBOUNDED PRECEDING AND 4 FOLLOWING) AS basis
	FROM (SELECT id, CASE WHEN id > 2 THEN y END AS y, a, b FROM pair WHERE id < 20) r) f
WHERE f.basis OPERATOR(posterior.=) (SELECT posterior.basis(y, a, b ORDER BY id) FROM pair r
	WHERE r.id BETWEEN 3 AND f.id + 4 AND r.id < 20);
-- parts of a parallel plan
BEGIN;
SET LOCAL max_parallel_workers_per_gather = 2;
SET LOCAL min_parallel_table_scan_size = 0;
SET LOCAL parallel_setup_cost = 0;
SET LOCAL parallel_tuple_cost = 0;
SELECT posterior.context((SELECT basis FROM basis), ARRAY[u, v], a, b) OPERATOR(posterior.=)
	(SELECT context FROM whole) AS same FROM reading;
ROLLBACK;
-- rows without targets are left out
SELECT posterior.context(basis, CASE WHEN id % 2 = 0 THEN y
		WHEN id % 3 = 0 THEN '{NULL,NULL}' WHEN id % 5 = 0 THEN '{NULL}' END, a, b)
	OPERATOR(posterior.=)
	(SELECT posterior.context(basis, y, a, b) FROM pair, basis WHERE id % 2 = 0) AS same
FROM pair, basis;
-- one target: an array of one number is that number
SET posterior.model = 'mean_scaled';
CREATE TABLE one AS SELECT posterior.context(basis, u, a, b) AS context,
	posterior.context(basis, ARRAY[u], a, b) AS of_array
FROM reading, (SELECT posterior.basis(u, a, b ORDER BY id) AS basis FROM reading) b;
SELECT context OPERATOR(posterior.=) of_array AS same, posterior.targets(context) AS targets,
	posterior.basis(context) OPERATOR(posterior.=)
	(SELECT posterior.basis(ARRAY[u], a, b ORDER BY id) FROM reading) AS same_basis,
	posterior.without(context, ARRAY[u], a, b) OPERATOR(posterior.=)
	posterior.without(context, u, a, b) AS same_without FROM one, reading WHERE id = 7;
SET posterior.model = 'mean_prefix';
-- text and binary forms
SELECT context::text::posterior.context OPERATOR(posterior.=) context AS same,
	posterior.basis(context)::text::posterior.context OPERATOR(posterior.=) posterior.basis(context)
		AS same_basis, left(context::text, 24) AS head FROM whole;
SELECT overlay(context::text PLACING '01' FROM 23 FOR 2)::posterior.context FROM whole;
SELECT overlay(context::text PLACING '41' FROM 23 FOR 2)::posterior.context FROM whole;
SELECT overlay(context::text PLACING '0b' FROM 1 FOR 2)::posterior.context FROM whole;
SELECT left(context::text, 30)::posterior.context FROM whole;
SELECT posterior.predict_targets(overlay(context::text PLACING '03' FROM 23 FOR 2)
	::posterior.context, 1, 2) FROM whole;
-- rows that the model does not take
SELECT posterior.context(basis, y, a, 'infinity'::float8) FROM pair, basis;
SELECT posterior.context(basis, ARRAY[u, 'infinity'], a, b) FROM pair, basis;
SELECT posterior.context(basis, ARRAY[u, NULL], a, b) FROM pair, basis;
SELECT posterior.without(d.context, w.context) FROM daily d, whole w WHERE day = 0;
SELECT posterior.basis(y, a, b) FROM pair WHERE id = 1;
-- a bare NULL is a row without targets, and other literals need a type
SELECT posterior.without(context, NULL, a, b) OPERATOR(posterior.=) context AS same
FROM pair, whole WHERE id = 1;
SELECT posterior.context(basis, NULL, a, b) OPERATOR(posterior.=) basis AS same
FROM pair, basis GROUP BY basis;
SELECT posterior.without(context, '1.5', a, b) FROM pair, whole WHERE id = 1;
SELECT posterior.context(basis, 'yes', a, b) FROM pair, basis;
-- another number of targets
\set VERBOSITY default
SELECT posterior.context(basis, u, a, b) FROM pair, basis;
SELECT posterior.context(basis, y || u, a, b) FROM pair, basis;
SELECT posterior.without(context, u, a, b) FROM pair, whole WHERE id = 1;
SELECT posterior.without(of_array, y, a, b) FROM one, pair WHERE id = 1;
SELECT posterior.merge(whole.context, one.context) FROM whole, one;
SELECT posterior.context(basis, (SELECT posterior.context(u, a, b) FROM reading)) FROM basis;
SELECT posterior.basis(u, a, b) FROM reading;
SELECT posterior.basis(y || u, a, b) FROM pair;
SELECT posterior.predict(context, 1, 2) FROM whole;
SELECT posterior.predict_targets(context, 1, 2) FROM one;
SELECT posterior.log_density(context, u, a, b) FROM whole, reading WHERE id < 3;
SET posterior.model = 'mean_scaled';
SELECT posterior.predict_targets(context, 1, 2) FROM whole;
SELECT posterior.merge(context) FROM whole;
SELECT posterior.context(posterior.basis(context), y, a, b) FROM whole, pair GROUP BY context;
SELECT posterior.basis(y, a, b) FROM pair;
SET posterior.model = 'several_mixture';
SELECT posterior.basis(y, a, b) FROM pair;
SELECT posterior.predict_targets(context, 1, 2) FROM whole;
SET posterior.model = 'decoupled';
SELECT posterior.basis(y, a, b) FROM pair;
-- other weights
SET posterior.model = 'mean_prefix';
SELECT posterior.predict_targets(overlay(context::text PLACING '00' FROM 70 FOR 2)
	::posterior.context, 1, 2) FROM whole;
\set VERBOSITY terse
SELECT count(posterior.drop_model(model)) AS models FROM family;
SET client_min_messages = warning;
DROP SCHEMA sums_targets CASCADE;
