-- Boosted trees in the mean of a regression's answers: from 512 rows on, where the target follows
-- from steps
SELECT posterior.load_model('trees', current_setting('test.models') || '/rows_trees.safetensors')
	IS NOT NULL AS loaded;
SET posterior.model = 'trees';
CREATE TABLE steps AS
SELECT i, (i * 7919 % 1009) / 1009.0 AS a, (i * 104729 % 2003) / 2003.0 AS b,
	(i * 15485863 % 3001) / 3001.0 AS c
FROM generate_series(1, 760::bigint) i;
ALTER TABLE steps ADD y float8;
UPDATE steps SET y = (a > 0.5)::int * 4 + (b > 0.4)::int * 2 - (c > 0.3 AND a < 0.25)::int * 3
	+ 0.1 * sin(i);

-- of 511 rows and of one more, each with a whole block of questions
CREATE TABLE asked AS SELECT row_number() OVER (ORDER BY i) AS ord, a, b, c, y
FROM steps WHERE i > 700;
CREATE TABLE told AS
SELECT first, context, prediction, asked.*
FROM (VALUES (190), (189)) v (first),
	LATERAL (SELECT posterior.context(y, a, b, c ORDER BY i) AS context FROM steps
			 WHERE i BETWEEN first AND 700) x,
	LATERAL posterior.predict_rows(context, ARRAY(SELECT ROW(a, b, c) FROM asked ORDER BY ord)) p
	JOIN asked USING (ord);
SELECT few.error > 1.1 * many.error AS trees_help, few.crps > 1.05 * many.crps AS sharper
FROM (SELECT first, sqrt(avg((posterior.mean(prediction) - y) ^ 2)) AS error,
		avg(posterior.crps(prediction, y)) AS crps FROM told GROUP BY first) few,
	(SELECT first, sqrt(avg((posterior.mean(prediction) - y) ^ 2)) AS error,
		avg(posterior.crps(prediction, y)) AS crps FROM told GROUP BY first) many
WHERE few.first = 190 AND many.first = 189;

-- each row as in the block, and for the rows of the context in another order
SELECT bool_and(prediction OPERATOR(posterior.=) posterior.predict(context, a, b, c)) AS alone
FROM told WHERE first = 189 AND ord % 20 = 1;
SELECT bool_and(abs(posterior.mean(t.prediction) - posterior.mean(p.prediction)) < 1e-4) AS turned
FROM (SELECT posterior.context(y, a, b, c ORDER BY i DESC) AS context FROM steps
		WHERE i BETWEEN 189 AND 700) x,
	LATERAL posterior.predict_rows(x.context,
		ARRAY(SELECT ROW(a, b, c) FROM asked ORDER BY ord)) p
	JOIN told t USING (ord) WHERE t.first = 189;
DROP TABLE told, asked, steps;
SELECT posterior.drop_model('trees');
