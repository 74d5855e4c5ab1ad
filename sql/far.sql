-- numbers of a column that are far from all others count as missing, such targets as nearer
\set SHOW_CONTEXT never
CREATE TABLE runs AS SELECT i AS id, sin(i * 12.9898) AS load, cos(i * 78.233) AS heat,
	sin(i * 12.9898) + 0.5 * cos(i * 78.233) + sin(i * 37.719) / 10 AS wear
	FROM generate_series(1, 240) i;
CREATE VIEW coded AS SELECT id, CASE WHEN id % 20 = 7 THEN -999 ELSE load END AS load, heat, wear,
	CASE WHEN wear > 0 THEN 'worn' ELSE 'new' END AS class FROM runs;
CREATE VIEW missing AS SELECT id, nullif(load, -999) AS load, heat, wear, class FROM coded;
CREATE VIEW wrong AS SELECT id, load * CASE WHEN id = 11 THEN 1e6 ELSE 1 END AS load, heat, wear
	FROM runs;
-- a number that stands for none is none, in the context and in what is asked
SELECT count(*) AS rows, bool_and(posterior.predict(a, c.load, c.heat)::text
		= posterior.predict(b, m.load, m.heat)::text) AS regression,
	bool_and(posterior.predict(d, c.load, c.heat)::text
		= posterior.predict(e, m.load, m.heat)::text) AS classes
	FROM coded c JOIN missing m USING (id),
	(SELECT posterior.context(wear, load, heat ORDER BY id) AS a,
		posterior.class_context(class, load, heat ORDER BY id) AS d
		FROM coded WHERE id <= 200) x,
	(SELECT posterior.context(wear, load, heat ORDER BY id) AS b,
		posterior.class_context(class, load, heat ORDER BY id) AS e
		FROM missing WHERE id <= 200) y
	WHERE id > 200;
-- a cell with its point in the wrong place changes next to nothing
SELECT max(abs(posterior.mean(posterior.predict(a, r.load, r.heat)) - wear)) < 0.25 AS known
	FROM runs r, (SELECT posterior.context(wear, load, heat ORDER BY id) AS a
		FROM wrong WHERE id <= 200) x WHERE id > 200;
-- rows that come later
CREATE TABLE kept AS SELECT * FROM coded WHERE id <= 200;
SELECT posterior.create_context('kept', 'kept', target => 'wear', features => '{load,heat}',
	order_by => 'id');
INSERT INTO kept SELECT id, CASE WHEN id % 2 = 0 THEN -999 ELSE load END, heat, wear, class
	FROM coded WHERE id BETWEEN 201 AND 220;
SELECT posterior.predict('kept', k)::text = posterior.predict('kept', m)::text AS same
	FROM kept k, LATERAL (SELECT k.id, NULL::float8 AS load, k.heat, k.wear, k.class) m
	WHERE k.id = 202;
SELECT posterior.drop_context('kept');
DROP TABLE kept;
-- a target with its point in the wrong place, too; and one that is wrong by less is still found
CREATE VIEW mistaken AS SELECT id, load, heat,
	wear * CASE WHEN id = 11 THEN 1e6 ELSE 1 END + CASE WHEN id = 50 THEN 6 ELSE 0 END AS wear
	FROM runs;
SELECT max(abs(posterior.mean(posterior.predict(a, r.load, r.heat)) - wear)) < 0.25 AS known,
	max(posterior.stddev(posterior.predict(a, r.load, r.heat))) < 1 AS sure
	FROM runs r, (SELECT posterior.context(wear, load, heat ORDER BY id) AS a
		FROM mistaken WHERE id <= 200) x WHERE id > 200;
SELECT row_key FROM posterior.detect_anomalies('mistaken', 'wear', '{load,heat}', key => '{id}')
	ORDER BY value;
DROP VIEW mistaken, wrong, missing, coded;
DROP TABLE runs;
