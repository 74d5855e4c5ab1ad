/*
 * density.c: the aggregates posterior.log_density and posterior.log_density_averaged: the joint log
 * predictive density of a group's rows given a context.
 *
 * Rows whose target is NULL have no density and are left out, as posterior.context leaves them out.
 * The order of the chain is the ORDER BY of the aggregate or of its window, or the canonical byte
 * order without one.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/cache/execute.h"
#include "pg/base/bridge.h"
#include "pg/rows/targets.h"
#include "pg/sql/call_site.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#define MAX_ORDERS 1000000

typedef struct DensityState
{
	PosteriorContext *context;	/* a value, or: */
	PosteriorCall *call;		/* a named context, found at the group's first row */
	PosteriorRows *rows;
	int64		orders;			/* 0: the given order */
	int64		seed;
} DensityState;

static MemoryContext
aggregate_context(FunctionCallInfo fcinfo)
{
	MemoryContext context;

	if (!AggCheckCallContext(fcinfo, &context))
		elog(ERROR, "posterior.log_density called in non-aggregate context");
	return context;
}

/* The group's context must be one: each row's value has the bytes of the first. */
static void
take_context(DensityState *state, Datum argument, MemoryContext memory)
{
	PosteriorContext *c = (PosteriorContext *) PG_DETOAST_DATUM(argument);

	if (state->context == NULL)
	{
		state->context = MemoryContextAllocHuge(memory, VARSIZE(c));
		memcpy(state->context, c, VARSIZE(c));
		posterior_adopt_columns(c->n_features, c->kinds, state->rows);
	}
	else if (VARSIZE(c) != VARSIZE(state->context) || memcmp(c, state->context, VARSIZE(c)) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the rows of a group have different contexts"),
				 errhint("GROUP BY what distinguishes the contexts.")));
	if ((Pointer) c != DatumGetPointer(argument))
		pfree(c);
}

pg_noreturn static void
context_is_null(bool named)
{
	ereport(ERROR,
			(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the context is NULL"),
			 named ? errhint("Give the name of a context, or a value of type posterior.context.")
				   : errhint("posterior.context over no rows is NULL.")));
}

/* Whether the aggregate takes labels, or else numbers: by the type of its argument `y`. */
static bool
takes_labels(FunctionCallInfo fcinfo, int y)
{
	return get_fn_expr_argtype(fcinfo->flinfo, y) != FLOAT8OID;
}

pg_noreturn static void
targets_are_labels(void)
{
	ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
					errmsg("the targets of the context are labels, not numbers"),
					errhint("Give a label: text, a boolean, a value of an enum, or another type's "
							"cast to text.")));
}

/*
 * The target in argument `y`, which is not NULL, as the engine wants it: of a label, its class in
 * `list`; NULL says that targets are numbers, `there` of them in each row (0: unknown).
 */
static double
target_accumulate(FunctionCallInfo fcinfo, int y, const PosteriorLabelList *list, int there)
{
	bool		labelled = takes_labels(fcinfo, y);

	if (!labelled && list != NULL)
		targets_are_labels();
	if (labelled && list == NULL)
		ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
						errmsg("the targets of the context are numbers, not labels"),
						there > 1 ? errhint("Give an array of %d numbers.", there)
								  : errhint("Give a number.")));
	if (labelled)
		return posterior_label_class(list, posterior_label_argument(fcinfo, y));
	return posterior_check_target(PG_GETARG_FLOAT8(y));
}

/*
 * A row of n targets must have as many as those of the context, `there` (0: unknown), and those
 * before it.
 */
static void
check_count(int there, int n, PosteriorRows *rows)
{
	if (there > 0 && there != n)
		ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
						errmsg("a row has %d target%s, those of the context have %d", n,
							   n == 1 ? "" : "s", there),
						there > 1 ? errhint("Give them as an array, in the same order as to "
											"posterior.context.")
								  : errhint("Give one number.")));
	posterior_rows_check_targets(rows, n);
}

/* The number of targets of a context value; 0 where nothing tells it: one, of no rows. */
static int
targets_of(const PosteriorContext *context)
{
	int			targets = posterior_context_targets(context);

	return context->n > 0 || targets > 1 ? targets : 0;
}

/*
 * The targets of an array in argument `y`, into the next row of rows, the context having `there`;
 * false where they are all NULL.
 */
static bool
targets_accumulate(FunctionCallInfo fcinfo, int y, bool labelled, int there, PosteriorRows *rows)
{
	double		observed[TNP_MAX_TARGETS];
	bool		known;
	int			n = posterior_array_targets(PG_GETARG_ARRAYTYPE_P(y), observed, &known);

	if (!known)
		return false;
	if (labelled)
		targets_are_labels();
	check_count(there, n, rows);
	posterior_rows_next(rows);
	memcpy(rows->y + rows->n * n, observed, n * sizeof(double));
	return true;
}

/* Add one row: context in argument 1, target in argument `y`, features after it. */
static Datum
density_accumulate(FunctionCallInfo fcinfo, int y, int64 orders, int64 seed)
{
	MemoryContext memory = aggregate_context(fcinfo);
	DensityState *state = PG_ARGISNULL(0) ? NULL : (DensityState *) PG_GETARG_POINTER(0);
	PosteriorRows *rows;
	PosteriorLabelList list;
	double	   *x,
				observed;

	if (PG_ARGISNULL(1))
		context_is_null(false);
	if (state == NULL)
	{
		Oid			types[FUNC_MAX_ARGS];
		int			n = posterior_argument_types(fcinfo, y + 1, types);

		state = MemoryContextAllocZero(memory, sizeof(DensityState));
		state->rows = posterior_rows_make(memory, n, types);
		state->orders = orders;
		state->seed = seed;
	}
	else if (state->orders != orders || state->seed != seed)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the rows of a group have different numbers of orders or seeds"),
				 errhint("GROUP BY what distinguishes them.")));
	rows = state->rows;
	take_context(state, PG_GETARG_DATUM(1), memory);
	if (PG_ARGISNULL(y))
		PG_RETURN_POINTER(state);
	if (get_fn_expr_argtype(fcinfo->flinfo, y) == FLOAT8ARRAYOID)
	{
		if (!targets_accumulate(fcinfo, y, posterior_context_labelled(state->context),
								targets_of(state->context), rows))
			PG_RETURN_POINTER(state);
	}
	else
	{
		list = posterior_context_labels(state->context);
		observed = target_accumulate(fcinfo, y,
									 posterior_context_labelled(state->context) ? &list : NULL,
									 targets_of(state->context));
		check_count(targets_of(state->context), 1, rows);
		posterior_rows_next(rows);
		rows->y[rows->n] = observed;
	}
	x = rows->x + rows->n * rows->n_features;
	for (int f = 0; f < rows->n_features; f++)
		x[f] = posterior_feature_cell(&rows->features[f], PG_GETARG_DATUM(y + 1 + f),
									  PG_ARGISNULL(y + 1 + f), f + 1);
	rows->n++;
	PG_RETURN_POINTER(state);
}

/* Add one row: name in argument 1, target in argument `y`, the row after it. */
static Datum
accumulate_named(FunctionCallInfo fcinfo, int y, int64 orders, int64 seed)
{
	MemoryContext memory = aggregate_context(fcinfo);
	DensityState *state = PG_ARGISNULL(0) ? NULL : (DensityState *) PG_GETARG_POINTER(0);
	PosteriorRows *rows;
	const PosteriorLabelList *labels;
	double		observed;
	int			targets;

	if (PG_ARGISNULL(1))
		context_is_null(true);
	if (PG_ARGISNULL(y + 1))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the row is NULL"),
						errhint("A row may have NULL columns, which are missing features, but must "
								"itself be there.")));
	if (state == NULL)
	{
		state = MemoryContextAllocZero(memory, sizeof(DensityState));
		state->call = posterior_call_make(memory);
		state->call->several = true;
		posterior_call_named(state->call, text_to_cstring(PG_GETARG_TEXT_PP(1)));
		state->rows = posterior_rows_of_kinds(memory, state->call->named->n_features,
											  state->call->named->kinds);
		state->orders = orders;
		state->seed = seed;
	}
	else if (state->orders != orders || state->seed != seed
			 || strcmp(state->call->named->name, text_to_cstring(PG_GETARG_TEXT_PP(1))) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the rows of a group have different contexts, numbers of orders or seeds"),
				 errhint("GROUP BY what distinguishes them.")));
	if (PG_ARGISNULL(y))
		PG_RETURN_POINTER(state);
	rows = state->rows;
	labels = &state->call->encoding->labels;
	targets = tnp_model_info(state->call->model->model)->n_targets;
	if (get_fn_expr_argtype(fcinfo->flinfo, y) == FLOAT8ARRAYOID)
	{
		if (!targets_accumulate(fcinfo, y, labels->n > 0, targets, rows))
			PG_RETURN_POINTER(state);
	}
	else
	{
		observed = target_accumulate(fcinfo, y, labels->n > 0 ? labels : NULL, targets);
		check_count(targets, 1, rows);
		posterior_rows_next(rows);
		rows->y[rows->n] = observed;
	}
	posterior_match_value(state->call, get_fn_expr_argtype(fcinfo->flinfo, y + 1),
						  PG_GETARG_DATUM(y + 1), false,
						  rows->x + rows->n * rows->n_features);
	rows->n++;
	PG_RETURN_POINTER(state);
}

/* log_density_named_accum(internal, name, y, row) */
PG_FUNCTION_INFO_V1(posterior_density_named_accum);
Datum
posterior_density_named_accum(PG_FUNCTION_ARGS)
{
	return accumulate_named(fcinfo, 2, 0, 0);
}

/* The argument `orders` and a seed that is not NULL. */
static int64
check_orders(FunctionCallInfo fcinfo)
{
	int64		orders = PG_ARGISNULL(2) ? 0 : PG_GETARG_INT32(2);

	if (orders < 1 || orders > MAX_ORDERS || PG_ARGISNULL(3))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the number of orders must be between 1 and %d and the seed not NULL",
						MAX_ORDERS),
				 PG_ARGISNULL(2) || PG_ARGISNULL(3)
					 ? errdetail("The %s is NULL.", PG_ARGISNULL(2) ? "number of orders" : "seed")
					 : errdetail("%lld orders were asked for.", (long long) orders)));
	return orders;
}

/* log_density_averaged_named_accum(internal, name, orders, seed, y, row) */
PG_FUNCTION_INFO_V1(posterior_density_averaged_named_accum);
Datum
posterior_density_averaged_named_accum(PG_FUNCTION_ARGS)
{
	int64		orders = check_orders(fcinfo);

	return accumulate_named(fcinfo, 4, orders, PG_GETARG_INT64(3));
}

/* log_density_accum(internal, context, y, VARIADIC "any") */
PG_FUNCTION_INFO_V1(posterior_density_accum);
Datum
posterior_density_accum(PG_FUNCTION_ARGS)
{
	return density_accumulate(fcinfo, 2, 0, 0);
}

/* log_density_averaged_accum(internal, context, orders, seed, y, VARIADIC "any") */
PG_FUNCTION_INFO_V1(posterior_density_averaged_accum);
Datum
posterior_density_averaged_accum(PG_FUNCTION_ARGS)
{
	int64		orders = check_orders(fcinfo);

	return density_accumulate(fcinfo, 4, orders, PG_GETARG_INT64(3));
}

PG_FUNCTION_INFO_V1(posterior_density_final);
Datum
posterior_density_final(PG_FUNCTION_ARGS)
{
	DensityState *state;
	PosteriorCall *call;
	double		density;
	TnpRequest	request = {.kind = TNP_REQUEST_SCORE,.answer = &density};

	aggregate_context(fcinfo);
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	state = (DensityState *) PG_GETARG_POINTER(0);
	if (!posterior_aggregate_ordered(fcinfo))
		posterior_rows_sort(state->rows);
	call = state->call;
	/* rows without any target are none, and tell no number of targets */
	if (state->rows->n == 0)
		PG_RETURN_FLOAT8(0);
	if (call == NULL)
	{
		call = posterior_call_make(CurrentMemoryContext);
		/* rows of a number where the context has arrays are refused by the engine */
		call->several = true;
		posterior_call_context(call, PointerGetDatum(state->context));
		posterior_check_model_targets(call->model->model, call->model->name,
									  state->rows->n_targets);
	}
	posterior_call_check_joint(call, state->rows->n, Max(state->orders, 1));
	request.queries = posterior_rows_view(state->rows, true);
	request.orders = state->orders;
	request.seed = (uint64) state->seed;
	posterior_call_execute(call, &request, 1, "a log density");
	PG_RETURN_FLOAT8(density);
}
