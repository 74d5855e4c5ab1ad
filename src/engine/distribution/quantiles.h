/*
 * quantiles.h: distributions made from quantiles that a network says.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_QUANTILES_H
#define TNP_QUANTILES_H

#include "engine/tnp.h"

#define TNP_TAIL_QUANTILES 20	/* quantiles that a tail's scale is fitted to, a quarter at most */

/* In units of the scale: the range of a tail's scale, and how far apart neighbours are at least. */
#define TNP_SMALLEST_TAIL 0.01
#define TNP_LARGEST_TAIL 100.0
#define TNP_SMALLEST_GAP 1e-9

/* Monotone repair: quantiles [n] that cross, in ascending order. */
void		tnp_quantiles_sort(int n, double *quantiles);

/*
 * Parameters of the distribution of center + scale * Y, where Y has the ascending quantiles [n] at
 * the levels k / (n + 1), n at least 2, and exponential tails whose scales are fitted to the outer
 * quantiles (least squares on the logarithm of the level, as TabICL's second version does). Equal
 * neighbours are moved apart.
 */
void		tnp_quantiles_make(int n, const double *quantiles, double center, double scale,
							   double *params);

/* For tnp_expected_excess and tnp_affine. */
double		tnp_quantiles_excess(const TnpDistribution *d, double y);
void		tnp_quantiles_affine(const TnpDistribution *d, double scale, double shift,
								 double *params);

#endif							/* TNP_QUANTILES_H */
