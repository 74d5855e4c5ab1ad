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
#include "pg/base/bridge.h"
#include "pg/cache/sums_handle.h"
#include "pg/models/model_cache.h"
#include "pg/named/kept_sums.h"

#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

typedef struct SumsState
{
	PosteriorModel *model;
	PosteriorContext *empty;	/* a value without rows, of the basis */
	PosteriorRows *row;			/* the one that is being read; NULL: none has been */
	struct varlena *given;		/* the basis as the first row gave it */
	TnpSums    *sums;
} SumsState;

static MemoryContext
aggregate_memory(FunctionCallInfo fcinfo)
{
	MemoryContext memory;

	if (!AggCheckCallContext(fcinfo, &memory))
		elog(ERROR, "an aggregate over sums is called in non-aggregate context");
	return memory;
}

static PosteriorContext *
empty_like(const PosteriorContext *c)
{
	return posterior_make_sums(c->n_features, c->kinds, posterior_basis_words(c),
							   posterior_basis(c), 0, 0);
}

/* Whether two values without rows are equal. */
static bool
same_basis(const PosteriorContext *a, const PosteriorContext *b)
{
	return VARSIZE(a) == VARSIZE(b) && memcmp(a, b, VARSIZE(a)) == 0;
}

pg_noreturn static void
different_bases(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("the rows of a group have different bases"),
			 errhint("GROUP BY what distinguishes the bases.")));
}

/* A state with the rows of a value, or with none under its basis. */
static SumsState *
state_make(const PosteriorContext *c, bool with_rows, MemoryContext memory)
{
	MemoryContext before = MemoryContextSwitchTo(memory);
	SumsState  *state = palloc0(sizeof(SumsState));

	state->model = posterior_model_pin(posterior_model_name, memory);
	state->sums = posterior_sums_open(state->model, c, with_rows, memory);
	state->empty = empty_like(c);
	MemoryContextSwitchTo(before);
	return state;
}

/* The sums of a value under the basis and the model of a state. */
static TnpSums *
state_open(const SumsState *state, const PosteriorContext *c)
{
	if (posterior_context_is_sums(c) && !same_basis(empty_like(c), state->empty))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("contexts of different bases cannot be merged"),
				 errhint("Make all of them with posterior.context(basis, y, x1, ...) and one "
						 "basis.")));
	return posterior_sums_open(state->model, c, true, CurrentMemoryContext);
}

static void
state_merge(SumsState *state, TnpSums *more, int sign)
{
	TnpError	error;

	if (tnp_sums_merge(state->model->model, state->sums, more, sign, &error) != TNP_OK)
		posterior_raise(&error, state->model->name);
}

static Datum
state_value(SumsState *state)
{
	return PointerGetDatum(posterior_sums_value(state->model, state->empty, state->sums));
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Add or take away the row of this call: target in argument `y`, features after it. */
static void
state_row(FunctionCallInfo fcinfo, SumsState *state, int y, int sign, MemoryContext memory)
{
	double		target;
	TnpRows		view;
	TnpError	error;

	if (state->row == NULL)
	{
		Oid			types[FUNC_MAX_ARGS];
		int			n = posterior_argument_types(fcinfo, y + 1, types);

		state->row = posterior_rows_make(memory, n, types);
		posterior_adopt_columns(state->empty->n_features, state->empty->kinds, state->row);
		(void) posterior_rows_next(state->row);
	}
	if (PG_ARGISNULL(y))
		return;
	target = posterior_check_target(PG_GETARG_FLOAT8(y));
	for (int f = 0; f < state->row->n_features; f++)
		state->row->x[f] =
			posterior_feature_cell(&state->row->features[f], PG_GETARG_DATUM(y + 1 + f),
								   PG_ARGISNULL(y + 1 + f), f + 1);
	state->row->y[0] = target;
	view = posterior_rows_view(state->row, true);
	view.n = 1;
	if (tnp_sums_add(state->model->model, state->sums, &view, sign, &error) != TNP_OK)
		posterior_raise(&error, state->model->name);
}

/*
 * All rows of an aggregate must give one basis. Nearly always they give the same bytes; others are
 * compared as values.
 */
static void
check_basis(SumsState *state, Datum argument, MemoryContext memory)
{
	struct varlena *raw = (struct varlena *) DatumGetPointer(argument);
	Size		size = VARSIZE_ANY(raw);
	PosteriorContext *c;

	if (state->given != NULL && VARSIZE_ANY(state->given) == size
		&& memcmp(state->given, raw, size) == 0)
		return;
	c = (PosteriorContext *) PG_DETOAST_DATUM(argument);
	if (!same_basis(posterior_context_is_sums(c) ? empty_like(c) : c, state->empty))
		different_bases();
	/* out-of-line bytes that move are compared again, no more */
	if (state->given == NULL && !(VARATT_IS_EXTERNAL(raw) && !VARATT_IS_EXTERNAL_ONDISK(raw)))
	{
		state->given = MemoryContextAllocHuge(memory, size);
		memcpy(state->given, raw, size);
	}
	if ((Pointer) c != DatumGetPointer(argument))
		pfree(c);
}

static Datum
sums_accumulate(FunctionCallInfo fcinfo, int sign)
{
	MemoryContext memory = aggregate_memory(fcinfo);
	SumsState  *state = PG_ARGISNULL(0) ? NULL : (SumsState *) PG_GETARG_POINTER(0);

	if (PG_ARGISNULL(1))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the basis is NULL"),
						errhint("posterior.basis over no rows is NULL.")));
	if (state == NULL)
		state = state_make((PosteriorContext *) PG_DETOAST_DATUM(PG_GETARG_DATUM(1)), false,
						   memory);
	check_basis(state, PG_GETARG_DATUM(1), memory);
	state_row(fcinfo, state, 2, sign, memory);
	PG_RETURN_POINTER(state);
}

/* sums_accum(internal, basis posterior.context, y float8, VARIADIC "any") */
PG_FUNCTION_INFO_V1(posterior_sums_accum);
Datum
posterior_sums_accum(PG_FUNCTION_ARGS)
{
	return sums_accumulate(fcinfo, 1);
}

PG_FUNCTION_INFO_V1(posterior_sums_remove);
Datum
posterior_sums_remove(PG_FUNCTION_ARGS)
{
	return sums_accumulate(fcinfo, -1);
}

PG_FUNCTION_INFO_V1(posterior_sums_combine);
Datum
posterior_sums_combine(PG_FUNCTION_ARGS)
{
	MemoryContext memory = aggregate_memory(fcinfo);
	SumsState  *into = PG_ARGISNULL(0) ? NULL : (SumsState *) PG_GETARG_POINTER(0),
			   *from = PG_ARGISNULL(1) ? NULL : (SumsState *) PG_GETARG_POINTER(1);

	if (from == NULL && into == NULL)
		PG_RETURN_NULL();
	if (from != NULL)
	{
		if (into == NULL)
			into = state_make(from->empty, false, memory);
		else if (!same_basis(into->empty, from->empty))
			different_bases();
		state_merge(into, from->sums, 1);
	}
	PG_RETURN_POINTER(into);
}

/* The serialized state is a value. */
PG_FUNCTION_INFO_V1(posterior_sums_serialize);
Datum
posterior_sums_serialize(PG_FUNCTION_ARGS)
{
	StringInfoData buffer;

	(void) aggregate_memory(fcinfo);
	pq_begintypsend(&buffer);
	posterior_send_sums(&buffer, (PosteriorContext *) DatumGetPointer(
						state_value((SumsState *) PG_GETARG_POINTER(0))));
	PG_RETURN_BYTEA_P(pq_endtypsend(&buffer));
}

PG_FUNCTION_INFO_V1(posterior_sums_deserialize);
Datum
posterior_sums_deserialize(PG_FUNCTION_ARGS)
{
	bytea	   *bytes = PG_GETARG_BYTEA_PP(0);
	StringInfoData buffer;

	(void) aggregate_memory(fcinfo);
	initStringInfo(&buffer);
	appendBinaryStringInfo(&buffer, VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes));
	PG_RETURN_POINTER(state_make(posterior_receive_sums(&buffer), true, CurrentMemoryContext));
}

PG_FUNCTION_INFO_V1(posterior_sums_final);
Datum
posterior_sums_final(PG_FUNCTION_ARGS)
{
	(void) aggregate_memory(fcinfo);
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	PG_RETURN_DATUM(state_value((SumsState *) PG_GETARG_POINTER(0)));
}

/* ---- contexts -------------------------------------------------------------------------------- */

static Datum
context_accumulate(FunctionCallInfo fcinfo, int sign)
{
	MemoryContext memory = aggregate_memory(fcinfo);
	SumsState  *state = PG_ARGISNULL(0) ? NULL : (SumsState *) PG_GETARG_POINTER(0);
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
		state = state_make(c, false, memory);
	more = state_open(state, c);
	state_merge(state, more, sign);
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

static Datum
context_with(PosteriorContext *a, const PosteriorContext *b, int sign)
{
	SumsState  *state = state_make(a, true, CurrentMemoryContext);

	state_merge(state, state_open(state, b), sign);
	return state_value(state);
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

/* without(context posterior.context, y float8, VARIADIC x "any") */
PG_FUNCTION_INFO_V1(posterior_without_row);
Datum
posterior_without_row(PG_FUNCTION_ARGS)
{
	SumsState  *state;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	state = state_make(PG_GETARG_CONTEXT(0), true, CurrentMemoryContext);
	state_row(fcinfo, state, 1, -1, CurrentMemoryContext);
	PG_RETURN_DATUM(state_value(state));
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

	(void) aggregate_memory(fcinfo);
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
				 errhint("SET posterior.model to a model of the architecture \"sums\".")));
	view = posterior_rows_view(rows, true);
	words = tnp_basis_words(model->model, rows->n_features);
	basis = palloc(words * sizeof(int64));
	if (tnp_basis_make(model->model, &view, basis, &error) != TNP_OK)
		posterior_raise(&error, model->name);
	PG_RETURN_POINTER(posterior_make_sums(rows->n_features, rows->kinds, words, basis, 0, 0));
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
	PG_RETURN_POINTER(empty_like(c));
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
	PosteriorContextHandle *e;
	double		density;

	if (!posterior_context_is_sums(c))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("the context has rows, and no sums"),
				 errhint("posterior.log_evidence(y, x1, ... ORDER BY ...) is of rows.")));
	e = posterior_handle_of_sums(posterior_model_pin(posterior_model_name, CurrentMemoryContext),
								 c, NULL);
	density = tnp_sums_log_evidence(e->cached->encoding);
	posterior_handle_release(e);
	PG_RETURN_FLOAT8(density);
}
