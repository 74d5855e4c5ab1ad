-- targets of which most are one value and few are far away
\set SHOW_CONTEXT never
CREATE TABLE claims AS SELECT i AS id, (i * 37 % 101) / 101.0 AS age, (i * 53 % 89) / 89.0 AS size,
	CASE WHEN i * 7919 % 100 = 3 THEN 80 + i * 31 % 40 ELSE 0 END::float8 AS paid
	FROM generate_series(1, 600) i;
SELECT count(*) FILTER (WHERE id <= 300 AND paid > 0) AS known,
	count(*) FILTER (WHERE id > 300 AND paid > 0) AS to_come FROM claims;
-- sums of means are about what comes, and a claim may be
CREATE TEMP TABLE said AS SELECT id, paid, posterior.predict(c, age, size) AS d FROM claims,
	(SELECT posterior.context(paid, age, size ORDER BY id) AS c FROM claims WHERE id <= 300) s
	WHERE id > 300;
SELECT sum(posterior.mean(d)) / sum(paid) BETWEEN 0.7 AND 1.8 AS sums,
	min(posterior.log_pdf(d, paid)) FILTER (WHERE paid > 0) > -12 AS possible,
	max(posterior.quantile(d, 0.9)) < 20 AS quiet FROM said;
-- of a named context as well, on whatever side
ALTER TABLE claims ADD lost float8 GENERATED ALWAYS AS (-paid) STORED;
SELECT posterior.create_context('claims', 'claims', target => 'lost', features => '{age,size}');
SELECT sum(posterior.mean(posterior.predict('claims', c))) / sum(lost) BETWEEN 0.6 AND 2 AS sums
	FROM claims c WHERE id > 300;
SELECT posterior.drop_context('claims');
-- where another column tells, nothing is added
SELECT max(posterior.mean(d)) < 5 AS told FROM (SELECT posterior.predict(c, age, false) AS d
	FROM claims, (SELECT posterior.context(paid, age, paid > 0 ORDER BY id) AS c FROM claims) s) p;
DROP TABLE said;
DROP TABLE claims;
