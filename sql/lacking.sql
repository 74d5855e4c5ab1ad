-- rows to predict that lack cells are asked about with those of rows of the context
CREATE TABLE r AS SELECT i, sin(i * 1.7) AS x, (ARRAY['a', 'b', 'c'])[1 + i * 7 % 3] AS k,
		i % 4 > 1 AS b, sin(i * 1.7) + CASE i * 7 % 3 WHEN 0 THEN -2 WHEN 1 THEN 0 ELSE 3 END
		+ CASE WHEN i % 4 > 1 THEN 1 ELSE -1 END
		+ 0.06 * (sin(i * 9.1) + sin(i * 4.3) + sin(i * 13.7)) AS y
	FROM generate_series(1, 90) i;
CREATE TABLE c AS SELECT posterior.context(y, x, k, b ORDER BY i) AS ctx FROM r WHERE i <= 60;
-- an unknown label has the mean of a missing one where no row of the context lacks it, and may
-- differ more from the known ones than these from each other
SELECT abs(posterior.mean(unknown) - posterior.mean(missing)) < 1e-9 AS same,
		posterior.stddev(unknown) > 1.3 * posterior.stddev(missing) AS wider,
		unknown::text = posterior.predict(ctx, 0.5, 'other', true)::text AS whatever
	FROM c, LATERAL posterior.predict(ctx, 0.5, 'new', true) unknown,
		LATERAL posterior.predict(ctx, 0.5, NULL, true) missing;
-- the mean and the spread are those of the labels', each by its share
SELECT abs(posterior.mean(m) - (SELECT avg(posterior.mean(posterior.predict(ctx, 0.5, k, true)))
		FROM r WHERE i <= 60)) < 1e-6 AS mean,
	abs(posterior.variance(m) - (SELECT avg(posterior.variance(p)) + var_pop(posterior.mean(p))
		FROM r, LATERAL posterior.predict(ctx, 0.5, k, true) p WHERE i <= 60)) < 1e-6 AS variance
FROM c, LATERAL posterior.predict(ctx, 0.5, NULL, true) m;
-- bands hold what they lack
SELECT what, count(*), avg((y BETWEEN posterior.quantile(p, 0.05)
		AND posterior.quantile(p, 0.95))::int) BETWEEN 0.8 AND 1 AS covers
FROM c, r, LATERAL (VALUES ('nothing', x, k, b), ('x', NULL, k, b), ('k', x, NULL, b),
	('b', x, k, NULL), ('k and b', x, NULL, NULL), ('all', NULL, NULL, NULL)) q (what, qx, qk, qb),
	LATERAL posterior.predict(ctx, qx, qk, qb) p
WHERE i > 60 GROUP BY what ORDER BY what;
-- beside others, in an array, as numbers alone: the same
CREATE TABLE q AS SELECT i, CASE WHEN i % 3 > 0 THEN x END AS x,
	CASE WHEN i % 4 > 0 THEN k END AS k, CASE WHEN i % 5 > 0 THEN b END AS b, y FROM r WHERE i > 60;
SELECT count(*), bool_and(p.prediction::text = posterior.predict(ctx, q.x, q.k, q.b)::text) AS same
FROM c, posterior.predict_rows(ctx, ARRAY(SELECT ROW(x, k, b) FROM q ORDER BY i)) p
	JOIN q ON q.i = 60 + p.ord;
SELECT count(*), bool_and(s.mean = posterior.mean(posterior.predict(ctx, q.x, q.k, q.b))) AS same
FROM c, posterior.predict_summary(ctx, ARRAY(SELECT ROW(x, k, b) FROM q ORDER BY i), '{}') s
	JOIN q ON q.i = 60 + s.ord;
-- the density of one row is its distribution's; draws have its mean
SELECT posterior.log_density(ctx, y, x, k, b) = (SELECT posterior.log_pdf(posterior.predict(c.ctx,
			q.x, q.k, q.b), q.y) FROM c, q WHERE i = 64) AS one_row
FROM c, q WHERE i = 64 GROUP BY ctx;
SELECT abs(avg(s.y) - (SELECT posterior.mean(posterior.predict(c.ctx, q.x, q.k, q.b))
		FROM c, q WHERE i = 64)) < 0.2 AS mean, stddev(s.y) > 1 AS wide
FROM c, posterior.sample(ctx, ARRAY(SELECT ROW(x, k, b) FROM q WHERE i = 64), 1000, 5) s;
-- of several rows: not far from what they have each by itself; fewer draws are the first of many
SELECT abs(posterior.log_density(ctx, y, x, k, b ORDER BY i) - (SELECT sum(posterior.log_pdf(
			posterior.predict(c.ctx, q.x, q.k, q.b), q.y)) FROM c, q)) < 15 AS near
FROM c, q GROUP BY ctx;
SELECT count(*), bool_and(a.y = b.y) AS same
FROM c, posterior.sample(ctx, ARRAY(SELECT ROW(x, k, b) FROM q ORDER BY i), 7, 3) a
	JOIN LATERAL posterior.sample(c.ctx, ARRAY(SELECT ROW(x, k, b) FROM q ORDER BY i), 2, 3) b
	USING (draw, ord);
-- a named context that grows answers as rows of its own do
CREATE TABLE n AS SELECT * FROM r WHERE i <= 50;
SELECT posterior.create_context('lacking', 'n', target => 'y', features => '{x,k,b}',
	order_by => 'i', model => 'tabular');
SELECT posterior.mean(posterior.predict('lacking', q)) IS NOT NULL AS before
FROM q WHERE i = 64;
INSERT INTO n SELECT * FROM r WHERE i BETWEEN 51 AND 60;
SELECT count(*), bool_and(abs(posterior.mean(posterior.predict('lacking', q)) - y) < 6)
	AS near FROM q;
SELECT posterior.drop_context('lacking');
-- labels as targets: probabilities are means, too
CREATE TABLE l AS SELECT posterior.context(CASE WHEN y > 0 THEN 'high' ELSE 'low' END, x, k, b
	ORDER BY i) AS ctx FROM r WHERE i <= 60;
SELECT abs(posterior.probability(posterior.predict(ctx, 0.5, NULL, true), 'high')
	- (SELECT avg(posterior.probability(posterior.predict(ctx, 0.5, k, true), 'high')) FROM r
		WHERE i <= 60)) < 1e-6 AS mean FROM l;
-- rows without a cell whose targets are others by far say so, whatever else the process makes of it
SELECT n, abs(posterior.mean(p) - 3) < 0.4 AS shifted, posterior.stddev(p) < 0.6 AS sure
FROM (VALUES (64), (256)) s (n), LATERAL (SELECT posterior.predict(posterior.context(
			CASE WHEN i % 11 = 3 THEN 3 ELSE 0 END + 0.5 * sin(i * 1.7) + sin(i * 9.1) / 10,
			sin(i * 1.7), CASE WHEN i % 11 <> 3 THEN cos(i * 5.3) END ORDER BY i),
			0::float8, NULL) AS p
		FROM generate_series(1, n) i) a ORDER BY n;
DROP TABLE r, c, q, n, l;
