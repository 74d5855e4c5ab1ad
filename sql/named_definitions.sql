-- create_context, alter_context, drop_context, refresh_context: what they store, and every refusal
\i sql/include/try.sql
SELECT posterior.load_model('rows', current_setting('test.models') || '/rows_tokens.safetensors');
CREATE TYPE sky AS ENUM ('sun', 'rain');
CREATE TABLE rides (id int PRIMARY KEY, at timestamptz, sky sky, "odd ""name" float8, note json,
		cnt numeric, place point, left_over text);
ALTER TABLE rides DROP COLUMN left_over;
CREATE TABLE plain (a int, b text, y float8);
CREATE TABLE dated (day date PRIMARY KEY, y float8);
CREATE TABLE keyed (a int, b int, y float8, PRIMARY KEY (a, b));
CREATE TEMP TABLE brief (x int, y int);
CREATE TABLE labelled (k text PRIMARY KEY, y float8);

-- defaults
SELECT posterior.create_context('rides', 'rides', 'cnt');
SELECT posterior.create_context('plain', 'plain', 'y');
SELECT posterior.create_context('dated', 'dated', 'y');
SELECT posterior.create_context('keyed', 'keyed', 'y');
SELECT posterior.create_context('labelled', 'labelled', 'y');
SET posterior.model = 'gp1d';
SELECT posterior.create_context('all', 'rides', 'cnt', features => '{"odd \"name"}',
		order_by => '"odd ""name" DESC, at ASC, id', model => 'toy', max_rows => 100,
		filter => '"odd ""name" > 0.1 and at < ''2024-01-01 12:00+01''', maintain => 'read');
SELECT posterior.create_context('by setting', 'plain', 'a', features => '{y}', order_by => 'a',
		max_rows => 0);
RESET posterior.model;
SELECT name, owner = current_user::regrole AS mine, relation, target, features, order_by, filter,
	model, max_rows, maintain FROM posterior.contexts ORDER BY name COLLATE "C";

-- triggers are shared by the contexts of a table and go with the last that needs them
CREATE VIEW notes AS SELECT tgrelid::regclass AS relation,
	string_agg(format('%s %s', tgname, tgenabled), ', ' ORDER BY tgname) AS triggers FROM pg_trigger
	WHERE tgname LIKE 'posterior%' GROUP BY 1 ORDER BY tgrelid::regclass::text COLLATE "C";
TABLE notes;
SELECT posterior.drop_context('plain');
SELECT count(*) FROM notes WHERE relation = 'plain'::regclass;
SELECT posterior.alter_context('by setting', maintain => 'read');
SELECT count(*) FROM notes WHERE relation = 'plain'::regclass;
SELECT posterior.alter_context('by setting', maintain => 'trigger');
SELECT count(*) FROM notes WHERE relation = 'plain'::regclass;
SELECT posterior.drop_context('by setting');
SELECT count(*) FROM notes WHERE relation = 'plain'::regclass;

-- alter_context: what is not given stays
CREATE VIEW shown AS SELECT name, target, features, order_by, filter, model, max_rows, maintain
	FROM posterior.contexts WHERE relation = 'rides'::regclass ORDER BY name COLLATE "C";
SELECT posterior.alter_context('all', features => '{id,sky}', model => 'tabular_small');
SELECT posterior.alter_context('all', target => 'odd "name');
SELECT posterior.alter_context('all', filter => 'sky = ''rain''');
SELECT posterior.alter_context('all', order_by => 'at desc');
SELECT posterior.alter_context('all', model => 'rows', max_rows => 7, maintain => 'trigger');
TABLE shown;
SELECT posterior.alter_context('all', filter => '', max_rows => 0, new_name => 'ALL of it');
TABLE shown;
SELECT posterior.alter_context('ALL of it');
SELECT posterior.alter_context('ALL of it', relation => 'rides', new_name => 'all');
SELECT id AS id_before, version AS version_before FROM posterior.context_definition
	WHERE name = 'all' \gset
SELECT posterior.refresh_context('all');
SELECT id = :'id_before' AS "same context", version <> :'version_before' AS "another version"
	FROM posterior.context_definition WHERE name = 'all';
-- rolled back with the transaction
BEGIN;
SELECT posterior.drop_context('all');
SELECT posterior.create_context('all', 'plain', 'y');
ROLLBACK;
TABLE shown;
SELECT count(*) FROM notes WHERE relation = 'plain'::regclass;

-- refusals
SELECT s AS statement, try('SELECT posterior.' || s) AS answer FROM (VALUES
	($$create_context('all', 'plain', 'y')$$),
	($$create_context('', 'plain', 'y')$$),
	($$create_context(repeat('n', 64), 'plain', 'y')$$),
	($$create_context(NULL, 'plain', 'y')$$),
	($$create_context('new', NULL, 'y')$$),
	($$create_context('new', 'plain', NULL)$$),
	($$create_context('new', 'nowhere', 'y')$$),
	($$create_context('new', 1, 'y')$$),
	($$create_context('new', 'rides_pkey', 'id')$$),
	($$create_context('new', 'brief', 'y')$$),
	($$create_context('new', 'plain', 'Y')$$),
	($$create_context('new', 'plain', 'ctid')$$),
	($$create_context('new', 'plain', 'b')$$),
	($$create_context('new', 'rides', 'sky')$$),
	($$create_context('new', 'rides', 'place')$$),
	($$create_context('new', 'rides', 'cnt', '{sky,nothing}')$$),
	($$create_context('new', 'rides', 'cnt', '{sky,note}')$$),
	($$create_context('new', 'rides', 'cnt', '{sky,xmin}')$$),
	($$create_context('new', 'rides', 'cnt', '{........pg.dropped.8........}')$$),
	($$create_context('new', 'rides', 'cnt', '{sky,cnt}')$$),
	($$create_context('new', 'rides', 'cnt', '{sky,id,sky}')$$),
	($$create_context('new', 'rides', 'cnt', '{sky,NULL}')$$),
	($$create_context('new', 'rides', 'cnt', '{}')$$),
	($$create_context('new', 'rides', 'cnt', '{{sky,id}}')$$),
	($$create_context('new', 'rides', 'cnt', order_by => 'never')$$),
	($$create_context('new', 'rides', 'cnt', order_by => '')$$),
	($$create_context('new', 'rides', 'cnt', order_by => 'id +')$$),
	($$create_context('new', 'rides', 'cnt', order_by => 'id + 1')$$),
	($$create_context('new', 'rides', 'cnt', order_by => '1')$$),
	($$create_context('new', 'rides', 'cnt', order_by => 'rides.id')$$),
	($$create_context('new', 'rides', 'cnt', order_by => 'id NULLS FIRST')$$),
	($$create_context('new', 'rides', 'cnt', order_by => 'id LIMIT 3')$$),
	($$create_context('new', 'rides', 'cnt', order_by => 'id; DROP TABLE rides')$$),
	($$create_context('new', 'rides', 'cnt', order_by => 'id, at, id')$$),
	($$create_context('new', 'rides', 'cnt', order_by => 'place')$$),
	($$create_context('new', 'rides', 'cnt', order_by => 'id USING <')$$),
	($$create_context('new', 'rides', 'cnt', model => 'nothing')$$),
	($$create_context('new', 'rides', 'cnt', model => 'toy')$$),
	($$create_context('new', 'rides', 'cnt', max_rows => -1)$$),
	($$create_context('new', 'rides', 'cnt', max_rows => 4)$$),
	($$create_context('new', 'rides', 'cnt', max_rows => 5)$$),
	($$create_context('new', 'rides', 'cnt', maintain => 'always')$$),
	($$alter_context('nothing', maintain => 'read')$$),
	($$alter_context(NULL)$$),
	($$alter_context('all', relation => 'plain')$$),
	($$alter_context('all', target => 'note')$$),
	($$alter_context('all', target => 'id')$$),
	($$alter_context('all', target => 'id', features => '{at}')$$),
	($$alter_context('all', model => 'toy')$$),
	($$alter_context('all', features => '{at}', model => 'toy')$$),
	($$alter_context('all', features => '{sky}', model => 'toy')$$),
	($$alter_context('all', new_name => 'all')$$),
	($$alter_context('all', order_by => '')$$),
	($$alter_context('all', features => '{"odd \"name"}')$$),
	($$alter_context('all', model => 'nothing')$$),
	($$alter_context('all', max_rows => -3)$$),
	($$alter_context('all', maintain => 'x')$$),
	($$alter_context('all', new_name => 'rides')$$),
	($$alter_context('all', new_name => '')$$),
	($$drop_context('nothing')$$),
	($$refresh_context('nothing')$$),
	($$warm_context('nothing')$$)) v (s);

-- filters: a condition on the row, made of nothing that a user could have defined
CREATE FUNCTION mine(int) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT true';
CREATE OPERATOR === (LEFTARG = int, RIGHTARG = int, FUNCTION = int4eq);
CREATE DOMAIN positive AS int CHECK (mine(VALUE));
SELECT f AS filter, try(format('SELECT posterior.create_context(''new'', ''rides'', ''cnt'',
		filter => %L)', f)) AS answer FROM (VALUES
	('id'), ('nothing > 3'), ('id > '), ('id > 3) OR (true'), ('id > 3); DROP TABLE rides; --'),
		('id > 3 ORDER BY id'), ('id > 3 -- comment'),
	('id IN (SELECT 1)'), ('count(*) > 3'), ('row_number() OVER () > 3'),
		('generate_series(1, 3) > 1'), ('random() > 0.5'), ('at > now()'),
		('at > ''2024-01-01''::date'), ('pg_sleep(1) IS NULL'),
	('mine(id)'), ('id === 3'), ('id::positive > 3'), ('ctid = ''(0,1)'''), ('rides IS NOT NULL'),
		('id = $1'), ('current_user = ''x'''), ('false') ) v (f);
-- nor has it values of types with user-defined input functions, wherever in the type and in the
-- condition; columns are what they are
CREATE FUNCTION spy(int) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS $$
	BEGIN RAISE WARNING 'called'; RETURN true; END $$;
CREATE DOMAIN spied AS int CHECK (spy(VALUE));
CREATE TYPE pair AS (a int, b spied);
CREATE TYPE plain_pair AS (a int, b int);
CREATE TYPE span AS RANGE (SUBTYPE = spied);
CREATE TYPE base;
SET client_min_messages = warning;
CREATE FUNCTION base_in(cstring) RETURNS base IMMUTABLE STRICT LANGUAGE internal AS 'int4in';
CREATE FUNCTION base_out(base) RETURNS cstring IMMUTABLE STRICT LANGUAGE internal AS 'int4out';
RESET client_min_messages;
CREATE TYPE base (INPUT = base_in, OUTPUT = base_out, LIKE = int4);
CREATE TABLE parts (id int, s spied, list spied[], pair pair, skies sky[], place point, day date,
		note text, y float8);
SELECT f AS filter, try(format('SELECT posterior.create_context(''new'', ''parts'', ''y'', ''{id}'',
		''id'', filter => %L)', f)) AS answer FROM (VALUES
	('id = ANY (''{1,2}''::spied[])'), ('list = ''{1,2}'''), ('list[1] = 1'),
		('list::int[] = ''{1}'''), ('ARRAY[s, s] IS NULL'), ('coalesce(s, s) = 1'),
		('CASE s WHEN 1 THEN true END'),
	('''(1,2)''::pair IS NULL'), ('pair = row(1, 2)'), ('''{"(1,2)"}''::pair[] IS NULL'),
		('''(1,2)''::plain_pair IS NULL'), ('''[1,2]''::span IS NULL'), ('''1''::base IS NULL'),
	('''{1}''::information_schema.cardinal_number[] IS NULL'), ('NULL::spied IS NULL'),
		('NULL::pair IS NULL'), ('spied(''1'') IS NULL'),
	('s > 3 AND list IS NOT NULL AND pair IS NOT NULL'), ('(pair).a = 1'),
		('''sun'' = ANY (skies) OR skies <@ ''{sun,rain}'' OR skies[1] = ''sun'''),
		('note = ANY (''{a,b}'') OR note IN (''a'', ''b'') OR note LIKE ''a%'''),
	('id <@ ''[1,3]''::int4range OR id = ANY (''{1,2}''::int[]) OR (id, y) > (1, 2)'),
		('day BETWEEN ''2024-01-01'' AND ''2024-02-01'''), ('row(id, y) IS NOT NULL'),
		('place <@ ''((0,0),(1,1))''::box')) v (f);
-- nor comparisons whose operator is not printed and could be another one when the condition is read
-- again
ALTER TABLE parts ADD COLUMN word varchar, ADD COLUMN sky sky;
SELECT f AS filter, try(format('SELECT posterior.create_context(''new'', ''parts'', ''y'', ''{id}'',
		''id'', filter => %L)', f)) AS answer FROM (VALUES
	('sky IS DISTINCT FROM ''sun'''), ('nullif(sky, ''sun'') IS NULL'),
		('CASE sky WHEN ''sun'' THEN true END'), ('CASE word WHEN ''a'' THEN true END'),
		('(id, sky) > (1, ''sun'')'), ('''{1}''::int[] IS NOT DISTINCT FROM ARRAY[id]'),
	('sky = ''sun'' OR sky IN (''sun'', ''rain'') OR sky > ''sun'''),
		('word IS DISTINCT FROM ''a'' AND id IS DISTINCT FROM 3'), ('nullif(word, ''a'') IS NULL'),
		('(id, word, y) > (1, ''a'', 2)'),
	('CASE id WHEN 1 THEN true WHEN 2.5 THEN false END'), ('CASE id WHEN 1 THEN true END'),
		('CASE note WHEN ''a'' THEN true END'), ('CASE WHEN sky = ''sun'' THEN true END')) v (f);
-- nor functions that the server calls immutable although they read settings of the session, or
-- objects that a user can change
ALTER TABLE parts ADD COLUMN bytes bytea, ADD COLUMN at timestamptz;
CREATE TEXT SEARCH CONFIGURATION searched (COPY = simple);
SELECT f AS filter, try(format('SELECT posterior.create_context(''new'', ''parts'', ''y'', ''{id}'',
		''id'', filter => %L, model => ''toy'')', f)) AS answer FROM (VALUES
	('y::text = ''1.5'''), ('ARRAY[y]::text[] = ''{1.5}'''), ('place::text > ''a'''),
		('bytes::text = ''a'''), ('quote_ident(note) = note'),
		('at AT TIME ZONE ''EST'' > ''2024-01-01'''),
	('at AT TIME ZONE note > ''2024-01-01'''),
		('bytes IS NULL OR xmlelement(name a, at) IS NOT NULL'),
		('to_tsvector(''searched'', note) @@ ''a'''),
	('id::text = ''1'' AND encode(bytes, ''hex'') = ''00'''),
		('at AT TIME ZONE ''Europe/Paris'' > ''2024-01-01'''
			' OR at AT TIME ZONE ''UTC'' > ''2024-01-01'''),
		('to_tsvector(''english'', note) @@ ''a''')) v (f);
DROP TEXT SEARCH CONFIGURATION searched;
-- a type that was an enum when the filter was made, and has the same name: nothing reads a value of
-- it
CREATE TYPE mood AS ENUM ('1', '2');
ALTER TABLE parts ADD COLUMN mood mood;
SELECT posterior.create_context('moods', 'parts', 'y', '{id}', 'id',
		filter => 'mood = ANY (''{1,2}''::mood[]) AND day > ''2024-01-01''', model => 'toy');
ALTER TABLE parts ALTER day TYPE timestamp;
SELECT posterior.warm_context('moods');
ALTER TABLE parts ALTER mood TYPE spied USING 1;
ALTER TYPE mood RENAME TO feeling;
SELECT try('SELECT posterior.warm_context(''moods'')');
ALTER TYPE spied RENAME TO mood;
SELECT try('SELECT posterior.warm_context(''moods'')');
\set VERBOSITY terse
SELECT 'public.parts WHERE mood = ANY (''{1,2}''::public.mood[])'::posterior.row_filter;
\set VERBOSITY default
DROP TABLE parts;
DROP TYPE feeling, pair, plain_pair, span;
DROP TYPE base CASCADE;
DROP DOMAIN mood;
DROP FUNCTION spy;
-- whatever the search path says, it means what it meant
CREATE SCHEMA trap;
CREATE FUNCTION trap.ge(int, int) RETURNS boolean IMMUTABLE LANGUAGE sql AS 'SELECT false';
CREATE OPERATOR trap.>= (LEFTARG = int, RIGHTARG = int, FUNCTION = trap.ge);
CREATE FUNCTION trap.abs(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT -1';
CREATE TABLE numbers AS SELECT i AS id, i * 1.1::float8 AS x, i * 2.0 AS y
	FROM generate_series(1, 9) i;
SELECT posterior.create_context('numbers', 'numbers', 'y', '{id}',
		filter => 'abs(id) >= 3 AND x < 1.1::float8 * 8', order_by => 'id', model => 'toy');
SELECT posterior.warm_context('numbers'), filter FROM posterior.contexts WHERE name = 'numbers';
SET search_path = trap, pg_catalog;
SELECT posterior.warm_context('numbers'), filter FROM posterior.contexts WHERE name = 'numbers';
SET search_path = '';
SELECT posterior.warm_context('numbers'), filter FROM posterior.contexts WHERE name = 'numbers';
RESET search_path;
-- nor do other settings change it
ALTER TABLE numbers ADD COLUMN at timestamptz DEFAULT '2024-07-03 04:00:00+00';
SELECT posterior.alter_context('numbers',
		filter => 'x = 1.1::float8 * 7 OR x = 9.9::float8 OR id = 3 OR id = 5'
			' AND at >= ''2024-07-03 04:00:00+00'''
			' OR at + interval ''-1 day 2 hours'' < ''epoch''');
SELECT posterior.alter_context('numbers',
		filter => 'x = 1.1::float8 * 7 OR x = 3.3000000000000003::float8 OR id = 5'
			' AND at >= ''2024-07-03 04:00:00+00'''
			' OR x * interval ''-1 day 2 hours'' > interval ''0''');
SELECT posterior.warm_context('numbers');
SET extra_float_digits = -10;
SET datestyle = 'SQL, DMY';
SET timezone = 'Asia/Kolkata';
SET intervalstyle = 'sql_standard';
SELECT posterior.refresh_context('numbers');
SELECT posterior.warm_context('numbers'), filter FROM posterior.contexts WHERE name = 'numbers';
RESET extra_float_digits;
RESET datestyle;
RESET timezone;
RESET intervalstyle;
SELECT posterior.alter_context('numbers',
		filter => 'id <> 3 AND coalesce(id::float8 <> ALL (''{2,NULL}''), true)');
SET array_nulls = off;
SELECT posterior.warm_context('numbers'), filter FROM posterior.contexts WHERE name = 'numbers';
RESET array_nulls;
-- a backslash is one wherever it is printed and read: by the query, in a dump, and when the text is
-- analysed again
ALTER TABLE numbers ADD COLUMN note varchar;
UPDATE numbers SET note = CASE WHEN id < 3 THEN 'a\b' WHEN id < 6 THEN 'a\\b' ELSE '' END;
SET escape_string_warning = off;
SET standard_conforming_strings = off;
SELECT posterior.alter_context('numbers', filter => 'note = ''a\\\\b''');
SELECT posterior.warm_context('numbers'), filter FROM posterior.contexts WHERE name = 'numbers';
UPDATE posterior.context_definition SET filter = filter::text::posterior.row_filter
	WHERE name = 'numbers';
SELECT posterior.warm_context('numbers'), filter FROM posterior.contexts WHERE name = 'numbers';
RESET standard_conforming_strings;
SELECT posterior.warm_context('numbers'), filter FROM posterior.contexts WHERE name = 'numbers';
SELECT posterior.alter_context('numbers', filter => 'note = ''a\\b''');
SELECT posterior.warm_context('numbers'), filter FROM posterior.contexts WHERE name = 'numbers';
SET standard_conforming_strings = off;
SELECT posterior.alter_context('numbers', filter => 'note = ''a\\\\b''');
RESET standard_conforming_strings;
RESET escape_string_warning;
ALTER TABLE numbers ALTER note TYPE text;
SELECT posterior.warm_context('numbers'), filter FROM posterior.contexts WHERE name = 'numbers';
-- pg_upgrade keeps the bytes of a filter: another version reads its text
SELECT posterior.alter_context('numbers',
		filter => 'abs(id) >= 3 AND "x" < 1.1::float8 * 8 AND id::text <> ''id'''
			' AND (id, x) > (1, 1) OR id IN (1, 2)');
CREATE CAST (posterior.row_filter AS bytea) WITHOUT FUNCTION;
CREATE CAST (bytea AS posterior.row_filter) WITHOUT FUNCTION;
UPDATE posterior.context_definition SET filter = overlay(filter::bytea PLACING '\x00000000'
		FROM 5)::posterior.row_filter WHERE name = 'numbers';
SELECT posterior.warm_context('numbers'), filter FROM posterior.contexts WHERE name = 'numbers';
ALTER TABLE numbers RENAME COLUMN id TO was;
ALTER TABLE numbers RENAME COLUMN x TO id;
ALTER TABLE numbers RENAME COLUMN was TO x;
SELECT posterior.warm_context('numbers'), filter, features FROM posterior.contexts
	WHERE name = 'numbers';
DROP CAST (bytea AS posterior.row_filter);
DROP CAST (posterior.row_filter AS bytea);
SELECT count(posterior.drop_context(name)) FROM posterior.contexts;
SELECT posterior.drop_model('rows');
TABLE notes;
DROP SCHEMA trap CASCADE;
DROP VIEW notes, shown;
DROP TABLE rides, plain, dated, keyed, labelled, numbers, brief;
DROP OPERATOR === (int, int);
DROP DOMAIN positive;
DROP TYPE sky;
DROP FUNCTION mine, try;
