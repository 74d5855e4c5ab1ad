/*
 * sums_handle.h: contexts with sums under a model.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_SUMS_HANDLE_H
#define POSTERIOR_SUMS_HANDLE_H

#include "pg/cache/handle.h"
#include "pg/cache/solved_sums.h"
#include "pg/types/context_sums.h"

/*
 * The engine's sums of a value, in a memory context: its rows, or none under its basis. Raises
 * unless the value has sums, and they and the basis are of this model.
 */
TnpSums    *posterior_sums_open(const PosteriorModel *model, const PosteriorContext *context,
								bool with_rows, MemoryContext memory);

/* A value of these sums, in the current memory context. */
PosteriorContext *posterior_sums_value(const PosteriorModel *model,
									   const PosteriorContext *like, TnpSums *sums);

/*
 * The encoding of a context with sums, which nothing else shares; the CPU answers. With a fit
 * (tnp_fit_words), or NULL. Raises what the engine reports.
 */
PosteriorContextHandle *posterior_handle_of_sums(PosteriorModel *model,
												 const PosteriorContext *context,
												 const bytea *fit);

/* The same of sums that are open, of a context like this one. */
PosteriorContextHandle *posterior_handle_of_open_sums(PosteriorModel *model,
													  const PosteriorContext *like,
													  TnpSums *sums, const bytea *fit);

/*
 * The encoding of a key and a content that is in the arena, or NULL; and make one there, or NULL
 * where it cannot be kept. Of a context like this one.
 */
PosteriorContextHandle *posterior_handle_find_solved(PosteriorModel *model,
													 const PosteriorContext *like,
													 const PosteriorSolvedKey *key,
													 PosteriorSolvedContent content);
PosteriorContextHandle *posterior_handle_make_solved(PosteriorModel *model,
													 const PosteriorContext *like, TnpSums *sums,
													 const bytea *fit,
													 const PosteriorSolvedKey *key,
													 PosteriorSolvedContent content);

/* The encoding of a value with sums: in the arena if it is to be kept and can be. */
PosteriorContextHandle *posterior_handle_of_value(PosteriorModel *model,
												  const PosteriorContext *context, bool keep);

/* A handle of the same encoding, which `e` has made, and which ends with the last of them. */
PosteriorContextHandle *posterior_handle_share(PosteriorContextHandle *e);

/* Whether two contexts with sums have one basis. */
bool		posterior_same_basis(const PosteriorContext *a, const PosteriorContext *b);

#endif							/* POSTERIOR_SUMS_HANDLE_H */
