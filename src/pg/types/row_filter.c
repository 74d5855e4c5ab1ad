/*
 * row_filter.c: type posterior.row_filter: a condition kept as an analysed expression, so that
 * renames are followed, and printed as "schema.relation WHERE (condition)", so that dumps restore.
 *
 * A filter is evaluated with the rights of the predicting user, so it may contain nothing that its
 * author could have defined: immutable functions and operators of pg_catalog only, and values of
 * types whose input is the server's own, because a constant is read whenever its filter is. Another
 * major version of the server cannot read the expression (pg_upgrade takes the bytes along), and
 * one whose columns have other types by now says nothing, so the condition is also kept as text,
 * with the places where columns are named. What comes of that text passes these checks again before
 * it is evaluated.
 *
 * A dump is restored whatever has become of a filter: one that cannot be read is kept as the text
 * that it is. That is never evaluated, and dumps write it again.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/types/row_filter.h"

#include "pg/rows/column_types.h"
#include "pg/types/regcolumn.h"

#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_clause.h"
#include "parser/parse_collate.h"
#include "parser/parse_relation.h"
#include "parser/parse_type.h"
#include "parser/parser.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/ruleutils.h"

/* Where the text names a column. */
typedef struct ColumnPlace
{
	int32		offset,
				length;
	int32		column;
} ColumnPlace;

typedef struct RowFilter
{
	int32		vl_len_;
	/* 0: the text is what could not be read, or empty when the relation or a column was gone */
	Oid			relation;
	int32		major;			/* version of the server that wrote the expression */
	int32		n_places;
	/* in the order of the text; then the text and the output of nodeToString, each with its end */
	ColumnPlace places[FLEXIBLE_ARRAY_MEMBER];
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

/* ---- what may be in a filter ----------------------------------------------------------------- */

static void
filter_refuse(const char *condition, const char *detail)
{
	ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					errmsg("invalid filter: %s", condition), errdetail("%s", detail),
					errhint("A filter is a boolean expression over the columns of the relation, "
							"with immutable functions and operators of pg_catalog.")));
}

static bool
foreign_function(Oid function, void *context)
{
	return function >= FirstNormalObjectId;
}

/*
 * Whether a function that the server calls immutable asks the session's settings: numbers as text
 * extra_float_digits, bytes as text bytea_output, quote_ident quote_all_identifiers.
 */
static bool
function_asks_settings(Oid function, void *context)
{
	switch (function)
	{
		case F_FLOAT4OUT:
		case F_FLOAT8OUT:
		case F_POINT_OUT:
		case F_LSEG_OUT:
		case F_PATH_OUT:
		case F_BOX_OUT:
		case F_POLY_OUT:
		case F_LINE_OUT:
		case F_CIRCLE_OUT:
		case F_BYTEAOUT:
		case F_QUOTE_IDENT:
			return true;
		default:
			return false;
	}
}

/*
 * Whether a time is moved to a zone whose name may be an abbreviation, of which the session's
 * timezone_abbreviations say what it is.
 */
static bool
function_asks_abbreviations(Node *node)
{
	FuncExpr   *call = (FuncExpr *) node;
	Const	   *zone;
	char	   *name;

	if (!IsA(node, FuncExpr)
		|| (call->funcid != F_TIMEZONE_TEXT_TIMESTAMPTZ
			&& call->funcid != F_TIMEZONE_TEXT_TIMESTAMP))
		return false;
	zone = linitial(call->args);
	if (!IsA(zone, Const))
		return true;
	if (zone->constisnull)
		return false;
	name = TextDatumGetCString(zone->constvalue);
	return strchr(name, '/') == NULL && strcmp(name, "UTC") != 0;
}

/*
 * Whether a value is a text search configuration or dictionary that users can change: one that is
 * not the server's, or that a row names.
 */
static bool
search_is_foreign(Node *node)
{
	Oid			type = IsA(node, List) || IsA(node, CaseWhen) ? InvalidOid : exprType(node);

	if (type != REGCONFIGOID && type != REGDICTIONARYOID)
		return false;
	return !IsA(node, Const)
		|| (!((Const *) node)->constisnull
			&& DatumGetObjectId(((Const *) node)->constvalue) >= FirstNormalObjectId);
}

/* Whether the values of a type are read, written and checked by built-in functions alone. */
static bool
type_is_own(Oid type)
{
	Oid			element = get_element_type(type);

	if (OidIsValid(element))
		return type_is_own(element);
	switch (get_typtype(type))
	{
		case TYPTYPE_ENUM:
			return true;
		case TYPTYPE_DOMAIN:
		case TYPTYPE_COMPOSITE:
		case '\0':				/* it is gone */
			return false;
		default:
			return type < FirstNormalObjectId;
	}
}

/*
 * The type of the value that a node makes, if it is none of the server's own; else 0. Those of a
 * column have been made already, of whatever type.
 */
static Oid
type_is_foreign(Node *node)
{
	Oid			type;

	if (IsA(node, List) || IsA(node, CaseWhen) || IsA(node, Var))
		return InvalidOid;
	type = exprType(node);
	return OidIsValid(type) && !type_is_own(type) ? type : InvalidOid;
}

static void
type_refuse(Oid type, const char *shown)
{
	filter_refuse(shown,
				  psprintf("It has a value of type %s, and may have values of PostgreSQL's own "
						   "types, of enums, and of arrays of these.",
						   format_type_be(type)));
}

/*
 * Raise if a type that is named is none of the server's own: the analysis of an expression already
 * reads its constants.
 */
static bool
node_check_types(Node *node, const char *shown)
{
	if (node == NULL)
		return false;
	if (IsA(node, TypeName))
	{
		Oid			type = LookupTypeNameOid(NULL, (TypeName *) node, true);

		if (OidIsValid(type) && !type_is_own(type))
			type_refuse(type, shown);
	}
	return raw_expression_tree_walker(node, node_check_types, (void *) shown);
}

/* The operator of a node, or 0. */
static Oid
node_operator(Node *node)
{
	if (IsA(node, OpExpr) || IsA(node, DistinctExpr) || IsA(node, NullIfExpr))
		return ((OpExpr *) node)->opno;
	return IsA(node, ScalarArrayOpExpr) ? ((ScalarArrayOpExpr *) node)->opno : InvalidOid;
}

/* Whether an operator is for just the types of these operands. */
static bool
operator_is_exact(Oid operator, Node *left, Node *right)
{
	Oid			left_type,
				right_type;

	op_input_types(operator, &left_type, &right_type);
	return left_type == exprType(left) && right_type == exprType(right);
}

/*
 * Whether a node is printed without its operator, and an operator that a user defines for its types
 * would be found instead when the condition is parsed again. One of pg_catalog that is for just
 * these types always comes first.
 */
static bool
node_is_replaceable(Node *node)
{
	if (IsA(node, DistinctExpr) || IsA(node, NullIfExpr))
		return !operator_is_exact(node_operator(node), linitial(((OpExpr *) node)->args),
								  lsecond(((OpExpr *) node)->args));
	if (IsA(node, RowCompareExpr))
	{
		RowCompareExpr *rows = (RowCompareExpr *) node;

		for (int i = 0; i < list_length(rows->opnos); i++)
			if (!operator_is_exact(list_nth_oid(rows->opnos, i), list_nth(rows->largs, i),
								   list_nth(rows->rargs, i)))
				return true;
	}
	if (IsA(node, CaseExpr) && ((CaseExpr *) node)->arg != NULL)
	{
		CaseExpr   *c = (CaseExpr *) node;
		ListCell   *cell;

		foreach(cell, c->args)
		{
			OpExpr	   *when = (OpExpr *) lfirst_node(CaseWhen, cell)->expr;

			/* implicit casts are not printed here */
			if (!IsA(when, OpExpr)
				|| !operator_is_exact(when->opno, strip_implicit_coercions((Node *) c->arg),
									  strip_implicit_coercions(lsecond(when->args))))
				return true;
		}
	}
	return false;
}

/* Raise unless the expression is made of the row and of what is built in. */
static bool
node_check_parts(Node *node, const char *shown)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubLink))
		filter_refuse(shown, "It has a subquery.");
	if (IsA(node, Var) && ((Var *) node)->varattno <= 0)
		filter_refuse(shown, "It uses a system column or the whole row.");
	/* a domain's constraints may call anything */
	if (check_functions_in_node(node, foreign_function, NULL) || IsA(node, CoerceToDomain)
		|| node_operator(node) >= FirstNormalObjectId)
		filter_refuse(shown, "It calls something that is not part of PostgreSQL.");
	if (search_is_foreign(node))
		filter_refuse(shown, "It uses a text search configuration that is not part of PostgreSQL.");
	/* XML asks xmlbinary and TimeZone */
	if (check_functions_in_node(node, function_asks_settings, NULL) || IsA(node, XmlExpr))
		filter_refuse(shown, "Its value depends on more than the row.");
	if (function_asks_abbreviations(node))
		filter_refuse(shown,
					  "It has a time zone that may be an abbreviation, which depends on more "
					  "than the row; UTC and names like Europe/Paris do not.");
	if (OidIsValid(type_is_foreign(node)))
		type_refuse(type_is_foreign(node), shown);
	if (node_is_replaceable(node))
		filter_refuse(shown,
					  "It compares by IS DISTINCT FROM, NULLIF, CASE or as rows, which name no "
					  "operator, and others may define one for these types.");
	return expression_tree_walker(node, node_check_parts, (void *) shown);
}

/* What is being parsed, for errors. */
typedef struct Parsing
{
	const char *what,
			   *shown;
} Parsing;

static void
add_context(void *arg)
{
	Parsing    *p = arg;

	/* a position would be taken for one in the query of the caller */
	errposition(0);
	errcontext("%s \"%s\"", p->what, p->shown);
}

List *
posterior_parse(const char *sql, const char *what, const char *shown)
{
	Parsing		parsing = {what, shown};
	ErrorContextCallback callback = {
		.previous = error_context_stack, .callback = add_context, .arg = &parsing};
	List	   *statements;

	error_context_stack = &callback;
	statements = raw_parser(sql, RAW_PARSE_DEFAULT);
	error_context_stack = callback.previous;
	return statements;
}

/* The raw expression of "SELECT 1 FROM `source`", and its relation. */
static Node *
filter_parse(const char *source, const char *shown, RangeVar **relation)
{
	List	   *statements = posterior_parse(psprintf("SELECT 1 FROM %s", source), "filter", shown);
	SelectStmt *select;

	if (list_length(statements) != 1)
		filter_refuse(shown, "It is more than one statement.");
	select = (SelectStmt *) linitial_node(RawStmt, statements)->stmt;
	if (!IsA(select, SelectStmt) || list_length(select->fromClause) != 1
		|| !IsA(linitial(select->fromClause), RangeVar) || select->whereClause == NULL
		|| select->groupClause != NIL || select->havingClause != NULL || select->windowClause != NIL
		|| select->sortClause != NIL || select->limitCount != NULL || select->limitOffset != NULL
		|| select->lockingClause != NIL || select->withClause != NULL || select->op != SETOP_NONE)
		filter_refuse(shown, "It is more than a condition.");
	*relation = linitial(select->fromClause);
	return select->whereClause;
}

static Node *
filter_analyse(Oid relation, Node *raw, const char *shown)
{
	ParseState *state = make_parsestate(NULL);
	Relation	rel = table_open(relation, AccessShareLock);
	ParseNamespaceItem *item =
		addRangeTableEntryForRelation(state, rel, AccessShareLock, NULL, false, true);
	Node	   *condition;

	node_check_types(raw, shown);
	addNSItemToQuery(state, item, false, true, true);
	condition = transformWhereClause(state, raw, EXPR_KIND_WHERE, "filter");
	assign_expr_collations(state, condition);
	node_check_parts(condition, shown);
	if (contain_mutable_functions(condition))
		filter_refuse(shown, "Its value depends on more than the row.");
	table_close(rel, NoLock);
	free_parsestate(state);
	return condition;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void
setting_set_until(const char *name, const char *value)
{
	(void) set_config_option(name, value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
							 false);
}

/*
 * From here to AtEOXact_GUC(true, level), constants are printed so that every session reads them
 * alike, and read as they are printed.
 */
static int
printing_begin(void)
{
	int			level = NewGUCNestLevel();

	setting_set_until("datestyle", "ISO, MDY");
	setting_set_until("intervalstyle", "postgres");
	setting_set_until("extra_float_digits", "1");
	setting_set_until("array_nulls", "on");
	setting_set_until("standard_conforming_strings", "on");
	return level;
}

static char *
filter_print(Oid relation, Node *condition)
{
	int			level = printing_begin();
	char *text = deparse_expression(
		condition, deparse_context_for(get_rel_name(relation), relation), false, false);

	AtEOXact_GUC(true, level);
	return text;
}

typedef struct Places
{
	Oid			relation;
	int			n,
				room;
	ColumnPlace *places;
} Places;

static bool
note_column(Node *node, Places *p)
{
	if (node == NULL)
		return false;
	if (IsA(node, ColumnRef))
	{
		ColumnRef  *ref = (ColumnRef *) node;
		char	   *name = strVal(linitial(ref->fields));

		if (p->n == p->room)
		{
			p->room = Max(16, 2 * p->room);
			p->places = p->places == NULL ? palloc(p->room * sizeof(ColumnPlace))
										  : repalloc(p->places, p->room * sizeof(ColumnPlace));
		}
		p->places[p->n].offset = ref->location;
		p->places[p->n].length = strlen(quote_identifier(name));
		p->places[p->n++].column = get_attnum(p->relation, name);
	}
	return raw_expression_tree_walker(node, note_column, p);
}

static int
place_compare(const void *a, const void *b)
{
	return ((const ColumnPlace *) a)->offset - ((const ColumnPlace *) b)->offset;
}

/* ---- values ---------------------------------------------------------------------------------- */

static RowFilter *
filter_make(Oid relation, Node *condition)
{
	static const char before[] = "r WHERE ";
	int			level = printing_begin();
	char	   *text,
			   *expression = nodeToString(condition),
			   *end;
	RangeVar   *ignored;
	Places		p = {.relation = relation};
	RowFilter  *filter;
	Size		size;

	setting_set_until("search_path", "pg_catalog");
	text = filter_print(relation, condition);
	note_column(filter_parse(psprintf("%s%s", before, text), text, &ignored), &p);
	AtEOXact_GUC(true, level);
	if (p.n > 0)
		qsort(p.places, p.n, sizeof(ColumnPlace), place_compare);
	size = offsetof(RowFilter, places) + p.n * sizeof(ColumnPlace) + strlen(text)
		 + strlen(expression) + 2;
	filter = palloc0(size);
	SET_VARSIZE(filter, size);
	filter->relation = relation;
	filter->major = POSTERIOR_SERVER_MAJOR;
	filter->n_places = p.n;
	for (int i = 0; i < p.n; i++)
	{
		filter->places[i] = p.places[i];
		/* parse puts this before what it is given */
		filter->places[i].offset -= strlen("SELECT 1 FROM ") + strlen(before);
	}
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
		const ColumnPlace *place = &filter->places[i];
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
	 * filter may have, or an attribute
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
filter_find_change(Node *node, Change *change)
{
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
	if (OidIsValid(type_is_foreign(node)))
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
	int			level = printing_begin();
	RangeVar   *ignored;
	Node	   *expression;

	setting_set_until("search_path", "pg_catalog");
	expression = filter_analyse(
		relation, filter_parse(psprintf("r WHERE %s", condition), condition, &ignored), condition);
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
		filter_analyse(relation,
					   filter_parse(psprintf("r WHERE %s", condition), condition, &ignored),
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

char *
posterior_row_filter_query(Datum datum, const char *context, bool *stable)
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
		expression = filter_read_again(filter, context, &change);
	*stable = *stable && !find_attributes(expression, NULL);
	return filter_print(filter->relation, expression);
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
	return expression != NULL ? filter_print(filter->relation, expression)
							  : filter_text_now(filter);
}

/*
 * The filter that a text means, or NULL with the reason. An error in the middle of the parser
 * leaves locks and open relations behind, so a subtransaction is around it: for this, the type's
 * input function is not parallel safe.
 */
static RowFilter *
filter_try_to_read(const char *text, char **reason)
{
	MemoryContext memory = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	RowFilter  *volatile filter = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(memory);
	PG_TRY();
	{
		int			level = printing_begin();
		RangeVar   *relation;
		Node	   *raw = filter_parse(text, text, &relation);
		Oid			oid = RangeVarGetRelid(relation, AccessShareLock, false);

		filter = filter_make(oid, filter_analyse(oid, raw, text));
		AtEOXact_GUC(true, level);
		ReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(memory);
		CurrentResourceOwner = owner;
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(memory);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(memory);
		CurrentResourceOwner = owner;
		if (!error_is_about_text(error))
			ReThrowError(error);
		*reason = error_reason(error);
		filter = NULL;
	}
	PG_END_TRY();
	return filter;
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
