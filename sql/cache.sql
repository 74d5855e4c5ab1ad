-- the cache of encodings; what it counts depends on the setting, so the expectation does as well
-- (counters are those of one process where the cache is not shared: no workers; where it is, they
-- are the server's: a worker that has begun to encode rows of the test before ends first)
SET max_parallel_workers_per_gather = 0;
DO $$ BEGIN
	WHILE EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'posterior worker') LOOP
		PERFORM pg_sleep(0.01), pg_stat_clear_snapshot();
	END LOOP;
END $$;
SET posterior.model = 'gp1d';
CREATE TABLE t AS SELECT i / 10.0 AS x, sin(i) AS y FROM generate_series(1, 30) i;
CREATE TABLE c AS SELECT posterior.context(y, x) AS ctx FROM t;
SELECT hits AS hits0, misses AS misses0 FROM posterior.stat_cache() \gset
SELECT count(posterior.predict(ctx, 0.1)) FROM c;
SELECT count(posterior.predict(ctx, 0.2)) FROM c;
SELECT CASE current_setting('posterior.cache') WHEN 'off' THEN misses - :misses0 = 0 ELSE misses
	- :misses0 = 1 AND hits - :hits0 = 1 END AS once FROM posterior.stat_cache();
-- a cache that is too small gives the same answers
SELECT posterior.predict(ctx, 0.3) AS large FROM c \gset
DO $$ BEGIN IF NOT (SELECT shared FROM posterior.stat_cache()) THEN SET posterior.cache_size = 64;
END IF; END $$;
CREATE TABLE many AS SELECT g, posterior.context(y + g, x) AS ctx
	FROM t, generate_series(1, 20) g GROUP BY g;
SELECT count(posterior.predict(ctx, 0.3)) FROM many;
SELECT posterior.predict(ctx, 0.3)::text = :'large' AS same FROM c;
SELECT shared OR bytes <= 400000 AS bounded FROM posterior.stat_cache();
-- an error in the middle leaves nothing held: everything can still be evicted
SELECT posterior.predict(ctx, CASE WHEN g = 7 THEN 'NaN'::float8 ELSE 1 END) IS NULL FROM many;
SELECT count(posterior.predict(ctx, 0.3)) FROM many;
SELECT shared OR entries < 10 AS evicted FROM posterior.stat_cache();
DO $$ BEGIN IF NOT (SELECT shared FROM posterior.stat_cache()) THEN RESET posterior.cache_size;
END IF; END $$;
DROP TABLE t, c, many;
