-- what is asked must fit the context; one row, few rows, constant columns and targets have answers
SET posterior.model = 'tabular_small';
CREATE TABLE t AS SELECT i, i / 10.0 AS x, 'l' || i % 3 AS k, sin(i / 4.0) AS y
	FROM generate_series(1, 40) i;
CREATE TABLE c AS SELECT posterior.context(y, x, k) AS ctx FROM t;
-- alone or among others, in any order: identical
CREATE TABLE q AS SELECT n, n * 0.3 - 4 AS x, CASE n % 4 WHEN 0 THEN NULL WHEN 1 THEN 'never seen'
	ELSE 'l' || n % 3 END AS k FROM generate_series(1, 600) n;
CREATE TABLE alone AS SELECT n, posterior.predict(ctx, q.x, q.k) AS d FROM c, q;
SELECT count(*), bool_and(p.prediction OPERATOR(posterior.=) alone.d) AS same
	FROM c, posterior.predict_rows(ctx, ARRAY(SELECT ROW(x, k) FROM q ORDER BY n)) p
	JOIN alone ON alone.n = p.ord;
SELECT count(*), bool_and(p.prediction OPERATOR(posterior.=) alone.d) AS same
	FROM c, posterior.predict_rows(ctx, ARRAY(SELECT ROW(x, k) FROM q ORDER BY n DESC)) p
	JOIN alone ON alone.n = 601 - p.ord;
-- rows of a named type; columns that have been dropped do not count
CREATE TABLE shape (gone int, x numeric, k text);
ALTER TABLE shape DROP COLUMN gone;
INSERT INTO shape SELECT x, k FROM q;
SELECT count(*), bool_and(p.prediction OPERATOR(posterior.=) posterior.predict(ctx,
			r.x, r.k)) AS same
FROM c, (SELECT array_agg(s) AS rows FROM (SELECT s FROM shape s LIMIT 7) s) a,
	posterior.predict_rows(ctx, rows) p, LATERAL (SELECT (rows[p.ord]).*) r;
SELECT count(*), count(DISTINCT p.prediction)
	FROM c, posterior.predict_rows(ctx,
		ARRAY[[ROW(1, 'l1'), ROW(2, 'l1')], [ROW(3, 'l2'), ROW(4, 'l2')]]) p;
-- the answer does not depend on what was asked before with the same context
SELECT posterior.predict(ctx, 0.5, 'l1')
	OPERATOR(posterior.=) (SELECT posterior.predict(ctx, 0.5, 'l1') FROM c) AS same
	FROM c, generate_series(1, 3);
-- as few rows as the model takes; a constant target; a target far from zero keeps its place
SELECT count(*) AS rows,
	posterior.stddev(posterior.predict(posterior.context(y, x), 0.25)) > 0 AS proper FROM t
	WHERE i <= (SELECT min_rows FROM posterior.models WHERE name = 'tabular_small');
SELECT abs(posterior.mean(posterior.predict(posterior.context(y * s + m, x), 2))
		- (posterior.mean(posterior.predict(posterior.context(y, x), 2)) * s
			+ m)) < 1e-3 * s AS moves_along,
	abs(posterior.stddev(posterior.predict(posterior.context(y * s + m, x),
				2)) / (posterior.stddev(posterior.predict(posterior.context(y, x), 2)) * s)
			- 1) < 1e-2 AS widens_along
FROM t, (VALUES (1e6, 0), (1e-6, 0), (1e-15, 0), (1, 1000), (1000, -1e5)) v (s, m) GROUP BY s, m
	ORDER BY s, m;
SELECT abs(posterior.mean(posterior.predict(posterior.context(-3e5, x, k), 2, 'l1'))
		+ 3e5) < 3e4 AS constant FROM t;
-- several predictions in one statement, each from its own rows
SELECT k, posterior.predict(posterior.context(y, x), 0.5)
	OPERATOR(posterior.=) (SELECT posterior.predict(posterior.context(y, x), 0.5) FROM t b
		WHERE b.k = a.k) AS own FROM t a GROUP BY k ORDER BY k;
-- in a view, in a prepared statement with a generic plan; not in an index
CREATE VIEW v AS SELECT n, posterior.predict(ctx, q.x, q.k) AS d FROM c, q;
SELECT count(*) FROM v JOIN alone USING (n) WHERE v.d OPERATOR(posterior.=) alone.d;
PREPARE p (float8, text) AS SELECT posterior.predict(ctx, $1, $2)
	OPERATOR(posterior.=) posterior.predict(ctx, 0.5, 'l1') AS same FROM c;
SET plan_cache_mode = force_generic_plan;
EXECUTE p (0.5, 'l1');
EXECUTE p (0.6, 'l1');
RESET plan_cache_mode;
DEALLOCATE p;
CREATE INDEX ON c (posterior.predict(ctx, 1, 'l1'));
-- errors, by SQLSTATE
\set VERBOSITY sqlstate
SELECT posterior.predict(ctx) FROM c;
SELECT posterior.predict(ctx, 1) FROM c;
SELECT posterior.predict(ctx, 1, 'a', 2) FROM c;
SELECT posterior.predict(ctx, 'a'::text, 'a') FROM c;
SELECT posterior.predict(ctx, 1, 2) FROM c;
SELECT posterior.predict(ctx, 'Infinity'::float8, 'a') FROM c;
SELECT posterior.predict(ctx, now(), 'a') FROM c;
SELECT posterior.predict(ctx, ARRAY[1], 'a') FROM c;
SELECT posterior.predict(posterior.context(y, x), 1) FROM t WHERE i <= 2;
SELECT posterior.predict(posterior.context(NULL::float8, x), 1) FROM t;
SELECT * FROM c, posterior.predict_rows(ctx, ARRAY[ROW(1)]);
SELECT * FROM c, posterior.predict_rows(ctx, ARRAY[1, 2]);
SELECT * FROM c, posterior.predict_rows(ctx, ARRAY[ROW('a'::text, 1)]);
SELECT * FROM c, posterior.predict_rows(ctx, ARRAY[ROW(1, 'a'), NULL]);
SELECT * FROM c, posterior.predict_rows(ctx, ARRAY[ROW(1, 'a'), ROW(1, 'a', 2)]);
SELECT * FROM c, posterior.predict_rows(ctx, ARRAY[ROW(1, 'a'), ROW('NaN'::float8, 'a')]);
SELECT * FROM c, posterior.sample(ctx, ARRAY[ROW(1, 'a')], 2147483647, 1), generate_series(1, 2);
SET posterior.model = 'no such model';
SELECT posterior.predict(ctx, 1, 'a') FROM c;
SELECT posterior.regress(y, x) OVER () FROM t LIMIT 1;
SELECT posterior.log_evidence(y, x ORDER BY i) FROM t;
\set VERBOSITY default
RESET posterior.model;
-- nothing is asked, nothing is answered
SELECT count(*) FROM posterior.predict_rows(NULL, ARRAY[1]), posterior.sample(NULL, ARRAY[1]);
SELECT count(*) FROM c, posterior.predict_rows(ctx, NULL::float8[]);
SELECT posterior.predict(ctx, 1, 'l1') IS NULL FROM c WHERE false;
DROP VIEW v;
DROP TABLE t, c, q, alone, shape;
