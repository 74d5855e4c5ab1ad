/*
 * scratch.h: the scratch memory of one thread, made before work begins, so that threads need not
 * allocate.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_WORK_H
#define TNP_WORK_H

#include "engine/network/kv_cache.h"
#include "engine/file/model.h"
#include "engine/features/statistics.h"
#include "engine/network/team.h"

/* Floats that a row needs on its way through a block. */
typedef struct TnpBlockSizes
{
	int			width,			/* of the state that is normed */
				keys,			/* of all heads' queries, and of their keys */
				values,			/* of all heads' values, in all planes */
				feedforward,	/* the widest hidden layer */
				heads,			/* 0: there are no blocks */
				more,			/* whatever else */
				planes;			/* of values; 0: 1 */
} TnpBlockSizes;

/* For blocks on tiles of up to `rows` rows. */
typedef struct TnpBlockWork
{
	int			rows;
	float	   *u,				/* [rows, width] normed input */
			   *q,				/* [rows, keys] queries, then keys */
			   *att,			/* [rows, values] attention output, values */
			   *ff,				/* [rows, feedforward] */
			   *scale,			/* [rows, heads] */
			   *attend,			/* the kernels' attend_floats */
			   *more;			/* [rows, more] */
	void	   *memory;
} TnpBlockWork;

/*
 * For path B of the row tokeniser, or for a family that makes tokens of cells in its own way; all
 * NULL for models of neither.
 */
typedef struct TnpTokenWork
{
	TnpBlockWork block;
	TnpKvCache	cache;			/* one layer, reused */
	float	   *h,				/* [readouts + slots, dc] */
			   *scratch;		/* the cell MLP's */
} TnpTokenWork;

/* For all that happens to a tile of up to `rows` rows between its cells and its answers. */
struct TnpScratch
{
	int			rows;
	TnpBlockWork block;
	TnpTokenWork tokens;
	float	   *features,		/* [rows, features] scaled cells */
			   *half,			/* [rows, half] halves of tokens (embed.h) */
			   *prior_logits,			/* [rows, said] what the head takes a share of */
			   *h,				/* [rows, state width] states */
			   *raw,			/* [rows, head outputs] */
			   *scratch;		/* of embedders and heads, one at a time */
	void	   *memory;
};

TnpStatus	tnp_block_work_make(const TnpModel *model, const TnpBlockSizes *sizes, int rows,
								TnpBlockWork *work, TnpError *error);
void		tnp_block_work_free(const TnpModel *model, TnpBlockWork *work);

/* Scratch for contexts with these statistics. On failure nothing is left behind. */
TnpStatus	tnp_work_make(const TnpModel *model, const TnpStats *stats, int rows, TnpScratch *work,
						  TnpError *error);
void		tnp_work_free(const TnpModel *model, TnpScratch *work);

/*
 * A team for a call of about `cost` multiplications in at most `most` items at a time, each worker
 * with scratch for tiles of `rows` rows on contexts with these statistics. On failure *team is
 * NULL.
 */
TnpStatus	tnp_team_with_scratch(const TnpModel *model, const TnpStats *stats, int rows,
								  int64_t most, double cost, TnpTeam **team, TnpError *error);

#endif							/* TNP_WORK_H */
