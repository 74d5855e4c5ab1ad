-- tabular_sums: the bundled model whose contexts are sums, with columns of several types
CREATE SCHEMA tabular_sums;
SET search_path = tabular_sums, public;
CREATE TABLE rides AS
SELECT i, CASE WHEN i % 11 > 0 THEN i % 37 END::float8 AS temp,
	(ARRAY['sun', 'cloud', 'rain', NULL])[1 + i % 4] AS sky, i % 7 < 5 AS working,
	timestamptz '2026-01-01 00:00+00' + i * interval '1 hour' AS at,
	3.0 * (i % 37) + 20 * (i % 4 = 1)::int - 10 * (i % 7 < 5)::int + i / 100.0
		+ sin(i * i) AS cnt
FROM generate_series(1, 2000) i;
-- a word of a first user: the context keeps sums, and is right about rows that it has not seen
SELECT posterior.create_context('many', 'rides', target => 'cnt',
		features => '{temp,sky,working,at}', filter => 'i <= 1800', model => 'tabular_sums');
SELECT posterior.rows(posterior.sums('many'));
SELECT count(*), sqrt(avg((posterior.mean(d) - cnt) ^ 2)) < 5 AS near,
	avg((cnt BETWEEN posterior.quantile(d, 0.05) AND posterior.quantile(d, 0.95))::int)
		BETWEEN 0.75 AND 1 AS covered
FROM (SELECT cnt, posterior.predict('many', r) AS d FROM rides r
	WHERE i > 1800 AND temp IS NOT NULL) p;
DELETE FROM rides WHERE i <= 100;
SELECT posterior.rows(posterior.sums('many'));
SET posterior.model = 'tabular_sums';
-- a row without cells and one of an unknown label have wider answers
SELECT posterior.stddev(none) > posterior.stddev(known) AS wider,
	posterior.stddev(other) > posterior.stddev(known) AS unknown
FROM (SELECT posterior.predict(c, NULL::float8, NULL::text, NULL::bool, NULL::timestamptz) AS none,
		posterior.predict(c, 20.0, 'sun'::text, true, timestamptz '2026-02-01 00:00+00') AS known,
		posterior.predict(c, 20.0, 'hail'::text, true, timestamptz '2026-02-01 00:00+00') AS other
	FROM (SELECT posterior.context(cnt, temp, sky, working, at ORDER BY i) AS c FROM rides
		WHERE i <= 1800) s) t;
-- the aggregate with a basis has the rows of both parts, exactly
SELECT posterior.basis(cnt, temp, sky, working, at ORDER BY i) AS basis FROM rides \gset
SELECT posterior.merge(a, b)::text = whole::text AS same, posterior.rows(whole)
FROM (SELECT posterior.context(:'basis', cnt, temp, sky, working, at) AS whole,
		posterior.context(:'basis', cnt, temp, sky, working, at) FILTER (WHERE i % 3 = 0) AS a,
		posterior.context(:'basis', cnt, temp, sky, working, at) FILTER (WHERE i % 3 > 0) AS b
	FROM rides) s;
-- what is far from 0 in units of its differences is told apart as if it were not
SELECT count(*), max(abs(posterior.mean(posterior.predict(far, temp + 1e11))
		- posterior.mean(posterior.predict(near, temp)))) < 0.05 AS column,
	max(abs(posterior.mean(posterior.predict(high, temp)) - 1e11
		- posterior.mean(posterior.predict(near, temp)))) < 0.05 AS target
FROM (SELECT posterior.context(cnt, temp ORDER BY i) AS near,
		posterior.context(cnt, temp + 1e11 ORDER BY i) AS far,
		posterior.context(cnt + 1e11, temp ORDER BY i) AS high FROM rides WHERE i < 600) c,
	rides WHERE i > 1900;
-- a row that is not among them is refused where it is taken away: far, of another target, twice
CREATE TABLE few AS SELECT posterior.context(:'basis', cnt, temp, sky, working, at) AS ctx
FROM rides WHERE i <= 500;
SELECT posterior.rows(posterior.without(ctx, cnt, temp, sky, working, at)) FROM few, rides
WHERE i = 200;
SELECT posterior.rows(posterior.without(ctx, cnt, 1e6, sky, working, at)) FROM few, rides
WHERE i = 200;
SELECT posterior.rows(posterior.without(ctx, -400, temp, sky, working, at)) FROM few, rides
WHERE i = 200;
SELECT posterior.rows(posterior.without(ctx, cnt, temp, 'hail', working, at)) FROM few, rides
WHERE i = 200;
SELECT posterior.rows(posterior.without(once, cnt, temp, sky, working, at))
FROM (SELECT posterior.context(:'basis', cnt, temp, sky, working, at) AS once FROM rides
	WHERE i IN (202, 204)) o, rides WHERE i = 206;
-- too few rows, labels, too many columns
SELECT posterior.predict(posterior.context(cnt, temp), 1.0) FROM rides WHERE i BETWEEN 200 AND 201;
SELECT posterior.create_context('labels', 'rides', target => 'sky', features => '{temp}',
		model => 'tabular_sums');
SELECT 'CREATE TABLE wide AS SELECT i::float8 AS y, '
	|| string_agg(format('sin(i * %s) AS c%s', k, k), ', ') || ' FROM generate_series(1, 99) i'
	AS wide FROM generate_series(1, 50) k \gset
:wide;
SELECT posterior.create_context('wide', 'wide', target => 'y');
SELECT posterior.drop_context('many');
SET client_min_messages = warning;
DROP SCHEMA tabular_sums CASCADE;
