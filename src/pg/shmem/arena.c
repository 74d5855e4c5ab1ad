/*
 * arena.c: the arena: blocks (blocks.h) behind the parts of the segment.
 *
 * What one process allocates any other may free. posterior_arena_alloc() returns NULL where there
 * is no block of a size, never an error, since callers may have claimed an entry.
 *
 * A reserve is one block that is had before anything is put there (posterior_reserve), so that all
 * of an encoding finds room or none of it, and lies together: when it goes, a stretch of its size
 * is free. What is left of it is given back by posterior_arena_done(); it lies beside what was free
 * before, as all is cut from the end from which the reserve was. The reserve is known to its
 * process alone, which neither raises nor waits for anything before it is done.
 *
 * Lock. The part has one, taken after that of the directory; it is held while blocks are cut and
 * joined. Eviction holds both while it looks for a window and frees what lies there, so that no
 * other process takes a part of it.
 *
 * Without preloading, the arena is a memory context and reserves are no business of it.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/shmem/arena.h"

#include "utils/memutils.h"

static PosteriorBlocks *blocks = NULL;	/* in shared memory */
static bool held = false;		/* this process has the lock already */
static MemoryContext own_arena = NULL;	/* of a session whose memory is its own */

/* Where this process allocates. */
static PosteriorBlock *reserve = NULL;	/* what is left of it, or NULL */
static PosteriorEnd reserve_end = POSTERIOR_END_HIGH;
static uint32 owner_kind = 0;
static void *owner = NULL;

static Size
arena_size(void)
{
	return sizeof(PosteriorBlocks);
}

static void
arena_initialize(void *part)
{
	(void) part;
	/* without preloading there are no blocks; arena_make() makes those in shared memory */
}

static void
arena_make(void *memory, Size size)
{
	posterior_blocks_make(blocks, memory, size);
}

PosteriorSharedPart posterior_arena_part = {
	.place = (void **) &blocks,.size = arena_size,.initialize = arena_initialize,.n_locks = 1,
	.behind = arena_make
};

PosteriorBlocks *
posterior_arena_hold(void)
{
	LWLockAcquire(posterior_part_lock(&posterior_arena_part, 0), LW_EXCLUSIVE);
	held = true;
	return blocks;
}

void
posterior_arena_let_go(void)
{
	held = false;
	LWLockRelease(posterior_part_lock(&posterior_arena_part, 0));
}

/* A block is taken; its bytes count from now on. The lock is held. */
static PosteriorBlock *
block_counted(PosteriorBlock *block)
{
	if (block != NULL)
		pg_atomic_fetch_add_u64(&posterior_shared->used, block->size);
	return block;
}

/* Give a block back. The lock is held. */
static void
block_give(PosteriorBlock *block)
{
	pg_atomic_fetch_sub_u64(&posterior_shared->used, block->size);
	posterior_blocks_give(blocks, block);
}

/* A block of so many bytes, of the reserve if it has them. The lock is held. */
static PosteriorBlock *
block_take(Size size)
{
	PosteriorBlock *block = reserve;

	if (block == NULL || block->size < size)
		block = block_counted(posterior_blocks_take(blocks, size, reserve_end));
	else
		block = posterior_block_split(blocks, block, size, reserve_end, &reserve);
	if (block != NULL)
	{
		block->owner_kind = owner_kind;
		block->owner = owner;
	}
	return block;
}

static void *
shared_alloc(Size size)
{
	bool		nested = held;
	PosteriorBlock *block;

	if (!nested)
		posterior_arena_hold();
	block = block_take(posterior_block_size(size));
	if (!nested)
		posterior_arena_let_go();
	return block == NULL ? NULL : posterior_block_memory(block);
}

/* In front of every piece of a session's own memory. */
typedef union Piece
{
	uint64		size;			/* of all of it */
	char		aligned[16];
} Piece;

static void *
own_alloc(Size size)
{
	Size		total = size + sizeof(Piece);
	Piece	   *piece;

	if (pg_atomic_read_u64(&posterior_shared->used) + total > (uint64) posterior_cache_size * 1024)
		return NULL;
	if (own_arena == NULL)
		own_arena = AllocSetContextCreate(TopMemoryContext, "posterior encodings",
										  ALLOCSET_DEFAULT_SIZES);
	piece = MemoryContextAllocExtended(own_arena, total, MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);
	if (piece == NULL)
		return NULL;
	piece->size = total;
	pg_atomic_fetch_add_u64(&posterior_shared->used, total);
	return piece + 1;
}

void *
posterior_arena_alloc(Size size)
{
	if (size > MaxAllocHugeSize / 2)
		return NULL;
	return posterior_is_shared ? shared_alloc(size) : own_alloc(size);
}

void
posterior_arena_free(void *pointer)
{
	bool		nested = held;

	if (!posterior_is_shared)
	{
		Piece	   *piece = (Piece *) pointer - 1;

		pg_atomic_fetch_sub_u64(&posterior_shared->used, piece->size);
		pfree(piece);
		return;
	}
	if (!nested)
		posterior_arena_hold();
	block_give(posterior_block_of(pointer));
	if (!nested)
		posterior_arena_let_go();
}

/* ---- the reserve ----------------------------------------------------------------------------- */

void
posterior_arena_reserve(PosteriorBlock *block, PosteriorEnd end)
{
	Assert(held);
	reserve = block_counted(block);
	reserve_end = end;
}

void
posterior_arena_own(const PosteriorSharedPart *part, void *piece, bool alone)
{
	if (!posterior_is_shared)
		return;
	owner_kind = part->number;
	owner = piece;
	reserve_end = part->lasting ? POSTERIOR_END_LOW : POSTERIOR_END_HIGH;
	if (!alone)
		return;
	/* a window that is looked for meanwhile sees both or neither */
	posterior_arena_hold();
	posterior_block_of(piece)->owner = owner;
	posterior_block_of(piece)->owner_kind = owner_kind;
	posterior_arena_let_go();
}

void
posterior_arena_done(void)
{
	bool		nested = held;

	if (reserve != NULL)
	{
		if (!nested)
			posterior_arena_hold();
		block_give(reserve);
		if (!nested)
			posterior_arena_let_go();
	}
	reserve = NULL;
	reserve_end = POSTERIOR_END_HIGH;
	owner_kind = 0;
	owner = NULL;
}
