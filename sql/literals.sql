-- literals without a type: a label where labels are expected, NULL anywhere, never a number in
-- disguise
SET posterior.model = 'tabular_small';
CREATE TABLE t AS SELECT i, i / 10.0 AS x, sin(i) AS y, 'l' || i % 3 AS k,
	date '2024-01-01' + i AS o FROM generate_series(1, 30) i;
CREATE TABLE c AS SELECT posterior.context(y, x, k) AS number_label,
	posterior.context(y, x) AS number, posterior.context(y, o) AS day FROM t;
SELECT posterior.predict(number_label, 1, 'l1')::text = posterior.predict(number_label, 1,
		'l1'::text)::text AS label,
	posterior.predict(number_label, NULL, 'l1')::text = posterior.predict(number_label, NULL::int,
			'l1'::text)::text AS missing_number,
	posterior.predict(number_label, 1, NULL)::text = posterior.predict(number_label, 1,
			NULL::text)::text AS missing_label FROM c;
SELECT p.ord, p.prediction::text = posterior.predict(number_label, NULL::int, 'l'
		|| p.ord)::text AS same
FROM c, posterior.predict_rows(number_label, ARRAY[ROW(NULL, 'l1'), ROW(NULL, 'l2')]) p
	ORDER BY ord;
SELECT a.y = b.y AS same FROM c, posterior.sample(number_label, ARRAY[ROW(NULL, 'l1')], 1, 5) a,
	posterior.sample(number_label, ARRAY[ROW(NULL::int, 'l1'::text)], 1, 5) b;
SELECT posterior.log_density(number_label, 0.5, NULL, 'l1') = posterior.log_density(number_label,
		0.5, NULL::int, 'l1'::text) AS same FROM c;
SELECT posterior.log_density_averaged(number_label, 2, 1, 0.5, NULL,
		'l1') = posterior.log_density_averaged(number_label, 2, 1, 0.5, NULL::int,
		'l1'::text) AS same FROM c;
-- one call site, a NULL that is a number in one context and a label in the next
SELECT n, posterior.predict(ctx, NULL)::text = CASE n WHEN 2
	THEN posterior.predict(ctx, NULL::text)::text
	ELSE posterior.predict(ctx, NULL::int)::text END AS same
FROM (SELECT 1 AS n, posterior.context(y, x) AS ctx FROM t
		UNION ALL SELECT 2, posterior.context(y, k) FROM t UNION ALL SELECT 3,
		posterior.context(y, x) FROM t) s ORDER BY n;
SELECT posterior.predict(number, '0.5') FROM c;
SELECT posterior.predict(day, '2024-01-20') FROM c;
SELECT posterior.predict(number_label, 'l1', 1) FROM c;
SELECT * FROM c, posterior.predict_rows(number, ARRAY[ROW('0.5')]);
SELECT * FROM c, posterior.sample(number, ARRAY[ROW('0.5')]);
SELECT posterior.log_density(number, 1, '0.5') FROM c;
SELECT posterior.predict(day, date '2024-01-20')::text = posterior.predict(day,
		timestamp '2024-01-20')::text AS typed FROM c;
DROP TABLE t, c;
