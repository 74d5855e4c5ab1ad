/*
 * growing_sums.h: sums of rows while statements add to them and take away (docs/sums.md, "In SQL").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_GROWING_SUMS_H
#define POSTERIOR_GROWING_SUMS_H

#include "pg/cache/sums_handle.h"
#include "pg/models/model_cache.h"

typedef struct PosteriorSumsState
{
	PosteriorModel *model;
	PosteriorContext *empty;	/* a value without rows, of the basis */
	PosteriorRows *row;			/* the one that is being read; NULL: none has been */
	struct varlena *given;		/* the basis as the first row gave it */
	TnpSums    *sums;
	int			untold;			/* rows that posterior.stat_progress has not been told of */
} PosteriorSumsState;

/* The memory of an aggregate's states; raises where the caller is none. */
MemoryContext posterior_sums_memory(FunctionCallInfo fcinfo);

/*
 * A state with the rows of a value, or with none under its basis, in a memory context. Raises
 * unless the value has sums of posterior.model.
 */
PosteriorSumsState *posterior_sums_state(const PosteriorContext *c, bool with_rows,
										 MemoryContext memory);

/* The sums of a value under the basis and the model of a state, in the current memory context. */
TnpSums    *posterior_sums_state_open(const PosteriorSumsState *state, const PosteriorContext *c);

/* Add `sign` times the rows of sums, or of a view. Raises what the engine reports. */
void		posterior_sums_state_merge(PosteriorSumsState *state, TnpSums *more, int sign);
void		posterior_sums_state_add(PosteriorSumsState *state, const TnpRows *rows, int sign);

/* Its value, in the current memory context, and the bytes of that. */
PosteriorContext *posterior_sums_state_value(PosteriorSumsState *state);
Size		posterior_sums_state_size(const PosteriorSumsState *state);

/*
 * Raise unless an argument is the basis of a state. Nearly always all rows of an aggregate give the
 * same bytes; others are compared as values.
 */
void		posterior_sums_check_basis(PosteriorSumsState *state, Datum argument,
									   MemoryContext memory);

/* Raise unless rows of n targets are those of the basis of a state. */
void		posterior_sums_check_targets(const PosteriorSumsState *state, int n);

/* A value without rows that has the basis of a value with sums. */
PosteriorContext *posterior_sums_empty(const PosteriorContext *c);

/* Whether two values without rows are equal. */
bool		posterior_sums_same(const PosteriorContext *a, const PosteriorContext *b);

pg_noreturn extern void posterior_sums_bases_differ(void);

#endif							/* POSTERIOR_GROWING_SUMS_H */
