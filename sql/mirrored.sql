-- reflected columns and other names change no bit of what `tabular` says; targets are mirrored
CREATE TABLE r AS SELECT i, sin(i * 1.7) AS a, cos(i * 2.3) + 0.2 * sin(i * 0.7) AS b,
		(ARRAY['red', 'green', 'blue'])[1 + i * 7 % 3] AS k, exp(sin(i * 1.7) - cos(i * 2.3))
		+ i * 7 % 3 + 0.1 * sin(i * 9.1) AS y
	FROM generate_series(1, 100) i;
CREATE TABLE c AS SELECT posterior.context(y, a, b, k ORDER BY i) AS plain,
		posterior.context(y, -a, b, k ORDER BY i) AS reflected,
		posterior.context(y, -a, -b, k ORDER BY i) AS two,
		posterior.context(y, a, b, md5(k) ORDER BY i) AS renamed,
		posterior.context(-y, a, b, k ORDER BY i) AS mirrored
	FROM r WHERE i <= 70;
-- one column lacks cells now and then
CREATE TABLE q AS SELECT i, a, CASE WHEN i % 5 > 0 THEN b END AS b, k, y FROM r WHERE i > 70;
SELECT count(*), bool_and(p::text = posterior.predict(reflected, -a, b, k)::text) AS reflected,
	bool_and(p::text = posterior.predict(two, -a, -b, k)::text) AS two,
	bool_and(p::text = posterior.predict(renamed, a, b, md5(k))::text) AS renamed,
	bool_and(p::text = posterior.predict(reflected, a, b, k)::text) AS not_turned
FROM c, q, LATERAL posterior.predict(plain, a, b, k) p;
SELECT count(*), max(abs(posterior.mean(p) + posterior.mean(m))) < 1e-9 AS means,
	max(abs(posterior.stddev(p) - posterior.stddev(m))) < 1e-9 AS deviations,
	max(abs(posterior.quantile(p, 0.1) + posterior.quantile(m, 0.9))) < 1e-6 AS quantiles,
	max(abs(posterior.log_pdf(p, y) - posterior.log_pdf(m, -y))) < 1e-6 AS densities,
	stddev(posterior.mean(p)) > 0.5 AS differ
FROM c, q, LATERAL posterior.predict(plain, a, b, k) p,
	LATERAL posterior.predict(mirrored, a, b, k) m;
SELECT abs(posterior.log_density(plain, y, a, b, k ORDER BY i)
		- posterior.log_density(mirrored, -y, a, b, k ORDER BY i)) < 1e-6 AS mirrored,
	posterior.log_density(plain, y, a, b, k ORDER BY i)
		= posterior.log_density(two, y, -a, -b, k ORDER BY i) AS reflected
FROM c, q GROUP BY plain, mirrored, two;
DROP TABLE r, c, q;
-- nor does the order of columns, even of those that say no more than chance
CREATE TABLE r AS SELECT i, chr(97 + i % 3) AS c, sin(i * 1.7) AS y, sin(i * 1.7) + i % 3 AS a,
		sin(i * i * 0.7) AS n1, cos(i * i * 1.3) AS n2, sin(i * i * 2.9) AS n3,
		chr(97 + i * i % 7) AS n4
	FROM generate_series(1, 60) i;
CREATE TABLE c AS SELECT posterior.context(y, a, n1, n2, n3, n4 ORDER BY i) AS numbers,
		posterior.context(y, n3, n4, n2, a, n1 ORDER BY i) AS moved_numbers,
		posterior.class_context(c, a, n1, n2, n3, n4 ORDER BY i) AS labels,
		posterior.class_context(c, n3, n4, n2, a, n1 ORDER BY i) AS moved_labels
	FROM r WHERE i <= 40;
SELECT count(*), bool_and(posterior.predict(numbers, a, n1, n2, n3, n4)::text
		= posterior.predict(moved_numbers, n3, n4, n2, a, n1)::text) AS numbers,
	bool_and(posterior.predict(labels, a, n1, n2, n3, n4)::text
		= posterior.predict(moved_labels, n3, n4, n2, a, n1)::text) AS labels
FROM c, r WHERE i > 40;
-- nor do columns that say nothing, of equal cells or of none
CREATE TABLE s AS SELECT posterior.context(y, 7, a, n1, n2, NULL::float8, 'x', n3, n4 ORDER BY i)
		AS numbers,
		posterior.class_context(c, 7, a, n1, n2, NULL::float8, 'x', n3, n4 ORDER BY i) AS labels
	FROM r WHERE i <= 40;
SELECT count(*), bool_and(posterior.predict(c.numbers, a, n1, n2, n3, n4)::text
		= posterior.predict(s.numbers, 7, a, n1, n2, NULL::float8, 'x', n3, n4)::text) AS numbers,
	bool_and(posterior.predict(c.labels, a, n1, n2, n3, n4)::text
		= posterior.predict(s.labels, 9, a, n1, n2, 3, 'y', n3, n4)::text) AS labels
FROM c, s, r WHERE i > 40;
DROP TABLE r, c, s;
