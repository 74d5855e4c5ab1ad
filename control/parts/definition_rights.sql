-- refreshed_rows counts rows of tables that not all roles may read: predictions read definitions as
-- their owner, users read the view. The owner of the database may dump them.
DO $$ BEGIN
	IF EXISTS (SELECT FROM pg_catalog.pg_roles
			WHERE rolname OPERATOR(pg_catalog.=) 'pg_database_owner') THEN
		GRANT SELECT ON posterior.context_definition TO pg_database_owner;
	END IF;
END $$;
