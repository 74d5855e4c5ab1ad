/*
 * write_tracker.h: writers of tables with named contexts tell the tables' writer logs.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_NOTE_H
#define POSTERIOR_NOTE_H

#include "pg/visibility/writer_log.h"

#include "utils/rel.h"

/*
 * All rows that this transaction has inserted into a table, which it has locked for writing, if it
 * has done nothing else to it, they are few and all are known; false otherwise.
 */
bool		posterior_write_tracker_inserted(Relation relation, PosteriorNewRows *rows);

/*
 * Called by _PG_init when the library is preloaded: without shared memory there is nobody to tell.
 */
void		posterior_write_tracker_register(void);

#endif							/* POSTERIOR_NOTE_H */
