-- call sites of named contexts that see different rows at moments whose snapshots look the same,
-- and what is left of questions that fail
SET posterior.model = 'tabular_small';
-- an encoding that cannot be continued leaves no session waiting for it
CREATE TABLE t (id int PRIMARY KEY, x float8, y float8);
INSERT INTO t SELECT i, i / 10.0, sin(i) FROM generate_series(1, 12) i;
SELECT posterior.create_context('t', 't', 'y', features => '{x}', order_by => 'id', model => 'toy');
SELECT posterior.warm_context('t');
UPDATE t SET x = NULL WHERE id = 11;
SET statement_timeout = '60s';
SELECT posterior.predict('t', q) FROM (SELECT 0.5::float8 AS x) q;
SELECT posterior.predict('t', q) FROM (SELECT 0.5::float8 AS x) q;
UPDATE t SET x = 1.5 WHERE id = 11;
SELECT posterior.predict('t', q) IS NOT NULL AS answered FROM (SELECT 0.5::float8 AS x) q;
RESET statement_timeout;
DROP TABLE t;
-- functions that a statement calls for each row see its earlier rows
CREATE TABLE t (id int PRIMARY KEY, x float8, y float8);
INSERT INTO t SELECT i, i / 10.0, 5 FROM generate_series(1, 6) i;
CREATE VIEW v AS SELECT * FROM t WHERE y > 0;
CREATE TABLE parent (id int, x float8, y float8);
CREATE TABLE child () INHERITS (parent);
SELECT posterior.create_context('t', 't', 'y', features => '{x}', order_by => 'id');
SELECT posterior.create_context('v', 'v', 'y', features => '{x}', order_by => 'id');
SELECT posterior.create_context('parent', 'parent', 'y', features => '{x}', order_by => 'id');
CREATE TABLE seen (id int, rows int, same boolean);
CREATE FUNCTION ask_for_row() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	assigned float8[];
	executed float8[];
	n int;
BEGIN
	-- simple expressions, which PL/pgSQL keeps from call to call
	assigned[1] := posterior.mean(posterior.predict('t', NEW));
	assigned[2] := posterior.mean(posterior.predict('v', NEW));
	assigned[3] := posterior.mean(posterior.predict('parent', NEW));
	EXECUTE 'SELECT count(*), ARRAY[posterior.mean(posterior.predict(''t'', $1)),
			posterior.mean(posterior.predict(''v'', $1)),
			posterior.mean(posterior.predict(''parent'', $1))] FROM t' INTO n, executed USING NEW;
	INSERT INTO seen VALUES (NEW.id, n, assigned = executed);
	INSERT INTO child VALUES (NEW.id, NEW.x, NEW.y);
	RETURN NEW;
END $$;
INSERT INTO child SELECT * FROM t;
CREATE TRIGGER ask BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION ask_for_row();
INSERT INTO t VALUES (7, 0.7, 1000), (8, 0.7, 1000), (9, 0.7, 1000);
SELECT * FROM seen ORDER BY id;
DROP TABLE seen, child, parent, t CASCADE;
-- what policies let through can depend on settings, and whether one may ask as well
CREATE ROLE regress_tenant;
CREATE TABLE t AS SELECT i AS id, i % 2 = 0 AS even, i AS x, CASE WHEN i % 2 = 0 THEN 1000.0
	ELSE -1000.0 END AS y FROM generate_series(1, 40) i;
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
CREATE POLICY one ON t USING (even = (current_setting('test.tenant') = 'even'));
CREATE VIEW v WITH (security_barrier) AS SELECT * FROM t
	WHERE even = (current_setting('test.tenant') = 'even');
GRANT SELECT ON t, v TO regress_tenant;
SELECT posterior.create_context('t', 't', 'y', features => '{x}', order_by => 'id');
SELECT posterior.create_context('v', 'v', 'y', features => '{x}', order_by => 'id');
CREATE FUNCTION ask() RETURNS text STABLE LANGUAGE plpgsql AS $$
DECLARE
	r record;
BEGIN
	SELECT 20 AS x INTO r;
	RETURN sign(posterior.mean(posterior.predict('t', r))) || ' '
		|| sign(posterior.mean(posterior.predict('v', r)));
END $$;
SET ROLE regress_tenant;
SET posterior.row_security = private;
BEGIN;
SET LOCAL test.tenant = 'even';
SELECT ask();
SET LOCAL test.tenant = 'odd';
SELECT ask();
DO $$
DECLARE
	r record;
	answer float8;
BEGIN
	SELECT 20 AS x INTO r;
	FOR i IN 1..2 LOOP
		answer := sign(posterior.mean(posterior.predict('t', r)));
		RAISE NOTICE '%', answer;
		PERFORM set_config('test.tenant', 'even', true);
	END LOOP;
END $$;
SET LOCAL posterior.row_security = refuse;
SELECT ask();
ROLLBACK;
RESET ROLE;
DROP TABLE t CASCADE;
DROP FUNCTION ask(), ask_for_row();
DROP ROLE regress_tenant;
