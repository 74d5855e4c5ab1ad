-- refresh_context: the rows that are there become the prefix, for as long as they are there and the
-- canonical one is shorter
\set VERBOSITY terse
CREATE TABLE readings (i int PRIMARY KEY, x float8, y float8);
INSERT INTO readings SELECT i, i / 10.0, i % 7 FROM generate_series(1, 37) i;
SELECT posterior.create_context('fresh', 'readings', 'y', features => '{x}', order_by => 'i',
		model => 'tabular_small');
SELECT posterior.create_context('plain', 'readings', 'y', features => '{x}', order_by => 'i',
		model => 'tabular_small');
CREATE FUNCTION by_name(name text) RETURNS posterior.distribution STABLE LANGUAGE sql AS $$
	SELECT posterior.predict(name, q) FROM (SELECT 1.5::float8 AS x, 200 AS i) q $$;
-- given as a whole, all rows are the prefix
CREATE FUNCTION whole(first int) RETURNS posterior.distribution STABLE
	LANGUAGE sql SET posterior.model = 'tabular_small' AS $$
	SELECT posterior.predict((SELECT posterior.context(y, x ORDER BY i) FROM readings
				WHERE i >= first), 1.5::float8) $$;
CREATE FUNCTION is_plain() RETURNS boolean STABLE LANGUAGE sql AS $$
	SELECT by_name('fresh') OPERATOR(posterior.=) by_name('plain') $$;
CREATE FUNCTION is_whole(first int DEFAULT 1) RETURNS boolean STABLE LANGUAGE sql AS $$
	SELECT by_name('fresh') OPERATOR(posterior.=) whole(first) $$;
-- and each answer is the one from scratch
SET posterior.cache = verify;

SELECT is_plain(), is_whole();
SELECT posterior.refresh_context('fresh');
SELECT is_plain(), is_whole(), refreshed_rows FROM posterior.contexts WHERE name = 'fresh';
INSERT INTO readings VALUES (38, 9, 1);
SELECT is_plain(), is_whole() AS "a row later";
UPDATE readings SET y = 5 WHERE i = 3;
SELECT is_plain(), is_whole() AS "another row of the prefix";
DELETE FROM readings WHERE i < 3;
SELECT is_plain(), is_whole() AS "too few rows left";
INSERT INTO readings SELECT i, i / 10.0, i % 7 FROM generate_series(39, 66) i;
SELECT is_plain(), is_whole(), count(*) AS "a power of two" FROM readings;
-- in a transaction with rows of its own, and undone
BEGIN;
INSERT INTO readings VALUES (67, 1, 1), (68, 2, 2), (69, 3, 3);
SELECT posterior.refresh_context('fresh');
SELECT is_plain(), is_whole();
INSERT INTO readings VALUES (70, 1, 1);
SELECT is_plain(), is_whole();
ROLLBACK;
SELECT is_plain(), is_whole(), refreshed_rows FROM posterior.contexts WHERE name = 'fresh';
-- another definition has seen no refresh
INSERT INTO readings VALUES (67, 1, 1);
SELECT posterior.refresh_context('fresh');
SELECT is_plain(), is_whole();
SELECT posterior.alter_context('fresh', order_by => 'i');
SELECT is_plain(), is_whole(), refreshed_rows FROM posterior.contexts WHERE name = 'fresh';

-- rows are counted by the definition that gets the number, also by one of the same statement
SELECT posterior.alter_context('fresh', filter => 'i > 10'), posterior.refresh_context('fresh');
SELECT refreshed_rows, count(*) FROM posterior.contexts, readings
	WHERE name = 'fresh' AND i > 10 GROUP BY 1;
SELECT posterior.alter_context('fresh', filter => '', new_name => 'renamed'),
	posterior.refresh_context('renamed'), posterior.alter_context('renamed', new_name => 'fresh');

-- of the rows of the refresh those that are still in the window: all 20, 20 of 21, none
SELECT posterior.alter_context('fresh', max_rows => 30),
	posterior.alter_context('plain', max_rows => 30);
SELECT count(*) FROM readings;
SELECT posterior.refresh_context('fresh');
SELECT is_plain(), is_whole(48), is_whole(47);
INSERT INTO readings VALUES (68, 1, 1);
SELECT is_plain(), is_whole(48);
INSERT INTO readings SELECT i, 1, 1 FROM generate_series(69, 110) i;
SELECT is_plain();

-- models without a prefix have nothing to refresh but the encoding
SELECT posterior.load_model('packed_causal', current_setting('test.models')
		|| '/packed_causal.safetensors');
SELECT posterior.alter_context('fresh', features => '{x,i}', model => 'packed_causal'),
	posterior.alter_context('plain', features => '{x,i}', model => 'packed_causal');
SELECT posterior.refresh_context('fresh');
SELECT is_plain(), refreshed_rows FROM posterior.contexts WHERE name = 'fresh';

-- what a policy shows to one is no number for all
CREATE ROLE named_refresh_owner;
GRANT SELECT ON readings TO named_refresh_owner;
CREATE POLICY half ON readings USING (i % 2 = 0);
ALTER TABLE readings ENABLE ROW LEVEL SECURITY;
SET ROLE named_refresh_owner;
SELECT posterior.create_context('seen', 'readings', 'y', features => '{x}', order_by => 'i',
		model => 'tabular_small', maintain => 'read');
SELECT posterior.refresh_context('seen');
SELECT refreshed_rows FROM posterior.contexts WHERE name = 'seen';
RESET ROLE;
SELECT posterior.refresh_context('seen');
SELECT refreshed_rows, (SELECT count(*) FROM readings) FROM posterior.contexts WHERE name = 'seen';
RESET posterior.cache;
DROP FUNCTION is_plain, is_whole, whole, by_name;
DROP TABLE readings;
SELECT posterior.drop_model('packed_causal');
DROP ROLE named_refresh_owner;
