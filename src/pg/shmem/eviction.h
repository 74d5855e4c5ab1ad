/*
 * eviction.h: makes room in the arena by freeing what was used least recently, whatever it is.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_EVICTION_H
#define POSTERIOR_EVICTION_H

#include "pg/shmem/arena.h"

/*
 * Have what this process allocates until posterior_arena_done() lie in one stretch of `bytes`,
 * evicting what lies there (blocks.h), if `evict` allows it. False where no stretch is to be had,
 * since what is in use lies in between: then nothing has been evicted. What stays long asks for
 * POSTERIOR_END_LOW: it gets the lowest stretch, and what does not last makes way for it.
 *
 * Without preloading: make so many bytes free below posterior.cache_size, or false.
 */
bool		posterior_reserve(Size bytes, PosteriorEnd end, bool evict);

/*
 * Without preloading, where the process itself has no memory: evict pieces of `bytes` in all, even
 * if the cache's size allows for more. False if there was nothing to evict. Callers try this
 * POSTERIOR_EVICTIONS times, for more each time.
 */
#define POSTERIOR_EVICTIONS 6
bool		posterior_evict_own(Size bytes);

#endif							/* POSTERIOR_EVICTION_H */
