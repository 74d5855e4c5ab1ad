-- targets: several targets per row
\set VERBOSITY terse
SET client_min_messages = warning;
CREATE SCHEMA targets_test;
SET search_path = targets_test;
CREATE TABLE loaded (model text PRIMARY KEY);
INSERT INTO loaded VALUES ('several_concat'), ('several_mixture'), ('several_fixed'),
	('mean_prefix'), ('scan_parts'), ('decoupled_buffer'), ('deep_kernel_several'),
	('random_features_several'), ('mean');
SELECT count(posterior.load_model(model, current_setting('test.models') || '/' || model
		|| '.safetensors')) AS loaded FROM loaded;
SELECT name, architecture, context, head, targets, appendable, gpu FROM posterior.models
	JOIN loaded ON model = name ORDER BY name COLLATE "C";
CREATE TABLE points AS SELECT i AS id, sin(i) AS a, cos(2 * i) AS b, sin(i) + cos(i) / 3 AS u,
	cos(i) AS v, 100 * sin(i / 2.0) AS w FROM generate_series(1, 21) i;
CREATE VIEW asked AS SELECT i AS id, i / 5.0 AS a, -0.4 + i / 9.0 AS b, i / 10.0 AS u,
	0.3 AS v FROM generate_series(1, 4) i;
-- a value: how many targets, its text, the order of its rows
CREATE TABLE c AS SELECT posterior.context(ARRAY[u, v], a, b) AS two,
	posterior.context(ARRAY[u, v, w], a, b) AS three FROM points;
SELECT posterior.targets(two) AS two, posterior.targets(three) AS three, posterior.rows(three),
	posterior.features(three), posterior.labels(three) FROM c;
SELECT two::text::posterior.context::text = two::text AS text_form,
	two::text = (SELECT posterior.context(ARRAY[u, v], a, b)::text
		FROM (SELECT * FROM points ORDER BY id DESC) p) AS canonical,
	two::text <> (SELECT posterior.context(ARRAY[u, v], a, b ORDER BY id)::text
		FROM points) AS own_order,
	two::text <> (SELECT posterior.context(ARRAY[v, u], a, b)::text FROM points) AS other_targets
FROM c;
-- an array of one is a number
SELECT posterior.context(ARRAY[u], a, b)::text = posterior.context(u, a, b)::text AS same,
	posterior.targets(posterior.context(u, a, b)) FROM points;
-- all models: as many answers as targets, each for itself in the batch, twice the same
CREATE VIEW models AS SELECT model, targets FROM loaded JOIN posterior.models ON name = model
	WHERE targets > 1;
CREATE FUNCTION by_model(model text) RETURNS TABLE (id int, answers posterior.distribution[])
	STABLE LANGUAGE plpgsql AS $$
DECLARE
	ctx posterior.context;
BEGIN
	PERFORM set_config('posterior.model', model, true);
	SELECT CASE WHEN targets = 2 THEN two ELSE three END INTO ctx
	FROM c, posterior.models m WHERE m.name = model;
	RETURN QUERY SELECT q.id, posterior.predict_targets(ctx, q.a, q.b) FROM asked q;
END $$;
SELECT model, count(*), min(cardinality(answers)) AS least, max(cardinality(answers)) AS most,
	bool_and(answers[1]::text <> answers[2]::text) AS differ
FROM models, by_model(model) GROUP BY model ORDER BY model COLLATE "C";
-- each target has its own unit, where the model scales by its context
SET posterior.model = 'several_mixture';
SELECT bool_and(abs(posterior.mean(p[1]) - posterior.mean(s[1])) < 1e-4) AS one_stays,
	bool_and(abs(1000 * posterior.mean(p[2]) + 5 - posterior.mean(s[2])) < 0.1) AS other_scales,
	bool_and(abs(1000 * posterior.stddev(p[2]) - posterior.stddev(s[2])) < 0.1) AS and_its_spread
FROM (SELECT posterior.context(ARRAY[u, v], a, b) AS plain,
		posterior.context(ARRAY[u, 1000 * v + 5], a, b) AS scaled FROM points) x, asked q,
	LATERAL posterior.predict_targets(plain, q.a, q.b) p,
	LATERAL posterior.predict_targets(scaled, q.a, q.b) s;
-- draws: arrays, the same for the same seed and number
SELECT count(*), min(draw), max(draw), min(ord), max(ord), min(cardinality(y)) AS targets
FROM c, posterior.sample_targets(two, ARRAY(SELECT ROW(q.a, q.b) FROM asked q ORDER BY id), 20, 42);
SELECT bool_and(m.y = o.y) AS same, bool_and(m.y[1] <> m.y[2]) AS differ, count(*)
FROM c, posterior.sample_targets(two, ARRAY(SELECT ROW(q.a, q.b) FROM asked q ORDER BY id), 20,
		42) m
	JOIN LATERAL posterior.sample_targets(c.two, ARRAY(SELECT ROW(q.a, q.b) FROM asked q
		ORDER BY id), 3, 42) o USING (draw, ord);
SELECT count(*) FROM c, posterior.sample_targets(two, ARRAY[]::float8[], 3);
-- the density of a row is the product over its targets; of rows, by the chain rule
SELECT abs(posterior.log_density(two, ARRAY[0.4, -0.2], 0.1, 0.2)
	- posterior.log_pdf((posterior.predict_targets(two, 0.1, 0.2))[1], 0.4)
	- posterior.log_pdf((posterior.predict_targets(two, 0.1, 0.2))[2], -0.2)) < 1e-9 AS product
FROM c GROUP BY two;
SELECT posterior.log_density(two, ARRAY[u, v], a, b ORDER BY id)
	<> posterior.log_density(two, ARRAY[u, v], a, b ORDER BY id DESC) AS order_matters,
	posterior.log_density(two, ARRAY[u, v], a, b) = posterior.log_density(two,
		CASE WHEN id > 0 THEN ARRAY[u, v] END, a, b) AS canonical,
	posterior.log_density_averaged(two, 8, 1, ARRAY[u, v], a, b) = posterior.log_density_averaged(
		two, 8, 1, ARRAY[u, v], a, b) AS same,
	posterior.log_density(two, CASE WHEN id = 3 THEN NULL ELSE ARRAY[u, v] END, a, b ORDER BY id)
	= posterior.log_density(two, ARRAY[u, v], a, b ORDER BY id) FILTER (WHERE id <> 3) AS left_out
FROM c, asked GROUP BY two;
-- of no row that has a target nothing is to be said
SELECT id % 2 AS part,
	posterior.log_density(two, CASE WHEN id % 2 = 0 THEN ARRAY[u, v] END, a, b) = 0 AS nothing,
	posterior.log_density_averaged(two, 4, 1, CASE WHEN id % 2 = 0 THEN ARRAY[u, v] END, a, b) = 0
		AS averaged
FROM c, asked GROUP BY two, id % 2 ORDER BY part;
SET posterior.model = 'several_fixed';
SELECT abs(posterior.log_density(two, ARRAY[q.u, q.v], q.a, q.b ORDER BY q.id)
	- (SELECT sum(posterior.log_pdf(p[1], r.u) + posterior.log_pdf(p[2], r.v)) FROM asked r,
		LATERAL (SELECT posterior.context(ARRAY[u, v], a, b ORDER BY o, id) AS ctx
			FROM (SELECT 1 AS o, id, a, b, u, v FROM points
				UNION ALL SELECT 2, id, a, b, u, v FROM asked e WHERE e.id < r.id) e) before,
		LATERAL posterior.predict_targets(before.ctx, r.a, r.b) p)) < 1e-3 AS chain_rule
FROM (SELECT posterior.context(ARRAY[u, v], a, b ORDER BY id) AS two FROM points) x, asked q
GROUP BY two;
SELECT abs(posterior.log_evidence(ARRAY[u, v], a, b ORDER BY id)
	- (SELECT sum(posterior.log_pdf(p[1], r.u) + posterior.log_pdf(p[2], r.v)) FROM points r,
		LATERAL (SELECT posterior.context(ARRAY[u, v], a, b ORDER BY id) AS ctx FROM points e
			WHERE e.id < r.id) before,
		LATERAL posterior.predict_targets(before.ctx, r.a, r.b) p WHERE r.id > 1)) < 1e-2
	AS chain_rule FROM points;
-- rows whose targets are all NULL are left out; some NULL, or no numbers, are errors
SELECT posterior.rows(posterior.context(CASE WHEN id <= 9 THEN ARRAY[u, v]
	WHEN id <= 12 THEN ARRAY[NULL, NULL]::float8[] END, a, b)) AS known FROM points;
-- and tell how many there are
SELECT posterior.targets(ctx), posterior.rows(ctx), ctx::text::posterior.context::text = ctx::text
	AS text_form
FROM (SELECT posterior.context(ARRAY[NULL, NULL]::float8[], a, b) AS ctx FROM points) x;
SELECT posterior.context(CASE WHEN id < 9 THEN ARRAY[NULL, NULL]::float8[] ELSE ARRAY[u, v, a] END,
	a, b ORDER BY id) FROM points;
SELECT posterior.targets(posterior.context(CASE WHEN id BETWEEN 5 AND 9 THEN ARRAY[u, v]
	ELSE ARRAY[NULL]::float8[] END, a, b ORDER BY id)) FROM points;
SELECT posterior.log_density(ctx, ARRAY[0.4], 0.1, 0.2)
FROM (SELECT posterior.context(ARRAY[NULL, NULL]::float8[], a, b) AS ctx FROM points) x;
SELECT posterior.predict(ctx, 0.1, 0.2)
FROM (SELECT posterior.context(ARRAY[NULL, NULL]::float8[], a, b) AS ctx FROM points) x;
SELECT posterior.context(ARRAY[u, CASE WHEN id <> 4 THEN v END], a, b) FROM points;
SELECT posterior.context(ARRAY[u, 'NaN'], a, b) FROM points;
SELECT posterior.context(ARRAY[u, 'inf'], a, b) FROM points;
SELECT posterior.context(CASE WHEN id < 5 THEN ARRAY[u, v] ELSE ARRAY[u] END, a, b) FROM points;
SELECT posterior.context('{}'::float8[], a, b) FROM points;
SELECT posterior.context(ARRAY[[u, v]], a, b) FROM points;
SELECT posterior.context(array_fill(u, ARRAY[65]), a, b) FROM points;
SELECT posterior.context(ARRAY[u, v]) FROM points;
-- a model of one number, or of another; functions whose answer is of one number
SELECT posterior.predict_targets(three, 0.1, 0.2) FROM c;
SELECT posterior.predict(two, 0.1, 0.2) FROM c;
SELECT posterior.predict_rows(two, ARRAY[ROW(0.1, 0.2)]) FROM c;
SELECT posterior.predict_summary(two, ARRAY[ROW(0.1, 0.2)]) FROM c;
SELECT posterior.sample(two, ARRAY[ROW(0.1, 0.2)]) FROM c;
SELECT posterior.joint(two, ARRAY[ROW(0.1, 0.2)]) FROM c;
SELECT posterior.log_density(two, 0.4, 0.1, 0.2) FROM c;
SELECT posterior.log_density(two, ARRAY[0.4, 0.1, 0.2], 0.1, 0.2) FROM c;
\set VERBOSITY default
SELECT posterior.log_density(two, 'a', 0.1, 0.2) FROM c;
SET posterior.class_model = 'several_fixed';
SELECT posterior.predict(posterior.context(CASE WHEN u > 0 THEN 'up' ELSE 'down' END, a, b), 0, 0)
FROM points;
RESET posterior.class_model;
\set VERBOSITY terse
SELECT posterior.predict(posterior.context(u, a, b), 0.1, 0.2) FROM points;
SELECT posterior.predict_targets(posterior.context(u, a, b), 0.1, 0.2) FROM points;
SELECT posterior.regress(u, a, b) OVER (ORDER BY id) FROM points;
SELECT posterior.log_evidence(u, a, b ORDER BY id) FROM points;
SELECT posterior.create_context('points', 'points', 'u', '{a,b}', order_by => 'id',
	model => 'several_fixed');
SELECT posterior.create_context('points', 'points', 'a', '{u,v}', order_by => 'id',
	model => 'mean_prefix');
SET posterior.model = 'mean';
SELECT posterior.predict_targets(two, 0.1, 0.2) FROM c;
SELECT posterior.log_evidence(ARRAY[u, v], a, b ORDER BY id) FROM points;
-- of a model for one number an array of one
SELECT posterior.predict_targets(ctx, 0.1, 0.2)::text
	= ARRAY[posterior.predict(ctx, 0.1, 0.2)]::text AS same
FROM (SELECT posterior.context(u, a, b) AS ctx FROM points) x;
-- untrusted bytes
SELECT left(two::text, 26) FROM c;
SELECT overlay(two::text PLACING '01' FROM 23 FOR 2)::posterior.context FROM c;
SELECT overlay(two::text PLACING '41' FROM 23 FOR 2)::posterior.context FROM c;
SELECT overlay(two::text PLACING '03' FROM 23 FOR 2)::posterior.context FROM c;
SELECT left(two::text, -16)::posterior.context FROM c;
-- parallel plans give the same value
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT p.ctx::text = two::text AS same
FROM (SELECT posterior.context(ARRAY[u, v], a, b) AS ctx FROM points) p, c;
SELECT posterior.targets(posterior.context(ARRAY[NULL, NULL]::float8[], a, b)) FROM points;
RESET max_parallel_workers_per_gather;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
RESET posterior.model;
SELECT count(posterior.drop_model(model)) AS dropped FROM loaded;
DROP SCHEMA targets_test CASCADE;
