/*
 * outliers.h: moments of numbers within a range, and soft bounds that outliers do not move.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_OUTLIERS_H
#define TNP_OUTLIERS_H

#include <stdint.h>

typedef struct TnpSampleMoments
{
	double		mean,
				variance;		/* of the population */
	int64_t		n;
} TnpSampleMoments;

typedef struct TnpBounds
{
	double		lower,
				upper;
} TnpBounds;

/* Of the values of x [n] within [low, high]; all 0 where there are none. */
TnpSampleMoments tnp_sample_within(int64_t n, const double *x, double low, double high);
TnpSampleMoments tnp_sample_of(int64_t n, const double *x);

/* Bounds of x [n]: mean and four standard deviations, outliers by these left out. */
TnpBounds	tnp_bounds_of(int64_t n, const double *x);

/* z, beyond a bound by no more than about ln(1 + |z|). */
double		tnp_bound(const TnpBounds *bounds, double z);

#endif							/* TNP_OUTLIERS_H */
