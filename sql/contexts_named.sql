-- named contexts: definitions, rows by name, renames, what is dropped, and the same answers as
-- frames
\set VERBOSITY terse
SET posterior.model = 'tabular_small';
CREATE TABLE rentals (ts int PRIMARY KEY, temp float8, hum numeric, season text,
		cnt int, note jsonb);
INSERT INTO rentals SELECT i, i % 7, (i % 5) / 10.0, (ARRAY['spring', 'summer', NULL])[1 + i % 3],
	i % 11 FROM generate_series(1, 37) i;
CREATE VIEW days AS SELECT 3.0::float8 AS temp, 0.3 AS hum, 'summer' AS season, 100 AS ts;

SELECT posterior.create_context('bikes', 'rentals', target => 'cnt',
		features => '{temp,hum,season}', order_by => 'ts');
SELECT * FROM posterior.contexts;
SELECT tgname, tgenabled FROM pg_trigger WHERE tgrelid = 'rentals'::regclass ORDER BY 1;

-- a growing frame that ends with the query row has the same rows, the same order and the same
-- prefix
CREATE FUNCTION by_frame() RETURNS posterior.distribution STABLE LANGUAGE sql AS $$
	SELECT p FROM (
		SELECT ts, posterior.regress(cnt::float8, temp, hum, season)
			OVER (ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS p
		FROM (SELECT ts, cnt, temp, hum, season FROM rentals UNION ALL SELECT 1000, NULL, temp, hum,
				season FROM days) r) f
	WHERE ts = 1000 $$;
CREATE FUNCTION by_name() RETURNS posterior.distribution STABLE LANGUAGE sql AS $$
	SELECT posterior.predict('bikes', d) FROM days d $$;
SELECT by_name() OPERATOR(posterior.=) by_frame() AS same;
INSERT INTO rentals VALUES (38, 1, 0.5, 'spring', 4);
SELECT by_name() OPERATOR(posterior.=) by_frame() AS appended;
UPDATE rentals SET cnt = 9 WHERE ts = 35;
SELECT by_name() OPERATOR(posterior.=) by_frame() AS updated;
DELETE FROM rentals WHERE ts IN (3, 38);
SELECT by_name() OPERATOR(posterior.=) by_frame() AS deleted;
INSERT INTO rentals (ts, temp) VALUES (39, 1);
SELECT by_name() OPERATOR(posterior.=) by_frame() AS "target unknown";
BEGIN;
INSERT INTO rentals VALUES (40, 1, 0.5, 'spring', 4);
SELECT by_name() OPERATOR(posterior.=) by_frame() AS own;
SAVEPOINT s;
UPDATE rentals SET cnt = 0;
SELECT by_name() OPERATOR(posterior.=) by_frame() AS changed;
ROLLBACK TO s;
SELECT by_name() OPERATOR(posterior.=) by_frame() AS unchanged;
ROLLBACK;
SELECT by_name() OPERATOR(posterior.=) by_frame() AS gone;

-- the other questions, against a value of the same rows: a power of two of them, so that all of
-- these belong to the prefix
DELETE FROM rentals WHERE ts > 33;
SELECT count(*) FROM rentals WHERE cnt IS NOT NULL;
CREATE TABLE value AS SELECT posterior.context(cnt, temp, hum, season ORDER BY ts, cnt, temp, hum,
		season COLLATE "C") AS ctx FROM rentals WHERE cnt IS NOT NULL;
SELECT count(*) AS rows, bool_and(a.prediction OPERATOR(posterior.=) b.prediction) AS same
FROM value, posterior.predict_rows('bikes',
		ARRAY(SELECT d FROM days d UNION ALL SELECT d FROM days d)) a
	JOIN LATERAL posterior.predict_rows(ctx,
			ARRAY(SELECT d FROM (SELECT temp, hum, season FROM days UNION ALL SELECT temp, hum,
				season FROM days) d)) b USING (ord);
SELECT count(*) AS values, bool_and(a.y = b.y) AS same
FROM value, posterior.sample('bikes',
		ARRAY(SELECT d FROM days d UNION ALL SELECT d FROM days d), 3, 7) a
	JOIN LATERAL posterior.sample(ctx,
			ARRAY(SELECT d FROM (SELECT temp, hum, season FROM days UNION ALL SELECT temp, hum,
				season FROM days) d), 3, 7) b USING (draw, ord);
SELECT posterior.log_density('bikes', y, d ORDER BY y) = posterior.log_density(ctx, y, d.temp,
		d.hum, d.season ORDER BY y) AS "one order",
	posterior.log_density_averaged('bikes', 4, 1, y, d
			ORDER BY y) = posterior.log_density_averaged(ctx, 4, 1, y, d.temp, d.hum, d.season
			ORDER BY y) AS "four orders"
FROM value, days d, unnest(ARRAY[3.0, 5.0]::float8[]) y;

-- names are followed
ALTER TABLE rentals RENAME COLUMN hum TO humidity;
ALTER TABLE rentals RENAME TO trips;
CREATE SCHEMA elsewhere;
ALTER TABLE trips SET SCHEMA elsewhere;
SELECT relation, features FROM posterior.contexts;
SELECT posterior.mean(posterior.predict('bikes', d)) = posterior.mean(posterior.predict(ctx, d.temp,
			d.humidity, d.season)) AS same
FROM value, (SELECT temp, hum AS humidity, season FROM days) d;
SELECT posterior.predict('bikes', d) FROM days d;
ALTER TABLE elsewhere.trips SET SCHEMA public;
ALTER TABLE trips RENAME TO rentals;
ALTER TABLE rentals RENAME COLUMN humidity TO hum;

-- types are followed as long as they can be features of the same kind as the rows that are asked
-- about
ALTER TABLE rentals ALTER COLUMN hum TYPE float8;
SELECT posterior.predict('bikes', d) IS NOT NULL AS asked FROM days d;
ALTER TABLE rentals ALTER COLUMN season TYPE jsonb USING to_jsonb(season);
SELECT posterior.predict('bikes', d) FROM days d;
ALTER TABLE rentals ALTER COLUMN season TYPE text USING season #>> '{}';

-- other definitions
SELECT posterior.alter_context('bikes', filter => 'temp > 1 AND season IS NOT NULL', max_rows => 8);
SELECT filter, max_rows, order_by FROM posterior.contexts;
SELECT posterior.warm_context('bikes');
SELECT posterior.alter_context('bikes', filter => '', max_rows => 0, order_by => 'temp DESC, ts',
		new_name => 'trips', model => 'tabular_small');
SELECT name, filter, max_rows, order_by, model FROM posterior.contexts;
SELECT posterior.warm_context('trips');
SELECT posterior.refresh_context('trips');
SELECT posterior.warm_context('trips');
SELECT posterior.alter_context('trips', maintain => 'read');
SELECT count(*) AS triggers FROM pg_trigger WHERE tgrelid = 'rentals'::regclass;
SELECT posterior.alter_context('trips', maintain => 'trigger');
SELECT count(*) AS triggers FROM pg_trigger WHERE tgrelid = 'rentals'::regclass;
SELECT posterior.create_context('second', 'rentals', 'cnt', order_by => 'ts');
SELECT name, features FROM posterior.contexts ORDER BY name;
SELECT posterior.drop_context('trips');
SELECT count(*) AS triggers FROM pg_trigger WHERE tgrelid = 'rentals'::regclass;
SELECT posterior.drop_context('second');
SELECT count(*) AS triggers FROM pg_trigger WHERE tgrelid = 'rentals'::regclass;

-- without a key that grows a hash of all columns is the order
CREATE TABLE heap AS SELECT cnt::float8 AS y, temp FROM rentals;
SELECT posterior.create_context('heap', 'heap', 'y');
SELECT order_by = '' OR order_by IS NULL AS "no columns of its own" FROM posterior.contexts;
SELECT posterior.warm_context('heap');
DROP TABLE heap;
SELECT count(*) AS contexts FROM posterior.contexts;

-- relations that are read each time
CREATE VIEW early AS SELECT cnt, temp, ts FROM rentals WHERE ts < 20;
SELECT posterior.create_context('early', 'early', 'cnt', order_by => 'ts');
CREATE TABLE parts (k int, x float8, y float8) PARTITION BY RANGE (k);
CREATE TABLE part PARTITION OF parts FOR VALUES FROM (0) TO (100);
INSERT INTO parts SELECT i, i / 3.0, i % 4 FROM generate_series(1, 20) i;
SELECT posterior.create_context('parts', 'parts', 'y', order_by => 'k');
SELECT posterior.create_context('part', 'part', 'y', order_by => 'k', maintain => 'trigger');
CREATE TABLE parent (k int, x float8, y float8);
CREATE TABLE child () INHERITS (parent);
INSERT INTO parent SELECT i, i / 3.0, i % 4 FROM generate_series(1, 9) i;
INSERT INTO child SELECT i, i / 3.0, i % 4 FROM generate_series(10, 20) i;
SELECT posterior.create_context('parent', 'parent', 'y', order_by => 'k');
SELECT name, maintain, posterior.warm_context(name) FROM posterior.contexts ORDER BY name;

DROP FUNCTION by_name, by_frame;
DROP TABLE rentals, parts, parent, value CASCADE;
DROP VIEW days;
DROP SCHEMA elsewhere;
SELECT count(*) AS contexts FROM posterior.contexts;
