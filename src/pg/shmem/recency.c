/*
 * recency.c: second chances in the order of use.
 *
 * A use sets the piece's tick, a plain store, and leaves its place in the order as it is: to move
 * it would take a lock that excludes all other uses. So the order is that in which pieces got their
 * places. The search for the oldest mends it from the old end on: a piece that was used after it
 * got its place gets a new one, as the newest. The first one that was not is what goes.
 *
 * That is least recently used, but for two things. A piece stands where the search has moved it, as
 * if it had been used then. And after MOST places the search ends with the oldest piece that it has
 * met, so that no search takes long where all have been used since the last one. On skewed uses
 * more are found than with the exact order, in about two steps a search
 * (test/unit/recency_test.c).
 *
 * What is in use is used now: it is moved, too, and does not stay at the old end, where each search
 * would meet it. So a search takes more than MOST steps only where that many are in use.
 *
 * Callers have a lock that excludes each other, and that pieces which are idle come into use.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/shmem/recency.h"

#define MOST 64					/* places that a search looks at, if one of them is idle */

void
posterior_recency_init(PosteriorRecency *all)
{
	all->ends.newer = all->ends.older = &all->ends;
}

void
posterior_recency_add(PosteriorRecency *all, PosteriorUse *use)
{
	PosteriorUse *newest = all->ends.older;

	use->seen = use->used;
	use->older = newest;
	use->newer = &all->ends;
	newest->newer = use;
	all->ends.older = use;
}

void
posterior_recency_remove(PosteriorUse *use)
{
	use->older->newer = use->newer;
	use->newer->older = use->older;
}

void
posterior_recency_pass(PosteriorRecency *all, PosteriorUse *use)
{
	posterior_recency_remove(use);
	posterior_recency_add(all, use);
}

PosteriorUse *
posterior_recency_oldest(PosteriorRecency *all, PosteriorIdle idle, uint64_t now)
{
	PosteriorUse *oldest = NULL,
			   *moved_first = NULL;

	for (int met = 0; oldest == NULL || met < MOST; met++)
	{
		PosteriorUse *use = all->ends.newer;

		/* all have been met */
		if (use == &all->ends || use == moved_first)
			break;
		if (idle(use))
		{
			if (oldest == NULL || use->used < oldest->used)
				oldest = use;
			if (use->used == use->seen)
				break;
		}
		else
			use->used = now;
		posterior_recency_pass(all, use);
		if (moved_first == NULL)
			moved_first = use;
	}
	return oldest;
}
