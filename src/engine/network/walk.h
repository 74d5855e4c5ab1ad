/*
 * walk.h: tokens are carried through the layers of a family (docs/model-format.md sections 6 and
 * 7). The family says which layers in which order (family.h); this is the machinery that all
 * families with keys and values share.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_WALK_H
#define TNP_WALK_H

#include "engine/network/block.h"
#include "engine/network/encoding.h"
#include "engine/network/team.h"

/*
 * What one token may see and where its keys and values go. The shared keys are the context's; the
 * private ones are those of one chain. A token that stores does so in its private cache if it has
 * one, else in the shared cache.
 */
typedef struct TnpToken
{
	int64_t		context;		/* visible shared keys */
	int64_t		chain;			/* visible private keys */
	TnpKvCache *own;			/* private cache, or NULL */
	int64_t		slot;			/* where to store, or -1: a query */
} TnpToken;

/* So few tokens may have their keys shared out, when there are tiles enough for one thread only. */
#define TNP_FEW_ROWS 6

/*
 * Carry n tokens through the network of an encoding's model, h [n, state width] in place. The first
 * n_store tokens store their keys and values (slot >= 0), the others are queries. Every token of
 * the call sees the keys that the others of the same call store, as far as its own counts reach.
 * After the call the states of queries are those that the head reads; the states of storing tokens
 * are undefined.
 *
 * walk_team shares out the tokens of each layer to a team; walk is one worker's alone, so that a
 * team can have many walks at a time. The last `shared_rows` tokens of a walk, 0 or more, are
 * queries that differ in nothing but what their private keys hold, as those of many draws are: what
 * the first layer makes of them without these is computed once.
 *
 * The encoding is written to by tokens alone that store in the shared cache.
 */
TnpStatus	tnp_walk_team(TnpTeam *team, const TnpEncoding *e, int64_t n, int64_t n_store,
						  int64_t shared_rows, const TnpToken *tokens, float *h, TnpError *error);
TnpStatus	tnp_walk(TnpWorker *worker, const TnpEncoding *e, int64_t n, int64_t n_store,
					 int64_t shared_rows, const TnpToken *tokens, float *h, TnpError *error);

/*
 * Whether tnp_walk_team(), by a fine-grained team, shares out the keys of n tokens that see `keys`
 * shared keys, so that a team is of use for a single tile.
 */
bool		tnp_few_share_keys(const TnpModel *model, int64_t n, int64_t keys);

/* ---- for families ---------------------------------------------------------------------------- */

/* Tokens on their way, and what is being done to them. */
typedef struct TnpWalk
{
	TnpTeam    *team;			/* NULL: one worker alone */
	TnpWorker  *worker;
	const TnpEncoding *encoding;
	const TnpModel *model;
	const TnpBlockOps *ops;
	/* tokens [0, end) have stored in cache layer `at`, and none has attended to it; or NULL */
	TnpStatus	(*stored) (struct TnpWalk *walk, int64_t end, TnpError *error);
	TnpKvCache *context;		/* the shared cache */
	const TnpToken *tokens;
	float	   *h;
	int			state_width;
	int			tile;			/* tokens per item */
	int64_t		first_shared_row;	/* the tokens from this on enter the stack as the same query */

	const void *layer;
	int			at;				/* cache layer */
	bool		entry;			/* queries have not been through a layer yet */
	int64_t		first,			/* the tokens that this step is about */
				end;

	const TnpAttention *attention;	/* of the tile whose spans are summed up */
	float	   *sums;			/* [spans]; NULL: tiles are shared out, not keys */
	size_t		sum_floats;
	int			parts;			/* of the heads, into which a span is shared out */
	bool		fine_grained;	/* a share takes microseconds */
} TnpWalk;

/* A walk of n tokens that a family makes for itself, by a team, with a cache of its own. */
TnpWalk		tnp_walk_begin(TnpTeam *team, const TnpEncoding *e, TnpKvCache *cache, int64_t n,
						   const TnpToken *tokens, float *h);

/* Tokens [0, end) store what `layer` makes of their states, in cache layer `at`. */
TnpStatus	tnp_walk_store(TnpWalk *w, const void *layer, int at, int64_t end, TnpError *error);

/* Tokens [first, end) go through `layer`, reading cache layer `at`. */
TnpStatus	tnp_walk_attend(TnpWalk *w, const void *layer, int at, int64_t first, int64_t end,
							TnpError *error);

/* Do a step to tokens [first, end), tile by tile: tnp_walk_tile says which. */
TnpStatus	tnp_walk_run(TnpWalk *w, int64_t first, int64_t end, TnpItem item, TnpError *error);

/* Number of tokens of item number `item`, and the first. */
int			tnp_walk_tile(const TnpWalk *w, int64_t item, int64_t *start);

#endif							/* TNP_WALK_H */
