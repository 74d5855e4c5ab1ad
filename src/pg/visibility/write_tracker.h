/*
 * write_tracker.h: what this transaction has written to tables with named contexts.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_WRITE_TRACKER_H
#define POSTERIOR_WRITE_TRACKER_H

#include "pg/visibility/snapshot_mark.h"

#include "utils/rel.h"

/*
 * The places of all rows that this transaction has inserted into a table that it has locked for
 * writing, if it has done nothing else to it, they are few and all are known; else false.
 */
bool		posterior_write_tracker_inserted(Relation relation, PosteriorNewRows *rows);

/* Called by _PG_init when the library is preloaded: without shared memory there are no logs. */
void		posterior_write_tracker_register(void);

#endif							/* POSTERIOR_WRITE_TRACKER_H */
