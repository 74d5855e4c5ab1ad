-- revised: a row of a mean process that is deleted or changed costs itself, and the answers are
-- those of a fresh encoding, bitwise
\set VERBOSITY terse
SET max_parallel_workers_per_gather = 0;
CREATE SCHEMA revised;
SET search_path = revised;
CREATE TABLE family (model text PRIMARY KEY);
INSERT INTO family VALUES ('mean'), ('mean_causal'), ('mean_scaled'), ('decoupled_causal');
SELECT count(posterior.load_model(model, current_setting('test.models') || '/' || model
		|| '.safetensors')) AS loaded FROM family;
SELECT name, min_rows, appendable, revisable, mergeable FROM posterior.models
	JOIN family ON model = name ORDER BY name COLLATE "C";
CREATE TABLE points (id float8 PRIMARY KEY, a float8, b float8, y float8);
INSERT INTO points SELECT i, sin(i), cos(2 * i), sin(i) + cos(i) / 3 FROM generate_series(1, 300) i;
-- found by reading, so that no worker counts instead of a statement; one is followed by triggers
SELECT count(posterior.create_context(model, 'points', 'y', '{a,b}', order_by => 'id',
		model => model, maintain => 'read')) AS contexts FROM family;
SELECT posterior.create_context('followed', 'points', 'y', '{a,b}', order_by => 'id',
		model => 'mean');
SELECT posterior.create_context('latest', 'points', 'y', '{a,b}', order_by => 'id',
		model => 'mean_causal', max_rows => 100, maintain => 'read');
CREATE FUNCTION answers(context text) RETURNS text STABLE LANGUAGE plpgsql AS $$ BEGIN
	RETURN (SELECT string_agg(posterior.predict(context, asked)::text, ' ' ORDER BY a)
		FROM (SELECT i / 7.0::float8 AS a, i / -9.0::float8 AS b
			FROM generate_series(1, 5) i) asked);
END $$;
CREATE FUNCTION fresh(context text) RETURNS text STABLE LANGUAGE plpgsql
	SET posterior.cache = off AS $$ BEGIN RETURN answers(context); END $$;
CREATE VIEW differ AS SELECT name FROM posterior.contexts
	WHERE relation = 'points'::regclass AND answers(name) <> fresh(name);
-- Whether these are the statements that came by an encoding in each way: reads, extensions,
-- revisions, rebuilds, private. They are counted where sessions share the cache; one that is off
-- counts nothing, and rows that a device holds are not revised.
CREATE FUNCTION counted(context text, ways text) RETURNS boolean LANGUAGE sql AS $$
	SELECT current_setting('posterior.cache') = 'off'
		OR current_setting('posterior.device') = 'cuda'
		OR NOT (SELECT shared FROM posterior.stat_cache())
		OR concat_ws(' ', reads, extensions, revisions, rebuilds, private) = ways
	FROM posterior.stat_contexts WHERE name = context $$;
SELECT * FROM differ;
SELECT name FROM posterior.contexts WHERE relation = 'points'::regclass AND name <> 'followed'
	AND NOT counted(name, '0 0 0 1 0');

-- rows after all that statistics depend on: a delete, changes, a row in between, a place that moves
DELETE FROM points WHERE id = 290;
SELECT * FROM differ;
UPDATE points SET y = y + 1 WHERE id IN (270, 280, 291);
SELECT * FROM differ;
INSERT INTO points VALUES (275.5, 1, 2, 3);
SELECT * FROM differ;
UPDATE points SET id = 299.5 WHERE id = 285;
SELECT * FROM differ;
SELECT counted('mean', '0 0 4 1 0') AS mean, counted('mean_causal', '0 0 4 1 0') AS mean_causal,
	counted('mean_scaled', '0 0 4 1 0') AS mean_scaled,
	counted('decoupled_causal', '0 4 0 1 0') AS others, counted('latest', '0 0 4 1 0') AS latest;
-- the first row: only statistics depend on it
DELETE FROM points WHERE id = 1;
SELECT * FROM differ;
UPDATE points SET a = a - 1 WHERE id = 2;
SELECT * FROM differ;
SELECT counted('mean', '0 0 6 1 0') AS mean, counted('mean_causal', '0 0 6 1 0') AS mean_causal,
	counted('mean_scaled', '0 0 4 3 0') AS mean_scaled;
-- many rows; the last ones, without which the encoding is read; others in their place
DELETE FROM points WHERE id BETWEEN 20 AND 100;
SELECT * FROM differ;
DELETE FROM points WHERE id > 298;
SELECT * FROM differ;
INSERT INTO points SELECT i, 1 / i, i / 400.0, 0 FROM generate_series(401, 420) i;
SELECT * FROM differ;
SELECT counted('mean', '1 0 8 1 0') AS mean, counted('mean_causal', '1 0 8 1 0') AS mean_causal;
-- rows that come last are appended; a window that moves loses its first ones
INSERT INTO points SELECT i, 1 / i, i / 400.0, 1 FROM generate_series(421, 430) i;
SELECT * FROM differ;
SELECT counted('mean', '1 1 8 1 0') AS mean, counted('latest', '2 1 7 1 0') AS latest;
-- so many that nothing is to be taken over
UPDATE points SET y = y / 3 WHERE id::int % 2 = 0;
SELECT * FROM differ;
SELECT counted('mean_causal', '1 1 8 2 0') AS mean_causal;
-- changes of the own transaction are for it alone, and gone with it
BEGIN;
DELETE FROM points WHERE id = 150;
SELECT * FROM differ;
SAVEPOINT s;
UPDATE points SET y = 0 WHERE id < 10;
SELECT * FROM differ;
ROLLBACK TO s;
SELECT * FROM differ;
ROLLBACK;
SELECT * FROM differ;
-- a row that the sums cannot hold is an error, whatever was taken over, and leaves nothing behind
UPDATE points SET y = 1e30 WHERE id = 200;
SELECT answers('mean');
SELECT answers('mean');
BEGIN;
DELETE FROM points WHERE id = 210;
SELECT answers('mean_causal');
ROLLBACK;
UPDATE points SET y = 1 WHERE id = 200;
SELECT * FROM differ;
-- down to nothing, and again
DELETE FROM points WHERE id > 5;
SELECT name FROM posterior.contexts WHERE relation = 'points'::regclass AND name LIKE 'mean'
	AND answers(name) <> fresh(name);
DELETE FROM points;
SELECT answers('mean') = fresh('mean') AS same;
INSERT INTO points SELECT i, sin(i), cos(i), i FROM generate_series(1, 50) i;
SELECT * FROM differ;
-- frames that move: of rows with and without a target, around the row, of values, down to nothing
CREATE TABLE series AS SELECT i AS id, i % 3 AS part, sin(i / 5.0) AS a, cos(i / 7.0) AS b,
		CASE WHEN i % 11 > 0 THEN sin(i / 5.0) + i % 4 / 9.0 END AS y
	FROM generate_series(1, 240) i WHERE i NOT BETWEEN 100 AND 120;
CREATE FUNCTION framed(model text, cache text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
	PERFORM set_config('posterior.model', model, true), set_config('posterior.cache', cache, true);
	RETURN (SELECT string_agg(concat_ws(' ', behind, around, near, few), ' ' ORDER BY id)
	FROM (SELECT id, posterior.regress(y, a, b) OVER (PARTITION BY part ORDER BY id
			ROWS BETWEEN 40 PRECEDING AND 1 PRECEDING) AS behind,
		posterior.regress(y, a, b) OVER (ORDER BY id ROWS BETWEEN 30 PRECEDING AND 30 FOLLOWING
			EXCLUDE CURRENT ROW) AS around,
		posterior.regress(y, a, b) OVER (ORDER BY id RANGE BETWEEN 9 PRECEDING AND 3 FOLLOWING
			EXCLUDE CURRENT ROW) AS near,
		posterior.regress(y, a, b) OVER (PARTITION BY part ORDER BY id
			ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING) AS few
		FROM series) f);
END $$;
SELECT model, framed(model, 'verify') = framed(model, 'off') AS same FROM family
	ORDER BY model COLLATE "C";
-- and one that meets a row that the sums cannot hold, and leaves it behind
UPDATE series SET y = 1e30 WHERE id = 200;
SELECT framed('mean', 'on');
SELECT framed('mean', 'off');
UPDATE series SET y = NULL WHERE id = 200;
SELECT framed('mean', 'on') = framed('mean', 'off') AS same;
SELECT count(posterior.drop_context(name)) AS contexts FROM posterior.contexts
	WHERE relation = 'points'::regclass;
SELECT count(posterior.drop_model(model)) AS models FROM family;
DROP SCHEMA revised CASCADE;
