/*
 * definition_write.c: the definitions of named contexts, written.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/named/definition_write.h"

#include "pg/base/acting.h"
#include "pg/types/regcolumn.h"

#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/uuid.h"

uint64
posterior_definitions_write_seen(bool now, const char *statement, int n, Oid *types, Datum *values,
								 const char *nulls)
{
	/* without the caller's rights on the schema: any user that drops a table comes here */
	Oid table = get_relname_relid("context_definition", get_namespace_oid("posterior", false));
	Relation	rel = table_open(table, AccessShareLock);
	Oid			owner = rel->rd_rel->relowner;
	PosteriorActing before;
	SPIPlanPtr	plan;
	uint64		count;

	table_close(rel, NoLock);
	posterior_act_as(owner, &before);
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	plan = SPI_prepare(statement, n, types);
	if (plan == NULL
		|| SPI_execute_snapshot(plan, values, nulls, now ? GetLatestSnapshot() : InvalidSnapshot,
								InvalidSnapshot, false, true, 0)
			   < 0)
		elog(ERROR, "could not write " POSTERIOR_DEFINITIONS);
	count = SPI_processed;
	SPI_finish();
	posterior_act_end(&before);
	return count;
}

uint64
posterior_definitions_write(const char *statement, int n, Oid *types, Datum *values,
							const char *nulls)
{
	return posterior_definitions_write_seen(false, statement, n, types, values, nulls);
}

void
posterior_definition_vanished(const char *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_OBJECT),
			 errmsg("context \"%s\" does not exist", name),
			 errdetail("It was dropped or renamed meanwhile.")));
}

void
posterior_keep_relation(Oid relation)
{
	LockRelationOid(relation, AccessShareLock);
}

/* The targets of a definition, from columns 3 and 6. */
static void
own_targets(HeapTuple row, TupleDesc desc, PosteriorColumns *columns)
{
	bool		isnull = true;
	Datum		more = (Datum) 0;
	AttrNumber *others;
	int			n;

	columns->targets[0] = posterior_regcolumn_number(SPI_getbinval(row, desc, 3, &isnull));
	columns->n_targets = 1;
	isnull = true;
	if (desc->natts >= 6)
		more = SPI_getbinval(row, desc, 6, &isnull);
	if (isnull)
		return;
	others = posterior_regcolumn_numbers(more, &n);
	for (int t = 0; t < n && columns->n_targets < TNP_MAX_TARGETS; t++)
		columns->targets[columns->n_targets++] = others[t];
}

pg_uuid_t *
posterior_own_context(const char *name, PosteriorColumns *columns, bool *maintained)
{
	Oid			type = TEXTOID;
	Datum		argument = CStringGetTextDatum(name);
	Oid			owner;
	pg_uuid_t  *id = palloc(sizeof(pg_uuid_t));
	PosteriorCaller caller;
	bool		isnull;

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	posterior_definitions_begin(&caller);
	if (SPI_execute_with_args(
			psprintf("SELECT owner::pg_catalog.oid, relation::pg_catalog.oid, target, maintain "
					 "OPERATOR(pg_catalog.=) 'trigger', id%s FROM " POSTERIOR_DEFINITIONS
					 " WHERE name OPERATOR(pg_catalog.=) $1",
					 posterior_definitions_extended() ? ", more_targets" : ""),
			1, &type, &argument, NULL, false, 1)
		!= SPI_OK_SELECT)
		elog(ERROR, "could not read " POSTERIOR_DEFINITIONS);
	posterior_definitions_end(&caller);
	if (SPI_processed == 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("context \"%s\" does not exist", name),
				 errhint("The view posterior.contexts lists the contexts.")));
	owner =
		DatumGetObjectId(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull));
	columns->relation =
		DatumGetObjectId(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 2, &isnull));
	own_targets(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, columns);
	*maintained =
		DatumGetBool(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 4, &isnull));
	*id = *DatumGetUUIDP(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 5, &isnull));
	SPI_finish();
	if (!has_privs_of_role(GetUserId(), owner))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be owner of context \"%s\"", name)));
	if (OidIsValid(columns->relation))
		posterior_keep_relation(columns->relation);
	return id;
}

bool
posterior_keeps_sums(const char *name, pg_uuid_t *kept)
{
	Oid			type = TEXTOID;
	Datum		argument = CStringGetTextDatum(name);
	PosteriorCaller caller;
	bool		keeps = false;

	if (!posterior_definitions_extended())
		return false;
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	posterior_definitions_begin(&caller);
	if (SPI_execute_with_args("SELECT kept FROM " POSTERIOR_DEFINITIONS
							  " WHERE name OPERATOR(pg_catalog.=) $1 AND kept IS NOT NULL",
							  1, &type, &argument, NULL, false, 1) != SPI_OK_SELECT)
		elog(ERROR, "could not read " POSTERIOR_DEFINITIONS);
	posterior_definitions_end(&caller);
	if (SPI_processed > 0)
	{
		Datum		value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1,
										  &(bool) {false});

		*kept = *DatumGetUUIDP(value);
		keeps = true;
	}
	SPI_finish();
	return keeps;
}

Oid
posterior_own_type(const char *name)
{
	return GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum(name),
						   ObjectIdGetDatum(get_namespace_oid("posterior", false)));
}
