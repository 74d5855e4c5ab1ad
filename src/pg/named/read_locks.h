/*
 * read_locks.h: reading a table for the cache, with locks and snapshots that end before what was
 * read is encoded.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_READ_LOCKS_H
#define POSTERIOR_READ_LOCKS_H

#include "pg/base/compat.h"

#include "utils/resowner.h"

typedef struct PosteriorReading
{
	bool		open;
	MemoryContext memory;		/* current before, between and after */
	ResourceOwner owner;
} PosteriorReading;

/*
 * Begin; a handler of errors ends it. Not where the transaction has an xid, or in a parallel query.
 */
void		posterior_reading_begin(PosteriorReading *reading);

/*
 * Give up the locks and snapshots, the role and the settings that were taken since it began. What
 * functions that reading has run have written is undone. A second call does nothing.
 */
void		posterior_reading_end(PosteriorReading *reading);

#endif							/* POSTERIOR_READ_LOCKS_H */
