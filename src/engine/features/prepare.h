/*
 * prepare.h: the preprocessing of tables for models that read columns: what TabICL's package does
 * before its network, fitted to the rows of a context.
 *
 * A prepared table is one block of memory without pointers: it can be copied as bytes.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_PREPARE_H
#define TNP_PREPARE_H

#include "engine/features/orders.h"
#include "engine/features/outliers.h"

typedef struct TnpPreparedColumn
{
	int			source;			/* the column of the rows */
	int64_t		first_level,	/* a categorical column's identities, in the order of their codes */
				n_levels;		/* -1: a numeric column */
	double		fill;			/* what stands for a missing number */
	double		mean,
				scale,
				least,			/* of the rows, scaled */
				largest;
	double		power,
				power_mean,
				power_scale;
	TnpBounds	bounds[TNP_NORMALS]; /* of numbers made normal in one way */
} TnpPreparedColumn;

typedef struct TnpPrepared
{
	size_t		size;			/* bytes of all of it */
	int			n_columns;		/* those that are not constant; the first one if all are */
	bool		has_power;
	double		y_center,		/* 0 and 1 in a classifier */
				y_scale;
	size_t		levels;			/* offset of the identities */
	TnpPreparedColumn column[];
} TnpPrepared;

/*
 * Fit to all rows; classifier: targets are classes. power: columns are made normal, too. *prepared
 * is of the environment's memory.
 */
TnpStatus	tnp_prepare(const TnpEnv *env, const TnpRows *rows, bool classifier, bool power,
						TnpPrepared **prepared, TnpError *error);

/* The cells [n_columns] of one row of the table's columns x, made normal in one way. */
void		tnp_prepare_row(const TnpPrepared *prepared, TnpNormal normal, const double *x,
							float *cells);

#endif							/* TNP_PREPARE_H */
