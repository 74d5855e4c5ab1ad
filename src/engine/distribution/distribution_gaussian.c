/*
 * distribution_gaussian.c: the normal distribution as an answer; params: mean, sd.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/distribution/distribution.h"

#include "engine/base/normal.h"

#include <math.h>

static double
standardised(const TnpDistribution *d, double y)
{
	return (y - d->params[0]) / d->params[1];
}

static double
gaussian_mean(const TnpDistribution *d)
{
	return d->params[0];
}

static double
gaussian_variance(const TnpDistribution *d)
{
	return d->params[1] * d->params[1];
}

static double
gaussian_entropy(const TnpDistribution *d)
{
	return 0.5 + TNP_LOG_SQRT2PI + log(d->params[1]);
}

static double
gaussian_pdf(const TnpDistribution *d, double y)
{
	return tnp_normal_pdf(standardised(d, y)) / d->params[1];
}

static double
gaussian_log_pdf(const TnpDistribution *d, double y)
{
	return tnp_normal_log_pdf(standardised(d, y)) - log(d->params[1]);
}

static double
gaussian_cdf(const TnpDistribution *d, double y)
{
	return tnp_normal_cdf(standardised(d, y));
}

static double
gaussian_quantile(const TnpDistribution *d, double p)
{
	return d->params[0] + d->params[1] * tnp_normal_quantile(p);
}

/* sd * (z (2 Phi(z) - 1) + 2 phi(z) - 1 / sqrt(pi)) */
static double
gaussian_crps(const TnpDistribution *d, double y)
{
	double		z = standardised(d, y);

	if (isinf(z))
		return fabs(y - d->params[0]);
	return d->params[1] * (z * erf(z * TNP_SQRT1_2) + 2.0 * tnp_normal_pdf(z) - TNP_1_SQRTPI);
}

static double
gaussian_draw(const TnpDistribution *d, const double u[2])
{
	return gaussian_quantile(d, u[1]);
}

const TnpDistributionOps tnp_gaussian_ops = {
	.mean = gaussian_mean,
	.variance = gaussian_variance,
	.mode = gaussian_mean,
	.entropy = gaussian_entropy,
	.pdf = gaussian_pdf,
	.log_pdf = gaussian_log_pdf,
	.cdf = gaussian_cdf,
	.quantile = gaussian_quantile,
	.crps = gaussian_crps,
	.draw = gaussian_draw,
};
