-- The script runs with a superuser's rights and in the schema: nothing there may take the place of
-- what it means, and no other role may put there later what users of the extension then find.
SET LOCAL search_path = pg_catalog, pg_temp;
DO $$
DECLARE
	owner text;
BEGIN
	SELECT r.rolname INTO owner FROM pg_namespace n JOIN pg_roles r ON r.oid = n.nspowner
	WHERE n.nspname = 'posterior' AND NOT r.rolsuper AND r.rolname <> current_user;
	IF FOUND THEN
		RAISE EXCEPTION 'schema "posterior" belongs to role "%"', owner
			USING ERRCODE = 'object_not_in_prerequisite_state',
			DETAIL = 'What its owner puts there could be called in the place of the extension''s.',
			HINT = 'Look at what is in the schema, then drop it, or ALTER SCHEMA posterior OWNER '
				'TO CURRENT_USER.';
	END IF;
END $$;
