/*
 * runs.h: runs: encoded rows in the arena that are found again by their content.
 *
 * A run is found by what all its rows depend on, and used as far as its rows equal those that a reader has: the rows themselves are compared, byte by byte, so
 * nothing that happens elsewhere can make a used stretch wrong. Rows are appended behind the published length; readers never look beyond the length
 * that they found.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_RUNS_H
#define POSTERIOR_RUNS_H

#include "body.h"
#include "shared.h"

typedef struct PosteriorRun
{
	dlist_node	node;			/* in its bucket, or among the doomed */
	PosteriorRunKey key;
	uint64		serial;			/* no other run ever has it */
	bool		listed;			/* in its bucket */
	PosteriorBody *body;		/* NULL while it is built */
	PosteriorWeights *weights;	/* pinned; NULL in a session's own cache, then: */
	PosteriorModel *model;		/* held */
	Size		bytes;
	uint64		used;			/* when last, by the clock; not exact */
	pg_atomic_uint64 small;		/* work of small questions that a device has answered, in multiply-adds (ask.c) */
	pg_atomic_uint64 length;	/* published rows plus one; 0 while it is built */
	pg_atomic_uint32 pins;
	pg_atomic_uint32 writer;	/* pid of who builds or appends, or 0 */
	ConditionVariable settled;	/* the writer has finished */
} PosteriorRun;

/* Fill key->head. `settled` rows are those that everything depends on. */
void		posterior_run_key_head(PosteriorRunKey *key, const uint8 *classes, const TnpRows *rows, int64 settled);

/*
 * The run that shares most rows with these, pinned, and how many, or NULL. *building is a pinned run of this key that is being built, if there is no
 * other one, or NULL.
 */
PosteriorRun *posterior_run_search(const PosteriorRunKey *key, const TnpRows *rows, int64 *common, PosteriorRun **building);

/* The run of this serial number if it can still be found, pinned, or NULL. */
PosteriorRun *posterior_run_pin(const PosteriorRunKey *key, uint64 serial);
void		posterior_run_unpin(PosteriorRun *run);

/* Become the one who writes to a run; false if somebody else is. */
bool		posterior_run_claim(PosteriorRun *run);

static inline bool
posterior_run_is_claimed(PosteriorRun *run)
{
	return pg_atomic_read_u32(&run->writer) != 0;
}

void		posterior_run_yield(PosteriorRun *run);

/* Wait until nobody writes to a pinned run, then unpin it. May raise (cancel); the pin is gone in any case. */
void		posterior_run_wait(PosteriorRun *run);

/* Announce a run that will be built, claimed and pinned; NULL when somebody else has just done so or there is no memory for it. */
PosteriorRun *posterior_run_announce(const PosteriorRunKey *key, PosteriorModel *model, bool *full);

/* Give an announced run its body, kept in the arena; it is then found. The claim ends, the pin stays. */
void		posterior_run_publish(PosteriorRun *run, PosteriorBody *body);

/* Let readers see the first n rows. */
static inline void
posterior_run_set_length(PosteriorRun *run, int64 n)
{
	pg_write_barrier();
	pg_atomic_write_u64(&run->length, (uint64) n + 1);
}

/* Nobody shall find this run any more. */
void		posterior_run_unlist(PosteriorRun *run);

/* Make `bytes` free if evicting can do that; false if not. */
bool		posterior_make_room(Size bytes);

/*
 * Evict what has so many bytes, though the cache's size may allow for more: for when the arena has nothing all the same, because what is free there is in pieces, or in
 * pages for other sizes. False if there was nothing to evict. Callers try this POSTERIOR_EVICTIONS times, for more each time.
 */
#define POSTERIOR_EVICTIONS 6
bool		posterior_evict(Size bytes);

/* Rows of the run that have been published; -1 while it is built. */
static inline int64
posterior_run_length(PosteriorRun *run)
{
	int64		n = (int64) pg_atomic_read_u64(&run->length) - 1;

	pg_read_barrier();
	return n;
}

/* Runs and bytes, for the views. */
void		posterior_runs_count(int64 *runs, int64 *bytes);

#endif							/* POSTERIOR_RUNS_H */
