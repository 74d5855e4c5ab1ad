-- kernels and threads: what there is, and that answers do not depend on the number of threads
SELECT count(*) FILTER (WHERE used) AS used, bool_or(name = 'reference') AS reference,
	(array_agg(used))[1] AS the_first FROM posterior.kernels();
SET posterior.kernels = reference;
SELECT name FROM posterior.kernels() WHERE used;
RESET posterior.kernels;
-- keys and values of 16 bits: nearly the same answers, from encodings of their own
SET posterior.model = 'gp1d';
CREATE VIEW means AS
	SELECT ord, posterior.mean(prediction) AS mean, posterior.stddev(prediction) AS sd
	FROM (SELECT posterior.context(sin(i / 20.0) + 0.3 * sin(57 * i), i / 50.0 - 2
				ORDER BY i) AS ctx FROM generate_series(1, 200) i) c,
		posterior.predict_rows(ctx,
				(SELECT array_agg(i / 20.0 - 1.9) FROM generate_series(1, 75) i));
CREATE TABLE whole AS TABLE means;
SET posterior.kernels = half;
CREATE TABLE half AS TABLE means;
SELECT count(*), max(abs(h.mean - w.mean) / w.sd) < 0.01 AS near FROM whole w
	JOIN half h USING (ord);
RESET posterior.kernels;
SELECT count(*) AS changed FROM (TABLE means EXCEPT TABLE whole) d;
DROP VIEW means;
DROP TABLE whole, half;
SET posterior.threads = -1;
SET posterior.threads = 65;
SHOW posterior.threads;
SET posterior.model = 'gp1d';
SET posterior.cache = off;
CREATE TABLE t AS SELECT i, -2 + 4 * random() AS x FROM generate_series(1, 1500) i;
ALTER TABLE t ADD y float8;
UPDATE t SET y = sin(3 * x);
CREATE FUNCTION everything() RETURNS text LANGUAGE sql AS $$
	WITH c AS (SELECT posterior.context(y, x ORDER BY i) AS ctx FROM t),
		q AS (SELECT array_agg(x ORDER BY i) AS xs FROM t WHERE i <= 600)
	SELECT md5(concat_ws(';',
		(SELECT string_agg(p::text, ',') FROM c, q, posterior.predict_rows(ctx, xs) p),
		(SELECT string_agg(s::text, ',') FROM c, q, posterior.sample(ctx, xs[1:8], 100, 7) s),
		(SELECT posterior.log_density_averaged(ctx, 60, 3, y, x ORDER BY i)::text FROM c, t
				WHERE i <= 8 GROUP BY ctx)))
$$;
SET posterior.threads = 1;
SELECT everything() AS alone \gset
SET posterior.threads = 3;
SELECT everything() = :'alone' AS three_threads_say_the_same;
SET posterior.threads = 0;
SELECT everything() = :'alone' AS so_do_as_many_as_the_machine_has;
SET posterior.threads = 8;
SELECT everything() = :'alone' AS eight_threads_say_the_same;
-- a question of many threads is cancelled like any other, and the session goes on
SET statement_timeout = '50ms';
SELECT count(*) FROM (SELECT posterior.context(y, x ORDER BY i) AS ctx FROM t) c,
	posterior.sample(ctx, array_fill(0.5::float8, ARRAY[300]), 20000);
RESET statement_timeout;
SELECT everything() = :'alone' AS still;
DROP FUNCTION everything();
DROP TABLE t;
