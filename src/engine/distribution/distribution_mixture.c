/*
 * distribution_mixture.c: a mixture of Gaussians as an answer; params: n weights, n means, n sds.
 *
 * What has a closed form is here; mode, quantile and entropy are in distribution_mixture_search.c.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/distribution/distribution.h"

#include "engine/base/normal.h"

#include <math.h>

double
tnp_mixture_density(const TnpDistribution *d, double y)
{
	double		sum = 0.0;

	for (int i = 0; i < d->n; i++)
		sum += WEIGHT(d, i) * (tnp_normal_pdf((y - MEAN(d, i)) / SD(d, i)) / SD(d, i));
	return sum;
}

double
tnp_mixture_lower(const TnpDistribution *d, double y)
{
	double		sum = 0.0;

	for (int i = 0; i < d->n; i++)
		sum += WEIGHT(d, i) * tnp_normal_cdf((y - MEAN(d, i)) / SD(d, i));
	return sum;
}

double
tnp_mixture_upper(const TnpDistribution *d, double y)
{
	double		sum = 0.0;

	for (int i = 0; i < d->n; i++)
		sum += WEIGHT(d, i) * tnp_normal_cdf((MEAN(d, i) - y) / SD(d, i));
	return sum;
}

static double
mixture_mean(const TnpDistribution *d)
{
	double		sum = 0.0;

	for (int i = 0; i < d->n; i++)
		sum += WEIGHT(d, i) * MEAN(d, i);
	return sum / tnp_total_weight(d);
}

static double
mixture_variance(const TnpDistribution *d)
{
	double		mean = mixture_mean(d);
	double		sum = 0.0;

	for (int i = 0; i < d->n; i++)
		sum += WEIGHT(d, i) * (SD(d, i) * SD(d, i) + (MEAN(d, i) - mean) * (MEAN(d, i) - mean));
	return sum / tnp_total_weight(d);
}

static double
mixture_pdf(const TnpDistribution *d, double y)
{
	return tnp_mixture_density(d, y) / tnp_total_weight(d);
}

/* The logarithm of one weighted component; -infinity for weight 0. */
static double
component_log_pdf(const TnpDistribution *d, int i, double y)
{
	return log(WEIGHT(d, i)) + tnp_normal_log_pdf((y - MEAN(d, i)) / SD(d, i)) - log(SD(d, i));
}

/*
 * log(sum of exp(terms)) relative to the largest term, in one pass: the terms so far are kept as
 * sum * exp(largest).
 */
static double
mixture_log_pdf(const TnpDistribution *d, double y)
{
	double		largest = -INFINITY,
				sum = 0.0;

	for (int i = 0; i < d->n; i++)
	{
		double		term = component_log_pdf(d, i, y);

		if (term > largest)
		{
			sum = sum * exp(largest - term) + 1.0;
			largest = term;
		}
		else if (term > -INFINITY)
			sum += exp(term - largest);
	}
	return largest == -INFINITY ? -INFINITY : largest + log(sum / tnp_total_weight(d));
}

static double
mixture_cdf(const TnpDistribution *d, double y)
{
	return fmin(tnp_mixture_lower(d, y) / tnp_total_weight(d), 1.0);
}

/* The mean of |X| for X ~ N(mean, sd^2). */
static double
mean_absolute(double mean, double sd)
{
	double		z = mean / sd;

	if (isinf(z))
		return fabs(mean);
	return sd * (2.0 * tnp_normal_pdf(z) + z * erf(z * TNP_SQRT1_2));
}

/* E|X - y| - E|X - X'| / 2 with X, X' independent (Grimit and others, 2006). */
static double
mixture_crps(const TnpDistribution *d, double y)
{
	double		total = tnp_total_weight(d);
	double		to_y = 0.0,
				among = 0.0;

	for (int i = 0; i < d->n; i++)
	{
		double		row;

		if (WEIGHT(d, i) == 0.0)
			continue;
		to_y += WEIGHT(d, i) * mean_absolute(MEAN(d, i) - y, SD(d, i));

		/* A pair i <> j counts twice, a component with itself once. */
		row = 0.5 * WEIGHT(d, i) * 2.0 * TNP_1_SQRTPI * SD(d, i);
		for (int j = 0; j < i; j++)
		{
			if (WEIGHT(d, j) > 0.0)
				row += WEIGHT(d, j) * mean_absolute(MEAN(d, i) - MEAN(d, j),
													hypot(SD(d, i), SD(d, j)));
		}
		among += WEIGHT(d, i) * row;
	}
	return fmax(to_y / total - among / (total * total), 0.0);
}

/* The first component whose cumulative weight exceeds u[0], the last with a weight if none does. */
static double
mixture_draw(const TnpDistribution *d, const double u[2])
{
	double		cumulative = 0.0;
	int			chosen = 0;

	for (int i = 0; i < d->n && cumulative <= u[0]; i++)
	{
		cumulative += WEIGHT(d, i);
		if (WEIGHT(d, i) > 0.0)
			chosen = i;
	}
	return MEAN(d, chosen) + SD(d, chosen) * tnp_normal_quantile(u[1]);
}

const TnpDistributionOps tnp_mixture_ops = {
	.mean = mixture_mean,
	.variance = mixture_variance,
	.mode = tnp_mixture_mode,
	.entropy = tnp_mixture_entropy,
	.pdf = mixture_pdf,
	.log_pdf = mixture_log_pdf,
	.cdf = mixture_cdf,
	.quantile = tnp_mixture_quantile,
	.crps = mixture_crps,
	.draw = mixture_draw,
};
