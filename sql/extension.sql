-- everything that the extension makes is described and marked
SELECT p.proname FROM pg_proc p WHERE p.pronamespace = 'posterior'::regnamespace
	AND obj_description(p.oid, 'pg_proc') IS NULL
	AND p.prorettype <> 'internal'::regtype AND NOT 'internal'::regtype = ANY (p.proargtypes::oid[])
	AND p.proname !~ ('^(distribution|context|regcolumn|regowner|regrelation|row_filter)'
		'_(in|out|send|recv|eq|ne|lt|le|gt|ge|cmp|hash)$')
	AND p.proname <> 'float8range' AND p.proname !~ 'multirange' ORDER BY 1;
SELECT p.oid::regprocedure, p.provolatile, p.proparallel FROM pg_proc p
	WHERE (p.pronamespace = 'posterior'::regnamespace
		OR p.pronamespace = 'posterior_internal'::regnamespace
			AND p.prolang = (SELECT oid FROM pg_language WHERE lanname = 'c'))
	AND (p.provolatile <> 'i' OR p.proparallel <> 's') AND p.proname !~ '_final$'
		ORDER BY p.oid::regprocedure::text;
SELECT count(*) FROM pg_proc p
	WHERE p.pronamespace IN ('posterior'::regnamespace, 'posterior_internal'::regnamespace)
	AND (p.prosecdef OR p.proleakproof);
SELECT typname, typalign, typstorage FROM pg_type WHERE typnamespace = 'posterior'::regnamespace
	AND typtype = 'b' AND typelem = 0 ORDER BY 1;
SELECT extversion, extrelocatable, extnamespace::regnamespace FROM pg_extension
	WHERE extname = 'pg_posterior';
-- \df posterior.* shows what is called, and the triggers that dumps of tables name
SELECT p.oid::regprocedure AS part FROM pg_proc p WHERE p.pronamespace = 'posterior'::regnamespace
	AND (p.prorettype IN ('trigger'::regtype, 'event_trigger'::regtype, 'internal'::regtype,
		'cstring'::regtype) OR 'internal'::regtype = ANY (p.proargtypes::oid[])
		OR p.proname ~ '^(progress|server_|context_state)')
	ORDER BY p.oid::regprocedure::text;
SELECT p.oid::regprocedure AS "not for all" FROM pg_proc p
	WHERE p.pronamespace = 'posterior_internal'::regnamespace
	AND NOT has_function_privilege('pg_monitor', p.oid, 'EXECUTE')
	ORDER BY p.oid::regprocedure::text;
-- every column of a view says what it is
SELECT a.attrelid::regclass AS view, a.attname AS column FROM pg_attribute a
	JOIN pg_class c ON c.oid = a.attrelid
	WHERE c.relnamespace = 'posterior'::regnamespace AND c.relkind = 'v' AND a.attnum > 0
	AND col_description(a.attrelid, a.attnum) IS NULL ORDER BY 1, 2;
