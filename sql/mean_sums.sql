-- mean_sums: contexts of a mean process that are sums: merged = at once = taken away again,
-- bitwise, in any plan; and named contexts that keep them
\set VERBOSITY terse
SET max_parallel_workers_per_gather = 0;
CREATE SCHEMA mean_sums;
SET search_path = mean_sums;
CREATE TABLE family (model text PRIMARY KEY);
INSERT INTO family VALUES ('mean'), ('mean_scaled');
SELECT count(posterior.load_model(model, current_setting('test.models') || '/' || model
		|| '.safetensors')) AS loaded FROM family;
SET posterior.model = 'mean_scaled';
CREATE TABLE reading (id int PRIMARY KEY, day int, a float8, b float8, y float8);
INSERT INTO reading SELECT i, i / 50, sin(i), cos(2 * i), 10 + sin(i) + cos(i) / 3
	FROM generate_series(1, 512) i;
CREATE TABLE basis AS SELECT posterior.basis(y, a, b ORDER BY id) AS basis FROM reading;
CREATE TABLE whole AS SELECT posterior.context(basis, y, a, b) AS context FROM reading, basis;
SELECT posterior.rows(context) AS rows, posterior.features(context) AS features,
	pg_column_size(context) < 2000 AS small,
	posterior.basis(context) OPERATOR(posterior.=) basis AS same_basis FROM whole, basis;
-- answers, draws and joint densities are those of the rows, whose statistics are of all of them
SELECT id FROM (SELECT id, posterior.predict(context, a, b) OPERATOR(posterior.=)
	posterior.predict((SELECT posterior.context(y, a, b ORDER BY id) FROM reading), a, b) AS same
	FROM reading, whole WHERE id < 10) p WHERE same IS NOT TRUE;
SELECT posterior.sample(context, ARRAY[ROW(a, b)], 3, 7) =
	posterior.sample((SELECT posterior.context(y, a, b ORDER BY id) FROM reading),
		ARRAY[ROW(a, b)], 3, 7) AS same_draws FROM whole, reading WHERE id = 5 LIMIT 1;
-- any order; days roll up; what was merged is taken away, a day or a row
SELECT posterior.context(basis, y, a, b ORDER BY id DESC) OPERATOR(posterior.=) context AS same
FROM reading, basis, whole GROUP BY context;
CREATE TABLE daily AS SELECT day, posterior.context(basis, y, a, b) AS context
FROM reading, basis GROUP BY day;
SELECT posterior.merge(d.context) OPERATOR(posterior.=) w.context AS same
FROM daily d, whole w GROUP BY w.context;
SELECT count(*) AS days, bool_and(posterior.without(w.context, d.context) OPERATOR(posterior.=)
	(SELECT posterior.merge(o.context) FROM daily o WHERE o.day <> d.day)) AS others
FROM daily d, whole w;
SELECT bool_and(posterior.without(w.context, y, a, b) OPERATOR(posterior.=)
	(SELECT posterior.context(basis, y, a, b) FROM reading r, basis WHERE r.id <> o.id)) AS same
FROM reading o, whole w WHERE o.id % 100 = 1;
-- windows slide: of rows, and of days
SELECT id FROM (SELECT id, posterior.context(basis, y, a, b) OVER (ORDER BY id
	ROWS BETWEEN 20 PRECEDING AND 2 FOLLOWING) AS context FROM reading, basis) f
WHERE (f.context OPERATOR(posterior.=) (SELECT posterior.context(basis, y, a, b)
	FROM reading r, basis WHERE r.id BETWEEN f.id - 20 AND f.id + 2)) IS NOT TRUE;
SELECT day FROM (SELECT day, posterior.merge(context) OVER (ORDER BY day ROWS 2 PRECEDING)
	AS context FROM daily) f
WHERE (f.context OPERATOR(posterior.=) (SELECT posterior.merge(context) FROM daily d
	WHERE d.day BETWEEN f.day - 2 AND f.day)) IS NOT TRUE;
-- parts of a parallel plan
BEGIN;
SET LOCAL max_parallel_workers_per_gather = 2;
SET LOCAL min_parallel_table_scan_size = 0;
SET LOCAL parallel_setup_cost = 0;
SET LOCAL parallel_tuple_cost = 0;
SELECT posterior.context((SELECT basis FROM basis), y, a, b) OPERATOR(posterior.=)
	(SELECT context FROM whole) AS same FROM reading;
ROLLBACK;
-- text and binary forms
SELECT context::text::posterior.context OPERATOR(posterior.=) context AS same FROM whole;
-- rows that the model does not take, and sums of others
SELECT posterior.context(basis, y, a, NULL::float8) FROM reading, basis;
SELECT posterior.context(basis, y, a, 'infinity'::float8) FROM reading, basis;
SELECT posterior.without(d.context, w.context) FROM daily d, whole w WHERE day = 0;
SELECT posterior.merge(context, (SELECT posterior.context(posterior.basis(context), y, a, b)
	FROM reading WHERE id < 9)) IS NOT NULL AS merged FROM whole;
SELECT posterior.merge(context, (SELECT posterior.context(o.basis, y, a, b)
	FROM reading, (SELECT posterior.basis(y, a, b) FROM reading WHERE id < 9) o(basis))) FROM whole;
SET posterior.model = 'mean';
SELECT posterior.predict(context, 1, 2) FROM whole;
SET posterior.model = 'mean_scaled';
SELECT posterior.log_evidence(context) FROM whole;
SELECT posterior.basis(y, a, b) FROM reading WHERE id = 1;

-- a named context keeps them where it is asked to: rows come and go, and answers are those of the
-- rows under the same basis
SELECT posterior.create_context('kept', 'reading', 'y', '{a,b}', model => 'mean_scaled',
	maintain => 'sums');
SELECT posterior.create_context('rows', 'reading', 'y', '{a,b}', model => 'mean_scaled');
SELECT name, maintain FROM posterior.contexts WHERE relation = 'reading'::regclass ORDER BY name;
CREATE TABLE asked AS SELECT 0.5::float8 AS a, 0.25::float8 AS b;
CREATE VIEW rows_now AS SELECT posterior.context(posterior.basis(posterior.sums('kept')), y, a, b)
	AS context FROM reading;
CREATE VIEW held AS SELECT posterior.sums('kept') OPERATOR(posterior.=) context AS same_sums,
	posterior.predict('kept', asked) OPERATOR(posterior.=) posterior.predict(context, a, b)
	AS same_answer FROM rows_now, asked;
SELECT * FROM held;
INSERT INTO reading SELECT i, 99, i / 1000.0, 0, 12 FROM generate_series(600, 700) i;
SELECT * FROM held;
UPDATE reading SET y = y + 1, b = b / 2 WHERE id BETWEEN 650 AND 680;
SELECT * FROM held;
DELETE FROM reading WHERE id % 3 = 0;
SELECT * FROM held;
-- a row that the model does not take is no error of the write, but of questions while it is there
INSERT INTO reading VALUES (1000, 0, NULL, 1, 2);
SELECT posterior.predict('kept', asked) FROM asked;
DELETE FROM reading WHERE id = 1000;
SELECT * FROM held;
INSERT INTO reading VALUES (1001, 0, 'infinity', 1, 2);
SELECT posterior.warm_context('kept');
DELETE FROM reading WHERE id = 1001;
SELECT * FROM held;
-- the basis stays as rows move, until it is made anew
UPDATE reading SET y = y + 100;
SELECT * FROM held;
SELECT posterior.warm_context('kept');
SELECT posterior.refresh_context('kept');
SELECT * FROM held;
SELECT posterior.mean(posterior.predict('kept', asked)) > 50 AS follows FROM asked;
SELECT count(posterior.drop_context(name)) AS contexts FROM posterior.contexts
	WHERE relation = 'reading'::regclass;
SELECT count(posterior.drop_model(model)) AS models FROM family;
SET client_min_messages = warning;
DROP SCHEMA mean_sums CASCADE;
