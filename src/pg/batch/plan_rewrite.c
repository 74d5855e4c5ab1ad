/*
 * plan_rewrite.c: finished plans whose calls of posterior.predict are answered in blocks.
 *
 * The planner does not know that some calls are cheaper together, and none of its hooks sees a
 * target list before it is attached to a path. So the plan is changed when it is finished:
 *
 *   scan or join, with calls in its target list or filter
 *     => batch scan
 *          -> scan or join that returns the columns that the expressions need
 *
 *   nested loop over (outer plan, function scan of a call), from LATERAL
 *     => batch scan
 *          -> outer plan
 *
 *   aggregate, with calls in arguments of aggregate functions
 *     => aggregate
 *          -> batch scan
 *               -> plan below
 *
 * A call is taken out only where the row has its value computed in any case: not inside CASE,
 * COALESCE, AND, OR, or an aggregate with a FILTER. Left alone are plans of cursors, which may
 * fetch backward or update the current row, statements that lock or change the rows that they read,
 * because they look at rows again when others have changed them, and nodes whose expressions are
 * volatile, which could change settings between two rows.
 *
 * Nodes of a finished plan refer to columns by OUTER_VAR and INNER_VAR (the target lists of the
 * plans below) or by the scanned relation; the batch scan's own target list refers by INDEX_VAR to
 * its custom_scan_tlist.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/batch/batch.h"

#include "access/parallel.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/planner.h"

bool		posterior_batch_calls = true;

/*
 * Nodes have numbers of their own; those of the planner begin with 0 and are as many as its nodes.
 */
#define LAST_PLANNED_NODE_ID 0x40000000

static planner_hook_type previous_planner = NULL;

/* Expressions of one node while calls are taken out of them. */
typedef struct Lift
{
	List	   *columns;		/* TargetEntry: target list of the plan below */
	List	   *calls;			/* FuncExpr, whose variables are of OUTER_VAR */
	bool		closed;			/* no calls but these are taken out */
	bool		conditional;	/* inside of what is computed for some rows only */
} Lift;

/* ---- calls in expressions -------------------------------------------------------------------- */

static bool
is_liftable_call(Node *node)
{
	PosteriorPredictForm form;

	return IsA(node, FuncExpr) && !((FuncExpr *) node)->funcvariadic
		&& posterior_is_predict(((FuncExpr *) node)->funcid, &form);
}

/* Whether a node takes an element of an array, or some, by constants. */
static bool
has_constant_subscripts(Node *node)
{
	SubscriptingRef *ref = (SubscriptingRef *) node;
	ListCell   *cell;

	if (ref->refassgnexpr != NULL)
		return false;
	foreach(cell, list_concat_copy(ref->refupperindexpr, ref->reflowerindexpr))
		if (lfirst(cell) != NULL && !IsA(lfirst(cell), Const))
			return false;
	return true;
}

/* Whether some part of this node is computed for some rows only. */
static bool
is_conditional(Node *node)
{
	if (IsA(node, SubscriptingRef))
		return !has_constant_subscripts(node);
	return IsA(node, CaseExpr) || IsA(node, CoalesceExpr) || IsA(node, BoolExpr)
		|| IsA(node, RowCompareExpr) || IsA(node, SubPlan) || IsA(node, AlternativeSubPlan);
}

/* Whether an expression has a call that can be taken out. */
static bool
has_call(Node *node, void *context)
{
	if (node == NULL || is_conditional(node))
		return false;
	if (is_liftable_call(node))
		return true;
	return expression_tree_walker(node, has_call, context);
}

static Node *
column_at(int varno, AttrNumber place, Node *like)
{
	return (Node *) makeVar(varno, place, exprType(like), exprTypmod(like), exprCollation(like), 0);
}

/* The place of an expression in the target list of the plan below, added if need be. */
static AttrNumber
lift_column(Lift *lift, Expr *column)
{
	ListCell   *cell;
	AttrNumber	place = 0;

	foreach(cell, lift->columns)
	{
		place++;
		if (equal(((TargetEntry *) lfirst(cell))->expr, column))
			return place;
	}
	lift->columns = lappend(lift->columns,
							makeTargetEntry(copyObject(column), ++place, NULL, false));
	return place;
}

/* A call with variables of OUTER_VAR. */
static Node *
lift_argument(Node *node, void *context)
{
	if (node == NULL)
		return NULL;
	if (IsA(node, Var))
		return column_at(OUTER_VAR, lift_column(context, (Expr *) node), node);
	return expression_tree_mutator(node, lift_argument, context);
}

/* The place of a call among those of the node, of which equal ones are one; -1 if it is none. */
static int
find_call(List *calls, Node *call)
{
	ListCell   *cell;
	int			place = 0;

	foreach(cell, calls)
	{
		if (equal(lfirst(cell), call))
			return place;
		place++;
	}
	return -1;
}

/* The place of a call among those of the node, added if need be. */
static int
lift_call(List **calls, Node *call)
{
	int			place = find_call(*calls, call);

	if (place >= 0)
		return place;
	*calls = lappend(*calls, call);
	return list_length(*calls) - 1;
}

/*
 * An expression for the batch scan, with columns and calls by INDEX_VAR. Calls come behind the
 * columns, whose number is not known yet: call i has the place -1 - i until rewrite_settle().
 */
static Node *
lift_expression(Node *node, void *context)
{
	Lift	   *lift = context;
	bool		conditional;
	Node	   *result;

	if (node == NULL)
		return NULL;
	if (IsA(node, Var))
		return column_at(INDEX_VAR, lift_column(lift, (Expr *) node), node);
	if (!lift->conditional && is_liftable_call(node))
	{
		Node	   *call = lift_argument(node, lift);

		if (!lift->closed || find_call(lift->calls, call) >= 0)
			return column_at(INDEX_VAR, -1 - lift_call(&lift->calls, call), node);
	}
	conditional = lift->conditional;
	lift->conditional |= is_conditional(node);
	result = expression_tree_mutator(node, lift_expression, context);
	lift->conditional = conditional;
	return result;
}

/* Give the calls of lifted expressions their places. */
static Node *
rewrite_settle(Node *node, void *context)
{
	const int  *n_columns = context;

	if (node == NULL)
		return NULL;
	if (IsA(node, Var) && ((Var *) node)->varattno < 0)
		return column_at(INDEX_VAR, *n_columns - ((Var *) node)->varattno, node);
	return expression_tree_mutator(node, rewrite_settle, context);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* Let a batch scan take the place of a node: what the planner sets of every node. */
static Plan *
take_place(CustomScan *scan, const Plan *of, int *last_node_id)
{
	Plan	   *plan = &scan->scan.plan;

	plan->startup_cost = of->startup_cost;
	plan->total_cost = of->total_cost;
	plan->plan_rows = of->plan_rows;
	plan->plan_width = of->plan_width;
	plan->parallel_safe = of->parallel_safe;
	plan->extParam = bms_copy(of->extParam);
	plan->allParam = bms_copy(of->allParam);
	plan->plan_node_id = ++*last_node_id;
	return plan;
}

/* Whether a node evaluates its target list once for each row, and may return another one. */
static bool
projects_rows(const Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_SeqScan:
		case T_SampleScan:
		case T_IndexScan:
		case T_IndexOnlyScan:
		case T_BitmapHeapScan:
		case T_TidScan:
		case T_TidRangeScan:
		case T_SubqueryScan:
		case T_FunctionScan:
		case T_ValuesScan:
		case T_CteScan:
		case T_NamedTuplestoreScan:
		case T_ForeignScan:
		case T_NestLoop:
		case T_MergeJoin:
		case T_HashJoin:
		case T_Gather:
		case T_GatherMerge:
			return true;
		case T_Result:
			return outerPlan(plan) != NULL;
		default:
			return false;
	}
}

/*
 * A scan or join whose expressions have calls: those go to a batch scan above it.
 *
 * The conditions of a filter are in an order, by which a policy of row-level security keeps rows
 * from functions that could tell of them. So from the first condition with a call on, all go to the
 * batch scan, and nothing but that condition's calls is computed before the filter.
 */
static Plan *
rewrite_projection(Plan *plan, int *last_node_id)
{
	Lift		lift = {NIL, NIL, false, false};
	List	   *targets = NIL,
			   *filter = NIL,
			   *kept = NIL;
	ListCell   *cell;
	CustomScan *scan;
	Plan	   *above;
	int			n_columns;

	if (!projects_rows(plan) || !(has_call((Node *) plan->targetlist, NULL)
								  || has_call((Node *) plan->qual, NULL))
		|| contain_volatile_functions((Node *) plan->targetlist)
		|| contain_volatile_functions((Node *) plan->qual))
		return plan;
	foreach(cell, plan->qual)
	{
		if (filter != NIL || has_call(lfirst(cell), NULL))
		{
			filter = lappend(filter, lift_expression(lfirst(cell), &lift));
			lift.closed = true;
		}
		else
			kept = lappend(kept, lfirst(cell));
	}
	foreach(cell, plan->targetlist)
	{
		TargetEntry *lifted = flatCopyTargetEntry(lfirst(cell));

		lifted->expr = (Expr *) lift_expression((Node *) lifted->expr, &lift);
		targets = lappend(targets, lifted);
	}
	plan->targetlist = lift.columns;
	plan->qual = kept;
	/* an Append asks only its own children for rows ahead */
	plan->async_capable = false;
	n_columns = list_length(lift.columns);
	scan = posterior_batch_scan_make(plan, lift.calls);
	above = take_place(scan, plan, last_node_id);
	above->targetlist = (List *) rewrite_settle((Node *) targets, &n_columns);
	above->qual = (List *) rewrite_settle((Node *) filter, &n_columns);
	return above;
}

/* What expressions of a nested loop and of the function scan below it become in a batch scan. */
typedef struct LateralColumns
{
	const NestLoop *join;
	List	   *inner;			/* target list of the plan that returns the call's value */
	Index		relation;		/* of the function scan */
	int			varno;			/* of the outer plan's columns in the result */
	int			n_columns;		/* of the outer plan; the call's value comes behind them */
	bool		failed;			/* some expression has no counterpart */
} LateralColumns;

static Node *
lateral_expression(Node *node, void *context)
{
	LateralColumns *columns = context;

	if (node == NULL)
		return NULL;
	if (IsA(node, Var))
	{
		Var		   *var = (Var *) node;

		if (var->varno == OUTER_VAR)
			return column_at(columns->varno, var->varattno, node);
		if (var->varno == INNER_VAR && var->varattno >= 1
			&& var->varattno <= list_length(columns->inner))
			return lateral_expression((Node *) ((TargetEntry *) list_nth(columns->inner,
																		 var->varattno - 1))->expr,
									  columns);
		if (var->varno == columns->relation && var->varattno == 1)
			return column_at(columns->varno, columns->n_columns + 1, node);
		columns->failed = true;
		return copyObject(node);
	}
	if (IsA(node, Param) && ((Param *) node)->paramkind == PARAM_EXEC)
	{
		ListCell   *cell;

		foreach(cell, columns->join->nestParams)
		{
			NestLoopParam *parameter = lfirst(cell);

			if (parameter->paramno == ((Param *) node)->paramid)
				return lateral_expression((Node *) parameter->paramval, columns);
		}
	}
	return expression_tree_mutator(node, lateral_expression, context);
}

/* The plan that a Memoize node keeps results of, or the plan itself. */
static Plan *
below_memoize(Plan *plan)
{
	return IsA(plan, Memoize) ? outerPlan(plan) : plan;
}

/* The expressions that a Memoize node passes on; false if it computes something. */
static bool
memoized_columns(const Plan *memoize, const Plan *function, List **columns)
{
	ListCell   *cell;

	*columns = NIL;
	foreach(cell, memoize->targetlist)
	{
		Var		   *column = (Var *) ((TargetEntry *) lfirst(cell))->expr;

		if (!IsA(column, Var) || column->varno != OUTER_VAR)
			return false;
		*columns = lappend(*columns, list_nth(function->targetlist, column->varattno - 1));
	}
	return true;
}

/* A nested loop over LATERAL posterior.predict(...): the outer plan with a batch scan above it. */
static Plan *
rewrite_lateral(Plan *plan, int *last_node_id)
{
	NestLoop   *join = (NestLoop *) plan;
	Plan	   *inner = innerPlan(plan) ? below_memoize(innerPlan(plan)) : NULL;
	FunctionScan *function = (FunctionScan *) inner;
	RangeTblFunction *called;
	LateralColumns columns = {.join = join,.varno = OUTER_VAR};
	List	   *targets,
			   *quals;
	Node	   *call;
	CustomScan *scan;
	Plan	   *above;

	if (!IsA(plan, NestLoop) || !IsA(inner, FunctionScan) || function->funcordinality
		|| list_length(function->functions) != 1 || inner->initPlan != NIL)
		return plan;
	called = linitial(function->functions);
	if (!is_liftable_call(called->funcexpr)
		|| !(join->join.jointype == JOIN_INNER
			 || (join->join.jointype == JOIN_LEFT && join->join.joinqual == NIL
				 && inner->qual == NIL)))
		return plan;
	columns.inner = inner->targetlist;
	columns.relation = function->scan.scanrelid;
	columns.n_columns = list_length(outerPlan(plan)->targetlist);
	call = lateral_expression(called->funcexpr, &columns);
	columns.varno = INDEX_VAR;
	if (innerPlan(plan) != inner && !memoized_columns(innerPlan(plan), inner, &columns.inner))
		return plan;
	targets = (List *) lateral_expression((Node *) plan->targetlist, &columns);
	quals = list_concat_copy(inner->qual, list_concat_copy(join->join.joinqual, plan->qual));
	quals = (List *) lateral_expression((Node *) quals, &columns);
	if (columns.failed || contain_volatile_functions((Node *) targets)
		|| contain_volatile_functions((Node *) quals))
		return plan;
	scan = posterior_batch_scan_make(outerPlan(plan), list_make1(call));
	above = take_place(scan, plan, last_node_id);
	above->targetlist = targets;
	above->qual = quals;
	above->initPlan = plan->initPlan;
	return above;
}

/* ---- aggregates ------------------------------------------------------------------------------ */

/* Calls in arguments of aggregate functions while they are taken out. */
typedef struct AggregateLift
{
	int			n_columns;		/* of the plan below */
	List	   *calls;
	bool		inside;			/* of an aggregate function's arguments */
	bool		conditional;
} AggregateLift;

static Node *
aggregate_expression(Node *node, void *context)
{
	AggregateLift *lift = context;
	bool		conditional = lift->conditional;
	Node	   *result;

	if (node == NULL)
		return NULL;
	if (IsA(node, Aggref))
	{
		Aggref	   *aggregate = copyObject((Aggref *) node);

		if (aggregate->aggfilter == NULL)
		{
			lift->inside = true;
			aggregate->args = (List *) expression_tree_mutator((Node *) aggregate->args,
															   aggregate_expression, lift);
			lift->inside = false;
		}
		return (Node *) aggregate;
	}
	if (lift->inside && !lift->conditional && is_liftable_call(node))
		return column_at(OUTER_VAR,
						 lift->n_columns + 1 + lift_call(&lift->calls, copyObject(node)), node);
	lift->conditional |= is_conditional(node);
	result = expression_tree_mutator(node, aggregate_expression, context);
	lift->conditional = conditional;
	return result;
}

/* An aggregate over calls: a batch scan below it computes them. */
static Plan *
rewrite_aggregate(Plan *plan, int *last_node_id)
{
	Plan	   *below = outerPlan(plan);
	AggregateLift lift = {0};
	List	   *targets,
			   *quals;
	CustomScan *scan;
	Plan	   *between;
	ListCell   *cell;
	AttrNumber	n = 0;

	if (!IsA(plan, Agg) || ((Agg *) plan)->chain != NIL || ((Agg *) plan)->groupingSets != NIL
		|| contain_volatile_functions((Node *) plan->targetlist))
		return plan;
	lift.n_columns = list_length(below->targetlist);
	targets = (List *) aggregate_expression((Node *) plan->targetlist, &lift);
	quals = (List *) aggregate_expression((Node *) plan->qual, &lift);
	if (lift.calls == NIL)
		return plan;
	scan = posterior_batch_scan_make(below, lift.calls);
	between = take_place(scan, below, last_node_id);
	foreach(cell, scan->custom_scan_tlist)
	{
		TargetEntry *entry = flatCopyTargetEntry(lfirst(cell));

		entry->expr = (Expr *) column_at(INDEX_VAR, ++n, (Node *) entry->expr);
		if (n <= lift.n_columns)
			entry->ressortgroupref =
				((TargetEntry *) list_nth(below->targetlist, n - 1))->ressortgroupref;
		between->targetlist = lappend(between->targetlist, entry);
	}
	outerPlan(plan) = between;
	plan->targetlist = targets;
	plan->qual = quals;
	return plan;
}

/* ---- trees ----------------------------------------------------------------------------------- */

static Plan *rewrite_plan(Plan *plan, bool marked, int *last_node_id);

static void
rewrite_list(List *plans, int *last_node_id)
{
	ListCell   *cell;

	foreach(cell, plans)
		lfirst(cell) = rewrite_plan(lfirst(cell), false, last_node_id);
}

/* A plan with all nodes below it; marked: the node above goes back to rows that it has marked. */
static Plan *
rewrite_plan(Plan *plan, bool marked, int *last_node_id)
{
	if (plan == NULL)
		return NULL;
	check_stack_depth();
	outerPlan(plan) = rewrite_plan(outerPlan(plan), false, last_node_id);
	innerPlan(plan) = rewrite_plan(innerPlan(plan), IsA(plan, MergeJoin), last_node_id);
	switch (nodeTag(plan))
	{
		case T_Append:
			rewrite_list(((Append *) plan)->appendplans, last_node_id);
			break;
		case T_MergeAppend:
			rewrite_list(((MergeAppend *) plan)->mergeplans, last_node_id);
			break;
		case T_SubqueryScan:
			((SubqueryScan *) plan)->subplan = rewrite_plan(((SubqueryScan *) plan)->subplan, false,
															last_node_id);
			break;
		case T_CustomScan:
			rewrite_list(((CustomScan *) plan)->custom_plans, last_node_id);
			break;
		default:
			break;
	}
	if (marked)
		return plan;
	plan = rewrite_lateral(plan, last_node_id);
	plan = rewrite_aggregate(plan, last_node_id);
	return rewrite_projection(plan, last_node_id);
}

/* Whether rows of the statement may be looked at again, or backward. */
static bool
is_plain(const PlannedStmt *statement, int cursor_options)
{
	return (statement->commandType == CMD_SELECT || statement->commandType == CMD_INSERT)
		&& statement->rowMarks == NIL && !statement->hasModifyingCTE
		&& (cursor_options & (CURSOR_OPT_SCROLL | CURSOR_OPT_FAST_PLAN)) == 0;
}

static PlannedStmt *
plan_statement(Query *query, const char *text, int cursor_options, ParamListInfo parameters)
{
	PlannedStmt *statement = previous_planner
		? previous_planner(query, text, cursor_options, parameters)
		: standard_planner(query, text, cursor_options, parameters);
	int			last_node_id = LAST_PLANNED_NODE_ID;

	if (posterior_batch_calls && is_plain(statement, cursor_options))
	{
		statement->planTree = rewrite_plan(statement->planTree, false, &last_node_id);
		rewrite_list(statement->subplans, &last_node_id);
	}
	return statement;
}

void
posterior_plan_rewrite_register(void)
{
	previous_planner = planner_hook;
	planner_hook = plan_statement;
}
