/*
 * mean_sd.c: mean and standard deviation of numbers of any size.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/base/mean_sd.h"

#include <math.h>
#include <stdbool.h>

#define SMALLEST_SD 1e-140		/* whose square is far from the smallest number */
#define LARGEST_REST 1e-6		/* of a mean, in standard deviations */

/*
 * Sums over n values, `step` apart, in units of 2^exponent: of their distances from a mean, and of
 * the squares of these.
 */
static void
sum_distances(const double *v, int64_t n, int step, int exponent, double mean, double *rest,
			  double *square)
{
	*rest = *square = 0;
	for (int64_t i = 0; i < n; i++)
	{
		double		value = v[i * step],
					from = (exponent == 0 ? value : ldexp(value, -exponent)) - mean;

		*rest += from;
		*square += from * from;
	}
}

/*
 * Mean and population standard deviation of n values, more than 0, `step` apart and not all equal,
 * in units of 2^exponent; two passes.
 */
static void
moments_in_unit(const double *v, int64_t n, int step, int exponent, double *mean, double *sd)
{
	double		sum = 0,
				square,
				rest;

	for (int64_t i = 0; i < n; i++)
		sum += exponent == 0 ? v[i * step] : ldexp(v[i * step], -exponent);
	*mean = sum / n;
	sum_distances(v, n, step, exponent, *mean, &rest, &square);
	/*
	 * the mean of numbers far from zero but near each other has been rounded by more than they
	 * differ
	 */
	if (fabs(rest) > LARGEST_REST * sqrt(square / n) * n)
	{
		*mean += rest / n;
		sum_distances(v, n, step, exponent, *mean, &rest, &square);
	}
	*sd = sqrt(square / n);
}

void
tnp_mean_and_sd(const double *v, int64_t n, int step, double *mean, double *sd)
{
	double		largest = 0;
	bool		differ = false;

	*mean = *sd = 0;
	if (n == 0)
		return;
	for (int64_t i = 0; i < n; i++)
	{
		largest = fmax(largest, fabs(v[i * step]));
		differ = differ || v[i * step] != v[0];
	}
	/* a sum of equal values is rounded, and what is left of them would count as a difference */
	if (!differ)
	{
		*mean = v[0];
		return;
	}
	moments_in_unit(v, n, step, 0, mean, sd);
	if (isfinite(*mean) && isfinite(*sd) && *sd > SMALLEST_SD)
		return;
	moments_in_unit(v, n, step, ilogb(largest), mean, sd);
	*mean = ldexp(*mean, ilogb(largest));
	*sd = ldexp(*sd, ilogb(largest));
}
