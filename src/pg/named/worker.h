/*
 * worker.h: the maintenance worker: encodes ahead of the next read.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_WORKER_H
#define POSTERIOR_WORKER_H

#include "pg/base/compat.h"

/* Called by _PG_init while libraries are preloaded: have the launcher started. */
void		posterior_worker_register(void);

/* Tell the launcher that a table with a writer log has been written. Cannot fail. */
void		posterior_worker_wake(void);

/* Entry points of the processes. */
extern PGDLLEXPORT void posterior_launcher_main(Datum argument);
extern PGDLLEXPORT void posterior_worker_main(Datum argument);

#endif							/* POSTERIOR_WORKER_H */
