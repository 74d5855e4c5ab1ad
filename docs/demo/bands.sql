-- bands.sql: voltage bands for unseen cases, scored against the solver and against two baselines.
--
-- SPDX-License-Identifier: PostgreSQL

\set ECHO all
CREATE TABLE feeder.band AS
	SELECT case_no, bus, v, posterior.predict(ctx, :loads) AS p
	FROM feeder.history
		JOIN (SELECT bus, posterior.context(v, :loads) AS ctx
			FROM feeder.history WHERE case_no <= 300 GROUP BY bus) h USING (bus)
	WHERE case_no > 300;

SELECT bus, round(v::numeric, 4) AS solver, round(posterior.median(p)::numeric, 4) AS median,
	round(lower(b)::numeric, 4) AS low, round(upper(b)::numeric, 4) AS high, v <@ b AS inside
FROM feeder.band, posterior.bounds(p, 0.9) b
WHERE case_no = 302 AND bus IN (6, 12, 18, 22, 25, 29, 33) ORDER BY bus;
\set ECHO none

-- The baselines: a bus as it usually is, and a straight line through the total of what was
-- reported.
CREATE TEMPORARY TABLE total AS
	SELECT case_no, case_no % 2 = 0 AS silent, bus, solution.v[bus] AS v, kw
	FROM (SELECT case_no, sum(p_kw) AS kw FROM feeder.report GROUP BY case_no) t
		JOIN feeder.solution USING (case_no), feeder.place;
CREATE TEMPORARY TABLE baseline AS
	SELECT case_no, bus, posterior.normal(mean, sd) AS usual,
		posterior.normal(mean + slope * (kw - mean_kw), line_sd) AS line
	FROM total JOIN (SELECT bus, silent, avg(v) AS mean, stddev(v) AS sd, avg(kw) AS mean_kw,
			regr_slope(v, kw) AS slope,
			sqrt((regr_syy(v, kw) - regr_sxy(v, kw) ^ 2 / regr_sxx(v, kw)) / (count(*)
						- 2)) AS line_sd
		FROM total WHERE case_no <= 300 GROUP BY bus, silent) f USING (bus, silent)
	WHERE case_no > 300;

\echo
\echo '40 unseen cases, 32 buses each. Error and width in thousandths of a p.u.'
SELECT CASE WHEN case_no % 2 = 0 THEN 'south silent' ELSE 'all report' END AS meters, method,
	round(avg((v <@ posterior.bounds(d, 0.9))::integer) * 100, 1) || ' %' AS "inside 90 % band",
	round(avg(upper(posterior.bounds(d, 0.9)) - lower(posterior.bounds(d, 0.9)))::numeric * 1000,
			2) AS width,
	round(avg(abs(v - posterior.median(d)))::numeric * 1000, 2) AS error,
	round(avg(posterior.log_pdf(d, v))::numeric, 2) AS "log density"
FROM feeder.band JOIN baseline USING (case_no, bus),
	LATERAL (VALUES (1, 'posterior', p), (2, 'line through total load', line),
			(3, 'as usual', usual)) m (place, method, d)
GROUP BY case_no % 2, place, method ORDER BY case_no % 2 DESC, place;
