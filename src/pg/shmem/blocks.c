/*
 * blocks.c: the blocks of the arena.
 *
 * Each block knows its size and that of the block in front of it; a block that is given back joins
 * free neighbours at once, so free blocks are never neighbours. Free blocks are in lists by size,
 * eight to a power of two: taking one of the smallest that are large enough takes no walk.
 *
 * Two ends. What stays long, as parsed models, is cut from the lowest free block that it fits in,
 * which takes a walk; all else from the high end of one. So what stays gathers at the beginning and
 * leaves no fences in the middle, between which large blocks would find no room although most of
 * the memory is free.
 *
 * Windows. A block that finds no room may have what lies in its way evicted. Evicting what was used
 * least recently, wherever it lies, frees a run of neighbours by luck only, and nothing where a
 * block in between stays. So the blocks are looked at in the order of addresses: the window is a
 * run of free blocks and such as may go, and of all windows that whose youngest member is oldest.
 * As that takes some dozen walks over all blocks, the neighbours of the oldest are tried first.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/shmem/blocks.h"

#include <string.h>

#define UNIT 32					/* sizes and addresses are multiples of it */

/* In the memory of a free block: its neighbours in the list. */
typedef struct Link
{
	PosteriorBlock *next,
			   *previous;
} Link;

#define LEAST (sizeof(PosteriorBlock) + UNIT)	/* bytes of a block */

_Static_assert(sizeof(PosteriorBlock) % UNIT == 0, "headers keep memory aligned");
_Static_assert(sizeof(Link) <= UNIT, "links lie in the memory of free blocks");

static Link *
link_of(PosteriorBlock *block)
{
	return posterior_block_memory(block);
}

uint64_t
posterior_block_size(uint64_t size)
{
	uint64_t	all = (size + sizeof(PosteriorBlock) + UNIT - 1) / UNIT * UNIT;

	return all < LEAST ? LEAST : all;
}

PosteriorBlock *
posterior_block_next(const PosteriorBlocks *all, const PosteriorBlock *block)
{
	PosteriorBlock *next = (PosteriorBlock *) ((char *) block + block->size);

	return (char *) next < (char *) all->first + all->size ? next : NULL;
}

/* ---- free blocks ----------------------------------------------------------------------------- */

/* The list of blocks of this size. */
static void
list_of(uint64_t size, int *power, int *step)
{
	*power = 63 - __builtin_clzll(size);
	*step = (int) (size >> (*power - 3)) & (POSTERIOR_BLOCK_STEPS - 1);
}

static void
list_put(PosteriorBlocks *all, PosteriorBlock *block)
{
	int			power,
				step;
	PosteriorBlock *next;

	list_of(block->size, &power, &step);
	next = all->lists[power][step];
	link_of(block)->next = next;
	link_of(block)->previous = NULL;
	if (next != NULL)
		link_of(next)->previous = block;
	all->lists[power][step] = block;
	all->powers |= (uint64_t) 1 << power;
	all->steps[power] |= (uint8_t) (1 << step);
	block->in_use = false;
	block->owner_kind = 0;
	block->owner = NULL;
}

static void
list_remove(PosteriorBlocks *all, PosteriorBlock *block)
{
	Link	   *link = link_of(block);
	int			power,
				step;

	list_of(block->size, &power, &step);
	if (link->next != NULL)
		link_of(link->next)->previous = link->previous;
	if (link->previous != NULL)
		link_of(link->previous)->next = link->next;
	else
		all->lists[power][step] = link->next;
	if (all->lists[power][step] == NULL)
		all->steps[power] &= (uint8_t) ~(1 << step);
	if (all->steps[power] == 0)
		all->powers &= ~((uint64_t) 1 << power);
}

/* The first block of the list of this size, or of the next one that has any. */
static PosteriorBlock *
list_first(const PosteriorBlocks *all, uint64_t size)
{
	int			power,
				step;
	uint64_t	powers;
	unsigned	steps;

	list_of(size, &power, &step);
	steps = all->steps[power] & (0xffu << step);
	if (steps == 0)
	{
		powers = all->powers & ~(((uint64_t) 2 << power) - 1);
		if (powers == 0)
			return NULL;
		power = __builtin_ctzll(powers);
		steps = all->steps[power];
	}
	return all->lists[power][__builtin_ctz(steps)];
}

/* A free block of at least this size: of one of the shortest lists that have one. */
static PosteriorBlock *
find_near(const PosteriorBlocks *all, uint64_t size)
{
	int			power,
				step;
	uint64_t	width;

	list_of(size, &power, &step);
	/* in the list of its own size not all are large enough */
	for (PosteriorBlock *b = all->lists[power][step]; b != NULL; b = link_of(b)->next)
		if (b->size >= size)
			return b;
	width = (uint64_t) 1 << (power - 3);
	return list_first(all, (size / width + 1) * width);
}

static PosteriorBlock *
find_lowest(const PosteriorBlocks *all, uint64_t size)
{
	for (PosteriorBlock *b = all->first; b != NULL; b = posterior_block_next(all, b))
		if (!b->in_use && b->size >= size)
			return b;
	return NULL;
}

/* ---- taking and giving ----------------------------------------------------------------------- */

void
posterior_blocks_make(PosteriorBlocks *all, void *memory, uint64_t size)
{
	uintptr_t	skip = (UNIT - (uintptr_t) memory % UNIT) % UNIT;

	memset(all, 0, sizeof(*all));
	all->first = (PosteriorBlock *) ((char *) memory + skip);
	all->size = (size - skip) / UNIT * UNIT;
	all->first->size = all->size;
	all->first->before = 0;
	list_put(all, all->first);
}

/* Cut a block in two; the second one has no state yet. */
static PosteriorBlock *
cut(PosteriorBlocks *all, PosteriorBlock *block, uint64_t size)
{
	PosteriorBlock *rest = (PosteriorBlock *) ((char *) block + size),
			   *next = posterior_block_next(all, block);

	rest->size = block->size - size;
	rest->before = size;
	block->size = size;
	if (next != NULL)
		next->before = rest->size;
	return rest;
}

PosteriorBlock *
posterior_blocks_take_from(PosteriorBlocks *all, PosteriorBlock *block, uint64_t size,
						   PosteriorEnd end)
{
	list_remove(all, block);
	if (block->size >= size + LEAST)
	{
		if (end == POSTERIOR_END_LOW)
			list_put(all, cut(all, block, size));
		else
		{
			PosteriorBlock *taken = cut(all, block, block->size - size);

			list_put(all, block);
			block = taken;
		}
	}
	block->in_use = true;
	block->owner_kind = 0;
	block->owner = NULL;
	return block;
}

PosteriorBlock *
posterior_blocks_take(PosteriorBlocks *all, uint64_t size, PosteriorEnd end)
{
	PosteriorBlock *block = size > all->size ? NULL
		: end == POSTERIOR_END_LOW ? find_lowest(all, size) : find_near(all, size);

	return block == NULL ? NULL : posterior_blocks_take_from(all, block, size, end);
}

PosteriorBlock *
posterior_block_split(PosteriorBlocks *all, PosteriorBlock *block, uint64_t size, PosteriorEnd end,
					  PosteriorBlock **rest)
{
	PosteriorBlock *second;

	*rest = NULL;
	if (block->size < size + LEAST)
		return block;
	second = cut(all, block, end == POSTERIOR_END_LOW ? size : block->size - size);
	second->in_use = true;
	second->owner_kind = block->owner_kind;
	second->owner = block->owner;
	*rest = end == POSTERIOR_END_LOW ? second : block;
	return end == POSTERIOR_END_LOW ? block : second;
}

/* Have a block take up the one behind it; both are in no list. */
static void
join(PosteriorBlocks *all, PosteriorBlock *block, PosteriorBlock *behind)
{
	PosteriorBlock *next;

	block->size += behind->size;
	next = posterior_block_next(all, block);
	if (next != NULL)
		next->before = block->size;
	if (all->cursor == behind)
		all->cursor = block;
}

void
posterior_blocks_give(PosteriorBlocks *all, PosteriorBlock *block)
{
	PosteriorBlock *next = posterior_block_next(all, block),
			   *before = (PosteriorBlock *) ((char *) block - block->before);

	if (next != NULL && !next->in_use)
	{
		list_remove(all, next);
		join(all, block, next);
	}
	if (block->before > 0 && !before->in_use)
	{
		list_remove(all, before);
		join(all, before, block);
		block = before;
	}
	list_put(all, block);
}

/* ---- windows --------------------------------------------------------------------------------- */

/* What a search for a window knows. */
typedef struct Search
{
	const PosteriorBlocks *all;
	uint64_t	size;
	PosteriorEnd end;
	PosteriorMayGo may_go;
	void	   *argument;
	uint64_t	oldest,			/* ticks of what may go */
				newest;
} Search;

/*
 * The window in which all that goes was used at `limit` or before; NULL if there is none. Of
 * several that in which the fewest bytes are in use, for POSTERIOR_END_LOW the lowest.
 */
static PosteriorBlock *
window_until(Search *s, uint64_t limit)
{
	PosteriorBlock *from = NULL,
			   *best = NULL;
	uint64_t	run = 0,
				in_use = 0,
				least = 0;

	for (PosteriorBlock *b = s->all->first; b != NULL; b = posterior_block_next(s->all, b))
	{
		uint64_t	used = 0;

		if (b->in_use)
		{
			bool		goes = s->may_go(b, s->argument, &used);

			if (goes && used < s->oldest)
				s->oldest = used;
			if (goes && used > s->newest)
				s->newest = used;
			if (!goes || used > limit)
			{
				from = NULL;
				run = in_use = 0;
				continue;
			}
			in_use += b->size;
		}
		if (from == NULL)
			from = b;
		run += b->size;
		while (run - from->size >= s->size)
		{
			run -= from->size;
			in_use -= from->in_use ? from->size : 0;
			from = posterior_block_next(s->all, from);
		}
		if (run >= s->size && (best == NULL || in_use < least))
		{
			best = from;
			least = in_use;
			if (s->end == POSTERIOR_END_LOW)
				break;
		}
	}
	return best;
}

PosteriorBlock *
posterior_blocks_window(const PosteriorBlocks *all, uint64_t size, PosteriorEnd end,
						PosteriorMayGo may_go, void *argument)
{
	Search		s = {all, size, end, may_go, argument, UINT64_MAX, 0};
	PosteriorBlock *best = size > all->size ? NULL : window_until(&s, UINT64_MAX);
	uint64_t	low = s.oldest,
				high = s.newest;

	if (best == NULL || end == POSTERIOR_END_LOW)
		return best;
	/* the smallest limit with a window: its youngest member is as old as can be */
	while (low < high)
	{
		uint64_t	middle = low + (high - low) / 2;

		if (window_until(&s, middle) != NULL)
			high = middle;
		else
			low = middle + 1;
	}
	return window_until(&s, high);
}

/* Whether a block is free, or may go and was used at `limit` or before. */
static bool
gives_way(const PosteriorBlock *block, uint64_t limit, PosteriorMayGo may_go, void *argument)
{
	uint64_t	used;

	return !block->in_use || (may_go(block, argument, &used) && used <= limit);
}

PosteriorBlock *
posterior_blocks_window_at(const PosteriorBlocks *all, PosteriorBlock *block, uint64_t size,
						   uint64_t limit, PosteriorMayGo may_go, void *argument)
{
	uint64_t	run = 0;

	for (PosteriorBlock *b = block; b != NULL && run < size; b = posterior_block_next(all, b))
	{
		if (!gives_way(b, limit, may_go, argument))
			break;
		run += b->size;
	}
	/* none of it if the block itself stays */
	while (run > 0 && run < size && block->before > 0)
	{
		PosteriorBlock *before = (PosteriorBlock *) ((char *) block - block->before);

		if (!gives_way(before, limit, may_go, argument))
			break;
		block = before;
		run += block->size;
	}
	return run >= size ? block : NULL;
}
