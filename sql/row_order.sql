-- rows that their context's order leaves equal follow a hash of what the model sees of them
SET posterior.model = 'tabular';
-- the same on every machine, in every session
SELECT posterior_internal.row_hash(1.5::float8, 'red'::text, true, NULL::int) AS hash;
CREATE TYPE colour AS ENUM ('blue', 'red');
CREATE DOMAIN shade AS colour;
-- what models see alike is alike
SELECT count(DISTINCT h) AS hashes FROM unnest(ARRAY[
	posterior_internal.row_hash(2::int2, 'red'::text),
	posterior_internal.row_hash(2::int8, 'red'::name),
	posterior_internal.row_hash(2.00::numeric, 'red'::colour),
	posterior_internal.row_hash(2::float4, 'red'::shade),
	posterior_internal.row_hash(2::float8, 'red'::char(9))]) h;
SELECT posterior_internal.row_hash('-0'::float8) = posterior_internal.row_hash(0) AS zero,
	posterior_internal.row_hash('1 day'::interval)
		= posterior_internal.row_hash('24 hours'::interval) AS day,
	posterior_internal.row_hash('NaN'::float8)
		= posterior_internal.row_hash(NULL::float8) AS missing,
	posterior_internal.row_hash(ARRAY[1, 2]::float8[])
		= posterior_internal.row_hash(ARRAY[[1], [2]]::numeric[]) AS elements;
-- and nothing else
SELECT count(DISTINCT h) AS hashes FROM unnest(ARRAY[
	posterior_internal.row_hash(0), posterior_internal.row_hash(0, 0),
	posterior_internal.row_hash(0, 1), posterior_internal.row_hash(1, 0),
	posterior_internal.row_hash(NULL::int, 0), posterior_internal.row_hash(0, NULL::int),
	posterior_internal.row_hash('infinity'::float8),
	posterior_internal.row_hash('-infinity'::float8),
	posterior_internal.row_hash('{}'::float8[]), posterior_internal.row_hash(NULL::float8[]),
	posterior_internal.row_hash('{0,1}'::float8[]), posterior_internal.row_hash('{1,0}'::float8[]),
	posterior_internal.row_hash('0'::text)]) h;
SELECT count(DISTINCT posterior_internal.row_hash(i)) AS hashes,
	abs(corr(posterior_internal.row_hash(i), i)) < 0.02 AS unrelated,
	abs(avg(posterior_internal.row_hash(i)) / 2^63) < 0.02 AS even
	FROM generate_series(1, 20000) i;
SELECT posterior_internal.row_hash(VARIADIC ARRAY[1, 2]);
SELECT posterior_internal.row_hash(point(1, 2));

-- 500 rows without a key that grows: the rows that the others are read by, and the newest ones, are
-- of all kinds
CREATE TABLE told AS SELECT x, 3 * x + sin(i) AS y, md5(i::text) AS id, 'Monday'::text AS day
	FROM (SELECT i, 10 * abs(sin(7 * i)) AS x FROM generate_series(1, 700) i) r ORDER BY sin(9 * i);
CREATE VIEW learnt AS SELECT x, y, day FROM told ORDER BY id LIMIT 500;
CREATE VIEW asked AS SELECT x, y FROM told ORDER BY id OFFSET 500;
SET client_min_messages = warning;
SELECT count(posterior.create_context(name, 'learnt', 'y', '{x}', order_by => order_by,
		max_rows => max_rows))
	FROM (VALUES ('by_nothing', NULL, NULL), ('by_a_day', 'day', NULL),
		('by_days', 'day DESC', NULL), ('newest', NULL, 64),
		('newest_of_day', 'day', 64)) c (name, order_by, max_rows);
SELECT name, avg((y <@ posterior.bounds(posterior.predict(name, asked), 0.9))::int) > 0.8 AS held,
	avg(posterior.crps(posterior.predict(name, asked), y)) < 0.5 AS near
	FROM posterior.contexts, asked GROUP BY name ORDER BY name COLLATE "C";
-- new places of the rows change nothing
CREATE TABLE before AS SELECT posterior.predict('by_a_day', asked)::text AS answer, x FROM asked;
CREATE TABLE moved AS SELECT * FROM told ORDER BY y DESC;
TRUNCATE told;
INSERT INTO told SELECT * FROM moved;
SELECT bool_and(posterior.predict('by_a_day', asked)::text = answer) AS same
	FROM before JOIN asked USING (x);
SELECT count(posterior.drop_context(name)) FROM posterior.contexts;
-- more columns than a function has arguments
DO $$ BEGIN
	EXECUTE (SELECT format('CREATE TABLE wide AS SELECT i AS id, sin(i) AS y, %s
			FROM generate_series(1, 30) i', string_agg(format('cos(i * %1$s) AS c%1$s', c), ', '))
		FROM generate_series(1, 230) c);
END $$;
SELECT posterior.create_context('wide', 'wide', 'y', max_rows => 16),
	posterior.create_context('ordered', 'wide', 'y', order_by => 'id');
SELECT count(DISTINCT posterior.predict('wide', w)::text) AS answers,
	count(DISTINCT posterior.predict('ordered', w)::text) AS others
	FROM (SELECT * FROM wide WHERE id < 4) w;
DROP TABLE wide;
DROP VIEW learnt, asked;
DROP TABLE told, before, moved;
DROP DOMAIN shade;
DROP TYPE colour;
