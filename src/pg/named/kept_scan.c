/*
 * kept_scan.c: adds up the rows of a named context.
 *
 * Large tables are read by the query posterior.context(basis, ...), whose partial sums are merged
 * exactly: any plan gives the same integers. It is a query of the caller's, so rights on columns
 * are the server's business, as are the number of workers (max_parallel_workers_per_gather) and
 * their end when it is cancelled. Memory is one state per process. The aggregate counts how far
 * they are (progress.h).
 *
 * The aggregate knows neither the context nor its columns' names, and which of several bad rows it
 * meets first depends on the plan. So when it fails the rows are read by a cursor, in this process,
 * whose errors are always the same.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/named/kept_scan.h"

#include "pg/base/attempt.h"
#include "pg/base/bridge.h"
#include "pg/cache/sums_handle.h"
#include "pg/named/definition_write.h"
#include "pg/named/kept_plans.h"
#include "pg/rows/column_types.h"
#include "pg/rows/feature_cells.h"
#include "pg/shmem/progress.h"
#include "pg/types/context_sums.h"

#include "access/parallel.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/paths.h"
#include "parser/parse_func.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Whether a plan of several processes would be thought of: by its pages, not by ANALYZE. */
static bool
is_large(const PosteriorNamed *named)
{
	List	   *relations = find_all_inheritors(named->relation, AccessShareLock, NULL);
	double		pages = 0;
	ListCell   *cell;

	foreach(cell, relations)
	{
		Relation	relation = table_open(lfirst_oid(cell), NoLock);

		if (RELKIND_HAS_STORAGE(relation->rd_rel->relkind))
			pages += RelationGetNumberOfBlocks(relation);
		table_close(relation, NoLock);
	}
	return max_parallel_workers_per_gather > 0 && pages >= min_parallel_table_scan_size;
}

/* Whether the columns, now locked, still have the types that the definition was resolved with. */
static bool
has_types(const PosteriorNamed *named)
{
	for (int t = 0; t < named->n_targets; t++)
		if (get_atttype(named->relation, named->targets[t]) != named->target_types[t])
			return false;
	for (int f = 0; f < named->n_features; f++)
		if (get_atttype(named->relation, named->features[f]) != named->types[f])
			return false;
	return true;
}

/* Whether the targets are plain numbers: what rows are whose arrays are of them, reading tells. */
static bool
has_numbers(const PosteriorNamed *named)
{
	for (int t = 0; t < named->n_targets; t++)
		if (!posterior_is_number(named->target_types[t]))
			return false;
	return true;
}

/* Whether the current user may call the aggregate by its name. */
static bool
may_aggregate(Oid context, bool several)
{
	Oid			types[] = {context, several ? FLOAT8ARRAYOID : FLOAT8OID, ANYOID};
	List	   *name = list_make2(makeString("posterior"), makeString("context"));
	Oid			function = LookupFuncName(name, lengthof(types), types, true);

	return OidIsValid(function)
		&& posterior_schema_aclcheck(get_func_namespace(function), GetUserId(), ACL_USAGE)
		== ACLCHECK_OK
		&& posterior_function_aclcheck(function, GetUserId(), ACL_EXECUTE) == ACLCHECK_OK;
}

static char *
query_of(const PosteriorNamed *named)
{
	StringInfoData query;

	initStringInfo(&query);
	appendStringInfo(&query, "SELECT posterior.context($1%s",
					 named->n_targets > 1 ? ", ARRAY[" : "");
	for (int t = 0; t < named->n_targets; t++)
		appendStringInfo(&query, "%s%s::pg_catalog.float8",
						 named->n_targets > 1 && t == 0 ? "" : ", ",
						 quote_identifier(get_attname(named->relation, named->targets[t], false)));
	if (named->n_targets > 1)
		appendStringInfoChar(&query, ']');
	for (int f = 0; f < named->n_features; f++)
		appendStringInfo(&query, ", %s", quote_identifier(named->names[f]));
	appendStringInfo(&query, ") %s", named->source);
	return query.data;
}

/* What is to be added up, and the value. */
typedef struct Adding
{
	const PosteriorNamed *named;
	Oid			context;		/* the type */
	PosteriorContext *value;	/* NULL: there is no row */
} Adding;

/* Run the query, in the caller's memory; a step of posterior_attempt. */
static bool
scan(void *argument)
{
	Adding	   *a = argument;
	MemoryContext memory = CurrentMemoryContext;
	Datum		basis = PointerGetDatum(a->named->basis),
				value;
	int			level = NewGUCNestLevel();
	bool		isnull;

	/* workers get it with the other settings */
	(void) set_config_option("posterior.model", a->named->model, PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	if (posterior_plan_execute(query_of(a->named), 1, &a->context, CURSOR_OPT_PARALLEL_OK, &basis,
							   0)
			!= SPI_OK_SELECT
		|| SPI_processed != 1)
		elog(ERROR, "could not add up the rows of context \"%s\"", a->named->name);
	value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull);
	MemoryContextSwitchTo(memory);
	if (!isnull)
		a->value = (PosteriorContext *) PG_DETOAST_DATUM_COPY(value);
	SPI_finish();
	AtEOXact_GUC(true, level);
	return true;
}

/* Whether an error is one that reading the rows in another way would not change. */
static bool
is_final(const ErrorData *error)
{
	int			category = ERRCODE_TO_CATEGORY(error->sqlerrcode);

	return category == ERRCODE_OPERATOR_INTERVENTION || category == ERRCODE_TRANSACTION_ROLLBACK
		|| error->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE;
}

/*
 * The sums of all rows as the aggregate finds them; NULL where a cursor is to read the rows: the
 * table is small, its targets are no plain numbers, the caller may not run the aggregate, or that
 * has failed.
 */
static TnpSums *
scan_by_aggregate(const PosteriorModel *model, const PosteriorNamed *named)
{
	Adding		a = {named, posterior_own_type("context"), NULL};
	ErrorData  *error;
	int64		helped;
	TnpSums    *sums;

	if (IsInParallelMode() || named->n_features + 2 > FUNC_MAX_ARGS || !has_numbers(named))
		return NULL;
	LockRelationOid(named->relation, AccessShareLock);
	if (!has_types(named) || !is_large(named) || !may_aggregate(a.context, named->n_targets > 1))
		return NULL;
	posterior_progress_gather(true);
	error = posterior_attempt(scan, &a);
	helped = posterior_progress_gather(false);
	if (error != NULL && is_final(error))
		ReThrowError(error);
	if (error != NULL)
	{
		ereport(DEBUG1, (errmsg_internal("context \"%s\": rows are read by one process because "
										 "of the error \"%s\"", named->name, error->message)));
		return NULL;
	}
	sums = posterior_sums_open(model, a.value != NULL ? a.value : named->basis, a.value != NULL,
							   CurrentMemoryContext);
	ereport(DEBUG1, (errmsg_internal("context \"%s\": " INT64_FORMAT " rows were added up, "
									 INT64_FORMAT " of them by parallel workers", named->name,
									 tnp_sums_rows(sums), helped)));
	if (a.value != NULL)
		pfree(a.value);
	return sums;
}

/* Cells of a column whose type has changed may mean something else to the basis. */
static void
check_kinds(const PosteriorNamed *named)
{
	const uint8 *kinds = named->basis->kinds;

	for (int f = 0; f < named->n_features; f++)
		if (named->kinds[f] != kinds[f])
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("column \"%s\" of context \"%s\" is not of the kind that its sums "
							"know", named->names[f], named->name),
					 errdetail("It is of kind \"%s\", and was of kind \"%s\".",
							   posterior_column_kind_name(named->kinds[f]),
							   posterior_column_kind_name(kinds[f])),
					 errhint("posterior.refresh_context makes sums of the columns as they are.")));
}

TnpSums *
posterior_kept_scan(const PosteriorModel *model, const PosteriorNamed *named)
{
	TnpSums    *sums;
	bool		shown;

	check_kinds(named);
	shown = posterior_progress_begin(&named->id);
	sums = scan_by_aggregate(model, named);
	if (sums == NULL)
	{
		sums = posterior_sums_open(model, named->basis, false, CurrentMemoryContext);
		posterior_named_read_sums(named, model, sums);
	}
	if (shown)
		posterior_progress_end();
	return sums;
}

void
posterior_kept_scan_taken(int64 rows)
{
	posterior_progress_taken(rows);
}
