-- Boosted trees in a classifier's answers: from 512 rows on, where regressions of the same rows
-- know less
CREATE TABLE steps AS
SELECT i, (i * 7919 % 1009) / 1009.0 AS a, (i * 104729 % 2003) / 2003.0 AS b,
	(i * 15485863 % 3001) / 3001.0 AS c, 'k' || i * 31 % 5 AS k
FROM generate_series(1, 900::bigint) i;
ALTER TABLE steps ADD label text;
UPDATE steps SET label = CASE WHEN a > 0.5 THEN CASE WHEN b > 0.4 THEN 'up' ELSE 'down' END
	WHEN (c > 0.3) <> (k IN ('k1', 'k4')) THEN 'left' ELSE 'down' END;

-- of 511 rows and of one more, each with a whole block of questions
CREATE TABLE asked AS SELECT row_number() OVER (ORDER BY i) AS ord, a, b, c, k, label
FROM steps WHERE i > 700 AND i % 4 = 0;
CREATE TABLE told AS
SELECT first, avg((posterior.most_probable(prediction) = label)::int) AS right,
	-avg(ln(posterior.probability(prediction, label))) AS log_loss
FROM (VALUES (190), (189)) v (first),
	LATERAL (SELECT posterior.class_context(label, a, b, c, k ORDER BY i) AS context FROM steps
			 WHERE i BETWEEN first AND 700) x,
	LATERAL posterior.predict_rows(context, ARRAY(SELECT ROW(a, b, c, k) FROM asked ORDER BY ord)) p
	JOIN asked USING (ord)
GROUP BY first;
SELECT few.log_loss > 1.2 * many.log_loss AS trees_help, many.right > 0.9 AS mostly_right
FROM told few, told many WHERE few.first = 190 AND many.first = 189;
DROP TABLE told, asked, steps;
