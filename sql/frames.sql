-- the window form: which rows a frame gives, and that it agrees with the other forms
SET posterior.model = 'gp1d';
CREATE TABLE t AS SELECT i, i / 10.0 - 2 AS x, CASE WHEN i % 7 > 0 THEN sin(i / 5.0) END AS y,
	i % 2 AS g FROM generate_series(1, 40) i;
-- a moving frame is the context of its rows with a target; rows without one are predicted
-- (imputation)
WITH w AS (SELECT i, x, y, posterior.regress(y, x)
		OVER (ORDER BY i ROWS BETWEEN 8 PRECEDING AND 1 PRECEDING) AS d FROM t)
SELECT count(*) AS rows, count(d) AS answered,
	bool_and(d::text = (SELECT posterior.predict(posterior.context(y, x ORDER BY i), w.x) FROM t
			WHERE t.i BETWEEN w.i - 8 AND w.i - 1)::text) AS same
FROM w WHERE i > 1;
SELECT i, round(posterior.mean(d)::numeric, 1) AS imputed, round(sin(i / 5.0)::numeric, 1) AS truth
FROM (SELECT i, y, posterior.regress(y, x) OVER () AS d FROM t) s WHERE y IS NULL ORDER BY i;
-- a frame without rows, or without targets, is answered by the prior, as a context of 0 rows is:
-- frames of every shape
CREATE TABLE empty AS SELECT i, shape, d FROM (SELECT i,
		posterior.regress(y, x)
			OVER (ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS growing,
		posterior.regress(y, x)
			OVER (ORDER BY i ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING) AS sliding,
		posterior.regress(y, x)
			OVER (ORDER BY i DESC ROWS BETWEEN 5 FOLLOWING AND 9 FOLLOWING) AS ahead,
		posterior.regress(y, x)
			OVER (PARTITION BY i ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
				EXCLUDE CURRENT ROW) AS alone,
		posterior.regress(y, x) OVER (PARTITION BY g
				ORDER BY i GROUPS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
				EXCLUDE GROUP) AS others,
		posterior.regress(y, x)
			OVER (ORDER BY i RANGE BETWEEN 90 PRECEDING AND 80 PRECEDING) AS never,
		posterior.regress(NULL::float8, x) OVER () AS untold,
		posterior.regress(NULL::float8, x) OVER (ORDER BY i) AS untold_growing,
		posterior.regress(CASE WHEN i > 5 THEN y END, x)
			OVER (ORDER BY i ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS untold_first
	FROM t) w, LATERAL (VALUES ('growing', growing), ('sliding', sliding), ('ahead', ahead),
		('alone', alone), ('others', others), ('never', never), ('untold', untold),
		('untold growing', untold_growing), ('untold first', untold_first)) v (shape, d);
SELECT shape, count(*) AS rows, count(d) AS answered,
	count(*) FILTER (WHERE d OPERATOR(posterior.=) prior) AS priors
FROM empty JOIN (SELECT i, posterior.predict(ctx, x) AS prior
		FROM t, (SELECT posterior.context(NULL::float8, x) AS ctx FROM t) c) p
			USING (i) GROUP BY shape
	ORDER BY shape COLLATE "C";
DROP TABLE empty;
-- the kinds of features are known without rows
SELECT posterior.regress(NULL::float8, 'a'::text) OVER () FROM t LIMIT 1;
-- per group, leave-one-out, RANGE and GROUPS
WITH w AS (SELECT i, x, g, posterior.regress(y, x)
		OVER (PARTITION BY g ORDER BY i
			ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS d FROM t)
SELECT bool_and(d::text = (SELECT posterior.predict(posterior.context(y, x ORDER BY i), w.x) FROM t
			WHERE t.g = w.g)::text) AS same FROM w;
WITH w AS (SELECT i, x, posterior.regress(y, x)
		OVER (ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
			EXCLUDE CURRENT ROW) AS d FROM t)
SELECT bool_and(d::text = (SELECT posterior.predict(posterior.context(y, x ORDER BY i), w.x) FROM t
			WHERE t.i <> w.i)::text) AS same FROM w;
WITH w AS (SELECT i, x, posterior.regress(y, x)
		OVER (ORDER BY i / 4 GROUPS BETWEEN 2 PRECEDING AND 1 PRECEDING) AS d FROM t)
SELECT bool_and(d IS NULL
		OR abs(posterior.mean(d)
			- posterior.mean((SELECT posterior.predict(posterior.context(y, x), w.x) FROM t
			WHERE t.i / 4 BETWEEN w.i / 4 - 2 AND w.i / 4 - 1))) < 1e-4) AS same FROM w;
WITH w AS (SELECT i, x, posterior.regress(y, x)
		OVER (ORDER BY i RANGE BETWEEN 5 PRECEDING AND 1 PRECEDING) AS d FROM t)
SELECT bool_and(d::text = (SELECT posterior.predict(posterior.context(y, x ORDER BY i), w.x) FROM t
			WHERE t.i BETWEEN w.i - 5 AND w.i - 1)::text) AS same FROM w WHERE i > 1;
-- where the frame is the partition, rows are answered in blocks: each as alone, in partitions of
-- any size, whether it is written so or all rows are peers
CREATE TABLE many AS SELECT i, i / 100.0 AS x,
	CASE WHEN i % 9 > 5 AND (i < 100 OR i % 5 = 0) THEN sin(i / 50.0) END AS y,
	length(i::text) AS g FROM generate_series(1, 1200) i;
WITH w AS (SELECT i, x, g, posterior.regress(y, x)
		OVER (PARTITION BY g ORDER BY i
			ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS d FROM many),
	c AS MATERIALIZED (SELECT g, posterior.context(y, x ORDER BY i) AS ctx FROM many GROUP BY g)
SELECT g, count(*), count(d) AS answered, count(DISTINCT d::text) AS different,
	bool_and(d::text = posterior.predict(ctx, x)::text) FILTER (WHERE i % 8 < 2) AS same
	FROM w JOIN c USING (g)
	GROUP BY g ORDER BY g;
WITH w AS (SELECT i, x, posterior.regress(y, x) OVER () AS d
		FROM (SELECT * FROM many ORDER BY i) m),
	c AS MATERIALIZED (SELECT posterior.context(y, x ORDER BY i) AS ctx FROM many)
SELECT count(d),
	bool_and(d::text = posterior.predict(ctx, x)::text) FILTER (WHERE i % 8 < 2) AS same
	FROM w, c;
SELECT array_agg(i ORDER BY i) FROM (SELECT i, posterior.regress(y, x) OVER () FROM many LIMIT 4) w;
DROP TABLE many;
-- a growing frame and log_evidence are one chain rule. With min_rows 0 the first row's density is
-- that of the empty context.
SELECT abs(posterior.log_evidence(y, x ORDER BY i) - s.total) < 1e-4 AS evidence_is_the_sum
FROM t, (SELECT sum(posterior.log_pdf(d, y)) AS total
	FROM (SELECT i, y, posterior.regress(y, x)
			OVER (ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS d FROM t) w) s
		GROUP BY s.total;
SET posterior.model = 'tabular_small';
SELECT count(d) AS answered,
	abs(max(e) - sum(posterior.log_pdf(d, y))) < 1e-4 AS evidence_is_the_sum
FROM (SELECT i, y, posterior.regress(y, x, g)
		OVER (ORDER BY i ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS d FROM t
		WHERE y IS NOT NULL) w,
	(SELECT posterior.log_evidence(y, x, g ORDER BY i) AS e FROM t WHERE y IS NOT NULL) s;
-- fewer rows than the model needs: NULL in a frame, an error elsewhere
SELECT posterior.regress(y, x)
	OVER (ORDER BY i ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING) IS NULL AS too_few FROM t
	ORDER BY i DESC LIMIT 1;
SELECT posterior.predict(posterior.context(y, x), 1) FROM t WHERE i <= 3;
SELECT posterior.log_evidence(y, x ORDER BY i) FROM t WHERE i <= 3;
SELECT posterior.log_evidence(y, x) FROM t;
-- the aggregates over a frame: in the order of the window; a state goes on after it was looked at
SELECT bool_and(c::text = (SELECT posterior.context(y, x ORDER BY i DESC) FROM t b
			WHERE b.i BETWEEN w.i AND w.i + 4)::text) AS context_in_order
FROM (SELECT i, posterior.context(y, x) OVER (ORDER BY i DESC ROWS 4 PRECEDING) AS c FROM t) w;
SELECT bool_and(c::text = (SELECT posterior.context(y, x) FROM t)::text) AS canonical
	FROM (SELECT posterior.context(y, x)
		OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS c FROM t) w;
SELECT count(*), bool_and(c::text = (SELECT posterior.class_context(l, x ORDER BY i)
			FROM (SELECT *, 'k' || i * i % 7 AS l FROM t) b WHERE b.i <= w.i)::text) AS labels_grow
FROM (SELECT i, posterior.class_context(l, x) OVER (ORDER BY i) AS c
		FROM (SELECT *, 'k' || i * i % 7 AS l FROM t) a) w;
SELECT count(*), bool_and(e IS NOT DISTINCT
		FROM CASE WHEN i >= 4 THEN (SELECT posterior.log_evidence(y, x ORDER BY i) FROM t b
			WHERE b.i BETWEEN w.i - 5 AND w.i) END) AS evidence
FROM (SELECT i, posterior.log_evidence(y, x) OVER (ORDER BY i ROWS 5 PRECEDING) AS e FROM t) w;
SELECT count(*), bool_and(e = (SELECT posterior.log_density(ctx, y, x ORDER BY i) FROM t b
			WHERE b.i BETWEEN w.i - 5 AND w.i)) AS density
FROM (SELECT posterior.context(y, x) AS ctx FROM t) c,
	LATERAL (SELECT i, posterior.log_density(ctx, y, x)
		OVER (ORDER BY i ROWS 5 PRECEDING) AS e FROM t) w;
SELECT posterior.log_evidence(y, x) OVER () FROM t LIMIT 1;
SELECT posterior.regress(y, x) FROM t;
SELECT posterior.regress(y, ARRAY[x]) OVER () FROM t LIMIT 1;
SELECT posterior.regress(y, 'NaN'::float8) OVER () FROM t LIMIT 1;
DROP TABLE t;
