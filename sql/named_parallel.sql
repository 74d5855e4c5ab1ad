-- named contexts in parallel queries, also of a transaction that has written the table, whose
-- workers do not hold its locks
\i sql/include/chain.sql
CREATE TABLE asked (x float8, z int) WITH (parallel_workers = 2);
INSERT INTO asked SELECT i / 100.0, i % 7 FROM generate_series(1, 400) i;
ANALYZE asked, t;
CREATE FUNCTION scratch() RETURNS posterior.distribution STABLE PARALLEL SAFE
	LANGUAGE plpgsql SET posterior.model = 'chain' SET posterior.cache = off AS $$
BEGIN
	RETURN posterior.predict((SELECT posterior.context(y, x, z ORDER BY k) FROM t), 0.5::float8, 2);
END $$;
-- what a user may declare, though the functions that take a name are for the leader: then workers
-- ask
CREATE FUNCTION by_worker(x float8, z int) RETURNS posterior.distribution STABLE PARALLEL SAFE
	LANGUAGE plpgsql AS $$
BEGIN
	RETURN posterior.predict('c', q) FROM (SELECT by_worker.x, by_worker.z) q;
END $$;
CREATE VIEW by_leader AS
	SELECT bool_and(posterior.predict('c', a)
		OPERATOR(posterior.=) posterior.predict((SELECT posterior.context(y, t.x, t.z ORDER BY k)
			FROM t), a.x, a.z)) AS same, count(*) FROM asked a WHERE a.z < 2;
CREATE VIEW by_workers AS SELECT min(d) = max(d) AND min(d) = scratch()::text AS same, count(*)
	FROM (SELECT by_worker(0.5, 2)::text AS d FROM asked) a;
CREATE VIEW inside AS
	SELECT bool_and(posterior.predict('c', q) OPERATOR(posterior.=) scratch()) AS same
	FROM (SELECT 0.5::float8 AS x, 2 AS z FROM generate_series(1, 2)) q;
SET posterior.model = 'chain';
\i sql/include/parallel.sql
-- the plans: the leader alone asks, or the workers do
EXPLAIN (VERBOSE, COSTS OFF) SELECT posterior.predict('c', a) FROM asked a WHERE a.z < 2;
EXPLAIN (VERBOSE, COSTS OFF) SELECT by_worker(x, z) FROM asked a WHERE a.z < 2;
CREATE FUNCTION workers() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (ANALYZE, FORMAT json) SELECT by_worker(x, z) FROM asked a
		WHERE a.z < 2' INTO plan;
	RETURN plan #>> '{0,Plan,Workers Launched}';
END $$;
-- first what is there is proven by two transactions
TABLE inside;
INSERT INTO other VALUES (1);
TABLE inside;
TABLE by_leader;
TABLE by_workers;
SELECT workers() > '0' AS launched;
BEGIN;
INSERT INTO t (k, x, y) VALUES (11, 1, 1);
TABLE by_leader;
TABLE by_workers;
SELECT workers() > '0' AS launched;
UPDATE t SET y = 7 WHERE k = 4;
TABLE by_workers;
TABLE by_leader;
SAVEPOINT s;
DELETE FROM t WHERE k = 2;
TABLE by_workers;
ROLLBACK TO s;
TABLE by_workers;
TABLE inside;
COMMIT;
TABLE by_workers;
TABLE by_leader;
TABLE inside;
INSERT INTO other VALUES (1);
TABLE inside;
BEGIN ISOLATION LEVEL REPEATABLE READ;
INSERT INTO t (k, x, y) VALUES (12, 1, 1);
TABLE by_workers;
ROLLBACK;
-- nothing of it was published
TABLE by_leader;
-- where every query that can be is parallel; 16 renamed the setting
SELECT name AS force_parallel FROM pg_settings
	WHERE name IN ('force_parallel_mode', 'debug_parallel_query') \gset
SET :force_parallel = on;
TABLE inside;
BEGIN;
INSERT INTO t (k, x, y) VALUES (13, 1, 1);
TABLE inside;
SELECT by_worker(0.5, 2) OPERATOR(posterior.=) scratch() AS same;
ROLLBACK;
SELECT by_worker(0.5, 2) OPERATOR(posterior.=) scratch() AS same;
SET :force_parallel = regress;
TABLE inside;
BEGIN;
INSERT INTO t (k, x, y) VALUES (13, 1, 1);
TABLE inside;
SELECT by_worker(0.5, 2) OPERATOR(posterior.=) scratch() AS same;
COMMIT;
SELECT by_worker(0.5, 2) OPERATOR(posterior.=) scratch() AS same;
TABLE by_leader;
RESET :force_parallel;
DROP VIEW by_leader, by_workers, inside;
DROP TABLE t, other, asked;
DROP FUNCTION by_worker, scratch, workers;
SELECT posterior.drop_model('chain');
