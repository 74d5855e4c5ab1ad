/*
 * least_squares.h: small regressions with a fixed penalty.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_LEAST_SQUARES_H
#define TNP_LEAST_SQUARES_H

/*
 * Weights [m] of a regression of y [n] on design [n, m] with the penalty 0.1; NULL where rounding
 * has spoilt it. gram has 2 m^2 + m numbers, among which they are.
 */
double	   *tnp_least_squares(int n, int m, const double *design, const double *y, double *gram);

/* Leave of y what such a regression does not explain. */
void		tnp_least_squares_rest(int n, int m, const double *design, double *y, double *gram);

#endif							/* TNP_LEAST_SQUARES_H */
