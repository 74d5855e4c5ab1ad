/*
 * distribution_classes.c: categorical distributions: the values are 0 … n - 1, the density is a
 * probability.
 *
 * What needs a line of numbers (mean, distribution function, quantiles) is not defined.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>

#include "engine/distribution/distribution.h"

static double
undefined(const TnpDistribution *d)
{
	(void) d;
	return NAN;
}

static double
undefined_at(const TnpDistribution *d, double y)
{
	(void) d;
	(void) y;
	return NAN;
}

/* The most probable class; of several the first. */
static double
mode(const TnpDistribution *d)
{
	int			best = 0;

	for (int i = 1; i < d->n; i++)
		if (d->params[i] > d->params[best])
			best = i;
	return best;
}

static double
entropy(const TnpDistribution *d)
{
	double		total = tnp_total_weight(d),
				sum = 0.0;

	for (int i = 0; i < d->n; i++)
	{
		double		p = d->params[i] / total;

		if (p > 0.0)
			sum -= p * log(p);
	}
	return fmax(sum, 0.0);
}

/* 0 for what is no class. */
static double
pdf(const TnpDistribution *d, double y)
{
	return y >= 0 && y < d->n && y == floor(y) ? d->params[(int) y] / tnp_total_weight(d) : 0.0;
}

static double
log_pdf(const TnpDistribution *d, double y)
{
	return log(pdf(d, y));
}

/*
 * The first class whose cumulative probability exceeds u[0]; should rounding leave none, the last
 * that has any.
 */
static double
draw(const TnpDistribution *d, const double u[2])
{
	double		sum = 0.0;
	int			last = 0;

	for (int i = 0; i < d->n; i++)
	{
		sum += d->params[i];
		if (sum > u[0])
			return i;
		if (d->params[i] > 0.0)
			last = i;
	}
	return last;
}

const TnpDistributionOps tnp_classes_ops = {
	undefined, undefined, mode, entropy, pdf, log_pdf, undefined_at, undefined_at, undefined_at,
	draw
};
