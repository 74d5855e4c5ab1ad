/*
 * row_filter.c: type posterior.row_filter: a condition kept as an analysed expression, so that renames are followed, and printed as
 * "schema.relation WHERE (condition)", so that dumps restore.
 *
 * A filter is evaluated with the rights of whoever predicts, so it may contain nothing that its author could have defined: immutable functions and
 * operators of pg_catalog only.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "row_filter.h"

#include "access/table.h"
#include "access/transam.h"
#include "catalog/namespace.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parse_clause.h"
#include "parser/parse_collate.h"
#include "parser/parse_relation.h"
#include "parser/parser.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"

typedef struct RowFilter
{
	int32		vl_len_;
	Oid			relation;
	char		node[FLEXIBLE_ARRAY_MEMBER];	/* nodeToString */
} RowFilter;

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

static bool
find_foreign(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (check_functions_in_node(node, foreign_function, context) || IsA(node, SubLink))
		return true;
	return expression_tree_walker(node, find_foreign, context);
}

/* The raw expression of "SELECT 1 FROM `source`", and its relation. */
static Node *
parse(const char *source, const char *shown, RangeVar **relation)
{
	List	   *statements = posterior_raw_parser(psprintf("SELECT 1 FROM %s", source));
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

static RowFilter *
analyse(Oid relation, Node *raw, const char *shown)
{
	ParseState *state = make_parsestate(NULL);
	Relation	rel = table_open(relation, AccessShareLock);
	ParseNamespaceItem *item = addRangeTableEntryForRelation(state, rel, AccessShareLock, NULL, false, true);
	Node	   *condition;
	RowFilter  *filter;
	char	   *node;
	Size		size;

	addNSItemToQuery(state, item, false, true, true);
	condition = transformWhereClause(state, raw, EXPR_KIND_CHECK_CONSTRAINT, "filter");
	assign_expr_collations(state, condition);
	if (find_foreign(condition, NULL))
		bad_filter(shown, "It calls something that is not part of PostgreSQL.");
	if (contain_mutable_functions(condition))
		bad_filter(shown, "Its value depends on more than the row.");
	table_close(rel, NoLock);
	node = nodeToString(condition);
	size = offsetof(RowFilter, node) + strlen(node) + 1;
	filter = palloc0(size);
	SET_VARSIZE(filter, size);
	filter->relation = relation;
	strcpy(filter->node, node);
	free_parsestate(state);
	return filter;
}

Datum
posterior_make_row_filter(Oid relation, const char *condition)
{
	RangeVar   *ignored;

	return PointerGetDatum(analyse(relation, parse(psprintf("r WHERE (%s)", condition), condition, &ignored), condition));
}

char *
posterior_row_filter_text(Datum datum)
{
	RowFilter  *filter = (RowFilter *) PG_DETOAST_DATUM(datum);
	char	   *name = get_rel_name(filter->relation);

	if (name == NULL)
		return pstrdup("false");
	return deparse_expression(stringToNode(filter->node), deparse_context_for(name, filter->relation), false, false);
}

PG_FUNCTION_INFO_V1(posterior_row_filter_in);
Datum
posterior_row_filter_in(PG_FUNCTION_ARGS)
{
	char	   *text = PG_GETARG_CSTRING(0);
	RangeVar   *relation;
	Node	   *raw = parse(text, text, &relation);

	PG_RETURN_POINTER(analyse(RangeVarGetRelid(relation, AccessShareLock, false), raw, text));
}

PG_FUNCTION_INFO_V1(posterior_row_filter_out);
Datum
posterior_row_filter_out(PG_FUNCTION_ARGS)
{
	RowFilter  *filter = (RowFilter *) PG_DETOAST_DATUM(PG_GETARG_DATUM(0));
	char	   *name = get_rel_name(filter->relation);

	if (name == NULL)
		PG_RETURN_CSTRING(pstrdup("-"));
	PG_RETURN_CSTRING(psprintf("%s WHERE (%s)", quote_qualified_identifier(get_namespace_name(get_rel_namespace(filter->relation)), name),
							   posterior_row_filter_text(PG_GETARG_DATUM(0))));
}

/* The condition alone, for views. */
PG_FUNCTION_INFO_V1(posterior_row_filter_condition);
Datum
posterior_row_filter_condition(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(posterior_row_filter_text(PG_GETARG_DATUM(0))));
}
