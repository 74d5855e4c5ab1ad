-- predictions by name need the right to read the rows; changes of a context need its ownership
\i sql/include/try.sql
SELECT posterior.load_model('echo', current_setting('test.models') || '/transparent.safetensors');
CREATE ROLE posterior_owner;
CREATE ROLE posterior_reader;
CREATE ROLE posterior_stranger;
CREATE ROLE posterior_member IN ROLE posterior_owner;
CREATE SCHEMA rooms AUTHORIZATION posterior_owner;
GRANT ALL ON SCHEMA rooms TO posterior_owner;
-- the ids of the rows that an answer has read, or the error
CREATE FUNCTION ids(named text) RETURNS text STABLE LANGUAGE sql AS
$$ SELECT string_agg(i::text, ' ' ORDER BY i)
	FROM (SELECT round(posterior.mean(posterior.predict(named, q)))::int AS bits
		FROM (SELECT 0 AS id) q) p, generate_series(0, 23) i WHERE (bits >> i) & 1 = 1 $$;
CREATE FUNCTION tell(named text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	hint text;
BEGIN
	RETURN ids(named);
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
	RETURN concat_ws(' | ', SQLSTATE, SQLERRM, nullif(hint, ''));
END $$;
GRANT EXECUTE ON FUNCTION ids, tell, try TO PUBLIC;
SET posterior.model = 'echo';
SET ROLE posterior_owner;
CREATE TABLE rooms.t (id int, who text, y float8, secret float8);
INSERT INTO rooms.t SELECT i, CASE WHEN i % 2 = 0 THEN 'posterior_reader' ELSE 'posterior_owner'
	END, 0, i FROM generate_series(1, 6) i;
SELECT posterior.create_context('t', 'rooms.t', 'y', '{id}', 'id');
SELECT posterior.create_context('filtered', 'rooms.t', 'y', '{id}', 'id', filter => 'secret > 2');
SELECT tell('t'), tell('filtered');

-- reading: the schema, the columns that are used, the filter's among them
SET ROLE posterior_stranger;
SELECT tell('t'), tell('filtered');
SELECT try('SELECT posterior.warm_context(''t'')'),
	try('SELECT posterior.predict_rows(''t'', ARRAY(SELECT q FROM (SELECT 1 AS id) q))');
SELECT try('SELECT posterior.sample(''t'', ARRAY(SELECT q FROM (SELECT 1 AS id) q))'),
	try('SELECT posterior.log_density(''t'', 1, q) FROM (SELECT 1 AS id) q');
-- a row that does not fit tells nothing of the columns
SELECT try('SELECT posterior.predict(''t'', q) FROM (SELECT 1 AS nothing) q');
SELECT try('SELECT posterior.create_context(''mine'', ''rooms.t'', ''y'', ''{id}'', ''id'')');
SELECT count(*) FROM posterior.contexts;
SELECT count(*) FROM posterior.stat_contexts;
SET ROLE posterior_owner;
GRANT SELECT (id, y) ON rooms.t TO posterior_reader;
SET ROLE posterior_reader;
SELECT tell('t');
RESET ROLE;
GRANT USAGE ON SCHEMA rooms TO posterior_reader;
SET ROLE posterior_reader;
SELECT tell('t'), tell('filtered');
SELECT name FROM posterior.contexts ORDER BY name;
-- also at a call site that has found the encoding before
\set SHOW_CONTEXT never
PREPARE ask AS SELECT count(ids('filtered'));
SET ROLE posterior_owner;
EXECUTE ask;
SET ROLE posterior_reader;
EXECUTE ask;
SET ROLE posterior_owner;
SELECT i, posterior.predict('filtered', q) IS NOT NULL AS answered,
	set_config('role', 'posterior_reader', false)
	FROM (SELECT i, 0 AS id FROM generate_series(1, 2) i) q;
RESET ROLE;
\set SHOW_CONTEXT errors
-- a SECURITY DEFINER function gives its owner's right
SET ROLE posterior_owner;
CREATE FUNCTION rooms.lent(id int) RETURNS posterior.distribution LANGUAGE sql
	STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	SELECT posterior.predict('filtered', q) FROM (SELECT $1 AS id) q $$;
SET ROLE posterior_reader;
SELECT round(posterior.mean(rooms.lent(0))) AS bits, tell('filtered');

-- changing: the owner, members of the owner's role, superusers
SELECT try('SELECT posterior.alter_context(''t'', order_by => ''id DESC'')'),
	try('SELECT posterior.drop_context(''t'')'), try('SELECT posterior.refresh_context(''t'')');
SELECT try('INSERT INTO posterior.context_definition SELECT * FROM posterior.context_definition'),
	try('UPDATE posterior.context_definition SET owner = current_user::regrole'), try('DELETE
	FROM posterior.context_definition'), try('TRUNCATE posterior.context_definition');
SELECT try('SELECT posterior.stat_reset()');
-- a context on another owner's table needs no right but reading, and makes no triggers there
SELECT posterior.create_context('mine', 'rooms.t', 'y', '{id}', 'id DESC');
SELECT name, owner, maintain FROM posterior.contexts ORDER BY name;
SELECT try('SELECT posterior.alter_context(''mine'', maintain => ''trigger'')');
SELECT try('SELECT posterior.alter_context(''mine'', features => ''{secret}'')');
SELECT tell('mine');
SET ROLE posterior_owner;
SELECT tell('mine'), try('SELECT posterior.drop_context(''mine'')');
SET ROLE posterior_member;
SELECT posterior.alter_context('t', order_by => 'id DESC');
SET ROLE posterior_reader;
SELECT posterior.drop_context('mine');
SELECT count(*) FROM pg_trigger WHERE tgrelid = 'rooms.t'::regclass;
RESET ROLE;
SELECT posterior.alter_context('t', order_by => 'id');
SELECT owner FROM posterior.contexts WHERE name = 't';

-- writing the table needs no right on contexts
REVOKE USAGE ON SCHEMA posterior FROM PUBLIC;
GRANT USAGE ON SCHEMA rooms TO posterior_stranger;
GRANT INSERT, DELETE, SELECT ON rooms.t TO posterior_stranger;
SET ROLE posterior_stranger;
INSERT INTO rooms.t VALUES (9, 'posterior_owner', 0, 9);
DELETE FROM rooms.t WHERE id = 9;
DROP TABLE IF EXISTS rooms.nothing;
CREATE TEMP TABLE passing (x int);
DROP TABLE passing;
RESET ROLE;
GRANT USAGE ON SCHEMA posterior TO PUBLIC;
SELECT tell('t');

-- row-level security
SET ROLE posterior_owner;
GRANT SELECT ON rooms.t TO posterior_reader;
ALTER TABLE rooms.t ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON rooms.t USING (who = current_user);
SELECT tell('t') AS "the owner is not concerned";
SET ROLE posterior_reader;
SELECT tell('t');
SET posterior.row_security = private;
SELECT tell('t'), tell('filtered');
SELECT tell('t'), tell('filtered');
RESET posterior.row_security;
SELECT tell('t');
SET row_security = off;
SELECT tell('t');
RESET row_security;
SET ROLE posterior_owner;
ALTER TABLE rooms.t FORCE ROW LEVEL SECURITY;
SELECT tell('t');
SET posterior.row_security = private;
SELECT tell('t');
SET ROLE posterior_reader;
SELECT tell('t');
INSERT INTO rooms.t VALUES (8, 'posterior_reader', 0, 8);
RESET ROLE;
INSERT INTO rooms.t VALUES (8, 'posterior_reader', 0, 8), (9, 'posterior_owner', 0, 9);
SELECT tell('t') AS "a superuser sees all";
SET ROLE posterior_owner;
SELECT tell('t');
SET ROLE posterior_reader;
SELECT tell('t');
RESET ROLE;
RESET posterior.row_security;

-- nothing of the caller's stands in front of what the functions mean
SET ROLE posterior_member;
CREATE TEMP TABLE context_definition (name text);
SET search_path = pg_temp, public;
SELECT count(*) FROM (SELECT posterior.refresh_context('t')) s;
CREATE TEMP TABLE t (id int, y float8);
INSERT INTO t VALUES (20, 0);
RESET search_path;
SET ROLE posterior_owner;
ALTER TABLE rooms.t NO FORCE ROW LEVEL SECURITY;
SET search_path = pg_temp, rooms, public;
SELECT tell('t');
RESET search_path;
RESET ROLE;

-- a role that goes leaves its contexts to superusers
SET ROLE posterior_reader;
SELECT posterior.create_context('orphan', 'rooms.t', 'y', '{id}', 'id');
RESET ROLE;
DROP OWNED BY posterior_reader;
DROP ROLE posterior_reader;
SELECT tell('orphan'), owner::text ~ '^[0-9]+$' AS "no name" FROM posterior.contexts
	WHERE name = 'orphan';
SET ROLE posterior_owner;
SELECT try('SELECT posterior.drop_context(''orphan'')');
RESET ROLE;
SELECT posterior.drop_context('orphan');
SET client_min_messages = warning;
DROP SCHEMA rooms CASCADE;
SELECT count(*) FROM posterior.contexts;
DROP OWNED BY posterior_owner, posterior_stranger, posterior_member;
DROP ROLE posterior_owner, posterior_stranger, posterior_member;
DROP FUNCTION ids, tell, try;
SELECT posterior.drop_model('echo');
