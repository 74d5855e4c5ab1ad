-- posterior.predict_summary: the numbers that the accessors have of posterior.predict_rows, and
-- nothing else travels
\set VERBOSITY terse
SELECT posterior.load_model('gauss', current_setting('test.models') || '/std_bounded.safetensors');
SELECT posterior.load_model('bars', current_setting('test.models') || '/head_bars.safetensors');
CREATE TABLE t AS SELECT i, sin(i / 4.0) + i / 50.0 AS y, i / 10.0 AS x, cos(i)::float8 AS z
	FROM generate_series(1, 60) i;
CREATE TABLE q AS SELECT i, i / 7.0 AS x, sin(i)::float8 AS z, CASE WHEN i % 5 > 0 THEN i / 40.0
	END AS seen FROM generate_series(1, 300) i;

-- every number is the accessor's, bitwise, for every kind of distribution
CREATE FUNCTION compare(model text, features text, levels float8[])
	RETURNS TABLE (rows bigint, means boolean, deviations boolean, quantiles boolean,
		densities boolean) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('posterior.model', model, true);
	RETURN QUERY EXECUTE format('
	WITH c AS (SELECT posterior.context(y, %1$s ORDER BY i) AS ctx FROM t),
		a AS (SELECT array_agg(ROW(%1$s) ORDER BY i) AS asked,
				array_agg(seen ORDER BY i) AS seen FROM q)
	SELECT count(*), bool_and(s.mean = posterior.mean(p.prediction)),
		bool_and(s.stddev = posterior.stddev(p.prediction)),
		bool_and(s.quantiles = (SELECT coalesce(array_agg(posterior.quantile(p.prediction, l)
					ORDER BY n), ''{}'') FROM unnest($1) WITH ORDINALITY AS u (l, n))),
		bool_and(s.log_density IS NOT DISTINCT FROM posterior.log_pdf(p.prediction, q.seen))
	FROM c, a, LATERAL posterior.predict_rows(c.ctx, a.asked) p
		JOIN LATERAL posterior.predict_summary(c.ctx, a.asked, $1, a.seen) s USING (ord)
			JOIN q ON q.i = ord', features) USING levels;
END $$;
SELECT m, compare.* FROM (VALUES ('tabular_small', 'x, z'), ('gauss', 'x, z'),
		('bars', 'x, z')) v (m, features), LATERAL compare(m, features, '{0.1, 0.5, 0.9, 0, 1}');
SELECT compare.* FROM compare('tabular_small', 'x', '{}');

-- named contexts, rows by name
CREATE TABLE named AS SELECT * FROM t;
SELECT posterior.create_context('summary', 'named', target => 'y', features => '{x,z}',
		order_by => 'i', model => 'tabular_small');
SELECT count(*), bool_and(s.mean = posterior.mean(p.prediction)
		AND s.quantiles = ARRAY[posterior.quantile(p.prediction, 0.25)]
		AND s.log_density IS NULL) AS same
FROM (SELECT array_agg(q ORDER BY i) AS asked FROM q) a,
	LATERAL posterior.predict_rows('summary', asked) p
	JOIN LATERAL posterior.predict_summary('summary', asked, '{0.25}') s USING (ord);

-- what may be left out, and empty questions
SET posterior.model = tabular_small;
CREATE TABLE c AS SELECT posterior.context(y, x ORDER BY i) AS ctx FROM t;
SELECT ord, mean IS NOT NULL AND stddev > 0 AS numbers, quantiles, log_density
	FROM c, posterior.predict_summary(ctx, ARRAY[1.0, 2.0]) ORDER BY ord;
SELECT ord, quantiles, log_density IS NULL AS unseen
	FROM c, posterior.predict_summary(ctx, ARRAY[1.0, NULL, 3.0], NULL, '{1, NULL, 2}')
	ORDER BY ord;
SELECT count(*) FROM c, posterior.predict_summary(ctx, ARRAY[]::float8[], '{0.5}', '{}');
SELECT count(*) FROM c, posterior.predict_summary(NULL::posterior.context, ARRAY[1.0]);
SELECT count(*) FROM c, posterior.predict_summary(ctx, NULL::float8[]);

-- errors
SELECT posterior.predict_summary(ctx, ARRAY[1.0], '{1.5}') FROM c;
SELECT posterior.predict_summary(ctx, ARRAY[1.0], '{NaN}') FROM c;
SELECT posterior.predict_summary(ctx, ARRAY[1.0], '{NULL}') FROM c;
SELECT posterior.predict_summary(ctx, ARRAY[1.0], '{{0.1}}') FROM c;
SELECT posterior.predict_summary(ctx, ARRAY[1.0],
		(SELECT array_agg(i / 100.0) FROM generate_series(1, 65) i)) FROM c;
SELECT posterior.predict_summary(ctx, ARRAY[1.0], '{}', '{1, 2}') FROM c;
SELECT posterior.predict_summary(ctx, ARRAY[1.0], '{}', '{Infinity}') FROM c;
SELECT posterior.predict_summary(posterior.class_context(CASE WHEN i % 2 = 0 THEN 'a' ELSE 'b' END,
			x ORDER BY i), ARRAY[1.0]) FROM t;
SELECT posterior.predict_summary('nobody', ARRAY(SELECT t FROM t));

-- a row of an array is named by its place, wherever the array is divided; a row that a statement
-- asks about by itself has none, alone or in a block
\set VERBOSITY default
SET posterior.model = gp1d;
CREATE TABLE far AS SELECT i, CASE WHEN i = 978 THEN 1e308 ELSE i / 500.0::float8 END AS x
	FROM generate_series(1, 1000) i;
CREATE TABLE line AS SELECT posterior.context(y, x ORDER BY i) AS ctx FROM t;
SELECT count(*) FROM line, posterior.predict_rows(ctx, ARRAY(SELECT x FROM far ORDER BY i));
SELECT count(*) FROM line, posterior.predict_summary(ctx, ARRAY(SELECT x FROM far ORDER BY i));
SELECT max(posterior.mean(posterior.predict(ctx, far.x))) FROM line, far;
SELECT posterior.predict(ctx, 1e308::float8) FROM line;
\set VERBOSITY terse

SELECT posterior.drop_context('summary');
SELECT posterior.drop_model('gauss'), posterior.drop_model('bars');
DROP FUNCTION compare(text, text, float8[]);
DROP TABLE t, q, c, named, far, line;
