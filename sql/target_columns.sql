-- target_columns: named contexts whose targets are several columns of numbers
\set VERBOSITY terse
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE SCHEMA target_columns_test;
SET search_path = target_columns_test;
CREATE TABLE family (model text PRIMARY KEY);
INSERT INTO family VALUES ('several_mixture'), ('several_fixed'), ('mean_prefix'), ('scan_parts'),
	('decoupled_buffer'), ('deep_kernel_several'), ('joint_several');
SELECT count(posterior.load_model(model, current_setting('test.models') || '/' || model
		|| '.safetensors')) AS loaded FROM family;
CREATE DOMAIN volts AS numeric CHECK (VALUE < 1000);
CREATE TABLE points (id int PRIMARY KEY, gone int, a float8, b float8, u real, v volts,
	y float8[] GENERATED ALWAYS AS (CASE WHEN u::float8 + v::float8 IS NOT NULL
		THEN ARRAY[u::float8, v::float8] END) STORED);
ALTER TABLE points DROP COLUMN gone;
INSERT INTO points SELECT i, sin(i), cos(2 * i), sin(i) + cos(i) / 3, 10 * cos(i)
	FROM generate_series(1, 37) i;
-- the same rows twice: their targets as columns, and as an array
SELECT count(posterior.create_context(model, 'points', '{u,v}', '{a,b}', order_by => 'id',
		model => model)) AS contexts,
	count(posterior.create_context(model || ' of arrays', 'points', 'y', '{a,b}', order_by => 'id',
		model => model)) AS arrays FROM family;
SELECT name, target, features FROM posterior.contexts WHERE name LIKE 'several_fixed%' ORDER BY 1;
CREATE VIEW asked AS SELECT 0.3::float8 AS a, -0.4::float8 AS b;
CREATE FUNCTION fresh(context text) RETURNS text STABLE LANGUAGE plpgsql
SET posterior.cache = off AS $$
BEGIN
	RETURN (SELECT posterior.predict_targets(context::name, asked)::text FROM asked);
END $$;
CREATE VIEW differ AS SELECT model FROM family, asked
	WHERE posterior.predict_targets(model::name, asked)::text <> fresh(model)
		OR posterior.predict_targets(model::name, asked)::text
			<> posterior.predict_targets((model || ' of arrays')::name, asked)::text;
SELECT * FROM differ;
INSERT INTO points VALUES (38, 0.1, 0.2, 0.5, 0.7);
SELECT * FROM differ;
INSERT INTO points SELECT i, sin(i), cos(2 * i), 0.4, i FROM generate_series(39, 70) i;
SELECT * FROM differ;
-- one of the targets alone
UPDATE points SET v = 9 WHERE id = 35;
SELECT * FROM differ;
UPDATE points SET u = 3 WHERE id = 36;
SELECT * FROM differ;
DELETE FROM points WHERE id IN (3, 38, 70);
SELECT * FROM differ;
-- a row that lacks any of its targets is none
SELECT posterior.warm_context('several_fixed');
UPDATE points SET u = NULL WHERE id = 11;
UPDATE points SET v = NULL WHERE id = 12;
UPDATE points SET u = NULL, v = NULL WHERE id = 13;
SELECT posterior.warm_context('several_fixed');
SELECT * FROM differ;
BEGIN;
INSERT INTO points VALUES (80, 0, 0, 0, 1);
SELECT * FROM differ;
INSERT INTO points VALUES (81, 0, 0, 2, 3), (82, 0.2, 0.1, 3, -3), (83, 0.2, 0.1, 3, NULL);
SELECT * FROM differ;
ROLLBACK;
SELECT * FROM differ;
-- draws and densities
CREATE TYPE pair AS (a float8, b float8);
SELECT model FROM family, (SELECT ARRAY[(0.1, 0.2), (0.3, 0.4)]::pair[] AS rows) r
	WHERE (SELECT array_agg(s::text) FROM posterior.sample_targets(model, rows, 3, 7) s)
		<> (SELECT array_agg(s::text)
			FROM posterior.sample_targets(model || ' of arrays', rows, 3, 7) s)
		OR (SELECT posterior.log_density(model, ARRAY[a, 0.7], (a, b)::pair)
			<> posterior.log_density(model || ' of arrays', ARRAY[a, 0.7], (a, b)::pair)
			FROM asked);
-- the order of the names is that of the answers
SELECT posterior.alter_context('several_mixture', target => '{v,u}'),
	posterior.alter_context('several_fixed', target => '{v,u}');
SELECT name, target FROM posterior.contexts WHERE name IN ('several_fixed', 'several_mixture')
	ORDER BY 1;
CREATE VIEW turned AS SELECT id, a, b, v AS u, u AS v FROM points;
SELECT posterior.create_context('turned', 'turned', '{u,v}', '{a,b}', order_by => 'id',
	model => 'several_fixed');
SELECT posterior.predict_targets('several_fixed'::name, asked)::text
	= posterior.predict_targets('turned'::name, asked)::text AS same FROM asked;
SELECT posterior.alter_context('several_mixture', target => '{u,v}'),
	posterior.alter_context('several_fixed', target => '{u,v}');
SELECT * FROM differ;
DROP VIEW turned;
-- a window, a filter, the default features
SELECT posterior.create_context('window', 'points', '{u,v}', '{a,b}', order_by => 'id',
		model => 'several_fixed', max_rows => 20, filter => 'id > 5'),
	posterior.create_context('window of arrays', 'points', 'y', '{a,b}', order_by => 'id',
		model => 'several_fixed', max_rows => 20, filter => 'id > 5');
SELECT posterior.predict_targets('window'::name, asked)::text
	= posterior.predict_targets('window of arrays'::name, asked)::text AS same FROM asked;
CREATE VIEW narrow AS SELECT u, a, v, b FROM points;
SELECT posterior.create_context('all', 'narrow', '{u,v}', model => 'several_fixed');
SELECT target, features, order_by FROM posterior.contexts WHERE name = 'all';
SELECT cardinality(posterior.predict_targets('all'::name, asked)) FROM asked;
DROP VIEW narrow;
-- what happens to the columns
ALTER TABLE points RENAME u TO "U, {u}";
SELECT target FROM posterior.contexts WHERE name = 'scan_parts';
SELECT * FROM differ;
CREATE VIEW breaks AS SELECT posterior.predict_targets('scan_parts'::name, asked) FROM asked;
ALTER TABLE points DROP y;
ALTER TABLE points ALTER v TYPE bigint;
SELECT model FROM family, asked
	WHERE posterior.predict_targets(model::name, asked)::text <> fresh(model);
ALTER TABLE points ALTER v TYPE text;
SELECT * FROM breaks;
ALTER TABLE points ALTER v TYPE float8 USING v::float8;
SELECT cardinality(predict_targets) FROM breaks;
ALTER TABLE points DROP v;
SELECT * FROM breaks;
SELECT target FROM posterior.contexts WHERE name = 'scan_parts';
ALTER TABLE points ADD v float8 DEFAULT 1;
SELECT posterior.alter_context('scan_parts', target => '{v,"U, {u}"}');
SELECT cardinality(predict_targets) FROM breaks;
SELECT target FROM posterior.contexts WHERE name = 'scan_parts';
-- rights: each target is read
CREATE ROLE target_columns_user;
GRANT USAGE ON SCHEMA target_columns_test TO target_columns_user;
GRANT SELECT ON asked TO target_columns_user;
GRANT SELECT (id, a, b, v) ON points TO target_columns_user;
SET ROLE target_columns_user;
SELECT posterior.predict_targets('scan_parts'::name, asked) FROM asked;
SELECT count(*) FROM posterior.stat_contexts WHERE name = 'scan_parts';
RESET ROLE;
GRANT SELECT ("U, {u}") ON points TO target_columns_user;
SET ROLE target_columns_user;
SELECT cardinality(posterior.predict_targets('scan_parts'::name, asked)) FROM asked;
SELECT count(*) FROM posterior.stat_contexts WHERE name = 'scan_parts';
RESET ROLE;
-- a column of such a name; one name in braces
CREATE TABLE odd (x float8, "{p,q}" float8, p float8, q float8, label text, "{" int);
INSERT INTO odd SELECT i, i, sin(i), cos(i), 'l', i FROM generate_series(1, 20) i;
SELECT posterior.create_context('odd', 'odd', '{p,q}', '{x}', model => 'gp1d'),
	posterior.create_context('braces', 'odd', '{q}', '{x}', model => 'gp1d'),
	posterior.create_context('brace', 'odd', '{', '{x}', model => 'gp1d');
SELECT name, target FROM posterior.contexts WHERE name IN ('odd', 'braces', 'brace') ORDER BY 1;
UPDATE odd SET "{p,q}" = NULL WHERE x > 7;
SELECT posterior.warm_context('odd');
SELECT row_key FROM posterior.score('odd', 'odd', only_missing => true);
-- what does not fit
\set VERBOSITY default
CREATE FUNCTION wrong(target text, features text DEFAULT '{a,b}',
	model text DEFAULT 'several_fixed') RETURNS void
	LANGUAGE sql AS $$
	SELECT posterior.create_context('wrong', 'points', $1, $2::text[], order_by => 'id',
		model => $3)
$$;
ALTER TABLE points ADD s text, ADD y float8[];
SELECT wrong('{v,missing}');
SELECT wrong('{v,s}');
SELECT wrong('{v,y}');
SELECT wrong('{v,v}');
SELECT wrong('{v,NULL}');
SELECT wrong('{}');
SELECT wrong('{{v},{a}}');
SELECT wrong(ARRAY(SELECT 'c' || i FROM generate_series(1, 65) i)::text);
SELECT wrong('{v,a}', '{a,b}');
SELECT wrong('{v}');
SELECT wrong('{v,id,"U, {u}"}');
SELECT wrong('{v,id}', model => 'gp1d');
SELECT posterior.alter_context('scan_parts', features => '{a,v}');
SELECT posterior.alter_context('scan_parts', target => '{a,v}');
SELECT posterior.predict('scan_parts'::name, asked) FROM asked;
SELECT posterior.score('scan_parts', 'points');
UPDATE points SET v = 'infinity' WHERE id = 5;
SELECT * FROM breaks;
SELECT count(posterior.drop_context(name)) AS dropped FROM posterior.contexts
	WHERE relation::text IN ('points', 'odd');
SELECT count(posterior.drop_model(model)) AS dropped FROM family;
REVOKE ALL ON ALL TABLES IN SCHEMA target_columns_test FROM target_columns_user;
DROP SCHEMA target_columns_test CASCADE;
DROP ROLE target_columns_user;
