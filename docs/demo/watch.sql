-- watch.sql: one look at the transactions that finished since the last look: predict each from the
-- 64 before it.
--
-- Lines of the log arrive on standard input. A transaction is flagged when the prediction gave a
-- latency as long as its own less than one chance in 200.
--
-- SPDX-License-Identifier: PostgreSQL

\copy server.log FROM pstdin WITH (DELIMITER ' ')
SELECT coalesce(max(n), 0) AS seen FROM server.latency \gset
INSERT INTO server.latency (t, kind, ms)
	SELECT epoch + us / 1e6, (ARRAY['lookup', 'transfer', 'report'])[script + 1],
		greatest(latency, 1) / 1000
	FROM server.log ORDER BY epoch, us, client, transaction;
UPDATE server.latency l SET previous = p.previous
	FROM (SELECT n, lag(log(ms)) OVER (PARTITION BY kind ORDER BY n) AS previous
			FROM server.latency) p
	WHERE p.n = l.n AND l.n > :seen;
TRUNCATE server.log;

\if :show
\set ECHO all
\endif
INSERT INTO server.watch
	SELECT n, p
	FROM (SELECT n, posterior.regress(log(ms), kind, previous)
				OVER (ORDER BY n ROWS BETWEEN 64 PRECEDING AND 1 PRECEDING) AS p
			FROM server.latency WHERE n > :seen - 64) w
	WHERE n > :seen AND p IS NOT NULL;
\set ECHO none

SELECT format('%s s: %s transactions, %s flagged%s',
		to_char(coalesce(max(t) - (SELECT min(t) FROM server.latency), 0), '990.0'), count(*),
	count(*) FILTER (WHERE odd),
		coalesce(': ' || (array_agg(format('%s %s ms, expected %s to %s', kind,
				round(ms::numeric, 1),
		round((10 ^ posterior.quantile(p, 0.05))::numeric, 2),
			round((10 ^ posterior.quantile(p, 0.95))::numeric, 2)) ORDER BY ms DESC)
		FILTER (WHERE odd))[1], ''))
FROM (SELECT *, posterior.cdf(p, log(ms)) > 0.995 AS odd FROM server.latency
		JOIN server.watch USING (n) WHERE n > :seen) w;
