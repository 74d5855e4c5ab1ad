/*
 * filter_text.c: the text of a row filter, parsed, analysed and printed.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/types/filter_text.h"

#include "pg/types/filter_rules.h"

#include "access/table.h"
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

/* ---- parsing --------------------------------------------------------------------------------- */

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
Node *
posterior_filter_parse(const char *source, const char *shown, RangeVar **relation)
{
	List	   *statements = posterior_parse(psprintf("SELECT 1 FROM %s", source), "filter", shown);
	SelectStmt *select;

	if (list_length(statements) != 1)
		posterior_filter_refuse(shown, "It is more than one statement.");
	select = (SelectStmt *) linitial_node(RawStmt, statements)->stmt;
	if (!IsA(select, SelectStmt) || list_length(select->fromClause) != 1
		|| !IsA(linitial(select->fromClause), RangeVar) || select->whereClause == NULL
		|| select->groupClause != NIL || select->havingClause != NULL || select->windowClause != NIL
		|| select->sortClause != NIL || select->limitCount != NULL || select->limitOffset != NULL
		|| select->lockingClause != NIL || select->withClause != NULL || select->op != SETOP_NONE)
		posterior_filter_refuse(shown, "It is more than a condition.");
	*relation = linitial(select->fromClause);
	return select->whereClause;
}

Node *
posterior_filter_analyse(Oid relation, Node *raw, const char *shown)
{
	ParseState *state = make_parsestate(NULL);
	Relation	rel = table_open(relation, AccessShareLock);
	ParseNamespaceItem *item =
		addRangeTableEntryForRelation(state, rel, AccessShareLock, NULL, false, true);
	Node	   *condition;

	posterior_filter_check_types(raw, (void *) shown);
	addNSItemToQuery(state, item, false, true, true);
	condition = transformWhereClause(state, raw, EXPR_KIND_WHERE, "filter");
	assign_expr_collations(state, condition);
	posterior_filter_check_parts(condition, (void *) shown);
	if (contain_mutable_functions(condition))
		posterior_filter_refuse(shown, "Its value depends on more than the row.");
	table_close(rel, NoLock);
	free_parsestate(state);
	return condition;
}

/* ---- printing -------------------------------------------------------------------------------- */

void
posterior_filter_set(const char *name, const char *value)
{
	(void) set_config_option(name, value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
							 false);
}

/*
 * From here to AtEOXact_GUC(true, level), constants are printed so that every session reads them
 * alike, and read as they are printed.
 */
int
posterior_filter_printing(void)
{
	int			level = NewGUCNestLevel();

	posterior_filter_set("datestyle", "ISO, MDY");
	posterior_filter_set("intervalstyle", "postgres");
	posterior_filter_set("extra_float_digits", "1");
	posterior_filter_set("array_nulls", "on");
	posterior_filter_set("standard_conforming_strings", "on");
	return level;
}

char *
posterior_filter_print(Oid relation, Node *condition)
{
	int			level = posterior_filter_printing();
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
	PosteriorColumnPlace *places;
} Places;

static bool
note_column(Node *node, void *context)
{
	Places	   *p = context;

	if (node == NULL)
		return false;
	if (IsA(node, ColumnRef))
	{
		ColumnRef  *ref = (ColumnRef *) node;
		char	   *name = strVal(linitial(ref->fields));

		if (p->n == p->room)
		{
			p->room = Max(16, 2 * p->room);
			p->places = p->places == NULL ? palloc(p->room * sizeof(PosteriorColumnPlace))
										  : repalloc(p->places,
													 p->room * sizeof(PosteriorColumnPlace));
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
	return ((const PosteriorColumnPlace *) a)->offset - ((const PosteriorColumnPlace *) b)->offset;
}

PosteriorColumnPlace *
posterior_filter_places(Oid relation, const char *condition, int *n)
{
	static const char before[] = "SELECT 1 FROM r WHERE ";
	RangeVar   *ignored;
	Places		p = {.relation = relation};

	note_column(posterior_filter_parse(psprintf("r WHERE %s", condition), condition, &ignored), &p);
	if (p.n > 0)
		qsort(p.places, p.n, sizeof(PosteriorColumnPlace), place_compare);
	for (int i = 0; i < p.n; i++)
		p.places[i].offset -= strlen(before);
	*n = p.n;
	return p.places;
}
