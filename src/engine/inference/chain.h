/*
 * chain.h: what joint draws and joint densities share (docs/model-format.md section 9).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_CHAIN_H
#define TNP_CHAIN_H

#include "engine/inference/encode.h"

/* Steps that may follow on this encoding before the block must be merged. */
int64_t		tnp_chain_room(const TnpEncoding *e);

/* Row of the position table of chain row j of a block on e, or -1. */
int			tnp_chain_position(const TnpEncoding *e, int64_t j);

/* A private cache for `slots` rows of a chain. */
TnpStatus	tnp_chain_cache(const TnpModel *model, int64_t slots, TnpKvCache *cache,
							TnpError *error);

/* What chain row j, and query j, of a block with private cache `own` see. */
TnpToken	tnp_chain_row(const TnpEncoding *e, TnpKvCache *own, int64_t j);
TnpToken	tnp_chain_query(const TnpEncoding *e, TnpKvCache *own, int64_t j);

/* Halves of rows place[0 … n - 1] as this encoding has them (family.h, settle_rows). */
TnpStatus	tnp_chain_settle_rows(const TnpEncoding *e, TnpTeam *team, TnpFeatureEmbedding *half,
								  const int64_t *place, int64_t n, TnpError *error);

/*
 * The encoding that follows when rows place[0 … n-1] of `rows` with targets y [n, D] have been
 * merged; the old one is freed unless it is `root`. On failure *e is unchanged.
 */
TnpStatus	tnp_chain_merge(const TnpEncoding *root, const TnpEncoding **e, const TnpRows *rows,
							const int64_t *place, const double *y, int64_t n,
							TnpError *error);

#endif							/* TNP_CHAIN_H */
