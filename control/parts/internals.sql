-- ---- what types, operators and aggregates are made of -------------------------------------------
-- Functions that no user calls by name: out of the schema that \df posterior.* lists. Operators,
-- types and aggregates refer to them by OID. The trigger functions note_… stay: dumps of tables
-- name them.
DO $$
DECLARE
	part regprocedure;
BEGIN
	FOR part IN
		SELECT p.oid::regprocedure FROM pg_catalog.pg_proc p
		WHERE p.pronamespace = 'posterior'::regnamespace AND p.proname !~ '^note_' AND (
			p.oid IN (SELECT pg_catalog.unnest(ARRAY[typinput, typoutput, typreceive]::oid[])
				FROM pg_catalog.pg_type)
			OR p.oid IN (SELECT oprcode FROM pg_catalog.pg_operator)
			OR p.oid IN (SELECT amproc FROM pg_catalog.pg_amproc)
			OR p.oid IN (SELECT pg_catalog.unnest(ARRAY[aggtransfn, aggfinalfn, aggcombinefn,
				aggserialfn, aggdeserialfn]::oid[]) FROM pg_catalog.pg_aggregate)
			OR p.oid IN (SELECT evtfoid FROM pg_catalog.pg_event_trigger)
			OR p.proname IN ('progress', 'server_state', 'server_device',
				'context_state'))
		ORDER BY p.proname, 1
	LOOP
		EXECUTE pg_catalog.format('ALTER FUNCTION %s SET SCHEMA posterior_internal', part);
	END LOOP;
END $$;

-- Only the server calls it. Making a trigger would take the right to execute its function.
REVOKE EXECUTE ON FUNCTION posterior_internal.dropped() FROM PUBLIC;
