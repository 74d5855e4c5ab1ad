/*
 * lookup.h: an encoding that a call site holds: all of a run in the cache, its first rows, or one
 * of its own.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_ENCODING_H
#define POSTERIOR_ENCODING_H

#include "pg/types/context_value.h"
#include "pg/models/model_cache.h"
#include "pg/cache/entries.h"
#include "pg/cache/lookup_outcome.h"

typedef enum PosteriorCacheMode
{
	POSTERIOR_CACHE_ON,
	POSTERIOR_CACHE_OFF,
	POSTERIOR_CACHE_VERIFY
} PosteriorCacheMode;

extern int	posterior_cache_mode;	/* posterior.cache */

/* Who answers. */
typedef enum PosteriorProvider
{
	POSTERIOR_BY_RULE,
	POSTERIOR_BY_CPU,
	POSTERIOR_BY_DEVICE
} PosteriorProvider;

/* It stays, and so does its model, while it is held. */
typedef struct PosteriorContextHandle
{
	dlist_node	node;			/* among all that this backend holds */
	PosteriorModel *model;
	PosteriorCachedContext *cached;		/* a view of the run, or its own */
	PosteriorCacheEntry *entry;			/* pinned, or NULL */
	/* of the same rows, for the other provider, or NULL */
	struct PosteriorContextHandle *other_provider;
	PosteriorProvider only,		/* who shall answer, whatever the rule says (execute.c) */
				by;				/* who answered last */
	/* work of small questions that a device has answered, where no run counts it */
	double		small;
	/*
	 * rows that were there for one question only, which has been answered: it is of no use for
	 * another
	 */
	bool		transient;
	int			n_features;
	uint8	   *classes;		/* [n_features] PosteriorColumnKind */
	PosteriorLabelList labels;	/* of its classes, or none */
} PosteriorContextHandle;

/* What an encoding is asked for. */
typedef struct PosteriorLookup
{
	PosteriorModel *model;
	pg_uuid_t	context;		/* version of a named context, or zeros */
	/* who may find it, or InvalidOid: whoever may read the named context */
	Oid			role;
	const uint8 *classes;		/* [rows.n_features] PosteriorColumnKind */
	PosteriorLabelList labels;	/* of rows.n_classes classes, or none */
	TnpRows		rows;
	int64		prefix;
	bool		publish;		/* others may use what is encoded now */
	bool		grows;			/* room for more rows is worth having */
} PosteriorLookup;

/*
 * The encoding of these rows, from the cache as far as it reaches. Raises what the engine reports.
 */
PosteriorContextHandle *posterior_handle_lookup(const PosteriorLookup *lookup,
												PosteriorLookupOutcome *outcome);

/* The encoding of a run's first n rows; takes over the caller's pin, also when it raises. */
PosteriorContextHandle *
posterior_handle_of_entry(PosteriorModel *model, int n_features, const uint8 *classes,
						  const PosteriorLabelList *labels, PosteriorCacheEntry *entry, int64 n);

/*
 * A question that is known while its encoding is looked for. If rows have to be appended to it,
 * both can be done at once.
 */
typedef struct PosteriorPendingRequest
{
	struct TnpRequest *request;
	bool		answered;
} PosteriorPendingRequest;

/*
 * The encoding of the first n rows of a pinned run and `more` after them, if that takes nothing but
 * appending to the run: NULL if not. The pin is taken over if the answer is not NULL. The question,
 * or NULL, may have been answered then. The last `own` rows are for this session alone: they are
 * not in the encoding, but if the question has been answered, it was with them (lacks).
 */
PosteriorContextHandle *
posterior_handle_extend(PosteriorModel *model, const uint8 *classes,
						const PosteriorLabelList *labels, PosteriorCacheEntry *entry, int64 n,
						const TnpRows *more, int64 own, PosteriorPendingRequest *question);

/*
 * The encoding of the rows of e and `more` after them, for this session alone. Takes over e. The
 * question, or NULL, may have been answered then; if it has, the rows were in the run's free room
 * only meanwhile (lacks), else they are in a copy of it.
 */
PosteriorContextHandle *posterior_handle_with_own_rows(PosteriorContextHandle *e,
													   const TnpRows *more,
													   PosteriorPendingRequest *question);

/*
 * The encoding of these rows, made now whatever the cache holds, and forgotten when released. For a
 * device it is made when it is asked.
 */
PosteriorContextHandle *posterior_handle_build_uncached(const PosteriorLookup *lookup);

/* The same for the rows of a context value, of which all belong to the prefix. */
PosteriorContextHandle *posterior_handle_acquire(PosteriorModel *model,
												 const PosteriorContext *context);

/*
 * The encoding of the same rows for the other provider, held by this one. NULL if the device has
 * failed and the CPU may answer.
 */
PosteriorContextHandle *posterior_handle_other_provider(PosteriorContextHandle *e);

/* tnp_grow of an encoding of one's own. */
void		posterior_handle_grow(PosteriorContextHandle *e, const TnpRows *rows);

/* Another encoding of the rows of this one, made now. */
PosteriorContextHandle *posterior_handle_rebuild(const PosteriorContextHandle *e);

void		posterior_handle_release(PosteriorContextHandle *e);

#endif							/* POSTERIOR_ENCODING_H */
