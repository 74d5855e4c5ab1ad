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

#define TNP_UPPER_ROWS 4		/* vectors that are worked on at once */
#define TNP_UPPER_MANY 16		/* or this many, side by side */

/* a [n, n] becomes its factor; false where rounding has made the matrix indefinite. */
bool		tnp_upper_factorise(double *a, int n);

/* v <- U'^-1 v for each of `rows` vectors v [rows, n], at most TNP_UPPER_ROWS. */
void		tnp_upper_solve(const double *u, int n, int rows, double *v);

/*
 * The same for vectors side by side, v [n, TNP_UPPER_MANY]. Each takes less than half of its time
 * then, and has the bits that it has alone.
 */
void		tnp_upper_solve_many(const double *u, int n, double *v);

/* tnp_dot of each of them and b [n], or itself where b is NULL: out [TNP_UPPER_MANY]. */
void		tnp_upper_dot_many(int n, const double *v, const double *b, double *out);

/* v <- U^-1 v. */
void		tnp_upper_solve_back(const double *u, int n, double *v);

/* a [n, n] <- a + sum over TNP_UPPER_ROWS vectors of weight[k] v_k v_k'; v [TNP_UPPER_ROWS, n]. */
void		tnp_upper_add(double *a, int n, const double *v, const double *weight);

/* The upper triangle of A^-1 [n, n]; scratch [n, n]. */
void		tnp_upper_invert(const double *u, int n, double *scratch, double *inverse);

#endif							/* TNP_UPPER_H */
