/*
 * trunk.h: tokens walk through the layers of a stack (docs/model-format.md sections 6 and 7).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_TRUNK_H
#define TNP_TRUNK_H

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
	TnpKvCache   *own;			/* private cache, or NULL */
	int64_t		slot;			/* where to store, or -1: a query */
} TnpToken;

/* So few tokens may have their keys shared out, when there are tiles enough for one thread only. */
#define TNP_FEW_ROWS 6

/* Layers of caches for this model: one per layer, or self and cross for two streams. */
int			tnp_cache_layers(const TnpModel *model);

/*
 * Carry n tokens through the stack, h [n, d] in place. The first n_store tokens store their keys
 * and values (slot >= 0), the others are queries. Every token of the call sees the keys that the
 * others of the same call store, as far as its own counts reach. After the call the states of
 * queries are those after the last layer; the states of storing tokens are undefined.
 *
 * trunk shares out the tokens of each layer to a team; walk is one worker's alone, so that a team
 * can have many walks at a time. The last `alike` tokens of a walk, 0 or more, are queries that
 * differ in nothing but what their private keys hold, as those of many draws are: what the first
 * layer makes of them without these is computed once.
 */
TnpStatus	tnp_trunk(TnpTeam *team, const TnpModel *model, TnpKvCache *context, int64_t n,
					  int64_t n_store, int64_t shared_rows, const TnpToken *tokens, float *h,
					  TnpError *error);
TnpStatus	tnp_walk(TnpWorker *worker, const TnpModel *model, TnpKvCache *context, int64_t n,
					 int64_t n_store, int64_t shared_rows, const TnpToken *tokens,
					 float *h, TnpError *error);

/*
 * Whether trunk, by a team that has brief rounds, shares out the keys of n tokens that see `keys`
 * shared keys, so that a team is of use for a single tile.
 */
bool		tnp_few_share_keys(const TnpModel *model, int64_t n, int64_t keys);

#endif							/* TNP_TRUNK_H */
