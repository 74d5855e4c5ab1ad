/*
 * products_sums.h: the arithmetic of attention without softmax (products.c), in double precision.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_PRODUCTS_SUMS_H
#define TNP_PRODUCTS_SUMS_H

#include <stddef.h>
#include <stdint.h>

/* Some features of one head, and rows that are added to their sums. */
typedef struct TnpProductRows
{
	const float *k,				/* [rows, next_k] the features come first in each row */
			   *v;				/* [rows, next_v] likewise the values */
	size_t		next_k,
				next_v;
	int64_t		n;				/* rows */
	int			features,
				width;			/* of a value */
} TnpProductRows;

/*
 * to [n, m] = exp(omega u - |u|^2 / 2) / sqrt(m) of heads u [n, width] times width^(-1/4), which u
 * becomes; omega [width, m]. What a float does not hold is infinite.
 */
void		tnp_products_random(const float *omega, int n, int width, int m, float *u, float *to);

/*
 * Add the rows, one after the other, to sums [features, width + 1] of weighted values, the last
 * number of each that of weights.
 */
void		tnp_products_add(const TnpProductRows *rows, double *sums);

/* values [width + 1] += what weights q [features] make of such sums, one feature after the other */
void		tnp_products_read(int features, int width, const float *q, const double *sums,
							  double *values);

#endif							/* TNP_PRODUCTS_SUMS_H */
