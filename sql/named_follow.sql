-- named contexts follow what happens to their relations
-- What a statement gives, or its error.
CREATE FUNCTION try(statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	detail text;
	hint text;
BEGIN
	EXECUTE statement;
	RAISE EXCEPTION SQLSTATE 'GOOD0';
EXCEPTION WHEN SQLSTATE 'GOOD0' THEN
	RETURN 'good, and rolled back';
WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	RETURN concat_ws(' | ', SQLSTATE, SQLERRM, nullif(detail, ''), nullif(hint, ''));
END $$;
CREATE SCHEMA here;
CREATE SCHEMA there;
CREATE TABLE here.t (id int PRIMARY KEY, a float8, b int, y float8);
INSERT INTO here.t SELECT i, sin(i), i % 5, cos(i) FROM generate_series(1, 30) i;
SELECT posterior.load_model('rows', current_setting('test.models') || '/rows_tokens.safetensors');
SELECT posterior.create_context('c', 'here.t', 'y', order_by => 'id DESC', filter => 'b <> 2', model => 'rows');
SELECT posterior.create_context('other', 'here.t', 'y', '{a}', order_by => 'id', model => 'toy');
CREATE FUNCTION answer() RETURNS text LANGUAGE sql AS $$ SELECT md5(posterior.predict('c', q)::text) FROM (SELECT 40 AS id, 0.5::float8 AS a, 2 AS b) q $$;
SELECT answer() AS before \gset

-- renames of columns, table and schema
ALTER TABLE here.t RENAME COLUMN a TO "A b";
SELECT try('SELECT answer()');
CREATE OR REPLACE FUNCTION answer() RETURNS text LANGUAGE sql AS $$ SELECT md5(posterior.predict('c', q)::text) FROM (SELECT 40 AS id, 0.5::float8 AS "A b", 2 AS label) q $$;
ALTER TABLE here.t RENAME COLUMN b TO label;
ALTER TABLE here.t RENAME COLUMN y TO target;
SELECT answer() = :'before' AS same;
ALTER TABLE here.t RENAME TO renamed;
SELECT answer() = :'before' AS same;
ALTER SCHEMA here RENAME TO elsewhere;
SELECT answer() = :'before' AS same;
ALTER TABLE elsewhere.renamed SET SCHEMA there;
SELECT answer() = :'before' AS same;
SELECT name, relation, target, features, order_by, filter FROM posterior.contexts ORDER BY name;
SELECT target, features, filter FROM posterior.context_definition WHERE name = 'c';
-- a function that was planned before
CREATE FUNCTION planned() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN answer(); END $$;
SELECT planned() = :'before' AS same;
ALTER TABLE there.renamed RENAME TO t;
SELECT planned() = :'before' AS same;

-- columns that are added do not matter, nor do columns that are no features
ALTER TABLE there.t ADD COLUMN more text DEFAULT 'x';
SELECT answer() = :'before' AS same;
ALTER TABLE there.t DROP COLUMN more;
SELECT answer() = :'before' AS same;
-- types: still a number
ALTER TABLE there.t ALTER COLUMN label TYPE numeric, ALTER COLUMN "A b" TYPE double precision, ALTER COLUMN target TYPE numeric USING target::numeric;
SELECT try('SELECT answer()'), posterior.warm_context('c') AS rows;
-- another kind of feature
ALTER TABLE there.t ALTER COLUMN "A b" TYPE text;
SELECT try('SELECT answer()'), posterior.warm_context('c') AS rows;
SELECT try('SELECT posterior.warm_context(''other'')');
-- none at all
ALTER TABLE there.t ALTER COLUMN "A b" TYPE json USING 'null';
SELECT try('SELECT answer()');
SELECT name, features FROM posterior.contexts ORDER BY name;
ALTER TABLE there.t ALTER COLUMN "A b" TYPE float8 USING sin(id);
ALTER TABLE there.t ALTER COLUMN target TYPE text;
SELECT try('SELECT answer()');
ALTER TABLE there.t ALTER COLUMN target TYPE float8 USING cos(id);
ALTER TABLE there.t ALTER COLUMN label TYPE int;
SELECT answer() = :'before' AS same;

-- dropped columns
BEGIN;
ALTER TABLE there.t DROP COLUMN "A b";
SELECT try('SELECT answer()');
SELECT name, target, features, order_by, filter FROM posterior.contexts ORDER BY name;
SELECT posterior.alter_context('c', features => '{label}');
SELECT posterior.warm_context('c');
ROLLBACK;
SELECT answer() = :'before' AS same;
BEGIN;
ALTER TABLE there.t DROP COLUMN target;
SELECT try('SELECT answer()');
SELECT posterior.alter_context('other', target => 'label');
SELECT posterior.warm_context('other');
ROLLBACK;
BEGIN;
ALTER TABLE there.t DROP COLUMN id;
SELECT try('SELECT answer()');
SELECT try('SELECT posterior.warm_context(''other'')');
SELECT posterior.alter_context('other', order_by => 'label');
SELECT posterior.warm_context('other');
ROLLBACK;
BEGIN;
ALTER TABLE there.t DROP COLUMN label;
SELECT try('SELECT answer()');
SELECT filter FROM posterior.contexts WHERE name = 'c';
SELECT posterior.alter_context('c', filter => '', features => '{id,"A b"}');
SELECT posterior.warm_context('c');
ROLLBACK;

-- triggers switched off, dropped, missing: the rows are read, and create_context or alter_context puts them back
CREATE VIEW notes AS SELECT tgrelid::regclass AS relation, string_agg(format('%s %s', tgname, tgenabled), ', ' ORDER BY tgname) AS triggers FROM pg_trigger WHERE tgname LIKE 'posterior%' GROUP BY 1;
ALTER TABLE there.t DISABLE TRIGGER ALL;
DELETE FROM there.t WHERE id = 8;
SELECT answer() <> :'before' AS changed, posterior.warm_context('other') AS rows;
INSERT INTO there.t VALUES (8, sin(8), 3, cos(8));
SELECT answer() = :'before' AS same;
DROP TRIGGER posterior_note_insert ON there.t;
TABLE notes;
SELECT posterior.alter_context('c', maintain => 'trigger');
TABLE notes;

-- a statement's snapshot shows the definition that it shows
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT posterior.warm_context('other');
SAVEPOINT s;
SELECT posterior.alter_context('other', filter => 'id > 20');
SELECT posterior.warm_context('other');
ROLLBACK TO s;
SELECT posterior.warm_context('other');
COMMIT;

-- dropped tables take their contexts along; so do schemas, and what is rolled back was not
BEGIN;
DROP TABLE there.t;
SELECT count(*) FROM posterior.contexts;
SELECT try('SELECT answer()');
ROLLBACK;
SELECT name FROM posterior.contexts ORDER BY name;
CREATE TABLE bystander (x int, y int);
SELECT posterior.create_context('bystander', 'bystander', 'y', order_by => 'x');
DROP SCHEMA there CASCADE;
SELECT name FROM posterior.contexts ORDER BY name;
CREATE VIEW v AS SELECT * FROM bystander;
SELECT posterior.create_context('view', 'v', 'y', order_by => 'x');
DROP VIEW v;
SELECT name FROM posterior.contexts ORDER BY name;
-- also where ordinary triggers do not fire
SET session_replication_role = replica;
DROP TABLE bystander;
RESET session_replication_role;
SELECT name FROM posterior.contexts ORDER BY name;

-- the extension goes and leaves the tables, without triggers
CREATE TABLE left_over (x int PRIMARY KEY, y int);
SELECT posterior.create_context('c', 'left_over', 'y');
ALTER EXTENSION pg_posterior UPDATE;
TABLE notes;
SELECT count(*) FROM posterior.contexts;
\set VERBOSITY terse
DROP EXTENSION pg_posterior;
SET client_min_messages = warning;
DROP EXTENSION pg_posterior CASCADE;
RESET client_min_messages;
\set VERBOSITY default
TABLE notes;
INSERT INTO left_over VALUES (1, 1);
DROP TABLE left_over;
SELECT count(*) FROM pg_event_trigger WHERE evtname LIKE 'posterior%';
CREATE EXTENSION pg_posterior;
SELECT count(*) FROM posterior.contexts;
DROP VIEW notes;
DROP SCHEMA elsewhere;
DROP FUNCTION answer, planned, try;
