/*
 * blocks.h: a stretch of memory in blocks that lie one after the other: what is there is seen in
 * the order of addresses, so that eviction can tell which neighbours have to go.
 *
 * Plain C without PostgreSQL, for test/unit/blocks_test.c. Callers have a lock.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_BLOCKS_H
#define POSTERIOR_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In front of the memory of each block, which is aligned to 32 bytes as the block is. */
typedef struct PosteriorBlock
{
	uint64_t	size;			/* of all of it */
	uint64_t	before;			/* size of the block in front of it; 0: there is none */
	uint32_t	in_use;
	uint32_t	owner_kind;		/* what `owner` is, for callers; 0: nothing is said of it */
	void	   *owner;
} PosteriorBlock;

/* From which end of a free stretch a block is cut. */
typedef enum PosteriorEnd
{
	POSTERIOR_END_HIGH,			/* of the smallest one that is large enough, roughly */
	POSTERIOR_END_LOW			/* of the lowest one: for what stays long */
} PosteriorEnd;

#define POSTERIOR_BLOCK_MOST 48 /* powers of two */
#define POSTERIOR_BLOCK_STEPS 8 /* lists of free blocks between two of these */

typedef struct PosteriorBlocks
{
	uint64_t	size;			/* of all blocks together */
	uint64_t	powers;			/* which have free blocks */
	uint8_t		steps[POSTERIOR_BLOCK_MOST];
	PosteriorBlock *lists[POSTERIOR_BLOCK_MOST][POSTERIOR_BLOCK_STEPS];
	PosteriorBlock *cursor;		/* follows the block it points to into the one that takes it up */
	PosteriorBlock *first;
} PosteriorBlocks;

/*
 * Whether what owns a block may go, and at which tick it was used last. `argument` is the caller's.
 */
typedef bool (*PosteriorMayGo) (const PosteriorBlock *block, void *argument, uint64_t *used);

/* Bytes that `size` bytes of memory take. */
uint64_t	posterior_block_size(uint64_t size);

/* One free block in `size` bytes of memory. */
void		posterior_blocks_make(PosteriorBlocks *all, void *memory, uint64_t size);

static inline void *
posterior_block_memory(PosteriorBlock *block)
{
	return block + 1;
}

static inline PosteriorBlock *
posterior_block_of(void *memory)
{
	return (PosteriorBlock *) memory - 1;
}

/* The block behind this one, or NULL. */
PosteriorBlock *posterior_block_next(const PosteriorBlocks *all, const PosteriorBlock *block);

/* A block of so many bytes (posterior_block_size), or NULL. */
PosteriorBlock *posterior_blocks_take(PosteriorBlocks *all, uint64_t size, PosteriorEnd end);

/* The same out of this free block, which is large enough. */
PosteriorBlock *posterior_blocks_take_from(PosteriorBlocks *all, PosteriorBlock *block,
										   uint64_t size, PosteriorEnd end);

/*
 * So many bytes from this end of a block in use, which has them: a block in use as well. *rest is
 * what is left of it, or NULL if that was too small.
 */
PosteriorBlock *posterior_block_split(PosteriorBlocks *all, PosteriorBlock *block, uint64_t size,
									  PosteriorEnd end, PosteriorBlock **rest);

/* Give a block back. */
void		posterior_blocks_give(PosteriorBlocks *all, PosteriorBlock *block);

/*
 * Where a stretch of `size` bytes is free, or would be if what may go went: its first block. NULL
 * if there is none: then nothing need go in vain. Of several it is the one for which what was used
 * least recently goes; for POSTERIOR_END_LOW the lowest one.
 */
PosteriorBlock *posterior_blocks_window(const PosteriorBlocks *all, uint64_t size,
										PosteriorEnd end, PosteriorMayGo may_go, void *argument);

/*
 * Such a stretch around this block, of neighbours that are free or were used at `limit` or before;
 * NULL if they do not reach so far. It takes a walk over these alone.
 */
PosteriorBlock *posterior_blocks_window_at(const PosteriorBlocks *all, PosteriorBlock *block,
										   uint64_t size, uint64_t limit, PosteriorMayGo may_go,
										   void *argument);

#endif							/* POSTERIOR_BLOCKS_H */
