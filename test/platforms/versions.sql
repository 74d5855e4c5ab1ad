-- What a database keeps of this extension, for tests that move it to another version of the server.
CREATE EXTENSION pg_posterior;
CREATE TYPE sky AS ENUM ('sun', 'cloud', 'rain');
CREATE TABLE rides (day int PRIMARY KEY, temp float8, sky sky, label text, cnt float8);
INSERT INTO rides SELECT i, 15 + 9 * sin(i / 9.0),
	(ARRAY['sun', 'cloud', 'rain']::sky[])[1 + i % 3],
	CASE WHEN i % 4 = 0 THEN 'many' ELSE 'few' END, 400 + 22 * cos(i / 5.0)
		FROM generate_series(1, 80) i;
SELECT posterior.create_context('rides', 'rides', 'cnt', '{temp,sky}', 'day',
	filter => 'temp > 8::float8 AND (sky <> ''rain''::sky OR day < 40)');
SELECT posterior.create_context('recent', 'rides', 'cnt', '{temp,sky}', 'day DESC', max_rows => 30);
SELECT posterior.create_context('labels', 'rides', 'label', '{temp,cnt}', 'day');
CREATE TABLE kept AS SELECT posterior.context(cnt, temp, sky ORDER BY day) AS context,
	posterior.class_context(label, temp, cnt ORDER BY day) AS labels FROM rides;
CREATE TABLE answered AS SELECT posterior.predict(context, 10::float8, 'sun'::sky) AS numbers,
	posterior.predict(labels, 10::float8, 410::float8) AS labels,
		posterior.normal(1, 2) AS made FROM kept;
CREATE VIEW answers AS
	SELECT c.name, posterior.predict(c.name, q)::text AS answer
		FROM (VALUES ('rides'), ('recent'), ('labels')) c (name),
			(SELECT 11::float8 AS temp, 'cloud'::sky AS sky, 405::float8 AS cnt) q
	UNION ALL SELECT 'context', posterior.predict(context, 10::float8, 'sun'::sky)::text FROM kept
	UNION ALL SELECT 'class_context',
		posterior.predict(labels, 10::float8, 410::float8)::text FROM kept
	UNION ALL SELECT v.name, v.d::text FROM answered,
		LATERAL (VALUES ('numbers', numbers), ('answered labels', labels),
				('made', made)) v (name, d);
