/*
 * lookup_outcome.h: how statements come by an encoding: the one list of outcomes.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_LOOKUP_OUTCOME_H
#define POSTERIOR_LOOKUP_OUTCOME_H

#include "pg/base/compat.h"

/* From the cheapest to the dearest, and last what is of use to one session only. */
typedef enum PosteriorLookupOutcome
{
	CACHE_LOOKUP_SKIP,
	CACHE_LOOKUP_DELTA,
	CACHE_LOOKUP_READ,
	CACHE_LOOKUP_EXTENSION,
	CACHE_LOOKUP_REVISION,
	CACHE_LOOKUP_REBUILD,
	CACHE_LOOKUP_PRIVATE
} PosteriorLookupOutcome;

#define CACHE_LOOKUP_OUTCOMES (CACHE_LOOKUP_PRIVATE + 1)

/* An outcome as views, debug messages and docs/contexts.md name it. */
typedef struct PosteriorLookupOutcomeName
{
	const char *context_column; /* of posterior.stat_contexts, which counts named contexts */
	/* of posterior.stat_cache(), which counts searches; several may share one; NULL: no search */
	const char *cache_column;
	const char *meaning;		/* a clause for debug messages */
} PosteriorLookupOutcomeName;

extern const PosteriorLookupOutcomeName posterior_lookup_outcomes[CACHE_LOOKUP_OUTCOMES];

/* The outcome that a column of posterior.stat_contexts counts, or -1 where it counts none. */
int			posterior_outcome_of_context_column(const char *column);

/* Whether a column of posterior.stat_cache() counts an outcome. */
bool		posterior_cache_column_counts(const char *column, PosteriorLookupOutcome outcome);

#endif							/* POSTERIOR_LOOKUP_OUTCOME_H */
