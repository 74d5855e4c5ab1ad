/*
 * waves.h: sines of many angles, and sums over many rows, by the vectors that a processor has
 * (wide.h): the bits are the same whatever these are.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_WAVES_H
#define TNP_WAVES_H

#define TNP_MOST_ANGLE 1048576.0	/* radians */

/*
 * Sines and cosines of n angles of at most TNP_MOST_ANGLE radians, to about 1e-16. What larger ones
 * give is finite or not, and means nothing.
 */
void		tnp_sines(int n, const double *angle, double *sine, double *cosine);

/* out [n] = the sum over `columns` of weight_c times row c of x [columns, n]. */
void		tnp_weighted_sum(int n, int columns, const double *x, const double *weight,
							 double *out);

/* The sum of a_i b_i, as eight sums of every eighth product. */
double		tnp_sum_of_products(int n, const double *a, const double *b);

#endif							/* TNP_WAVES_H */
