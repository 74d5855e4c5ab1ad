-- everything that the extension makes is described and marked
SELECT p.proname FROM pg_proc p WHERE p.pronamespace = 'posterior'::regnamespace
	AND obj_description(p.oid, 'pg_proc') IS NULL
	AND p.prorettype <> 'internal'::regtype AND NOT 'internal'::regtype = ANY (p.proargtypes::oid[])
	AND p.proname !~ ('^(distribution|context|regcolumn|regowner|regrelation|row_filter)'
		'_(in|out|send|recv|eq|ne|lt|le|gt|ge|cmp|hash)$')
	AND p.proname <> 'float8range' AND p.proname !~ 'multirange' ORDER BY 1;
SELECT p.oid::regprocedure, p.provolatile, p.proparallel FROM pg_proc p
	WHERE p.pronamespace = 'posterior'::regnamespace
	AND (p.provolatile <> 'i' OR p.proparallel <> 's') AND p.proname !~ '_final$'
		ORDER BY p.oid::regprocedure::text;
SELECT count(*) FROM pg_proc p WHERE p.pronamespace = 'posterior'::regnamespace
	AND (p.prosecdef OR p.proleakproof);
SELECT typname, typalign, typstorage FROM pg_type WHERE typnamespace = 'posterior'::regnamespace
	AND typtype = 'b' AND typelem = 0 ORDER BY 1;
SELECT extversion, extrelocatable, extnamespace::regnamespace FROM pg_extension
	WHERE extname = 'pg_posterior';
