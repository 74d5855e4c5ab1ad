/*
 * growing_sums.c: sums of rows while statements add to them and take away.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/sql/growing_sums.h"

#include "pg/base/bridge.h"

#include "utils/memutils.h"

MemoryContext
posterior_sums_memory(FunctionCallInfo fcinfo)
{
	MemoryContext memory;

	if (!AggCheckCallContext(fcinfo, &memory))
		elog(ERROR, "an aggregate over sums is called in non-aggregate context");
	return memory;
}

PosteriorContext *
posterior_sums_empty(const PosteriorContext *c)
{
	return posterior_make_sums(posterior_context_targets(c), c->n_features, c->kinds,
							   posterior_basis_words(c), posterior_basis(c), 0, 0);
}

bool
posterior_sums_same(const PosteriorContext *a, const PosteriorContext *b)
{
	return VARSIZE(a) == VARSIZE(b) && memcmp(a, b, VARSIZE(a)) == 0;
}

void
posterior_sums_check_targets(const PosteriorSumsState *state, int n)
{
	int			basis = posterior_context_targets(state->empty);

	if (n == basis)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("a row has %d target%s, those of the basis have %d", n, n == 1 ? "" : "s",
					basis),
			 basis > 1 ? errhint("Give them as an array, in the same order as to "
								 "posterior.basis.")
					   : errhint("Give one number.")));
}

pg_noreturn void
posterior_sums_bases_differ(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("the rows of a group have different bases"),
			 errhint("GROUP BY what distinguishes the bases.")));
}

PosteriorSumsState *
posterior_sums_state(const PosteriorContext *c, bool with_rows, MemoryContext memory)
{
	MemoryContext before = MemoryContextSwitchTo(memory);
	PosteriorSumsState *state = palloc0(sizeof(PosteriorSumsState));

	state->model = posterior_model_pin(posterior_model_name, memory);
	state->sums = posterior_sums_open(state->model, c, with_rows, memory);
	state->empty = posterior_sums_empty(c);
	MemoryContextSwitchTo(before);
	return state;
}

TnpSums *
posterior_sums_state_open(const PosteriorSumsState *state, const PosteriorContext *c)
{
	int			targets = posterior_context_targets(c),
				here = posterior_context_targets(state->empty);

	if (posterior_context_is_sums(c) && !posterior_sums_same(posterior_sums_empty(c), state->empty))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("contexts of different bases cannot be merged"),
				 targets == here ? 0
				 : errdetail("Rows of one have %d target%s, those of the other %d.", here,
							 here == 1 ? "" : "s", targets),
				 errhint("Make all of them with posterior.context(basis, y, x1, ...) and one "
						 "basis.")));
	return posterior_sums_open(state->model, c, true, CurrentMemoryContext);
}

void
posterior_sums_state_merge(PosteriorSumsState *state, TnpSums *more, int sign)
{
	TnpError	error;

	if (tnp_sums_merge(state->model->model, state->sums, more, sign, &error) != TNP_OK)
		posterior_raise(&error, state->model->name);
}

void
posterior_sums_state_add(PosteriorSumsState *state, const TnpRows *rows, int sign)
{
	TnpError	error;

	if (tnp_sums_add(state->model->model, state->sums, rows, sign, &error) != TNP_OK)
		posterior_raise(&error, state->model->name);
}

PosteriorContext *
posterior_sums_state_value(PosteriorSumsState *state)
{
	return posterior_sums_value(state->model, state->empty, state->sums);
}

Size
posterior_sums_state_size(const PosteriorSumsState *state)
{
	Size		words = tnp_sums_rows(state->sums) == 0 ? 0
		: tnp_sums_words(state->model->model, posterior_basis(state->empty));

	return VARSIZE(state->empty) + words * sizeof(int64);
}

void
posterior_sums_check_basis(PosteriorSumsState *state, Datum argument, MemoryContext memory)
{
	struct varlena *raw = (struct varlena *) DatumGetPointer(argument);
	Size		size = VARSIZE_ANY(raw);
	PosteriorContext *c;

	if (state->given != NULL && VARSIZE_ANY(state->given) == size
		&& memcmp(state->given, raw, size) == 0)
		return;
	c = (PosteriorContext *) PG_DETOAST_DATUM(argument);
	if (!posterior_sums_same(posterior_context_is_sums(c) ? posterior_sums_empty(c) : c,
							 state->empty))
		posterior_sums_bases_differ();
	/* out-of-line bytes that move are compared again, no more */
	if (state->given == NULL && !(VARATT_IS_EXTERNAL(raw) && !VARATT_IS_EXTERNAL_ONDISK(raw)))
	{
		state->given = MemoryContextAllocHuge(memory, size);
		memcpy(state->given, raw, size);
	}
	if ((Pointer) c != DatumGetPointer(argument))
		pfree(c);
}
