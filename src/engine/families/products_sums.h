/*
 * products_sums.h: the arithmetic of attention without softmax (products.c), in double precision.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_PRODUCTS_SUMS_H
#define TNP_PRODUCTS_SUMS_H

#include <stddef.h>
#include <stdint.h>

#include "engine/kernels/kernels.h"

#define TNP_PRODUCTS_TOGETHER 16	/* numbers that are worked at together */
#define TNP_PRODUCTS_READERS 12	/* queries at most that read sums together */

/* Some features of one head, and rows that are added to their sums. */
typedef struct TnpProductRows
{
	const float *k,				/* [rows, next_k] the features come first in each row */
			   *v;				/* [rows, next_v] likewise the values */
	size_t		next_k,
				next_v,
				next_panel;		/* or 0; if not, k is of panels that are so far apart, and whole */
	int64_t		n;				/* rows */
	int			features,		/* at most TNP_PRODUCTS_TOGETHER */
				width;			/* of a value */
} TnpProductRows;

/* Queries of one head, or one query of all. */
typedef struct TnpProductQueries
{
	const float *q;				/* [n, next_q] features come first in each; [heads, features] */
	size_t		next_q,
				next_value;		/* from what one query, or head, reads to what the next does */
	int			n,				/* at most TNP_PRODUCTS_READERS */
				heads,			/* 1 unless n is */
				features,
				width;			/* of a value */
} TnpProductQueries;

/* Slots of one head, at most TNP_BLOCK, in the layout of kernels.h, as the queries see them. */
typedef struct TnpProductSlots
{
	const float *k,				/* panels [features, TNP_PANEL] */
			   *v;				/* [slots, width] */
	int			n;				/* slots that a query sees at most */
	const int  *seen;			/* [queries] first slots that each sees */
} TnpProductSlots;

/*
 * Add the rows, one after the other, to sums [features, width + 1] of weighted values, the last
 * number of each that of weights.
 */
void		tnp_products_add(const TnpProductRows *rows, double *sums);

/*
 * values [n or heads, width + 1], next_value apart, += what the weights q of each query make of
 * such sums [heads, features, width + 1], one feature after the other
 */
void		tnp_products_read(const TnpProductQueries *queries, const double *sums,
							  double *values);

/*
 * values [n, width + 1], next_value apart, += what n queries of one head make of the slots that
 * each sees, one slot after the other
 */
void		tnp_products_read_slots(const TnpProductQueries *queries, const TnpProductSlots *slots,
									double *values);

#endif							/* TNP_PRODUCTS_SUMS_H */
