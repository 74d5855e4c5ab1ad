/*
 * outliers.c: moments of numbers within a range, and soft bounds that outliers do not move (Qu et
 * al. 2025, the preprocessing of TabICL).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/outliers.h"

#include <math.h>

#define LEAST_SD 1e-6			/* of bounds */
#define OUTLIER 4.0				/* standard deviations */

TnpSampleMoments
tnp_sample_within(int64_t n, const double *x, double low, double high)
{
	TnpSampleMoments m = {0, 0, 0};

	for (int64_t i = 0; i < n; i++)
		if (x[i] >= low && x[i] <= high)
		{
			m.mean += x[i];
			m.n++;
		}
	m.mean /= m.n > 0 ? (double) m.n : 1;
	for (int64_t i = 0; i < n; i++)
		if (x[i] >= low && x[i] <= high)
			m.variance += (x[i] - m.mean) * (x[i] - m.mean);
	m.variance /= m.n > 0 ? (double) m.n : 1;
	return m;
}

TnpSampleMoments
tnp_sample_of(int64_t n, const double *x)
{
	return tnp_sample_within(n, x, -INFINITY, INFINITY);
}

/* The sample's standard deviation of values within a range, at least LEAST_SD. */
static double
sample_sd(const TnpSampleMoments *m, int64_t rows)
{
	double		divisor = rows > 1 ? (double) (m->n - 1) : (double) m->n;

	return fmax(divisor > 0 ? sqrt(m->variance * m->n / divisor) : 0, LEAST_SD);
}

TnpBounds
tnp_bounds_of(int64_t n, const double *x)
{
	TnpSampleMoments all = tnp_sample_of(n, x);
	double		reach = OUTLIER * sample_sd(&all, n);
	TnpSampleMoments most = tnp_sample_within(n, x, all.mean - reach, all.mean + reach);

	reach = OUTLIER * sample_sd(&most, n);
	return (TnpBounds) {most.mean - reach, most.mean + reach};
}

double
tnp_bound(const TnpBounds *b, double z)
{
	z = fmax(b->lower - log1p(fabs(z)), z);
	return fmin(b->upper + log1p(fabs(z)), z);
}
