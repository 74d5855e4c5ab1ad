/*
 * row_filter.c: type posterior.row_filter: a condition kept as an analysed expression, so that renames are followed, and printed as
 * "schema.relation WHERE (condition)", so that dumps restore.
 *
 * A filter is evaluated with the rights of whoever predicts, so it may contain nothing that its author could have defined: immutable functions and
 * operators of pg_catalog only. Another major version of the server cannot read the expression (pg_upgrade takes the bytes along), so the condition is also kept as
 * text, with the places where columns are named.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "row_filter.h"

#include "regcolumn.h"

#include "access/table.h"
#include "access/transam.h"
#include "catalog/namespace.h"
#include "lib/stringinfo.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_clause.h"
#include "parser/parse_collate.h"
#include "parser/parse_relation.h"
#include "parser/parser.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
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
	Oid			relation;
	int32		major;			/* version of the server that wrote the expression */
	int32		n_places;
	ColumnPlace places[FLEXIBLE_ARRAY_MEMBER];	/* in the order of the text; then the text and the output of nodeToString, each with its end */
} RowFilter;

static const char *
text_of(const RowFilter *filter)
{
	return (const char *) (filter->places + filter->n_places);
}

static const char *
expression_of(const RowFilter *filter)
{
	return text_of(filter) + strlen(text_of(filter)) + 1;
}

/* ---- what may be in a filter --------------------------------------------------------------------------------------- */

static void
bad_filter(const char *condition, const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid filter: %s", condition),
			 errdetail("%s", detail),
			 errhint("A filter is a boolean expression over the columns of the relation, with immutable functions and operators of pg_catalog.")));
}

static bool
foreign_function(Oid function, void *context)
{
	return function >= FirstNormalObjectId;
}

/* The operator of a node, or 0. */
static Oid
operator_of(Node *node)
{
	if (IsA(node, OpExpr) || IsA(node, DistinctExpr) || IsA(node, NullIfExpr))
		return ((OpExpr *) node)->opno;
	return IsA(node, ScalarArrayOpExpr) ? ((ScalarArrayOpExpr *) node)->opno : InvalidOid;
}

/* Raise unless the expression is made of the row and of what nobody but the server defines. */
static bool
check_parts(Node *node, const char *shown)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubLink))
		bad_filter(shown, "It has a subquery.");
	if (IsA(node, Var) && ((Var *) node)->varattno <= 0)
		bad_filter(shown, "It uses a system column or the whole row.");
	/* a domain's constraints may call anything */
	if (check_functions_in_node(node, foreign_function, NULL) || IsA(node, CoerceToDomain) || operator_of(node) >= FirstNormalObjectId)
		bad_filter(shown, "It calls something that is not part of PostgreSQL.");
	return expression_tree_walker(node, check_parts, (void *) shown);
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
	ErrorContextCallback callback = {.previous = error_context_stack,.callback = add_context,.arg = &parsing};
	List	   *statements;

	error_context_stack = &callback;
	statements = posterior_raw_parser(sql);
	error_context_stack = callback.previous;
	return statements;
}

/* The raw expression of "SELECT 1 FROM `source`", and its relation. */
static Node *
parse(const char *source, const char *shown, RangeVar **relation)
{
	List	   *statements = posterior_parse(psprintf("SELECT 1 FROM %s", source), "filter", shown);
	SelectStmt *select;

	if (list_length(statements) != 1)
		bad_filter(shown, "It is more than one statement.");
	select = (SelectStmt *) linitial_node(RawStmt, statements)->stmt;
	if (!IsA(select, SelectStmt) || list_length(select->fromClause) != 1 || !IsA(linitial(select->fromClause), RangeVar)
		|| select->whereClause == NULL || select->groupClause != NIL || select->havingClause != NULL || select->windowClause != NIL
		|| select->sortClause != NIL || select->limitCount != NULL || select->limitOffset != NULL || select->lockingClause != NIL
		|| select->withClause != NULL || select->op != SETOP_NONE)
		bad_filter(shown, "It is more than a condition.");
	*relation = linitial(select->fromClause);
	return select->whereClause;
}

static Node *
analyse(Oid relation, Node *raw, const char *shown)
{
	ParseState *state = make_parsestate(NULL);
	Relation	rel = table_open(relation, AccessShareLock);
	ParseNamespaceItem *item = addRangeTableEntryForRelation(state, rel, AccessShareLock, NULL, false, true);
	Node	   *condition;

	addNSItemToQuery(state, item, false, true, true);
	condition = transformWhereClause(state, raw, EXPR_KIND_WHERE, "filter");
	assign_expr_collations(state, condition);
	check_parts(condition, shown);
	if (contain_mutable_functions(condition))
		bad_filter(shown, "Its value depends on more than the row.");
	table_close(rel, NoLock);
	free_parsestate(state);
	return condition;
}

/* ---- text ---------------------------------------------------------------------------------------------------------- */

static void
set_until(const char *name, const char *value)
{
	(void) set_config_option(name, value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

/* From here to AtEOXact_GUC(true, level), constants are printed so that every session reads them alike. */
static int
begin_printing(void)
{
	int			level = NewGUCNestLevel();

	set_until("datestyle", "ISO, MDY");
	set_until("intervalstyle", "postgres");
	set_until("extra_float_digits", "1");
	return level;
}

static char *
print(Oid relation, Node *condition)
{
	int			level = begin_printing();
	char	   *text = deparse_expression(condition, deparse_context_for(get_rel_name(relation), relation), false, false);

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
			p->places = p->places == NULL ? palloc(p->room * sizeof(ColumnPlace)) : repalloc(p->places, p->room * sizeof(ColumnPlace));
		}
		p->places[p->n].offset = ref->location;
		p->places[p->n].length = strlen(quote_identifier(name));
		p->places[p->n++].column = get_attnum(p->relation, name);
	}
	return raw_expression_tree_walker(node, note_column, p);
}

static int
compare_places(const void *a, const void *b)
{
	return ((const ColumnPlace *) a)->offset - ((const ColumnPlace *) b)->offset;
}

/* ---- values -------------------------------------------------------------------------------------------------------- */

static RowFilter *
make_filter(Oid relation, Node *condition)
{
	static const char before[] = "r WHERE ";
	int			level = NewGUCNestLevel();
	char	   *text,
			   *expression = nodeToString(condition),
			   *end;
	RangeVar   *ignored;
	Places		p = {.relation = relation};
	RowFilter  *filter;
	Size		size;

	set_until("search_path", "pg_catalog");
	text = print(relation, condition);
	AtEOXact_GUC(true, level);
	note_column(parse(psprintf("%s%s", before, text), text, &ignored), &p);
	if (p.n > 0)
		qsort(p.places, p.n, sizeof(ColumnPlace), compare_places);
	size = offsetof(RowFilter, places) + p.n * sizeof(ColumnPlace) + strlen(text) + strlen(expression) + 2;
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
	end = (char *) text_of(filter);
	strcpy(end, text);
	strcpy(end + strlen(text) + 1, expression);
	return filter;
}

/* The expression from the text, with the names that the columns have now. */
static Node *
read_text(const RowFilter *filter)
{
	const char *text = text_of(filter);
	StringInfoData now;
	int			done = 0,
				level;
	RangeVar   *ignored;
	Node	   *condition;

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
	level = NewGUCNestLevel();
	set_until("search_path", "pg_catalog");
	condition = analyse(filter->relation, parse(psprintf("r WHERE %s", now.data), now.data, &ignored), now.data);
	AtEOXact_GUC(true, level);
	return condition;
}

Datum
posterior_make_row_filter(Oid relation, const char *condition)
{
	RangeVar   *ignored;

	return PointerGetDatum(make_filter(relation, analyse(relation, parse(psprintf("r WHERE %s", condition), condition, &ignored), condition)));
}

char *
posterior_row_filter_text(Datum datum)
{
	RowFilter  *filter = (RowFilter *) PG_DETOAST_DATUM(datum);

	if (get_rel_name(filter->relation) == NULL)
		return NULL;
	for (int i = 0; i < filter->n_places; i++)
		if (posterior_column_name(filter->relation, filter->places[i].column) == NULL)
			return NULL;
	return print(filter->relation, filter->major == POSTERIOR_SERVER_MAJOR ? stringToNode(expression_of(filter)) : read_text(filter));
}

PG_FUNCTION_INFO_V1(posterior_row_filter_in);
Datum
posterior_row_filter_in(PG_FUNCTION_ARGS)
{
	char	   *text = PG_GETARG_CSTRING(0);
	RangeVar   *relation;
	Node	   *raw;
	Oid			oid;

	/* a dumped filter whose relation or column is gone */
	if (strcmp(text, "-") == 0)
	{
		RowFilter  *filter = palloc0(offsetof(RowFilter, places) + 2);

		SET_VARSIZE(filter, offsetof(RowFilter, places) + 2);
		PG_RETURN_POINTER(filter);
	}
	raw = parse(text, text, &relation);
	oid = RangeVarGetRelid(relation, AccessShareLock, false);
	PG_RETURN_POINTER(make_filter(oid, analyse(oid, raw, text)));
}

PG_FUNCTION_INFO_V1(posterior_row_filter_out);
Datum
posterior_row_filter_out(PG_FUNCTION_ARGS)
{
	RowFilter  *filter = (RowFilter *) PG_DETOAST_DATUM(PG_GETARG_DATUM(0));
	char	   *condition = posterior_row_filter_text(PointerGetDatum(filter));

	if (condition == NULL)
		PG_RETURN_CSTRING(pstrdup("-"));
	PG_RETURN_CSTRING(psprintf("%s WHERE %s", quote_qualified_identifier(get_namespace_name(get_rel_namespace(filter->relation)), get_rel_name(filter->relation)),
							   condition));
}

/* The condition alone, for views; NULL when it is gone. */
PG_FUNCTION_INFO_V1(posterior_row_filter_condition);
Datum
posterior_row_filter_condition(PG_FUNCTION_ARGS)
{
	char	   *condition = posterior_row_filter_text(PG_GETARG_DATUM(0));

	if (condition == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(condition));
}
