/*
 * sums_factor.h: Cholesky factors of symmetric matrices and their inverses, in blocks.
 *
 * Of a symmetric matrix and of its factor a *staircase* is kept: of the rows of block b, counted
 * from 0, the first (b + 1) SUMS_FACTOR_BLOCK columns.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_SUMS_FACTOR_H
#define TNP_SUMS_FACTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/kernels/moments.h"

#define SUMS_FACTOR_BLOCK 32	/* that the size of matrices is a multiple of */

/* The next multiple. */
static inline int
sums_padded(int n)
{
	return (n + SUMS_FACTOR_BLOCK - 1) / SUMS_FACTOR_BLOCK * SUMS_FACTOR_BLOCK;
}

/* Numbers between two rows of the block of row i. */
static inline size_t
sums_stair_stride(int i)
{
	return (size_t) (i / SUMS_FACTOR_BLOCK + 1) * SUMS_FACTOR_BLOCK;
}

/* The place of row i of a staircase; of row n: the numbers of one of n rows, a multiple. */
static inline size_t
sums_stair(int i)
{
	size_t		block = i / SUMS_FACTOR_BLOCK;

	return block * (block + 1) / 2 * SUMS_FACTOR_BLOCK * SUMS_FACTOR_BLOCK
		+ i % SUMS_FACTOR_BLOCK * sums_stair_stride(i);
}

/* Numbers of scratch for matrices [n, n]. */
size_t		sums_factor_numbers(int n);

/*
 * a, the staircase of a matrix [n, n] of which the lower triangle is read, becomes its lower
 * factor; what is above it is 0. False where rounding has made it indefinite.
 */
bool		sums_factorise(const TnpMoments *moments, int n, double *a, double *scratch);

/* inverse [n, n] of a factor, with the scratch that sums_factorise has left. */
void		sums_invert(const TnpMoments *moments, int n, const double *factor, double *scratch,
						double *inverse);

/* v [n] becomes the solution u of L u = v, or of L' u = v, of a factor L; n as it comes. */
void		sums_solve_lower(const double *factor, int n, double *v);
void		sums_solve_upper(const double *factor, int n, double *v);

#endif							/* TNP_SUMS_FACTOR_H */
