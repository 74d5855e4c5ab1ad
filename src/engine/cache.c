/*
 * cache.c: keys and values of rows. One allocation per cache, blocks aligned to 64 bytes, zeroed so that the unused
 * slots of a started block are readable and harmless.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "cache.h"

#include <string.h>

TnpStatus
tnp_cache_make(const TnpEnv *env, int layers, int width, int head_width, int block, int64_t slots, TnpCache *cache, TnpError *error)
{
	int64_t		capacity = tnp_blocks(slots > 0 ? slots : 1, block);
	size_t		pointers = (2 * (size_t) layers * sizeof(float *) + 63) / 64 * 64,
				bytes;
	char	   *at;

	memset(cache, 0, sizeof(*cache));
	if ((size_t) capacity > SIZE_MAX / 64 / sizeof(float) / (size_t) width / (size_t) layers)
		return tnp_no_memory(error);
	bytes = (size_t) capacity * width * sizeof(float);	/* a multiple of 64, as TNP_PANEL floats are 64 bytes */
	/* 64 bytes to align, up to 124 so that vector loads may reach past the last value */
	cache->memory = tnp_alloc_zero(env, pointers + 2 * layers * bytes + 192, 1);
	if (cache->memory == NULL)
		return tnp_no_memory(error);
	at = (char *) cache->memory;
	at += (64 - (uintptr_t) at % 64) % 64;
	cache->k = (float **) at;
	cache->v = cache->k + layers;
	at += pointers;
	for (int l = 0; l < layers; l++)
	{
		cache->k[l] = (float *) at;
		cache->v[l] = (float *) (at + bytes);
		at += 2 * bytes;
	}
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
	status = tnp_cache_make(env, cache->layers, cache->width, cache->head_width, cache->block,
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
	size_t		bytes = (size_t) tnp_blocks(used, from->block) * from->width * sizeof(float);

	for (int l = 0; l < from->layers; l++)
	{
		memcpy(to->k[l], from->k[l], bytes);
		memcpy(to->v[l], from->v[l], bytes);
	}
}

void
tnp_cache_put(TnpCache *cache, int layer, int64_t slot, const float *k, const float *v)
{
	int			d = cache->width,
				width = cache->head_width;

	for (int h = 0; h < d / width; h++)
	{
		float	   *key = cache->k[layer] + tnp_key_at(slot, cache->block, d, h, width, 0);

		for (int f = 0; f < width; f++)
			key[(size_t) f * TNP_PANEL] = k[h * width + f];
		memcpy(cache->v[layer] + tnp_value_at(slot, cache->block, d, h, width), v + h * width, width * sizeof(float));
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
	return 2 * (size_t) cache->layers * (size_t) cache->capacity * cache->width * sizeof(float);
}
