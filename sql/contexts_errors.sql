-- named contexts: what is refused, and with which rights
CREATE TABLE t (k int PRIMARY KEY, x float8, label text, y float8, doc jsonb);
INSERT INTO t SELECT i, i, 'a', i FROM generate_series(1, 20) i;
SELECT posterior.predict('nothing', t) FROM t;
SELECT posterior.create_context('c', 't', 'doc');
SELECT posterior.create_context('c', 't', 'z');
SELECT posterior.create_context('c', 't', 'y', features => '{x,y}');
SELECT posterior.create_context('c', 't', 'y', features => '{x,x}');
SELECT posterior.create_context('c', 't', 'y', features => '{doc}');
SELECT posterior.create_context('c', 't', 'y', features => '{}');
SELECT posterior.create_context('c', 't', 'y', features => '{x,NULL}');
SELECT posterior.create_context('c', 't', 'y', order_by => 'x + 1');
SELECT posterior.create_context('c', 't', 'y', order_by => 'x; DROP TABLE t');
SELECT posterior.create_context('c', 't', 'y', order_by => 'z');
SELECT posterior.create_context('c', 't', 'y', model => 'nobody');
SELECT posterior.create_context('c', 't', 'y', max_rows => -1);
SELECT posterior.create_context('c', 't', 'y', maintain => 'always');
SELECT posterior.create_context('', 't', 'y');
SELECT posterior.create_context(NULL, 't', 'y');
SELECT posterior.create_context('c', NULL, 'y');
-- filters: conditions of PostgreSQL's own immutable functions only
CREATE FUNCTION spy(float8) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true';
SELECT posterior.create_context('c', 't', 'y', filter => 'spy(x)');
SELECT posterior.create_context('c', 't', 'y', filter => 'x > random()');
SELECT posterior.create_context('c', 't', 'y', filter => 'x > (SELECT 1)');
SELECT posterior.create_context('c', 't', 'y', filter => 'x');
SELECT posterior.create_context('c', 't', 'y', filter => 'true) UNION SELECT (true');
SELECT posterior.create_context('c', 't', 'y', filter => 'true ORDER BY 1');
SELECT count(*) AS contexts FROM posterior.contexts;

SELECT posterior.create_context('c', 't', 'y', features => '{x,label}');
SELECT posterior.create_context('c', 't', 'y');
SELECT posterior.alter_context('c', relation => 'pg_class');
SELECT posterior.alter_context('c', target => 'doc');
SELECT posterior.alter_context('nothing');
SELECT posterior.drop_context('nothing');
SELECT posterior.refresh_context('nothing');
SELECT posterior.warm_context('nothing');
-- rows
SELECT posterior.predict('c', 1);
SELECT posterior.predict('c', q) FROM (SELECT 1.0::float8 AS x) q;
SELECT posterior.predict('c', q) FROM (SELECT 1.0::float8 AS x, 2 AS label) q;
SELECT posterior.predict('c', ROW(1.0::float8, 'a'));
SELECT posterior.predict('c', q) FROM (SELECT 1.0::float8 AS x, 'a' AS label, 2.0::float8 AS x) q;
SELECT posterior.predict('c', q) FROM (SELECT 'NaN'::float8 AS x, 'a' AS label) q;
SELECT * FROM posterior.predict_rows('c', ARRAY[1, 2]);
SELECT * FROM posterior.predict_rows('c', ARRAY[NULL::t]);
SELECT posterior.log_density('c', y, 1) FROM t;
SELECT posterior.predict(NULL::text, t) IS NULL AS "null" FROM t WHERE k = 1;
-- a row of the context that cannot be
INSERT INTO t VALUES (21, 'Infinity', 'a', 1);
SELECT posterior.warm_context('c');
UPDATE t SET x = 1, y = 'NaN' WHERE k = 21;
SELECT posterior.warm_context('c');
DELETE FROM t WHERE k = 21;
-- a column that is gone
ALTER TABLE t DROP COLUMN label;
SELECT posterior.warm_context('c');
SELECT features FROM posterior.contexts;
SELECT posterior.alter_context('c', features => '{x}');
SELECT posterior.warm_context('c');

-- rights
CREATE ROLE posterior_reader;
CREATE ROLE posterior_stranger;
GRANT SELECT (k, x, y) ON t TO posterior_reader;
SET ROLE posterior_stranger;
SELECT posterior.predict('c', q) FROM (SELECT 1.0::float8 AS x) q;
SELECT posterior.create_context('mine', 't', 'y');
SELECT posterior.drop_context('c');
SELECT posterior.alter_context('c', max_rows => 3);
INSERT INTO posterior.context_definition SELECT * FROM posterior.context_definition;
DELETE FROM posterior.context_definition;
SET ROLE posterior_reader;
SELECT posterior.predict('c', q) IS NOT NULL AS "columns are enough"
	FROM (SELECT 1.0::float8 AS x) q;
SELECT posterior.create_context('mine', 't', 'y', features => '{x}', order_by => 'k',
		maintain => 'trigger');
SELECT posterior.create_context('mine', 't', 'y', features => '{x}', order_by => 'k');
SELECT owner, maintain FROM posterior.contexts WHERE name = 'mine';
SELECT posterior.warm_context('mine');
RESET ROLE;
-- policies
GRANT SELECT ON t TO posterior_reader;
ALTER TABLE t ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON t TO posterior_reader USING (k <= 8);
SELECT posterior.warm_context('c') AS owner;
SET ROLE posterior_reader;
SELECT posterior.warm_context('c');
SET posterior.row_security = private;
SELECT posterior.warm_context('c') AS reader;
RESET posterior.row_security;
RESET ROLE;
SELECT posterior.warm_context('c') AS owner;
-- a transaction that may only read
BEGIN READ ONLY;
\set ON_ERROR_ROLLBACK on
SELECT posterior.create_context('r', 't', 'y');
SELECT posterior.alter_context('c', max_rows => 5);
SELECT posterior.refresh_context('c');
SELECT posterior.drop_context('c');
SELECT posterior.drop_model('toy');
SELECT posterior.load_model('r', '\x00'::bytea);
SELECT posterior.load_model('r', '/nowhere');
SELECT posterior.warm_context('c');
\unset ON_ERROR_ROLLBACK
ROLLBACK;
-- the trigger functions only look at what has happened: before it, they would keep rows from being
-- written
CREATE TRIGGER wrong BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION posterior.note_insert();
INSERT INTO t (k) VALUES (100);
DROP TRIGGER wrong ON t;
CREATE TRIGGER wrong BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION posterior.note_change();
INSERT INTO t (k) VALUES (100);
DROP TRIGGER wrong ON t;
-- nor is there a row without FOR EACH ROW
CREATE TRIGGER wrong AFTER INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION posterior.note_insert();
INSERT INTO t (k) VALUES (100);
DROP TRIGGER wrong ON t;
SELECT posterior.note_insert();
DROP FUNCTION spy;
DROP TABLE t;
SELECT count(*) AS contexts FROM posterior.contexts;
DROP ROLE posterior_reader, posterior_stranger;
