/*
 * blocks_test.c: blocks of the shared cache's memory: they tile it whatever comes and goes, what
 * lasts lies low, and a window is found where there is one, and nowhere else.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <stdlib.h>

/* PostgreSQL is not needed for it, and the rest of src/pg is not linked */
#include "pg/shmem/blocks.c"

#include "tap.h"

#define MEMORY (1 << 20)
#define MOST 512

static char memory[MEMORY + 64];
static PosteriorBlocks all;
static PosteriorBlock *taken[MOST];
static bool pinned[MOST];
static uint64_t ticks[MOST];
static uint64_t state = 1;

static uint64_t
random_below(uint64_t n)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (state >> 33) % n;
}

static void
begin(void)
{
	posterior_blocks_make(&all, memory + 5, MEMORY);
	memset(taken, 0, sizeof(taken));
}

/* Whether blocks tile the memory, no two neighbours are free, and lists have the free ones. */
static bool
whole(void)
{
	uint64_t	bytes = 0,
				before = 0;
	int			free_blocks = 0,
				listed = 0;
	bool		was_free = false;

	for (PosteriorBlock *b = all.first; b != NULL; b = posterior_block_next(&all, b))
	{
		if (b->before != before || b->size < LEAST || b->size % UNIT != 0
			|| (!b->in_use && was_free))
			return false;
		was_free = !b->in_use;
		free_blocks += was_free;
		before = b->size;
		bytes += b->size;
	}
	for (int p = 0; p < POSTERIOR_BLOCK_MOST; p++)
		for (int s = 0; s < POSTERIOR_BLOCK_STEPS; s++)
		{
			if ((all.lists[p][s] != NULL) != ((all.steps[p] >> s & 1) != 0))
				return false;
			for (PosteriorBlock *b = all.lists[p][s]; b != NULL; b = link_of(b)->next)
				listed++;
		}
	return bytes == all.size && listed == free_blocks;
}

static PosteriorBlock *
take(uint64_t size, PosteriorEnd end)
{
	return posterior_blocks_take(&all, posterior_block_size(size), end);
}

/* A block of slot i, with its number as owner. */
static bool
fill(int i, uint64_t size, uint64_t used, bool pin)
{
	taken[i] = take(size, POSTERIOR_END_HIGH);
	if (taken[i] == NULL)
		return false;
	memset(posterior_block_memory(taken[i]), i, size);
	taken[i]->owner_kind = 1;
	taken[i]->owner = &taken[i];
	ticks[i] = used;
	pinned[i] = pin;
	return true;
}

static int
number_of(const PosteriorBlock *block)
{
	return (int) ((PosteriorBlock **) block->owner - taken);
}

static bool
may_go(const PosteriorBlock *block, void *argument, uint64_t *used)
{
	(void) argument;
	if (block->owner_kind == 0 || pinned[number_of(block)])
		return false;
	*used = ticks[number_of(block)];
	return true;
}

static PosteriorBlock *
window(uint64_t size, PosteriorEnd end)
{
	return posterior_blocks_window(&all, size, end, may_go, NULL);
}

static void
give(int i)
{
	posterior_blocks_give(&all, taken[i]);
	taken[i] = NULL;
}

/* The tick of the youngest that goes in the best window, by trying them all; or UINT64_MAX. */
static uint64_t
best_by_trying(uint64_t size)
{
	uint64_t	best = UINT64_MAX;

	for (PosteriorBlock *from = all.first; from != NULL; from = posterior_block_next(&all, from))
	{
		uint64_t	run = 0,
					youngest = 0;

		for (PosteriorBlock *b = from; b != NULL && run < size; b = posterior_block_next(&all, b))
		{
			uint64_t	used = 0;

			if (b->in_use && !may_go(b, NULL, &used))
				break;
			youngest = used > youngest ? used : youngest;
			run += b->size;
		}
		if (run >= size && youngest < best)
			best = youngest;
	}
	return best;
}

/* Evict a window's blocks as eviction.c does; the youngest of them, or UINT64_MAX if one stays. */
static uint64_t
clear(PosteriorBlock *from, uint64_t size)
{
	uint64_t	youngest = 0;

	all.cursor = from;
	while (all.cursor->in_use || all.cursor->size < size)
	{
		PosteriorBlock *goes = all.cursor->in_use ? all.cursor
			: posterior_block_next(&all, all.cursor);
		uint64_t	used;

		if (goes == NULL || !may_go(goes, NULL, &used))
			return UINT64_MAX;
		youngest = used > youngest ? used : youngest;
		give(number_of(goes));
	}
	return youngest;
}

/* Bytes of the longest run of neighbours that are free or old enough around a block. */
static uint64_t
reach(PosteriorBlock *at, uint64_t limit)
{
	uint64_t	run = 0,
				used;
	bool		holds = false;

	for (PosteriorBlock *b = all.first; b != NULL; b = posterior_block_next(&all, b))
	{
		if (!b->in_use || (may_go(b, NULL, &used) && used <= limit))
			run += b->size;
		else if (holds)
			break;
		else
			run = 0;
		holds = holds || b == at;
	}
	return holds && (may_go(at, NULL, &used) && used <= limit) ? run : 0;
}

/* Whether the window around a block is where there is one, has it, and all of it is old enough. */
static bool
window_at_holds(int i, uint64_t size, uint64_t limit)
{
	PosteriorBlock *from = posterior_blocks_window_at(&all, taken[i], size, limit, may_go, NULL);
	uint64_t	run = 0,
				used;
	bool		has = false;

	if (from == NULL || reach(taken[i], limit) < size)
		return from == NULL && reach(taken[i], limit) < size;
	for (PosteriorBlock *b = from; b != NULL && run < size; b = posterior_block_next(&all, b))
	{
		if (b->in_use && (!may_go(b, NULL, &used) || used > limit))
			return false;
		has = has || b == taken[i];
		run += b->size;
	}
	return run >= size && has;
}

static void
check_random(void)
{
	int			broken = 0,
				overlaps = 0,
				windows = 0,
				none = 0,
				wrong = 0,
				around = 0;

	begin();
	for (int round = 0; round < 20000; round++)
	{
		int			i = (int) random_below(MOST);
		uint64_t	size = random_below(random_below(8) == 0 ? 120000 : 3000);

		if (taken[i] != NULL)
		{
			/* its memory is its own */
			overlaps += ((unsigned char *) posterior_block_memory(taken[i]))[0] != (i & 255);
			give(i);
		}
		else if (!fill(i, size + 1, (uint64_t) round + 1, random_below(4) == 0))
		{
			uint64_t	wanted = posterior_block_size(size + 1),
						best = best_by_trying(wanted);
			PosteriorBlock *from = window(wanted, POSTERIOR_END_HIGH);
			int			j = (int) random_below(MOST);

			if (taken[j] != NULL)
				around += !window_at_holds(j, wanted, random_below((unsigned) round + 1));
			if (from == NULL)
			{
				none++;
				wrong += best != UINT64_MAX;
			}
			else
			{
				windows++;
				wrong += clear(from, wanted) != best;
			}
		}
		broken += !whole();
	}
	is_int(broken, 0, "blocks tile the memory");
	is_int(overlaps, 0, "and do not overlap");
	ok(windows > 100 && none > 50, "there was a window %d times, %d times none", windows, none);
	is_int(wrong, 0, "of all windows that whose youngest is oldest");
	is_int(around, 0, "those around a block are where they can be");
	for (int i = 0; i < MOST; i++)
		if (taken[i] != NULL)
			give(i);
	ok(whole() && !all.first->in_use && all.first->size == all.size, "all is one block again");
}

/* What lasts and what does not, by turns, as models and encodings come. */
static void
check_ends(void)
{
	PosteriorBlock *models[8];
	int			n = 0;

	begin();
	for (int m = 0; m < 8; m++)
	{
		for (int i = 0; i < 6; i++)
		{
			fill(n, 10000, (uint64_t) n + 1, false);
			n++;
		}
		models[m] = take(5000, POSTERIOR_END_LOW);
	}
	for (int i = 0; i < n; i++)
		if (taken[i] != NULL)
			give(i);
	ok(models[7] != NULL && (char *) models[7] - (char *) models[0] < 8 * 6000,
	   "what lasts lies together, whatever came between");
	ok(take(MEMORY * 9 / 10, POSTERIOR_END_HIGH) != NULL, "and leaves the rest in one piece");
}

static void
check_windows(void)
{
	uint64_t	size;
	PosteriorBlock *from;

	begin();
	for (int i = 0; i < 10; i++)
		fill(i, 100000, (uint64_t) (i == 3 || i == 4 ? 1 : 100 + i), i == 6);
	size = posterior_block_size(200000);
	from = window(size, POSTERIOR_END_HIGH);
	ok(from == taken[4], "the neighbours that were used least recently go");
	ok(window(size, POSTERIOR_END_LOW) == taken[9], "or the lowest ones");
	ok(posterior_blocks_window_at(&all, taken[3], size, 1, may_go, NULL) == taken[4],
	   "the neighbour of one that was used long ago goes with it");
	ok(posterior_blocks_window_at(&all, taken[3], 3 * size / 2, 1, may_go, NULL) == NULL,
	   "but none that was used later");
	ok(posterior_blocks_window_at(&all, taken[3], 3 * size / 2, 105, may_go, NULL) == taken[3],
	   "than it may have been; those behind go first");
	ok(posterior_blocks_window_at(&all, taken[6], 64, 200, may_go, NULL) == NULL,
	   "and one that stays has no window");
	ok(window(7 * size / 2, POSTERIOR_END_HIGH) == NULL,
	   "where one in use is in the way there is no window");
	is_int((long long) clear(from, size), 1, "a window is cleared");
	ok(taken[3] == NULL && taken[4] == NULL && taken[2] != NULL && taken[5] != NULL,
	   "and nothing else");
	for (int i = 0; i < 10; i++)
		pinned[i] = true;
	ok(window(size, POSTERIOR_END_HIGH) != NULL, "what is free is a window");
	ok(window(2 * size, POSTERIOR_END_HIGH) == NULL, "what is in use is none");
	ok(window(2 * (uint64_t) MEMORY, POSTERIOR_END_HIGH) == NULL, "nor is more than there is");
}

static void
check_split(void)
{
	uint64_t	size = posterior_block_size(200);
	PosteriorBlock *block,
			   *low,
			   *high,
			   *rest,
			   *none;

	begin();
	block = take(1000, POSTERIOR_END_HIGH);
	low = posterior_block_split(&all, block, size, POSTERIOR_END_LOW, &rest);
	ok(low == block && low->size == size && rest != NULL && rest->in_use
	   && low->size + rest->size == posterior_block_size(1000), "a block in use is split");
	block = rest;
	high = posterior_block_split(&all, block, size, POSTERIOR_END_HIGH, &rest);
	ok(rest == block && high->in_use && high->size == size && whole()
	   && posterior_block_next(&all, rest) == high, "at its other end, too");
	ok(posterior_block_split(&all, rest, rest->size - UNIT, POSTERIOR_END_HIGH, &none) == rest
	   && none == NULL, "unless too little is left");
	posterior_blocks_give(&all, low);
	posterior_blocks_give(&all, high);
	posterior_blocks_give(&all, rest);
	ok(whole() && all.first->size == all.size, "and its parts are given back one by one");
}

int
main(void)
{
	check_random();
	check_ends();
	check_windows();
	check_split();
	return done_testing();
}
