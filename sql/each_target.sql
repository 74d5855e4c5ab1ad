-- each_target: models of one target that take rows of several, each as if it were alone
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA each_target_test;
SET search_path = each_target_test;
CREATE TABLE family (model text PRIMARY KEY);
INSERT INTO family VALUES ('decoupled'), ('decoupled_one'), ('decoupled_causal'),
	('decoupled_distance'), ('decoupled_linear');
SELECT count(posterior.load_model(model, current_setting('test.models') || '/' || model
		|| '.safetensors')) AS loaded FROM family;
CREATE TABLE points (id int PRIMARY KEY, a float8, b float8, u float8, v real, w numeric);
INSERT INTO points SELECT i, sin(i), cos(2 * i), sin(i) + cos(i) / 3, cos(i),
	round((100 * sin(i / 2.0))::numeric, 6) FROM generate_series(1, 37) i;
CREATE VIEW asked AS SELECT i AS id, i / 5.0::float8 AS a, -0.4 + i / 9.0::float8 AS b
	FROM generate_series(1, 4) i;
-- values: as many targets as there are, and each alone
CREATE TABLE c AS SELECT posterior.context(ARRAY[u, v, w], a, b ORDER BY id) AS three,
	posterior.context(ARRAY[v, u], a, b ORDER BY id) AS two,
	posterior.context(array_fill(w::float8, ARRAY[64]), a, b ORDER BY id) AS most,
	posterior.context(u, a, b ORDER BY id) AS u, posterior.context(v, a, b ORDER BY id) AS v,
	posterior.context(w, a, b ORDER BY id) AS w FROM points;
CREATE FUNCTION predictions_differ(model text) RETURNS boolean STABLE LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('posterior.model', model, true);
	RETURN (SELECT bool_or(posterior.predict_targets(three, q.a, q.b)::text <> ARRAY[
				posterior.predict(u, q.a, q.b), posterior.predict(v, q.a, q.b),
				posterior.predict(w, q.a, q.b)]::text
			OR posterior.predict_targets(two, q.a, q.b)::text <> ARRAY[
				posterior.predict(v, q.a, q.b), posterior.predict(u, q.a, q.b)]::text
			OR posterior.predict_targets(most, q.a, q.b)::text
				<> array_fill(posterior.predict(w, q.a, q.b), ARRAY[64])::text)
		FROM c, asked q);
END $$;
SELECT model, predictions_differ(model) FROM family ORDER BY model COLLATE "C";
-- one call of values with different numbers of targets
SET posterior.model = 'decoupled_causal';
SELECT n, cardinality(posterior.predict_targets(value, 0.1, 0.2)) AS targets
FROM c, LATERAL (VALUES (1, three), (2, u), (3, most), (4, two), (5, w), (6, v), (7, three))
	AS x (n, value) ORDER BY n;
-- draws: a target that is first draws as it does alone; densities are those of all targets
CREATE FUNCTION joint_differs(model text) RETURNS boolean STABLE LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('posterior.model', model, true);
	RETURN (SELECT bool_or(all_targets.y[1] <> alone.y OR one.y <> all_targets.y
				OR all_targets.y[1] = all_targets.y[2])
			FROM c, (SELECT array_agg(ROW(q.a, q.b) ORDER BY id) AS rows FROM asked q) r,
				LATERAL posterior.sample_targets(two, rows, 5, 42) all_targets
				JOIN LATERAL posterior.sample(v, rows, 5, 42) alone USING (draw, ord)
				LEFT JOIN LATERAL posterior.sample_targets(two, rows, 2, 42) one USING (draw, ord))
		OR (SELECT abs(posterior.log_density(two, ARRAY[q.a, q.b], q.a, q.b ORDER BY id)
				- posterior.log_density(v, q.a, q.a, q.b ORDER BY id)
				- posterior.log_density(u, q.b, q.a, q.b ORDER BY id)) > 1e-9
			FROM (SELECT two, v, u, q.* FROM c, asked q) q GROUP BY two, v, u)
		OR (SELECT abs(posterior.log_evidence(ARRAY[u, v], a, b ORDER BY id)
				- posterior.log_evidence(u, a, b ORDER BY id)
				- posterior.log_evidence(v, a, b ORDER BY id)) > 1e-9 FROM points);
END $$;
SELECT model, joint_differs(model) FROM family ORDER BY model COLLATE "C";
-- named contexts: columns, together and each alone
CREATE TABLE alone AS SELECT model, target, model || ' ' || target AS name
	FROM family, unnest('{u,v,w}'::text[]) AS target;
SELECT count(posterior.create_context(model, 'points', '{u,v,w}', '{a,b}', order_by => 'id',
		model => model)) AS together FROM family;
SELECT count(posterior.create_context(name, 'points', target, '{a,b}', order_by => 'id',
		model => model)) AS alone FROM alone;
CREATE VIEW questions AS SELECT a, b FROM asked WHERE id = 3;
CREATE FUNCTION fresh(context text) RETURNS text STABLE LANGUAGE plpgsql
SET posterior.cache = off AS $$
BEGIN
	RETURN (SELECT posterior.predict_targets(context::name, q)::text FROM questions q);
END $$;
CREATE VIEW differ AS SELECT model, targets.answers = fresh(model) AS cached,
	targets.answers = alone.answers AS each
FROM family, LATERAL (SELECT posterior.predict_targets(model::name, q)::text AS answers
		FROM questions q) targets,
	LATERAL (SELECT array_agg(posterior.predict(o.name::name, q) ORDER BY target)::text AS answers
		FROM alone o, questions q WHERE o.model = family.model) alone
WHERE targets.answers IS DISTINCT FROM fresh(model)
	OR targets.answers IS DISTINCT FROM alone.answers;
SELECT * FROM differ;
INSERT INTO points VALUES (38, 0.1, 0.2, 0.5, 0.75, 0.7);
SELECT * FROM differ;
INSERT INTO points SELECT i, sin(i), cos(2 * i), 0.4, i, i FROM generate_series(39, 70) i;
SELECT * FROM differ;
UPDATE points SET v = 9 WHERE id = 35;
SELECT * FROM differ;
DELETE FROM points WHERE id IN (3, 38, 70);
SELECT * FROM differ;
BEGIN;
INSERT INTO points VALUES (80, 0, 0, 0, 1, 2);
SELECT * FROM differ;
SAVEPOINT s;
DELETE FROM points WHERE id < 20;
SELECT * FROM differ;
ROLLBACK TO s;
SELECT * FROM differ;
ROLLBACK;
SELECT * FROM differ;
CREATE TYPE pair AS (a float8, b float8);
SELECT model FROM family, (SELECT ARRAY[(0.1, 0.2), (0.3, 0.4), (0.5, 0.6)]::pair[] AS rows) r,
	LATERAL posterior.sample_targets(model, rows, 3, 7) together,
	LATERAL posterior.sample(model || ' u', rows, 3, 7) alone
WHERE together.draw = alone.draw AND together.ord = alone.ord AND together.y[1] <> alone.y;
SELECT model FROM family, LATERAL (
	SELECT posterior.log_density(model, ARRAY[i / 9.0, i, 2], q ORDER BY i) AS together,
		posterior.log_density(model || ' u', i / 9.0, q ORDER BY i)
			+ posterior.log_density(model || ' v', i, q ORDER BY i)
			+ posterior.log_density(model || ' w', 2, q ORDER BY i) AS alone
	FROM generate_series(1, 6) i, LATERAL (SELECT i / 5.0::float8 AS a, i / 7.0::float8 AS b) q) d
WHERE (together = alone OR abs(together - alone) < 1e-6) IS NOT true;
-- a window, a filter, other arithmetic
CREATE VIEW parts AS SELECT model, part, target, model || ' ' || part || ' ' || target AS name
	FROM family, unnest('{window,filter}'::text[]) AS part,
		unnest('{u,v,"{u,v}"}'::text[]) AS target;
SELECT count(posterior.create_context(name, 'points', target, '{a,b}', order_by => 'id',
		model => model, max_rows => CASE part WHEN 'window' THEN 20 END,
		filter => CASE part WHEN 'filter' THEN 'a > 0' END)) AS parts FROM parts;
CREATE FUNCTION parts_differ(kernels text) RETURNS TABLE (name text) STABLE LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('posterior.kernels', kernels, true),
		set_config('posterior.device', 'cpu', true);
	RETURN QUERY SELECT p.name FROM parts p, questions q
		WHERE target = '{u,v}' AND posterior.predict_targets(p.name::name, q)::text
			<> ARRAY[posterior.predict((model || ' ' || part || ' u')::name, q),
				posterior.predict((model || ' ' || part || ' v')::name, q)]::text;
END $$;
SELECT * FROM unnest('{cpu,half,reference}'::text[]) k, parts_differ(k);
-- other numbers of targets
SELECT count(posterior.alter_context(model, target => '{w,v}')) AS altered FROM family;
SELECT model FROM family, questions q WHERE posterior.predict_targets(model::name, q)::text
	<> ARRAY[posterior.predict((model || ' w')::name, q),
		posterior.predict((model || ' v')::name, q)]::text;
SELECT count(posterior.alter_context(model, target => 'w')) AS altered FROM family;
SELECT model FROM family, questions q WHERE posterior.predict(model::name, q)::text
	<> posterior.predict((model || ' w')::name, q)::text;
SELECT count(posterior.alter_context(model, target => '{u,v,w}')) AS altered FROM family;
SELECT * FROM differ;
-- another model under the name; none
SELECT posterior.drop_model('decoupled'), posterior.load_model('decoupled',
	current_setting('test.models') || '/decoupled_causal.safetensors');
SELECT * FROM differ;
SELECT bool_and(posterior.predict_targets('decoupled'::name, q)::text
	= posterior.predict_targets('decoupled_causal'::name, q)::text) AS other_model FROM questions q;
BEGIN;
SELECT posterior.drop_model('decoupled');
SELECT posterior.predict_targets('decoupled'::name, q) FROM questions q;
ROLLBACK;
SELECT * FROM differ;
-- of an array the number is not known before its rows; a view of its elements is
ALTER TABLE points ADD y float8[] GENERATED ALWAYS AS (ARRAY[u, v::float8]) STORED;
\set VERBOSITY default
SELECT posterior.create_context('arrays', 'points', 'y', '{a,b}', order_by => 'id',
	model => 'decoupled_causal');
\set VERBOSITY terse
CREATE VIEW elements AS SELECT id, a, b, y[1] AS y1, y[2] AS y2 FROM points;
SELECT posterior.create_context('elements', 'elements', '{y1,y2}', '{a,b}', order_by => 'id',
	model => 'decoupled_causal');
SELECT posterior.predict_targets('elements'::name, q)::text = ARRAY[
	posterior.predict('decoupled_causal u'::name, q),
	posterior.predict('decoupled_causal v'::name, q)]::text AS same FROM questions q;
-- what is about one number; models that take one
SELECT posterior.predict('decoupled'::name, q) FROM questions q;
SELECT posterior.score('decoupled', 'points');
SELECT posterior.predict(two, 0.1, 0.2) FROM c;
SELECT posterior.sample(two, ARRAY[ROW(0.1, 0.2)]) FROM c;
SELECT posterior.joint(two, ARRAY[ROW(0.1, 0.2)]) FROM c;
SELECT posterior.log_density(two, 0.4, 0.1, 0.2) FROM c;
SELECT posterior.log_density(two, ARRAY[0.4, 0.1, 0.2], 0.1, 0.2) FROM c;
SELECT posterior.load_model('decoupled_lstm', current_setting('test.models')
	|| '/decoupled_lstm.safetensors');
SET posterior.model = 'decoupled_lstm';
SELECT posterior.predict_targets(two, 0.1, 0.2) FROM c;
SELECT posterior.create_context('lstm', 'points', '{u,v}', '{a,b}', order_by => 'id',
	model => 'decoupled_lstm');
SELECT name, targets, any_targets FROM posterior.models
	WHERE name IN (SELECT model FROM family UNION SELECT 'decoupled_lstm')
	ORDER BY name COLLATE "C";
RESET posterior.model;
SELECT count(posterior.drop_context(name)) AS dropped FROM posterior.contexts
	WHERE relation::text IN ('points', 'elements');
SELECT count(posterior.drop_model(model)) AS dropped
	FROM (SELECT model FROM family UNION SELECT 'decoupled_lstm') m;
DROP SCHEMA each_target_test CASCADE;
