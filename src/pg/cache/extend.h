/*
 * extend.h: an entry with a few rows more, known to come after its own; and a request answered on
 * the way.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_EXTEND_H
#define POSTERIOR_EXTEND_H

#include "pg/cache/handle.h"

/*
 * A request that is known while its encoding is looked up. Rows that have to be appended for it and
 * its queries can go through the model together.
 */
typedef struct PosteriorPendingRequest
{
	struct TnpRequest *request;
	bool		answered;		/* filled in */
} PosteriorPendingRequest;

/*
 * The encoding of the first n rows of a pinned entry and `more` after them, if appending to the
 * entry is all that this takes; else NULL, and the pin stays the caller's. The last `own` of these
 * rows are for this session alone: they are not in the encoding, but if the request, which may be
 * NULL, has been answered, it was answered with them (`transient`).
 */
PosteriorContextHandle *posterior_handle_extend(PosteriorModel *model, const uint8 *kinds,
												const PosteriorLabelList *labels,
												PosteriorCacheEntry *entry, int64 n,
												const TnpRows *more, int64 own,
												PosteriorPendingRequest *pending);

/*
 * The encoding of a handle's rows and `more` after them, for this session alone; takes over the
 * handle. If the request, which may be NULL, has been answered, the rows were in the entry's free
 * room only meanwhile (`transient`); else they are in a copy.
 */
PosteriorContextHandle *posterior_handle_with_own_rows(PosteriorContextHandle *e,
													   const TnpRows *more,
													   PosteriorPendingRequest *pending);

#endif							/* POSTERIOR_EXTEND_H */
