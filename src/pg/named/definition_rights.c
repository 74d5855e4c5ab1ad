/*
 * definition_rights.c: reading definitions, and the rule for which users see what is known of a
 * context.
 *
 * The counters of a context, its progress and the rows at its last refresh tell how many rows of a
 * table meet a condition. A user may know that if a query of the user's own could tell: one that
 * reads every column that the context reads, of all rows.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/named/definition_rights.h"

#include "pg/named/kept_plans.h"
#include "pg/named/relations.h"
#include "pg/types/regcolumn.h"

#include "catalog/namespace.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/rls.h"

void
posterior_definitions_begin(PosteriorCaller *caller)
{
	/* without asking for the caller's right on the schema: a parsed prediction needs none either */
	Oid table = get_relname_relid("context_definition", get_namespace_oid("posterior", false)),
		owner = OidIsValid(table) ? posterior_relation_owner(table) : InvalidOid;

	if (!OidIsValid(owner))
		elog(ERROR, "could not find " POSTERIOR_DEFINITIONS);
	GetUserIdAndSecContext(&caller->user, &caller->security);
	SetUserIdAndSecContext(owner, caller->security | SECURITY_LOCAL_USERID_CHANGE
						   | SECURITY_RESTRICTED_OPERATION);
}

void
posterior_definitions_end(const PosteriorCaller *caller)
{
	SetUserIdAndSecContext(caller->user, caller->security);
}

bool
posterior_definitions_extended(void)
{
	Oid table = get_relname_relid("context_definition", get_namespace_oid("posterior", false));

	return get_attnum(table, "estimators") != InvalidAttrNumber;
}

/* Whether the current user may read a column; not if it is gone. */
static bool
may_read_column(Oid relation, Datum column)
{
	AttrNumber	number = posterior_regcolumn_number(column);

	return posterior_column_name(relation, number) != NULL
		&& pg_attribute_aclcheck(relation, number, GetUserId(), ACL_SELECT) == ACLCHECK_OK;
}

static bool
may_read_columns(Oid relation, Datum array)
{
	Datum	   *columns;
	int			n;

	deconstruct_array(DatumGetArrayTypeP(array), ARR_ELEMTYPE(DatumGetArrayTypeP(array)), 8,
					  FLOAT8PASSBYVAL, TYPALIGN_DOUBLE, &columns, NULL, &n);
	for (int i = 0; i < n; i++)
		if (!may_read_column(relation, columns[i]))
			return false;
	return true;
}

/* Columns of the query of posterior_may_count. */
enum { RELATION = 1, OWNER, TARGET, FEATURES, ORDER, FILTERED, VERSION, MORE_TARGETS };

/* The same of the targets after the first one, where there are any. */
static bool
may_read_more(Oid relation, HeapTuple row, TupleDesc desc)
{
	bool		isnull = true;
	Datum		more = (Datum) 0;

	if (desc->natts >= MORE_TARGETS)
		more = SPI_getbinval(row, desc, MORE_TARGETS, &isnull);
	return isnull || may_read_columns(relation, more);
}

/*
 * Whether rows of a relation may depend on the role that reads them, and the current user may not
 * see all statistics: conditions of a view and policies below it, and accounts on foreign servers,
 * are of the role that reads, and counts are those that the last statement left, of whatever role.
 */
static bool
rows_are_roles(Oid relation)
{
	char		kind = get_rel_relkind(relation);

	return (kind == RELKIND_VIEW || kind == RELKIND_FOREIGN_TABLE)
		&& !has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
}

/* Whether the current user may read all that a definition, a row of that query, reads. */
static bool
may_read(HeapTuple row, TupleDesc desc)
{
	bool		isnull;
#define VALUE(column) SPI_getbinval(row, desc, column, &isnull)
	Oid			relation = DatumGetObjectId(VALUE(RELATION));

	/* on a relation that is gone no rights are left but those on the context */
	if (get_rel_name(relation) == NULL)
		return has_privs_of_role(GetUserId(), DatumGetObjectId(VALUE(OWNER)));
	if (posterior_schema_aclcheck(get_rel_namespace(relation), GetUserId(), ACL_USAGE)
			!= ACLCHECK_OK
		|| check_enable_rls(relation, InvalidOid, true) == RLS_ENABLED
		|| rows_are_roles(relation))
		return false;
	if (pg_class_aclcheck(relation, GetUserId(), ACL_SELECT) == ACLCHECK_OK)
		return true;
	/* a filter may have read, before the last refresh, a column that is gone */
	return !DatumGetBool(VALUE(FILTERED)) && may_read_column(relation, VALUE(TARGET))
		&& may_read_columns(relation, VALUE(FEATURES)) && may_read_columns(relation, VALUE(ORDER))
		&& may_read_more(relation, row, desc);
#undef VALUE
}

bool
posterior_may_count(const pg_uuid_t *context, bool *shown, pg_uuid_t *version)
{
#define COLUMNS_OF_1_0 \
	"SELECT relation::pg_catalog.oid, owner::pg_catalog.oid, target, features," \
	" order_by, filter IS NOT NULL, version"
#define OF_THIS_ID " FROM " POSTERIOR_DEFINITIONS " WHERE id OPERATOR(pg_catalog.=) $1"
	const char *query = posterior_definitions_extended()
		? COLUMNS_OF_1_0 ", more_targets" OF_THIS_ID : COLUMNS_OF_1_0 OF_THIS_ID;
	Oid			type = UUIDOID;
	Datum		id = UUIDPGetDatum(context);
	PosteriorCaller caller;
	bool		may,
				isnull;

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	posterior_definitions_begin(&caller);
	if (posterior_plan_execute(query, 1, &type, 0, &id, 1) != SPI_OK_SELECT)
		elog(ERROR, "could not read " POSTERIOR_DEFINITIONS);
	posterior_definitions_end(&caller);
	*shown = SPI_processed > 0;
	may = *shown && may_read(SPI_tuptable->vals[0], SPI_tuptable->tupdesc);
	if (*shown)
		*version = *DatumGetUUIDP(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc,
												VERSION, &isnull));
	SPI_finish();
	return may;
}
