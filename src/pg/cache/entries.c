/*
 * entries.c: the directory of cache entries: searching, pinning, claiming, publishing, freeing.
 *
 * A cache entry is an encoding, or the rows of one that a device holds, with the key of what all
 * its rows depend on. Entries of a key lie in the bucket of the key's hash; several entries of one
 * key are different contents with equal base rows, at most ENTRIES_PER_KEY of them.
 *
 * Lock. One LWLock, posterior_lock(), guards buckets, the order of use, the list of doomed entries,
 * `listed`, and the pins of models. It is held for list operations only: never while rows are
 * compared or encoded, so it is held for microseconds. Pins are changed under the shared lock at
 * least; freeing needs the exclusive lock, so an entry that is found in a bucket under the shared
 * lock can be pinned safely.
 *
 * Use. A process that has a pin, or finds an entry under the shared lock, sets the entry's tick and
 * no more; its place in the order of use (recency.h) changes when eviction looks for the oldest.
 *
 * Pins. A pin keeps an entry's memory, not its place in the directory. Handles (handle.c) and
 * searches have pins; each is given up by posterior_entry_unpin() or by a function that says so, at
 * the latest by handles_give_up_pins() when the process exits. Eviction takes entries without a
 * pin.
 *
 *     announced --publish--> listed --unlist, pinned--> doomed --last unpin--> freed
 *         |                    |
 *         +--unlist------------+--unlist or eviction, without a pin----------> freed
 *
 * Claim. `writer` is the pid of the one process that builds an entry or appends to it, an atomic
 * word that is taken by compare-and-exchange. It is no LWLock: encoding takes seconds and must stay
 * cancellable, and an LWLock would hold off interrupts. Since no resource owner knows it, nothing
 * may raise between claim and yield (lookup.c, extend.c). Waiters sleep on `settled`, which yield
 * broadcasts; they also wake up after RECHECK ms and look again.
 *
 * Length. `length` is the number of published rows plus one, and 0 while the entry is built. The
 * claim's holder writes rows behind the length, then publishes them by
 * posterior_entry_set_length(): a write barrier between rows and length. Readers read the length,
 * then rows: a read barrier in posterior_entry_length(). Published rows are never changed, and the
 * length never falls, so a reader needs no lock for the first n rows of a pinned entry, while
 * another process appends.
 *
 * Lifetimes. An entry has a pin of the model's weights that it was encoded by, or in a session's
 * own memory holds the model, because encodings refer to the model. An entry that is full or that
 * others have replaced stays for its readers and goes with the last pin. When a life of a database
 * ends (incarnation.c), its entries are unlisted under the exclusive lock.
 *
 * Called from any function of a transaction, unpin and release also from callbacks that free memory
 * contexts and from on_shmem_exit. Only posterior_entry_wait() may raise, and end the process.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/cache/entries.h"


#include "miscadmin.h"
#include "pgstat.h"
#include "storage/ipc.h"

#define ENTRIES_PER_KEY 4			/* contents of one context that are kept side by side */
#define KB_PER_ENTRY 16			/* of posterior.cache_size: there is a struct for so many */
#define LEAST_ENTRIES 16
#define RECHECK 60000			/* ms after which a waiter looks again by itself */

PosteriorDirectory *posterior_directory = NULL;

static void *directory_oldest(uint64 *used);
static Size directory_evict(void *piece);

static dlist_head *
entry_bucket(const PosteriorEntryKey *key)
{
	return &posterior_directory->entries[posterior_entry_key_hash(key) % POSTERIOR_BUCKETS];
}

/* ---- memory of entries ----------------------------------------------------------------------- */

/* Give back the struct of an entry. The lock is held exclusively. */
static void
entry_put(PosteriorCacheEntry *entry)
{
	if (posterior_is_shared)
	{
		dlist_push_head(&posterior_directory->spare, &entry->node);
		pg_atomic_fetch_sub_u64(&posterior_shared->used, sizeof(*entry));
	}
	else
		posterior_arena_free(entry);
}

/*
 * Structs of entries have the beginning of the arena for good: one is there before its encoding,
 * and wherever it lay else it would divide what is free. They count as memory in use while they are
 * used.
 */
static void
directory_stock(void)
{
	int			n = Max(posterior_cache_size / KB_PER_ENTRY, LEAST_ENTRIES);
	PosteriorCacheEntry *structs;

	if (!posterior_reserve(n * sizeof(*structs), POSTERIOR_END_LOW, false))
		elog(FATAL, "no room for entries of the cache");
	structs = posterior_arena_alloc(n * sizeof(*structs));
	posterior_arena_done();
	pg_atomic_fetch_sub_u64(&posterior_shared->used, posterior_block_of(structs)->size);
	for (int i = 0; i < n; i++)
		dlist_push_tail(&posterior_directory->spare, &structs[i].node);
}

/* The struct of an entry, for which the least recently used entry goes if there is no other. */
static PosteriorCacheEntry *
entry_take(void)
{
	PosteriorCacheEntry *entry = NULL;

	if (!posterior_is_shared)
		return posterior_reserve(sizeof(*entry), POSTERIOR_END_HIGH, true)
			? posterior_arena_alloc(sizeof(*entry)) : NULL;
	posterior_lock(LW_EXCLUSIVE);
	if (dlist_is_empty(&posterior_directory->spare))
	{
		uint64		used;
		void	   *oldest = directory_oldest(&used);

		if (oldest != NULL)
			(void) directory_evict(oldest);
	}
	if (!dlist_is_empty(&posterior_directory->spare))
	{
		entry = dlist_container(PosteriorCacheEntry, node,
								dlist_pop_head_node(&posterior_directory->spare));
		pg_atomic_fetch_add_u64(&posterior_shared->used, sizeof(*entry));
	}
	posterior_unlock();
	return entry;
}

/* ---- freeing --------------------------------------------------------------------------------- */

/* Free an entry that is in no list and has no pin. The lock is held exclusively. */
static void
entry_free(PosteriorCacheEntry *entry)
{
	posterior_cached_free(entry->cached);
	posterior_directory->n_entries--;
	if (entry->weights != NULL)
		posterior_weights_let_go(entry->weights, &entry->holder);
	if (entry->model != NULL)
		posterior_model_release(entry->model);
	if (!posterior_is_shared)
		pg_atomic_fetch_sub_u64(&posterior_shared->used, entry->bytes);
	entry_put(entry);
}

/* Take an entry out of its bucket; free it if it has no pin. The lock is held exclusively. */
static void
entry_unlist(PosteriorCacheEntry *entry)
{
	if (!entry->listed)
		return;
	entry->listed = false;
	dlist_delete(&entry->node);
	posterior_recency_remove(&entry->use);
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

bool
posterior_entry_has_model(const PosteriorCacheEntry *entry, const PosteriorModel *model)
{
	return entry->weights != NULL ? entry->weights == model->weights : entry->model == model;
}

void
posterior_entry_unpin(PosteriorCacheEntry *entry)
{
	bool		last,
				listed;

	/* under the lock the entry cannot be freed between the count and the look at `listed` */
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
	posterior_recency_init(&directory->recency);
	dlist_init(&directory->spare);
	for (int i = 0; i < POSTERIOR_BUCKETS; i++)
		dlist_init(&directory->entries[i]);
}

static bool
entry_is_idle(const PosteriorUse *use)
{
	PosteriorCacheEntry *entry = POSTERIOR_USER_OF(PosteriorCacheEntry, use, use);

	return pg_atomic_read_u32(&entry->pins) == 0;
}

/* The least recently used entry without a pin, nearly (recency.c). */
static void *
directory_oldest(uint64 *used)
{
	PosteriorUse *oldest = posterior_recency_oldest(&posterior_directory->recency, entry_is_idle,
													posterior_tick());

	if (oldest == NULL)
		return NULL;
	*used = oldest->used;
	return POSTERIOR_USER_OF(PosteriorCacheEntry, use, oldest);
}

static void
directory_pass(void *piece)
{
	posterior_recency_pass(&posterior_directory->recency, &((PosteriorCacheEntry *) piece)->use);
}

static bool
directory_may_go(const void *piece, uint64 *used)
{
	const PosteriorCacheEntry *entry = piece;

	*used = entry->use.used;
	return entry->listed && pg_atomic_read_u32((pg_atomic_uint32 *) &entry->pins) == 0;
}

static void *
directory_memory(const void *piece)
{
	return ((const PosteriorCacheEntry *) piece)->cached;
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
	.stock = directory_stock,.oldest = directory_oldest,.evict = directory_evict,
	.pass = directory_pass,.may_go = directory_may_go,.memory = directory_memory
};

/* ---- finding --------------------------------------------------------------------------------- */

/* The number of leading rows that are equal, byte by byte. */
static int64
common_rows(const TnpRows *a, int64 n, const TnpRows *b)
{
	int64		equal = 0,
				step = 1024;
	Size		width = (Size) a->n_features * sizeof(double);
	int			targets = tnp_rows_targets(a);

	if (b->n < n)
		n = b->n;
	while (equal < n)
	{
		int64		some = Min(step, n - equal);

		if (memcmp(a->y + equal * targets, b->y + equal * targets,
				   some * targets * sizeof(double)) == 0
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
		best->use.used = posterior_tick();
	if (best != NULL && *building != NULL)
	{
		posterior_entry_unpin(*building);
		*building = NULL;
	}
	return best;
}

PosteriorCacheEntry *
posterior_entry_search_older(const PosteriorEntryKey *key)
{
	PosteriorCacheEntry *last = NULL;
	dlist_iter	iter;

	posterior_lock(LW_SHARED);
	for (int b = 0; b < POSTERIOR_BUCKETS; b++)
		dlist_foreach(iter, &posterior_directory->entries[b])
		{
			PosteriorCacheEntry *entry = dlist_container(PosteriorCacheEntry, node, iter.cur);

			if (memcmp(&entry->key, key, offsetof(PosteriorEntryKey, prefix)) == 0
				&& posterior_entry_length(entry) >= 0
				&& (last == NULL || entry->use.used > last->use.used))
				last = entry;
		}
	if (last != NULL)
		pg_atomic_fetch_add_u32(&last->pins, 1);
	posterior_unlock();
	return last;
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
			entry->use.used = posterior_tick();
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
	uint32		unclaimed = 0;

	return pg_atomic_compare_exchange_u32(&entry->writer, &unclaimed, (uint32) MyProcPid);
}

void
posterior_entry_yield(PosteriorCacheEntry *entry)
{
	pg_atomic_write_u32(&entry->writer, 0);
	ConditionVariableBroadcast(&entry->settled);
}

/* A wait ends by an error, or with the process. */
static void
entry_wait_broken(int code, Datum entry)
{
	(void) code;
	ConditionVariableCancelSleep();
	posterior_entry_unpin((PosteriorCacheEntry *) DatumGetPointer(entry));
}

void
posterior_entry_wait(PosteriorCacheEntry *entry)
{
	static uint32 event = 0;

	PG_ENSURE_ERROR_CLEANUP(entry_wait_broken, PointerGetDatum(entry));
	{
		ConditionVariablePrepareToSleep(&entry->settled);
		while (pg_atomic_read_u32(&entry->writer) != 0)
			if (ConditionVariableTimedSleep(&entry->settled, RECHECK,
											posterior_wait_event(&event, "PosteriorEncoding")))
				break;
		ConditionVariableCancelSleep();
	}
	PG_END_ENSURE_ERROR_CLEANUP(entry_wait_broken, PointerGetDatum(entry));
	posterior_entry_unpin(entry);
}

PosteriorCacheEntry *
posterior_entry_announce(const PosteriorEntryKey *key, PosteriorModel *model, bool *full)
{
	PosteriorCacheEntry *entry = entry_take(),
			   *oldest = NULL;
	int			of_key = 0;
	dlist_iter	iter;

	*full = entry == NULL;
	if (entry == NULL)
		return NULL;
	memset(entry, 0, sizeof(*entry));
	entry->key = *key;
	entry->serial = posterior_tick();
	entry->use.used = entry->serial;
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
			entry_put(entry);
			posterior_unlock();
			return NULL;
		}
		of_key++;
		if (oldest == NULL || other->use.used < oldest->use.used)
			oldest = other;
	}
	if (of_key >= ENTRIES_PER_KEY)
		entry_unlist(oldest);
	entry->weights = model->weights;
	if (entry->weights != NULL)
		posterior_weights_hold(entry->weights, &entry->holder, &posterior_directory_part, entry);
	posterior_directory->n_entries++;
	dlist_push_head(entry_bucket(key), &entry->node);
	posterior_recency_add(&posterior_directory->recency, &entry->use);
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
