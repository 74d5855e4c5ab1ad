\sleep 1700 ms
CREATE INDEX neighbour ON pgbench_accounts (abalance, filler);
DROP INDEX neighbour;
