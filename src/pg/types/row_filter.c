/*
 * row_filter.c: type posterior.row_filter: a condition kept as an analysed expression, so that
 * renames are followed, and printed as "schema.relation WHERE (condition)", so that dumps restore.
 *
 * A filter is evaluated with the rights of the predicting user, so it may contain nothing that its
 * author could have defined: immutable functions and operators of pg_catalog only, and values of
 * types whose input is the server's own, because a constant is read whenever its filter is
 * (filter_rules.c). Another major version of the server cannot read the expression (pg_upgrade
 * takes the bytes along), and one whose columns have other types by now says nothing, so the
 * condition is also kept as text, with the places where columns are named. What comes of that text
 * passes these checks again before it is evaluated.
 *
 * A dump is restored whatever has become of a filter: one that cannot be read is kept as the text
 * that it is. That is never evaluated, and dumps write it again.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/types/row_filter.h"

#include "pg/base/attempt.h"
#include "pg/rows/column_types.h"
#include "pg/types/filter_rules.h"
#include "pg/types/filter_text.h"
#include "pg/types/regcolumn.h"

#include "catalog/namespace.h"
#include "lib/stringinfo.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

typedef struct RowFilter
{
	int32		vl_len_;
	/* 0: the text is what could not be read, or empty when the relation or a column was gone */
	Oid			relation;
	int32		major;			/* version of the server that wrote the expression */
	int32		n_places;
	/* in the order of the text; then the text and the output of nodeToString, each with its end */
	PosteriorColumnPlace places[FLEXIBLE_ARRAY_MEMBER];
} RowFilter;

static const char *
filter_text(const RowFilter *filter)
{
	return (const char *) (filter->places + filter->n_places);
}

static const char *
filter_expression(const RowFilter *filter)
{
	return filter_text(filter) + strlen(filter_text(filter)) + 1;
}

/* ---- values ---------------------------------------------------------------------------------- */

static RowFilter *
filter_make(Oid relation, Node *condition)
{
	int			level = posterior_filter_printing(),
				n_places;
	char	   *text,
			   *expression = nodeToString(condition),
			   *end;
	PosteriorColumnPlace *places;
	RowFilter  *filter;
	Size		size;

	posterior_filter_set("search_path", "pg_catalog");
	text = posterior_filter_print(relation, condition);
	places = posterior_filter_places(relation, text, &n_places);
	AtEOXact_GUC(true, level);
	size = offsetof(RowFilter, places) + n_places * sizeof(PosteriorColumnPlace) + strlen(text)
		 + strlen(expression) + 2;
	filter = palloc0(size);
	SET_VARSIZE(filter, size);
	filter->relation = relation;
	filter->major = POSTERIOR_SERVER_MAJOR;
	filter->n_places = n_places;
	if (n_places > 0)
		memcpy(filter->places, places, n_places * sizeof(PosteriorColumnPlace));
	end = (char *) filter_text(filter);
	strcpy(end, text);
	strcpy(end + strlen(text) + 1, expression);
	return filter;
}

/* What cannot be read: its text and nothing else. */
static RowFilter *
filter_keep_text(const char *text)
{
	Size		size = offsetof(RowFilter, places) + strlen(text) + 2;
	RowFilter  *filter = palloc0(size);

	SET_VARSIZE(filter, size);
	strcpy((char *) filter_text(filter), text);
	return filter;
}

static bool
filter_is_unread(const RowFilter *filter)
{
	return !OidIsValid(filter->relation) && filter_text(filter)[0] != '\0';
}

/* Whether the relation or a column of it is gone. */
static bool
filter_is_gone(const RowFilter *filter)
{
	if (get_rel_name(filter->relation) == NULL)
		return true;
	for (int i = 0; i < filter->n_places; i++)
		if (posterior_column_name(filter->relation, filter->places[i].column) == NULL)
			return true;
	return false;
}

/* The condition as it was written, with the names that the columns have now. */
static char *
filter_text_now(const RowFilter *filter)
{
	const char *text = filter_text(filter);
	StringInfoData now;
	int			done = 0;

	initStringInfo(&now);
	for (int i = 0; i < filter->n_places; i++)
	{
		const PosteriorColumnPlace *place = &filter->places[i];
		char	   *name = posterior_column_name(filter->relation, place->column);

		appendBinaryStringInfo(&now, text + done, place->offset - done);
		appendStringInfoString(&now, quote_identifier(name));
		done = place->offset + place->length;
	}
	appendStringInfoString(&now, text + done);
	return now.data;
}

/* What an expression was made for and is not there any more. */
typedef struct Change
{
	Oid			relation;
	/*
	 * whose type is another one; 0 when it is the type of a value, which is gone or none that a
	 * filter may have, an attribute, or a collation
	 */
	AttrNumber	column;
} Change;

/* Whether an attribute of a composite value is gone. */
static bool
lacks_attribute(const FieldSelect *select)
{
	Oid			relation = get_typ_typrelid(getBaseType(exprType((Node *) select->arg)));

	return OidIsValid(relation) && get_atttype(relation, select->fieldnum) != select->resulttype;
}

static bool
filter_find_change(Node *node, void *context)
{
	Change	   *change = context;

	if (node == NULL)
		return false;
	if (IsA(node, FieldSelect) && lacks_attribute((FieldSelect *) node))
	{
		change->column = 0;
		return true;
	}
	if (IsA(node, Var))
	{
		Var		   *var = (Var *) node;
		Oid			type,
					collation;
		int32		typmod;

		get_atttypetypmodcoll(change->relation, var->varattno, &type, &typmod, &collation);
		change->column = var->varattno;
		return type != var->vartype || collation != var->varcollid;
	}
	if (OidIsValid(posterior_type_is_foreign(node))
		|| (IsA(node, CollateExpr)
			&& get_collation_name(((CollateExpr *) node)->collOid) == NULL))
	{
		change->column = 0;
		return true;
	}
	return expression_tree_walker(node, filter_find_change, change);
}

/*
 * The expression of a filter of which nothing is gone, or NULL when it means nothing to this server
 * and these columns: then there is the text.
 */
static Node *
kept_expression(const RowFilter *filter, Change *change)
{
	Node	   *expression;

	change->relation = filter->relation;
	change->column = 0;
	if (filter->major != POSTERIOR_SERVER_MAJOR)
		return NULL;
	expression = stringToNode(filter_expression(filter));
	return filter_find_change(expression, change) ? NULL : expression;
}

/* The expression of a condition that was printed by make_filter. */
static Node *
filter_read_text(Oid relation, const char *condition)
{
	int			level = posterior_filter_printing();
	RangeVar   *ignored;
	Node	   *expression;

	posterior_filter_set("search_path", "pg_catalog");
	expression = posterior_filter_analyse(
		relation, posterior_filter_parse(psprintf("r WHERE %s", condition), condition, &ignored),
		condition);
	AtEOXact_GUC(true, level);
	return expression;
}

/*
 * Whether an error says that a text is no filter here, and not that something else went wrong while
 * it was read.
 */
static bool
error_is_about_text(const ErrorData *error)
{
	switch (ERRCODE_TO_CATEGORY(error->sqlerrcode))
	{
		case ERRCODE_SYNTAX_ERROR_OR_ACCESS_RULE_VIOLATION:
		case ERRCODE_DATA_EXCEPTION:
		case ERRCODE_INVALID_SCHEMA_NAME:
		case ERRCODE_FEATURE_NOT_SUPPORTED:
			return true;
		default:
			return false;
	}
}

/* What is wrong with a text, as a part of a sentence. */
static char *
error_reason(const ErrorData *error)
{
	char	   *reason = pstrdup(error->detail != NULL ? error->detail : error->message);
	size_t		length = strlen(reason);

	if (length > 0 && reason[length - 1] == '.')
		reason[length - 1] = '\0';
	return reason;
}

/*
 * The expression of a filter whose kept one is of no use; an error of its text becomes one of the
 * context.
 */
static Node *
filter_read_again(const RowFilter *filter, const char *context, const Change *change)
{
	MemoryContext memory = CurrentMemoryContext;
	char	   *condition = filter_text_now(filter),
			   *column = NULL,
			   *type = NULL;
	Node	   *volatile expression = NULL;

	/*
	 * looked up now, because catalogs are not read between an error and the end of its transaction
	 */
	if (change->column != 0)
	{
		column = posterior_column_name(filter->relation, change->column);
		type = format_type_be(get_atttype(filter->relation, change->column));
	}
	PG_TRY();
	{
		expression = filter_read_text(filter->relation, condition);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		/* the error stays one, so nothing of what it interrupted is gone on with */
		MemoryContextSwitchTo(memory);
		error = CopyErrorData();
		if (!error_is_about_text(error))
			PG_RE_THROW();
		FlushErrorState();
		ereport(
			ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("the filter of context \"%s\" cannot be evaluated any more", context),
			 column != NULL
				 ? errdetail("The type of column \"%s\" is %s now, and the condition is %s: %s.",
							 column, type, condition, error_reason(error))
				 : errdetail("The condition is %s: %s.", condition, error_reason(error)),
			 errhint("Give the context another filter by posterior.alter_context, or drop it by "
					 "posterior.drop_context.")));
	}
	PG_END_TRY();
	return expression;
}

Datum
posterior_make_row_filter(Oid relation, const char *condition)
{
	RangeVar   *ignored;

	return PointerGetDatum(filter_make(
		relation,
		posterior_filter_analyse(relation,
								 posterior_filter_parse(psprintf("r WHERE %s", condition),
														condition, &ignored),
								 condition)));
}

static bool
find_attributes(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Var) && posterior_has_attributes(((Var *) node)->vartype))
		return true;
	return expression_tree_walker(node, find_attributes, context);
}

Node *
posterior_row_filter_expression(Datum datum, const char *context)
{
	RowFilter  *filter = (RowFilter *) PG_DETOAST_DATUM(datum);
	Node	   *expression;
	Change		change;

	if (filter_is_unread(filter))
		ereport(
			ERROR,
			(errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
			 errmsg("the filter of context \"%s\" could not be read when the context was restored",
					context),
			 errdetail("It is kept as it was written: %s.", filter_text(filter)),
			 errhint("Give the context another filter by posterior.alter_context, or drop it by "
					 "posterior.drop_context.")));
	if (filter_is_gone(filter))
		return NULL;
	expression = kept_expression(filter, &change);
	if (expression == NULL)
		return filter_read_again(filter, context, &change);
	/* it may have been made by a version that knew fewer rules */
	posterior_filter_check_parts(expression, filter_text_now(filter));
	return expression;
}

char *
posterior_row_filter_query(Datum datum, const char *context, bool *stable)
{
	Node	   *expression = posterior_row_filter_expression(datum, context);

	if (expression == NULL)
		return NULL;
	*stable = *stable && !find_attributes(expression, NULL);
	return posterior_filter_print(((RowFilter *) PG_DETOAST_DATUM(datum))->relation, expression);
}

/*
 * The condition for display and dumps, which also show what cannot be evaluated; NULL when it is
 * gone.
 */
static char *
filter_show(const RowFilter *filter)
{
	Node	   *expression;
	Change		change;

	if (filter_is_gone(filter))
		return NULL;
	expression = kept_expression(filter, &change);
	return expression != NULL ? posterior_filter_print(filter->relation, expression)
							  : filter_text_now(filter);
}

/* A text, and the filter that it means. */
typedef struct FilterReading
{
	const char *text;
	RowFilter  *filter;
} FilterReading;

static bool
filter_read(void *argument)
{
	FilterReading *reading = argument;
	int			level = posterior_filter_printing();
	RangeVar   *relation;
	Node	   *raw = posterior_filter_parse(reading->text, reading->text, &relation);
	Oid			oid = RangeVarGetRelid(relation, AccessShareLock, false);

	reading->filter = filter_make(oid, posterior_filter_analyse(oid, raw, reading->text));
	AtEOXact_GUC(true, level);
	return true;
}

/*
 * The filter that a text means, or NULL with the reason. There is a subtransaction, for which the
 * type's input function is not parallel safe.
 */
static RowFilter *
filter_try_to_read(const char *text, char **reason)
{
	FilterReading reading = {.text = text};
	ErrorData  *error = posterior_attempt(filter_read, &reading);

	*reason = NULL;
	if (error == NULL)
		return reading.filter;
	if (!error_is_about_text(error))
		ReThrowError(error);
	*reason = error_reason(error);
	return NULL;
}

PG_FUNCTION_INFO_V1(posterior_row_filter_in);
Datum
posterior_row_filter_in(PG_FUNCTION_ARGS)
{
	char	   *text = PG_GETARG_CSTRING(0),
			   *reason;
	RowFilter  *filter;

	/* a dumped filter whose relation or column is gone */
	if (strcmp(text, "-") == 0)
		PG_RETURN_POINTER(filter_keep_text(""));
	filter = filter_try_to_read(text, &reason);
	if (filter == NULL)
	{
		ereport(WARNING,
				(errmsg("the filter \"%s\" cannot be read", text), errdetail("%s.", reason),
				 errhint("Give its context another filter by posterior.alter_context, or drop it "
						 "by posterior.drop_context.")));
		filter = filter_keep_text(text);
	}
	PG_RETURN_POINTER(filter);
}

PG_FUNCTION_INFO_V1(posterior_row_filter_out);
Datum
posterior_row_filter_out(PG_FUNCTION_ARGS)
{
	RowFilter  *filter = (RowFilter *) PG_DETOAST_DATUM(PG_GETARG_DATUM(0));
	char	   *condition;

	if (filter_is_unread(filter))
		PG_RETURN_CSTRING(pstrdup(filter_text(filter)));
	condition = filter_show(filter);
	if (condition == NULL)
		PG_RETURN_CSTRING(pstrdup("-"));
	PG_RETURN_CSTRING(
		psprintf("%s WHERE %s",
				 quote_qualified_identifier(get_namespace_name(get_rel_namespace(filter->relation)),
											get_rel_name(filter->relation)),
				 condition));
}

/*
 * The condition alone, for views; with the name of its relation, as it was dumped, when it could
 * not be read; NULL when it is gone.
 */
PG_FUNCTION_INFO_V1(posterior_row_filter_condition);
Datum
posterior_row_filter_condition(PG_FUNCTION_ARGS)
{
	RowFilter  *filter = (RowFilter *) PG_DETOAST_DATUM(PG_GETARG_DATUM(0));
	const char *condition = filter_is_unread(filter) ? filter_text(filter) : filter_show(filter);

	if (condition == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(condition));
}
