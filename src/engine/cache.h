/*
 * cache.h: keys and values of rows, one pair of blocks per layer, in the layout of kernels.h.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_CACHE_H
#define TNP_CACHE_H

#include "error.h"
#include "kernels.h"

typedef struct TnpCache
{
	int			layers,
				width,
				head_width,
				block;			/* TNP_BLOCK, or TNP_PANEL for the keys of one chain */
	int64_t		capacity;		/* slots, whole blocks */
	size_t		number;			/* bytes of a number, as the kernels say */
	void	  **k,				/* [layers] */
			  **v;
	void	   *memory;			/* blocks and pointers */
} TnpCache;

/* Room for `slots` rows with numbers of the kernels' size. On failure the cache is zeroed. */
TnpStatus	tnp_cache_make(const TnpEnv *env, size_t number, int layers, int width, int head_width, int block, int64_t slots, TnpCache *cache,
						   TnpError *error);

/* At least `slots` rows, keeping the first `used`. On failure nothing has changed. */
TnpStatus	tnp_cache_reserve(const TnpEnv *env, int64_t used, int64_t slots, TnpCache *cache, TnpError *error);

/* Store one row's key [width] and value [width] of one layer, as numbers of these kernels. */
void		tnp_cache_put(const TnpKernels *kernels, TnpCache *cache, int layer, int64_t slot, const float *k, const float *v);

/* Copy the first `used` slots of `from` to a cache of the same shape that has room for them. */
void		tnp_cache_copy(const TnpCache *from, int64_t used, TnpCache *to);

void		tnp_cache_free(const TnpEnv *env, TnpCache *cache);
size_t		tnp_cache_bytes(const TnpCache *cache);

#endif							/* TNP_CACHE_H */
