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

TnpStatus
tnp_cache_make(const TnpEnv *env, size_t number, int layers, int width, int head_width, int block,
			   int64_t slots, TnpKvCache *cache, TnpError *error)
{
	int64_t		capacity = tnp_blocks(slots > 0 ? slots : 1, block);
	size_t		pointers = (2 * (size_t) layers * sizeof(void *) + 63) / 64 * 64,
				bytes,
				all;
	char	   *at;
	TnpStatus	status;

	memset(cache, 0, sizeof(*cache));
	if ((size_t) capacity > SIZE_MAX / 64 / sizeof(float) / (size_t) width / (size_t) layers)
		return tnp_no_memory(error);
	bytes = ((size_t) capacity * width * number + 63) / 64 * 64;
	/* 64 bytes to align, up to 124 so that vector loads may reach past the last value */
	all = pointers + 2 * layers * bytes + 192;
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
	at += pointers;
	for (int l = 0; l < layers; l++)
	{
		cache->k[l] = at;
		cache->v[l] = at + bytes;
		at += 2 * bytes;
	}
	cache->number = number;
	cache->layers = layers;
	cache->width = width;
	cache->head_width = head_width;
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
	status = tnp_cache_make(env, cache->number, cache->layers, cache->width, cache->head_width,
							cache->block,
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
	size_t		bytes = (size_t) tnp_blocks(used, from->block) * from->width * from->number;
	TnpStatus	status = TNP_OK;

	for (int l = 0; status == TNP_OK && l < from->layers; l++)
	{
		status = tnp_copy(env, to->k[l], from->k[l], bytes, error);
		if (status == TNP_OK)
			status = tnp_copy(env, to->v[l], from->v[l], bytes, error);
	}
	return status;
}

/* Store a head's key and value of floats. */
static void
put_floats(int width, const float *k, const float *v, float *key, float *value)
{
	for (int f = 0; f < width; f++)
		key[(size_t) f * TNP_PANEL] = k[f];
	memcpy(value, v, width * sizeof(float));
}

/* The same as halves. */
static void
put_halves(const TnpKernels *kernels, int width, const float *k, const float *v, uint16_t *key,
		   uint16_t *value)
{
	uint16_t	half[PIECE];

	for (int f = 0; f < width; f += PIECE)
	{
		int			n = width - f < PIECE ? width - f : PIECE;

		kernels->narrow(n, k + f, half);
		for (int i = 0; i < n; i++)
			key[(size_t) (f + i) * TNP_PANEL] = half[i];
	}
	kernels->narrow(width, v, value);
}

/* Whether all of n numbers are within a limit; NaN is not. */
static bool
all_within(int n, const float *x, float limit)
{
	int			beyond = 0;

	for (int i = 0; i < n; i++)
		beyond |= !(fabsf(x[i]) <= limit);
	return beyond == 0;
}

bool
tnp_cache_put(const TnpKernels *kernels, TnpKvCache *cache, int layer, int64_t slot, const float *k,
			  const float *v)
{
	int			d = cache->width,
				width = cache->head_width;
	bool		halves = kernels->narrow != NULL,
				fits = all_within(d, k, halves ? TNP_LARGEST_HALF : TNP_LARGEST_KEY)
				&& all_within(d, v, halves ? TNP_LARGEST_HALF : FLT_MAX);

	for (int h = 0; h < d / width; h++, k += width, v += width)
	{
		char	   *key = (char *) cache->k[layer] + tnp_key_at(slot, cache->block, d, h, width,
																0) * cache->number,
				   *value = (char *) cache->v[layer] + tnp_value_at(slot, cache->block, d, h,
				   width) * cache->number;

		if (!halves)
			put_floats(width, k, v, (float *) key, (float *) value);
		else
			put_halves(kernels, width, k, v, (uint16_t *) key, (uint16_t *) value);
	}
	return fits;
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
	return 2 * (size_t) cache->layers * (size_t) cache->capacity * cache->width * cache->number;
}
