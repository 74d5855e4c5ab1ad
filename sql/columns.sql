-- models of the architecture columns: loading, predictions, classes, frames, named contexts, views
\set SHOW_CONTEXT never
SELECT posterior.load_model('columns',
		current_setting('test.models') || '/columns/columns.safetensors'),
	posterior.load_model('columns_classes',
		current_setting('test.models') || '/columns/columns_classes.safetensors');
SELECT name, description, architecture, context, head, classes, features, min_rows, buffer,
	takes_missing, takes_categories, bundled
	FROM posterior.models WHERE name LIKE 'columns%' ORDER BY name;
CREATE TABLE gauges (id int, x float8, kind text, z int, y float8, label text);
INSERT INTO gauges SELECT i, sin(i), (ARRAY['a', 'b', NULL])[1 + i % 3], nullif(i % 5, 4),
	10 + 3 * cos(i) + i % 3, CASE WHEN i % 4 < 2 THEN 'low' ELSE 'high' END
	FROM generate_series(1, 40) i;
SET posterior.model = 'columns';
SET posterior.class_model = 'columns_classes';
-- an answer is a distribution of quantiles, proper and around the targets
SELECT posterior.kind(d), posterior.stddev(d) > 0 AS proper,
	abs(posterior.cdf(d, posterior.quantile(d, 0.3)) - 0.3) < 1e-12 AS quantile,
	posterior.quantile(d, 0.1) < posterior.quantile(d, 0.9) AS increasing
FROM (SELECT posterior.predict(posterior.context(y, x, kind, z ORDER BY id), 0.5, 'a', 2) AS d
	FROM gauges) s;
SELECT posterior.kind(d),
	abs(posterior.probability(d, 'low') + posterior.probability(d, 'high') - 1) < 1e-12 AS proper
FROM (SELECT posterior.predict(posterior.context(label, x, kind, z), 0.5, 'b', NULL::int) AS d
	FROM gauges) s;
-- alone = in a statement, and from the cache
CREATE TABLE answers AS SELECT r.id, posterior.predict(c, r.x, r.kind, r.z) AS d
	FROM (SELECT posterior.context(y, x, kind, z ORDER BY id) AS c FROM gauges) s, gauges r;
SELECT count(*) FROM answers a JOIN gauges r USING (id),
	(SELECT posterior.context(y, x, kind, z ORDER BY id) AS c FROM gauges) s
	WHERE r.id IN (1, 17, 40)
		AND a.d OPERATOR(posterior.=) posterior.predict(c, r.x, r.kind, r.z);
-- a named context: an INSERT is there at the next prediction
SELECT posterior.create_context('readings_y', 'gauges', target => 'y',
	features => '{x,kind,z}', order_by => 'id', model => 'columns');
SELECT posterior.predict('readings_y', r) OPERATOR(posterior.=) a.d AS same
	FROM gauges r JOIN answers a USING (id) WHERE id = 5;
BEGIN;
INSERT INTO gauges VALUES (41, 0.1, 'b', 1, 99, 'low');
SELECT posterior.predict('readings_y', r) OPERATOR(posterior.=) a.d AS same,
	posterior.predict('readings_y', r) OPERATOR(posterior.=) (SELECT
		posterior.predict(posterior.context(y, x, kind, z ORDER BY id), r.x, r.kind, r.z)
		FROM gauges)
		AS "as of all rows"
	FROM gauges r JOIN answers a USING (id) WHERE id = 5;
ROLLBACK;
SELECT posterior.predict('readings_y', r) OPERATOR(posterior.=) a.d AS same
	FROM gauges r JOIN answers a USING (id) WHERE id = 5;
-- views of a table are part of what an encoding is
SET posterior.estimators = 4;
SELECT posterior.predict('readings_y', r) OPERATOR(posterior.=) a.d AS same
	FROM gauges r JOIN answers a USING (id) WHERE id = 5;
CREATE TABLE four AS SELECT posterior.predict('readings_y', r) AS d FROM gauges r WHERE id = 5;
RESET posterior.estimators;
SELECT posterior.predict('readings_y', r) OPERATOR(posterior.=) a.d AS same
	FROM gauges r JOIN answers a USING (id) WHERE id = 5;
SET posterior.estimators = 4;
SELECT posterior.predict('readings_y', r) OPERATOR(posterior.=) d AS same
	FROM gauges r, four WHERE id = 5;
RESET posterior.estimators;
SET posterior.estimators = 33;
-- a context may say how many, whatever the setting is
SELECT posterior.alter_context('readings_y', estimators => 4);
SELECT estimators, freshness FROM posterior.contexts WHERE name = 'readings_y';
SELECT posterior.predict('readings_y', r) OPERATOR(posterior.=) d AS same
	FROM gauges r, four WHERE id = 5;
SELECT posterior.alter_context('readings_y', estimators => 33);
SELECT posterior.alter_context('readings_y', estimators => -1);
SELECT posterior.alter_context('readings_y', max_rows => 40);
SELECT estimators FROM posterior.contexts WHERE name = 'readings_y';
SELECT posterior.alter_context('readings_y', estimators => 0, max_rows => 0);
SELECT estimators FROM posterior.contexts WHERE name = 'readings_y';
SELECT posterior.predict('readings_y', r) OPERATOR(posterior.=) a.d AS same
	FROM gauges r JOIN answers a USING (id) WHERE id = 5;
SELECT posterior.estimators(c), posterior.estimators(w), posterior.rows(w),
	posterior.estimators(w::text::posterior.context) AS "as text",
	posterior.estimators(posterior.with_estimators(w, 0)) AS "taken away",
	posterior.with_estimators(w, 0)::text = c::text AS "as before",
	posterior.predict(w, r.x, r.kind, r.z) OPERATOR(posterior.=) four.d AS same
FROM (SELECT c, posterior.with_estimators(c, 4) AS w
		FROM (SELECT posterior.context(y, x, kind, z ORDER BY id) AS c FROM gauges) s) s,
	gauges r, four WHERE r.id = 5;
SELECT posterior.with_estimators(posterior.context(y, x), 33) FROM gauges;
SELECT posterior.estimators(posterior.with_estimators(
	posterior.class_context(label, x ORDER BY id), 2)) FROM gauges;
SELECT ('85' || substr(c::text, 3))::posterior.context IS NULL
	FROM (SELECT posterior.context(y, x) AS c FROM gauges) s;
-- live categories: new ones, missing ones, and some that no row of the context has
CREATE FUNCTION live(query text) RETURNS TABLE (finite boolean, same boolean) LANGUAGE sql AS $$
	SELECT abs(posterior.mean(p)) < 1e6, p OPERATOR(posterior.=)
		(SELECT posterior.predict(posterior.context(y, x, kind, z ORDER BY id), 0.5, query, 2)
			FROM gauges)
	FROM (SELECT posterior.predict('readings_y', q) AS p
			FROM (SELECT 0.5::float8 AS x, query AS kind, 2 AS z) q) s $$;
BEGIN;
SELECT * FROM live('never seen');
SELECT * FROM live(NULL);
INSERT INTO gauges VALUES (41, 0.1, 'never seen', 1, 12), (42, 0.3, NULL, NULL, 11);
SELECT * FROM live('never seen');
SELECT posterior.predict('readings_y', q) OPERATOR(posterior.=)
	posterior.predict('readings_y', r) AS "as if missing"
	FROM (SELECT 0.5::float8 AS x, 'neither' AS kind, 2 AS z) q,
		(SELECT 0.5::float8 AS x, NULL AS kind, 2 AS z) r;
UPDATE gauges SET kind = 'renamed' WHERE kind = 'a';
SELECT * FROM live('renamed');
UPDATE gauges SET kind = NULL;
SELECT * FROM live('a');
ROLLBACK;
DROP FUNCTION live(text);
-- ten classes, and one more
CREATE TABLE grades AS SELECT i AS id, sin(i) AS x, 'grade ' || i % 10 AS grade
	FROM generate_series(1, 40) i;
SELECT posterior.create_context('grades', 'grades', 'grade', '{x}', 'id', 'columns_classes');
SELECT count(*), abs(sum(p.probability) - 1) < 1e-12 AS proper
	FROM (SELECT 0.5::float8 AS x) q, LATERAL posterior.probabilities(
		posterior.predict('grades', q)) p;
INSERT INTO grades VALUES (41, 0, 'another');
SELECT posterior.predict('grades', q) FROM (SELECT 0.5::float8 AS x) q;
SELECT posterior.predict(posterior.context(grade, x), 0.5::float8) FROM grades;
SELECT posterior.drop_context('grades');
-- a window of the newest rows, and scores of a table's own rows
SELECT posterior.alter_context('readings_y', max_rows => 20);
SELECT posterior.predict('readings_y', r) OPERATOR(posterior.=) (SELECT
		posterior.predict(posterior.context(y, x, kind, z ORDER BY id), r.x, r.kind, r.z)
		FROM gauges WHERE id > 20) AS "of the newest"
	FROM gauges r WHERE id = 5;
SELECT posterior.alter_context('readings_y', max_rows => 0);
SELECT n, coverage BETWEEN 0 AND 1 AS coverage, rmse > 0 AS rmse, crps > 0 AS crps,
	log_density < 0 AS log_density
	FROM posterior.evaluate('gauges', 'y', '{x,kind,z}', folds => 2, model => 'columns');
SELECT n, accuracy BETWEEN 0 AND 1 AS accuracy, log_density < 0 AS log_density
	FROM posterior.evaluate('gauges', 'label', '{x,z}', folds => 2, model => 'columns_classes');
-- frames, joint draws and densities encode again
SELECT count(d) FROM (SELECT posterior.regress(y, x, z) OVER (ORDER BY id
	ROWS BETWEEN 6 PRECEDING AND 1 PRECEDING) AS d FROM gauges WHERE id < 12) s;
SELECT count(*) AS rows, count(DISTINCT draw) AS draws
	FROM posterior.sample((SELECT posterior.context(y, x) FROM gauges WHERE id < 9),
		ARRAY[0.1, 0.7]::float8[], draws => 2, seed => 3);
-- which is announced where it takes long, and refused where it takes longer
SET posterior.joint_notice = 0;
SELECT count(*) AS rows FROM posterior.sample((SELECT posterior.context(y, x) FROM gauges
	WHERE id < 9), ARRAY[0.1, 0.7]::float8[], draws => 2, seed => 3);
SELECT posterior.log_density(c, y, x ORDER BY id) < 0 AS negative
	FROM gauges, (SELECT posterior.context(y, x) AS c FROM gauges WHERE id < 9) s
	WHERE id BETWEEN 9 AND 11;
SELECT count(*) AS rows FROM posterior.sample((SELECT posterior.context(y, x) FROM gauges
	WHERE id < 9), ARRAY[0.1]::float8[], draws => 2, seed => 3);
SET posterior.joint_notice = -1;
SELECT posterior.log_evidence(y, x ORDER BY id) < 0 AS negative FROM gauges WHERE id < 4;
SET posterior.joint_limit = 0;
SELECT count(*) FROM posterior.sample((SELECT posterior.context(y, x) FROM gauges WHERE id < 9),
	ARRAY[0.1, 0.7]::float8[], draws => 2, seed => 3);
SELECT posterior.log_density_averaged(c, 5, 1, y, x)
	FROM gauges, (SELECT posterior.context(y, x) AS c FROM gauges WHERE id < 9) s
	WHERE id BETWEEN 9 AND 11;
SELECT posterior.log_evidence(y, x ORDER BY id) FROM gauges WHERE id < 4;
RESET posterior.joint_limit;
RESET posterior.joint_notice;
-- what is refused
SELECT posterior.predict(posterior.context(y, x), 'Infinity'::float8) FROM gauges;
SELECT posterior.load_model('cut', substr(file, 1, 1000)) FROM posterior.model_file
	WHERE name = 'columns';
SELECT posterior.drop_context('readings_y');
SELECT posterior.drop_model('columns'), posterior.drop_model('columns_classes');
