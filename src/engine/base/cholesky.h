/*
 * cholesky.h: solving the normal equations of a regression; matrices are row by row, of symmetric
 * ones only the lower triangle is read.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_CHOLESKY_H
#define TNP_CHOLESKY_H

#include <stdbool.h>
#include <stddef.h>

/* Sum of a[i] b[i]. */
double		tnp_dot(int n, const double *a, const double *b);

/*
 * Lower Cholesky factor [n, n] of gram [n, n] + penalty * I; false where rounding has made the
 * matrix indefinite.
 */
bool		tnp_factorise(const double *gram, int n, double penalty, double *factor);

/* v <- L^-1 v; v <- L'^-1 v, L [n, n] a lower factor. */
void		tnp_solve_lower(const double *factor, int n, double *v);
void		tnp_solve_upper(const double *factor, int n, double *v);

#endif							/* TNP_CHOLESKY_H */
