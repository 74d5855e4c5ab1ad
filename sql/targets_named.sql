-- targets_named: named contexts with several targets, of models of each kind of cache behaviour
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA targets_named_test;
SET search_path = targets_named_test;
CREATE TABLE family (model text PRIMARY KEY);
INSERT INTO family VALUES ('several_mixture'), ('several_fixed'), ('mean_prefix'), ('scan_parts'),
	('decoupled_buffer'), ('deep_kernel_several'), ('joint_several');
SELECT count(posterior.load_model(model, current_setting('test.models') || '/' || model
		|| '.safetensors')) AS loaded FROM family;
CREATE TABLE points (id int PRIMARY KEY, a float8, b float8, u float8, v float8,
	y float8[] GENERATED ALWAYS AS (CASE WHEN u + v IS NOT NULL THEN ARRAY[u, v] END) STORED);
INSERT INTO points SELECT i, sin(i), cos(2 * i), sin(i) + cos(i) / 3, 10 * cos(i)
	FROM generate_series(1, 37) i;
SELECT count(posterior.create_context(model, 'points', 'y', '{a,b}', order_by => 'id',
		model => model)) AS contexts FROM family;
CREATE VIEW asked AS SELECT 0.3::float8 AS a, -0.4::float8 AS b;
-- an encoding made from scratch, without the cache, says the same
CREATE FUNCTION fresh(context text) RETURNS text STABLE LANGUAGE plpgsql
SET posterior.cache = off AS $$
BEGIN
	RETURN (SELECT posterior.predict_targets(context::name, asked)::text FROM asked);
END $$;
CREATE VIEW differ AS SELECT model FROM family, asked
	WHERE posterior.predict_targets(model::name, asked)::text <> fresh(model);
-- and a value of the same rows, where their prefix is the same: of models whose rows are causal
CREATE FUNCTION by_value(model text) RETURNS text STABLE LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('posterior.model', model, true);
	RETURN (SELECT posterior.predict_targets(ctx, asked.a, asked.b)::text
		FROM (SELECT posterior.context(y, a, b ORDER BY id) AS ctx FROM points) c, asked);
END $$;
CREATE VIEW differ_from_value AS SELECT 'several_fixed' AS model FROM asked
	WHERE posterior.predict_targets('several_fixed'::name, asked)::text
		<> by_value('several_fixed');
SELECT * FROM differ UNION ALL SELECT * FROM differ_from_value;
INSERT INTO points VALUES (38, 0.1, 0.2, 0.5, 0.7);
SELECT * FROM differ UNION ALL SELECT * FROM differ_from_value;
INSERT INTO points SELECT i, sin(i), cos(2 * i), 0.4, i FROM generate_series(39, 70) i;
SELECT * FROM differ UNION ALL SELECT * FROM differ_from_value;
-- the second target alone
UPDATE points SET v = 9 WHERE id = 35;
SELECT * FROM differ UNION ALL SELECT * FROM differ_from_value;
DELETE FROM points WHERE id IN (3, 38, 70);
SELECT * FROM differ UNION ALL SELECT * FROM differ_from_value;
-- no target, no row
UPDATE points SET u = NULL WHERE id = 11;
SELECT * FROM differ UNION ALL SELECT * FROM differ_from_value;
BEGIN;
INSERT INTO points VALUES (80, 0, 0, 0, 1);
SELECT * FROM differ UNION ALL SELECT * FROM differ_from_value;
INSERT INTO points VALUES (81, 0, 0, 2, 3), (82, 0.2, 0.1, 3, -3);
SELECT * FROM differ UNION ALL SELECT * FROM differ_from_value;
SAVEPOINT s;
DELETE FROM points WHERE id < 20;
SELECT * FROM differ UNION ALL SELECT * FROM differ_from_value;
ROLLBACK TO s;
SELECT * FROM differ UNION ALL SELECT * FROM differ_from_value;
ROLLBACK;
SELECT * FROM differ UNION ALL SELECT * FROM differ_from_value;
-- chains: a draw depends on its number alone; a density of one row is that of its predictions
CREATE TYPE pair AS (a float8, b float8);
SELECT count(*) AS draws, bool_and(one.y = many.y) AS same, bool_and(one.y[1] <> one.y[2]) AS differ
FROM family, (SELECT ARRAY[(0.1, 0.2), (0.3, 0.4), (0.5, 0.6)]::pair[] AS rows) r,
	LATERAL posterior.sample_targets(model, rows, 3, 7) many,
	LATERAL posterior.sample_targets(model, rows, 1, 7) one
WHERE many.draw = one.draw AND many.ord = one.ord;
SELECT model AS relates_targets FROM family,
	LATERAL posterior.predict_targets(model::name, (0.1, 0.2)::pair) p GROUP BY model, p
	HAVING abs(posterior.log_pdf(p[1], 0.4) + posterior.log_pdf(p[2], 0.7)
		- posterior.log_density(model, ARRAY[0.4, 0.7], (0.1, 0.2)::pair)) > 1e-6;
SELECT model FROM family, generate_series(1, 6) i GROUP BY model
	HAVING NOT (posterior.log_density(model, ARRAY[i / 9.0, i], (i / 5.0, i / 7.0)::pair
			ORDER BY i) BETWEEN -1e6 AND 1e6
		AND posterior.log_density_averaged(model, 4, 1, ARRAY[i / 9.0, i],
			(i / 5.0, i / 7.0)::pair) BETWEEN -1e6 AND 1e6);
-- what does not fit
SELECT posterior.predict('several_fixed'::name, asked) FROM asked;
SELECT posterior.predict('several_fixed', ARRAY[(0.1, 0.2)::pair]);
SELECT posterior.sample('several_fixed', ARRAY[(0.1, 0.2)::pair]);
SELECT posterior.joint('several_fixed', ARRAY[(0.1, 0.2)::pair]);
SELECT posterior.log_density('several_fixed', 0.4, (0.1, 0.2)::pair);
SELECT posterior.log_density('several_fixed', ARRAY[0.4, 0.1, 0.2], (0.1, 0.2)::pair);
SELECT posterior.create_context('other', 'points', 'u', '{a,b}', model => 'several_fixed');
SELECT posterior.create_context('other', 'points', 'y', '{a,b}', model => 'gp1d');
-- functions about one target say so
SELECT posterior.create_context('array', 'points', 'y', '{a,b}', model => 'several_fixed');
SELECT * FROM posterior.score('array', 'points');
SELECT * FROM posterior.contrast('array', '{"a": 1, "b": 1}', '{"a": 2, "b": 1}');
SELECT posterior.watch('array');
SELECT posterior.drop_context('array');
CREATE TABLE ragged (id int PRIMARY KEY, a float8, b float8, y float8[]);
INSERT INTO ragged SELECT i, sin(i), cos(i), ARRAY[i, i / 2.0] FROM generate_series(1, 9) i;
SELECT posterior.create_context('ragged', 'ragged', 'y', '{a,b}', order_by => 'id',
	model => 'several_fixed');
SELECT cardinality(posterior.predict_targets('ragged'::name, asked)) FROM asked;
INSERT INTO ragged VALUES (10, 0, 0, '{1,2,3}');
SELECT posterior.predict_targets('ragged'::name, asked) FROM asked;
UPDATE ragged SET y = '{1,NULL}' WHERE id = 10;
SELECT posterior.predict_targets('ragged'::name, asked) FROM asked;
UPDATE ragged SET y = '{NULL,NULL}' WHERE id = 10;
SELECT posterior.predict_targets('ragged'::name, asked) FROM asked;
UPDATE ragged SET y = '{{1,2}}' WHERE id = 10;
SELECT posterior.predict_targets('ragged'::name, asked) FROM asked;
UPDATE ragged SET y = NULL WHERE id = 10;
SELECT cardinality(posterior.predict_targets('ragged'::name, asked)) FROM asked;
UPDATE ragged SET y = '{1,2,3}';
SELECT posterior.predict_targets('ragged'::name, asked) FROM asked;
TRUNCATE ragged;
SELECT posterior.predict_targets('ragged'::name, asked) FROM asked;
SELECT count(posterior.drop_context(name)) AS dropped FROM posterior.contexts
	WHERE name IN (SELECT f.model FROM family f UNION SELECT 'ragged');
SELECT count(posterior.drop_model(model)) AS dropped FROM family;
DROP SCHEMA targets_named_test CASCADE;
