/*
 * eviction.h: makes room in the arena by freeing what was used least recently, whatever it is.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_EVICTION_H
#define POSTERIOR_EVICTION_H

#include "pg/base/compat.h"

/* Make `bytes` free below posterior.cache_size by eviction; false where that cannot be done. */
bool		posterior_make_room(Size bytes);

/*
 * Evict pieces of `bytes` in all, even if the cache's size allows for more: for an arena that has
 * no piece of a size although enough is free, because what is free lies in small pieces or in pages
 * for other sizes. False if there was nothing to evict. Callers try this POSTERIOR_EVICTIONS times,
 * for more each time.
 */
#define POSTERIOR_EVICTIONS 6
bool		posterior_evict(Size bytes);

#endif							/* POSTERIOR_EVICTION_H */
