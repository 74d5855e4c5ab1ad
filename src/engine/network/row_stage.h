/*
 * row_stage.h: blocks in which the tokens of one row attend to each other, at rotary positions:
 * what models that read tables make of the cells of a row (Qu et al. 2025).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_ROW_STAGE_H
#define TNP_ROW_STAGE_H

#include "engine/network/block.h"
#include "engine/network/kv_cache.h"

typedef struct TnpRowStage
{
	int			layers,
				heads,
				width;			/* of a token */
	const TnpLayer *layer;		/* the first one; the others are `stride` bytes apart */
	size_t		stride;
	TnpActivation activation;
	int			kept;			/* tokens that the last block updates: the first ones */
	/* [positions, width / heads / 2] */
	const float *cosine,
			   *sine;
	bool		halves;			/* pairs are the halves of a head, and not neighbours */
} TnpRowStage;

/*
 * Carry the tokens h [tokens, width] of a row through the stage. The cache, of one layer by the
 * stage's heads, has room for them. False: a key or value is too large for it.
 */
bool		tnp_row_stage(const TnpModel *model, const TnpRowStage *stage, int tokens, float *h,
						  TnpKvCache *cache, TnpBlockWork *work);

#endif							/* TNP_ROW_STAGE_H */
