/*
 * sums_functions.c: contexts that are sums (docs/sums.md): the aggregates posterior.basis,
 * posterior.context(basis, …) and posterior.merge, and functions that add and take away.
 *
 * The state of the aggregates is the engine's sums, whose size does not depend on the rows, and
 * which are the same whatever the order of rows, partial aggregates and removals: so plans need no
 * care. In a moving frame rows are taken away again.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/sql/growing_sums.h"

#include "pg/base/bridge.h"
#include "pg/named/kept_scan.h"
#include "pg/named/kept_sums.h"
#include "pg/rows/targets.h"

#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

/* ---- rows ------------------------------------------------------------------------------------ */

#define TELL_ROWS 1024			/* of which posterior.stat_progress is told at a time */

/*
 * The targets of this call's row, an array or one number in argument `y`, which is not NULL; false
 * where they are not known.
 */
static bool
row_targets(FunctionCallInfo fcinfo, const PosteriorSumsState *state, int y, bool array,
			double *targets)
{
	int			n = 1;
	bool		known = true;

	/* as text comes a literal without a type */
	if (get_fn_expr_argtype(fcinfo->flinfo, y) == TEXTOID)
		ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
						errmsg("the targets of sums are numbers, not labels"),
						errhint("Give a number; a literal in quotes needs a type, as in "
								"float8 '1.5'.")));
	if (array)
		n = posterior_array_targets(PG_GETARG_ARRAYTYPE_P(y), targets, &known);
	else
		targets[0] = posterior_check_target(PG_GETARG_FLOAT8(y));
	/* one unknown target tells nothing */
	if (known || n > 1)
		posterior_sums_check_targets(state, n);
	return known;
}

/* Add or take away the row of this call: targets in argument `y`, features after it. */
static void
state_row(FunctionCallInfo fcinfo, PosteriorSumsState *state, int y, bool array, int sign,
		  MemoryContext memory)
{
	double		targets[TNP_MAX_TARGETS];
	TnpRows		view;

	if (state->row == NULL)
	{
		Oid			types[FUNC_MAX_ARGS];
		int			n = posterior_argument_types(fcinfo, y + 1, types);

		state->row = posterior_rows_make(memory, n, types);
		posterior_adopt_columns(state->empty->n_features, state->empty->kinds, state->row);
		state->row->n_targets = posterior_context_targets(state->empty);
		(void) posterior_rows_next(state->row);
	}
	if (PG_ARGISNULL(y) || !row_targets(fcinfo, state, y, array, targets))
		return;
	for (int f = 0; f < state->row->n_features; f++)
		state->row->x[f] =
			posterior_feature_cell(&state->row->features[f], PG_GETARG_DATUM(y + 1 + f),
								   PG_ARGISNULL(y + 1 + f), f + 1);
	memcpy(state->row->y, targets, state->row->n_targets * sizeof(double));
	view = posterior_rows_view(state->row, true);
	view.n = 1;
	posterior_sums_state_add(state, &view, sign);
	if (++state->untold == TELL_ROWS)
	{
		posterior_kept_scan_taken(TELL_ROWS);
		state->untold = 0;
	}
}

static Datum
sums_accumulate(FunctionCallInfo fcinfo, bool array, int sign)
{
	MemoryContext memory = posterior_sums_memory(fcinfo);
	PosteriorSumsState *state = PG_ARGISNULL(0) ? NULL
		: (PosteriorSumsState *) PG_GETARG_POINTER(0);

	if (PG_ARGISNULL(1))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the basis is NULL"),
						errhint("posterior.basis over no rows is NULL.")));
	if (state == NULL)
		state = posterior_sums_state(PG_GETARG_CONTEXT(1), false, memory);
	posterior_sums_check_basis(state, PG_GETARG_DATUM(1), memory);
	state_row(fcinfo, state, 2, array, sign, memory);
	PG_RETURN_POINTER(state);
}

/* sums_accum(internal, basis posterior.context, y float8, VARIADIC "any") */
PG_FUNCTION_INFO_V1(posterior_sums_accum);
Datum
posterior_sums_accum(PG_FUNCTION_ARGS)
{
	return sums_accumulate(fcinfo, false, 1);
}

PG_FUNCTION_INFO_V1(posterior_sums_remove);
Datum
posterior_sums_remove(PG_FUNCTION_ARGS)
{
	return sums_accumulate(fcinfo, false, -1);
}

/* sums_targets_accum(internal, basis posterior.context, y float8[], VARIADIC "any") */
PG_FUNCTION_INFO_V1(posterior_sums_targets_accum);
Datum
posterior_sums_targets_accum(PG_FUNCTION_ARGS)
{
	return sums_accumulate(fcinfo, true, 1);
}

PG_FUNCTION_INFO_V1(posterior_sums_targets_remove);
Datum
posterior_sums_targets_remove(PG_FUNCTION_ARGS)
{
	return sums_accumulate(fcinfo, true, -1);
}

PG_FUNCTION_INFO_V1(posterior_sums_combine);
Datum
posterior_sums_combine(PG_FUNCTION_ARGS)
{
	MemoryContext memory = posterior_sums_memory(fcinfo);
	PosteriorSumsState *into = PG_ARGISNULL(0) ? NULL : (PosteriorSumsState *) PG_GETARG_POINTER(0),
			   *from = PG_ARGISNULL(1) ? NULL : (PosteriorSumsState *) PG_GETARG_POINTER(1);

	if (from == NULL && into == NULL)
		PG_RETURN_NULL();
	if (from != NULL)
	{
		if (into == NULL)
			into = posterior_sums_state(from->empty, false, memory);
		else if (!posterior_sums_same(into->empty, from->empty))
			posterior_sums_bases_differ();
		posterior_sums_state_merge(into, from->sums, 1);
	}
	PG_RETURN_POINTER(into);
}

/* The serialized state is a value. */
PG_FUNCTION_INFO_V1(posterior_sums_serialize);
Datum
posterior_sums_serialize(PG_FUNCTION_ARGS)
{
	StringInfoData buffer;

	(void) posterior_sums_memory(fcinfo);
	pq_begintypsend(&buffer);
	posterior_send_sums(&buffer,
						posterior_sums_state_value((PosteriorSumsState *) PG_GETARG_POINTER(0)));
	PG_RETURN_BYTEA_P(pq_endtypsend(&buffer));
}

PG_FUNCTION_INFO_V1(posterior_sums_deserialize);
Datum
posterior_sums_deserialize(PG_FUNCTION_ARGS)
{
	bytea	   *bytes = PG_GETARG_BYTEA_PP(0);
	StringInfoData buffer;

	(void) posterior_sums_memory(fcinfo);
	initStringInfo(&buffer);
	appendBinaryStringInfo(&buffer, VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes));
	PG_RETURN_POINTER(posterior_sums_state(posterior_receive_sums(&buffer), true,
										   CurrentMemoryContext));
}

PG_FUNCTION_INFO_V1(posterior_sums_final);
Datum
posterior_sums_final(PG_FUNCTION_ARGS)
{
	(void) posterior_sums_memory(fcinfo);
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	PG_RETURN_POINTER(posterior_sums_state_value((PosteriorSumsState *) PG_GETARG_POINTER(0)));
}

/* ---- contexts -------------------------------------------------------------------------------- */

static Datum
context_accumulate(FunctionCallInfo fcinfo, int sign)
{
	MemoryContext memory = posterior_sums_memory(fcinfo);
	PosteriorSumsState *state = PG_ARGISNULL(0) ? NULL
		: (PosteriorSumsState *) PG_GETARG_POINTER(0);
	PosteriorContext *c;
	TnpSums    *more;

	if (PG_ARGISNULL(1))
	{
		if (state == NULL)
			PG_RETURN_NULL();
		PG_RETURN_POINTER(state);
	}
	c = PG_GETARG_CONTEXT(1);
	if (state == NULL)
		state = posterior_sums_state(c, false, memory);
	more = posterior_sums_state_open(state, c);
	posterior_sums_state_merge(state, more, sign);
	pfree(more);
	PG_RETURN_POINTER(state);
}

/* sums_merge_accum(internal, posterior.context) */
PG_FUNCTION_INFO_V1(posterior_sums_merge_accum);
Datum
posterior_sums_merge_accum(PG_FUNCTION_ARGS)
{
	return context_accumulate(fcinfo, 1);
}

PG_FUNCTION_INFO_V1(posterior_sums_merge_remove);
Datum
posterior_sums_merge_remove(PG_FUNCTION_ARGS)
{
	return context_accumulate(fcinfo, -1);
}

/* What is left of sums that rows were taken away from, which sums of rows must be. */
static Datum
value_left(PosteriorSumsState *state)
{
	PosteriorContext *left = posterior_sums_state_value(state);
	const TnpModel *model = state->model->model;
	const int64 *basis = posterior_basis(left);
	TnpSums    *sums;
	TnpError	error;

	if (left->n == 0)
		return PointerGetDatum(left);
	sums = MemoryContextAllocHuge(CurrentMemoryContext, tnp_sums_bytes(model, basis));
	tnp_sums_begin(model, basis, sums);
	if (tnp_sums_read(model, sums, posterior_sums(left), &error) != TNP_OK)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a row that is taken away is not among those of the context"),
				 errdetail("Of what would be left: %s.", error.message),
				 errhint("Take rows away with the cells and targets that they were added with.")));
	pfree(sums);
	return PointerGetDatum(left);
}

static Datum
context_with(PosteriorContext *a, const PosteriorContext *b, int sign)
{
	PosteriorSumsState *state = posterior_sums_state(a, true, CurrentMemoryContext);

	posterior_sums_state_merge(state, posterior_sums_state_open(state, b), sign);
	return sign < 0 ? value_left(state) : PointerGetDatum(posterior_sums_state_value(state));
}

/* merge(a posterior.context, b posterior.context) */
PG_FUNCTION_INFO_V1(posterior_merge);
Datum
posterior_merge(PG_FUNCTION_ARGS)
{
	PG_RETURN_DATUM(context_with(PG_GETARG_CONTEXT(0), PG_GETARG_CONTEXT(1), 1));
}

/* without(a posterior.context, b posterior.context) */
PG_FUNCTION_INFO_V1(posterior_without);
Datum
posterior_without(PG_FUNCTION_ARGS)
{
	PG_RETURN_DATUM(context_with(PG_GETARG_CONTEXT(0), PG_GETARG_CONTEXT(1), -1));
}

static Datum
context_without_row(FunctionCallInfo fcinfo, bool array)
{
	PosteriorSumsState *state;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	state = posterior_sums_state(PG_GETARG_CONTEXT(0), true, CurrentMemoryContext);
	state_row(fcinfo, state, 1, array, -1, CurrentMemoryContext);
	return value_left(state);
}

/* without(context posterior.context, y float8, VARIADIC x "any") */
PG_FUNCTION_INFO_V1(posterior_without_row);
Datum
posterior_without_row(PG_FUNCTION_ARGS)
{
	return context_without_row(fcinfo, false);
}

/* without(context posterior.context, y float8[], VARIADIC x "any") */
PG_FUNCTION_INFO_V1(posterior_without_targets_row);
Datum
posterior_without_targets_row(PG_FUNCTION_ARGS)
{
	return context_without_row(fcinfo, true);
}

/* ---- bases ----------------------------------------------------------------------------------- */

/*
 * The basis of the rows of an aggregate, in their order or, where none is given, a canonical one.
 */
PG_FUNCTION_INFO_V1(posterior_basis_final);
Datum
posterior_basis_final(PG_FUNCTION_ARGS)
{
	PosteriorRows *rows;
	PosteriorModel *model;
	TnpRows		view;
	Size		words;
	int64	   *basis;
	TnpError	error;

	(void) posterior_sums_memory(fcinfo);
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	rows = (PosteriorRows *) PG_GETARG_POINTER(0);
	if (!posterior_aggregate_ordered(fcinfo))
		posterior_rows_sort(rows);
	model = posterior_model_pin(posterior_model_name, CurrentMemoryContext);
	if (!tnp_keeps_sums(model->model))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("model \"%s\" has no contexts that are sums", model->name),
				 rows->n_targets == 1
				 ? errhint("SET posterior.model to a model that is mergeable, which "
						   "posterior.models says, as tabular_sums is.")
				 : errhint("SET posterior.model to a model of %d targets that is mergeable, which "
						   "posterior.models says.", rows->n_targets)));
	view = posterior_rows_view(rows, true);
	/* rows without any known target tell nothing of how many they have */
	if (rows->n == 0 && rows->n_targets == 1)
		view.n_targets = tnp_model_info(model->model)->n_targets;
	posterior_check_model_targets(model->model, model->name, view.n_targets);
	words = tnp_basis_words(model->model, rows->n_features);
	basis = palloc(words * sizeof(int64));
	if (tnp_basis_make(model->model, &view, basis, &error) != TNP_OK)
		posterior_raise(&error, model->name);
	PG_RETURN_POINTER(posterior_make_sums(view.n_targets, rows->n_features, rows->kinds, words,
										  basis, 0, 0));
}

/* basis(context posterior.context) */
PG_FUNCTION_INFO_V1(posterior_context_basis);
Datum
posterior_context_basis(PG_FUNCTION_ARGS)
{
	PosteriorContext *c = PG_GETARG_CONTEXT(0);

	if (!posterior_context_is_sums(c))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("the context has rows, and no basis"),
				 errhint("posterior.basis(y, x1, ...) makes one of rows.")));
	PG_RETURN_POINTER(posterior_sums_empty(c));
}

/* ---- named contexts -------------------------------------------------------------------------- */

/* sums(context text) */
PG_FUNCTION_INFO_V1(posterior_named_sums);
Datum
posterior_named_sums(PG_FUNCTION_ARGS)
{
	PosteriorNamed *named = posterior_named_find(text_to_cstring(PG_GETARG_TEXT_PP(0)),
												 CurrentMemoryContext);
	PosteriorModel *model = posterior_model_pin(named->model, CurrentMemoryContext);

	PG_RETURN_POINTER(posterior_kept_value(model, named));
}

/* ---- evidence -------------------------------------------------------------------------------- */

/* log_evidence(context posterior.context) */
PG_FUNCTION_INFO_V1(posterior_sums_log_evidence);
Datum
posterior_sums_log_evidence(PG_FUNCTION_ARGS)
{
	PosteriorContext *c = PG_GETARG_CONTEXT(0);
	PosteriorModel *model;
	PosteriorContextHandle *e;
	double		density;

	if (!posterior_context_is_sums(c))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("the context has rows, and no sums"),
				 errhint("posterior.log_evidence(y, x1, ... ORDER BY ...) is of rows.")));
	model = posterior_model_pin(posterior_model_name, CurrentMemoryContext);
	if (!tnp_sums_have_evidence(model->model))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("model \"%s\" has no evidence of sums", model->name),
				 errhint("posterior.log_evidence(y, x1, ... ORDER BY ...) is of rows.")));
	e = posterior_handle_of_sums(model, c, NULL);
	density = tnp_sums_log_evidence(e->cached->encoding);
	posterior_handle_release(e);
	PG_RETURN_FLOAT8(density);
}
