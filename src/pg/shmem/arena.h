/*
 * arena.h: the memory of encodings and models that all sessions share, and a reserve in it.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_ARENA_H
#define POSTERIOR_ARENA_H

#include "pg/shmem/blocks.h"
#include "pg/shmem/segment.h"

extern PosteriorSharedPart posterior_arena_part;

/* Memory of the arena, aligned to 16 bytes, or NULL. Any process may free another one's. */
void	   *posterior_arena_alloc(Size size);
void		posterior_arena_free(void *pointer);

/*
 * What is allocated until posterior_arena_done() belongs to this piece of a part: where nothing
 * uses the piece, eviction may free all of it. So does the piece itself where it has been allocated
 * alone (`alone`); it is freed last.
 */
void		posterior_arena_own(const PosteriorSharedPart *part, void *piece, bool alone);

/* Give back what is left of a reserve (posterior_reserve in eviction.h). */
void		posterior_arena_done(void);

/* ---- for eviction.c: in shared memory only --------------------------------------------------- */

/* The blocks, locked, until they are let go of: allocating and freeing are possible meanwhile. */
PosteriorBlocks *posterior_arena_hold(void);
void		posterior_arena_let_go(void);

/* What is allocated from now on comes from this block, or from such an end of others. */
void		posterior_arena_reserve(PosteriorBlock *block, PosteriorEnd end);

#endif							/* POSTERIOR_ARENA_H */
