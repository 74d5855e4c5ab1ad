-- named contexts with labels: they answer as a frame over the same rows, whatever has been written
SET jit = off;
SELECT posterior.load_model('classes', current_setting('test.models')
		|| '/classes_rows.safetensors');
SET posterior.class_model = 'classes';
CREATE TYPE size AS ENUM ('small', 'large', 'Huge');
CREATE TABLE birds (id int PRIMARY KEY, wing float8, place text, species text, size size,
		rare boolean, rings int);
INSERT INTO birds SELECT i, 20 + 5 * sin(i), (ARRAY['shore', 'wood'])[1 + i % 2],
	(ARRAY['gull', 'owl'])[1 + i % 2], (ARRAY['Huge', 'small']::size[])[1 + i % 2], i % 5 = 0,
	(ARRAY[10, 9])[1 + i % 2] FROM generate_series(1, 20) i;
SELECT posterior.create_context(c, 'birds', c, '{wing,place}', 'id', model => 'classes')
	FROM unnest('{species,size,rare,rings}'::text[]) c;
CREATE TABLE asked AS SELECT id, wing + 1 AS wing, place FROM birds WHERE id IN (2, 7, 11);
-- The oracle: a growing frame over the rows. Counts equal answers.
CREATE FUNCTION agrees(target text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	n int;
	equal int;
	labels text;
BEGIN
	EXECUTE format('SELECT count(*), count(*)
		FILTER (WHERE posterior.predict($1, q)::text = (SELECT d
				FROM (SELECT id, posterior.classify(k, wing, place)
				OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)::text AS d
		FROM (SELECT id, %1$I AS k, wing, place FROM birds UNION ALL SELECT 1000000, NULL, q.wing,
				q.place) u) w WHERE id = 1000000)),
		(SELECT string_agg(p.label, '' '')
				FROM posterior.probabilities((SELECT posterior.predict($1, a) FROM asked a
					LIMIT 1)) p) FROM asked q', target) INTO n, equal, labels USING target;
	RETURN format('%s: %s of %s equal, %s', target, equal, n, labels);
END $$;
SELECT agrees(c) FROM unnest('{species,size,rare,rings}'::text[]) c;
-- rows that come last, with labels that are there
INSERT INTO birds SELECT i, 20 + 5 * sin(i), 'shore', 'gull', 'small', false, 9
	FROM generate_series(21, 24) i;
SELECT agrees(c) FROM unnest('{species,size,rare,rings}'::text[]) c;
-- a new label in the middle of the order, at the end and at the start of it
INSERT INTO birds VALUES (25, 30, 'cave', 'heron', 'large', NULL, 100);
SELECT agrees(c) FROM unnest('{species,size,rare,rings}'::text[]) c;
INSERT INTO birds VALUES (26, 31, 'cave', 'auk', NULL, true, -3);
SELECT agrees(c) FROM unnest('{species,size,rare,rings}'::text[]) c;
-- own uncommitted rows, rolled back rows
BEGIN;
INSERT INTO birds VALUES (27, 30, 'cave', 'eider', NULL, NULL, 5);
SELECT agrees(c) FROM unnest('{species,rings}'::text[]) c;
ROLLBACK;
SELECT agrees(c) FROM unnest('{species,rings}'::text[]) c;
-- a label that goes with its last row, and one that changes
DELETE FROM birds WHERE species = 'auk';
UPDATE birds SET species = 'tern', rings = 11 WHERE id = 3;
SELECT agrees(c) FROM unnest('{species,size,rare,rings}'::text[]) c;
-- a label of an enum with another name, and one in between
ALTER TYPE size RENAME VALUE 'Huge' TO 'enormous';
SELECT agrees('size');
ALTER TYPE size ADD VALUE 'tiny' BEFORE 'small';
UPDATE birds SET size = 'tiny' WHERE id = 1;
SELECT agrees('size');
-- joint questions
SELECT abs(sum(exp(joint)) - 1) < 1e-5 AS probabilities, count(*)
	FROM (SELECT posterior.log_density('species', l, q ORDER BY id) AS joint
	FROM asked q, LATERAL posterior.probabilities(posterior.predict('species', q)) p (l)
		WHERE id = 2 GROUP BY l) s;
-- of booleans and enums as of their text, frames and contexts alike
SELECT posterior.log_density('rare', rare, b ORDER BY id)
		= posterior.log_density('rare', rare::text, b ORDER BY id) AS boolean,
	posterior.log_density('size', size, b ORDER BY id)
		= posterior.log_density('size', size::text, b ORDER BY id) AS enum,
	posterior.log_density('size', size, to_jsonb(b) ORDER BY id)
		= posterior.log_density('size', size::text, to_jsonb(b) ORDER BY id) AS json,
	posterior.log_density_averaged('rare', 3, 1, rare, b)
		= posterior.log_density_averaged('rare', 3, 1, rare::text, b) AS boolean_averaged,
	posterior.log_density_averaged('size', 3, 1, size, b)
		= posterior.log_density_averaged('size', 3, 1, size::text, b) AS enum_averaged,
	posterior.log_density('size', NULL::size, b) AS nothing
FROM birds b WHERE id < 6;
SELECT posterior.log_density(r, rare, wing ORDER BY id)
		= posterior.log_density(r, rare::text, wing ORDER BY id) AS boolean,
	posterior.log_density(s, size, wing ORDER BY id)
		= posterior.log_density(s, size::text, wing ORDER BY id) AS enum,
	posterior.log_density_averaged(r, 3, 1, rare, wing)
		= posterior.log_density_averaged(r, 3, 1, rare::text, wing) AS boolean_averaged,
	posterior.log_density_averaged(s, 3, 1, size, wing)
		= posterior.log_density_averaged(s, 3, 1, size::text, wing) AS enum_averaged
FROM (SELECT posterior.context(rare, wing ORDER BY id) AS r,
		posterior.context(size, wing ORDER BY id) AS s FROM birds WHERE id < 15) c, birds
WHERE id BETWEEN 15 AND 20;
SELECT posterior.log_evidence(rare, wing ORDER BY id)
		= posterior.log_evidence(rare::text, wing ORDER BY id) AS boolean,
	posterior.log_evidence(size, wing ORDER BY id) < 0 AS enum
FROM birds WHERE id < 21;
SELECT posterior.log_density('rare', 1.5, b) FROM birds b;
SELECT count(*), count(DISTINCT draw) AS draws,
	bool_and(label IN (SELECT species FROM birds)) AS known
	FROM posterior.sample_labels('species', ARRAY(SELECT q FROM asked q ORDER BY id), 50, 3);
SELECT count(*), bool_and(prediction OPERATOR(posterior.=) posterior.predict('species', q)) AS same
	FROM posterior.predict_rows('species', ARRAY(SELECT q FROM asked q ORDER BY id)) p
	JOIN (SELECT row_number() OVER (ORDER BY id) AS ord, asked AS q FROM asked) a USING (ord);
-- labels too long for the proof of what has been read: rows are read every time, and the answers
-- are the same
UPDATE birds SET species = species || repeat('!', 300);
SELECT replace(agrees('species'), repeat('!', 300), '!');
INSERT INTO birds VALUES (28, 25, 'shore', 'gull' || repeat('!', 300));
SELECT replace(agrees('species'), repeat('!', 300), '!');
-- the window of the last rows has the labels of these rows alone
SELECT posterior.alter_context('rings', max_rows => 6);
SELECT string_agg(label, ' ')
	FROM posterior.probabilities((SELECT posterior.predict('rings', q) FROM asked q WHERE id = 2));
-- rows are in the order of their target's type, not in that of its labels, and labels are what the
-- type's output says, whatever casts there are
CREATE TYPE answer AS ENUM ('yes', 'no', 'Maybe');
CREATE FUNCTION spoken(answer) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$
	BEGIN RAISE EXCEPTION 'called'; END $$;
CREATE CAST (answer AS text) WITH FUNCTION spoken AS IMPLICIT;
CREATE DOMAIN reply AS answer;
CREATE DOMAIN years AS smallint;
CREATE TABLE polls AS SELECT sin(i * 3) AS x, i % 2 AS half,
	(ARRAY[9, 10, 100])[1 + i % 3] AS rings, (ARRAY[9, 10, 100])[1 + i % 3]::years AS years,
	(enum_range(NULL::answer))[1 + i % 3] AS answer,
	(enum_range(NULL::answer))[1 + i % 3]::reply AS reply,
	(ARRAY['b', 'B', 'a'])[1 + i % 3]::char(3) AS letter,
		(ARRAY['b', 'B', 'a'])[1 + i % 3]::name AS word FROM generate_series(1, 22) i;
CREATE FUNCTION in_order(target text, order_by text, ordering text)
	RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	same text[];
BEGIN
	PERFORM posterior.create_context('poll', 'polls', target, '{x}', order_by, model => 'classes');
	FOR room IN 0..1 LOOP
		PERFORM posterior.alter_context('poll', max_rows => room * 16);
		EXECUTE format('SELECT $1
			|| (posterior.predict(''poll'', q)::text = (SELECT d
					FROM (SELECT pos, posterior.classify(k, x)
					OVER (ORDER BY pos ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)::text AS d
			FROM (SELECT * FROM (SELECT %1$I AS k, x, row_number() OVER (ORDER BY %2$s,
						posterior_internal.row_hash(%1$I, x), %1$I, x) AS pos FROM polls) p
				WHERE pos > $2 UNION ALL SELECT NULL, q.x, 1000000) u) w
				WHERE pos = 1000000))::text
			FROM (SELECT 0.3::float8 AS x) q', target, ordering) INTO same USING same, room * 8;
	END LOOP;
	PERFORM posterior.drop_context('poll');
	RETURN format('%s: %s', ordering, array_to_string(same, ' '));
END $$;
SELECT in_order(t, t, t), in_order(t, 'half DESC', 'half DESC'),
	in_order(t, t || ' DESC', t || ' DESC') FROM unnest('{rings,years,answer,reply}'::text[]) t;
SELECT in_order('rings', 'half', 'half, rings::text') AS "rows were in another order";
SELECT in_order(t, 'half', 'half'), in_order(t, t, t)
	FROM unnest('{letter,word}'::text[]) t;
-- rows that come last are read by themselves
SELECT posterior.create_context('poll', 'polls', 'answer', '{x}', 'half, answer',
		model => 'classes');
SELECT posterior.warm_context('poll');
INSERT INTO polls (x, half, answer) SELECT cos(i), 2, 'no' FROM generate_series(1, 3) i;
SELECT posterior.predict('poll', q)::text = (SELECT d
		FROM (SELECT half, posterior.classify(answer, x)
			OVER (ORDER BY half, answer, posterior_internal.row_hash(answer, x)
			ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)::text AS d
	FROM (SELECT half, answer, x FROM polls UNION ALL SELECT 3, NULL, q.x) u) w
		WHERE half = 3) AS same FROM (SELECT 0.3::float8 AS x) q;
DROP TABLE polls;
DROP FUNCTION in_order;
DROP DOMAIN reply, years;
DROP CAST (answer AS text);
DROP FUNCTION spoken;
DROP TYPE answer;
DROP TABLE birds, asked;
DROP FUNCTION agrees(text);
DROP TYPE size;
RESET posterior.class_model;
SELECT posterior.drop_model('classes');
