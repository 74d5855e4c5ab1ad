/*
 * progress.h: what a backend is reading, encoding or answering, for the view
 * posterior.stat_progress.
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
	POSTERIOR_SUFFIX,
	POSTERIOR_ANSWERING,		/* these three by posterior_progress_ask */
	POSTERIOR_DRAWING,
	POSTERIOR_SCORING
} PosteriorPhase;

typedef struct PosteriorProgress
{
	pg_atomic_uint32 pid;		/* 0: free */
	pg_atomic_uint32 gathers;	/* aggregates of the backend and its workers count rows here */
	pg_atomic_uint64 helped;	/* rows that the workers have counted */
	Oid			database;
	Oid			role;			/* whose rights the rows are read with */
	pg_uuid_t	context;		/* zeros: rows of no named context */
	pg_atomic_uint32 phase;
	pg_atomic_uint64 done,		/* rows */
				total;
} PosteriorProgress;

extern PosteriorProgress *posterior_progresses; /* [POSTERIOR_PROGRESSES], in shared memory */
extern PosteriorSharedPart posterior_progress_part;

/*
 * Show that this backend works for a named context, or with NULL for rows of none, where shared
 * memory lets others see it. False where it shows something already, which stays. A caller that
 * gets true calls posterior_progress_end; the end of the transaction, or the failure of the
 * subtransaction, does so as well.
 */
bool		posterior_progress_begin(const pg_uuid_t *context);
void		posterior_progress(PosteriorPhase phase, int64 done, int64 total);

/* So many rows more are done than the last call of posterior_progress said. */
void		posterior_progress_within(int64 done);
void		posterior_progress_end(void);

/*
 * Show, like posterior_progress_begin, that this backend answers a question about `total` rows;
 * of one row nothing is shown. A statement may put it in several requests: asked says how many rows
 * are answered before the next of them, answered that so many more are. What is read or encoded
 * meanwhile is shown until then.
 */
bool		posterior_progress_ask(const pg_uuid_t *context, PosteriorPhase phase, int64 total);
void		posterior_progress_asked(int64 done);
void		posterior_progress_answered(int64 rows);

/*
 * Have aggregates of this backend and of its parallel workers count the rows that they take, or no
 * more; the rows that workers have taken.
 */
int64		posterior_progress_gather(bool gather);

/* An aggregate has taken so many rows more. */
void		posterior_progress_taken(int64 rows);

#endif							/* POSTERIOR_PROGRESS_H */
