/*
 * worker.h: the maintenance worker: encodes ahead of the next read.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_WORKER_H
#define POSTERIOR_WORKER_H

#include "pg/shmem/segment.h"

extern int	posterior_maintenance_delay;	/* posterior.maintenance_delay, ms; -1: off */
extern double posterior_drift_limit;	/* posterior.drift_limit; 0: off */

/* Called by _PG_init while libraries are preloaded: have the launcher started. */
void		posterior_worker_register(void);

extern PosteriorSharedPart posterior_worker_part;

/* Entry points of the processes. */
extern PGDLLEXPORT void posterior_launcher_main(Datum argument);
extern PGDLLEXPORT void posterior_worker_main(Datum argument);

#endif							/* POSTERIOR_WORKER_H */
