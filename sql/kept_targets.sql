-- kept_targets: named contexts of several targets per row that keep sums: whatever is written, they
-- are those of the rows, and so are the answers
\set VERBOSITY terse
CREATE SCHEMA kept_targets;
SET search_path = kept_targets, public;
CREATE TABLE family (model text PRIMARY KEY);
INSERT INTO family VALUES ('mean_prefix'), ('mean_scaled'), ('several_mixture'), ('sums');
SELECT count(posterior.load_model(model, current_setting('test.models') || '/' || model
		|| '.safetensors')) AS loaded FROM family;
SET posterior.model = 'mean_prefix';
CREATE TABLE reading (id int PRIMARY KEY, a float8, b float8, u float8, v numeric, y float8[]);
CREATE FUNCTION pair() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NEW.y IS NULL THEN NEW.y := ARRAY[NEW.u, NEW.v]; END IF;
	IF NEW.u IS NULL OR NEW.v IS NULL THEN NEW.y := NULL; END IF;
	RETURN NEW;
END $$;
CREATE TRIGGER pair BEFORE INSERT OR UPDATE OF u, v ON reading FOR EACH ROW
	EXECUTE FUNCTION pair();
INSERT INTO reading SELECT i, sin(i), cos(2 * i), 10 + sin(i) + cos(i) / 3, 100 * cos(i)
	FROM generate_series(1, 300) i;
SELECT posterior.create_context('columns', 'reading', '{u,v}', '{a,b}', maintain => 'sums');
SELECT posterior.create_context('arrays', 'reading', 'y', '{a,b}', maintain => 'sums');
SELECT posterior.create_context('some', 'reading', '{v,u}', '{a,b}', maintain => 'sums',
	filter => 'a > 0');
SELECT posterior.create_context('rows', 'reading', '{u,v}', '{a,b}');
SELECT name, maintain, posterior.targets(basis) AS targets, octet_length(fit) AS fit
FROM posterior.context_definition ORDER BY name COLLATE "C";
-- the sums are those of the rows that a query sees, under the same basis; answers from them are
-- those from rows that are read (posterior.cache = off)
CREATE VIEW kept_now AS
SELECT 'columns' AS name, (SELECT posterior.context(posterior.basis(posterior.sums('columns')),
		ARRAY[u, v], a, b) FROM reading WHERE u IS NOT NULL AND v IS NOT NULL) AS context
UNION ALL SELECT 'arrays', (SELECT posterior.context(posterior.basis(posterior.sums('arrays')),
		y, a, b) FROM reading)
UNION ALL SELECT 'some', (SELECT posterior.context(posterior.basis(posterior.sums('some')),
		ARRAY[v, u], a, b) FROM reading WHERE u IS NOT NULL AND v IS NOT NULL AND a > 0);
CREATE TYPE question AS (a float8, b float8);
CREATE FUNCTION answer(name text) RETURNS text STABLE LANGUAGE sql AS $$
	SELECT concat(posterior.predict_targets(name::name, (0.5, 0.25)::question),
		(SELECT array_agg(s ORDER BY s.draw, s.ord) FROM posterior.sample_targets(name,
			ARRAY[(0.1, 0.2), (0.3, 0.4)]::question[], 2, 7) s),
		posterior.log_density(name, ARRAY[10, 20.0]::float8[], (0.1, 0.2)::question)) $$;
CREATE FUNCTION answer_read(name text) RETURNS text STABLE LANGUAGE plpgsql
	SET posterior.cache = off AS $$ BEGIN RETURN answer(name); END $$;
CREATE VIEW now AS SELECT name, posterior.rows(context) AS rows,
	posterior.sums(name) OPERATOR(posterior.=) context AS same,
	answer(name) = answer_read(name) AS answers,
	posterior.predict_targets(name::name, (0.5, 0.25)::question)::text
		= posterior.predict_targets(context, 0.5, 0.25)::text AS value FROM kept_now;
SELECT * FROM now;
-- rows come, change by one target alone, and go
INSERT INTO reading SELECT 1000 + i, i / 9.0, -i / 9.0, 12, i FROM generate_series(1, 90) i;
SELECT * FROM now;
UPDATE reading SET v = v + 1, y = ARRAY[y[1], y[2] + 1] WHERE id BETWEEN 20 AND 40;
UPDATE reading SET b = b / 2 WHERE id BETWEEN 30 AND 60;
SELECT * FROM now;
DELETE FROM reading WHERE id % 7 = 0;
SELECT * FROM now;
-- a row of which one target is not known is none
UPDATE reading SET v = NULL WHERE id BETWEEN 61 AND 66;
INSERT INTO reading VALUES (2000, 1, 1, NULL, 3), (2001, 1, 1, 3, NULL);
SELECT * FROM now;
UPDATE reading SET v = 7 WHERE id BETWEEN 64 AND 66 OR id = 2001;
SELECT * FROM now;
SELECT posterior.warm_context(name) > 0 AS warm FROM kept_now;
SELECT count(*) AS notes FROM posterior_internal.noted_row;
SELECT * FROM now;
-- within a transaction
BEGIN;
INSERT INTO reading SELECT 3000 + i, i / 5.0, i / 7.0, 0.5, i FROM generate_series(1, 5) i;
SAVEPOINT s;
DELETE FROM reading WHERE id > 3002;
SELECT * FROM now;
ROLLBACK TO s;
UPDATE reading SET u = u + 1 WHERE id > 3001;
SELECT * FROM now;
ROLLBACK;
SELECT * FROM now;
-- what no model takes is no error of the write, but of questions while it is there
INSERT INTO reading VALUES (4000, 1, 1, 1, 'infinity');
SELECT answer('columns');
SELECT answer('arrays');
DELETE FROM reading WHERE id = 4000;
INSERT INTO reading VALUES (4000, 1, NULL, 1, 2);
SELECT answer('columns');
DELETE FROM reading WHERE id = 4000;
SELECT * FROM now;
INSERT INTO reading VALUES (4000, 1, 1, 1, 2, '{1,2,3}');
SELECT answer('arrays');
SELECT posterior.warm_context('arrays');
UPDATE reading SET y = '{1}' WHERE id = 4000;
SELECT answer('arrays');
UPDATE reading SET y = '{1,NULL}' WHERE id = 4000;
SELECT answer('arrays');
UPDATE reading SET y = '{NULL,NULL}' WHERE id = 4000;
SELECT answer('arrays');
UPDATE reading SET y = '{{1,2}}' WHERE id = 4000;
SELECT answer('arrays');
UPDATE reading SET y = '{}' WHERE id = 4000;
SELECT answer('arrays');
UPDATE reading SET y = array_fill(1.0::float8, ARRAY[65]) WHERE id = 4000;
SELECT answer('arrays');
UPDATE reading SET y = '[5:6]={1,2}' WHERE id = 4000;
SELECT * FROM now;
DELETE FROM reading WHERE id = 4000;
SELECT posterior.warm_context(name) > 0 AS warm FROM kept_now;
SELECT * FROM now;
-- drift is that of the target that has moved most
SELECT posterior.refresh_context(name) FROM (VALUES ('columns'), ('arrays'), ('some')) c (name);
SELECT posterior.warm_context(name) > 0 AS warm FROM kept_now;
SELECT * FROM now;
UPDATE reading SET v = v + 1000, y = ARRAY[y[1], y[2] + 1000];
\set VERBOSITY default
SELECT posterior.warm_context(name) > 0 AS warm FROM kept_now;
UPDATE reading SET v = v - 1000, y = ARRAY[y[1], y[2] - 1000];
UPDATE reading SET u = u + 15, y = ARRAY[y[1] + 15, y[2]];
SELECT posterior.warm_context(name) > 0 AS warm FROM kept_now;
\set VERBOSITY terse
SELECT * FROM now;
SELECT posterior.refresh_context(name) FROM (VALUES ('columns'), ('arrays'), ('some')) c (name);
SELECT posterior.warm_context(name) > 0 AS warm FROM kept_now;
SELECT * FROM now;
-- other columns as targets, and one again
SELECT posterior.alter_context('some', target => '{u,v}');
SELECT posterior.sums('some') OPERATOR(posterior.=) (SELECT posterior.context(
		posterior.basis(posterior.sums('some')), ARRAY[u, v], a, b) FROM reading
	WHERE u IS NOT NULL AND v IS NOT NULL AND a > 0) AS same;
SELECT posterior.alter_context('some', target => 'u', model => 'mean_scaled');
INSERT INTO reading VALUES (5000, 1, 1, 1, 2);
SELECT posterior.sums('some') OPERATOR(posterior.=) (SELECT posterior.context(
		posterior.basis(posterior.sums('some')), u, a, b) FROM reading WHERE a > 0) AS same
FROM set_config('posterior.model', 'mean_scaled', false);
SET posterior.model = 'mean_prefix';
SELECT posterior.alter_context('some', target => 'y', model => 'mean_prefix');
SELECT posterior.sums('some') OPERATOR(posterior.=) (SELECT posterior.context(
		posterior.basis(posterior.sums('some')), y, a, b) FROM reading WHERE a > 0) AS same;
SELECT posterior.drop_context('some');
-- emptied
BEGIN;
TRUNCATE reading;
INSERT INTO reading SELECT i, sin(i), cos(i), i, -i, ARRAY[i, -i] FROM generate_series(1, 50) i;
SELECT * FROM now WHERE name <> 'some';
ROLLBACK;
-- partitions, one of which has its columns in another order
CREATE TABLE parted (k int, region int, a float8, b float8, u float8, v float8)
	PARTITION BY LIST (region);
CREATE TABLE part1 PARTITION OF parted FOR VALUES IN (1);
CREATE TABLE part2 (v float8, gone int, b float8, a float8, u float8, region int, k int);
ALTER TABLE part2 DROP COLUMN gone;
ALTER TABLE parted ATTACH PARTITION part2 FOR VALUES IN (2);
INSERT INTO parted SELECT i, 1 + i % 2, cos(i), sin(3 * i), i, -i FROM generate_series(1, 200) i;
SELECT posterior.create_context('parted', 'parted', '{u,v}', '{a,b}', maintain => 'sums');
INSERT INTO parted VALUES (300, 2, 0.1, 0.2, 0.3, 0.4);
INSERT INTO part2 VALUES (0.3, 0.4, 0.5, 0.6, 2, 301);
UPDATE parted SET region = 3 - region WHERE k % 3 = 0;
DELETE FROM part1 WHERE k < 20;
SELECT posterior.sums('parted') OPERATOR(posterior.=) (SELECT posterior.context(posterior.basis(
		posterior.sums('parted')), ARRAY[u, v], a, b) FROM parted) AS same,
	answer('parted') = answer_read('parted') AS answers;
-- added up by an aggregate, in several processes or one, or read: the same
BEGIN;
SET LOCAL max_parallel_workers_per_gather = 2;
SET LOCAL min_parallel_table_scan_size = 0;
SET LOCAL parallel_setup_cost = 0;
SET LOCAL parallel_tuple_cost = 0;
SELECT posterior.create_context('again', 'parted', '{u,v}', '{a,b}', maintain => 'sums');
SET LOCAL max_parallel_workers_per_gather = 0;
SELECT posterior.create_context('read', 'parted', '{u,v}', '{a,b}', maintain => 'sums');
SELECT posterior.sums('again') OPERATOR(posterior.=) posterior.sums('read') AS same,
	(SELECT count(DISTINCT (basis::text, fit)) FROM posterior.context_definition
		WHERE name IN ('again', 'read')) AS definitions;
ROLLBACK;
-- few rows are read as rows until there are more
CREATE TABLE few (a float8, b float8, u float8, v float8);
SELECT posterior.create_context('few', 'few', '{u,v}', '{a,b}', maintain => 'sums');
INSERT INTO few SELECT sin(i), cos(i), i, -i FROM generate_series(1, 20) i;
SELECT answer('few') = answer_read('few') AS answers;
SELECT posterior.sums('few');
INSERT INTO few SELECT sin(i), cos(i), i, -i FROM generate_series(21, 40) i;
SELECT posterior.refresh_context('few');
DELETE FROM few WHERE u = 3;
SELECT posterior.rows(posterior.sums('few')) AS rows, answer('few') = answer_read('few') AS answers;
-- the type of a target changes
CREATE FUNCTION few_same() RETURNS boolean STABLE LANGUAGE plpgsql AS $$
BEGIN
	RETURN answer('few') = answer_read('few') AND posterior.sums('few') OPERATOR(posterior.=)
		(SELECT posterior.context(posterior.basis(posterior.sums('few')), ARRAY[u, v], a, b)
			FROM few);
END $$;
ALTER TABLE few ALTER COLUMN v TYPE int USING v + 1;
SELECT few_same();
SELECT posterior.warm_context('few');
INSERT INTO few VALUES (0.1, 0.2, 0.3, 4);
SELECT few_same();
ALTER TABLE few ALTER COLUMN v TYPE text;
SELECT answer('few');
ALTER TABLE few ALTER COLUMN v TYPE float8 USING v::float8;
SELECT few_same();
-- what does not fit
\set VERBOSITY default
SELECT posterior.create_context('bad', 'few', '{u,v}', '{a,b}', maintain => 'sums',
	model => 'mean_scaled');
SELECT posterior.create_context('bad', 'few', '{u,v,a}', '{b}', maintain => 'sums');
SELECT posterior.create_context('bad', 'few', 'u', '{a,b}', maintain => 'sums');
SELECT posterior.create_context('bad', 'few', '{u,v}', '{a,b}', maintain => 'sums',
	model => 'several_mixture');
SELECT posterior.create_context('bad', 'few', '{u,v}', '{a,b}', maintain => 'sums',
	model => 'sums');
SELECT posterior.predict('few', (0.1, 0.2)::question);
\set VERBOSITY terse
SELECT count(posterior.drop_context(name)) AS contexts FROM posterior.contexts;
SELECT count(posterior.drop_model(model)) AS models FROM family;
SELECT count(*) AS notes FROM posterior_internal.noted_row;
SET client_min_messages = warning;
DROP SCHEMA kept_targets CASCADE;
