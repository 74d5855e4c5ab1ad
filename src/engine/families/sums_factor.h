/*
 * sums_factor.h: Cholesky factors of symmetric matrices and their inverses, in blocks.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_SUMS_FACTOR_H
#define TNP_SUMS_FACTOR_H

#include <stdbool.h>

#include "engine/kernels/moments.h"

#define SUMS_FACTOR_BLOCK 32	/* that the size of matrices is a multiple of */

/* Numbers of scratch for matrices [n, n]. */
size_t		sums_factor_numbers(int n);

/*
 * a [n, n], of which the lower triangle is read, becomes its lower factor there; what is above it
 * is undefined outside of the diagonal's blocks. False where rounding has made it indefinite.
 */
bool		sums_factorise(const TnpMoments *moments, int n, double *a, double *scratch);

/* inverse [n, n] of a lower factor, with the scratch that sums_factorise has left. */
void		sums_invert(const TnpMoments *moments, int n, const double *factor, double *scratch,
						double *inverse);

#endif							/* TNP_SUMS_FACTOR_H */
