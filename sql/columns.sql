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
-- frames, joint draws and densities encode again
SELECT count(d) FROM (SELECT posterior.regress(y, x, z) OVER (ORDER BY id
	ROWS BETWEEN 6 PRECEDING AND 1 PRECEDING) AS d FROM gauges WHERE id < 12) s;
SELECT count(*) AS rows, count(DISTINCT draw) AS draws
	FROM posterior.sample((SELECT posterior.context(y, x) FROM gauges WHERE id < 9),
		ARRAY[0.1, 0.7]::float8[], draws => 2, seed => 3);
-- what is refused
SELECT posterior.predict(posterior.context(y, x), 'Infinity'::float8) FROM gauges;
SELECT posterior.load_model('cut', substr(file, 1, 1000)) FROM posterior.model_file
	WHERE name = 'columns';
SELECT posterior.drop_context('readings_y');
SELECT posterior.drop_model('columns'), posterior.drop_model('columns_classes');
