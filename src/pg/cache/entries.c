/*
 * entries.c: the directory of runs: finding, pinning, claiming, publishing, evicting.
 *
 * Everything in the directory changes under its lock, which is never held while rows are encoded,
 * and while rows are compared only pins are held. The lock is all there is between processes: the
 * claim of a writer is an atomic word, because encoding must stay cancellable and a held LWLock
 * would defer interrupts.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/cache/entries.h"

#include "pg/base/bridge.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "utils/memutils.h"

#define ENTRIES_PER_KEY 4			/* contents of one context that are kept side by side */
#define RECENT 60000			/* ms after which a waiter looks again by itself */

PosteriorDirectory *posterior_directory = NULL;

static dlist_head *
entry_bucket(const PosteriorEntryKey *key)
{
	return &posterior_directory->entries[posterior_entry_key_hash(key) % POSTERIOR_BUCKETS];
}

/* ---- freeing --------------------------------------------------------------------------------- */

/* Free a run that is in no list and that nobody pins. The lock is held exclusively. */
static void
entry_free(PosteriorCacheEntry *entry)
{
	posterior_cached_free(entry->cached);
	posterior_directory->n_entries--;
	if (entry->weights != NULL)
		entry->weights->pins--;
	if (entry->model != NULL)
		posterior_model_release(entry->model);
	if (!posterior_is_shared)
		pg_atomic_fetch_sub_u64(&posterior_shared->used, entry->bytes);
	posterior_arena_free(entry);
}

/* Take a run out of its bucket; free it if nobody reads it. The lock is held exclusively. */
static void
entry_unlist(PosteriorCacheEntry *entry)
{
	if (!entry->listed)
		return;
	entry->listed = false;
	dlist_delete(&entry->node);
	if (pg_atomic_read_u32(&entry->pins) == 0)
		entry_free(entry);
	else
		dlist_push_tail(&posterior_directory->doomed, &entry->node);
}

void
posterior_entry_unlist(PosteriorCacheEntry *entry)
{
	posterior_lock(LW_EXCLUSIVE);
	entry_unlist(entry);
	posterior_unlock();
}

void
posterior_entry_unpin(PosteriorCacheEntry *entry)
{
	bool		last,
				listed;

	/* under the lock the run cannot be freed between the count and the look at `listed` */
	posterior_lock(LW_SHARED);
	last = pg_atomic_sub_fetch_u32(&entry->pins, 1) == 0;
	listed = entry->listed;
	posterior_unlock();
	if (listed || !last)
		return;
	posterior_lock(LW_EXCLUSIVE);
	{
		dlist_mutable_iter iter;

		dlist_foreach_modify(iter, &posterior_directory->doomed)
		{
			PosteriorCacheEntry *doomed = dlist_container(PosteriorCacheEntry, node, iter.cur);

			if (doomed == entry && pg_atomic_read_u32(&entry->pins) == 0)
			{
				dlist_delete(&entry->node);
				entry_free(entry);
				break;
			}
		}
	}
	posterior_unlock();
}

/* ---- the part of shared memory --------------------------------------------------------------- */

static Size
directory_size(void)
{
	return sizeof(PosteriorDirectory);
}

static void
directory_initialize(void *part)
{
	PosteriorDirectory *directory = part;

	for (int i = 0; i < CACHE_LOOKUP_OUTCOMES; i++)
		pg_atomic_init_u64(&directory->lookups[i], 0);
	pg_atomic_init_u64(&directory->evictions, 0);
	dlist_init(&directory->doomed);
	for (int i = 0; i < POSTERIOR_BUCKETS; i++)
		dlist_init(&directory->entries[i]);
}

/* The least recently used entry without a pin. */
static void *
directory_oldest(uint64 *used)
{
	PosteriorCacheEntry *oldest = NULL;
	dlist_iter	iter;

	for (int b = 0; b < POSTERIOR_BUCKETS; b++)
		dlist_foreach(iter, &posterior_directory->entries[b])
		{
			PosteriorCacheEntry *entry = dlist_container(PosteriorCacheEntry, node, iter.cur);

			if (pg_atomic_read_u32(&entry->pins) == 0
				&& (oldest == NULL || entry->used < oldest->used))
				oldest = entry;
		}
	if (oldest != NULL)
		*used = oldest->used;
	return oldest;
}

static Size
directory_evict(void *piece)
{
	PosteriorCacheEntry *entry = piece;
	Size		bytes = entry->bytes;

	pg_atomic_fetch_add_u64(&posterior_directory->evictions, 1);
	entry_unlist(entry);
	return bytes;
}

static void
directory_forget(uint32 incarnation)
{
	dlist_mutable_iter iter;

	for (int b = 0; b < POSTERIOR_BUCKETS; b++)
		dlist_foreach_modify(iter, &posterior_directory->entries[b])
		{
			PosteriorCacheEntry *entry = dlist_container(PosteriorCacheEntry, node, iter.cur);

			if (entry->key.incarnation == incarnation)
				entry_unlist(entry);
		}
}

PosteriorSharedPart posterior_directory_part = {
	.place = (void **) &posterior_directory,.size = directory_size,
	.initialize = directory_initialize,.forget = directory_forget,
	.oldest = directory_oldest,.evict = directory_evict
};

/* ---- finding --------------------------------------------------------------------------------- */

/* The number of leading rows that are equal, byte by byte. */
static int64
common_rows(const TnpRows *a, int64 n, const TnpRows *b)
{
	int64		equal = 0,
				step = 1024;
	Size		width = (Size) a->n_features * sizeof(double);

	if (b->n < n)
		n = b->n;
	while (equal < n)
	{
		int64		some = Min(step, n - equal);

		if (memcmp(a->y + equal, b->y + equal, some * sizeof(double)) == 0
			&& memcmp(a->x + equal * a->n_features, b->x + equal * b->n_features, some * width)
				   == 0)
			equal += some;
		else if (some == 1)
			break;
		else
			step = (some + 1) / 2;
	}
	return equal;
}

PosteriorCacheEntry *
posterior_entry_search(const PosteriorEntryKey *key, const TnpRows *rows, int64 *common,
					   PosteriorCacheEntry **building)
{
	PosteriorCacheEntry *found[ENTRIES_PER_KEY + 1],
			   *best = NULL;
	int			n = 0;
	dlist_iter	iter;

	*common = 0;
	*building = NULL;
	posterior_lock(LW_SHARED);
	dlist_foreach(iter, entry_bucket(key))
	{
		PosteriorCacheEntry *entry = dlist_container(PosteriorCacheEntry, node, iter.cur);

		if (n <= ENTRIES_PER_KEY && memcmp(&entry->key, key, sizeof(*key)) == 0)
		{
			pg_atomic_fetch_add_u32(&entry->pins, 1);
			found[n++] = entry;
		}
	}
	posterior_unlock();
	for (int i = 0; i < n; i++)
	{
		PosteriorCacheEntry *entry = found[i];
		int64		length = posterior_entry_length(entry),
					equal;
		TnpRows		own;

		if (length < 0)
		{
			if (*building == NULL)
				*building = entry;
			else
				posterior_entry_unpin(entry);
			continue;
		}
		own = posterior_cached_view(entry->cached);
		equal = common_rows(&own, length, rows);
		if (best == NULL || equal > *common)
		{
			if (best != NULL)
				posterior_entry_unpin(best);
			best = entry;
			*common = equal;
		}
		else
			posterior_entry_unpin(entry);
	}
	if (best != NULL)
		best->used = posterior_tick();
	if (best != NULL && *building != NULL)
	{
		posterior_entry_unpin(*building);
		*building = NULL;
	}
	return best;
}

PosteriorCacheEntry *
posterior_entry_pin(const PosteriorEntryKey *key, uint64 serial)
{
	PosteriorCacheEntry *found = NULL;
	dlist_iter	iter;

	posterior_lock(LW_SHARED);
	dlist_foreach(iter, entry_bucket(key))
	{
		PosteriorCacheEntry *entry = dlist_container(PosteriorCacheEntry, node, iter.cur);

		if (entry->serial == serial)
		{
			pg_atomic_fetch_add_u32(&entry->pins, 1);
			entry->used = posterior_tick();
			found = entry;
			break;
		}
	}
	posterior_unlock();
	return found;
}

/* ---- writing --------------------------------------------------------------------------------- */

bool
posterior_entry_claim(PosteriorCacheEntry *entry)
{
	uint32		nobody = 0;

	return pg_atomic_compare_exchange_u32(&entry->writer, &nobody, (uint32) MyProcPid);
}

void
posterior_entry_yield(PosteriorCacheEntry *entry)
{
	pg_atomic_write_u32(&entry->writer, 0);
	ConditionVariableBroadcast(&entry->settled);
}

void
posterior_entry_wait(PosteriorCacheEntry *entry)
{
	static uint32 event = 0;

	PG_TRY();
	{
		ConditionVariablePrepareToSleep(&entry->settled);
		while (pg_atomic_read_u32(&entry->writer) != 0)
			if (ConditionVariableTimedSleep(&entry->settled, RECENT, posterior_wait_event(&event, "PosteriorEncoding")))
				break;
		ConditionVariableCancelSleep();
	}
	PG_CATCH();
	{
		ConditionVariableCancelSleep();
		posterior_entry_unpin(entry);
		PG_RE_THROW();
	}
	PG_END_TRY();
	posterior_entry_unpin(entry);
}

PosteriorCacheEntry *
posterior_entry_announce(const PosteriorEntryKey *key, PosteriorModel *model, bool *full)
{
	PosteriorCacheEntry *entry = posterior_arena_alloc(sizeof(PosteriorCacheEntry)),
			   *oldest = NULL;
	int			same = 0;
	dlist_iter	iter;

	/* what another run had is the right size */
	for (int i = 0; entry == NULL && i < POSTERIOR_EVICTIONS && posterior_evict(1); i++)
		entry = posterior_arena_alloc(sizeof(PosteriorCacheEntry));
	*full = entry == NULL;
	if (entry == NULL)
		return NULL;
	memset(entry, 0, sizeof(*entry));
	entry->key = *key;
	entry->serial = posterior_tick();
	entry->used = entry->serial;
	entry->listed = true;
	pg_atomic_init_u64(&entry->small, 0);
	pg_atomic_init_u64(&entry->length, 0);
	pg_atomic_init_u32(&entry->pins, 1);
	pg_atomic_init_u32(&entry->writer, (uint32) MyProcPid);
	ConditionVariableInit(&entry->settled);
	posterior_lock(LW_EXCLUSIVE);
	dlist_foreach(iter, entry_bucket(key))
	{
		PosteriorCacheEntry *other = dlist_container(PosteriorCacheEntry, node, iter.cur);

		if (memcmp(&other->key, key, sizeof(*key)) != 0)
			continue;
		if (posterior_entry_length(other) < 0)
		{
			posterior_unlock();
			posterior_arena_free(entry);
			return NULL;
		}
		same++;
		if (oldest == NULL || other->used < oldest->used)
			oldest = other;
	}
	if (same >= ENTRIES_PER_KEY)
		entry_unlist(oldest);
	entry->weights = model->weights;
	if (entry->weights != NULL)
		entry->weights->pins++;
	posterior_directory->n_entries++;
	dlist_push_head(entry_bucket(key), &entry->node);
	posterior_unlock();
	if (entry->weights == NULL)
	{
		entry->model = model;
		posterior_model_acquire(model);
	}
	return entry;
}

void
posterior_entry_publish(PosteriorCacheEntry *entry, PosteriorCachedContext *cached)
{
	entry->cached = cached;
	entry->bytes = posterior_cached_bytes(cached);
	if (!posterior_is_shared)
		pg_atomic_fetch_add_u64(&posterior_shared->used, entry->bytes);
	posterior_entry_set_length(entry, posterior_cached_rows(cached));
	posterior_entry_yield(entry);
}

void
posterior_entries_count(int64 *entries, int64 *bytes)
{
	posterior_lock(LW_SHARED);
	*entries = posterior_directory->n_entries;
	posterior_unlock();
	*bytes = (int64) pg_atomic_read_u64(&posterior_shared->used);
}

void
posterior_entries_note_lookup(PosteriorLookupOutcome outcome)
{
	pg_atomic_fetch_add_u64(&posterior_directory->lookups[outcome], 1);
}

void
posterior_entries_reset_counters(void)
{
	for (int i = 0; i < CACHE_LOOKUP_OUTCOMES; i++)
		pg_atomic_write_u64(&posterior_directory->lookups[i], 0);
	pg_atomic_write_u64(&posterior_directory->evictions, 0);
}
