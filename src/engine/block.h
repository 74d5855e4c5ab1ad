/*
 * block.h: one transformer block on a tile of rows, and the scratch memory that it needs.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_BLOCK_H
#define TNP_BLOCK_H

#include "model.h"

/* Scratch of one worker for blocks of width d with `keys` visible keys at most; one allocation, freed by tnp_work_free. */
typedef struct TnpWork
{
	float	   *u,				/* [TILE, d] normed input */
			   *q,				/* [TILE, d] queries, then keys */
			   *att,			/* [TILE, d] attention output, values */
			   *ff,				/* [TILE, ff] */
			   *scale,			/* [TILE, heads] */
			   *scores;			/* [TNP_ATTEND_ROWS, scores_row] */
	int64_t		scores_row;
	void	   *memory;
} TnpWork;

TnpStatus	tnp_work_make(const TnpModel *model, int d, int heads, int feedforward, int64_t keys, TnpWork *work, TnpError *error);
void		tnp_work_free(const TnpModel *model, TnpWork *work);

/* What the rows of a tile may see. */
typedef struct TnpView
{
	const float *k,				/* shared keys and values */
			   *v;
	const int64_t *context;		/* [n] visible shared keys */
	const TnpKeys *own;			/* [n] visible private keys */
} TnpView;

/*
 * Keys and values (work->q, work->att) [n, d] that `layer` makes of the states h [n, d] entering it.
 */
void		tnp_block_keys(const TnpModel *model, const TnpLayer *layer, bool post_norm, int n, const float *h, TnpWork *work);

/* The block itself on n <= TNP_TILE rows, in place: h [n, d] attends to view, then feed-forward. */
void		tnp_block(const TnpModel *model, const TnpLayer *layer, int heads, bool post_norm, int n, float *h, const TnpView *view, TnpWork *work);

#endif							/* TNP_BLOCK_H */
