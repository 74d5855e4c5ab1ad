-- what a role must not learn, run or stop through the context of another one
CREATE ROLE posterior_author;
CREATE ROLE posterior_reader;
GRANT CREATE ON SCHEMA public TO posterior_author, posterior_reader;
CREATE FUNCTION answer(context text, at float8) RETURNS numeric LANGUAGE sql AS
$$ SELECT round(posterior.mean(posterior.predict(context, q))::numeric, 3)
	FROM (SELECT at AS x) q $$;
GRANT EXECUTE ON FUNCTION answer TO PUBLIC;

-- under policies a context that keeps sums answers from the rows that they show, as one of these
CREATE TABLE pay (id serial PRIMARY KEY, who name, x float8, y float8);
INSERT INTO pay (who, x, y) SELECT 'posterior_author', i, 777777 + i % 3
	FROM generate_series(1, 400) i;
INSERT INTO pay (who, x, y) SELECT 'posterior_reader', i, i FROM generate_series(1, 30) i;
SELECT posterior.create_context('pay', 'pay', 'y', '{x}', model => 'tabular_sums',
		maintain => 'sums');
SELECT answer('pay', 300) > 700000 AS "of all";
CREATE TABLE shown AS SELECT * FROM pay WHERE who = 'posterior_reader';
SELECT posterior.create_context('shown', 'shown', 'y', '{x}', model => 'tabular_sums',
		maintain => 'read');
ALTER TABLE pay ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON pay USING (who = current_user);
GRANT SELECT ON pay, shown TO posterior_reader;
SET ROLE posterior_reader;
SELECT answer('pay', 15);
SET posterior.row_security = private;
SELECT x, answer('pay', x) = answer('shown', x) AS "of the reader's"
	FROM unnest('{15, 300, 1e6}'::float8[]) x;
SELECT posterior.warm_context('pay');
SELECT posterior.rows(posterior.sums('pay'));
RESET posterior.row_security;
SELECT posterior.rows(posterior.sums('pay'));
RESET ROLE;
SELECT posterior.rows(posterior.sums('pay'));
SELECT posterior.drop_context('pay'), posterior.drop_context('shown');
DROP TABLE pay, shown;

-- an error quotes no definition to a role that may not see it
CREATE SCHEMA hidden;
CREATE TABLE hidden.s (id int PRIMARY KEY, code text, x float8, y float8);
INSERT INTO hidden.s SELECT i, 'a' || i, i, i FROM generate_series(1, 30) i;
SELECT posterior.create_context('hidden', 'hidden.s', 'y', '{x}', 'id',
		filter => $$code <> 'secret'$$);
SET ROLE posterior_reader;
SELECT posterior.predict('hidden', q) FROM (SELECT 1 AS nothing) q;
SELECT posterior.warm_context('hidden');
RESET ROLE;
GRANT USAGE ON SCHEMA hidden TO posterior_reader;
SET ROLE posterior_reader;
SELECT posterior.predict('hidden', q) FROM (SELECT 1 AS nothing) q;
SELECT posterior.sums('hidden');
RESET ROLE;
ALTER TABLE hidden.s ALTER code TYPE int USING id;
SET ROLE posterior_reader;
SELECT posterior.predict('hidden', q) FROM (SELECT 1.0 AS x) q;
RESET ROLE;
SELECT posterior.drop_context('hidden');
DROP SCHEMA hidden CASCADE;

-- a collation that is gone breaks its context, and neither the view nor a dump
SET ROLE posterior_author;
CREATE COLLATION public.order_of_author FROM "C";
CREATE TABLE public.labels (id int PRIMARY KEY, s text, x float8, y float8);
INSERT INTO labels SELECT i, 'a' || i, i, i FROM generate_series(1, 20) i;
SELECT posterior.create_context('labels', 'labels', 'y', '{x}', 'id',
		filter => $$s COLLATE public.order_of_author > 'a'$$);
DROP COLLATION public.order_of_author;
SELECT answer('labels', 1);
RESET ROLE;
SELECT name, filter FROM posterior.contexts;
COPY (SELECT filter FROM posterior.context_definition) TO STDOUT;
SELECT posterior.drop_context('labels');

-- what PostgreSQL calls immutable, and depends on TimeZone
CREATE TABLE spans (id int PRIMARY KEY, t1 timestamptz, t2 timestamptz, x float8, y float8);
SELECT posterior.create_context('spans', 'spans', 'y', '{x}', 'id',
		filter => $$age(t2, t1) >= interval '30 days'$$);
SELECT posterior.create_context('spans', 'spans', 'y', '{x}', 'id',
		filter => $$t2 - t1 >= interval '30 days'$$);
SELECT posterior.drop_context('spans');
DROP TABLE spans;

-- estimates of a plan call a function of the range's author
SET ROLE posterior_author;
CREATE FUNCTION public.difference(float8, float8) RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS
$$ BEGIN RAISE WARNING 'as %', current_user; RETURN $1 - $2; END $$;
CREATE TYPE public.spread AS RANGE (subtype = float8, subtype_diff = public.difference);
CREATE TABLE public.ranges (id int PRIMARY KEY, r public.spread, own int4range, x float8, y float8);
SELECT posterior.create_context('ranges', 'ranges', 'y', '{x}', 'id',
		filter => $$r @> 20.0::float8 OR id < 50$$);
SELECT posterior.create_context('ranges', 'ranges', 'y', '{x}', 'id', filter => $$own @> 20$$);
RESET ROLE;
SELECT posterior.drop_context('ranges');
DROP TABLE ranges;
DROP TYPE spread;
DROP FUNCTION difference(float8, float8);

-- counts of a view are of the role that read it last
CREATE TABLE private (id int PRIMARY KEY, who name, x float8, y float8);
INSERT INTO private SELECT i, CASE WHEN i <= 37 THEN 'posterior_author' ELSE 'posterior_reader' END,
	i, i FROM generate_series(1, 50) i;
CREATE VIEW mine WITH (security_barrier) AS SELECT * FROM private WHERE who = current_user;
GRANT SELECT ON mine TO posterior_author, posterior_reader;
SELECT posterior.create_context('mine', 'mine', 'y', '{x}', 'id');
SET ROLE posterior_author;
SELECT answer('mine', 2) IS NOT NULL AS answered;
SET ROLE posterior_reader;
SELECT count(*) FROM posterior.stat_contexts;
SELECT name, refreshed_rows FROM posterior.contexts;
RESET ROLE;
GRANT pg_read_all_stats TO posterior_reader;
SET ROLE posterior_reader;
SELECT name FROM posterior.stat_contexts;
RESET ROLE;
REVOKE pg_read_all_stats FROM posterior_reader;
SELECT posterior.drop_context('mine');
DROP VIEW mine;
DROP TABLE private;

-- rows of another table are no notes of a context, also while this one is broken
CREATE TABLE kept (id int PRIMARY KEY, x float8, y float8);
INSERT INTO kept SELECT i, i, i FROM generate_series(1, 400) i;
SELECT posterior.create_context('kept', 'kept', 'y', '{x}', model => 'tabular_sums',
		maintain => 'sums');
SELECT kept FROM posterior.context_definition WHERE name = 'kept' \gset
SET ROLE posterior_author;
CREATE TABLE public.forged (id int, x float8, y float8);
CREATE TRIGGER forged AFTER INSERT ON forged FOR EACH ROW
	EXECUTE FUNCTION posterior.note_sums(:'kept');
CREATE TRIGGER emptied AFTER TRUNCATE ON forged FOR EACH STATEMENT
	EXECUTE FUNCTION posterior.note_sums(:'kept');
RESET ROLE;
ALTER TABLE kept ALTER x TYPE bytea USING NULL;
SELECT count(*) AS before FROM posterior_internal.noted_row \gset
SELECT count(*) AS sums FROM posterior_internal.kept_sums \gset
SET ROLE posterior_author;
INSERT INTO forged SELECT i, i, 1e6 FROM generate_series(1, 100) i;
TRUNCATE forged;
RESET ROLE;
SELECT count(*) - :before AS noted FROM posterior_internal.noted_row;
SELECT count(*) = :sums AS "sums are there" FROM posterior_internal.kept_sums;
SELECT posterior.drop_context('kept');
DROP TABLE kept, forged;

-- the triggers of a table that belongs to another role by now stay as they are
SET ROLE posterior_author;
CREATE TABLE public.given (id int PRIMARY KEY, x float8, y float8);
INSERT INTO given SELECT i, i, i FROM generate_series(1, 400) i;
SELECT posterior.create_context('given', 'given', 'y', '{x}', 'id', maintain => 'trigger');
SELECT posterior.create_context('summed', 'given', 'y', '{x}', model => 'tabular_sums',
		maintain => 'sums');
RESET ROLE;
ALTER TABLE given OWNER TO posterior_reader;
REVOKE ALL ON given FROM posterior_author;
BEGIN;
SET LOCAL ROLE posterior_author;
SELECT posterior.alter_context('given', order_by => 'id DESC');
SELECT mode FROM pg_locks WHERE pid = pg_backend_pid() AND relation = 'given'::regclass
	AND mode <> 'AccessShareLock' AND mode <> 'RowExclusiveLock';
ROLLBACK;
SET ROLE posterior_author;
SELECT posterior.alter_context('given', maintain => 'trigger');
SELECT posterior.alter_context('summed', model => 'tabular_sums');
RESET ROLE;
SELECT posterior.drop_context('given'), posterior.drop_context('summed');

-- a filter whose errors are of limits lets rows be written; readers get the error
CREATE TABLE long (id int, s text, x float8, y float8);
INSERT INTO long SELECT i, 's', i, i FROM generate_series(1, 400) i;
SELECT posterior.create_context('long', 'long', 'y', '{x}', model => 'tabular_sums',
		maintain => 'sums',
		filter => $$CASE WHEN id < 1000 THEN true ELSE length(repeat(s, 100000000)) > 0 END$$);
INSERT INTO long VALUES (2000, repeat('s', 32), 1, 1);
SELECT answer('long', 1);
DELETE FROM long WHERE id = 2000;
SELECT answer('long', 1) IS NOT NULL AS answered;
SELECT posterior.drop_context('long');
DROP TABLE long;

-- a session that writes keeps nothing of contexts that are gone
CREATE FUNCTION come_and_go() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	CREATE TABLE brief (x float8, y float8);
	INSERT INTO brief SELECT i, i FROM generate_series(1, 40) i;
	PERFORM posterior.create_context('brief', 'brief', 'y', '{x}', model => 'tabular_sums',
		maintain => 'sums');
	INSERT INTO brief VALUES (0, 0);
	PERFORM posterior.drop_context('brief');
	DROP TABLE brief;
END $$;
SELECT count(come_and_go()) FROM generate_series(1, 20);
SELECT count(*) < 5 AS few FROM pg_backend_memory_contexts WHERE name = 'posterior source of sums';
DROP FUNCTION come_and_go();

-- adding a model replaces none
\set VERBOSITY terse
INSERT INTO posterior.model_file (name, version, file, architecture, context, head, description,
		max_features, min_rows, takes_missing, takes_categories, parameters)
	SELECT 'another', version, file, architecture, context, head, description, max_features,
		min_rows, takes_missing, takes_categories, parameters
	FROM posterior.model_file WHERE name = 'gp1d';
\set VERBOSITY default

DROP FUNCTION answer(text, float8);
DROP TABLE given, labels;
REVOKE CREATE ON SCHEMA public FROM posterior_author, posterior_reader;
DROP ROLE posterior_author, posterior_reader;
