/*
 * distribution.c: questions to a predictive distribution, passed on to what its kind does.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/distribution/distribution.h"

#include "engine/base/error.h"
#include "engine/base/random.h"

#include <math.h>
#include <stddef.h>

/* NULL for an unknown kind. */
static const TnpDistributionOps *
ops_of(const TnpDistribution *d)
{
	switch (d->kind)
	{
		case TNP_GAUSSIAN:
			return &tnp_gaussian_ops;
		case TNP_MIXTURE:
			return &tnp_mixture_ops;
		case TNP_BARS:
		case TNP_BARS_HALF_NORMAL:
			return &tnp_bars_ops;
		case TNP_CLASSES:
			return &tnp_classes_ops;
		case TNP_QUANTILES:
			return &tnp_quantiles_ops;
	}
	return NULL;
}

int
tnp_distribution_most(TnpDistributionKind kind)
{
	switch (kind)
	{
		case TNP_GAUSSIAN:
			return 1;
		case TNP_MIXTURE:
			return TNP_MAX_COMPONENTS;
		case TNP_BARS:
		case TNP_BARS_HALF_NORMAL:
			return TNP_MAX_BUCKETS;
		case TNP_CLASSES:
			return TNP_MAX_CLASSES;
		case TNP_QUANTILES:
			return TNP_MAX_QUANTILES;
	}
	return 0;
}

/* Number of doubles in params, 0 if there is no such distribution. */
int
tnp_distribution_size(TnpDistributionKind kind, int n)
{
	if (n < 1 || n > tnp_distribution_most(kind))
		return 0;
	switch (kind)
	{
		case TNP_GAUSSIAN:
			return 2;
		case TNP_MIXTURE:
			return 3 * n;
		case TNP_BARS:
		case TNP_BARS_HALF_NORMAL:
			return 2 * n + 1;
		case TNP_CLASSES:
			return n;
		case TNP_QUANTILES:
			return n + 2;
	}
	return 0;
}

double
tnp_total_weight(const TnpDistribution *d)
{
	double		total = 0.0;

	for (int i = 0; i < d->n; i++)
		total += d->params[i];
	return total;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static TnpStatus
check_weights(const TnpDistribution *d, const char *word, TnpError *error)
{
	double		total;

	for (int i = 0; i < d->n; i++)
	{
		if (!(d->params[i] >= 0.0 && d->params[i] <= 1.0 + TNP_WEIGHT_TOLERANCE))
		{
			tnp_fail(error, TNP_BAD_ARGUMENT, "a %s is not between 0 and 1", word);
			tnp_detail(error, "Number %d is %g.", i + 1, d->params[i]);
			return TNP_BAD_ARGUMENT;
		}
	}
	total = tnp_total_weight(d);
	if (!(fabs(total - 1.0) <= TNP_WEIGHT_TOLERANCE))
	{
		tnp_fail(error, TNP_BAD_ARGUMENT, "the %s do not sum to 1",
				 d->kind == TNP_MIXTURE ? "weights" : d->kind == TNP_CLASSES ? "probabilities"
				 : "masses");
		tnp_detail(error, "Their sum is %.9g.", total);
		return TNP_BAD_ARGUMENT;
	}
	return TNP_OK;
}

static TnpStatus
check_location(double value, const char *word, int number, TnpError *error)
{
	if (fabs(value) <= TNP_LARGEST_PARAMETER)
		return TNP_OK;
	tnp_fail(error, TNP_BAD_ARGUMENT, "a %s is not finite or too large", word);
	tnp_detail(error, "Number %d is %g; the largest absolute value is %g.", number, value,
			   TNP_LARGEST_PARAMETER);
	return TNP_BAD_ARGUMENT;
}

static TnpStatus
check_sd(double value, int number, TnpError *error)
{
	if (value >= TNP_SMALLEST_SCALE && value <= TNP_LARGEST_PARAMETER)
		return TNP_OK;
	tnp_fail(error, TNP_BAD_ARGUMENT, "a standard deviation is not positive and finite");
	tnp_detail(error, "Number %d is %g; the range is %g to %g.", number, value,
			   TNP_SMALLEST_SCALE, TNP_LARGEST_PARAMETER);
	return TNP_BAD_ARGUMENT;
}

/* word: "border" or "quantile", of n numbers that must increase. */
static TnpStatus
check_increasing(const double *borders, int n, const char *word, TnpError *error)
{
	for (int i = 0; i < n; i++)
	{
		TnpStatus	status = check_location(borders[i], word, i + 1, error);

		if (status != TNP_OK)
			return status;
		if (i > 0 && !(borders[i] - borders[i - 1] >= TNP_SMALLEST_SCALE))
		{
			tnp_fail(error, TNP_BAD_ARGUMENT, "the %ss do not increase", word);
			tnp_detail(error, "Number %d is %g, number %d is %g.", i, borders[i - 1], i + 1,
					   borders[i]);
			return TNP_BAD_ARGUMENT;
		}
	}
	return TNP_OK;
}

static TnpStatus
check_quantiles(const TnpDistribution *d, TnpError *error)
{
	TnpStatus	status = check_increasing(d->params, d->n, "quantile", error);

	for (int i = d->n; status == TNP_OK && i < d->n + 2; i++)
		if (!(d->params[i] >= TNP_SMALLEST_SCALE && d->params[i] <= TNP_LARGEST_PARAMETER))
		{
			status = tnp_fail(error, TNP_BAD_ARGUMENT,
							  "the scale of a tail is not positive and finite");
			tnp_detail(error, "The %s tail has %g; the range is %g to %g.",
					   i == d->n ? "lower" : "upper", d->params[i], TNP_SMALLEST_SCALE,
					   TNP_LARGEST_PARAMETER);
		}
	return status;
}

static TnpStatus
check_components(const double *means, const double *sds, int n, TnpError *error)
{
	for (int i = 0; i < n; i++)
	{
		TnpStatus	status = check_location(means[i], "mean", i + 1, error);

		if (status == TNP_OK)
			status = check_sd(sds[i], i + 1, error);
		if (status != TNP_OK)
			return status;
	}
	return TNP_OK;
}

/* Check untrusted parameters; all other functions rely on them. */
TnpStatus
tnp_distribution_check(const TnpDistribution *d, TnpError *error)
{
	TnpStatus	status;
	int			least = d->kind == TNP_BARS_HALF_NORMAL || d->kind == TNP_QUANTILES ? 2 : 1;

	if (tnp_distribution_most(d->kind) == 0)
		return tnp_fail(error, TNP_BAD_ARGUMENT, "unknown kind of distribution: %d", (int) d->kind);
	if (tnp_distribution_size(d->kind, d->n) == 0 || d->n < least)
	{
		tnp_fail(error, TNP_BAD_ARGUMENT,
				 "wrong number of components, buckets, classes or quantiles: %d", d->n);
		tnp_detail(error, "The range is %d to %d.", least, tnp_distribution_most(d->kind));
		return TNP_BAD_ARGUMENT;
	}

	switch (d->kind)
	{
		case TNP_GAUSSIAN:
			return check_components(d->params, d->params + 1, 1, error);
		case TNP_MIXTURE:
			status = check_weights(d, "weight", error);
			return status != TNP_OK ? status :
				check_components(d->params + d->n, d->params + 2 * d->n, d->n, error);
		case TNP_BARS:
		case TNP_BARS_HALF_NORMAL:
			status = check_weights(d, "mass", error);
			return status != TNP_OK ? status :
				check_increasing(d->params + d->n, d->n + 1, "border", error);
		case TNP_CLASSES:
			return check_weights(d, "probability", error);
		case TNP_QUANTILES:
			return check_quantiles(d, error);
	}
	return TNP_BAD_ARGUMENT;
}

/* ---- questions ------------------------------------------------------------------------------- */

double
tnp_mean(const TnpDistribution *d)
{
	const TnpDistributionOps *f = ops_of(d);

	return f != NULL ? f->mean(d) : NAN;
}

double
tnp_variance(const TnpDistribution *d)
{
	const TnpDistributionOps *f = ops_of(d);

	return f != NULL ? f->variance(d) : NAN;
}

/*
 * A point of largest density; of several the first. A half-normal upper tail has its largest
 * density as y comes down to the inner border, which is the answer although the border itself
 * belongs to the bucket below.
 */
double
tnp_mode(const TnpDistribution *d)
{
	const TnpDistributionOps *f = ops_of(d);

	return f != NULL ? f->mode(d) : NAN;
}

/* Differential entropy in nats; of a categorical distribution the entropy of its classes. */
double
tnp_entropy(const TnpDistribution *d)
{
	const TnpDistributionOps *f = ops_of(d);

	return f != NULL ? f->entropy(d) : NAN;
}

double
tnp_pdf(const TnpDistribution *d, double y)
{
	const TnpDistributionOps *f = ops_of(d);

	return f != NULL && !isnan(y) ? f->pdf(d, y) : NAN;
}

double
tnp_log_pdf(const TnpDistribution *d, double y)
{
	const TnpDistributionOps *f = ops_of(d);

	return f != NULL && !isnan(y) ? f->log_pdf(d, y) : NAN;
}

double
tnp_cdf(const TnpDistribution *d, double y)
{
	const TnpDistributionOps *f = ops_of(d);

	return f != NULL && !isnan(y) ? f->cdf(d, y) : NAN;
}

/* The first y with cdf(y) >= p, exactly non-decreasing in p; NaN for p outside [0, 1]. */
double
tnp_quantile(const TnpDistribution *d, double p)
{
	const TnpDistributionOps *f = ops_of(d);

	return f != NULL && p >= 0.0 && p <= 1.0 ? f->quantile(d, p) : NAN;
}

/*
 * Continuous ranked probability score: the integral of (cdf(t) - [t >= y])^2 over t; infinite for
 * infinite y.
 */
double
tnp_crps(const TnpDistribution *d, double y)
{
	const TnpDistributionOps *f = ops_of(d);

	if (f == NULL || isnan(y))
		return NAN;
	return isinf(y) && d->kind != TNP_CLASSES ? INFINITY : f->crps(d, y);
}

double
tnp_draw(const TnpDistribution *d, uint64_t seed, uint64_t draw, uint32_t step)
{
	return tnp_draw_target(d, seed, draw, step, 0);
}

double
tnp_draw_target(const TnpDistribution *d, uint64_t seed, uint64_t draw, uint32_t step, int target)
{
	const TnpDistributionOps *f = ops_of(d);
	double		u[2];

	if (f == NULL)
		return NAN;
	tnp_random(seed, draw, step, TNP_STREAM_VALUES + 2 * (uint32_t) target, u);
	return f->draw(d, u);
}
