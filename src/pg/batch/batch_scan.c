/*
 * batch_scan.c: the plan node that answers calls of posterior.predict a block of rows at a time.
 *
 * A block begins with one row and doubles, so that a LIMIT above computes at most twice what it
 * needs, up to a number that is large enough for the kernels, or to a size in memory. A block of a
 * single row goes through the function itself, which can append new rows and answer in one pass.
 *
 * Rows of the plan below are copied, since they do not outlast its next call. Copies and answers
 * belong to one memory context, which is reset for the next block.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/batch/batch.h"

#include "pg/base/bridge.h"
#include "pg/device/device_client.h"
#include "pg/sql/predict_batch.h"

#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#define BLOCK 256				/* most rows asked about at once, by a session that may */
#define DEVICE_BLOCK 16384		/* ask a device: */

/* One call of posterior.predict. */
typedef struct BatchCall
{
	List	   *arguments;		/* ExprState of each */
	FmgrInfo	function;
	PosteriorBatch *batch;
	Datum	   *answers;		/* [block rows] of the present block */
	bool	   *isnull;
	FunctionCallInfo fcinfo;
} BatchCall;

typedef struct BatchScanState
{
	CustomScanState css;
	int			n_calls;
	BatchCall  *calls;
	MemoryContext block;		/* rows and answers of the present block */
	MinimalTuple *rows;			/* [n] in the block */
	int			n,
				next,			/* first row that is not returned yet */
				size;			/* rows of the next block, at most */
	bool		ended;			/* the plan below has no more rows */
	TupleTableSlot *row;		/* of the plan below, from a copy */
} BatchScanState;

/* ---- a block --------------------------------------------------------------------------------- */

/* Most rows of a block. */
static int
block_limit(void)
{
	return posterior_device == POSTERIOR_DEVICE_CPU ? BLOCK : DEVICE_BLOCK;
}

/* Evaluate the arguments of a call for the row in the expression context. */
static void
call_arguments(BatchCall *call, ExprContext *econtext)
{
	ListCell   *cell;
	int			i = 0;

	foreach(cell, call->arguments)
	{
		NullableDatum *argument = &call->fcinfo->args[i++];

		argument->value = ExecEvalExpr((ExprState *) lfirst(cell), econtext, &argument->isnull);
	}
}

/* Call the function for a row that is alone in its block. */
static void
call_alone(BatchCall *call, ExprContext *econtext)
{
	bool		strict = call->function.fn_strict;

	call_arguments(call, econtext);
	call->fcinfo->isnull = false;
	call->answers[0] = (Datum) 0;
	call->isnull[0] = true;
	for (int i = 0; strict && i < call->fcinfo->nargs; i++)
		if (call->fcinfo->args[i].isnull)
			return;
	posterior_batch_begin_alone(call->batch);
	call->answers[0] = FunctionCallInvoke(call->fcinfo);
	call->isnull[0] = call->fcinfo->isnull;
	posterior_batch_end_alone(call->batch);
}

/* Read rows of the plan below and answer the calls. */
static void
block_fill(BatchScanState *state)
{
	PlanState  *below = outerPlanState(state);
	ExprContext *econtext = state->css.ss.ps.ps_ExprContext;
	MemoryContext before;
	int			size = Min(state->size, block_limit());
	Size		memory = 0;

	for (int c = 0; c < state->n_calls; c++)
		posterior_batch_clear(state->calls[c].batch);
	MemoryContextReset(state->block);
	state->n = state->next = 0;
	state->rows = MemoryContextAlloc(state->block, size * sizeof(MinimalTuple));
	for (int c = 0; c < state->n_calls; c++)
	{
		state->calls[c].answers = MemoryContextAlloc(state->block, size * sizeof(Datum));
		state->calls[c].isnull = MemoryContextAlloc(state->block, size * sizeof(bool));
	}
	while (state->n < size && memory < work_mem * (Size) 1024)
	{
		TupleTableSlot *slot = ExecProcNode(below);

		if (TupIsNull(slot))
		{
			state->ended = true;
			break;
		}
		ResetExprContext(econtext);
		econtext->ecxt_outertuple = slot;
		before = MemoryContextSwitchTo(state->block);
		state->rows[state->n] = ExecCopySlotMinimalTuple(slot);
		memory += state->rows[state->n]->t_len;
		/* answers go to the block, and what reading the arguments takes to the row */
		for (int c = 0; c < state->n_calls; c++)
		{
			BatchCall  *call = &state->calls[c];

			if (size == 1)
				call_alone(call, econtext);
			else
			{
				MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
				call_arguments(call, econtext);
				MemoryContextSwitchTo(state->block);
				posterior_batch_add(call->batch, call->fcinfo, &call->answers[state->n],
									&call->isnull[state->n]);
				memory += posterior_batch_answer_size(call->batch);
			}
		}
		MemoryContextSwitchTo(before);
		state->n++;
	}
	before = MemoryContextSwitchTo(state->block);
	for (int c = 0; c < state->n_calls; c++)
		posterior_batch_answer(state->calls[c].batch);
	MemoryContextSwitchTo(before);
	econtext->ecxt_outertuple = NULL;
	ResetExprContext(econtext);
	state->size = Min(size * 2, block_limit());
}

/* The next row of the block as the node's scan tuple: columns of the plan below, then answers. */
static TupleTableSlot *
block_next(BatchScanState *state)
{
	TupleTableSlot *scan = state->css.ss.ss_ScanTupleSlot;
	int			n_columns = state->row->tts_tupleDescriptor->natts,
				i = state->next++;

	ExecClearTuple(scan);
	ExecStoreMinimalTuple(state->rows[i], state->row, false);
	slot_getallattrs(state->row);
	memcpy(scan->tts_values, state->row->tts_values, n_columns * sizeof(Datum));
	memcpy(scan->tts_isnull, state->row->tts_isnull, n_columns * sizeof(bool));
	for (int c = 0; c < state->n_calls; c++)
	{
		scan->tts_values[n_columns + c] = state->calls[c].answers[i];
		scan->tts_isnull[n_columns + c] = state->calls[c].isnull[i];
	}
	return ExecStoreVirtualTuple(scan);
}

/* ---- the node -------------------------------------------------------------------------------- */

static void
call_begin(BatchCall *call, FuncExpr *expression, PlanState *parent, EState *estate)
{
	PosteriorPredictForm form = {0};
	FuncExpr   *bare = makeNode(FuncExpr);
	int			n = list_length(expression->args);
	ListCell   *cell;

	posterior_is_predict(expression->funcid, &form);
	/* compiled, without arguments and never run, for its check of the right to execute */
	*bare = *expression;
	bare->args = NIL;
	(void) ExecInitExpr((Expr *) bare, parent);
	fmgr_info_cxt(expression->funcid, &call->function, estate->es_query_cxt);
	fmgr_info_set_expr((Node *) expression, &call->function);
	call->fcinfo = palloc0(SizeForFunctionCallInfo(n));
	InitFunctionCallInfoData(*call->fcinfo, &call->function, n, expression->inputcollid, NULL,
							 NULL);
	foreach(cell, expression->args)
		call->arguments = lappend(call->arguments, ExecInitExpr(lfirst(cell), parent));
	call->batch = posterior_batch_make(estate->es_query_cxt, &call->function, form.named,
									   form.targets);
}

static void
batch_scan_begin(CustomScanState *node, EState *estate, int flags)
{
	BatchScanState *state = (BatchScanState *) node;
	CustomScan *plan = (CustomScan *) node->ss.ps.plan;
	int			n_columns;

	/* arguments refer to the plan below, so it comes first */
	outerPlanState(state) = ExecInitNode(outerPlan(plan), estate, flags);
	n_columns = list_length(outerPlan(plan)->targetlist);
	state->n_calls = list_length(plan->custom_scan_tlist) - n_columns;
	state->calls = palloc0(state->n_calls * sizeof(BatchCall));
	for (int c = 0; c < state->n_calls; c++)
	{
		TargetEntry *entry = list_nth(plan->custom_scan_tlist, n_columns + c);

		call_begin(&state->calls[c], castNode(FuncExpr, entry->expr), &node->ss.ps, estate);
	}
	state->block = AllocSetContextCreate(estate->es_query_cxt, "posterior block",
										 ALLOCSET_DEFAULT_SIZES);
	state->row = ExecInitExtraTupleSlot(estate, ExecGetResultType(outerPlanState(state)),
										&TTSOpsMinimalTuple);
	state->size = 1;
}

static TupleTableSlot *
batch_scan_exec(CustomScanState *node)
{
	BatchScanState *state = (BatchScanState *) node;
	ExprContext *econtext = node->ss.ps.ps_ExprContext;

	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		if (state->next >= state->n)
		{
			if (!state->ended)
				block_fill(state);
			if (state->n == 0 || state->next >= state->n)
				return ExecClearTuple(node->ss.ps.ps_ResultTupleSlot
										  ? node->ss.ps.ps_ResultTupleSlot
										  : node->ss.ss_ScanTupleSlot);
		}
		ResetExprContext(econtext);
		econtext->ecxt_scantuple = block_next(state);
		if (!ExecQual(node->ss.ps.qual, econtext))
		{
			InstrCountFiltered1(node, 1);
			continue;
		}
		return node->ss.ps.ps_ProjInfo ? ExecProject(node->ss.ps.ps_ProjInfo)
			: econtext->ecxt_scantuple;
	}
}

static void
batch_scan_end(CustomScanState *node)
{
	BatchScanState *state = (BatchScanState *) node;

	MemoryContextReset(state->block);
	ExecEndNode(outerPlanState(node));
}

static void
batch_scan_rescan(CustomScanState *node)
{
	BatchScanState *state = (BatchScanState *) node;

	state->n = state->next = 0;
	state->ended = false;
	state->size = 1;
	if (outerPlanState(node)->chgParam == NULL)
		ExecReScan(outerPlanState(node));
}

/* What a call has done, where it has done anything; workers of a parallel plan keep theirs. */
static void
call_explain(BatchCall *call, ExplainState *es)
{
	PosteriorBatchSummary summary;

	posterior_batch_summary(call->batch, &summary);
	if (summary.rows == 0)
		return;
	ExplainOpenGroup("Call", NULL, true, es);
	ExplainPropertyText("Model", summary.model, es);
	ExplainPropertyInteger("Context Rows", NULL, summary.context_rows, es);
	ExplainPropertyInteger("Predictions", NULL, summary.rows, es);
	ExplainPropertyInteger("Requests", NULL, summary.requests, es);
	ExplainPropertyInteger("Encodings Made", NULL, summary.encodes, es);
	if (es->timing)
		ExplainPropertyFloat("Encoding Time", "ms", summary.encode_seconds * 1000, 3, es);
	ExplainCloseGroup("Call", NULL, true, es);
}

/* Calls are a list, so that formats with keys have each key once. */
static void
batch_scan_explain(CustomScanState *node, List *ancestors, ExplainState *es)
{
	BatchScanState *state = (BatchScanState *) node;

	if (!es->analyze || !es->verbose)
		return;
	ExplainOpenGroup("Calls", "Calls", false, es);
	for (int c = 0; c < state->n_calls; c++)
		call_explain(&state->calls[c], es);
	ExplainCloseGroup("Calls", "Calls", false, es);
}

static const CustomExecMethods exec_methods = {
	.CustomName = "Posterior Batch",
	.BeginCustomScan = batch_scan_begin,
	.ExecCustomScan = batch_scan_exec,
	.EndCustomScan = batch_scan_end,
	.ReScanCustomScan = batch_scan_rescan,
	.ExplainCustomScan = batch_scan_explain,
};

static Node *
batch_scan_create_state(CustomScan *plan)
{
	BatchScanState *state = palloc0(sizeof(BatchScanState));

	NodeSetTag(state, T_CustomScanState);
	state->css.methods = &exec_methods;
	return (Node *) state;
}

static const CustomScanMethods scan_methods = {
	.CustomName = "Posterior Batch",
	.CreateCustomScanState = batch_scan_create_state,
};

void
posterior_batch_scan_register(void)
{
	RegisterCustomScanMethods(&scan_methods);
}

CustomScan *
posterior_batch_scan_make(Plan *below, List *calls)
{
	CustomScan *scan = makeNode(CustomScan);
	ListCell   *cell;
	AttrNumber	n = 0;

	scan->scan.plan.lefttree = below;
	scan->methods = &scan_methods;
	foreach(cell, below->targetlist)
	{
		TargetEntry *entry = lfirst(cell);
		Var		   *column = makeVar(OUTER_VAR, ++n, exprType((Node *) entry->expr),
									 exprTypmod((Node *) entry->expr),
									 exprCollation((Node *) entry->expr), 0);

		scan->custom_scan_tlist = lappend(
			scan->custom_scan_tlist, makeTargetEntry((Expr *) column, n, entry->resname, false));
	}
	foreach(cell, calls)
		scan->custom_scan_tlist = lappend(scan->custom_scan_tlist,
										  makeTargetEntry(lfirst(cell), ++n, NULL, false));
	return scan;
}

bool
posterior_is_predict(Oid function, PosteriorPredictForm *form)
{
	static const char *const names[] = {"predict", "predict_targets"};
	static const char *const symbols[lengthof(names)][2] = {
		{"posterior_predict", "posterior_predict_named"},
		{"posterior_predict_targets", "posterior_predict_targets_named"}};
	HeapTuple	tuple;
	Form_pg_proc proc;
	bool		found = false;

	if (function < FirstNormalObjectId)
		return false;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	if (!HeapTupleIsValid(tuple))
		return false;
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	form->targets = strcmp(NameStr(proc->proname), names[1]) == 0;
	if (proc->prolang == ClanguageId && !proc->proretset
		&& proc->provolatile != PROVOLATILE_VOLATILE
		&& (form->targets || strcmp(NameStr(proc->proname), names[0]) == 0))
	{
		bool		isnull;
		Datum		source = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &isnull);
		char	   *symbol = isnull ? pstrdup("") : TextDatumGetCString(source);

		form->named = strcmp(symbol, symbols[form->targets][1]) == 0;
		found = form->named || strcmp(symbol, symbols[form->targets][0]) == 0;
		pfree(symbol);
	}
	ReleaseSysCache(tuple);
	return found;
}
