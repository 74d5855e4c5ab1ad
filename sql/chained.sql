-- joint densities and draws of `tabular` learn from the rows before, evidence only from the context
CREATE TABLE r AS SELECT i, i AS t, sin(i / 9.0 + 2 * sin(i / 23.0)) + 0.02 * sin(i * 7.1) AS y
	FROM generate_series(1, 124) i;
CREATE TABLE c AS SELECT posterior.context(y, t ORDER BY i) AS ctx FROM r WHERE i <= 100;
-- a row alone has the density of its prediction; the following ones are known better than apart
SELECT posterior.log_density(ctx, y, t) = (SELECT posterior.log_pdf(posterior.predict(c.ctx, q.t),
			q.y) FROM c, r q WHERE i = 101) AS one_row
FROM c, r WHERE i = 101 GROUP BY ctx;
SELECT posterior.log_density(ctx, y, t ORDER BY i) > 24 * 0.3 + (SELECT sum(posterior.log_pdf(
			posterior.predict(c.ctx, q.t), q.y)) FROM c, r q WHERE i > 100) AS learns
FROM c, r WHERE i > 100 GROUP BY ctx;
-- draws: each the same alone or among others; neighbours nearer to each other than to the median
CREATE TABLE d AS SELECT s.* FROM c, posterior.sample(ctx, ARRAY(SELECT ROW(t) FROM r WHERE i > 100
			ORDER BY i), 200, 4) s;
SELECT count(*), bool_and(a.y = d.y) AS same
FROM c, posterior.sample(ctx, ARRAY(SELECT ROW(t) FROM r WHERE i > 100 ORDER BY i), 3, 4) a
	JOIN d USING (draw, ord);
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY abs(b.y - a.y))
	< 0.7 * percentile_cont(0.5) WITHIN GROUP (ORDER BY abs(a.y - m)) AS neighbours
FROM d a JOIN d b ON b.draw = a.draw AND b.ord = a.ord + 1,
	(SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY y) AS m FROM d WHERE ord = 20) s
WHERE a.ord = 20;
-- the evidence is the sum over a growing frame
SELECT abs((SELECT posterior.log_evidence(y, t ORDER BY i) FROM r WHERE i <= 40)
		- sum(posterior.log_pdf(d, y))) < 1e-3 AS frames, count(d)
FROM (SELECT y, posterior.regress(y, t) OVER (ORDER BY i
			ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS d FROM r WHERE i <= 40) w;
DROP TABLE r, c, d;
