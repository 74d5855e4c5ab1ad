-- kept_sums: named contexts that keep sums: whatever is written, they are those of the rows
\set VERBOSITY terse
CREATE SCHEMA kept_sums;
SET search_path = kept_sums, public;
SELECT posterior.load_model('sums', current_setting('test.models') || '/sums.safetensors')
	IS NOT NULL AS loaded;
SET posterior.model = 'sums';
CREATE TABLE reading (k int PRIMARY KEY, a float8, b numeric, c text, t timestamptz, y float8);
INSERT INTO reading SELECT i, sin(i), CASE WHEN i % 5 > 0 THEN i % 17 END,
	(ARRAY['x', 'y', 'z', 'w'])[1 + i * i % 4],
	timestamptz '2024-01-01 UTC' + i * interval '1 hour',
	CASE WHEN i % 11 > 0 THEN sin(i) + cos(i) / 3 END
FROM generate_series(1, 220) i;
SELECT posterior.create_context('all', 'reading', 'y', '{a,b,c,t}');
SELECT posterior.create_context('some', 'reading', 'y', '{a,c}', filter => 'b > 3 AND c <> ''w''');
SELECT name, order_by, maintain, max_rows FROM posterior.contexts ORDER BY name COLLATE "C";
-- the sums that the context has are those of the rows that a query sees, under the same basis
CREATE VIEW kept_now AS
SELECT 'all' AS name, posterior.sums('all') OPERATOR(posterior.=)
		(SELECT posterior.context(posterior.basis(posterior.sums('all')), y, a, b, c, t)
			FROM reading) AS same, posterior.rows(posterior.sums('all')) AS rows
UNION ALL SELECT 'some', posterior.sums('some') OPERATOR(posterior.=)
		(SELECT posterior.context(posterior.basis(posterior.sums('some')), y, a, c)
			FROM reading WHERE b > 3 AND c <> 'w'), posterior.rows(posterior.sums('some'));
-- and answers from them are those from rows that are read (posterior.cache = off)
CREATE TYPE question AS (a float8, b numeric, c text, t timestamptz);
CREATE FUNCTION answer(name text) RETURNS text[] STABLE LANGUAGE sql AS $$
	SELECT array_agg(posterior.predict(name, (i / 3.0, i, chr(118 + i),
		timestamptz '2024-01-09 UTC')::question)::text ORDER BY i) FROM generate_series(1, 2) i $$;
CREATE FUNCTION answer_read(name text) RETURNS text[] STABLE LANGUAGE plpgsql
	SET posterior.cache = off AS $$ BEGIN RETURN answer(name); END $$;
CREATE VIEW now AS SELECT *, answer(name) = answer_read(name) AS answers FROM kept_now;
SELECT * FROM now;
-- rows come, change and go
INSERT INTO reading SELECT 1000 + i, i, i, chr(115 + i), now(), i / 7.0
FROM generate_series(1, 9) i;
SELECT * FROM now;
UPDATE reading SET y = 0.3, b = 2, c = 'never seen' WHERE k BETWEEN 10 AND 30;
SELECT * FROM now;
UPDATE reading SET y = NULL WHERE k BETWEEN 40 AND 50;
UPDATE reading SET y = 1, b = 9, c = 'x' WHERE k IN (41, 42, 11, 22);
DELETE FROM reading WHERE k IN (1, 2, 3, 11, 44, 1003);
SELECT * FROM now;
INSERT INTO reading VALUES (5, 1, 1, 'x', NULL, 4), (2, 1, 1, NULL, NULL, 4)
	ON CONFLICT (k) DO UPDATE SET y = excluded.y;
COPY reading FROM STDIN;
2000	0.5	7	x	2024-02-01 00:00:00+00	0.25
2001	\N	\N	\N	\N	0.125
2002	1	8	y	\N	\N
\.
SELECT * FROM now;
SELECT posterior.warm_context('all') AS all, posterior.warm_context('some') AS some;
SELECT count(*) AS notes FROM posterior_internal.noted_row;
SELECT * FROM now;
-- within a transaction: savepoints, and what triggers see that fire before rows are noted
BEGIN;
INSERT INTO reading SELECT 3000 + i, i, i, 'x', NULL, 0.5 FROM generate_series(1, 5) i;
SAVEPOINT s;
DELETE FROM reading WHERE k > 3002;
SELECT * FROM now;
ROLLBACK TO s;
SELECT * FROM now;
SAVEPOINT t;
UPDATE reading SET y = y + 1 WHERE k > 3001;
RELEASE t;
SELECT * FROM now;
DECLARE c CURSOR FOR SELECT * FROM now;
DELETE FROM reading WHERE k > 3003;
FETCH ALL FROM c;
SELECT * FROM now;
ROLLBACK;
SELECT * FROM now;
CREATE TABLE seen (same boolean, answers boolean);
CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO seen SELECT same, answers FROM now;
	RETURN NULL;
END $$;
CREATE TRIGGER a_first AFTER INSERT OR UPDATE OR DELETE ON reading FOR EACH ROW
	EXECUTE FUNCTION look();
CREATE TRIGGER z_last AFTER INSERT OR UPDATE OR DELETE ON reading FOR EACH ROW
	EXECUTE FUNCTION look();
INSERT INTO reading VALUES (4000, 1, 5, 'x', NULL, 2), (4001, 1, 6, 'x', NULL, 2);
UPDATE reading SET y = 3 WHERE k > 3999;
DELETE FROM reading WHERE k > 3999;
SELECT bool_and(same) AS same, bool_and(answers) AS answers, count(*) FROM seen;
-- a cursor that such a trigger opens is older than the note, and shows the row
CREATE OR REPLACE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE early refcursor := 'early';
BEGIN
	OPEN early FOR SELECT * FROM now;
	RETURN NULL;
END $$;
DROP TRIGGER z_last ON reading;
BEGIN;
INSERT INTO reading VALUES (4000, 1, 5, 'x', NULL, 2);
FETCH ALL FROM early;
ROLLBACK;
-- warming within such a trigger makes nothing anew with rows that are yet to be noted
CREATE OR REPLACE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	DELETE FROM posterior_internal.kept_sums;
	PERFORM posterior.warm_context('all'), posterior.warm_context('some');
	RETURN NULL;
END $$;
INSERT INTO reading VALUES (4000, 1, 5, 'x', NULL, 2), (4001, 1, 6, 'x', NULL, 2);
SELECT * FROM now;
SELECT posterior.warm_context('all') AS all, posterior.warm_context('some') AS some;
DELETE FROM reading WHERE k > 3999;
SELECT * FROM now;
DROP TRIGGER a_first ON reading;
SELECT posterior.warm_context('all') AS all, posterior.warm_context('some') AS some;
SELECT * FROM now;
-- what no trigger notes: rows are read until the sums have been made anew
ALTER TABLE reading DISABLE TRIGGER USER;
DELETE FROM reading WHERE k = 60;
SELECT * FROM now;
ALTER TABLE reading ENABLE TRIGGER USER;
SELECT posterior.warm_context('all');
SET session_replication_role = replica;
DELETE FROM reading WHERE k = 63;
RESET session_replication_role;
SELECT * FROM now;
SELECT posterior.refresh_context('all');
SELECT posterior.alter_context('all', maintain => 'sums');
SELECT posterior.alter_context('some', maintain => 'sums');
SELECT * FROM now;
BEGIN;
ALTER TABLE reading DISABLE TRIGGER USER;
DELETE FROM reading WHERE k = 61;
DO $$ DECLARE t name; BEGIN
	FOR t IN SELECT tgname FROM pg_trigger WHERE tgrelid = 'reading'::regclass LOOP
		EXECUTE format('ALTER TABLE reading ENABLE ALWAYS TRIGGER %I', t);
	END LOOP;
END $$;
SELECT * FROM now;
SELECT posterior.warm_context('all') AS all, posterior.warm_context('some') AS some;
-- once more in the same transaction
ALTER TABLE reading DISABLE TRIGGER USER;
DELETE FROM reading WHERE k = 62;
DO $$ DECLARE t name; BEGIN
	FOR t IN SELECT tgname FROM pg_trigger WHERE tgrelid = 'reading'::regclass LOOP
		EXECUTE format('ALTER TABLE reading ENABLE ALWAYS TRIGGER %I', t);
	END LOOP;
END $$;
SELECT * FROM now;
COMMIT;
SELECT * FROM now;
SELECT posterior.warm_context('all') AS all, posterior.warm_context('some') AS some;
VACUUM FULL reading;
SELECT * FROM now;
ALTER TABLE reading RENAME COLUMN a TO a1;
ALTER TABLE reading RENAME COLUMN a1 TO a;
CREATE TABLE copy AS SELECT * FROM reading;
BEGIN;
TRUNCATE reading;
INSERT INTO reading SELECT * FROM copy WHERE k < 90;
SELECT * FROM now;
ROLLBACK;
TRUNCATE reading;
INSERT INTO reading SELECT * FROM copy WHERE k < 200;
SELECT * FROM now;
SELECT posterior.warm_context('all') AS all, posterior.warm_context('some') AS some;
-- a table that is made, filled and emptied in one transaction
BEGIN;
CREATE TABLE young AS SELECT k, a, y FROM copy;
SELECT posterior.create_context('young', 'young', 'y', '{a}');
SELECT posterior.rows(posterior.sums('young')) AS rows;
TRUNCATE young;
INSERT INTO young SELECT k, a, y FROM copy WHERE k < 100;
SELECT posterior.rows(posterior.sums('young')) = (SELECT count(y) FROM young) AS same;
COMMIT;
SELECT posterior.rows(posterior.sums('young')) = (SELECT count(y) FROM young) AS same;
SELECT posterior.warm_context('young');
ALTER TABLE young ALTER COLUMN a TYPE numeric USING -a;
SELECT posterior.sums('young') OPERATOR(posterior.=) (SELECT posterior.context(posterior.basis(
		posterior.sums('young')), y, a) FROM young) AS same;
-- a column whose type means another kind is not added up as what it was
ALTER TABLE young ALTER COLUMN a TYPE text;
SELECT posterior.sums('young');
SELECT posterior.warm_context('young');
SELECT posterior.predict('young', t) IS NOT NULL FROM (SELECT '0.1'::text AS a) t;
SELECT posterior.refresh_context('young');
SELECT posterior.sums('young') OPERATOR(posterior.=) (SELECT posterior.context(posterior.basis(
		posterior.sums('young')), y, a) FROM young) AS same;
-- values that no model takes fail the prediction, as they do where rows are read, not the write
INSERT INTO reading VALUES (5000, 'NaN', 5, 'x', NULL, 1);
SELECT answer('all') IS NULL;
DELETE FROM reading WHERE k = 5000;
INSERT INTO reading VALUES (5000, 1, 5, 'x', NULL, 'infinity');
SELECT answer('all') IS NULL;
UPDATE reading SET y = 1e300 WHERE k = 5000;
SELECT answer('all') IS NULL;
DELETE FROM reading WHERE k = 5000;
SELECT * FROM now;
SELECT posterior.warm_context('all');
SELECT * FROM now;
-- a trigger of another table with the identity of a context notes nothing
CREATE TABLE other (LIKE reading);
DO $$ DECLARE id uuid := (SELECT kept FROM posterior.context_definition WHERE name = 'all'); BEGIN
	EXECUTE format('CREATE TRIGGER t AFTER INSERT OR UPDATE OR DELETE ON other FOR EACH ROW
		EXECUTE FUNCTION posterior.note_sums(%L)', id);
	EXECUTE format('CREATE TRIGGER u AFTER TRUNCATE ON other
		EXECUTE FUNCTION posterior.note_sums(%L)', id);
END $$;
INSERT INTO other SELECT * FROM reading WHERE k < 50;
SELECT * FROM now;
TRUNCATE other;
SELECT count(*) AS kept FROM posterior_internal.kept_sums JOIN posterior.context_definition
	USING (kept) WHERE name = 'all';
DROP TABLE other;
-- and one that would note rows twice makes readers read the rows
BEGIN;
DO $$ BEGIN
	EXECUTE format('CREATE TRIGGER t AFTER INSERT ON reading FOR EACH ROW
		EXECUTE FUNCTION posterior.note_sums(%L)',
		(SELECT kept FROM posterior.context_definition WHERE name = 'all'));
END $$;
SELECT posterior.warm_context('all');
INSERT INTO reading VALUES (6001, 1, 5, 'x', NULL, 0.5);
SELECT * FROM now;
ROLLBACK;
-- a row for which the filter fails can be written
SELECT posterior.create_context('ratio', 'reading', 'y', '{a}', filter => '1 / (k - 6000) < 1');
INSERT INTO reading VALUES (6000, 1, 5, 'x', NULL, 0.5);
SELECT answer('ratio');
SELECT posterior.warm_context('ratio');
DELETE FROM reading WHERE k = 6000;
SELECT posterior.warm_context('ratio') > 0 AS warm, posterior.warm_context('some') > 0 AS some;
SELECT posterior.rows(posterior.sums('ratio')) = (SELECT count(y) FROM reading) AS rows,
	count(*) AS notes FROM posterior_internal.noted_row WHERE cells IS NULL;
SELECT posterior.drop_context('ratio');
-- partitions, written through their parent, by themselves, and between each other
CREATE TABLE parted (k int, region int, a float8, c text, y float8) PARTITION BY LIST (region);
CREATE TABLE part1 PARTITION OF parted FOR VALUES IN (1);
CREATE TABLE part2 (c text, gone int, y float8, a float8, region int, k int);
ALTER TABLE part2 DROP COLUMN gone;
ALTER TABLE parted ATTACH PARTITION part2 FOR VALUES IN (2);
INSERT INTO parted SELECT i, 1 + i % 2, cos(i), chr(97 + i % 3), sin(i)
FROM generate_series(1, 200) i;
SELECT posterior.create_context('parted', 'parted', 'y', '{a,c}', filter => 'k > 3');
CREATE VIEW parted_now AS SELECT posterior.sums('parted') OPERATOR(posterior.=)
		(SELECT posterior.context(posterior.basis(posterior.sums('parted')), y, a, c)
			FROM parted WHERE k > 3) AS same, answer('parted') = answer_read('parted') AS answers,
	posterior.rows(posterior.sums('parted')) AS rows;
SELECT * FROM parted_now;
INSERT INTO parted VALUES (300, 2, 0.1, 'x', 0.2);
INSERT INTO part2 VALUES ('y', 0.3, 0.4, 2, 301);
UPDATE parted SET region = 3 - region WHERE k % 3 = 0;
DELETE FROM part1 WHERE k < 20;
SELECT * FROM parted_now;
CREATE TABLE part3 PARTITION OF parted FOR VALUES IN (3);
INSERT INTO parted VALUES (310, 3, 0.1, 'x', 0.2);
SELECT * FROM parted_now;
SELECT posterior.warm_context('parted');
ALTER TABLE parted DETACH PARTITION part1;
SELECT * FROM parted_now;
INSERT INTO part1 VALUES (311, 1, 0.5, 'x', 0.5);
ALTER TABLE parted ATTACH PARTITION part1 FOR VALUES IN (1);
SELECT * FROM parted_now;
SELECT posterior.warm_context('parted');
TRUNCATE part2;
SELECT * FROM parted_now;
SELECT posterior.warm_context('parted');
SELECT * FROM parted_now;
-- joint questions, and the evidence
SELECT count(*) AS draws, count(DISTINCT s.y) AS different FROM posterior.sample('all',
	ARRAY[(1, 2, 'x', NULL), (1, 2, 'x', NULL)]::question[], 10, 7) s;
SELECT abs(posterior.log_density('all', 0.4, (1, 2, 'x', NULL)::question) - posterior.log_pdf(
	posterior.predict('all', (1, 2, 'x', NULL)::question), 0.4)) < 1e-9 AS one_row;
SELECT posterior.log_evidence(posterior.sums('all')) IS NOT NULL AS evidence;
SELECT count(*) FROM posterior.predict_rows('all',
	ARRAY[(1, 2, 'x', NULL), (2, 2, 'x', NULL)]::question[]);
-- definitions
SELECT posterior.alter_context('all', new_name => 'whole');
SELECT posterior.alter_context('whole', new_name => 'all');
SELECT posterior.alter_context('some', filter => 'b > 1 AND c <> ''w''', features => '{a}');
SELECT posterior.sums('some') OPERATOR(posterior.=) (SELECT posterior.context(posterior.basis(
		posterior.sums('some')), y, a) FROM reading WHERE b > 1 AND c <> 'w') AS same,
	posterior.features(posterior.sums('some')) AS features;
SELECT posterior.alter_context('some', maintain => 'read');
SELECT posterior.sums('some');
SELECT posterior.alter_context('some', maintain => 'sums', order_by => 'k');
SELECT posterior.alter_context('some', maintain => 'sums');
SELECT posterior.rows(posterior.sums('some')) > 100 AS kept;
CREATE TABLE few (a float8, y float8);
SELECT posterior.create_context('few', 'few', 'y', '{a}');
INSERT INTO few SELECT sin(i), cos(i) FROM generate_series(1, 40) i;
SELECT posterior.sums('few');
SELECT posterior.median(posterior.predict('few', '{"a": 0.5}'::jsonb)) IS NOT NULL AS answers;
SELECT posterior.refresh_context('few');
INSERT INTO few SELECT sin(i), cos(i) FROM generate_series(41, 50) i;
SELECT posterior.rows(posterior.sums('few')) AS rows;
CREATE TYPE mood AS ENUM ('good', 'bad');
CREATE TABLE moods (m mood, a float8, y float8);
SELECT posterior.create_context('moods', 'moods', 'y', '{m,a}');
SELECT posterior.create_context('moods', 'moods', 'y', '{m,a}', maintain => 'read');
SELECT posterior.create_context('view', 'kept_now', 'rows', '{same}', maintain => 'sums');
SELECT posterior.create_context('view', 'few', 'y', '{a}', maintain => 'sums', max_rows => 9);
SET posterior.model = 'tabular';
SELECT posterior.create_context('other', 'few', 'y', '{a}', maintain => 'sums');
SET posterior.model = 'sums';
-- rights: who may not read the columns reads the rows, and fails
CREATE ROLE kept_reader;
GRANT USAGE ON SCHEMA kept_sums TO kept_reader;
GRANT SELECT (a) ON few TO kept_reader;
SET ROLE kept_reader;
SELECT posterior.predict('few', '{"a": 0.5}'::jsonb) IS NOT NULL AS answers;
RESET ROLE;
GRANT SELECT (y), INSERT ON few TO kept_reader;
SET ROLE kept_reader;
SELECT posterior.predict('few', '{"a": 0.5}'::jsonb) IS NOT NULL AS answers;
INSERT INTO few VALUES (3, 3);
RESET ROLE;
SELECT posterior.rows(posterior.sums('few')) AS rows;
GRANT SELECT ON few TO kept_reader;
ALTER TABLE few ENABLE ROW LEVEL SECURITY;
CREATE POLICY half ON few USING (a > 0);
SET ROLE kept_reader;
SELECT posterior.sums('few');
SET posterior.row_security = private;
SELECT posterior.rows(posterior.sums('few')) = (SELECT count(*) FROM few) AS own;
RESET posterior.row_security;
RESET ROLE;
-- what goes with a table and a context
SELECT posterior.drop_context('all'), posterior.drop_context('parted');
DROP TABLE few, young;
SELECT count(*) AS kept FROM posterior_internal.kept_sums k
	WHERE kept NOT IN (SELECT d.kept FROM posterior.context_definition d WHERE d.kept IS NOT NULL);
SELECT tgname ~ '^posterior_keep' AS ours, count(*) FROM pg_trigger
	WHERE tgrelid IN ('parted'::regclass, 'part1'::regclass) GROUP BY 1;
SET client_min_messages = warning;
DROP SCHEMA kept_sums CASCADE;
DROP ROLE kept_reader;
SELECT count(*) FROM posterior_internal.noted_row;
SELECT posterior.drop_model('sums');
-- a model that has none
CREATE TABLE none_kept AS SELECT i::float8 AS x, sin(i) AS y FROM generate_series(1, 20) i;
SELECT posterior.create_context('none kept', 'none_kept', 'y', '{x}', model => 'tabular',
	maintain => 'sums');
DROP TABLE none_kept;
