-- the counters of a context tell how many rows of a table meet a condition: they are for roles that
-- could have counted these rows
SELECT posterior.load_model('echo', current_setting('test.models') || '/transparent.safetensors');
CREATE ROLE posterior_owner;
CREATE ROLE posterior_whole;
CREATE ROLE posterior_columns;
CREATE ROLE posterior_stranger;
CREATE SCHEMA vault AUTHORIZATION posterior_owner;
GRANT USAGE ON SCHEMA vault TO posterior_whole, posterior_columns;
SET posterior.model = 'echo';
SET ROLE posterior_owner;
CREATE TABLE vault.t (id int PRIMARY KEY, y float8, secret float8);
INSERT INTO vault.t SELECT i, 0, i FROM generate_series(1, 6) i;
SELECT posterior.create_context('open', 'vault.t', 'y', '{id}', 'id');
SELECT posterior.create_context('filtered', 'vault.t', 'y', '{id}', 'id', filter => 'secret > 2');
SELECT posterior.create_context('ordered', 'vault.t', 'y', '{id}', 'secret, id');
SELECT posterior.create_context('featured', 'vault.t', 'y', '{secret}', 'id');
SELECT posterior.create_context('aimed', 'vault.t', 'secret', '{id}', 'id');
GRANT SELECT ON vault.t TO posterior_whole;
GRANT SELECT (id, y) ON vault.t TO posterior_columns;
SELECT posterior.warm_context(name) FROM posterior.contexts WHERE name = 'filtered';
SELECT posterior.refresh_context(name) FROM posterior.contexts;
RESET ROLE;
CREATE TABLE ids AS SELECT id, name FROM posterior.context_definition;
GRANT SELECT ON ids TO PUBLIC;

-- the contexts whose counters, rows at the last refresh and definitions each role gets to see
CREATE FUNCTION shown() RETURNS TABLE (what text, names text) LANGUAGE sql AS $$
	SELECT 'contexts', string_agg(name, ' ' ORDER BY name) FROM posterior.contexts
	UNION ALL SELECT 'refreshed_rows', string_agg(name || ' ' || refreshed_rows, ' ' ORDER BY name)
		FROM posterior.contexts
	UNION ALL SELECT 'stat_contexts', string_agg(name, ' ' ORDER BY name)
		FROM posterior.stat_contexts
	UNION ALL SELECT 'context_state', string_agg(name, ' ' ORDER BY name)
		FROM ids, posterior_internal.context_state(id) $$;
SET ROLE posterior_owner;
SELECT * FROM shown();
SET ROLE posterior_whole;
SELECT * FROM shown();
SET ROLE posterior_columns;
SELECT * FROM shown();
SET ROLE posterior_stranger;
SELECT * FROM shown();
RESET ROLE;

-- the definitions themselves are read by predictions, for users without a right on them
SET ROLE posterior_columns;
SELECT count(*) FROM posterior.context_definition;
SELECT posterior.kind(posterior.predict('open', q)) FROM (SELECT 1 AS id) q;
\set SHOW_CONTEXT never
SELECT posterior.predict('filtered', q) FROM (SELECT 1 AS id) q;
\set SHOW_CONTEXT errors
-- also where an error ends a part of the transaction only
DO $$ BEGIN
	PERFORM posterior.predict('nothing', q) FROM (SELECT 1 AS id) q;
EXCEPTION WHEN undefined_object THEN
	RAISE NOTICE 'current user %', current_user;
END $$;
DO $$ BEGIN
	PERFORM posterior.drop_context('open');
EXCEPTION WHEN insufficient_privilege THEN
	RAISE NOTICE 'current user %', current_user;
END $$;
SELECT current_user;
SET row_security = off;
SELECT posterior.kind(posterior.predict('open', q)) FROM (SELECT 1 AS id) q;
RESET row_security;

-- a cheap function of the user's is not asked before the view has looked at the rights
SET ROLE posterior_stranger;
CREATE TEMP TABLE passing (i int);
CREATE FUNCTION pg_temp.leak(text) RETURNS boolean LANGUAGE plpgsql COST 0.0001 AS $$
	BEGIN RAISE NOTICE 'leak %', $1; RETURN true; END $$;
SELECT count(*) FROM posterior.contexts WHERE pg_temp.leak(name);
SELECT count(*) FROM posterior.stat_contexts WHERE pg_temp.leak(name);
SELECT count(*) FROM posterior.stat_progress WHERE pg_temp.leak(name);

-- a right on the schema is needed as for reading
SET ROLE posterior_owner;
REVOKE USAGE ON SCHEMA vault FROM posterior_whole;
SET ROLE posterior_whole;
SELECT * FROM shown();
SET ROLE posterior_owner;
GRANT USAGE ON SCHEMA vault TO posterior_whole;

-- row-level security: a role that does not see all rows does not learn how many there are, nor does
-- the owner of a context that reads them
SET ROLE posterior_whole;
SELECT posterior.create_context('mine', 'vault.t', 'y', '{id}', 'id');
SET ROLE posterior_owner;
ALTER TABLE vault.t ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON vault.t USING (id < 3);
SELECT * FROM shown();
SET ROLE posterior_whole;
SELECT * FROM shown();
SELECT posterior.drop_context('mine');
SET ROLE posterior_owner;
ALTER TABLE vault.t DISABLE ROW LEVEL SECURITY;

-- dropping a context of an own table reads which others need its triggers
SELECT posterior.drop_context('aimed'), posterior.drop_context('featured');
SELECT posterior.alter_context('ordered', maintain => 'read');

-- a column that is gone: how many rows met a condition on it stays hidden from roles that could not
-- read it
ALTER TABLE vault.t DROP COLUMN secret;
SET ROLE posterior_columns;
SELECT * FROM shown();
RESET ROLE;

-- the owner of the database may dump the definitions, and so may roles that read all data
SELECT rolname FROM pg_roles, pg_class c, aclexplode(relacl) a
	WHERE c.oid = 'posterior.context_definition'::regclass AND a.grantee = pg_roles.oid
	AND privilege_type = 'SELECT' AND a.grantee <> relowner;
SELECT has_table_privilege('posterior_stranger', 'posterior.context_definition',
		'SELECT') AS stranger;
DROP FUNCTION shown;
DROP TABLE ids;
SET client_min_messages = warning;
DROP SCHEMA vault CASCADE;
DROP OWNED BY posterior_owner, posterior_whole, posterior_columns, posterior_stranger;
DROP ROLE posterior_owner, posterior_whole, posterior_columns, posterior_stranger;
SELECT posterior.drop_model('echo');
