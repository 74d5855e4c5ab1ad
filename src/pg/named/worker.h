/*
 * worker.h: the maintenance worker: encodes ahead of the next read.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_WORKER_H
#define POSTERIOR_WORKER_H

#include "pg/shmem/segment.h"

#include "datatype/timestamp.h"

extern int	posterior_maintenance_delay;	/* posterior.maintenance_delay, ms; -1: off */

#define POSTERIOR_WORKERS 3		/* at once, each in a database of its own */
#define POSTERIOR_LONGEST_REST 3600000	/* ms */

extern PosteriorSharedPart posterior_worker_part;

/*
 * How many workers have got into their databases from a place of the launcher, of which there are
 * POSTERIOR_WORKERS.
 */
uint32		posterior_workers_arrived(int place);

/* A time some milliseconds from another. */
static inline TimestampTz
posterior_time_after(TimestampTz from, int64 ms)
{
	return from + ms * 1000;
}

/* For how long rests what took that long, in microseconds. */
static inline int64
posterior_rest_after(int64 spent, int times)
{
	return Min(times * spent, INT64CONST(1000) * POSTERIOR_LONGEST_REST);
}

/* Entry point of the process. */
extern PGDLLEXPORT void posterior_worker_main(Datum argument);

#endif							/* POSTERIOR_WORKER_H */
