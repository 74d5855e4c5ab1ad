\set aid random(1, 80000)
SELECT bid, count(*), sum(abalance), max(abs(abalance)) FROM pgbench_accounts
	WHERE aid BETWEEN :aid AND :aid + 20000 GROUP BY bid;
