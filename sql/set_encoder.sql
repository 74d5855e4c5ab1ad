-- set_encoder: models whose tokens are made of whole tables, with columns of all kinds
\set VERBOSITY terse
SELECT count(posterior.load_model('set', current_setting('test.models') || '/set.safetensors'))
	AS loaded;
SET posterior.model = 'set';
CREATE TABLE house (id int PRIMARY KEY, size float8, area text, garden bool, price float8);
INSERT INTO house SELECT i, CASE WHEN i % 7 > 0 THEN 60 + 10 * sin(i) END, 'abc'::varchar(3),
	i % 3 = 0, 100 + 20 * sin(i) FROM generate_series(1, 30) i;
UPDATE house SET area = (ARRAY['north','south','east'])[1 + id % 3];
SELECT count(posterior.create_context('set', 'house', 'price', features => '{size,area,garden}',
	order_by => 'id', model => 'set')) AS made;
CREATE TYPE question AS (size float8, area text, garden bool);
-- NULL is missing, an unknown label is missing too, and a label matters
SELECT posterior.predict('set', (62, 'never seen', true)::question)
	OPERATOR(posterior.=) posterior.predict('set', (62, NULL, true)::question) AS unknown_missing,
	posterior.predict('set', (62, 'north', true)::question)
	OPERATOR(posterior.<>) posterior.predict('set', (62, 'south', true)::question) AS label_matters;
-- a growing frame of the same rows has the same prefix, whatever came one by one
CREATE FUNCTION differs() RETURNS boolean STABLE LANGUAGE sql AS $$
	SELECT posterior.predict('set', (62, 'east', false)::question) OPERATOR(posterior.<>)
		(SELECT p FROM (SELECT id, posterior.regress(price, size, area, garden) OVER (ORDER BY id
				ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS p
			FROM (TABLE house UNION ALL SELECT 1000, 62, 'east', false, NULL) r) f
			WHERE id = 1000) $$;
SELECT differs();
INSERT INTO house VALUES (31, NULL, 'west', NULL, 90);
SELECT differs();
INSERT INTO house VALUES (32, 1e6, 'west', true, 91), (33, 61, NULL, true, 92);
SELECT differs();
DELETE FROM house WHERE id = 2;
SELECT differs();
-- columns keep their order, and more than there is room for are an error
SELECT posterior.predict(posterior.context(price, size, id), 62, 5) OPERATOR(posterior.<>)
	posterior.predict(posterior.context(price, id, size), 5, 62) AS order_matters FROM house;
SELECT posterior.predict(posterior.context(price, size, size, size, size, size, size, size, size),
	1, 2, 3, 4, 5, 6, 7, 8) FROM house;
-- so is what float32 has no room for after scaling
SELECT posterior.predict('set', (1e300, 'east', true)::question);
SELECT count(posterior.drop_context('set')) AS dropped;
-- columns made normal: what lies beyond the context's rows counts as the nearest of them, nearly
SELECT count(posterior.load_model('set_power', current_setting('test.models')
		|| '/set_power.safetensors')) AS loaded;
SET posterior.model = 'set_power';
SELECT posterior.predict(context, 1e300, 'east') OPERATOR(posterior.=)
	posterior.predict(context, 1e200, 'east') AS cut, posterior.predict(context, 62, 'east')
	OPERATOR(posterior.<>) posterior.predict(context, 63, 'east') AS within
FROM (SELECT posterior.context(price, size, area) AS context FROM house WHERE id < 30) c;
SELECT count(posterior.drop_model(name)) AS dropped FROM (VALUES ('set'), ('set_power')) m(name);
DROP FUNCTION differs();
DROP TYPE question;
DROP TABLE house;
