/*
 * cached_context.h: what a cache entry or a call site holds of a context: the engine's encoding, or
 * the rows alone, of which a device has the keys and values.
 *
 * Both are appended to, copied and viewed by these functions, so that the search (lookup.c) need
 * not know which provider will answer.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_CACHED_CONTEXT_H
#define POSTERIOR_CACHED_CONTEXT_H

#include "pg/models/model_cache.h"

#include "engine/inference/request.h"

typedef struct PosteriorCachedContext
{
	TnpEncoding *encoding;		/* NULL: the rows alone */
	bool		plain;			/* rows alone that no device has either */
	bool		kept;			/* in the arena: room is fixed, other processes may read it */
	bool		borrowed;		/* rows belong to another cached context */
	int			n_features,
				n_classes,		/* of the targets, as in TnpRows */
				n_targets;
	int64		n,
				capacity,
				prefix;
	TnpColumnKind *kinds;		/* [n_features] */
	double	   *x;				/* [capacity, n_features] */
	double	   *y;				/* [capacity, n_targets] */
	uint64		serial;			/* under which the server knows the rows: never used for others */
	int64		mirrored;		/* rows that the server has, as far as is known here */
} PosteriorCachedContext;

static inline bool
posterior_cached_on_device(const PosteriorCachedContext *b)
{
	return b->encoding == NULL && !b->plain;
}

/* What holds a context's rows. */
typedef enum PosteriorHolding
{
	POSTERIOR_HOLDS_ENCODING,
	POSTERIOR_HOLDS_DEVICE_ROWS,	/* of which a device has keys and values */
	POSTERIOR_HOLDS_PLAIN_ROWS	/* from which questions take some (near_rows.h) */
} PosteriorHolding;

/*
 * tnp_build_views, or the rows alone: then nothing is asked of the device yet, nor checked. A
 * device computes no model with several views.
 */
TnpStatus	posterior_cached_build(PosteriorModel *model, PosteriorHolding holds,
								   const TnpRows *rows,
								   int64 prefix, int views, PosteriorCachedContext **cached,
								   TnpError *error);

/*
 * tnp_append. Rows that are kept in the arena are on the device when this returns. On failure
 * nothing has changed.
 */
TnpStatus	posterior_cached_append(PosteriorModel *model, PosteriorCachedContext *cached,
									const TnpRows *rows, TnpError *error);

/* tnp_sums_encode_fitted. It has no rows to append to or to copy. keep: in the arena. */
TnpStatus	posterior_cached_of_sums(PosteriorModel *model, const TnpColumnKind *kinds,
									 TnpSums *sums, Size words, const int64 *fit, bool keep,
									 PosteriorCachedContext **cached, TnpError *error);

/* tnp_grow. */
TnpStatus	posterior_cached_grow(PosteriorModel *model, PosteriorCachedContext *cached,
								  const TnpRows *rows, TnpError *error);

/*
 * tnp_revise: of a session's own; *revised is NULL where it is not to be had, as for rows that a
 * device holds.
 */
TnpStatus	posterior_cached_revise(const PosteriorCachedContext *from, const TnpRows *rows,
									int64 prefix, PosteriorCachedContext **revised,
									TnpError *error);

/* Have the device hold all rows; nothing to do for an encoding of the engine's. */
TnpStatus	posterior_cached_settle(PosteriorModel *model, PosteriorCachedContext *cached,
									TnpError *error);

/*
 * tnp_encoding_copy. A copy of all rows that are there takes over what the device has of them: the
 * server goes on appending to it. `from` must not be appended to by others meanwhile.
 */
TnpStatus	posterior_cached_copy(PosteriorModel *model, PosteriorCachedContext *from, int64 n,
								  int64 capacity, bool keep, PosteriorCachedContext **copy,
								  TnpError *error);

/* tnp_encoding_first. */
TnpStatus	posterior_cached_first(PosteriorModel *model, const PosteriorCachedContext *from,
								   int64 n, PosteriorCachedContext **view, TnpError *error);

int64		posterior_cached_rows(const PosteriorCachedContext *cached);
int64		posterior_cached_prefix(const PosteriorCachedContext *cached);
int			posterior_cached_views(const PosteriorCachedContext *cached);
int64		posterior_cached_capacity(const PosteriorCachedContext *cached);
size_t		posterior_cached_bytes(const PosteriorCachedContext *cached);
TnpRows		posterior_cached_view(const PosteriorCachedContext *cached);
void		posterior_cached_free(PosteriorCachedContext *cached);

/* posterior_device_execute about the rows of a cached context that has no encoding here. */
TnpStatus	posterior_cached_on_device_execute(PosteriorModel *model,
											   PosteriorCachedContext *cached,
											   TnpRequest *request, TnpError *error);

#endif							/* POSTERIOR_CACHED_CONTEXT_H */
