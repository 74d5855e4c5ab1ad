/*
 * recency.h: pieces in the order in which they were used, roughly, so that the one that was used
 * least recently is found without a walk over all of them.
 *
 * Plain C without PostgreSQL, for test/unit/recency_test.c.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_RECENCY_H
#define POSTERIOR_RECENCY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In each piece. */
typedef struct PosteriorUse
{
	struct PosteriorUse *older,
			   *newer;
	uint64_t	seen;			/* what `used` was when the piece got its place */
	uint64_t	used;			/* the tick of its last use, set by that */
} PosteriorUse;

/* A ring: `ends.newer` is the oldest piece, `ends.older` the newest. */
typedef struct PosteriorRecency
{
	PosteriorUse ends;
} PosteriorRecency;

/* The structure of which `use` is this member. */
#define POSTERIOR_USER_OF(type, member, use) \
	((type *) ((char *) (use) - offsetof(type, member)))

/* Whether a piece that stands in the order may go. */
typedef bool (*PosteriorIdle) (const PosteriorUse *use);

void		posterior_recency_init(PosteriorRecency *all);

/* Put in a piece, as the newest; its `used` is set already. Take out one that is in. */
void		posterior_recency_add(PosteriorRecency *all, PosteriorUse *use);
void		posterior_recency_remove(PosteriorUse *use);

/* Let a piece stand as the newest, as if it had been used. */
void		posterior_recency_pass(PosteriorRecency *all, PosteriorUse *use);

/*
 * The piece to go, which stays in the order until it is taken out; NULL if none is idle. Pieces
 * that are not idle, or have been used since they got their place, get another one; the former are
 * used now, at this tick, which no piece has had.
 */
PosteriorUse *posterior_recency_oldest(PosteriorRecency *all, PosteriorIdle idle, uint64_t now);

#endif							/* POSTERIOR_RECENCY_H */
