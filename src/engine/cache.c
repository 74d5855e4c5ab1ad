/*
 * cache.c: keys and values of rows. One allocation per cache, blocks aligned to 64 bytes, zeroed so that the unused
 * slots of a started block are readable and harmless.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "cache.h"

#include <string.h>

#define PIECE 64				/* numbers that are narrowed at a time */

TnpStatus
tnp_cache_make(const TnpEnv *env, size_t number, int layers, int width, int head_width, int block, int64_t slots, TnpCache *cache, TnpError *error)
{
	int64_t		capacity = tnp_blocks(slots > 0 ? slots : 1, block);
	size_t		pointers = (2 * (size_t) layers * sizeof(void *) + 63) / 64 * 64,
				bytes;
	char	   *at;

	memset(cache, 0, sizeof(*cache));
	if ((size_t) capacity > SIZE_MAX / 64 / sizeof(float) / (size_t) width / (size_t) layers)
		return tnp_no_memory(error);
	bytes = ((size_t) capacity * width * number + 63) / 64 * 64;
	/* 64 bytes to align, up to 124 so that vector loads may reach past the last value */
	cache->memory = tnp_alloc_zero(env, pointers + 2 * layers * bytes + 192, 1);
	if (cache->memory == NULL)
		return tnp_no_memory(error);
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
tnp_cache_reserve(const TnpEnv *env, int64_t used, int64_t slots, TnpCache *cache, TnpError *error)
{
	TnpCache	larger;
	TnpStatus	status;

	if (slots <= cache->capacity)
		return TNP_OK;
	status = tnp_cache_make(env, cache->number, cache->layers, cache->width, cache->head_width, cache->block,
							slots > 2 * cache->capacity ? slots : 2 * cache->capacity, &larger, error);
	if (status != TNP_OK)
		return status;
	tnp_cache_copy(cache, used, &larger);
	tnp_cache_free(env, cache);
	*cache = larger;
	return TNP_OK;
}

void
tnp_cache_copy(const TnpCache *from, int64_t used, TnpCache *to)
{
	size_t		bytes = (size_t) tnp_blocks(used, from->block) * from->width * from->number;

	for (int l = 0; l < from->layers; l++)
	{
		memcpy(to->k[l], from->k[l], bytes);
		memcpy(to->v[l], from->v[l], bytes);
	}
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
put_halves(const TnpKernels *kernels, int width, const float *k, const float *v, uint16_t *key, uint16_t *value)
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

void
tnp_cache_put(const TnpKernels *kernels, TnpCache *cache, int layer, int64_t slot, const float *k, const float *v)
{
	int			d = cache->width,
				width = cache->head_width;

	for (int h = 0; h < d / width; h++, k += width, v += width)
	{
		char	   *key = (char *) cache->k[layer] + tnp_key_at(slot, cache->block, d, h, width, 0) * cache->number,
				   *value = (char *) cache->v[layer] + tnp_value_at(slot, cache->block, d, h, width) * cache->number;

		if (kernels->narrow == NULL)
			put_floats(width, k, v, (float *) key, (float *) value);
		else
			put_halves(kernels, width, k, v, (uint16_t *) key, (uint16_t *) value);
	}
}

void
tnp_cache_free(const TnpEnv *env, TnpCache *cache)
{
	tnp_free(env, cache->memory);
	memset(cache, 0, sizeof(*cache));
}

size_t
tnp_cache_bytes(const TnpCache *cache)
{
	return 2 * (size_t) cache->layers * (size_t) cache->capacity * cache->width * cache->number;
}
