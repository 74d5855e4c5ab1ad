/*
 * entries.h: cache entries: encoded rows in the arena that are found again by their content.
 *
 * An entry is found by what all its rows depend on, and used as far as its rows equal those that
 * are wanted: the rows themselves are compared, byte by byte, so nothing that happens elsewhere can
 * make a part in use wrong. entries.c describes locks, pins, claims and lifetimes.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_ENTRIES_H
#define POSTERIOR_ENTRIES_H

#include "pg/cache/cached_context.h"
#include "pg/cache/entry_key.h"
#include "pg/cache/lookup_outcome.h"
#include "pg/shmem/eviction.h"
#include "pg/shmem/recency.h"
#include "pg/shmem/shared.h"

#include "storage/condition_variable.h"

#define POSTERIOR_BUCKETS 1024

typedef struct PosteriorCacheEntry
{
	dlist_node	node;			/* in its bucket, among the doomed or spare */
	PosteriorEntryKey key;
	uint64		serial;			/* no other entry ever has it */
	bool		listed;			/* in its bucket */
	PosteriorCachedContext *cached;		/* NULL while it is built */
	PosteriorWeights *weights;	/* held; NULL in a session's own cache, then: */
	PosteriorHolder holder;
	PosteriorModel *model;		/* acquired */
	Size		bytes;
	PosteriorUse use;			/* among all that are listed; its tick is not exact */
	/* work of small requests that a device has answered, in multiply-adds (execute.c) */
	pg_atomic_uint64 small;
	pg_atomic_uint64 length;	/* published rows plus one; 0 while it is built */
	pg_atomic_uint32 pins;
	pg_atomic_uint32 writer;	/* pid of the process that builds or appends, or 0 */
	ConditionVariable settled;	/* the claim has ended */
} PosteriorCacheEntry;

/* The directory of entries, in shared memory, under posterior_lock. */
typedef struct PosteriorDirectory
{
	/* since the server's start, or posterior.stat_reset(): */
	pg_atomic_uint64 lookups[CACHE_LOOKUP_OUTCOMES];
	pg_atomic_uint64 evictions;
	dlist_head	entries[POSTERIOR_BUCKETS];
	PosteriorRecency recency;	/* entries that are in a bucket */
	dlist_head	doomed;			/* entries in no bucket that are still pinned */
	dlist_head	spare;			/* structs that no entry has, in shared memory */
	int64		n_entries;
} PosteriorDirectory;

extern PosteriorDirectory *posterior_directory;
extern PosteriorSharedPart posterior_directory_part;

/*
 * The entry of this key that shares most leading rows with these, pinned, and how many; or NULL.
 * *building is a pinned entry of this key that is being built, if there is no other one, or NULL.
 */
PosteriorCacheEntry *posterior_entry_search(const PosteriorEntryKey *key, const TnpRows *rows,
											int64 *common, PosteriorCacheEntry **building);

/*
 * The published entry that was used last of those whose keys have what comes before the prefix in
 * this one, pinned; or NULL.
 */
PosteriorCacheEntry *posterior_entry_search_older(const PosteriorEntryKey *key);

/* The entry of this serial number if it is still listed, pinned; or NULL. */
PosteriorCacheEntry *posterior_entry_pin(const PosteriorEntryKey *key, uint64 serial);
void		posterior_entry_unpin(PosteriorCacheEntry *entry);

/*
 * Whether this is the model of an entry: what is made of its encoding refers to that, and needs the
 * entry's pin where the model is another one, parsed by the session when the cache had no room.
 */
bool		posterior_entry_has_model(const PosteriorCacheEntry *entry,
									  const PosteriorModel *model);

/* Claim an entry for writing; false if another process has. Nothing may raise before the yield. */
bool		posterior_entry_claim(PosteriorCacheEntry *entry);

static inline bool
posterior_entry_is_claimed(PosteriorCacheEntry *entry)
{
	return pg_atomic_read_u32(&entry->writer) != 0;
}

/* End the claim, and wake up those that wait for it. */
void		posterior_entry_yield(PosteriorCacheEntry *entry);

/*
 * Wait until a pinned entry is not claimed, a minute at most, and unpin it. May raise (cancel); the
 * pin is gone in any case.
 */
void		posterior_entry_wait(PosteriorCacheEntry *entry);

/*
 * List an entry that will be built, claimed and pinned; NULL if another process is building one of
 * this key, or (*full) there is no memory for it.
 */
PosteriorCacheEntry *posterior_entry_announce(const PosteriorEntryKey *key, PosteriorModel *model,
											  bool *full);

/*
 * Give an announced entry its content, which lies in the arena; searches find it from now on. The
 * claim ends, the pin stays.
 */
void		posterior_entry_publish(PosteriorCacheEntry *entry, PosteriorCachedContext *cached);

/* Publish the first n rows. By the claim's holder. */
static inline void
posterior_entry_set_length(PosteriorCacheEntry *entry, int64 n)
{
	pg_write_barrier();
	pg_atomic_write_u64(&entry->length, (uint64) n + 1);
}

/* Take an entry from the directory: no search finds it any more. */
void		posterior_entry_unlist(PosteriorCacheEntry *entry);

/* Published rows; -1 while the entry is built. */
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

/* Entries, and bytes of the arena in use, for the views. */
void		posterior_entries_count(int64 *entries, int64 *bytes);

#endif							/* POSTERIOR_ENTRIES_H */
