-- sums_directions: sums under a basis with directions, which later rows and merges do not move
\set VERBOSITY terse
CREATE SCHEMA sums_directions;
SET search_path = sums_directions, public;
SELECT posterior.load_model(m, current_setting('test.models') || '/' || m || '.safetensors')
	IS NOT NULL AS loaded
FROM unnest(ARRAY['sums', 'sums_directions']) m;
CREATE TABLE reading (id int PRIMARY KEY, day int, a float8, b float8, c float8, d text, y float8);
INSERT INTO reading SELECT i, i % 7, a, b, CASE WHEN i % 13 > 0 THEN c END,
	(ARRAY['x', 'y', 'z', 'w'])[1 + i * i % 4],
	sin(2 * a - 1.5 * b + CASE WHEN i % 13 > 0 THEN c ELSE 0 END) + sin(17.0 * i) / 20
FROM (SELECT i, (0.8191725134 * i - floor(0.8191725134 * i)) * 4 - 2 AS a,
	(0.6710436067 * i - floor(0.6710436067 * i)) * 4 - 2 AS b,
	(0.5497004779 * i - floor(0.5497004779 * i)) * 4 - 2 AS c
	FROM generate_series(1, 900) i) s;
-- a sine along three columns, which no pair of columns is
CREATE FUNCTION wrong(which text) RETURNS float8 LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('posterior.model', which, true);
	RETURN (SELECT sqrt(avg((posterior.mean(posterior.predict(context, a, b, c, d)) - y) ^ 2))
		FROM reading, (SELECT posterior.context(y, a, b, c, d) AS context FROM reading
			WHERE id <= 300) s WHERE id > 300 AND id % 3 = 0);
END $$;
SELECT wrong('sums') > 0.4 AS without, wrong('sums_directions') < 0.15 AS with_directions;
SET posterior.model = 'sums_directions';
CREATE TABLE basis AS SELECT posterior.basis(y, a, b, c, d) AS basis FROM reading WHERE id <= 300;
CREATE TABLE whole AS SELECT posterior.context(basis, y, a, b, c, d) AS context FROM reading, basis;
SELECT posterior.rows(context) AS rows,
	posterior.basis(context) OPERATOR(posterior.=) basis AS same,
	context::text::posterior.context OPERATOR(posterior.=) context AS text FROM whole, basis;
CREATE TABLE daily AS SELECT day, posterior.context(basis, y, a, b, c, d) AS context
FROM reading, basis GROUP BY day;
SELECT posterior.merge(d.context) OPERATOR(posterior.=) w.context AS merged
FROM daily d, whole w GROUP BY w.context;
SELECT posterior.without(w.context, d.context) OPERATOR(posterior.=)
	(SELECT posterior.merge(o.context) FROM daily o WHERE o.day <> d.day) AS others
FROM daily d, whole w WHERE d.day < 2 ORDER BY d.day;
SELECT posterior.without(w.context, y, a, b, c, d) OPERATOR(posterior.=)
	(SELECT posterior.context(basis, y, a, b, c, d) FROM reading r, basis WHERE r.id <> o.id)
	AS without
FROM reading o, whole w WHERE id IN (1, 13, 900) ORDER BY id;
SELECT id, f.context OPERATOR(posterior.=) (SELECT posterior.context(basis, y, a, b, c, d)
	FROM reading r, basis WHERE r.id BETWEEN f.id - 20 AND f.id + 2) AS moving
FROM (SELECT id, posterior.context(basis, y, a, b, c, d) OVER (ORDER BY id
	ROWS BETWEEN 20 PRECEDING AND 2 FOLLOWING) AS context FROM reading, basis) f
WHERE id IN (1, 31, 900) ORDER BY id;
-- a named context has the directions of its first rows until it is refreshed
SELECT posterior.create_context('reading', 'reading', 'y', '{a,b,c,d}');
CREATE TABLE before AS SELECT posterior.basis(posterior.sums('reading')) AS basis;
CREATE VIEW now AS SELECT posterior.sums('reading') OPERATOR(posterior.=)
	(SELECT posterior.context(basis, y, a, b, c, d) FROM reading, before) AS same,
	posterior.basis(posterior.sums('reading')) OPERATOR(posterior.=) basis AS basis,
	posterior.rows(posterior.sums('reading')) AS rows FROM before;
SELECT * FROM now;
INSERT INTO reading SELECT 1000 + i, i, i % 5, i % 3, i / 9.0, 'v', i / 7.0
FROM generate_series(1, 9) i;
UPDATE reading SET y = cos(a + b), c = NULL WHERE id BETWEEN 10 AND 400;
DELETE FROM reading WHERE id BETWEEN 500 AND 520;
SELECT * FROM now;
CREATE TYPE question AS (a float8, b float8, c float8, d text);
CREATE FUNCTION answer() RETURNS text[] STABLE LANGUAGE sql AS $$
	SELECT array_agg(posterior.predict('reading', (i / 3.0, 1 - i, i, 'x')::question)::text
		ORDER BY i) FROM generate_series(1, 4) i $$;
CREATE FUNCTION answer_read() RETURNS text[] STABLE LANGUAGE plpgsql
	SET posterior.cache = off AS $$ BEGIN RETURN answer(); END $$;
SELECT answer() = answer_read() AS answers;
SELECT posterior.refresh_context('reading');
SELECT basis AS same_basis, rows FROM now;
SELECT answer() = answer_read() AS answers;
-- a basis belongs to a model with as many directions
SET posterior.model = 'sums';
SELECT posterior.context(basis, y, a, b, c, d) FROM reading, basis;
SET client_min_messages = warning;
DROP SCHEMA sums_directions CASCADE;
SELECT posterior.drop_model(m) FROM unnest(ARRAY['sums', 'sums_directions']) m;
