/*
 * acquire.h: the encoding of a named context, as the active snapshot shows its rows.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_ACQUIRE_H
#define POSTERIOR_ACQUIRE_H

#include "pg/cache/extend.h"
#include "pg/cache/lookup.h"
#include "pg/named/definition.h"
#include "pg/named/read_locks.h"

/*
 * The encoding, from the cache as far as it reaches. Raises what reading and the engine report. The
 * request, which may be NULL, may have been answered then.
 */
PosteriorContextHandle *posterior_named_acquire(PosteriorModel *model, const PosteriorNamed *named,
												PosteriorPendingRequest *pending);

/*
 * The encoding, without a request. The reading, in which model and context were looked up, or NULL,
 * ends as soon as all rows have been read, and in any case: what waits for the table does not wait
 * until they are encoded.
 */
PosteriorContextHandle *posterior_named_encode_ahead(PosteriorModel *model,
													 const PosteriorNamed *named,
													 PosteriorReading *reading);

/* From the rows, read and encoded now. */
PosteriorContextHandle *posterior_named_build_uncached(PosteriorModel *model,
													   const PosteriorNamed *named);

/*
 * Whether the context's rows can differ from those of a moment ago although the transaction's
 * snapshot has equal numbers: they depend on more than the rows of one table, or this transaction
 * writes it. A running statement's rows become visible to functions that it calls without any
 * command being counted.
 */
bool		posterior_named_may_change(const PosteriorNamed *named);

#endif							/* POSTERIOR_ACQUIRE_H */
