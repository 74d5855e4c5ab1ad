-- neighbours: contexts of which each question gets the rows nearest to it
\set SHOW_CONTEXT never
CREATE SCHEMA neighbours;
SET search_path = neighbours;
CREATE TABLE points (id int PRIMARY KEY, x float8, y float8, label text);
INSERT INTO points SELECT i, i * 37 % 101 + i * i / 1e5, sin(i * 37 % 101 / 10.0),
	CASE WHEN i * 37 % 101 < 50 THEN 'low' ELSE 'high' END FROM generate_series(1, 100) i;
SELECT posterior.create_context('near', 'points', 'y', '{x}', 'id', 'toy', neighbours => 12);
SELECT posterior.create_context('whole', 'points', 'y', '{x}', 'id', 'toy');
SELECT name, neighbours FROM posterior.contexts ORDER BY name;
-- of one column and up to 31 rows a block is what the definition says: the rows nearest to the row
-- that is nearest to the question, the earlier one of two
CREATE FUNCTION nearest(place float8, k int) RETURNS SETOF points STABLE LANGUAGE sql AS $$
	SELECT p.* FROM points p, (SELECT x FROM points WHERE y IS NOT NULL
		ORDER BY abs(x - place), id LIMIT 1) anchor
	WHERE p.y IS NOT NULL ORDER BY abs(p.x - anchor.x), p.id LIMIT k $$;
-- the answers that they give as a context value, however the questions come
SET posterior.model = 'toy';
CREATE VIEW asked AS SELECT i AS ord, i * 7.3::float8 AS x FROM generate_series(-1, 15) i;
CREATE FUNCTION one(q asked) RETURNS posterior.distribution STABLE LANGUAGE plpgsql AS $$
BEGIN
	RETURN posterior.predict('near', q);
END $$;
CREATE FUNCTION differ(k int DEFAULT 12) RETURNS TABLE (ord int, batch boolean, alone boolean,
	reduced boolean) STABLE LANGUAGE sql AS $$
	WITH expected AS (SELECT a.ord, posterior.predict((SELECT posterior.context(y, x ORDER BY id)
				FROM nearest(a.x, k)), a.x) AS p FROM asked a),
	summary AS (SELECT * FROM posterior.predict_summary('near'::text,
			ARRAY(SELECT a FROM asked a ORDER BY ord)))
	SELECT d.ord, d.p OPERATOR(posterior.=) expected.p, d.alone OPERATOR(posterior.=) expected.p,
		summary.mean = posterior.mean(expected.p)
	FROM (SELECT a.ord, one(a) AS alone, posterior.predict('near'::name, a) AS p FROM asked a) d
		JOIN expected USING (ord) JOIN summary ON summary.ord = d.ord + 2 $$;
SELECT count(*), bool_and(batch) AS batch, bool_and(alone) AS alone, bool_and(reduced) AS reduced
FROM differ();
SELECT count(*) FILTER (WHERE posterior.predict('near'::name, a)
	OPERATOR(posterior.<>) posterior.predict('whole'::name, a)) > 10 AS "not of all rows"
FROM asked a;
-- EXPLAIN counts the encodings of blocks that this session makes
SELECT posterior.alter_context('near', neighbours => 13);
CREATE FUNCTION encodings() RETURNS int LANGUAGE plpgsql SET posterior.device = cpu AS $$
DECLARE
	plan jsonb;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, VERBOSE, FORMAT json) SELECT posterior.predict(''near''::name, a)
		FROM asked a' INTO plan;
	RETURN substring(plan::text FROM '"Encodings Made": (\d+)');
END $$;
SELECT encodings() > 10 AS "blocks are encoded";
SELECT posterior.alter_context('near', neighbours => 12);
-- rows that come, change and go, for all and for this transaction alone
CREATE VIEW right_answers AS SELECT count(*), bool_and(batch) AND bool_and(alone)
	AND bool_and(reduced) AS "right" FROM differ();
INSERT INTO points SELECT i, i * 37 % 101 + i / 1100.0, 2, 'low' FROM generate_series(101, 110) i;
SELECT * FROM right_answers;
UPDATE points SET y = 5, x = x + 0.5 WHERE id = 50;
SELECT * FROM right_answers;
DELETE FROM points WHERE x BETWEEN 20 AND 30;
SELECT * FROM right_answers;
BEGIN;
INSERT INTO points SELECT i, i * 13 % 101 + i / 1300.0, -3, 'low' FROM generate_series(120, 130) i;
SELECT * FROM right_answers;
SAVEPOINT s;
DELETE FROM points WHERE id < 40;
SELECT * FROM right_answers;
ROLLBACK TO s;
SELECT * FROM right_answers;
ROLLBACK;
SELECT * FROM right_answers;
-- draws and densities: from the rows of all questions' blocks together
CREATE VIEW union_rows AS SELECT DISTINCT n.* FROM (VALUES (11.0), (13.0), (70.0)) q (x),
	LATERAL nearest(q.x, 12) n;
CREATE VIEW together AS SELECT posterior.context(y, x ORDER BY id) AS context FROM union_rows;
SELECT count(*) FROM union_rows;
SELECT count(*), bool_and(n.y = v.y) AS "draws agree"
FROM together, LATERAL posterior.sample(context, ARRAY[11.0, 13, 70]::float8[], draws => 3,
		seed => 5) v
	JOIN posterior.sample('near', ARRAY[11.0, 13, 70]::float8[], draws => 3, seed => 5) n
		USING (draw, ord);
SELECT posterior.log_density('near', 0.3, q.x ORDER BY q.x)
	= (SELECT posterior.log_density(context, 0.3, r.x ORDER BY r.x)
		FROM together, (VALUES (11.0::float8), (13.0), (70.0)) r (x)) AS "densities agree"
FROM (VALUES (11.0::float8), (13.0), (70.0)) q (x);
SELECT posterior.log_density('near', sin(1.1), 11.0::float8)
	= posterior.log_pdf(posterior.predict('near'::name, 11.0::float8), sin(1.1)) AS "of one";
-- more neighbours than rows are all of them, and see each other like rows of a value
SELECT posterior.alter_context('near', neighbours => 1000);
SELECT posterior.predict('near'::name, 3.0::float8) OPERATOR(posterior.=) (SELECT posterior.predict(
	posterior.context(y, x ORDER BY id), 3.0) FROM points) AS "all rows";
SELECT posterior.alter_context('near', neighbours => 12, filter => 'id % 2 = 0');
SELECT posterior.predict('near'::name, 3.0::float8) OPERATOR(posterior.=) (SELECT posterior.predict(
	posterior.context(y, x ORDER BY id), 3.0) FROM (SELECT * FROM points WHERE id % 2 = 0
		ORDER BY abs(x - (SELECT x FROM points WHERE id % 2 = 0 ORDER BY abs(x - 3), id LIMIT 1)),
			id LIMIT 12) p) AS "those that pass the filter";
SELECT posterior.alter_context('near', filter => '', max_rows => 40);
SELECT name, neighbours, max_rows, filter FROM posterior.contexts ORDER BY name;
WITH newest AS (SELECT * FROM points ORDER BY id OFFSET (SELECT (count(*) - 40 + 19) / 20 * 20
		FROM points))
SELECT posterior.predict('near'::name, 3.0::float8) OPERATOR(posterior.=) (SELECT posterior.predict(
	posterior.context(y, x ORDER BY id), 3.0) FROM (SELECT * FROM newest ORDER BY abs(x - (SELECT x
		FROM newest ORDER BY abs(x - 3), id LIMIT 1)), id LIMIT 12) p) AS "those of the window";
SELECT posterior.refresh_context('near'), posterior.warm_context('near') > 20 AS warm;
SELECT posterior.alter_context('near', neighbours => 0, max_rows => 0);
SELECT neighbours, posterior.predict('near'::name, 3.0::float8)
	OPERATOR(posterior.=) posterior.predict('whole'::name, 3.0::float8) AS "as without"
FROM posterior.contexts WHERE name = 'near';
-- labels, missing cells, labels that no row has; several targets; rows that wait
SELECT posterior.create_context('labels', 'points', 'label', '{x,y}', 'id', neighbours => 20);
SELECT x, (SELECT string_agg(label, ',' ORDER BY label) FROM posterior.probabilities(p)) AS labels,
	posterior.probability(p, 'low') > 0.8 AS low
FROM (SELECT i AS x, sin(i / 10) AS y FROM unnest(ARRAY[5.0::float8, 95.0]) i) q,
	LATERAL posterior.predict('labels'::name, q) p;
INSERT INTO points VALUES (200, 5, 0, 'new');
SELECT (SELECT string_agg(label, ',' ORDER BY label) FROM posterior.probabilities(p)) AS labels
FROM posterior.predict('labels'::name, '{"x": 95, "y": 0}'::jsonb) p;
SELECT posterior.create_context('kinds', 'points', 'y', '{x,label}', 'id', 'tabular',
	neighbours => 24);
SELECT count(posterior.mean(posterior.predict('kinds'::name, q))) FROM (VALUES (3.0::float8, 'low'),
	(NULL, 'low'), (3, NULL), (NULL, NULL), (1e300, 'unknown'), (-1e300, 'new')) q (x, label);
SELECT count(posterior.load_model(m, current_setting('test.models') || '/' || f))
FROM (VALUES ('several', 'several_mixture.safetensors'),
	('columns', 'columns/columns.safetensors')) v (m, f);
CREATE TABLE pairs AS SELECT id, x / 50 AS a, cos(x) AS b, y AS u, y * x AS v FROM points;
SELECT posterior.create_context('pairs', 'pairs', '{u,v}', '{a,b}', 'id', 'several',
	neighbours => 30);
SELECT posterior.create_context('all pairs', 'pairs', '{u,v}', '{a,b}', 'id', 'several',
	neighbours => 3000);
SELECT cardinality(posterior.predict_targets('pairs'::name, q)) AS targets,
	posterior.predict_targets('pairs'::name, q)::text
		<> posterior.predict_targets('all pairs'::name, q)::text AS "not of all rows"
FROM (SELECT 0.3::float8 AS a, 0.1::float8 AS b) q;
SELECT posterior.create_context('waits', 'pairs', 'u', '{a,b}', 'id', 'columns',
	freshness => 'bounded', neighbours => 40);
SELECT posterior.mean(posterior.predict('waits'::name, q)) IS NOT NULL AS answered
FROM (SELECT 0.3::float8 AS a, 0.1::float8 AS b) q;
-- a model whose contexts are sums has rows here
SELECT posterior.create_context('of sums', 'points', 'y', '{x,label}', model => 'tabular_sums',
	neighbours => 40);
SELECT maintain, posterior.mean(posterior.predict('of sums'::name, q)) IS NOT NULL AS answered
FROM posterior.contexts, (SELECT 3.0::float8 AS x, 'low' AS label) q WHERE name = 'of sums';
-- of targets with their point in the wrong place, three of 600 that lie together, every block has
-- what they count as among all rows: the middle and the distance from it of the farthest other one
CREATE TABLE runs AS SELECT i AS id, i * 37 % 641 / 64.0::float8 AS load,
	round(64 * sin(i * 37 % 641 / 70.0) + 8 * sin(i * 12.9898)) / 64 AS wear
	FROM generate_series(1, 640) i;
CREATE VIEW mistaken AS SELECT id, load, wear + CASE WHEN nearest <= 3 THEN 1e6 * nearest
	ELSE 0 END AS wear
	FROM (SELECT *, row_number() OVER (ORDER BY abs(load - 3), id) AS nearest FROM runs
		WHERE id <= 600) r;
CREATE VIEW mended AS SELECT id, load, CASE WHEN wear < 1e3 THEN wear ELSE middle + farthest END
	AS wear FROM mistaken, (SELECT middle, max(abs(wear - middle)) AS farthest
		FROM mistaken, (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY wear) AS middle
			FROM mistaken) m WHERE wear < 1e3 GROUP BY middle) a;
SELECT count(posterior.create_context(name, name::regclass, 'wear', '{load}', 'id', 'tabular',
	neighbours => 64)) FROM unnest(ARRAY['mistaken', 'mended']) name;
CREATE VIEW later AS SELECT load, wear FROM runs WHERE id > 600 AND load BETWEEN 2 AND 4;
SELECT count(*) > 5 AS some, bool_and(posterior.predict('mistaken', q)::text
		= posterior.predict('mended', q)::text) AS same,
	max(abs(posterior.mean(posterior.predict('mistaken', q)) - wear)) < 0.5 AS known,
	max(posterior.stddev(posterior.predict('mistaken', q))) < 1 AS sure FROM later q;
SELECT posterior.log_density('mistaken', wear, load ORDER BY load)
	= posterior.log_density('mended', wear, load ORDER BY load) AS "same together" FROM later;
-- what is refused
SELECT posterior.create_context('other', 'points', 'y', '{x}', 'id', 'toy', neighbours => -1);
SELECT posterior.create_context('other', 'points', 'y', '{x}', 'id', 'tabular', neighbours => 3);
SELECT posterior.create_context('other', 'points', 'y', '{x}', model => 'tabular_sums',
	maintain => 'sums', neighbours => 40);
SELECT posterior.alter_context('of sums', maintain => 'sums');
SELECT posterior.alter_context('near', neighbours => -5);
SELECT posterior.create_context('few', 'points', 'y', '{x}', 'id', 'tabular', filter => 'id < 3',
	neighbours => 8);
SELECT posterior.predict('few'::name, 3.0::float8);
SET posterior.row_limit = 50;
SELECT posterior.predict('kinds'::name, '{"x": 1, "label": "low"}'::jsonb);
RESET posterior.row_limit;
SET client_min_messages = warning;
DROP SCHEMA neighbours CASCADE;
SELECT posterior.drop_model('several'), posterior.drop_model('columns');
SELECT count(*) FROM posterior.contexts;
