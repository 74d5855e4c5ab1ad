-- joint_gaussian: means and covariances of several rows in closed form
\set VERBOSITY terse
CREATE SCHEMA joint_gaussian;
SET search_path = joint_gaussian;
SELECT posterior.load_model(m, current_setting('test.models') || '/' || m || '.safetensors')
	FROM unnest(ARRAY['joint_full', 'joint_prefix']) m;
CREATE TABLE points (id int PRIMARY KEY, a float8, b float8, y float8);
INSERT INTO points SELECT i, sin(i), cos(2 * i), sin(i) + cos(i) / 3 FROM generate_series(1, 30) i;
CREATE TYPE pair AS (a float8, b float8);
CREATE VIEW asked AS SELECT ARRAY[(0.1, 0.2), (0.3, -0.4), (-0.5, 0.6)]::pair[] AS rows;
SELECT posterior.create_context(m, 'points', 'y', '{a,b}', order_by => 'id', model => m)
	FROM unnest(ARRAY['joint_full', 'joint_prefix']) m;
CREATE VIEW answer AS SELECT m AS model, mean, covariance AS c, rows
	FROM unnest(ARRAY['joint_full', 'joint_prefix']) m, asked, posterior.joint(m, rows);
-- a matrix that is symmetric and has positive diagonal and determinant
SELECT model, array_dims(mean) AS mean, array_dims(c) AS c, c[1][2] = c[2][1] AND c[1][3] = c[3][1]
	AND c[2][3] = c[3][2] AS symmetric, c[1][1] > 0 AND c[2][2] > 0 AND c[3][3] > 0
	AND c[1][1] * c[2][2] > c[1][2] ^ 2 AS positive FROM answer ORDER BY model;
-- the density of two rows is that of the Gaussian
SELECT m, abs(posterior.log_density(m, y, row ORDER BY o) - (SELECT
	-ln(2 * pi()) - ln(d) / 2 - (c[2][2] * u ^ 2 - 2 * c[1][2] * u * v + c[1][1] * v ^ 2) / d / 2
	FROM (SELECT j.covariance AS c, 0.2 - mean[1] AS u, 0.4 - mean[2] AS v, covariance[1][1]
		* covariance[2][2] - covariance[1][2] ^ 2 AS d
		FROM asked, posterior.joint(m, rows[1:2]) j) g)) < 1e-6 AS equal
FROM unnest(ARRAY['joint_full', 'joint_prefix']) m, asked,
	unnest(ARRAY[0.2, 0.4], rows[1:2]) WITH ORDINALITY r (y, a, b, o),
	LATERAL (SELECT (a, b)::pair AS row) p GROUP BY m ORDER BY m;
-- a row alone is its prediction; draws have these moments; a context value says the same
SELECT model, abs(j.mean[1] - posterior.mean(p)) < 1e-6 AND abs(sqrt(j.covariance[1][1])
	- posterior.stddev(p)) < 1e-6 AS alone
FROM answer, posterior.joint(model, rows[1:1]) j, posterior.predict(model::name, rows[1]) p
ORDER BY model;
SELECT model, abs(avg(s.y) - min(mean[2])) < 0.1 * sqrt(min(c[2][2])) AS mean,
	abs(stddev(s.y) / sqrt(min(c[2][2])) - 1) < 0.1 AS stddev
FROM answer, posterior.sample(model, rows, 2000, 5) s WHERE s.ord = 2 GROUP BY model
	ORDER BY model;
SET posterior.model = 'joint_full';
SELECT mean = (SELECT a.mean FROM answer a WHERE model = 'joint_full') AS mean,
	covariance = (SELECT c FROM answer a WHERE model = 'joint_full') AS covariance
FROM (SELECT posterior.context(y, a, b ORDER BY id) AS c FROM points) t, asked,
	posterior.joint(t.c, rows);
-- rows that were appended; no rows
INSERT INTO points VALUES (31, 0.1, 0.2, 3);
SELECT model, mean = (SELECT j.mean FROM (SELECT posterior.context(y, a, b ORDER BY id) AS c
	FROM points) t, asked, posterior.joint(t.c, rows) j) AS mean FROM answer
WHERE model = 'joint_full';
SELECT mean, covariance FROM asked, posterior.joint('joint_full', rows[1:0]);
SELECT posterior.joint('joint_full', NULL::pair[]) IS NULL AS nothing;
-- many rows at once, shared out to threads
SELECT array_length(mean, 1), array_length(covariance, 2)
FROM posterior.joint('joint_prefix', ARRAY(SELECT (sin(i), cos(i))::pair
	FROM generate_series(1, 150) i));
-- what is refused
SELECT posterior.joint('joint_full', ARRAY[(1, 2), NULL]::pair[]);
SELECT posterior.joint('joint_full', array_fill((1, 2)::pair, ARRAY[4097]));
SELECT posterior.joint('joint_full', ARRAY[('infinity', 2)]::pair[]);
\set VERBOSITY default
SET posterior.model = 'gp1d';
SELECT posterior.joint(c, ARRAY[1.0, 2.0]) FROM (SELECT posterior.context(y, a) AS c FROM points) t;
\set VERBOSITY terse
SELECT posterior.joint('nothing', ARRAY[1.0]);
-- several targets: those of a row stand side by side
SELECT posterior.load_model('joint_several', current_setting('test.models')
	|| '/joint_several.safetensors');
CREATE TABLE twofold AS SELECT i AS id, sin(i) AS a, cos(2 * i) AS b,
	ARRAY[sin(i) + cos(i) / 3, 100 * sin(i) - cos(i)] AS y FROM generate_series(1, 32) i;
SELECT posterior.create_context('joint_several', 'twofold', 'y', '{a,b}', order_by => 'id',
	model => 'joint_several');
SET posterior.model = 'joint_several';
CREATE VIEW several AS SELECT c AS context, mean, covariance, rows
FROM (SELECT posterior.context(y, a, b ORDER BY id) AS c FROM twofold) t, asked,
	posterior.joint(c, rows);
SELECT array_dims(mean) AS mean, array_dims(covariance) AS c, bool_and(covariance[i][j]
	= covariance[j][i]) AS symmetric, bool_and(covariance[i][i] > 0) AS positive,
	bool_or(i <> j AND covariance[i][j] <> 0) AS related
FROM several, generate_series(1, 6) i, generate_series(1, 6) j GROUP BY 1, 2;
SELECT j.mean = s.mean AS mean, j.covariance = s.covariance AS covariance
FROM several s, posterior.joint('joint_several', rows) j;
-- a row alone has the moments of its prediction, and their density
SELECT bool_and(abs(j.mean[t] - posterior.mean(p[t])) < 1e-4
	AND abs(sqrt(j.covariance[t][t]) - posterior.stddev(p[t])) < 1e-4) AS alone
FROM several, posterior.joint(context, rows[1:1]) j,
	posterior.predict_targets(context, rows[1].a, rows[1].b) p, generate_series(1, 2) t;
SELECT abs(posterior.log_density(context, ARRAY[0.2, 5], rows[1].a, rows[1].b) - (SELECT
	-ln(2 * pi()) - ln(d) / 2 - (c[2][2] * u ^ 2 - 2 * c[1][2] * u * v + c[1][1] * v ^ 2) / d / 2
	FROM (SELECT j.covariance AS c, 0.2 - j.mean[1] AS u, 5 - j.mean[2] AS v,
		j.covariance[1][1] * j.covariance[2][2] - j.covariance[1][2] ^ 2 AS d
		FROM posterior.joint(context, rows[1:1]) j) g)) < 1e-6 AS density
FROM several GROUP BY context, rows;
SELECT bool_and(abs(m / mean[2 * (ord - 1) + t] - 1) < 0.2 OR abs(m - mean[2 * (ord - 1) + t])
	< 0.2 * sqrt(covariance[2 * (ord - 1) + t][2 * (ord - 1) + t])) AS means,
	bool_and(abs(sd / sqrt(covariance[2 * (ord - 1) + t][2 * (ord - 1) + t]) - 1) < 0.1) AS sds
FROM several, LATERAL (SELECT ord, t, avg(s.y[t]) AS m, stddev(s.y[t]) AS sd
	FROM posterior.sample_targets(context, rows, 1000, 5) s, generate_series(1, 2) t
	GROUP BY ord, t) s;
SELECT count(*) AS draws, bool_and(one.y = many.y) AS same
FROM several, LATERAL posterior.sample_targets('joint_several', rows, 3, 7) many,
	LATERAL posterior.sample_targets(context, rows, 2, 7) one
WHERE many.draw = one.draw AND many.ord = one.ord;
SELECT posterior.joint('joint_several', array_fill((1, 2)::pair, ARRAY[2049]));
DROP VIEW several;
SELECT posterior.drop_context('joint_several'), posterior.drop_model('joint_several');
SELECT count(posterior.drop_context(m)), count(posterior.drop_model(m))
	FROM unnest(ARRAY['joint_full', 'joint_prefix']) m;
SET client_min_messages = warning;
DROP SCHEMA joint_gaussian CASCADE;
