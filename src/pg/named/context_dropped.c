/*
 * context_dropped.c: named contexts go with their tables.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "postgres.h"

#include "pg/named/definition_write.h"

#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "commands/event_trigger.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#define DROPPED_DEFINITIONS \
	"DELETE FROM " POSTERIOR_DEFINITIONS \
	" d USING pg_catalog.pg_event_trigger_dropped_objects() o" \
	" WHERE o.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass" \
	" AND o.objsubid OPERATOR(pg_catalog.=) 0 AND d.relation::pg_catalog.oid " \
	"OPERATOR(pg_catalog.=) o.objid"

/* Whether the function is there that ends sums; its schema is not open to all roles. */
static bool
sums_can_end(void)
{
	const Oid	type = UUIDOID;

	return SearchSysCacheExists3(PROCNAMEARGSNSP, CStringGetDatum("end_sums"),
								 PointerGetDatum(buildoidvector(&type, 1)),
								 ObjectIdGetDatum(get_namespace_oid("posterior_internal", true)));
}

/* The event trigger for dropped tables: their contexts go with them. */
PG_FUNCTION_INFO_V1(posterior_dropped);
Datum
posterior_dropped(PG_FUNCTION_ARGS)
{
	if (!CALLED_AS_EVENT_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_EVENT_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("not called by an event trigger")));
	/*
	 * the extension itself may be among what is dropped, or be half there; and a context may be
	 * younger than the transaction's snapshot, like the table that is gone for all
	 */
	if (OidIsValid(get_relname_relid("context_definition", get_namespace_oid("posterior", true))))
		posterior_definitions_write_seen(
			true,
			sums_can_end()
			? "WITH gone AS (" DROPPED_DEFINITIONS " RETURNING d.kept)"
			" SELECT posterior_internal.end_sums(kept) FROM gone WHERE kept IS NOT NULL"
			: DROPPED_DEFINITIONS,
			0, NULL, NULL, NULL);
	PG_RETURN_POINTER(NULL);
}
