-- What a user sees of the named contexts: counts of rows only of those that it may read. Columns
-- of these views are only ever added, at the end, so that views of users upon them stay.

CREATE FUNCTION posterior.context_state(id uuid, OUT skips bigint, OUT deltas bigint,
		OUT reads bigint, OUT extensions bigint, OUT rebuilds bigint,
		OUT private bigint, OUT rows bigint, OUT prefix_rows bigint, OUT suffix_rows bigint,
			OUT bytes bigint, OUT drift float8, OUT waiting_rows bigint, OUT revisions bigint)
	RETURNS SETOF record
	AS 'MODULE_PATHNAME', 'posterior_context_state' LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED
		COST 100 ROWS 1;
COMMENT ON FUNCTION posterior.context_state(uuid)
	IS 'counters of a named context, for those who may read its rows; the view '
		'posterior.stat_contexts shows them';

CREATE OR REPLACE VIEW posterior.contexts WITH (security_barrier) AS
	SELECT name, owner::pg_catalog.regrole AS owner, relation::pg_catalog.regclass AS relation,
		CASE WHEN more_targets IS NULL THEN posterior.column_name(target)
			ELSE (ARRAY[posterior.column_name(target)] OPERATOR(pg_catalog.||) ARRAY(
				SELECT posterior.column_name(m) FROM pg_catalog.unnest(more_targets)
					WITH ORDINALITY u(m, i) ORDER BY i))::text END AS target,
		ARRAY(SELECT posterior.column_name(f) FROM pg_catalog.unnest(features)
				WITH ORDINALITY u(f, i) ORDER BY i) AS features,
		(SELECT pg_catalog.string_agg(pg_catalog.quote_ident(posterior.column_name(o)) || CASE
					WHEN d THEN ' DESC' ELSE '' END, ', ' ORDER BY i)
			FROM ROWS FROM (pg_catalog.unnest(order_by), pg_catalog.unnest(descending))
				WITH ORDINALITY u(o, d, i)) AS order_by,
		posterior.condition(filter) AS filter, model, max_rows, maintain,
		(SELECT d.refreshed_rows FROM posterior.context_state(d.id)) AS refreshed_rows,
		estimators, coalesce(freshness, 'exact') AS freshness, neighbours
	FROM posterior.context_definition d
	WHERE pg_catalog.has_any_column_privilege(relation, 'SELECT')
		OR pg_catalog.pg_has_role(owner, 'USAGE');
COMMENT ON VIEW posterior.contexts
	IS 'the named contexts of this database that the user owns or of whose relation the user may '
		'read a column';

CREATE OR REPLACE VIEW posterior.stat_contexts WITH (security_barrier) AS
	SELECT d.name, d.relation::pg_catalog.regclass AS relation, s.*
	FROM posterior.context_definition d, LATERAL posterior.context_state(d.id) s;
COMMENT ON VIEW posterior.stat_contexts
	IS 'how statements got at the encodings of named contexts whose rows the user may read, since '
		'the server''s start, and how large these are';

CREATE OR REPLACE VIEW posterior.stat_progress WITH (security_barrier) AS
	SELECT p.pid, d.name, p.phase, p.done, p.total
	FROM posterior.progress() p LEFT JOIN posterior.context_definition d ON d.id
		OPERATOR(pg_catalog.=) p.context_id;
COMMENT ON VIEW posterior.stat_progress
	IS 'rows that backends have read, encoded or answered so far, for named contexts and others';
