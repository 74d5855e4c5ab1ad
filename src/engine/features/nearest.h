/*
 * nearest.h: the rows of a table that are nearest to a place in it (tnp_nearest_make and the
 * functions after it are in tnp.h).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_NEAREST_H
#define TNP_NEAREST_H

#include "engine/features/relevance.h"
#include "engine/features/statistics.h"

/* Squared distance of two values of a column with weight 1 that says nothing about each other. */
#define TNP_UNRELATED 2.0

/* How far apart two values of a column are. */
typedef struct TnpNearestColumn
{
	TnpColumnKind kind;
	TnpReach	reach;			/* of numbers that are there */
	double		unit,			/* largest absolute value of the rows, 0: constant */
				mean,			/* in this unit */
				sd;
	double		weight;			/* of a squared difference, 0 of constant columns */
	double		mismatch;		/* of two labels that differ, or one of which is missing */
} TnpNearestColumn;

struct TnpNearest
{
	TnpEnv		env;
	int64_t		n;				/* rows */
	int64_t		k;				/* rows of a neighbourhood, n at most */
	int64_t		step;			/* every step-th row is an anchor */
	int			n_features;
	TnpNearestColumn *columns;	/* [n_features] */
	TnpTargetBound bound;		/* of the targets of all rows, where a block has not all of them */
	double	   *points;			/* [n_features, n] scaled numbers, or labels; NaN where missing */
};

#endif							/* TNP_NEAREST_H */
