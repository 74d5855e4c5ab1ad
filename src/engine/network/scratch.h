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
#include "engine/features/stats.h"

/* For blocks of width d on tiles of up to `rows` rows. */
typedef struct TnpBlockWork
{
	int			rows;
	float	   *u,				/* [rows, d] normed input */
			   *q,				/* [rows, d] queries, then keys */
			   *att,			/* [rows, d] attention output, values */
			   *ff,				/* [rows, ff] */
			   *scale,			/* [rows, heads] */
			   *attend;			/* the kernels' attend_floats */
	void	   *memory;
} TnpBlockWork;

/* For path B of the row tokeniser; all NULL for models that have none. */
typedef struct TnpTokenWork
{
	TnpBlockWork block;
	TnpKvCache	cache;			/* one layer, reused */
	float	   *h,				/* [readouts + slots, dc] */
			   *scratch;		/* the cell MLP's */
} TnpTokenWork;

/* For all that happens to a tile of up to `rows` rows between its cells and its answers. */
typedef struct TnpScratch
{
	int			rows;
	TnpBlockWork block;
	TnpTokenWork tokens;
	float	   *features,		/* [rows, features] scaled cells */
			   *half,			/* [rows, half] halves of tokens (embed.h) */
			   *prior_logits,			/* [rows, said] what the head takes a share of */
			   *h,				/* [rows, d] states */
			   *raw,			/* [rows, head outputs] */
			   *scratch;		/* of embedders and heads, one at a time */
	void	   *memory;
} TnpScratch;

TnpStatus	tnp_block_work_make(const TnpModel *model, int d, int heads, int feedforward, int rows,
								TnpBlockWork *work, TnpError *error);
void		tnp_block_work_free(const TnpModel *model, TnpBlockWork *work);

/* Scratch for contexts with these statistics. On failure nothing is left behind. */
TnpStatus	tnp_work_make(const TnpModel *model, const TnpStats *stats, int rows, TnpScratch *work,
						  TnpError *error);
void		tnp_work_free(const TnpModel *model, TnpScratch *work);

#endif							/* TNP_WORK_H */
