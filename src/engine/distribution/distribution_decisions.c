/*
 * distribution_decisions.c: what decisions ask of a distribution over numbers: upper tails,
 * expected excess over a threshold, the same distribution in other units, and wider mixtures.
 *
 * Classes have none of these; the functions then give NaN. Expected excess is the integral of the
 * upper tail, E[max(Y - y, 0)], which Bayesian optimisation calls expected improvement
 * (Jones, Schonlau and Welch, 1998, equation 15, for a normal distribution).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/distribution/distribution.h"

#include "engine/base/normal.h"
#include "engine/distribution/quantiles.h"

#include <math.h>

#define SQRT_2_PI 0.79788456080286535588	/* sqrt(2 / pi), the mean of a half-normal */

/* E[max(Z - z, 0)] of a standard normal Z. */
static double
normal_excess(double z)
{
	if (z == INFINITY)
		return 0.0;
	return fmax(tnp_normal_pdf(z) - z * tnp_normal_cdf(-z), 0.0);
}

/* E[max(X - y, 0)] of a normal X. */
static double
gaussian_excess(double mean, double sd, double y)
{
	double		z = (y - mean) / sd;

	return z == -INFINITY ? mean - y : sd * normal_excess(z);
}

/* E[max(u - |Z|, 0)], u >= 0. */
static double
half_normal_shortfall(double u)
{
	return fmax(u * erf(u * TNP_SQRT1_2) + SQRT_2_PI * expm1(-0.5 * u * u), 0.0);
}

static double
half_normal_bucket_excess(const TnpDistribution *d, int i, double y)
{
	const double *border = d->params + d->n;
	double		scale = (border[i + 1] - border[i]) / TNP_QUARTILE,
				inner = border[i == 0 ? 1 : i];

	if (i == 0)
		return y >= inner ? 0.0 : scale * half_normal_shortfall((inner - y) / scale);
	if (y <= inner)
		return inner + SQRT_2_PI * scale - y;
	return 2.0 * scale * normal_excess((y - inner) / scale);
}

static double
uniform_excess(double low, double high, double y)
{
	if (y <= low)
		return low + 0.5 * (high - low) - y;
	if (y >= high)
		return 0.0;
	return (high - y) * ((high - y) / (high - low)) / 2.0;
}

static double
bars_excess(const TnpDistribution *d, double y)
{
	const double *border = d->params + d->n;
	double		sum = 0.0;

	for (int i = 0; i < d->n; i++)
	{
		bool		tail = d->kind == TNP_BARS_HALF_NORMAL && (i == 0 || i == d->n - 1);

		if (d->params[i] > 0.0)
			sum += d->params[i] * (tail ? half_normal_bucket_excess(d, i, y)
								   : uniform_excess(border[i], border[i + 1], y));
	}
	return sum / tnp_total_weight(d);
}

static double
mixture_excess(const TnpDistribution *d, double y)
{
	double		sum = 0.0;

	for (int i = 0; i < d->n; i++)
		if (WEIGHT(d, i) > 0.0)
			sum += WEIGHT(d, i) * gaussian_excess(MEAN(d, i), SD(d, i), y);
	return sum / tnp_total_weight(d);
}

double
tnp_expected_excess(const TnpDistribution *d, double y)
{
	if (y == INFINITY)
		return d->kind == TNP_CLASSES ? NAN : 0.0;
	if (y == -INFINITY)
		return d->kind == TNP_CLASSES ? NAN : INFINITY;
	switch (d->kind)
	{
		case TNP_GAUSSIAN:
			return gaussian_excess(d->params[0], d->params[1], y);
		case TNP_MIXTURE:
			return mixture_excess(d, y);
		case TNP_BARS:
		case TNP_BARS_HALF_NORMAL:
			return bars_excess(d, y);
		case TNP_QUANTILES:
			return tnp_quantiles_excess(d, y);
		case TNP_CLASSES:
			break;
	}
	return NAN;
}

/* Borders in the order of the axis: masses and borders turn round where the scale is negative. */
static void
affine_bars(const TnpDistribution *d, double scale, double shift, double *params)
{
	int			n = d->n;

	for (int i = 0; i < n; i++)
		params[i] = d->params[scale < 0 ? n - 1 - i : i];
	for (int i = 0; i <= n; i++)
		params[n + i] = scale * d->params[n + (scale < 0 ? n - i : i)] + shift;
}

void
tnp_affine(const TnpDistribution *d, double scale, double shift, double *params)
{
	switch (d->kind)
	{
		case TNP_GAUSSIAN:
			params[0] = scale * d->params[0] + shift;
			params[1] = fabs(scale) * d->params[1];
			break;
		case TNP_MIXTURE:
			for (int i = 0; i < d->n; i++)
			{
				params[i] = WEIGHT(d, i);
				params[d->n + i] = scale * MEAN(d, i) + shift;
				params[2 * d->n + i] = fabs(scale) * SD(d, i);
			}
			break;
		case TNP_BARS:
		case TNP_BARS_HALF_NORMAL:
			affine_bars(d, scale, shift, params);
			break;
		case TNP_QUANTILES:
			tnp_quantiles_affine(d, scale, shift, params);
			break;
		case TNP_CLASSES:
			for (int i = 0; i < d->n; i++)
				params[i] = NAN;
			break;
	}
}

/*
 * About the mean, a factor would move a narrow peak away from what it foretells wherever few
 * components far to one side hold the mean beside it. About the median it would move the mean.
 */
void
tnp_widen(const TnpDistribution *mixture, double factor, double *params)
{
	const TnpDistribution *d = mixture;
	double		median = tnp_quantile(d, 0.5),
				below = 0.0,
				above = 0.0,
				lesser,
				kept;

	for (int i = 0; i < d->n; i++)
	{
		below += WEIGHT(d, i) * fmax(median - MEAN(d, i), 0.0);
		above += WEIGHT(d, i) * fmax(MEAN(d, i) - median, 0.0);
	}
	lesser = fmin(below, above);
	kept = lesser > 0.0 ? 1.0 + (factor - 1.0) * (lesser / fmax(below, above)) : 1.0;
	for (int i = 0; i < d->n; i++)
	{
		double		distance = MEAN(d, i) - median;
		bool		is_lesser = distance > 0.0 ? above == lesser : below == lesser;

		params[i] = WEIGHT(d, i);
		params[d->n + i] = median + (is_lesser ? factor : kept) * distance;
		params[2 * d->n + i] = factor * SD(d, i);
	}
}
