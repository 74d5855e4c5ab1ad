/*
 * entries.h: runs: encoded rows in the arena that are found again by their content.
 *
 * A run is found by what all its rows depend on, and used as far as its rows equal those that a
 * reader has: the rows themselves are compared, byte by byte, so nothing that happens elsewhere can
 * make a used stretch wrong. Rows are appended behind the published length; readers never look
 * beyond the length that they found.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_RUNS_H
#define POSTERIOR_RUNS_H

#include "pg/cache/cached_context.h"
#include "pg/cache/entry_key.h"
#include "pg/cache/lookup_outcome.h"
#include "pg/shmem/eviction.h"
#include "pg/shmem/shared.h"

#include "storage/condition_variable.h"

#define POSTERIOR_BUCKETS 1024

typedef struct PosteriorCacheEntry
{
	dlist_node	node;			/* in its bucket, or among the doomed */
	PosteriorEntryKey key;
	uint64		serial;			/* no other run ever has it */
	bool		listed;			/* in its bucket */
	PosteriorCachedContext *cached;		/* NULL while it is built */
	PosteriorWeights *weights;	/* pinned; NULL in a session's own cache, then: */
	PosteriorModel *model;		/* held */
	Size		bytes;
	uint64		used;			/* when last, by the clock; not exact */
	/* work of small questions that a device has answered, in multiply-adds (execute.c) */
	pg_atomic_uint64 small;
	pg_atomic_uint64 length;	/* published rows plus one; 0 while it is built */
	pg_atomic_uint32 pins;
	pg_atomic_uint32 writer;	/* pid of who builds or appends, or 0 */
	ConditionVariable settled;	/* the writer has finished */
} PosteriorCacheEntry;

/* The directory of entries, in shared memory, under posterior_lock. */
typedef struct PosteriorDirectory
{
	/* since the server's start, or posterior.stat_reset(): */
	pg_atomic_uint64 lookups[CACHE_LOOKUP_OUTCOMES];
	pg_atomic_uint64 evictions;
	dlist_head	entries[POSTERIOR_BUCKETS];
	dlist_head	doomed;			/* entries in no bucket that are still pinned */
	int64		n_entries;
} PosteriorDirectory;

extern PosteriorDirectory *posterior_directory;
extern PosteriorSharedPart posterior_directory_part;

/*
 * The run that shares most rows with these, pinned, and how many, or NULL. *building is a pinned
 * run of this key that is being built, if there is no other one, or NULL.
 */
PosteriorCacheEntry *posterior_entry_search(const PosteriorEntryKey *key, const TnpRows *rows,
											int64 *common, PosteriorCacheEntry **building);

/* The run of this serial number if it can still be found, pinned, or NULL. */
PosteriorCacheEntry *posterior_entry_pin(const PosteriorEntryKey *key, uint64 serial);
void		posterior_entry_unpin(PosteriorCacheEntry *entry);

/* Become the one who writes to a run; false if somebody else is. */
bool		posterior_entry_claim(PosteriorCacheEntry *entry);

static inline bool
posterior_entry_is_claimed(PosteriorCacheEntry *entry)
{
	return pg_atomic_read_u32(&entry->writer) != 0;
}

void		posterior_entry_yield(PosteriorCacheEntry *entry);

/*
 * Wait until nobody writes to a pinned run, then unpin it. May raise (cancel); the pin is gone in
 * any case.
 */
void		posterior_entry_wait(PosteriorCacheEntry *entry);

/*
 * Announce a run that will be built, claimed and pinned; NULL when somebody else has just done so
 * or there is no memory for it.
 */
PosteriorCacheEntry *posterior_entry_announce(const PosteriorEntryKey *key, PosteriorModel *model,
											  bool *full);

/*
 * Give an announced run its body, kept in the arena; it is then found. The claim ends, the pin
 * stays.
 */
void		posterior_entry_publish(PosteriorCacheEntry *entry, PosteriorCachedContext *cached);

/* Let readers see the first n rows. */
static inline void
posterior_entry_set_length(PosteriorCacheEntry *entry, int64 n)
{
	pg_write_barrier();
	pg_atomic_write_u64(&entry->length, (uint64) n + 1);
}

/* Nobody shall find this run any more. */
void		posterior_entry_unlist(PosteriorCacheEntry *entry);

/* Rows of the run that have been published; -1 while it is built. */
static inline int64
posterior_entry_length(PosteriorCacheEntry *entry)
{
	int64		n = (int64) pg_atomic_read_u64(&entry->length) - 1;

	pg_read_barrier();
	return n;
}

/* Count a lookup. */
void		posterior_entries_note_lookup(PosteriorLookupOutcome outcome);

/* Set all counters to zero. */
void		posterior_entries_reset_counters(void);

/* Runs and bytes, for the views. */
void		posterior_entries_count(int64 *entries, int64 *bytes);

#endif							/* POSTERIOR_RUNS_H */
