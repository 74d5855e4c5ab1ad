-- which rows, and in which order, each form has been conditioned on: hand-made models whose answer
-- says it
SELECT posterior.load_model('transparent', current_setting('test.models')
		|| '/transparent.safetensors');
SELECT posterior.load_model('transparent_order', current_setting('test.models')
		|| '/transparent_order.safetensors');
CREATE FUNCTION ids(d posterior.distribution) RETURNS int[] LANGUAGE sql AS
$$ SELECT array_agg(i ORDER BY i) FROM generate_series(0, 23) i
	WHERE (round(posterior.mean(d))::int >> i) & 1 = 1 $$;
CREATE TABLE t (id int, y float8 DEFAULT 0);
INSERT INTO t SELECT i FROM generate_series(0, 11) i;
SET posterior.model = 'transparent';
SELECT ids(posterior.predict(posterior.context(y, id), 0)) FROM t WHERE id IN (2, 3, 5, 7, 11);
SELECT id, ids(posterior.regress(y, id) OVER (ORDER BY id ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING))
	FROM t ORDER BY id;
SELECT id, ids(posterior.regress(CASE WHEN id % 3 > 0 THEN y END, id)
		OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) FROM t ORDER BY id;
SELECT id, ids(posterior.regress(y, id)
		OVER (ORDER BY id DESC ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)) FROM t
	ORDER BY id DESC LIMIT 4;
SELECT id, ids(posterior.regress(y, id)
		OVER (PARTITION BY id % 2
			ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
			EXCLUDE CURRENT ROW)) FROM t ORDER BY id;
SELECT id, ids(posterior.regress(y, id)
		OVER (ORDER BY id / 3 RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)) FROM t ORDER BY id;
SELECT id, ids(posterior.regress(y, id)
		OVER (ORDER BY id ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)) FROM t ORDER BY id;
-- a statement sees its snapshot: own rows, never what was rolled back or deleted
BEGIN;
INSERT INTO t VALUES (20);
SAVEPOINT s;
INSERT INTO t VALUES (21);
SELECT ids(posterior.predict(posterior.context(y, id), 0)) FROM t WHERE id > 8;
ROLLBACK TO s;
DELETE FROM t WHERE id = 10;
SELECT ids(posterior.predict(posterior.context(y, id), 0)) FROM t WHERE id > 8;
ROLLBACK;
SELECT ids(posterior.predict(posterior.context(y, id), 0)) FROM t WHERE id > 8;
-- a chain: what was drawn before is seen by what is drawn next
SELECT ord, ids(posterior.normal(round(y), 1))
	FROM (SELECT posterior.context(y, id) AS c FROM t WHERE id < 2) s,
	posterior.sample(c, ARRAY[4, 5, 6], 1, 1) ORDER BY ord;
-- the order of rows: kept with ORDER BY, canonical without
SET posterior.model = 'transparent_order';
SELECT round(posterior.mean(posterior.predict(posterior.context(y, id ORDER BY id), 1))) AS up,
	round(posterior.mean(posterior.predict(posterior.context(y, id ORDER BY id DESC), 1))) AS down
FROM t WHERE id BETWEEN 1 AND 4;
SELECT round(posterior.mean(posterior.predict(posterior.context(y, id), 1))) = (
		SELECT round(posterior.mean(posterior.predict(posterior.context(y, id), 1)))
		FROM (SELECT * FROM t WHERE id BETWEEN 1 AND 4 ORDER BY id DESC) s) AS canonical
FROM t WHERE id BETWEEN 1 AND 4;
SELECT id, round(posterior.mean(posterior.regress(y, id)
			OVER (ORDER BY id DESC ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING))) FROM t
	WHERE id BETWEEN 1 AND 9 ORDER BY id DESC;
SELECT id, round(posterior.mean(posterior.regress(y, id)
			OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))) FROM t
	WHERE id BETWEEN 1 AND 7 ORDER BY id;
DROP FUNCTION ids;
DROP TABLE t;
SELECT posterior.drop_model('transparent');
SELECT posterior.drop_model('transparent_order');
