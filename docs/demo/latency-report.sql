-- latency-report.sql: how well the server's latencies were predicted, and what was flagged.
--
-- SPDX-License-Identifier: PostgreSQL

\echo 'Every transaction predicted from those before it. 90 % bands; medians in milliseconds.'
\set ECHO all
SELECT kind, count(*) AS predicted,
	round(avg((log(ms) <@ posterior.bounds(p, 0.9))::integer) * 100, 1) || ' %' AS "inside band",
	round(percentile_cont(0.5) WITHIN GROUP (ORDER BY low)::numeric, 2) AS low,
	round(percentile_cont(0.5) WITHIN GROUP (ORDER BY ms)::numeric, 2) AS real,
	round(percentile_cont(0.5) WITHIN GROUP (ORDER BY high)::numeric, 2) AS high,
	count(*) FILTER (WHERE posterior.cdf(p, log(ms)) > 0.995) AS flagged
FROM server.latency JOIN server.watch USING (n),
	LATERAL (SELECT 10 ^ posterior.quantile(p, 0.05),
			10 ^ posterior.quantile(p, 0.95)) b (low, high)
GROUP BY kind ORDER BY kind;
\set ECHO none
\echo 'The worst of the flagged ones'
SELECT round((t - (SELECT min(t) FROM server.latency))::numeric, 2) AS second, kind,
	round(ms::numeric, 1) AS ms,
	round((10 ^ posterior.quantile(p, 0.05))::numeric, 2) AS low,
		round((10 ^ posterior.quantile(p, 0.95))::numeric, 2) AS high,
	'1 in ' || round(1 / greatest(1 - posterior.cdf(p, log(ms)), 1e-9)::numeric) AS chance
FROM server.latency JOIN server.watch USING (n)
WHERE posterior.cdf(p, log(ms)) > 0.995 ORDER BY ms DESC LIMIT 8;
