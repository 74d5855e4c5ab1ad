-- named contexts follow what happens to their relations
\i sql/include/try.sql
CREATE SCHEMA here;
CREATE SCHEMA there;
CREATE TABLE here.t (id int PRIMARY KEY, a float8, b int, y float8);
INSERT INTO here.t SELECT i, sin(i), i % 5, cos(i) FROM generate_series(1, 30) i;
SELECT posterior.load_model('rows', current_setting('test.models') || '/rows_tokens.safetensors');
SELECT posterior.create_context('c', 'here.t', 'y', order_by => 'id DESC', filter => 'b <> 2',
		model => 'rows');
SELECT posterior.create_context('other', 'here.t', 'y', '{a}', order_by => 'id', model => 'toy');
CREATE FUNCTION answer() RETURNS text LANGUAGE sql AS $$ SELECT md5(posterior.predict('c', q)::text)
	FROM (SELECT 40 AS id, 0.5::float8 AS a, 2 AS b) q $$;
SELECT answer() AS before \gset

-- renames of columns, table and schema
ALTER TABLE here.t RENAME COLUMN a TO "A b";
SELECT try('SELECT answer()');
CREATE OR REPLACE FUNCTION answer() RETURNS text LANGUAGE sql AS $$
	SELECT md5(posterior.predict('c', q)::text)
	FROM (SELECT 40 AS id, 0.5::float8 AS "A b", 2 AS label) q $$;
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
ALTER TABLE there.t ALTER COLUMN label TYPE numeric, ALTER COLUMN "A b" TYPE double precision,
	ALTER COLUMN target TYPE numeric USING target::numeric;
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

-- types of columns that filters and orders use
CREATE TYPE sky AS ENUM ('sun', 'rain');
CREATE TABLE turns (id int PRIMARY KEY, at int, k int, flag boolean, sky sky, x float8, y float8);
INSERT INTO turns SELECT i, 30 - i, i % 7, i % 2 = 0, 'sun', sin(i), cos(i)
	FROM generate_series(1, 30) i;
SELECT posterior.create_context('turns', 'turns', 'y', '{x}', 'at DESC, id', filter => 'k > 3',
		model => 'toy');
SELECT posterior.create_context('flags', 'turns', 'y', '{x}', 'id', filter => 'flag',
		model => 'toy');
SELECT posterior.create_context('skies', 'turns', 'y', '{x}', 'id',
		filter => 'sky = ''sun'' AND id > 3', model => 'toy');
SELECT posterior.warm_context('turns') AS turns, posterior.warm_context('flags') AS flags,
	posterior.warm_context('skies') AS skies;
-- still a condition
ALTER TABLE turns ALTER k TYPE numeric;
SELECT posterior.warm_context('turns'), filter FROM posterior.contexts WHERE name = 'turns';
-- none, in views and dumps the text of it, until the type is back
ALTER TABLE turns ALTER k TYPE text;
SELECT try('SELECT posterior.warm_context(''turns'')'), try('SELECT posterior.predict(''turns'', t)
	FROM turns t');
ALTER TABLE turns RENAME k TO "K k";
SELECT try('SELECT posterior.warm_context(''turns'')');
SELECT c.filter, d.filter AS dumped FROM posterior.contexts c JOIN posterior.context_definition d
	USING (name) WHERE name = 'turns';
BEGIN;
-- the same after pg_upgrade
CREATE CAST (posterior.row_filter AS bytea) WITHOUT FUNCTION;
CREATE CAST (bytea AS posterior.row_filter) WITHOUT FUNCTION;
UPDATE posterior.context_definition SET filter = overlay(filter::bytea PLACING '\x00000000'
		FROM 5)::posterior.row_filter WHERE name = 'turns';
SELECT try('SELECT posterior.warm_context(''turns'')');
SELECT c.filter, d.filter AS dumped FROM posterior.contexts c JOIN posterior.context_definition d
	USING (name) WHERE name = 'turns';
ROLLBACK;
BEGIN;
SELECT try('SELECT posterior.alter_context(''turns'', max_rows => 20)');
SELECT posterior.alter_context('turns', filter => '"K k" > ''3''');
SELECT posterior.warm_context('turns'), filter FROM posterior.contexts WHERE name = 'turns';
ROLLBACK;
ALTER TABLE turns ALTER "K k" TYPE int USING "K k"::int;
SELECT posterior.warm_context('turns'), filter FROM posterior.contexts WHERE name = 'turns';
-- a type with operators of its owner's: the checks of create_context hold, and none of these
-- operators is called
CREATE TYPE mine AS (i int);
CREATE FUNCTION spy(mine, int) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$
	BEGIN RAISE EXCEPTION 'called'; END $$;
CREATE OPERATOR > (LEFTARG = mine, RIGHTARG = int, FUNCTION = spy);
BEGIN;
ALTER TABLE turns ALTER "K k" TYPE mine USING row("K k")::mine;
SELECT try('SELECT posterior.warm_context(''turns'')');
SELECT try('SELECT posterior.alter_context(''turns'', filter => ''"K k" > 3'')');
ROLLBACK;
-- no boolean
BEGIN;
ALTER TABLE turns ALTER flag TYPE int USING 1;
SELECT try('SELECT posterior.warm_context(''flags'')'), posterior.warm_context('turns');
SELECT posterior.alter_context('flags', filter => 'flag = 1');
SELECT posterior.warm_context('flags');
ROLLBACK;
-- the type of a constant goes with the column's
BEGIN;
ALTER TABLE turns ALTER sky TYPE text;
SELECT try('SELECT posterior.warm_context(''skies'')');
DROP TYPE sky;
SELECT try('SELECT posterior.warm_context(''skies'')');
SELECT c.filter, d.filter AS dumped FROM posterior.contexts c JOIN posterior.context_definition d
	USING (name) WHERE name = 'skies';
ROLLBACK;
-- no order
ALTER TABLE turns ALTER at TYPE point USING point(at, at);
SELECT try('SELECT posterior.warm_context(''turns'')'), try('SELECT posterior.predict(''turns'', t)
	FROM turns t');
SELECT order_by FROM posterior.contexts WHERE name = 'turns';
BEGIN;
SELECT posterior.alter_context('turns', order_by => 'id');
SELECT posterior.warm_context('turns');
ROLLBACK;
ALTER TABLE turns ALTER at TYPE int USING at[0];
SELECT posterior.warm_context('turns');

-- filters of a dump that cannot be read are kept as they are, and never evaluated
WITH dumped AS MATERIALIZED (SELECT f::posterior.row_filter AS filter
		FROM (VALUES ('public.turns WHERE (id > 3)'), ('-'), ('public.nothing WHERE (id > 3)'),
			('"No schema".t WHERE true'), ('public.turns WHERE (k > 3)'),
			('public.turns WHERE ((sky)::text > 3)'),
	('public.turns WHERE (sky = ''snow''::public.sky)'), ('public.turns WHERE (id >'),
		('public.turns WHERE spy(row(1)::mine, id)'), ('public.turns WHERE true; DROP TABLE turns'),
		('nothing at all')) v (f))
	SELECT filter, posterior.condition(filter) FROM dumped;
-- so are relations and columns, as what is gone
WITH dumped AS MATERIALIZED (SELECT r::posterior.regrelation AS relation
		FROM (VALUES ('public.turns'), ('-'), ('public.nothing'), ('"No schema".t'),
			('4294967295')) v (r))
	SELECT relation, relation::regclass AS class, relation = 'turns'::regclass AS turns FROM dumped;
WITH dumped AS MATERIALIZED (SELECT c::posterior.regcolumn AS "column"
		FROM (VALUES ('public.turns.id'), ('-'), ('public.turns.k'), ('public.turns.ctid'),
			('public.nothing.id'), ('"No schema".t.id')) v (c))
	SELECT "column", posterior.column_name("column") FROM dumped;
SELECT try('SELECT ''id''::posterior.regcolumn');
-- nor are other errors taken for one of the text
SET max_stack_depth = '100kB';
\set VERBOSITY sqlstate
SELECT ('public.turns WHERE id > 1' || repeat(' + 1', 20000))::posterior.row_filter IS NOT NULL;
\set VERBOSITY default
RESET max_stack_depth;
\set VERBOSITY terse
UPDATE posterior.context_definition SET filter = 'public.turns WHERE spy(row(id)::public.mine, 3)'
	WHERE name = 'turns';
UPDATE posterior.context_definition SET filter = 'public.nothing WHERE (id > 3)'
	WHERE name = 'flags';
\set VERBOSITY default
SELECT name, filter FROM posterior.contexts WHERE relation = 'turns'::regclass ORDER BY name;
SELECT try('SELECT posterior.warm_context(''turns'')'), try('SELECT posterior.predict(''flags'', t)
	FROM turns t');
SELECT try('SELECT posterior.alter_context(''turns'', filter => ''spy(row(id)::public.mine, 3)'')'),
	try('SELECT posterior.alter_context(''flags'', max_rows => 20)');
SELECT try('SELECT posterior.refresh_context(''flags'')');
SELECT posterior.alter_context('turns', filter => 'id > 3'), posterior.drop_context('flags');
SELECT posterior.warm_context('turns'), posterior.warm_context('skies');
DROP TABLE turns;
DROP OPERATOR > (mine, int);
DROP FUNCTION spy;
DROP TYPE mine, sky;

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

-- triggers switched off, dropped, missing: the rows are read, and create_context or alter_context
-- puts them back
CREATE VIEW notes AS SELECT tgrelid::regclass AS relation,
	string_agg(format('%s %s', tgname, tgenabled), ', ' ORDER BY tgname) AS triggers FROM pg_trigger
	WHERE tgname LIKE 'posterior%' GROUP BY 1;
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

-- attributes of a composite type, by which rows are ordered and chosen, go without a write to the
-- table
CREATE TYPE pair AS (a int, b int);
CREATE TABLE pairs (k pair, x float8, y float8);
INSERT INTO pairs SELECT row(i % 3, -i)::pair, i, i * i FROM generate_series(1, 40) i;
SELECT posterior.create_context('ordered', 'pairs', 'y', '{x}', order_by => 'k',
		model => 'tabular_small');
SELECT posterior.create_context('chosen', 'pairs', 'y', '{x}', order_by => 'x',
		filter => '(k).a <> 1 AND (k).b < -3', model => 'tabular_small');
CREATE FUNCTION answer(name text) RETURNS text LANGUAGE sql AS $$
	SELECT posterior.predict(name, q)::text FROM (SELECT 5.0::float8 AS x) q $$;
CREATE FUNCTION answer_uncached(name text) RETURNS text LANGUAGE sql SET posterior.cache = off AS $$
	SELECT answer(name) $$;
SELECT answer('ordered') AS ordered, answer('chosen') AS chosen \gset
ALTER TYPE pair RENAME ATTRIBUTE b TO c;
SELECT answer('ordered') = :'ordered' AS ordered, answer('chosen') = :'chosen' AS chosen;
ALTER TYPE pair DROP ATTRIBUTE a;
SELECT answer('ordered') = answer_uncached('ordered') AS same,
	answer('ordered') = :'ordered' AS as_before, try('SELECT answer(''chosen'')');
SELECT name, order_by, filter FROM posterior.contexts WHERE relation = 'pairs'::regclass
	ORDER BY name;
DROP TABLE pairs;
DROP TYPE pair;
DROP FUNCTION answer(text), answer_uncached(text);

-- an index comes and goes without a lock, on a table with a context and on others
CREATE TABLE indexed (x int PRIMARY KEY, y int);
CREATE TABLE unrelated (x int);
SELECT posterior.create_context('indexed', 'indexed', 'y');
CREATE INDEX CONCURRENTLY indexed_y ON indexed (y);
CREATE INDEX CONCURRENTLY unrelated_x ON unrelated (x);
REINDEX INDEX CONCURRENTLY indexed_y;
DROP INDEX CONCURRENTLY indexed_y;
DROP INDEX CONCURRENTLY unrelated_x;
DROP TABLE indexed, unrelated;

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
