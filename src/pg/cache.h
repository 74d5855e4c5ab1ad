/*
 * cache.h: encodings of context values that a session keeps.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_CACHE_H
#define POSTERIOR_CACHE_H

#include "context.h"
#include "models.h"

/* An encoded context. It stays while it is held; afterwards as long as the cache has room for it. */
typedef struct PosteriorEncoding
{
	PosteriorModel *model;
	TnpEncoding *encoding;
	PosteriorContext *context;	/* the very bytes that were encoded, or NULL */
	int			n_features;
	const uint8 *classes;		/* [n_features] PosteriorClass */
	uint32		hash;			/* of these bytes */
	size_t		bytes;
	int			holds;
	bool		shared;			/* in the list, to be found by others */
	struct PosteriorEncoding *next;
} PosteriorEncoding;

/* The encoding of a context under a model, from the cache or made now; held for the caller. Raises what the engine reports. */
PosteriorEncoding *posterior_encoding_hold(PosteriorModel *model, const PosteriorContext *context);

/* The same, made now whatever the cache holds, and forgotten when released. */
PosteriorEncoding *posterior_encoding_fresh(PosteriorModel *model, const PosteriorContext *context);

/* Another encoding of the rows of this one, made now. */
PosteriorEncoding *posterior_encoding_again(const PosteriorEncoding *e);

void		posterior_encoding_release(PosteriorEncoding *e);

#endif							/* POSTERIOR_CACHE_H */
