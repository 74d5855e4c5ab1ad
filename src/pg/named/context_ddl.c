/*
 * context_ddl.c: posterior.create_context, alter_context, drop_context and what follows a dropped
 * table.
 *
 * These functions check the caller's rights first and then write definitions as their owner
 * (definition_write.h).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/named/context_triggers.h"
#include "pg/named/definition_write.h"
#include "pg/named/kept_fold.h"
#include "pg/named/kept_signature.h"
#include "pg/named/kept_store.h"
#include "pg/named/relations.h"
#include "pg/rows/column_types.h"
#include "pg/types/context_value.h"
#include "pg/types/regcolumn.h"
#include "pg/types/row_filter.h"
#include "pg/models/row_limit.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/uuid.h"

/* Arguments of create_context and alter_context. */
enum { NAME, RELATION, TARGET, FEATURES, ORDER_BY, MODEL, MAX_ROWS, FILTER, MAINTAIN, NEW_NAME };

/* Of create_context in this place, of alter_context in the next one; of 1.1. */
enum { ESTIMATORS = NEW_NAME, FRESHNESS, NEIGHBOURS };

static Datum
column_array(Oid relation, const AttrNumber *columns, int n)
{
	Datum	   *elements = palloc(Max(n, 1) * sizeof(Datum));

	for (int i = 0; i < n; i++)
		elements[i] = posterior_regcolumn_datum(relation, columns[i]);
	return PointerGetDatum(
		construct_array(elements, n, posterior_own_type("regcolumn"), 8, FLOAT8PASSBYVAL,
						TYPALIGN_DOUBLE));
}

static void
check_name(const char *name)
{
	if (name[0] == '\0' || strlen(name) >= NAMEDATALEN)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_NAME),
				 errmsg("invalid name of a context: \"%s\"", name),
				 errdetail("A name has 1 to %d bytes.", NAMEDATALEN - 1)));
}

pg_noreturn static void
name_is_taken(const char *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_DUPLICATE_OBJECT), errmsg("context \"%s\" already exists", name),
			 errhint("Drop it first by posterior.drop_context, change it by "
					 "posterior.alter_context, or choose another name.")));
}

static void
check_free(const char *name)
{
	Oid			type = TEXTOID;
	Datum		argument = CStringGetTextDatum(name);
	PosteriorCaller caller;

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "could not connect to SPI");
	posterior_definitions_begin(&caller);
	if (SPI_execute_with_args("SELECT FROM " POSTERIOR_DEFINITIONS
							  " WHERE name OPERATOR(pg_catalog.=) $1",
							  1, &type, &argument, NULL, false, 1)
		!= SPI_OK_SELECT)
		elog(ERROR, "could not read " POSTERIOR_DEFINITIONS);
	posterior_definitions_end(&caller);
	if (SPI_processed > 0)
		name_is_taken(name);
	SPI_finish();
}

/* An argument as text, or NULL. */
static char *
text_argument(FunctionCallInfo fcinfo, int i)
{
	return PG_ARGISNULL(i) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(i));
}

/* How a context keeps up with its table. */
typedef enum Maintain
{
	BY_READING,
	BY_TRIGGERS,				/* that tell readers who has written */
	BY_SUMS						/* and triggers that note rows */
} Maintain;

static const char *const maintain_names[] = {"read", "trigger", "sums"};

/* Raise unless the context can keep sums, as far as its arguments tell. */
static void
check_sums(Oid relation, const char *order, bool window)
{
	const char *why = NULL;

	if (!posterior_can_keep(relation))
		why = "Its relation is no permanent table, or has children.";
	else if (order != NULL && order[0] != '\0')
		why = "Sums have no order, and order_by is given.";
	else if (window)
		why = "Sums have no newest rows, and max_rows is given.";
	if (why != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a context that keeps sums cannot be made of these arguments"),
				 errdetail("%s", why),
				 errhint("Leave the argument out, or use maintain => 'read'.")));
}

/* Raise unless the user may make triggers; before the relation is locked for that. */
static void
check_owned(Oid relation)
{
	if (!posterior_relation_is_owned(relation))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be owner of relation %s", get_rel_name(relation)),
				 errhint("With maintain => 'read' a context needs no triggers on its relation.")));
}

/* How a context shall keep up: as asked, or as is possible. */
static Maintain
decide_maintain(Oid relation, const char *asked)
{
	if (asked == NULL)
		return posterior_can_be_maintained(relation) && posterior_relation_is_owned(relation)
			? BY_TRIGGERS : BY_READING;
	if (strcmp(asked, "read") == 0)
		return BY_READING;
	if (strcmp(asked, "trigger") != 0 && strcmp(asked, "sums") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for maintain: \"%s\"", asked),
				 errhint("Values are trigger, read and sums.")));
	check_owned(relation);
	if (strcmp(asked, "sums") == 0)
		return BY_SUMS;
	if (!posterior_can_be_maintained(relation))
		ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
						errmsg("triggers cannot tell what changes the rows of \"%s\"",
							   get_rel_name(relation)),
						errdetail("That takes an ordinary, permanent table that is no system "
								  "catalog, no partition and has neither parents nor children."),
						errhint("Use maintain => 'read'.")));
	return BY_TRIGGERS;
}

/* Whether a model's contexts are rather sums than rows. */
static bool
model_prefers_sums(const char *name)
{
	MemoryContext memory =
		AllocSetContextCreate(CurrentMemoryContext, "posterior model lookup", ALLOCSET_SMALL_SIZES);
	bool		prefers = tnp_prefers_sums(posterior_model_pin(name, memory)->model);

	MemoryContextDelete(memory);
	return prefers;
}

/* Raise unless rows can be read from it by every session. */
static void
check_relation(Oid relation)
{
	static const char kinds[] = {RELKIND_RELATION, RELKIND_PARTITIONED_TABLE, RELKIND_VIEW,
								 RELKIND_MATVIEW,  RELKIND_FOREIGN_TABLE,     '\0'};
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	Form_pg_class c;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relation)));
	c = (Form_pg_class) GETSTRUCT(tuple);
	if (strchr(kinds, c->relkind) == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" has no rows for a context", NameStr(c->relname)),
				 errhint("A context reads a table or a view.")));
	if (c->relpersistence == RELPERSISTENCE_TEMP)
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("a named context cannot read the temporary relation \"%s\"",
							   NameStr(c->relname)),
						errdetail("Other sessions cannot see it, and it goes without notice."),
						errhint("The aggregate posterior.context makes a value of its rows.")));
	ReleaseSysCache(tuple);
}

/* The model must be there. */
static void
check_model(const char *model)
{
	MemoryContext memory =
		AllocSetContextCreate(CurrentMemoryContext, "posterior model lookup", ALLOCSET_SMALL_SIZES);

	posterior_model_pin(model, memory);
	MemoryContextDelete(memory);
}

static int
check_max_rows(int max_rows)
{
	if (max_rows < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("max_rows must not be negative"),
				 errhint("0 means all rows.")));
	return max_rows;
}

/* Parameters $1 … of the statements that write a definition. */
enum
{
	P_NAME,
	P_RELATION,
	P_TARGET,
	P_FEATURES,
	P_ORDER,
	P_DESCENDING,
	P_FILTER,
	P_MODEL,
	P_MAX_ROWS,
	P_MAINTAIN,
	P_NEW_NAME,
	P_OWNER,
	P_ID,
	P_ESTIMATORS,
	P_FRESHNESS,
	P_KEPT,
	P_MORE_TARGETS,
	P_NEIGHBOURS,
	PARAMETERS
};

typedef struct Parameters
{
	Oid			types[PARAMETERS];
	Datum		values[PARAMETERS];
	char		nulls[PARAMETERS + 1];
} Parameters;

static void
definition_set(Parameters *p, int i, Datum value)
{
	p->values[i] = value;
	p->nulls[i] = ' ';
}

/* How many neighbours, of those that are asked for; 0 of alter_context takes them away. */
static void
take_neighbours(FunctionCallInfo fcinfo, bool all, Parameters *p)
{
	int			place = NEIGHBOURS + (all ? 0 : 1),
				neighbours;

	if (PG_ARGISNULL(place))
		return;
	neighbours = PG_GETARG_INT32(place);
	if (neighbours < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("neighbours must not be negative"),
				 errdetail("They are %d.", neighbours),
				 errhint("0 means that all rows are the context of every question.")));
	if (neighbours > 0 || !all)
		definition_set(p, P_NEIGHBOURS, Int32GetDatum(neighbours));
}

/* What functions of 1.1 have in addition. Of a new definition no estimators are NULL. */
static void
take_new_arguments(FunctionCallInfo fcinfo, bool all, Parameters *p)
{
	int			estimators = ESTIMATORS + (all ? 0 : 1),
				freshness = FRESHNESS + (all ? 0 : 1);
	char	   *asked;

	if (PG_NARGS() <= NEIGHBOURS + (all ? 0 : 1))
		return;
	take_neighbours(fcinfo, all, p);
	if (!PG_ARGISNULL(estimators)
		&& (posterior_check_estimators(PG_GETARG_INT32(estimators)) != 0 || !all))
		definition_set(p, P_ESTIMATORS, PG_GETARG_DATUM(estimators));
	if ((asked = text_argument(fcinfo, freshness)) == NULL)
		return;
	if (strcmp(asked, "exact") != 0 && strcmp(asked, "bounded") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for freshness: \"%s\"", asked),
				 errhint("Values are exact and bounded.")));
	definition_set(p, P_FRESHNESS, CStringGetTextDatum(asked));
}

/* What create and alter have in common: the arguments that are given, as parameters. */
static void
take_arguments(FunctionCallInfo fcinfo, const char *name, PosteriorColumns *c, bool all,
			   Parameters *p)
{
	char	   *target = text_argument(fcinfo, TARGET),
			   *order = text_argument(fcinfo, ORDER_BY),
			   *model = text_argument(fcinfo, MODEL),
			   *filter = text_argument(fcinfo, FILTER);

	memset(p->values, 0, sizeof(p->values));
	memset(p->nulls, 'n', PARAMETERS);
	p->nulls[PARAMETERS] = '\0';
	for (int i = 0; i < PARAMETERS; i++)
		p->types[i] = TEXTOID;
	p->types[P_RELATION] = OIDOID;
	p->types[P_TARGET] = posterior_own_type("regcolumn");
	p->types[P_FEATURES] = p->types[P_ORDER] = p->types[P_MORE_TARGETS] =
		get_array_type(posterior_own_type("regcolumn"));
	p->types[P_DESCENDING] = BOOLARRAYOID;
	p->types[P_FILTER] = posterior_own_type("row_filter");
	p->types[P_MAX_ROWS] = INT4OID;
	p->types[P_OWNER] = OIDOID;
	p->types[P_ID] = UUIDOID;
	p->types[P_ESTIMATORS] = INT4OID;
	p->types[P_KEPT] = UUIDOID;
	p->types[P_NEIGHBOURS] = INT4OID;

	definition_set(p, P_NAME, CStringGetTextDatum(name));
	definition_set(p, P_RELATION, ObjectIdGetDatum(c->relation));
	if (target != NULL)
	{
		posterior_set_target(c, target);
		definition_set(p, P_TARGET, posterior_regcolumn_datum(c->relation, c->targets[0]));
		if (c->n_targets > 1 && !posterior_definitions_extended())
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("this database cannot store a context of several target columns"),
					 errhint("ALTER EXTENSION pg_posterior UPDATE.")));
		if (c->n_targets > 1)
			definition_set(p, P_MORE_TARGETS,
						   column_array(c->relation, c->targets + 1, c->n_targets - 1));
	}
	if (all || !PG_ARGISNULL(FEATURES))
	{
		posterior_set_features(c, PG_ARGISNULL(FEATURES) ? NULL : PG_GETARG_ARRAYTYPE_P(FEATURES));
		definition_set(p, P_FEATURES, column_array(c->relation, c->features, c->n_features));
	}
	if (all || order != NULL)
	{
		Datum	   *descending;

		posterior_set_order(c, order != NULL && order[0] == '\0' ? NULL : order);
		descending = palloc(Max(c->n_order, 1) * sizeof(Datum));
		for (int i = 0; i < c->n_order; i++)
			descending[i] = BoolGetDatum(c->descending[i]);
		definition_set(p, P_ORDER, column_array(c->relation, c->order, c->n_order));
		definition_set(p, P_DESCENDING,
					   PointerGetDatum(construct_array(descending, c->n_order, BOOLOID, 1, true,
													   TYPALIGN_CHAR)));
	}
	if (filter != NULL && filter[0] != '\0')
		definition_set(p, P_FILTER, posterior_make_row_filter(c->relation, filter));
	if (all && model == NULL)
		model = posterior_can_be_label(get_atttype(c->relation, c->targets[0]))
				&& !posterior_is_number(get_atttype(c->relation, c->targets[0]))
				  ? posterior_class_model_name
				  : posterior_model_name;
	if (model != NULL)
	{
		check_model(model);
		definition_set(p, P_MODEL, CStringGetTextDatum(model));
	}
	take_new_arguments(fcinfo, all, p);
	if (!PG_ARGISNULL(MAX_ROWS) && (!all || PG_GETARG_INT32(MAX_ROWS) != 0))
		definition_set(p, P_MAX_ROWS, Int32GetDatum(check_max_rows(PG_GETARG_INT32(MAX_ROWS))));
}

/* Raise unless the model answers from so few rows, and the context has rows at all. */
static void
check_neighbours(const PosteriorNamed *named, const TnpModelInfo *model)
{
	if (named->neighbours == 0)
		return;
	if (named->keeps)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a context that keeps sums has no neighbours"),
				 errdetail("Its rows are read once and then forgotten."),
				 errhint("Use maintain => 'trigger', or neighbours => 0.")));
	if (named->neighbours < model->min_rows)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("neighbours => %d is too few for model \"%s\"", named->neighbours,
						named->model),
				 errdetail("It needs %d rows.", model->min_rows),
				 errhint("Give neighbours => %d or more; 512 is a good number for tables.",
						 model->min_rows)));
}

/* Raise unless the model can read what the context has. */
static void
check_features(const PosteriorNamed *named)
{
	MemoryContext memory =
		AllocSetContextCreate(CurrentMemoryContext, "posterior model lookup", ALLOCSET_SMALL_SIZES);
	PosteriorModel *pinned = posterior_named_model(named, memory);
	const TnpModelInfo *model = tnp_model_info(pinned->model);

	posterior_named_check_target(named, pinned->model);
	for (int f = 0; f < named->n_features; f++)
	{
		for (int t = 0; t < named->n_targets; t++)
			if (named->features[f] == named->targets[t])
				ereport(ERROR,
						(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						 errmsg("column \"%s\" cannot be both target and feature",
								named->names[f]),
						 errhint("Give features as well.")));
		if (named->kinds[f] == POSTERIOR_CATEGORY && !model->takes_categories)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("feature \"%s\" is a category, and model \"%s\" takes numbers only",
							named->names[f], named->model),
					 errhint("The view posterior.models shows what each model takes.")));
	}
	if (named->bounded && model->appendable)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("freshness \"bounded\" is for models that encode all rows when one is "
						"added"),
				 errdetail("Model \"%s\" appends rows: each costs itself only.", named->model),
				 errhint("Use freshness => 'exact'.")));
	check_neighbours(named, model);
	if (model->n_features > 0 && model->n_features != named->n_features)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("model \"%s\" takes %d feature%s, not %d", named->model, model->n_features,
						model->n_features == 1 ? "" : "s", named->n_features),
				 errhint("Give features, or another model; the view posterior.models shows how "
						 "many each takes.")));
	if (posterior_named_least(named) < model->min_rows)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("max_rows %d is too small for model \"%s\"", (int) named->max_rows,
							   named->model),
						errdetail("The window moves in steps of half its size, and the model needs "
								  "%d rows at any time.",
								  model->min_rows),
						errhint("Give max_rows => %d or more, or 0 for all rows.",
								Max(2 * model->min_rows - 3, model->min_rows))));
	/* a filter is not evaluated before the first prediction */
	if (!named->filtered && !named->bounded && !named->keeps && posterior_named_readable(named)
		&& check_enable_rls(named->relation, InvalidOid, true) == RLS_NONE
		&& posterior_named_exceeds(named, posterior_row_limit_of(pinned)))
		posterior_warn_row_limit(pinned, psprintf("context \"%s\"", named->name),
								 named->n_features);
	MemoryContextDelete(memory);
}

/* Look the definition up as a prediction would, for the errors that this raises. */
static void
check_definition(const char *name)
{
	CommandCounterIncrement();
	PushActiveSnapshot(GetTransactionSnapshot());
	check_features(posterior_named_find(name, CurrentMemoryContext));
	PopActiveSnapshot();
}

/*
 * Whether a new context keeps sums without being asked: its model has them, nothing says in which
 * order its rows are or how many, and its table is the caller's.
 */
static bool
sums_by_default(FunctionCallInfo fcinfo, Oid relation, const Parameters *p)
{
	return PG_ARGISNULL(MAINTAIN) && PG_ARGISNULL(ORDER_BY) && p->nulls[P_MAX_ROWS] == 'n'
		&& p->nulls[P_NEIGHBOURS] == 'n'
		&& posterior_relation_is_owned(relation) && posterior_can_keep(relation)
		&& model_prefers_sums(TextDatumGetCString(p->values[P_MODEL]));
}

/* An order of no columns. */
static void
take_no_order(Parameters *p, Oid relation)
{
	definition_set(p, P_ORDER, column_array(relation, NULL, 0));
	definition_set(p, P_DESCENDING, PointerGetDatum(construct_empty_array(BOOLOID)));
}

/* An identity for notes (sums_notes.c). */
static pg_uuid_t *
new_identity(void)
{
	return DatumGetUUIDP(DirectFunctionCall1(gen_random_uuid, (Datum) 0));
}

/*
 * create_context(name, relation, target, features, order_by, model, max_rows, filter, maintain,
 * estimators, freshness, neighbours)
 */
PG_FUNCTION_INFO_V1(posterior_create_context);
Datum
posterior_create_context(PG_FUNCTION_ARGS)
{
	char	   *name;
	PosteriorColumns columns = {0};
	Parameters	p;
	Maintain	maintain;
	pg_uuid_t  *kept = NULL;
	bool		extended;

	if (PG_ARGISNULL(NAME) || PG_ARGISNULL(RELATION) || PG_ARGISNULL(TARGET))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("name, relation and target of a context must not be NULL")));
	PreventCommandIfReadOnly("posterior.create_context()");
	name = text_argument(fcinfo, NAME);
	check_name(name);
	columns.relation = PG_GETARG_OID(RELATION);
	posterior_keep_relation(columns.relation);
	check_relation(columns.relation);
	if (pg_class_aclcheck(columns.relation, GetUserId(), ACL_SELECT) != ACLCHECK_OK
		&& pg_attribute_aclcheck_all(columns.relation, GetUserId(), ACL_SELECT, ACLMASK_ANY)
			   != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, get_relkind_objtype(get_rel_relkind(columns.relation)),
					   get_rel_name(columns.relation));
	maintain = decide_maintain(columns.relation, text_argument(fcinfo, MAINTAIN));
	take_arguments(fcinfo, name, &columns, true, &p);
	extended = posterior_definitions_extended();
	if (extended && sums_by_default(fcinfo, columns.relation, &p))
		maintain = BY_SUMS;
	if (maintain == BY_SUMS)
	{
		check_sums(columns.relation, text_argument(fcinfo, ORDER_BY),
				   p.nulls[P_MAX_ROWS] != 'n');
		take_no_order(&p, columns.relation);
		kept = new_identity();
		definition_set(&p, P_KEPT, UUIDPGetDatum(kept));
	}
	definition_set(&p, P_MAINTAIN, CStringGetTextDatum(maintain_names[maintain]));
	definition_set(&p, P_OWNER, ObjectIdGetDatum(GetUserId()));
	if (posterior_definitions_write(psprintf("INSERT INTO " POSTERIOR_DEFINITIONS
								   " (name, owner, relation, target, features, order_by, "
								   "descending, filter, model, max_rows, maintain%s)"
								   " VALUES ($1, $12::pg_catalog.regrole, "
								   "$2::pg_catalog.regclass, $3, $4, $5, $6, $7, $8, $9, $10%s) "
								   "ON CONFLICT DO NOTHING",
								   extended ? ", estimators, freshness, kept, more_targets, "
								   "neighbours" : "",
								   extended ? ", $14, $15, $16, $17, $18" : ""),
						  PARAMETERS, p.types, p.values, p.nulls)
		== 0)
		name_is_taken(name);
	check_definition(name);
	if (maintain == BY_TRIGGERS)
		posterior_make_triggers(columns.relation);
	if (maintain == BY_SUMS)
	{
		posterior_make_note_triggers(columns.relation, kept);
		posterior_kept_begin(name);
	}
	else
		posterior_note_order(&columns, name);
	PG_RETURN_VOID();
}

/* Write a definition that is there, perhaps with a new name; the number of rows. */
static uint64
change_definition(const char *statement, Parameters *p, const char *new_name)
{
	uint64		volatile n = 0;

	PG_TRY();
	{
		n = posterior_definitions_write(statement, PARAMETERS, p->types, p->values, p->nulls);
	}
	PG_CATCH();
	{
		/* another session has taken the name since it was free. The error stays one. */
		if (new_name == NULL || geterrcode() != ERRCODE_UNIQUE_VIOLATION)
			PG_RE_THROW();
		FlushErrorState();
		name_is_taken(new_name);
	}
	PG_END_TRY();
	return n;
}

/* Forget the sums of an identity that no definition has any more, and its triggers. */
static void
sums_end(Oid relation, const pg_uuid_t *kept)
{
	if (posterior_relation_is_owned(relation))
		posterior_drop_note_triggers(relation, kept);
	posterior_kept_end(kept);
}

/*
 * alter_context(name, target, features, order_by, model, max_rows, filter, maintain, new_name,
 * estimators, freshness, neighbours); NULL leaves as it is
 */
PG_FUNCTION_INFO_V1(posterior_alter_context);
Datum
posterior_alter_context(PG_FUNCTION_ARGS)
{
	char	   *name,
			   *maintain = text_argument(fcinfo, MAINTAIN),
			   *new_name = text_argument(fcinfo, NEW_NAME),
			   *filter = text_argument(fcinfo, FILTER);
	PosteriorColumns columns = {0};
	Parameters	p;
	pg_uuid_t  *id,
				kept;
	bool		maintained,
				had_sums,
				sums,
				anew;

	if (PG_ARGISNULL(NAME))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("the name of a context must not be NULL")));
	PreventCommandIfReadOnly("posterior.alter_context()");
	name = text_argument(fcinfo, NAME);
	id = posterior_own_context(name, &columns, &maintained);
	if (!OidIsValid(columns.relation))
		posterior_no_relation(name);
	if (get_rel_name(columns.relation) == NULL)
		posterior_definition_vanished(name);
	if (!PG_ARGISNULL(RELATION) && PG_GETARG_OID(RELATION) != columns.relation)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("the relation of a context cannot be changed"),
				 errhint("Drop the context and create it anew.")));
	take_arguments(fcinfo, name, &columns, false, &p);
	definition_set(&p, P_ID, UUIDPGetDatum(id));
	had_sums = posterior_keeps_sums(name, &kept);
	sums = maintain == NULL ? had_sums : strcmp(maintain, "sums") == 0;
	if (maintain != NULL)
	{
		Maintain	how = decide_maintain(columns.relation, maintain);

		maintained = how == BY_TRIGGERS;
		definition_set(&p, P_MAINTAIN, CStringGetTextDatum(maintain_names[how]));
	}
	/* another name is no reason to make sums anew */
	anew = (had_sums || sums)
		&& !(maintain == NULL && PG_ARGISNULL(TARGET) && PG_ARGISNULL(FEATURES)
			 && PG_ARGISNULL(ORDER_BY) && PG_ARGISNULL(MODEL) && PG_ARGISNULL(MAX_ROWS)
			 && filter == NULL);
	if (sums && anew)
	{
		check_owned(columns.relation);
		check_sums(columns.relation, text_argument(fcinfo, ORDER_BY),
				   !PG_ARGISNULL(MAX_ROWS) && PG_GETARG_INT32(MAX_ROWS) != 0);
		take_no_order(&p, columns.relation);
		definition_set(&p, P_MAX_ROWS, Int32GetDatum(0));
		definition_set(&p, P_KEPT, UUIDPGetDatum(new_identity()));
	}
	if (new_name != NULL && strcmp(new_name, name) != 0)
	{
		check_name(new_name);
		check_free(new_name);
		definition_set(&p, P_NEW_NAME, CStringGetTextDatum(new_name));
	}
	if (change_definition(
			psprintf("UPDATE " POSTERIOR_DEFINITIONS
					 " SET version = pg_catalog.gen_random_uuid(), refreshed_rows = NULL, target = "
					 "coalesce($3, target),"
					 " features = coalesce($4, features), order_by = coalesce($5, order_by), "
					 "descending = coalesce($6, descending),"
					 " filter = %s, model = coalesce($8, model), max_rows = CASE WHEN $9 "
					 "OPERATOR(pg_catalog.=) 0 THEN NULL ELSE coalesce($9, max_rows) END,"
					 " maintain = coalesce($10, maintain), name = coalesce($11, name)%s%s"
					 " WHERE name OPERATOR(pg_catalog.=) $1 AND id OPERATOR(pg_catalog.=) $13 AND "
					 "$2 IS NOT NULL AND $12 IS NULL",
					 filter != NULL && filter[0] == '\0'
						 ? "CASE WHEN $7 IS NULL THEN NULL ELSE $7 END"
						 : "coalesce($7, filter)",
					 posterior_definitions_extended()
						 ? ", estimators = CASE WHEN $14 OPERATOR(pg_catalog.=) 0 THEN NULL ELSE "
						 "coalesce($14, estimators) END, freshness = coalesce($15, freshness), "
						 "more_targets = CASE WHEN $3 IS NULL THEN more_targets ELSE $17 END, "
						 "neighbours = CASE WHEN $18 OPERATOR(pg_catalog.=) 0 THEN NULL ELSE "
						 "coalesce($18, neighbours) END"
						 : "",
					 anew ? ", kept = $16, basis = NULL, fit = NULL" : ""),
			&p, new_name)
		== 0)
		posterior_definition_vanished(name);
	check_definition(new_name != NULL ? new_name : name);
	/* of a table that belongs to another role by now the triggers stay as they are */
	if (posterior_relation_is_owned(columns.relation))
	{
		if (new_name != NULL && strcmp(new_name, name) != 0)
			posterior_watch_follows(columns.relation, name, new_name);
		if (maintained)
			posterior_make_triggers(columns.relation);
		else
			posterior_drop_triggers(columns.relation);
	}
	if (had_sums && anew)
		sums_end(columns.relation, &kept);
	if (sums && anew)
	{
		posterior_make_note_triggers(columns.relation, DatumGetUUIDP(p.values[P_KEPT]));
		posterior_kept_begin(new_name != NULL ? new_name : name);
	}
	else if (!PG_ARGISNULL(ORDER_BY))
		posterior_note_order(&columns, new_name != NULL ? new_name : name);
	PG_RETURN_VOID();
}

/* drop_context(name) */
PG_FUNCTION_INFO_V1(posterior_drop_context);
Datum
posterior_drop_context(PG_FUNCTION_ARGS)
{
	char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	Oid			types[] = {TEXTOID, UUIDOID};
	Datum		values[] = {PG_GETARG_DATUM(0), (Datum) 0};
	PosteriorColumns columns = {0};
	pg_uuid_t	kept;
	bool		maintained,
				sums;

	PreventCommandIfReadOnly("posterior.drop_context()");
	values[1] = UUIDPGetDatum(posterior_own_context(name, &columns, &maintained));
	sums = posterior_keeps_sums(name, &kept);
	if (posterior_definitions_write("DELETE FROM " POSTERIOR_DEFINITIONS
						  " WHERE name OPERATOR(pg_catalog.=) $1 AND id OPERATOR(pg_catalog.=) $2",
						  2, types, values, NULL)
		== 0)
		posterior_definition_vanished(name);
	if (posterior_relation_is_owned(columns.relation))
	{
		if (maintained)
			posterior_drop_triggers(columns.relation);
		posterior_watch_follows(columns.relation, name, NULL);
	}
	if (sums)
		sums_end(columns.relation, &kept);
	PG_RETURN_VOID();
}
