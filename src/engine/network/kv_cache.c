/*
 * kv_cache.c: keys and values of rows. One allocation per cache, blocks aligned to 64 bytes, zeroed
 * so that the unused slots of a started block are readable and harmless.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/network/kv_cache.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define PIECE 64				/* numbers that are narrowed at a time */

/* Bytes of the keys and of the values of one slot in one layer. */
static size_t
shape_key_bytes(const TnpCacheShape *s)
{
	return (size_t) s->heads * s->key_width * s->number;
}

static size_t
shape_value_bytes(const TnpCacheShape *s)
{
	return (size_t) tnp_value_numbers(s) * s->number;
}

/* Marks of `slots` slots in one layer of a cache with such blocks: chains have none. */
static size_t
shape_marks(const TnpCacheShape *s, int block, int64_t slots)
{
	return s->mark_slots > 0 && block == TNP_BLOCK ? (size_t) (slots / s->mark_slots) : 0;
}

TnpStatus
tnp_cache_make(const TnpEnv *env, const TnpCacheShape *shape, int block, int64_t slots,
			   TnpKvCache *cache, TnpError *error)
{
	int64_t		capacity = tnp_blocks(slots > 0 ? slots : 1, block);
	size_t		layers = (size_t) shape->layers,
				slot = shape_key_bytes(shape) + shape_value_bytes(shape),
				pointers = (3 * layers * sizeof(void *) + 63) / 64 * 64,
				mark_share = shape->mark_slots > 0 ? shape->mark / shape->mark_slots + 1 : 0,
				key_bytes,
				value_bytes,
				mark_bytes,
				all;
	char	   *at;
	TnpStatus	status;

	memset(cache, 0, sizeof(*cache));
	if ((size_t) capacity > SIZE_MAX / 64 / (slot + shape->extra + mark_share) / layers)
		return tnp_no_memory(error);
	key_bytes = ((size_t) capacity * shape_key_bytes(shape) + 63) / 64 * 64;
	value_bytes = ((size_t) capacity * shape_value_bytes(shape) + 63) / 64 * 64;
	mark_bytes = (shape_marks(shape, block, capacity) * shape->mark + 63) / 64 * 64;
	/* 64 bytes to align, up to 124 so that vector loads may reach past the last value */
	all = pointers + layers * (key_bytes + value_bytes + mark_bytes)
		+ (size_t) capacity * shape->extra + 192;
	cache->memory = tnp_alloc(env, all, 1);
	if (cache->memory == NULL)
		return tnp_no_memory(error);
	status = tnp_clear(env, cache->memory, all, error);
	if (status != TNP_OK)
	{
		tnp_cache_free(env, cache);
		return status;
	}
	at = (char *) cache->memory;
	at += (64 - (uintptr_t) at % 64) % 64;
	cache->k = (void **) at;
	cache->v = cache->k + layers;
	cache->marks = (char **) (cache->v + layers);
	at += pointers;
	for (size_t l = 0; l < layers; l++)
	{
		cache->k[l] = at;
		cache->v[l] = at + key_bytes;
		cache->marks[l] = at + key_bytes + value_bytes;
		at += key_bytes + value_bytes + mark_bytes;
	}
	cache->extra = at;
	cache->shape = *shape;
	cache->block = block;
	cache->capacity = capacity;
	return TNP_OK;
}

TnpStatus
tnp_cache_reserve(const TnpEnv *env, int64_t used, int64_t slots, TnpKvCache *cache,
				  TnpError *error)
{
	TnpKvCache	larger;
	TnpStatus	status;

	if (slots <= cache->capacity)
		return TNP_OK;
	status = tnp_cache_make(env, &cache->shape, cache->block,
							slots > 2 * cache->capacity ? slots : 2 * cache->capacity, &larger,
							error);
	if (status != TNP_OK)
		return status;
	status = tnp_cache_copy(env, cache, used, &larger, error);
	if (status != TNP_OK)
	{
		tnp_cache_free(env, &larger);
		return status;
	}
	tnp_cache_free(env, cache);
	*cache = larger;
	return TNP_OK;
}

TnpStatus
tnp_cache_copy(const TnpEnv *env, const TnpKvCache *from, int64_t used, TnpKvCache *to,
			   TnpError *error)
{
	size_t		slots = (size_t) tnp_blocks(used, from->block);
	TnpStatus	status = TNP_OK;

	for (int l = 0; status == TNP_OK && l < from->shape.layers; l++)
	{
		status = tnp_copy(env, to->k[l], from->k[l], slots * shape_key_bytes(&from->shape), error);
		if (status == TNP_OK)
			status = tnp_copy(env, to->v[l], from->v[l], slots * shape_value_bytes(&from->shape),
							  error);
		if (status == TNP_OK && from->shape.mark_slots > 0)
			status = tnp_copy(env, to->marks[l], from->marks[l],
							  shape_marks(&from->shape, from->block, used) * from->shape.mark,
							  error);
	}
	if (status == TNP_OK && from->shape.extra > 0)
		status = tnp_copy(env, to->extra, from->extra, slots * from->shape.extra, error);
	return status;
}

/* Store a head's key of floats, feature-major inside its panel; as halves where they are wanted. */
static void
put_key(const TnpKernels *kernels, bool halves, int width, const float *k, void *to)
{
	uint16_t	half[PIECE];

	if (!halves)
	{
		for (int f = 0; f < width; f++)
			((float *) to)[(size_t) f * TNP_PANEL] = k[f];
		return;
	}
	for (int f = 0; f < width; f += PIECE)
	{
		int			n = width - f < PIECE ? width - f : PIECE;

		kernels->narrow(n, k + f, half);
		for (int i = 0; i < n; i++)
			((uint16_t *) to)[(size_t) (f + i) * TNP_PANEL] = half[i];
	}
}

static void
put_value(const TnpKernels *kernels, bool halves, int width, const float *v, void *to)
{
	if (!halves)
		memcpy(to, v, width * sizeof(float));
	else
		kernels->narrow(width, v, to);
}

/* Whether all of n numbers are within a limit; NaN is not. */
static bool
all_within(int n, const float *x, float limit)
{
	int			beyond[8] = {0};	/* a compiler makes vectors of eight at a time */
	int			i = 0;

	for (; i + 8 <= n; i += 8)
		for (int j = 0; j < 8; j++)
			beyond[j] |= !(fabsf(x[i + j]) <= limit);
	for (; i < n; i++)
		beyond[0] |= !(fabsf(x[i]) <= limit);
	for (int j = 1; j < 8; j++)
		beyond[0] |= beyond[j];
	return beyond[0] == 0;
}

bool
tnp_cache_put(const TnpKernels *kernels, TnpKvCache *cache, int layer, int64_t slot, const float *k,
			  const float *v)
{
	const TnpCacheShape *s = &cache->shape;
	int			keys = s->heads * s->key_width,
				planes = tnp_value_planes(s),
				values = tnp_value_numbers(s);
	bool		halves = s->number == sizeof(uint16_t),
				fits = all_within(keys, k, halves ? TNP_LARGEST_HALF : TNP_LARGEST_KEY)
		&& all_within(values, v, halves ? TNP_LARGEST_HALF : FLT_MAX);

	for (int h = 0; h < s->heads; h++)
	{
		size_t		key = tnp_key_at(slot, cache->block, keys, h, s->key_width, 0);

		put_key(kernels, halves, s->key_width, k + h * s->key_width,
				(char *) cache->k[layer] + key * s->number);
		for (int p = 0; p < planes; p++)
			put_value(kernels, halves, s->value_width, v + (p * s->heads + h) * s->value_width,
					  (char *) cache->v[layer]
					  + tnp_value_at(slot, cache->block, values, h * planes + p, s->value_width)
					  * s->number);
	}
	return fits;
}

/*
 * Keys of `run` slots of a panel, which are `apart` floats from one slot to the next: a line of the
 * panel is written at once.
 */
static inline void
put_keys(int run, int width, const float *k, size_t apart, float *to)
{
	for (int f = 0; f < width; f++)
		for (int s = 0; s < run; s++)
			to[f * TNP_PANEL + s] = k[s * apart + f];
}

bool
tnp_cache_put_rows(const TnpKernels *kernels, TnpKvCache *cache, int layer, int64_t slot, int n,
				   const float *k, const float *v)
{
	const TnpCacheShape *s = &cache->shape;
	int			keys = s->heads * s->key_width,
				planes = tnp_value_planes(s),
				values = tnp_value_numbers(s);
	bool		fits = true;

	if (s->number == sizeof(uint16_t))
	{
		for (int i = 0; i < n; i++)
			fits &= tnp_cache_put(kernels, cache, layer, slot + i, k + (size_t) i * keys,
								  v + (size_t) i * values);
		return fits;
	}
	for (int i = 0, run; i < n; i += run)
	{
		const float *first = k + (size_t) i * keys;

		run = TNP_PANEL - (int) ((slot + i) % TNP_PANEL);
		run = run < n - i ? run : n - i;
		for (int h = 0; h < s->heads; h++)
		{
			float	   *to = (float *) cache->k[layer]
				+ tnp_key_at(slot + i, cache->block, keys, h, s->key_width, 0);

			if (run == TNP_PANEL)
				put_keys(TNP_PANEL, s->key_width, first + h * s->key_width, keys, to);
			else
				put_keys(run, s->key_width, first + h * s->key_width, keys, to);
		}
	}
	for (int i = 0; i < n; i++)
		for (int h = 0; h < s->heads; h++)
			for (int p = 0; p < planes; p++)
				memcpy((float *) cache->v[layer]
					   + tnp_value_at(slot + i, cache->block, values, h * planes + p,
									  s->value_width),
					   v + (size_t) i * values + (p * s->heads + h) * s->value_width,
					   s->value_width * sizeof(float));
	return all_within(n * keys, k, TNP_LARGEST_KEY) && all_within(n * values, v, FLT_MAX);
}

void
tnp_cache_free(const TnpEnv *env, TnpKvCache *cache)
{
	tnp_free(env, cache->memory);
	memset(cache, 0, sizeof(*cache));
}

size_t
tnp_cache_bytes(const TnpKvCache *cache)
{
	return (size_t) cache->shape.layers * (size_t) cache->capacity
		* (shape_key_bytes(&cache->shape) + shape_value_bytes(&cache->shape))
		+ (size_t) cache->capacity * cache->shape.extra
		+ cache->shape.layers * shape_marks(&cache->shape, cache->block, cache->capacity)
		* cache->shape.mark;
}
