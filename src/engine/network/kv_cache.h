/*
 * kv_cache.h: keys and values of rows, one pair of blocks per layer, in the layout of kernels.h.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_CACHE_H
#define TNP_CACHE_H

#include "engine/base/error.h"
#include "engine/kernels/kernels.h"

/* What a family keeps per layer and slot: keys and values of heads of these widths. */
typedef struct TnpCacheShape
{
	int			layers,
				heads,
				key_width,		/* of a head */
				value_width;
	size_t		number;			/* bytes of a number: as the kernels say, or 8 for sums */
	size_t		extra;			/* bytes of a slot that all layers share */
	int			planes;			/* of values: a key has so many of each head; 0: 1 */
	/*
	 * what each layer keeps besides, of a context alone: `mark` bytes for every mark_slots slots,
	 * whole panels; 0: nothing
	 */
	int			mark_slots;
	size_t		mark;
} TnpCacheShape;

static inline int
tnp_value_planes(const TnpCacheShape *shape)
{
	return shape->planes > 0 ? shape->planes : 1;
}

/* Numbers of a slot's values in one layer. */
static inline int
tnp_value_numbers(const TnpCacheShape *shape)
{
	return shape->heads * tnp_value_planes(shape) * shape->value_width;
}

typedef struct TnpKvCache
{
	TnpCacheShape shape;
	int			block;			/* TNP_BLOCK, or TNP_PANEL for the keys of one chain */
	int64_t		capacity;		/* slots, whole blocks */
	void	  **k,				/* [layers] */
			  **v;
	char	  **marks;			/* [layers], each [capacity / mark_slots, shape.mark] */
	char	   *extra;			/* [slots, shape.extra] */
	void	   *memory;			/* blocks and pointers */
} TnpKvCache;

/* Room for `slots` slots. On failure the cache is zeroed. */
TnpStatus	tnp_cache_make(const TnpEnv *env, const TnpCacheShape *shape, int block, int64_t slots,
						   TnpKvCache *cache, TnpError *error);

/* At least `slots` rows, keeping the first `used`. On failure nothing has changed. */
TnpStatus	tnp_cache_reserve(const TnpEnv *env, int64_t used, int64_t slots, TnpKvCache *cache,
							  TnpError *error);

/*
 * Store one slot's key [heads, key width] and values [planes, heads, value width] of one layer, as
 * numbers of the cache's size. False if one of them is too large for attention or for such numbers,
 * or is not finite: what would be read then is not what was stored.
 */
bool		tnp_cache_put(const TnpKernels *kernels, TnpKvCache *cache, int layer, int64_t slot,
						  const float *k, const float *v);

/* The same of n slots from `slot` on: k and v are so many. */
bool		tnp_cache_put_rows(const TnpKernels *kernels, TnpKvCache *cache, int layer,
							   int64_t slot, int n, const float *k, const float *v);

/* Copy the first `used` slots of `from` to a cache of the same shape that has room for them. */
TnpStatus	tnp_cache_copy(const TnpEnv *env, const TnpKvCache *from, int64_t used, TnpKvCache *to,
						   TnpError *error);

void		tnp_cache_free(const TnpEnv *env, TnpKvCache *cache);
size_t		tnp_cache_bytes(const TnpKvCache *cache);

#endif							/* TNP_CACHE_H */
