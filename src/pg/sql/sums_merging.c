/*
 * sums_merging.c: the aggregates posterior.merge and posterior.context(basis, rows), whose state is
 * a value of type posterior.context: distributed databases move partial states of a type that can
 * be written and read, and no others (docs/shards.md).
 *
 * While it grows, such a state is an expanded object, so that adding to it copies nothing.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/sql/growing_sums.h"

#include "utils/expandeddatum.h"
#include "utils/memutils.h"

typedef struct SumsExpanded
{
	ExpandedObjectHeader header;
	PosteriorSumsState *state;
} SumsExpanded;

static Size
expanded_size(ExpandedObjectHeader *header)
{
	return posterior_sums_state_size(((SumsExpanded *) header)->state);
}

static void
expanded_flatten(ExpandedObjectHeader *header, void *result, Size size)
{
	/* not in the caller's memory: a sort's takes nothing back since PostgreSQL 17 */
	MemoryContext before = MemoryContextSwitchTo(header->eoh_context);
	PosteriorContext *value = posterior_sums_state_value(((SumsExpanded *) header)->state);

	MemoryContextSwitchTo(before);
	Assert(VARSIZE(value) == size);
	memcpy(result, value, size);
	pfree(value);
}

static const ExpandedObjectMethods expanded_methods = {expanded_size, expanded_flatten};

static SumsExpanded *
expanded_make(const PosteriorContext *c, bool with_rows, MemoryContext parent)
{
	MemoryContext own = AllocSetContextCreate(parent, "sums", ALLOCSET_DEFAULT_SIZES);
	SumsExpanded *e = MemoryContextAllocZero(own, sizeof(SumsExpanded));

	EOH_init_header(&e->header, &expanded_methods, own);
	e->state = posterior_sums_state(c, with_rows, own);
	return e;
}

/* A state that may be changed: the argument itself where that is one. */
static SumsExpanded *
expanded_of(Datum argument, MemoryContext memory)
{
	if (VARATT_IS_EXTERNAL_EXPANDED_RW(DatumGetPointer(argument))
		&& DatumGetEOHP(argument)->eoh_methods == &expanded_methods)
		return (SumsExpanded *) DatumGetEOHP(argument);
	return expanded_make((PosteriorContext *) PG_DETOAST_DATUM(argument), true, memory);
}

/* Where states lie: SQL may call these functions outside aggregates, too. */
static MemoryContext
state_memory(FunctionCallInfo fcinfo)
{
	MemoryContext memory;

	return AggCheckCallContext(fcinfo, &memory) ? memory : CurrentMemoryContext;
}

/* sums_merge_into(posterior.context, posterior.context) */
PG_FUNCTION_INFO_V1(posterior_sums_merge_into);
Datum
posterior_sums_merge_into(PG_FUNCTION_ARGS)
{
	MemoryContext memory = state_memory(fcinfo);
	SumsExpanded *e;
	TnpSums    *more;

	if (PG_ARGISNULL(1))
	{
		if (PG_ARGISNULL(0))
			PG_RETURN_NULL();
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	}
	if (PG_ARGISNULL(0))
		e = expanded_make(PG_GETARG_CONTEXT(1), true, memory);
	else
	{
		e = expanded_of(PG_GETARG_DATUM(0), memory);
		more = posterior_sums_state_open(e->state, PG_GETARG_CONTEXT(1));
		posterior_sums_state_merge(e->state, more, 1);
		pfree(more);
	}
	PG_RETURN_DATUM(EOHPGetRWDatum(&e->header));
}

/* Add the rows of a context that has rows. */
static void
add_rows(PosteriorSumsState *state, const PosteriorContext *c)
{
	TnpRows		rows = {.n = c->n, .n_features = c->n_features,
						.x = posterior_context_x(c), .y = posterior_context_y(c),
						.n_targets = posterior_context_targets(c)};

	if (posterior_context_labelled(c))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("sums are of rows whose targets are numbers"),
				 errhint("Of labels keep a context of rows.")));
	if (c->n_features != state->empty->n_features
		|| memcmp(c->kinds, state->empty->kinds, c->n_features) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("the rows have other columns than the basis"),
				 errhint("posterior.features tells the kinds of both.")));
	/* how many targets rows would have that are not there is unknown */
	if (c->n == 0)
		return;
	posterior_sums_check_targets(state, rows.n_targets);
	posterior_sums_state_add(state, &rows, 1);
}

/* sums_rows_into(posterior.context, basis posterior.context, rows posterior.context) */
PG_FUNCTION_INFO_V1(posterior_sums_rows_into);
Datum
posterior_sums_rows_into(PG_FUNCTION_ARGS)
{
	MemoryContext memory = state_memory(fcinfo);
	SumsExpanded *e;
	PosteriorContext *c;

	if (PG_ARGISNULL(1))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("the basis is NULL"),
						errhint("posterior.basis over no rows is NULL.")));
	e = PG_ARGISNULL(0) ? expanded_make(PG_GETARG_CONTEXT(1), false, memory)
		: expanded_of(PG_GETARG_DATUM(0), memory);
	posterior_sums_check_basis(e->state, PG_GETARG_DATUM(1), e->header.eoh_context);
	if (!PG_ARGISNULL(2))
	{
		c = PG_GETARG_CONTEXT(2);
		if (posterior_context_is_sums(c))
		{
			TnpSums    *more = posterior_sums_state_open(e->state, c);

			posterior_sums_state_merge(e->state, more, 1);
			pfree(more);
		}
		else
			add_rows(e->state, c);
	}
	PG_RETURN_DATUM(EOHPGetRWDatum(&e->header));
}

/* sums_flat(posterior.context): the state as any other value */
PG_FUNCTION_INFO_V1(posterior_sums_flat);
Datum
posterior_sums_flat(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(PG_GETARG_CONTEXT(0));
}
