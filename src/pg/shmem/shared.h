/*
 * shared.h: the memory that encodings and weights lie in: the server's main shared memory when the library is preloaded, else the session's own.
 *
 * Without preloading the same structures and functions work, for one session: locks are then not taken.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_SHARED_H
#define POSTERIOR_SHARED_H

#include "pg/base/compat.h"

#include "lib/ilist.h"
#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/lwlock.h"

#include "pg/visibility/incarnation.h"
#include "pg/shmem/progress.h"
#include "pg/visibility/writer_log.h"
#include "pg/cache/reuse_state.h"
#include "pg/device/supervisor.h"

#define POSTERIOR_BUCKETS 1024
#define POSTERIOR_WORKERS 3		/* maintenance workers at once, each in a database of its own */

/* What all of it counts since the server's start, or posterior.stat_reset(). */
typedef struct PosteriorCounters
{
	pg_atomic_uint64 hits,
				misses,
				appends,
				evictions,
				privates;
} PosteriorCounters;

typedef struct PosteriorShared
{
	pg_atomic_uint64 clock;		/* a tick per use, for least recently used */
	pg_atomic_uint64 used;		/* bytes of the arena that are in use */
	uint64		epoch;			/* random: no other shared memory has had it */
	PosteriorServer server;
	PosteriorCounters counters;
	/* the directory, under posterior_lock: */
	dlist_head	weights;		/* parsed models */
	dlist_head	entries[POSTERIOR_BUCKETS];
	dlist_head	doomed;			/* runs that nobody can find any more and somebody still reads */
	int64		n_entries;
	struct Latch *launcher;		/* of the maintenance worker's launcher, or NULL */
	uint32		workers[POSTERIOR_WORKERS]; /* that have got into their databases, by the launcher's places for them */
	PosteriorProgress progresses[POSTERIOR_PROGRESSES];
	uint32		last_incarnation;		/* number of the incarnation that began last */
	PosteriorIncarnation *incarnations;		/* [posterior_most_sessions()], behind this; NULL in a session's own memory */
	PosteriorReuseState states[POSTERIOR_STATES];
	pg_atomic_uint64 watched[POSTERIOR_WRITER_LOGS];	/* incarnation of the database and relation of each writer log, or 0: to find a writer log without a lock */
	PosteriorWriterLog logs[POSTERIOR_WRITER_LOGS];
} PosteriorShared;

extern int	posterior_cache_size;	/* posterior.cache_size, kB */

extern PosteriorShared *posterior_shared;
extern bool posterior_is_shared;	/* it lies in the server's memory */

/* Called by _PG_init while the postmaster preloads libraries: ask for the segment. */
void		posterior_shared_request(void);

/* Before anything else in a backend: attach to the segment, or make the session's own. */
void		posterior_shared_attach(void);

/* The lock of the directory. Held for microseconds, never while anything is computed. */
void		posterior_lock(LWLockMode mode);
void		posterior_unlock(void);

/* The lock of a writer log, by its number. */
LWLock	   *posterior_writer_log_lock(int number);

/* Memory of the arena, aligned to 16 bytes, or NULL when it has no such piece. Any process may free what another one has allocated. */
void	   *posterior_arena_alloc(Size size);
void		posterior_arena_free(void *pointer);

/* A tick of the clock. */
uint64		posterior_tick(void);

#endif							/* POSTERIOR_SHARED_H */
