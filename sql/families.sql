-- families: named contexts, frames and chains of models of every kind of cache behaviour
\set VERBOSITY terse
CREATE TABLE family (model text PRIMARY KEY);
INSERT INTO family VALUES ('mean'), ('mean_scaled'), ('latent'), ('latent_buffer'),
	('latent_strict'), ('buffered'), ('decoupled'), ('decoupled_one'), ('decoupled_causal'),
	('decoupled_distance'), ('decoupled_linear'), ('decoupled_convolution'), ('decoupled_rnn'),
	('decoupled_lstm'), ('scan'), ('scan_causal'),
	('scan_prefix_causal'), ('joint_full'), ('joint_prefix'), ('scan_one_target'), ('scan_widths'),
	('deep_kernel'), ('deep_kernel_causal'), ('deep_kernel_buffer'), ('random_features'),
	('random_features_causal'), ('sums'), ('sums_fixed'), ('set'), ('set_power');
SELECT count(posterior.load_model(model, current_setting('test.models') || '/' || model
		|| '.safetensors')) AS loaded FROM family;
SELECT name, architecture, context, head, min_rows, buffer FROM posterior.models
	JOIN family ON model = name ORDER BY name COLLATE "C";
CREATE TABLE points (id int PRIMARY KEY, a float8, b float8, y float8);
INSERT INTO points SELECT i, sin(i), cos(2 * i), sin(i) + cos(i) / 3 FROM generate_series(1, 37) i;
SELECT count(posterior.create_context(model, 'points', 'y', '{a,b}', order_by => 'id',
		model => model)) AS contexts FROM family;
CREATE VIEW asked AS SELECT 0.3::float8 AS a, -0.4::float8 AS b;
-- the same rows in a frame, which has the same prefix
CREATE FUNCTION by_frame(model text) RETURNS posterior.distribution STABLE LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('posterior.model', model, true);
	RETURN (SELECT p FROM (SELECT id, posterior.regress(y, a, b)
			OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS p
		FROM (SELECT id, a, b, y FROM points UNION ALL SELECT 1000, a, b, NULL FROM asked) r) f
		WHERE id = 1000);
END $$;
CREATE VIEW differ AS SELECT model FROM family, asked
	WHERE NOT posterior.predict(model, asked) OPERATOR(posterior.=) by_frame(model);
SELECT * FROM differ;
INSERT INTO points VALUES (38, 0.1, 0.2, 0.5);
SELECT * FROM differ;
INSERT INTO points SELECT i, sin(i), cos(2 * i), 0.4 FROM generate_series(39, 70) i;
SELECT * FROM differ;
UPDATE points SET y = 9 WHERE id = 35;
SELECT * FROM differ;
DELETE FROM points WHERE id IN (3, 38, 70);
SELECT * FROM differ;
BEGIN;
INSERT INTO points VALUES (80, 0, 0, 0);
SELECT * FROM differ;
SAVEPOINT s;
DELETE FROM points WHERE id < 20;
SELECT * FROM differ;
ROLLBACK TO s;
SELECT * FROM differ;
ROLLBACK;
SELECT * FROM differ;
-- chains: a draw depends on its number alone; a density of one row is that of its prediction
CREATE TYPE pair AS (a float8, b float8);
SELECT count(*) AS draws, bool_and(one.y = many.y) AS same, bool_and(one.y <> 0) AS drawn
FROM family, (SELECT ARRAY[(0.1, 0.2), (0.3, 0.4), (0.5, 0.6)]::pair[] AS rows) r,
	LATERAL posterior.sample(model, rows, 3, 7) many,
	LATERAL posterior.sample(model, rows, 1, 7) one
WHERE many.draw = one.draw AND many.ord = one.ord;
SELECT model FROM family GROUP BY model
	HAVING abs(posterior.log_pdf(posterior.predict(model, (0.1, 0.2)::pair), 0.4)
		- posterior.log_density(model, 0.4, (0.1, 0.2)::pair)) > 1e-6;
SELECT model FROM family, generate_series(1, 6) i GROUP BY model
	HAVING NOT posterior.log_density(model, i / 9.0, (i / 5.0, i / 7.0)::pair ORDER BY i)
		BETWEEN -1e4 AND 1e4;
SELECT count(posterior.drop_context(model)) AS contexts FROM family;
SELECT count(posterior.drop_model(model)) AS models FROM family;
DROP VIEW differ, asked;
DROP TYPE pair;
