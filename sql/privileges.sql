-- predictions need the right to read the rows, loading a model a right of its own
CREATE ROLE posterior_reader;
CREATE TABLE t AS SELECT i, i % 2 AS owner, i / 10.0 AS x, sin(i) AS y
	FROM generate_series(1, 20) i;
SET ROLE posterior_reader;
SELECT posterior.context(y, x) IS NULL FROM t;
RESET ROLE;
GRANT SELECT (x, y, owner) ON t TO posterior_reader;
SET ROLE posterior_reader;
SELECT posterior.rows(posterior.context(y, x)) FROM t;
SELECT posterior.context(y, x, i) IS NULL FROM t;
SELECT posterior.kind(posterior.predict(posterior.context(y, x), 0.5)) FROM t;
SELECT posterior.load_model('x', '/tmp/x');
SELECT posterior.load_model('x', '\x'::bytea);
SELECT posterior.drop_model('toy');
INSERT INTO posterior.model_file (name) VALUES ('x');
RESET ROLE;
-- EXECUTE alone is not enough: the row is written with the caller's rights, the file read with them
GRANT EXECUTE ON FUNCTION posterior.load_model(text, text), posterior.load_model(text, bytea),
	posterior.drop_model(text) TO posterior_reader;
SET ROLE posterior_reader;
SELECT posterior.load_model('x', '/tmp/x');
SELECT posterior.drop_model('toy');
RESET ROLE;
-- row-level security holds for aggregates and frames
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON t TO posterior_reader USING (owner = 1);
SET ROLE posterior_reader;
SELECT posterior.rows(posterior.context(y, x)) FROM t;
SELECT count(*), count(d)
	FROM (SELECT posterior.regress(y, x)
		OVER (ORDER BY x ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS d FROM t) w;
-- no schema of the caller's stands in front of ours
CREATE TEMP TABLE model_file (name text, version uuid, file bytea);
SET search_path = pg_temp, public;
SELECT posterior.kind(posterior.predict(posterior.context(y, x), 0.5)) FROM public.t;
RESET search_path;
RESET ROLE;
DROP TABLE t;
REVOKE ALL ON FUNCTION posterior.load_model(text, text), posterior.load_model(text, bytea),
	posterior.drop_model(text) FROM posterior_reader;
DROP OWNED BY posterior_reader;
DROP ROLE posterior_reader;
