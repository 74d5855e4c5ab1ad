/*
 * trees_growth.h: trees on their way, and what rows left out say of them; for trees_grow.c and
 * trees_judge.c alone.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_TREES_GROWTH_H
#define TNP_TREES_GROWTH_H

#include "engine/features/trees.h"

#define TNP_TREE_ROUNDS 40
#define TNP_TREE_LOSS_UNIT 1048576.0	/* 1 nat */

/* Trees on their way. */
typedef struct TnpGrowth
{
	const TnpModel *model;
	TnpTrees   *trees;
	int64_t		n;
	int			n_slots,
				classes,
				channels,
				width;			/* of sums: channels' slopes, then their curvatures */
	double		unit,			/* of slopes and curvatures as whole numbers, a power of two */
				real,			/* 1 / unit */
				least;			/* curvature of the rows in a leaf */
	const bool *label;			/* [n_slots] a slot of labels */
	const unsigned char *bin;	/* [n_slots, n] */
	const unsigned char *y;		/* [n] classes, or */
	const double *number;		/* [n] */
	const unsigned char *fold;	/* [n] */
	double	   *score;			/* [n, channels] */
	int32_t    *sum;			/* [n, width] of every row */
	int32_t    *cells;			/* [MOST_NODES, SLOTS_OF_TREE, TREE_BINS, width] */
	int64_t    *order,			/* [n] rows by node, and scratch */
			   *other;
	int64_t		loss[TNP_TREE_ROUNDS + 1];	/* of rows that were not seen, after so many trees */
} TnpGrowth;

/* What the scores of rows that were not seen are best multiplied by: Newton's steps from 1. */
TnpStatus	tnp_growth_sharpness(TnpGrowth *g, TnpError *error);

/*
 * How far an answer's mean moves to what trees of numbers say: half the way where they lose as much
 * as the process does, both on rows left out; further where they lose less.
 */
void		tnp_growth_share(TnpGrowth *g, const TnpStats *stats);

#endif							/* TNP_TREES_GROWTH_H */
