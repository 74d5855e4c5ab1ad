/*
 * kept_sums.h: named contexts that keep sums: what a snapshot shows of them.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_KEPT_SUMS_H
#define POSTERIOR_KEPT_SUMS_H

#include "pg/cache/handle.h"
#include "pg/cache/lookup_outcome.h"
#include "pg/named/definition.h"

/*
 * The encoding of the rows that the active snapshot shows, of a context whose definition has a
 * basis: of sums and notes, or where these cannot be relied on of the rows, which are read then.
 * fresh: of the rows in any case.
 */
PosteriorContextHandle *posterior_kept_acquire(PosteriorModel *model, const PosteriorNamed *named,
											   bool fresh, PosteriorLookupOutcome *outcome);

/* The rows that the active snapshot shows, as a value with sums, allocated. */
struct PosteriorContext *posterior_kept_value(PosteriorModel *model, const PosteriorNamed *named);

#endif							/* POSTERIOR_KEPT_SUMS_H */
