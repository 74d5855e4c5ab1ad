/*
 * segment.c: the segment, its parts and its arena.
 *
 * Memory. The segment lies in the server's main shared memory: the head, the parts one after the
 * other, the arena (arena.c). It is mapped at one address in all processes, as PostgreSQL itself
 * relies on, so plain pointers into it are valid everywhere. Nothing is ever put into /dev/shm.
 *
 * Locks. One tranche: lock 0 is that of the directory, posterior_lock(), for lists of entries and
 * models and for lives of databases; then come the locks of the parts, which only writer logs and
 * the arena have. A process takes the lock of the directory before that of a part, and at most one
 * of each. They are held for list operations, never while anything is computed, read or waited for.
 * A part's atomics are the part's own business.
 *
 * Without preloading, the parts lie in TopMemoryContext; locks are not taken, since no other
 * process sees them.
 *
 * Lifetimes. Parts are initialized once, by the first process that runs the startup hook; after a
 * crash the postmaster makes shared memory anew, and with it the random `epoch`. Pointers of a part
 * into backend memory are only those of sessions without preloading. A backend attaches at its
 * first use (shared.c) and stays attached until it exits.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/shmem/segment.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#define TRANCHE "pg_posterior"

int			posterior_cache_size = 65536;

PosteriorShared *posterior_shared = NULL;
bool		posterior_is_shared = false;

static PosteriorSharedPart *const *parts = NULL;
static int	n_parts = 0;
static LWLockPadded *locks = NULL;	/* of the directory, then those of the parts */
static void *arena_place = NULL;	/* in the segment */
static shmem_startup_hook_type next_startup = NULL;

#if POSTERIOR_REQUEST_HOOK
static shmem_request_hook_type next_request = NULL;
#endif

void
posterior_segment_declare(PosteriorSharedPart *const *all, int n)
{
	int			lock = 1;

	parts = all;
	n_parts = n;
	for (int i = 0; i < n; i++)
	{
		parts[i]->number = i + 1;
		parts[i]->first_lock = lock;
		lock += parts[i]->n_locks;
	}
}

PosteriorSharedPart *const *
posterior_segment_parts(int *n)
{
	*n = n_parts;
	return parts;
}

/* ---- making and attaching -------------------------------------------------------------------- */

static Size
part_size(const PosteriorSharedPart *part)
{
	return CACHELINEALIGN(part->size());
}

/* Of all that lies before the arena. */
static Size
head_size(void)
{
	Size		size = CACHELINEALIGN(sizeof(PosteriorShared)) + PG_CACHE_LINE_SIZE;

	for (int i = 0; i < n_parts; i++)
		size += part_size(parts[i]);
	return size;
}

static Size
arena_size(void)
{
	return (Size) posterior_cache_size * 1024;
}

static int
lock_count(void)
{
	int			n = 1;

	for (int i = 0; i < n_parts; i++)
		n += parts[i]->n_locks;
	return n;
}

static void
segment_initialize(PosteriorShared *shared)
{
	pg_atomic_init_u64(&shared->clock, 1);
	pg_atomic_init_u64(&shared->used, 0);
	if (!pg_strong_random(&shared->epoch, sizeof(shared->epoch)))
		shared->epoch = (uint64) GetCurrentTimestamp();
	for (int i = 0; i < n_parts; i++)
		parts[i]->initialize(*parts[i]->place);
}

/* Point to head, parts and arena, which lie one after the other. */
static void
segment_lay_out(char *base)
{
	char	   *at = (char *) CACHELINEALIGN(base);

	posterior_shared = (PosteriorShared *) at;
	at += CACHELINEALIGN(sizeof(PosteriorShared));
	for (int i = 0; i < n_parts; i++)
	{
		*parts[i]->place = at;
		at += part_size(parts[i]);
	}
	arena_place = at;
}

static void
segment_on_request(void)
{
#if POSTERIOR_REQUEST_HOOK
	if (next_request)
		next_request();
#endif
	RequestAddinShmemSpace(head_size() + arena_size());
	RequestNamedLWLockTranche(TRANCHE, lock_count());
}

static void
segment_on_startup(void)
{
	bool		found;
	char	   *base;

	if (next_startup)
		next_startup();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	base = ShmemInitStruct("pg_posterior", head_size() + arena_size(), &found);
	segment_lay_out(base);
	locks = GetNamedLWLockTranche(TRANCHE);
	posterior_is_shared = true;
	if (!found)
	{
		memset(base, 0, head_size());
		segment_initialize(posterior_shared);
		for (int i = 0; i < n_parts; i++)
			if (parts[i]->behind != NULL)
				parts[i]->behind(arena_place, arena_size());
		for (int i = 0; i < n_parts; i++)
			if (parts[i]->stock != NULL)
				parts[i]->stock();
	}
	LWLockRelease(AddinShmemInitLock);
}

void
posterior_segment_request(void)
{
#if POSTERIOR_REQUEST_HOOK
	next_request = shmem_request_hook;
	shmem_request_hook = segment_on_request;
#else
	segment_on_request();
#endif
	next_startup = shmem_startup_hook;
	shmem_startup_hook = segment_on_startup;
}

void
posterior_segment_attach(void)
{
	char	   *base;

	if (posterior_is_shared || posterior_shared != NULL)
		return;
	base = MemoryContextAllocZero(TopMemoryContext, head_size());
	segment_lay_out(base);
	segment_initialize(posterior_shared);
}

/* ---- locks and clock ------------------------------------------------------------------------- */

void
posterior_lock(LWLockMode mode)
{
	if (posterior_is_shared)
		LWLockAcquire(&locks[0].lock, mode);
}

void
posterior_unlock(void)
{
	if (posterior_is_shared)
		LWLockRelease(&locks[0].lock);
}

LWLock *
posterior_part_lock(const PosteriorSharedPart *part, int number)
{
	Assert(number < part->n_locks);
	return &locks[part->first_lock + number].lock;
}

uint64
posterior_tick(void)
{
	return pg_atomic_fetch_add_u64(&posterior_shared->clock, 1);
}
