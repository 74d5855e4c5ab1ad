/*
 * shared.c: the segment and its arena.
 *
 * The arena is PostgreSQL's own dsa allocator on a part of the main segment that may never grow: nothing is ever put into /dev/shm. The segment is
 * mapped at one address in all processes, as PostgreSQL itself relies on, so plain pointers into it are valid everywhere.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/shmem/shared.h"

#include "pg/base/bridge.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/dsa.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#define TRANCHE "pg_posterior"

int			posterior_cache_size = 65536;

PosteriorShared *posterior_shared = NULL;
bool		posterior_is_shared = false;

static LWLockPadded *locks = NULL;	/* of the directory, then one per writer log */
static void *place = NULL;		/* of the arena in the segment */
static dsa_area *area = NULL;	/* this process's handle of it */
static MemoryContext own = NULL;	/* the arena of a session of its own */
static shmem_startup_hook_type next_startup = NULL;

#if POSTERIOR_REQUEST_HOOK
static shmem_request_hook_type next_request = NULL;
#endif

/* Sizes of the parts of the segment. */
static Size
head_size(void)
{
	return MAXALIGN(sizeof(PosteriorShared)) + MAXALIGN(posterior_incarnations_size()) + PG_CACHE_LINE_SIZE;
}

static Size
arena_size(void)
{
	return Max((Size) posterior_cache_size * 1024, dsa_minimum_size() + (Size) 256 * 1024);
}

static void
initialize(PosteriorShared *s)
{
	memset(s, 0, sizeof(*s));
	pg_atomic_init_u64(&s->clock, 1);
	pg_atomic_init_u64(&s->used, 0);
	if (!pg_strong_random(&s->epoch, sizeof(s->epoch)))
		s->epoch = (uint64) GetCurrentTimestamp();
	posterior_server_init(&s->server);
	pg_atomic_init_u64(&s->counters.hits, 0);
	pg_atomic_init_u64(&s->counters.misses, 0);
	pg_atomic_init_u64(&s->counters.appends, 0);
	pg_atomic_init_u64(&s->counters.evictions, 0);
	pg_atomic_init_u64(&s->counters.privates, 0);
	for (int i = 0; i < POSTERIOR_PROGRESSES; i++)
	{
		pg_atomic_init_u32(&s->progresses[i].pid, 0);
		pg_atomic_init_u32(&s->progresses[i].phase, 0);
		pg_atomic_init_u64(&s->progresses[i].done, 0);
		pg_atomic_init_u64(&s->progresses[i].total, 0);
	}
	for (int i = 0; i < POSTERIOR_WRITER_LOGS; i++)
		pg_atomic_init_u64(&s->watched[i], 0);
	dlist_init(&s->weights);
	dlist_init(&s->doomed);
	for (int i = 0; i < POSTERIOR_BUCKETS; i++)
		dlist_init(&s->entries[i]);
}

static void
request(void)
{
#if POSTERIOR_REQUEST_HOOK
	if (next_request)
		next_request();
#endif
	RequestAddinShmemSpace(head_size() + arena_size());
	RequestNamedLWLockTranche(TRANCHE, 1 + POSTERIOR_WRITER_LOGS);
}

static void
startup(void)
{
	bool		found;
	char	   *base;

	if (next_startup)
		next_startup();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	base = ShmemInitStruct("pg_posterior", head_size() + arena_size(), &found);
	posterior_shared = (PosteriorShared *) base;
	place = (void *) CACHELINEALIGN(base + MAXALIGN(sizeof(PosteriorShared)) + MAXALIGN(posterior_incarnations_size()));
	locks = GetNamedLWLockTranche(TRANCHE);
	if (!found)
	{
		dsa_area   *fresh;

		initialize(posterior_shared);
		posterior_shared->incarnations = (PosteriorIncarnation *) (base + MAXALIGN(sizeof(PosteriorShared)));
		memset(posterior_shared->incarnations, 0, posterior_incarnations_size());
		fresh = dsa_create_in_place(place, arena_size(), locks[0].lock.tranche, NULL);
		dsa_pin(fresh);
		dsa_set_size_limit(fresh, arena_size());	/* never a segment of its own */
		dsa_detach(fresh);
	}
	posterior_is_shared = true;
	LWLockRelease(AddinShmemInitLock);
}

void
posterior_shared_request(void)
{
#if POSTERIOR_REQUEST_HOOK
	next_request = shmem_request_hook;
	shmem_request_hook = request;
#else
	request();
#endif
	next_startup = shmem_startup_hook;
	shmem_startup_hook = startup;
}

void
posterior_shared_attach(void)
{
	if (posterior_is_shared)
	{
		if (area == NULL)
		{
			MemoryContext before = MemoryContextSwitchTo(TopMemoryContext);

			area = dsa_attach_in_place(place, NULL);
			MemoryContextSwitchTo(before);
			dsa_pin_mapping(area);
		}
	}
	else if (posterior_shared == NULL)
	{
		PosteriorShared *s = MemoryContextAlloc(TopMemoryContext, sizeof(PosteriorShared));

		initialize(s);
		own = AllocSetContextCreate(TopMemoryContext, "posterior encodings", ALLOCSET_DEFAULT_SIZES);
		posterior_shared = s;
	}
	/* the launcher and the supervisor have no database, and a worker attaches before its first transaction */
	if (OidIsValid(MyDatabaseId) && IsTransactionState())
		posterior_incarnation_join();
}

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
posterior_writer_log_lock(int number)
{
	return &locks[1 + number].lock;
}

uint64
posterior_tick(void)
{
	return pg_atomic_fetch_add_u64(&posterior_shared->clock, 1);
}

/* ---- the arena --------------------------------------------------------------------------------------------------- */

/* In front of every piece. */
typedef struct Piece
{
	uint64		size;			/* of all of it */
	uint64		pointer;		/* dsa_pointer */
} Piece;

void *
posterior_arena_alloc(Size size)
{
	Size		total = size + sizeof(Piece);
	Piece	   *piece;
	dsa_pointer pointer = InvalidDsaPointer;

	if (size > MaxAllocHugeSize / 2)
		return NULL;
	if (posterior_is_shared)
	{
		if (total > arena_size())
			return NULL;
		pointer = dsa_allocate_extended(area, total, DSA_ALLOC_HUGE | DSA_ALLOC_NO_OOM);
		piece = DsaPointerIsValid(pointer) ? dsa_get_address(area, pointer) : NULL;
	}
	else if (pg_atomic_read_u64(&posterior_shared->used) + total > (uint64) posterior_cache_size * 1024)
		return NULL;
	else
		piece = MemoryContextAllocExtended(own, total, MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
	if (piece == NULL)
		return NULL;
	piece->size = total;
	piece->pointer = pointer;
	pg_atomic_fetch_add_u64(&posterior_shared->used, total);
	return piece + 1;
}

void
posterior_arena_free(void *pointer)
{
	Piece	   *piece = (Piece *) pointer - 1;

	pg_atomic_fetch_sub_u64(&posterior_shared->used, piece->size);
	if (posterior_is_shared)
		dsa_free(area, piece->pointer);
	else
		pfree(piece);
}
