-- latent_rows: contexts of latents go on from encodings of fewer rows, and answer as if made anew
\set VERBOSITY terse
CREATE SCHEMA latent_rows;
SET search_path = latent_rows, public;
CREATE TABLE family (model text PRIMARY KEY);
INSERT INTO family VALUES ('latent'), ('latent_buffer'), ('latent_strict'), ('latent_any');
SELECT count(posterior.load_model(model, current_setting('test.models') || '/' || model
		|| '.safetensors')) AS loaded FROM family;
CREATE TABLE points (id int PRIMARY KEY, a float8, b float8, y float8);
INSERT INTO points SELECT i, sin(i), cos(2 * i), sin(i) + cos(i) / 3
	FROM generate_series(1, 440) i;
SELECT count(posterior.create_context(model, 'points', 'y', '{a,b}', order_by => 'id',
		model => model)) AS contexts FROM family;
CREATE TYPE pair AS (a float8, b float8);
-- from an encoding that is made now, and from what the cache has
CREATE FUNCTION anew(model text) RETURNS posterior.distribution LANGUAGE plpgsql
	SET posterior.cache = off AS $$
BEGIN
	RETURN posterior.predict(model, (0.3, -0.4)::pair);
END $$;
CREATE VIEW differ AS SELECT model FROM family
	WHERE NOT posterior.predict(model, (0.3, -0.4)::pair) OPERATOR(posterior.=) anew(model);
SELECT * FROM differ;
-- rows one by one, past the ends of blocks of 64 and of spans of 512
CREATE PROCEDURE grow(first int, last int) LANGUAGE plpgsql AS $$
DECLARE
	wrong int;
BEGIN
	FOR i IN first .. last LOOP
		INSERT INTO points VALUES (i, sin(i), cos(2 * i), cos(i));
		COMMIT;
		SELECT count(*) INTO wrong FROM differ;
		IF wrong > 0 THEN
			RAISE NOTICE '% contexts differ with % rows', wrong, i;
		END IF;
		COMMIT;
	END LOOP;
END $$;
CALL grow(441, 450);
INSERT INTO points SELECT i, sin(i), cos(2 * i), cos(i) FROM generate_series(451, 509) i;
SELECT * FROM differ;
CALL grow(510, 515);
INSERT INTO points SELECT i, sin(i), cos(2 * i), cos(i) FROM generate_series(516, 574) i;
CALL grow(575, 578);
INSERT INTO points SELECT i, sin(i), cos(2 * i), cos(i) FROM generate_series(579, 1030) i;
SELECT * FROM differ;
-- rows that change or go: behind what is kept, and within it
UPDATE points SET y = 9 WHERE id = 1030;
SELECT * FROM differ;
DELETE FROM points WHERE id > 1027;
SELECT * FROM differ;
UPDATE points SET y = 9 WHERE id = 5;
SELECT * FROM differ;
DELETE FROM points WHERE id = 700;
SELECT * FROM differ;
-- rows of this transaction, and those of the snapshot before them
BEGIN;
INSERT INTO points VALUES (2000, 0, 0, 0);
SELECT * FROM differ;
ROLLBACK;
SELECT * FROM differ;
-- a frame that grows
CREATE FUNCTION by_frame(model text) RETURNS posterior.distribution STABLE LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('posterior.model', model, true);
	RETURN (SELECT p FROM (SELECT id, posterior.regress(y, a, b)
			OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS p
		FROM (SELECT id, a, b, y FROM points WHERE id <= 600
			UNION ALL SELECT 3000, 0.3, -0.4, NULL) r) f
		WHERE id = 3000);
END $$;
DELETE FROM points WHERE id > 600;
SELECT model FROM family
	WHERE NOT posterior.predict(model, (0.3, -0.4)::pair) OPERATOR(posterior.=) by_frame(model);
SELECT count(posterior.drop_context(model)) AS contexts FROM family;
SELECT count(posterior.drop_model(model)) AS models FROM family;
SET client_min_messages = warning;
DROP SCHEMA latent_rows CASCADE;
