/*
 * progress.h: what a backend is doing for a named context, for the view posterior.stat_progress.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_PROGRESS_H
#define POSTERIOR_PROGRESS_H

#include "pg/shmem/segment.h"

#include "port/atomics.h"
#include "utils/uuid.h"

#define POSTERIOR_PROGRESSES 64 /* backends that are shown at once */

typedef enum PosteriorPhase
{
	POSTERIOR_READING = 1,
	POSTERIOR_PREFIX,
	POSTERIOR_SUFFIX
} PosteriorPhase;

typedef struct PosteriorProgress
{
	pg_atomic_uint32 pid;		/* 0: free */
	Oid			database;
	pg_uuid_t	context;
	pg_atomic_uint32 phase;
	pg_atomic_uint64 done,		/* rows */
				total;
} PosteriorProgress;

extern PosteriorProgress *posterior_progresses; /* [POSTERIOR_PROGRESSES], in shared memory */
extern PosteriorSharedPart posterior_progress_part;

/*
 * Show that this backend works for a context, where shared memory lets others see it. It ends with
 * the transaction at the latest.
 */
void		posterior_progress_begin(const pg_uuid_t *context);
void		posterior_progress(PosteriorPhase phase, int64 done, int64 total);

/* So many rows more are done than the last call of posterior_progress said. */
void		posterior_progress_within(int64 done);
void		posterior_progress_end(void);

#endif							/* POSTERIOR_PROGRESS_H */
