/*
 * definition.c: finds the definition of a named context and turns it into queries with the names of
 * the moment.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/named/definition.h"

#include "pg/named/kept_plans.h"
#include "pg/named/relations.h"
#include "pg/rows/column_types.h"
#include "pg/rows/targets.h"
#include "pg/types/context_value.h"
#include "pg/types/regcolumn.h"
#include "pg/types/row_filter.h"

#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/bitmapset.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"
#include "utils/typcache.h"
#include "utils/uuid.h"

#include "pg/base/guard.h"

int			posterior_row_security = POSTERIOR_ROW_SECURITY_REFUSE;

pg_noreturn static void
column_is_gone(const PosteriorNamed *named, const char *what)
{
	ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
					errmsg("a column of context \"%s\" does not exist any more", named->name),
					errdetail("It was %s.", what),
					errhint("Give the context other columns by posterior.alter_context, or drop it "
							"by posterior.drop_context.")));
}

/* The quoted name of a column that must be there. */
static const char *
column_name(const PosteriorNamed *named, AttrNumber column, const char *what)
{
	char	   *name = posterior_column_name(named->relation, column);

	if (name == NULL)
		column_is_gone(named, what);
	return quote_identifier(name);
}

pg_noreturn static void
type_is_wrong(const PosteriorNamed *named, const char *column, Oid type, const char *role)
{
	ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
					errmsg("column \"%s\" cannot be a %s of context \"%s\" any more", column, role,
						   named->name),
					errdetail("Its type is %s now.", format_type_be(type)),
					errhint("Give the context other columns by posterior.alter_context, or drop it "
							"by posterior.drop_context.")));
}

/* The parts of the queries while they are written. */
typedef struct Parts
{
	StringInfoData order,		/* the canonical order */
				backwards,		/* that order from its end */
				used;			/* all columns that the order and the rows need, each once */
	Bitmapset  *columns;		/* the columns in `used` */
} Parts;

/* Raise unless rows can be ordered by what the column is now. */
static void
order_check(const PosteriorNamed *named, AttrNumber column)
{
	Oid			type = get_atttype(named->relation, column);

	if (!OidIsValid(lookup_type_cache(type, TYPECACHE_LT_OPR)->lt_opr))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("context \"%s\" cannot be ordered by column \"%s\" any more", named->name,
						posterior_column_name(named->relation, column)),
				 errdetail("Its type is %s now, whose values have no order.", format_type_be(type)),
				 errhint("Give the context another order by posterior.alter_context, or drop it by "
						 "posterior.drop_context.")));
}

/* One column of the canonical order; labels are compared as bytes. */
static void
parts_add_order(Parts *parts, const PosteriorNamed *named, AttrNumber column, const char *what,
				bool descending, bool bytes)
{
	const char *name = column_name(named, column, what),
			   *start = parts->order.len == 0 ? "ORDER BY " : ", ",
			   *collate;
	Oid			type,
				collation;
	int32		typmod;

	get_atttypetypmodcoll(named->relation, column, &type, &typmod, &collation);
	collate = bytes && OidIsValid(collation) ? " COLLATE pg_catalog.\"C\"" : "";
	appendStringInfo(&parts->order, "%s%s%s%s NULLS LAST", start, name, collate,
					 descending ? " DESC" : "");
	appendStringInfo(&parts->backwards, "%s%s%s%s NULLS FIRST", start, name, collate,
					 descending ? "" : " DESC");
	if (!bms_is_member(column, parts->columns))
	{
		appendStringInfo(&parts->used, "%s%s", parts->used.len == 0 ? "" : ", ", name);
		parts->columns = bms_add_member(parts->columns, column);
	}
}

/*
 * Rows that the order leaves equal follow a hash of what the model sees of them. By a column they
 * would be sorted by the target, or by a feature: the prefix, by which the later rows are read, and
 * the newest rows of max_rows would have its least or greatest values.
 */
static void
parts_add_hash(Parts *parts, const PosteriorNamed *named)
{
	const char *start = parts->order.len == 0 ? "ORDER BY " : ", ";
	int			columns = named->n_targets + named->n_features,
				calls = 0;
	StringInfoData hash;

	initStringInfo(&hash);
	for (int i = 0; i < columns; i++)
	{
		AttrNumber	column = i < named->n_targets ? named->targets[i]
			: named->features[i - named->n_targets];

		/* a function has no more than FUNC_MAX_ARGS: the last one is the hash of the others */
		if (i % (FUNC_MAX_ARGS - 1) == 0)
		{
			appendStringInfo(&hash, "%sposterior_internal.row_hash(", i == 0 ? "" : ", ");
			calls++;
		}
		else
			appendStringInfoString(&hash, ", ");
		appendStringInfoString(&hash, column_name(named, column, "a target or a feature"));
	}
	for (int i = 0; i < calls; i++)
		appendStringInfoChar(&hash, ')');
	appendStringInfo(&parts->order, "%s%s", start, hash.data);
	appendStringInfo(&parts->backwards, "%s%s DESC", start, hash.data);
}

/* Types and kinds of the features, from the catalogs. */
static void
features_resolve(PosteriorNamed *named)
{
	named->types = palloc(named->n_features * sizeof(Oid));
	named->kinds = palloc(named->n_features);
	named->names = palloc(named->n_features * sizeof(char *));
	named->stable = true;
	for (int f = 0; f < named->n_features; f++)
	{
		PosteriorFeature feature;

		named->names[f] = posterior_column_name(named->relation, named->features[f]);
		if (named->names[f] == NULL)
			column_is_gone(named, psprintf("feature %d", f + 1));
		named->types[f] = get_atttype(named->relation, named->features[f]);
		if (!posterior_can_be_feature(named->types[f]))
			type_is_wrong(named, named->names[f], named->types[f], "feature");
		posterior_feature_init(&feature, named->types[f], f + 1, CurrentMemoryContext);
		named->kinds[f] = feature.kind;
		if (feature.out != NULL)
			named->stable = false;
	}
}

/* Names and types of the targets: the beginning of what queries select and of their condition. */
static void
targets_resolve(PosteriorNamed *named, StringInfo columns, StringInfo condition)
{
	named->target_types = palloc(named->n_targets * sizeof(Oid));
	for (int t = 0; t < named->n_targets; t++)
	{
		AttrNumber	column = named->targets[t];
		const char *name = column_name(named, column, named->n_targets == 1 ? "the target"
									   : psprintf("target %d", t + 1));
		Oid			type = get_atttype(named->relation, column);

		named->target_types[t] = type;
		if (named->n_targets == 1 ? !posterior_can_be_target(type) : !posterior_is_number(type))
			type_is_wrong(named, posterior_column_name(named->relation, column), type, "target");
		appendStringInfo(columns, "%s%s", t == 0 ? "" : ", ", name);
		appendStringInfo(condition, "%s%s IS NOT NULL", t == 0 ? " WHERE " : " AND ", name);
		/* as for features */
		if (type_is_enum(getBaseType(type)))
			named->stable = false;
	}
}

/* The parts of the queries. */
static void
queries_write(PosteriorNamed *named, int n_order, const AttrNumber *order_columns,
			  const Datum *descending, const char *filter)
{
	StringInfoData columns,
				condition,
				source;
	Parts		parts = {.columns = NULL};

	initStringInfo(&columns);
	initStringInfo(&condition);
	initStringInfo(&source);
	initStringInfo(&parts.order);
	initStringInfo(&parts.backwards);
	initStringInfo(&parts.used);
	targets_resolve(named, &columns, &condition);
	for (int f = 0; f < named->n_features; f++)
		appendStringInfo(&columns, ", %s", quote_identifier(named->names[f]));
	if (filter != NULL)
		appendStringInfo(&condition, " AND (%s)", filter);
	named->condition = condition.data;
	appendStringInfo(&source, "FROM %s%s", posterior_relation_name(named->relation),
					 named->condition);
	for (int i = 0; i < n_order; i++)
	{
		parts_add_order(&parts, named, order_columns[i], "a column of the order",
						DatumGetBool(descending[i]), false);
		order_check(named, order_columns[i]);
		if (posterior_has_attributes(get_atttype(named->relation, order_columns[i])))
			named->stable = false;
	}
	/* 1.0 has no such function */
	if (posterior_definitions_extended())
		parts_add_hash(&parts, named);
	for (int t = 0; t < named->n_targets; t++)
		parts_add_order(&parts, named, named->targets[t], "a target", false, true);
	for (int f = 0; f < named->n_features; f++)
		parts_add_order(&parts, named, named->features[f], "a feature", false, true);
	/*
	 * nothing is cast: a cast has the column's name, so ORDER BY would take it for the column, and
	 * casts of enums are their owners' functions
	 */
	named->columns = columns.data;
	named->source = source.data;
	named->order = parts.order.data;
	named->backwards = parts.backwards.data;
	named->used = parts.used.data;
}

/*
 * Keep the relation as it is until the transaction ends. A definition has numbers, which are turned
 * into names and read by these: without waiting for a transaction that renames, another relation or
 * column that has the name by then would be read.
 */
static void
relation_keep_names(Oid relation)
{
	if (GUARD(LOCK_KEPT, GUARD(NAMES_LOCKED, OidIsValid(relation))))
		LockRelationOid(relation, AccessShareLock);
}

/* Columns of the query of posterior_named_find. */
enum
{
	ID = 1,
	VERSION,
	OWNER,
	RELATION,
	TARGET,
	FEATURES,
	ORDER,
	DESCENDING,
	FILTER,
	MODEL,
	MAX_ROWS,
	MAINTAIN,
	REFRESHED_ROWS,
	ESTIMATORS,
	BOUNDED,
	KEPT,
	BASIS,
	FIT,
	MORE_TARGETS,
	NEIGHBOURS
};

/* Read the row of posterior.context_definition of this name. SPI is connected. */
static HeapTuple
definition_select(const char *name)
{
#define COLUMNS_OF_1_0 \
	"SELECT id, version, owner::pg_catalog.oid, relation::pg_catalog.oid, target, features, " \
	"order_by, descending, filter, model, max_rows, " \
	"maintain OPERATOR(pg_catalog.=) 'trigger', refreshed_rows"
#define OF_THIS_NAME " FROM " POSTERIOR_DEFINITIONS " WHERE name OPERATOR(pg_catalog.=) $1"
	const char *query = posterior_definitions_extended()
		? COLUMNS_OF_1_0 ", estimators, "
		"(freshness OPERATOR(pg_catalog.=) 'bounded')::pg_catalog.int4, kept, basis, fit, "
		"more_targets, neighbours"
		OF_THIS_NAME
		: COLUMNS_OF_1_0 OF_THIS_NAME;
	Oid			type = TEXTOID;
	Datum		argument = CStringGetTextDatum(name);
	PosteriorCaller caller;

	posterior_definitions_begin(&caller);
	if (posterior_plan_execute(query, 1, &type, 0, &argument, 1) != SPI_OK_SELECT)
		elog(ERROR, "could not read " POSTERIOR_DEFINITIONS);
	posterior_definitions_end(&caller);
	if (SPI_processed == 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("context \"%s\" does not exist", name),
				 errhint("The view posterior.contexts lists the contexts; posterior.create_context "
						 "makes one.")));
	return SPI_tuptable->vals[0];
}

/* A column of 1.1 as an integer; 0 where it is NULL or not there yet. */
static int
integer_or_zero(HeapTuple row, TupleDesc desc, int column)
{
	bool		isnull = true;
	Datum		value = (Datum) 0;

	if (column <= desc->natts)
		value = SPI_getbinval(row, desc, column, &isnull);
	return isnull ? 0 : DatumGetInt32(value);
}

/* The sums that a context keeps, if it does. */
static void
sums_resolve(PosteriorNamed *named, HeapTuple row, TupleDesc desc)
{
	bool		isnull;
	Datum		value;

	if (desc->natts < FIT)
		return;
	value = SPI_getbinval(row, desc, KEPT, &isnull);
	named->keeps = !isnull;
	if (!isnull)
		named->kept = *DatumGetUUIDP(value);
	value = SPI_getbinval(row, desc, BASIS, &isnull);
	if (!isnull)
		named->basis = (PosteriorContext *) PG_DETOAST_DATUM_COPY(value);
	value = SPI_getbinval(row, desc, FIT, &isnull);
	if (!isnull)
		named->fit = (bytea *) PG_DETOAST_DATUM_COPY(value);
}

/* The numbers of the targets: the first one and, where there are several, the others. */
static void
targets_take(PosteriorNamed *named, HeapTuple row, TupleDesc desc)
{
	bool		isnull = true;
	Datum		first = SPI_getbinval(row, desc, TARGET, &isnull),
				more = (Datum) 0;
	AttrNumber *others = NULL;
	int			n = 0;

	isnull = true;
	if (desc->natts >= MORE_TARGETS)
		more = SPI_getbinval(row, desc, MORE_TARGETS, &isnull);
	if (!isnull)
		others = posterior_regcolumn_numbers(more, &n);
	named->n_targets = 1 + n;
	named->targets = palloc(named->n_targets * sizeof(AttrNumber));
	named->targets[0] = posterior_regcolumn_number(first);
	for (int t = 0; t < n; t++)
		named->targets[1 + t] = others[t];
}

/*
 * Raise unless the current user owns the context, or may read a column of its relation: errors that
 * follow quote the definition.
 */
static void
definition_check_rights(const PosteriorNamed *named)
{
	Oid			user = GetUserId(),
				schema = get_rel_namespace(named->relation);

	if (has_privs_of_role(user, named->owner))
		return;
	if (posterior_schema_aclcheck(schema, user, ACL_USAGE) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_SCHEMA, get_namespace_name(schema));
	if (pg_class_aclcheck(named->relation, user, ACL_SELECT) != ACLCHECK_OK
		&& pg_attribute_aclcheck_all(named->relation, user, ACL_SELECT, ACLMASK_ANY)
		!= ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, get_relkind_objtype(get_rel_relkind(named->relation)),
					   get_rel_name(named->relation));
}

/*
 * Fill in a definition from its row, and what follows from it by the catalogs. checked: for the
 * current user, who must have the right to see it.
 */
static void
definition_resolve(PosteriorNamed *named, const char *name, HeapTuple row, TupleDesc desc,
				   bool checked)
{
	Datum	   *descending,
				filter;
	AttrNumber *order;
	char	   *condition = NULL;
	bool		isnull;
	int			n_order,
				n;

#define VALUE(column) SPI_getbinval(row, desc, column, &isnull)
	strlcpy(named->name, name, sizeof(named->name));
	named->id = *DatumGetUUIDP(VALUE(ID));
	named->version = *DatumGetUUIDP(VALUE(VERSION));
	named->owner = DatumGetObjectId(VALUE(OWNER));
	named->relation = DatumGetObjectId(VALUE(RELATION));
	relation_keep_names(named->relation);
	if (get_rel_name(named->relation) == NULL)
		posterior_no_relation(name);
	if (checked)
		definition_check_rights(named);
	strlcpy(named->model, TextDatumGetCString(VALUE(MODEL)), sizeof(named->model));
	named->max_rows = DatumGetInt32(VALUE(MAX_ROWS));
	if (isnull)
		named->max_rows = 0;
	named->maintained = DatumGetBool(VALUE(MAINTAIN));
	named->refreshed_rows = DatumGetInt64(VALUE(REFRESHED_ROWS));
	if (isnull)
		named->refreshed_rows = 0;
	named->estimators = integer_or_zero(row, desc, ESTIMATORS);
	named->bounded = integer_or_zero(row, desc, BOUNDED) != 0;
	named->neighbours = integer_or_zero(row, desc, NEIGHBOURS);
	sums_resolve(named, row, desc);
	targets_take(named, row, desc);
	named->features = posterior_regcolumn_numbers(VALUE(FEATURES), &named->n_features);
	features_resolve(named);
	order = posterior_regcolumn_numbers(VALUE(ORDER), &n_order);
	deconstruct_array(DatumGetArrayTypeP(VALUE(DESCENDING)), BOOLOID, 1, true, TYPALIGN_CHAR,
					  &descending, NULL, &n);
	filter = VALUE(FILTER);
	if (!isnull)
		named->filter = PointerGetDatum(PG_DETOAST_DATUM_COPY(filter));
	if (!isnull && (condition = posterior_row_filter_query(filter, name, &named->stable)) == NULL)
		column_is_gone(named, "part of the filter");
	named->filtered = condition != NULL;
	queries_write(named, n_order, order, descending, condition);
#undef VALUE
}

static PosteriorNamed *
named_find(const char *name, MemoryContext memory, bool checked)
{
	MemoryContext before = CurrentMemoryContext;
	PosteriorNamed *named;
	HeapTuple	row;

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	row = definition_select(name);
	MemoryContextSwitchTo(memory);
	named = palloc0(sizeof(PosteriorNamed));
	named->memory = memory;
	definition_resolve(named, name, row, SPI_tuptable->tupdesc, checked);
	MemoryContextSwitchTo(before);
	SPI_finish();
	return named;
}

PosteriorNamed *
posterior_named_find(const char *name, MemoryContext memory)
{
	return named_find(name, memory, true);
}

/*
 * Name, in `memory`, and relation of the context with this identity, as the active snapshot shows
 * it; false, and neither is written, if there is none.
 */
static bool
kept_find(const pg_uuid_t *kept, MemoryContext memory, char **name, Oid *relation)
{
	Oid			type = UUIDOID;
	Datum		value = UUIDPGetDatum(kept);
	PosteriorCaller caller;
	bool		found,
				isnull;

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	posterior_definitions_begin(&caller);
	if (posterior_plan_execute("SELECT name, relation::pg_catalog.oid FROM "
							   POSTERIOR_DEFINITIONS " WHERE kept OPERATOR(pg_catalog.=) $1",
							   1, &type, 0, &value, 1)
		!= SPI_OK_SELECT)
		elog(ERROR, "could not read " POSTERIOR_DEFINITIONS);
	posterior_definitions_end(&caller);
	found = SPI_processed > 0;
	if (found)
	{
		HeapTuple	row = SPI_tuptable->vals[0];
		TupleDesc	desc = SPI_tuptable->tupdesc;

		*name = MemoryContextStrdup(memory,
									TextDatumGetCString(SPI_getbinval(row, desc, 1, &isnull)));
		*relation = DatumGetObjectId(SPI_getbinval(row, desc, 2, &isnull));
	}
	SPI_finish();
	return found;
}

PosteriorNamed *
posterior_named_of_kept(const pg_uuid_t *kept, MemoryContext memory)
{
	PosteriorNamed *named = NULL;
	char	   *name;
	Oid			relation;

	PushActiveSnapshot(GetLatestSnapshot());
	if (kept_find(kept, memory, &name, &relation))
		named = named_find(name, memory, false);
	PopActiveSnapshot();
	return named;
}

Oid
posterior_relation_of_kept(const pg_uuid_t *kept)
{
	char	   *name;
	Oid			relation = InvalidOid;

	PushActiveSnapshot(GetLatestSnapshot());
	(void) kept_find(kept, CurrentMemoryContext, &name, &relation);
	PopActiveSnapshot();
	return relation;
}

PosteriorModel *
posterior_named_model(const PosteriorNamed *named, MemoryContext owner)
{
	return posterior_model_pin_targets(named->model, named->n_targets, owner);
}

/* Raise unless a model takes as many targets as the context has columns. */
static void
check_number_of_targets(const PosteriorNamed *named, int taken)
{
	if (named->n_targets == taken)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("model \"%s\" takes %d target%s per row, and context \"%s\" has %d",
					named->model, taken, taken == 1 ? "" : "s", named->name, named->n_targets),
			 taken == 1 ? errhint("Choose a model of so many targets, or of any number "
								  "(any_targets in the view posterior.models), or make a context "
								  "for each of them.")
			 : errhint("Give the context %d columns as its target, or a model of so many "
					   "targets; the view posterior.models shows how many each takes.", taken)));
}

void
posterior_named_check_target(const PosteriorNamed *named, const TnpModel *model)
{
	bool		labels = tnp_model_info(model)->n_classes > 0;
	int			taken = tnp_model_info(model)->n_targets;
	Oid			type = named->target_types[0];

	if (named->n_targets > 1)
	{
		check_number_of_targets(named, taken);
		return;
	}
	if (taken > 1)
	{
		if (getBaseType(type) == FLOAT8ARRAYOID)
			return;
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("model \"%s\" takes %d targets per row, and the target \"%s\" of "
						"context \"%s\" is of type %s", named->model, taken,
						posterior_column_name(named->relation, named->targets[0]), named->name,
						format_type_be(type)),
				 errhint("Give the context %d columns of numbers as target => '{…}', one column "
						 "of type double precision[], or a model of one target.", taken)));
	}
	if (labels ? posterior_can_be_label(type) : posterior_is_number(type))
		return;
	/* the model comes before the rows, and nothing else says how many numbers their arrays have */
	if (tnp_model_info(model)->each_target && getBaseType(type) == FLOAT8ARRAYOID)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("the number of targets in the arrays \"%s\" of context \"%s\" is not "
						"known before its rows are read",
						posterior_column_name(named->relation, named->targets[0]), named->name),
				 errdetail("Model \"%s\" takes any number of targets per row.", named->model),
				 errhint("Give the context columns of numbers as target => '{…}', such as those of "
						 "a view of the arrays' elements.")));
	ereport(
		ERROR,
		(errcode(ERRCODE_DATATYPE_MISMATCH),
		 errmsg("model \"%s\" predicts %s, and the target \"%s\" of context \"%s\" is of type %s",
				named->model, labels ? "labels" : "numbers",
				posterior_column_name(named->relation, named->targets[0]), named->name,
				format_type_be(type)),
		 labels ? errhint("Give the context a model without classes, or a target that is text, an "
						  "enum, a boolean or an integer.")
				: errhint("Give the context a model with classes, or a target that is a number; "
						  "the view posterior.models shows the models.")));
}

bool
posterior_named_policies(const PosteriorNamed *named)
{
	if (check_enable_rls(named->relation, InvalidOid, true) != RLS_ENABLED)
		return false;
	if (posterior_row_security == POSTERIOR_ROW_SECURITY_REFUSE)
		ereport(
			ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("row-level security of \"%s\" applies to you", get_rel_name(named->relation)),
			 errdetail(
				 "The encoding of context \"%s\" is shared by all users that may read its rows.",
				 named->name),
			 errhint("SET posterior.row_security = private computes the answers for you alone, "
					 "from the rows that you may see.")));
	return true;
}

bool
posterior_named_by_sums(const PosteriorNamed *named)
{
	return named->basis != NULL && !posterior_named_policies(named);
}

bool
posterior_named_readable(const PosteriorNamed *named)
{
	return posterior_schema_aclcheck(get_rel_namespace(named->relation), GetUserId(), ACL_USAGE)
			== ACLCHECK_OK
		&& pg_class_aclcheck(named->relation, GetUserId(), ACL_SELECT) == ACLCHECK_OK;
}

bool
posterior_named_columns_readable(const PosteriorNamed *named)
{
	Oid			user = GetUserId();

	if (posterior_named_readable(named))
		return true;
	if (named->filtered
		|| posterior_schema_aclcheck(get_rel_namespace(named->relation), user, ACL_USAGE)
		!= ACLCHECK_OK)
		return false;
	for (int t = 0; t < named->n_targets; t++)
		if (pg_attribute_aclcheck(named->relation, named->targets[t], user, ACL_SELECT)
			!= ACLCHECK_OK)
			return false;
	for (int f = 0; f < named->n_features; f++)
		if (pg_attribute_aclcheck(named->relation, named->features[f], user, ACL_SELECT)
			!= ACLCHECK_OK)
			return false;
	return true;
}
