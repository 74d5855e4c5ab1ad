/*
 * upper.h: upper Cholesky factors in double precision, for matrices of some hundred rows: A =
 * U'U, row by row, the lower triangle neither read nor written. Every loop runs along a row, and
 * sums are in one order whatever the machine.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_UPPER_H
#define TNP_UPPER_H

#include <stdbool.h>

/* a [n, n] becomes its factor; false where rounding has made the matrix indefinite. */
bool		tnp_upper_factorise(double *a, int n);

/* v <- U'^-1 v; entries before `first` are zero and stay so. */
void		tnp_upper_solve(const double *u, int n, int first, double *v);

/* v <- U^-1 v. */
void		tnp_upper_solve_back(const double *u, int n, double *v);

/* a [n, n] <- a + sum over four vectors of weight[k] v_k v_k'; v [4, n]. */
void		tnp_upper_add(double *a, int n, const double *v, const double *weight);

#endif							/* TNP_UPPER_H */
