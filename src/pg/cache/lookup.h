/*
 * lookup.h: the encoding of given rows: from the cache as far as it reaches, else made.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_LOOKUP_H
#define POSTERIOR_LOOKUP_H

#include "pg/cache/handle.h"
#include "pg/cache/lookup_outcome.h"
#include "pg/types/context_value.h"

typedef enum PosteriorCacheMode
{
	POSTERIOR_CACHE_ON,
	POSTERIOR_CACHE_OFF,
	POSTERIOR_CACHE_VERIFY
} PosteriorCacheMode;

extern int	posterior_cache_mode;	/* posterior.cache */

/* What an encoding is wanted of. */
typedef struct PosteriorLookup
{
	PosteriorModel *model;
	pg_uuid_t	context;		/* version of a named context, or zeros */
	/* that may find it; InvalidOid: all that may read the named context */
	Oid			role;
	const uint8 *kinds;		/* [rows.n_features] PosteriorColumnKind */
	PosteriorLabelList labels;	/* of rows.n_classes classes, or none */
	TnpRows		rows;
	int64		prefix;
	int			views;			/* of the table (tnp_build_views); 0: posterior.estimators */
	bool		publish;		/* other sessions may use what is encoded now */
	bool		grows;			/* more rows are likely: leave room for them */
	bool		plain;			/* the rows alone are wanted, not encoded; without a prefix */
} PosteriorLookup;

/*
 * The encoding of these rows, from the cache as far as it reaches, and how it was come by. Raises
 * what engine and device report.
 */
PosteriorContextHandle *posterior_handle_lookup(const PosteriorLookup *lookup,
												PosteriorLookupOutcome *outcome);

/*
 * The encoding of these rows, made now whatever the cache holds, and freed when it is released. For
 * a device it is made by the first request.
 */
PosteriorContextHandle *posterior_handle_build_uncached(const PosteriorLookup *lookup);

/*
 * The encoding of a context value's rows, all of which belong to the prefix; from the cache unless
 * posterior.cache is off.
 */
PosteriorContextHandle *posterior_handle_acquire(PosteriorModel *model,
												 const PosteriorContext *context);

/*
 * The encoding of a handle's rows for the other provider; released with the handle. NULL if the
 * device has failed and the CPU may answer.
 */
PosteriorContextHandle *posterior_handle_other_provider(PosteriorContextHandle *e);

/* Another encoding of a handle's rows, made now. */
PosteriorContextHandle *posterior_handle_rebuild(const PosteriorContextHandle *e);

#endif							/* POSTERIOR_LOOKUP_H */
