-- evaluate, detect_anomalies, impute, importance
\set SHOW_CONTEXT never
SET TimeZone = 'UTC';
SET posterior.model = 'tabular_small';
CREATE TABLE "Lab" (id int PRIMARY KEY, a float8, "b ""B""" text, noise float8, site text, y float8,
		grade text, at timestamptz);
INSERT INTO "Lab" SELECT i, z[1], (ARRAY['u', 'v', 'w'])[1 + i % 3], z[2],
	(ARRAY['north', 'south'])[1 + i % 2], NULL, NULL, '2024-01-01'::timestamptz
	+ make_interval(hours => i)
FROM generate_series(1, 160) i, LATERAL (SELECT array_agg(d) AS z
		FROM posterior.draw(posterior.normal(0, 1), 2, i) d) d;
UPDATE "Lab" SET y = 3 * a + CASE "b ""B""" WHEN 'u' THEN 5 ELSE 0 END + 0.3 * noise / 3,
	grade = CASE WHEN a > 0.2 THEN 'high' ELSE 'low' END;
UPDATE "Lab" SET y = y + 25 WHERE id IN (77, 140);
-- evaluate: numbers and labels, groups, folds, time
SELECT n, fold, log_density > -2 AS log_density, crps < baseline_crps / 2 AS crps,
	rmse < baseline_rmse AS rmse, coverage BETWEEN 0.8 AND 1 AS coverage, skill > 0.5 AS skill,
	(SELECT abs(sum(p) - 1) < 1e-9 FROM unnest(pit) p) AS pit, accuracy,
	ridge_crps < baseline_crps AS ridge_crps, ridge_rmse < baseline_rmse AS ridge_rmse
		FROM posterior.evaluate('"Lab"', 'y', '{a,"b \"B\""}');
SELECT series, n, accuracy > baseline_accuracy AS accuracy, log_density > -0.5 AS log_density, crps
	FROM posterior.evaluate('"Lab"', 'grade', '{a,noise}', by => '{site}');
SELECT fold, n FROM posterior.evaluate('"Lab"', 'y', '{a}', folds => 4, each_fold => true,
		"time" => 'at');
-- the ridge regression beside: a line is a line, a label has its shift, cells may be missing, one
-- row may be asked about
SELECT round(posterior.mean(r[1])) AS line, round(posterior.mean(r[2])) AS "with label",
	posterior.stddev(r[1]) < 0.2 AS narrow
FROM (SELECT posterior_internal.ridge(c, q) AS r FROM
	(SELECT posterior.context(2 * i + CASE i % 2 WHEN 0 THEN 10 ELSE 0 END, i,
		CASE i % 2 WHEN 0 THEN 'even' ELSE 'odd' END ORDER BY i) AS c
		FROM generate_series(1, 200) i) c,
	(SELECT posterior.context(0, x, l ORDER BY x) AS q
		FROM (VALUES (50, 'odd'), (51, 'even')) v (x, l)) q) a;
SELECT cardinality(r) AS answers, round(posterior.mean(r[3])::numeric, 1) AS "not the present ones",
	posterior.stddev(r[1]) > 0 AS sd
FROM (SELECT posterior_internal.ridge(c, c) AS r FROM
	(SELECT posterior.context(i % 2, CASE WHEN i <> 3 THEN NULL::float8 END, 'same'::text
		ORDER BY i) AS c FROM generate_series(1, 9) i) c) a;
SELECT posterior_internal.ridge(posterior.context('a'::text, i), posterior.context(i, i))
	FROM generate_series(1, 9) i;
SELECT posterior_internal.ridge(posterior.context(i, i), posterior.context(i, 'a'::text))
	FROM generate_series(1, 9) i;
-- the same seed gives the same scores, whatever the order of the rows; all columns are the default
CREATE TABLE shuffled AS SELECT * FROM "Lab" ORDER BY md5(id::text);
SELECT a.log_density = b.log_density AS same, a.log_density <> c.log_density AS "other folds"
	FROM posterior.evaluate('"Lab"', 'y', '{a}') a, posterior.evaluate('shuffled', 'y', '{a}') b,
	posterior.evaluate('"Lab"', 'y', '{a}', seed => 1) c;
-- rows of one person answer for each other unless they stay together; copies of a row go to
-- different folds
CREATE TABLE copies AS SELECT i AS person, hashint4(i)::float8 AS who,
	(hashint4(i + 1000) & 1023)::float8 AS y FROM generate_series(1, 60) i, generate_series(1, 3);
SELECT max(folds) AS "copies apart"
	FROM (SELECT count(DISTINCT fold) AS folds
		FROM posterior_internal.cross_predictions('copies', 'y', '{who}', NULL, '{who}', NULL, NULL,
			5, 1024, 0, true, false) GROUP BY row_key) f;
SELECT n, rmse > 0.8 * baseline_rmse AS "nothing is learned"
	FROM posterior.evaluate('copies', 'y', '{who}', together => '{person}');
CREATE TABLE patients AS SELECT i / 4 AS patient, hashint4(i / 4)::float8 AS weight,
	(hashint4(i / 4 + 1000) & 1023) + i % 4 AS y, i / 4 AS patient_y, i
	FROM generate_series(0, 159) i;
SELECT max(folds) FILTER (WHERE kept) AS together,
	max(folds) FILTER (WHERE NOT kept) > 1 AS otherwise
FROM (SELECT kept, value, count(DISTINCT fold) AS folds FROM (VALUES (true), (false)) k (kept),
		LATERAL posterior_internal.cross_predictions('patients', 'patient_y', '{weight,i}', NULL,
			'{patient}', CASE WHEN kept THEN '{patient}'::text[] END, NULL, 5, 1024, 0, true, false)
		GROUP BY kept, value) f;
-- in time order a fold is answered from what was before it: the future cannot be seen
CREATE VIEW later AS SELECT i AS k, (hashint4(i) & 255)::float8 AS x, CASE WHEN i <= 50
	THEN hashint4(i + 7) & 255 ELSE 3 * (hashint4(i) & 255) END::float8 AS y
	FROM generate_series(1, 100) i;
SELECT fold, n, rmse > baseline_rmse * 0.5 AS "cannot see"
	FROM posterior.evaluate('later', 'y', '{x}', "time" => 'k', folds => 2, each_fold => true);
-- anomalies: from the other rows, and from the rows before in time
SELECT row_key, surprise < 0.001 AS surprise, value > high AS above, median > low
	AND median < high AS band, at
	FROM posterior.detect_anomalies('"Lab"', 'y', '{a,"b \"B\""}', threshold => 0.001) ORDER BY 1;
SELECT row_key, at, value > high AS above
	FROM posterior.detect_anomalies('"Lab"', 'y', '{a,"b \"B\""}', "time" => 'at', history => 64,
		threshold => 0.001) WHERE surprise < 1e-4 OR row_key->>'id' = '77' ORDER BY 1;
SELECT count(*) > 100 AS all_rows, count(*) FILTER (WHERE row_key->>'id' = '77') AS one
	FROM posterior.detect_anomalies('"Lab"', 'y', "time" => 'at', history => 16, all_rows => true);
SELECT count(*) AS rows, count(label) AS labels, count(value) AS values
	FROM posterior.detect_anomalies('"Lab"', 'grade', '{a}', all_rows => true);
-- a row's own target does not enter its prediction
CREATE VIEW changed AS SELECT id, a, at, CASE WHEN id >= 100 THEN 1e4 ELSE y END AS y FROM "Lab";
SELECT a.prediction::text = b.prediction::text AS same, a.surprise > b.surprise AS "more surprising"
	FROM posterior.detect_anomalies('"Lab"', 'y', '{a}', "time" => 'at', history => 16,
		all_rows => true) a,
	posterior.detect_anomalies('changed', 'y', '{a}', "time" => 'at', history => 16,
			all_rows => true, key => '{id}') b WHERE a.row_key = b.row_key
		AND a.row_key->>'id' = '100';
-- imputation: numbers with bands, labels, draws
UPDATE "Lab" SET a = NULL WHERE id IN (10, 20); UPDATE "Lab" SET "b ""B""" = NULL WHERE id = 30;
SELECT row_key, column_name, CASE column_name WHEN 'a'
	THEN abs(value::float8 - (SELECT d
			FROM posterior.draw(posterior.normal(0, 1), 1, (row_key->>'id')::int) d)) < 1.5
	ELSE value IN ('u', 'v', 'w') END AS plausible,
	low < high AS band, cardinality(drawn) AS drawn
		FROM posterior.impute('"Lab"', features => '{a,"b \"B\"",y}', draws => 5);
SELECT count(*) FROM posterior.impute('"Lab"', columns => '{noise}');
-- draws of the cells of a row hang together: two columns that are one number are so in every draw
CREATE TABLE twins (id int PRIMARY KEY, a float8, b int, c text);
INSERT INTO twins SELECT i, x, 2 * x, CASE WHEN x > 9 THEN 'high' ELSE 'low' END
	FROM generate_series(1, 120) i, LATERAL (SELECT i * 7 % 20 AS x) x;
UPDATE twins SET a = NULL, b = NULL, c = NULL WHERE id IN (5, 50, 100);
UPDATE twins SET b = NULL, c = NULL WHERE id = 7;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY abs(b - 2 * a)) < 4 AS "a and b",
	percentile_cont(0.5) WITHIN GROUP (ORDER BY abs(a - 10)) > 1 AS spread, count(*) AS pairs,
	avg(((a > 9.5) = (c = 'high'))::int) > 0.8 AS "a and c"
FROM (SELECT row_key, (max(drawn) FILTER (WHERE column_name = 'a'))[d]::float8 AS a,
		(max(drawn) FILTER (WHERE column_name = 'b'))[d]::float8 AS b,
		(max(drawn) FILTER (WHERE column_name = 'c'))[d] AS c
	FROM posterior.impute('twins', draws => 16), generate_series(1, 16) d
	WHERE row_key->>'id' <> '7' GROUP BY row_key, d) p;
SELECT a.drawn = b.drawn AS "same seed", a.drawn <> c.drawn AS "other seed", a.column_name
FROM posterior.impute('twins', draws => 8, seed => 1) a
	JOIN posterior.impute('twins', draws => 8, seed => 1) b USING (row_key, column_name)
	JOIN posterior.impute('twins', draws => 8, seed => 2) c USING (row_key, column_name)
WHERE row_key->>'id' = '50' AND column_name IN ('a', 'b') ORDER BY 3;
SELECT posterior.impute('twins', draws => 2, key => '{c}');
DROP TABLE twins;
RESET posterior.model;
-- importance
SELECT feature, evidence_loss > 3 AS evidence, permutation_loss > 0.3 AS permutation
	FROM posterior.importance('"Lab"', 'y', '{a,"b \"B\"",noise}') ORDER BY 1;
SELECT series, feature, permutation_loss > 0.1 AS matters
	FROM posterior.importance('"Lab"', 'grade', '{a,noise}', by => '{site}') ORDER BY 1, 2;
-- mistakes
SELECT posterior.evaluate('"Lab"', 'z');
SELECT posterior.evaluate('"Lab"', 'at');
SELECT posterior.evaluate('"Lab"', 'y', '{y}');
SELECT posterior.evaluate('"Lab"', 'y', '{a,a}');
SELECT posterior.evaluate('"Lab"', 'y', '{}');
SELECT posterior.evaluate('"Lab"', 'y', '{q}');
SELECT posterior.evaluate('"Lab"', 'y', folds => 1);
SELECT posterior.evaluate('"Lab"', 'y', level => 95);
SELECT posterior.evaluate('"Lab"', 'y', by => '{z}');
SELECT posterior.evaluate('"Lab"', 'y', "time" => 'z');
SELECT posterior.evaluate('"Lab"', 'y', model => 'nobody');
SELECT posterior.evaluate('(SELECT 1)', 'y');
CREATE TABLE few AS SELECT i AS x, i AS y FROM generate_series(1, 5) i;
SELECT posterior.evaluate('few', 'y');
SELECT posterior.detect_anomalies('few', 'y');
SELECT posterior.detect_anomalies('"Lab"', 'y', threshold => 0);
SELECT posterior.detect_anomalies('"Lab"', 'y', history => 0);
SELECT posterior.detect_anomalies('"Lab"', 'y', "time" => 'grade');
SELECT posterior.detect_anomalies('"Lab"', 'at');
SELECT posterior.impute('few');
-- a column that is not named and hardly used
CREATE TABLE sparse (id int PRIMARY KEY, x float8, y float8, unused float8);
INSERT INTO sparse SELECT i, i, nullif(2 * i, 14) FROM generate_series(1, 20) i;
SELECT row_key, column_name FROM posterior.impute('sparse');
UPDATE sparse SET x = NULL, y = NULL;
SELECT row_key, column_name FROM posterior.impute('sparse');
DROP TABLE sparse;
SELECT posterior.impute('"Lab"', columns => '{z}');
SELECT posterior.impute('"Lab"', columns => '{at}');
SELECT posterior.impute('"Lab"', draws => -1);
UPDATE few SET y = NULL;
SELECT posterior.impute('few', columns => '{y}', key => '{x}');
SELECT posterior.importance('few', 'y');
SELECT posterior.importance('"Lab"', NULL);
-- the caller's rights
CREATE ROLE regress_verb_analyst;
GRANT SELECT (a, y) ON "Lab" TO regress_verb_analyst;
SET ROLE regress_verb_analyst;
SELECT n FROM posterior.evaluate('"Lab"', 'y', '{a}');
SELECT n FROM posterior.evaluate('"Lab"', 'y', '{noise}');
RESET ROLE;
DROP OWNED BY regress_verb_analyst;
DROP ROLE regress_verb_analyst;
DROP VIEW later, changed;
DROP TABLE "Lab", shuffled, copies, patients, few;
-- columns that are called as the parts of the verbs' own statements, and a temporary table
CREATE TEMPORARY TABLE given (id int PRIMARY KEY, r float8, y float8, h float8, c float8, q float8,
		n int, lag1 float8, lag2 float8, series text, row_key text, block int, k int, f1 float8,
		fold int, p float8, t timestamp, d float8, s float8, x float8, value float8, target float8);
INSERT INTO given SELECT i, i % 7, 2 * (i % 7) + i % 3, i, i, i, i, i, i, 'a', 'b', i, i, i, i, i,
	'2024-01-01'::timestamp + make_interval(hours => i), i, i, i, i, 3 * (i % 7) + i % 2
	FROM generate_series(1, 60) i;
UPDATE given SET r = NULL WHERE id = 5;
SELECT n FROM posterior.evaluate('given', 'y', '{r,h,c,q,f1}', by => '{series}');
SELECT count(*) FROM posterior.detect_anomalies('given', 'y', '{r,lag1,lag2}', "time" => 't',
		history => 16, all_rows => true);
SELECT row_key FROM posterior.impute('given', columns => '{r}', features => '{y,k,fold,p}');
SELECT count(*) FROM posterior.importance('given', 'target', '{r,y}');
SELECT count(*) FROM posterior.forecast('given', 't', 'target', 2);
DROP TABLE given;
-- wide relations: more columns than a function takes arguments, in keys and hashes
DO $$ BEGIN
	EXECUTE 'CREATE TABLE wide AS SELECT ' || (SELECT string_agg(format('sin(i * %s.37) AS c%1$s',
		k), ', ' ORDER BY k) FROM generate_series(1, 98) k) || ', i % 3 + cos(i / 5.0) AS y
		FROM generate_series(1, 60) i';
END $$;
SELECT n FROM posterior.evaluate('wide', 'y');
SELECT count(*) FROM posterior.detect_anomalies('wide', 'y', all_rows => true);
ALTER TABLE wide ADD c99 int;
SELECT n FROM posterior.evaluate('wide', 'y');
SELECT posterior.create_context('wide', 'wide', 'y', order_by => 'c1');
SELECT count(mean) FROM posterior.score('wide', 'wide');
DROP TABLE wide;
-- a column of more labels than the model tells apart is no reason to fill none
CREATE TABLE people AS SELECT i AS id, nullif('person ' || i, 'person 77') AS name,
	CASE WHEN i % 9 > 0 THEN i % 5 END AS a, i % 5 * 2 + sin(i) AS b FROM generate_series(1, 200) i;
SELECT column_name, count(*) FROM posterior.impute('people', key => '{id}') GROUP BY 1;
SELECT column_name FROM posterior.impute('people', '{name}', key => '{id}');
DROP TABLE people;
