/*
 * distribution_quantiles.c: equally likely steps as an answer; params: n increasing quantiles at
 * the levels k / (n + 1), then the scales of the lower and of the upper tail.
 *
 * With m = 1 / (n + 1), each of the n - 1 intervals between neighbouring quantiles has mass m and
 * is uniform; below the first quantile lies mass m as an exponential tail, above the last one as
 * well. So the quantile function is linear between the levels, q_1 + left * ln(p / m) below m and
 * q_n - right * ln((1 - p) / m) above 1 - m.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/distribution/distribution.h"

#include "engine/distribution/quantiles.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#define QUANTILE(d, i) ((d)->params[i])
#define FIRST(d) QUANTILE(d, 0)
#define LAST(d) QUANTILE(d, (d)->n - 1)
#define LEFT(d) ((d)->params[(d)->n])
#define RIGHT(d) ((d)->params[(d)->n + 1])
#define WIDTH(d, i) (QUANTILE(d, (i) + 1) - QUANTILE(d, i))
#define MASS(d) (1.0 / ((d)->n + 1))

/* The interval between quantiles that holds y, which lies between the first and the last. */
static int
interval_of(const TnpDistribution *d, double y)
{
	int			low = 0,
				high = d->n - 2;

	while (low < high)
	{
		int			middle = low + (high - low) / 2;

		if (y <= QUANTILE(d, middle + 1))
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static double
middle_of(const TnpDistribution *d, int i)
{
	return QUANTILE(d, i) + 0.5 * WIDTH(d, i);
}

static double
quantiles_mean(const TnpDistribution *d)
{
	double		sum = FIRST(d) - LEFT(d) + (LAST(d) + RIGHT(d));

	for (int i = 0; i < d->n - 1; i++)
		sum += middle_of(d, i);
	return sum * MASS(d);
}

static double
quantiles_variance(const TnpDistribution *d)
{
	double		mean = quantiles_mean(d),
				left = FIRST(d) - LEFT(d) - mean,
				right = LAST(d) + RIGHT(d) - mean;
	double		sum = LEFT(d) * LEFT(d) + left * left + RIGHT(d) * RIGHT(d) + right * right;

	for (int i = 0; i < d->n - 1; i++)
	{
		double		offset = middle_of(d, i) - mean;

		sum += WIDTH(d, i) * WIDTH(d, i) / 12.0 + offset * offset;
	}
	return sum * MASS(d);
}

/* The middle of the narrowest interval, or the end of a tail that is denser there. */
static double
quantiles_mode(const TnpDistribution *d)
{
	double		narrowest = LEFT(d),
				mode = FIRST(d);

	for (int i = 0; i < d->n - 1; i++)
		if (WIDTH(d, i) < narrowest)
		{
			narrowest = WIDTH(d, i);
			mode = middle_of(d, i);
		}
	return RIGHT(d) < narrowest ? LAST(d) : mode;
}

/* Differential entropy: of an exponential 1 + ln(scale), of an interval ln(width), and of which. */
static double
quantiles_entropy(const TnpDistribution *d)
{
	double		sum = 2.0 + log(LEFT(d)) + log(RIGHT(d));

	for (int i = 0; i < d->n - 1; i++)
		sum += log(WIDTH(d, i));
	return sum * MASS(d) + log(d->n + 1.0);
}

static double
quantiles_log_pdf(const TnpDistribution *d, double y)
{
	double		log_mass = -log(d->n + 1.0);

	if (isinf(y))
		return -INFINITY;
	if (y <= FIRST(d))
		return log_mass - log(LEFT(d)) - (FIRST(d) - y) / LEFT(d);
	if (y > LAST(d))
		return log_mass - log(RIGHT(d)) - (y - LAST(d)) / RIGHT(d);
	return log_mass - log(WIDTH(d, interval_of(d, y)));
}

static double
quantiles_pdf(const TnpDistribution *d, double y)
{
	if (isinf(y))
		return 0.0;
	if (y <= FIRST(d))
		return MASS(d) * (exp(-(FIRST(d) - y) / LEFT(d)) / LEFT(d));
	if (y > LAST(d))
		return MASS(d) * (exp(-(y - LAST(d)) / RIGHT(d)) / RIGHT(d));
	return MASS(d) / WIDTH(d, interval_of(d, y));
}

static double
quantiles_cdf(const TnpDistribution *d, double y)
{
	int			i;

	if (y <= FIRST(d))
		return MASS(d) * exp(-(FIRST(d) - y) / LEFT(d));
	if (y > LAST(d))
		return fmax(1.0 - MASS(d) * exp(-(y - LAST(d)) / RIGHT(d)), d->n * MASS(d));
	i = interval_of(d, y);
	return (i + 1 + fmin((y - QUANTILE(d, i)) / WIDTH(d, i), 1.0)) * MASS(d);
}

static double
quantiles_quantile(const TnpDistribution *d, double p)
{
	double		place = p * (d->n + 1);
	int			i = (int) place;

	if (place <= 1.0)
		return p == 0.0 ? -INFINITY : fmin(FIRST(d) + LEFT(d) * log(place), FIRST(d));
	if (place > d->n)
		return p == 1.0 ? INFINITY
			: fmax(LAST(d) - RIGHT(d) * log(fmin((1.0 - p) * (d->n + 1), 1.0)), LAST(d));
	if (i > d->n - 1)
		i = d->n - 1;
	return fmin(QUANTILE(d, i - 1) + (place - i) * WIDTH(d, i - 1), QUANTILE(d, i));
}

static double
quantiles_draw(const TnpDistribution *d, const double u[2])
{
	return quantiles_quantile(d, u[0]);
}

/* ---- continuous ranked probability score ----------------------------------------------------- */

/* The integral of the square of a linear function with these end values over an interval. */
static double
squared_line(double start, double end, double length)
{
	return length * (start * start + start * end + end * end) / 3.0;
}

/*
 * A tail of mass m: its outer mass at distance u, in scales, is m * exp(-u), whose square counts
 * from infinity to y; between y and the tail's end it is the square of its complement to one.
 */
static double
tail_crps(double mass, double scale, double distance)
{
	double		u = distance / scale,
				sum = 0.5 * mass * mass;

	if (u > 0.0)
		sum += u + 2.0 * mass * expm1(-u);
	return scale * sum;
}

static double
quantiles_crps(const TnpDistribution *d, double y)
{
	double		m = MASS(d),
				sum = tail_crps(m, LEFT(d), FIRST(d) - y) + tail_crps(m, RIGHT(d), y - LAST(d));

	for (int i = 0; i < d->n - 1; i++)
	{
		double		split = fmin(fmax(y, QUANTILE(d, i)), QUANTILE(d, i + 1)),
					share = (split - QUANTILE(d, i)) / WIDTH(d, i),
					below = (i + 1) * m,
					above = (d->n - 1 - i) * m;

		sum += squared_line(below, below + share * m, split - QUANTILE(d, i))
			+ squared_line(above + (1.0 - share) * m, above, QUANTILE(d, i + 1) - split);
	}
	return fmax(sum, 0.0);
}

/* ---- decisions ------------------------------------------------------------------------------- */

double
tnp_quantiles_excess(const TnpDistribution *d, double y)
{
	double		sum = 0.0,
				u = (FIRST(d) - y) / LEFT(d);

	if (u > 0.0)
		sum += LEFT(d) * (u + expm1(-u));
	if (y <= LAST(d))
		sum += LAST(d) - y + RIGHT(d);
	else
		sum += RIGHT(d) * exp(-(y - LAST(d)) / RIGHT(d));
	for (int i = 0; i < d->n - 1; i++)
	{
		double		above = QUANTILE(d, i + 1) - y;

		if (above > 0.0)
			sum += above >= WIDTH(d, i) ? above - 0.5 * WIDTH(d, i)
				: above * (above / WIDTH(d, i)) / 2.0;
	}
	return sum * MASS(d);
}

void
tnp_quantiles_affine(const TnpDistribution *d, double scale, double shift, double *params)
{
	int			n = d->n;

	for (int i = 0; i < n; i++)
		params[i] = scale * QUANTILE(d, scale < 0 ? n - 1 - i : i) + shift;
	params[n] = fabs(scale) * (scale < 0 ? RIGHT(d) : LEFT(d));
	params[n + 1] = fabs(scale) * (scale < 0 ? LEFT(d) : RIGHT(d));
}

/* ---- made from what a network says ----------------------------------------------------------- */

static int
compare(const void *a, const void *b)
{
	double		x = *(const double *) a,
				y = *(const double *) b;

	return (x > y) - (x < y);
}

void
tnp_quantiles_sort(int n, double *quantiles)
{
	qsort(quantiles, n, sizeof(double), compare);
}

/*
 * The slope of the outer k quantiles against the logarithm of their level, counted from their end:
 * q(p) = scale * ln p + c, by least squares. step: +1 from the first quantile, -1 from the last.
 */
static double
tail_scale(const double *q, int n, int step)
{
	int			k = n / 4 < TNP_TAIL_QUANTILES ? n / 4 : TNP_TAIL_QUANTILES;
	double		mean_q = 0.0,
				mean_l = 0.0,
				covariance = 0.0,
				variance = 0.0;

	if (k < 2)
		k = 2;
	q += step > 0 ? 0 : n - 1;
	for (int i = 0; i < k; i++)
	{
		mean_q += q[step * i] / k;
		mean_l += log((i + 1.0) / (n + 1.0)) / k;
	}
	for (int i = 0; i < k; i++)
	{
		double		offset = log((i + 1.0) / (n + 1.0)) - mean_l;

		covariance += offset * (q[step * i] - mean_q);
		variance += offset * offset;
	}
	return fmin(fmax(fabs(covariance / variance), TNP_SMALLEST_TAIL), TNP_LARGEST_TAIL);
}

void
tnp_quantiles_make(int n, const double *quantiles, double center, double scale, double *params)
{
	double		largest = 0.0,
				gap;

	for (int i = 0; i < n; i++)
	{
		params[i] = center + scale * quantiles[i];
		largest = fmax(largest, fabs(params[i]));
	}
	params[n] = scale * tail_scale(quantiles, n, 1);
	params[n + 1] = scale * tail_scale(quantiles, n, -1);

	/* equal neighbours would have an infinite density */
	gap = fmax(TNP_SMALLEST_GAP * scale, 4.0 * DBL_EPSILON * largest);
	for (int i = 1; i < n; i++)
		if (!(params[i] - params[i - 1] >= gap))
			params[i] = params[i - 1] + gap;
}

const TnpDistributionOps tnp_quantiles_ops = {
	.mean = quantiles_mean,
	.variance = quantiles_variance,
	.mode = quantiles_mode,
	.entropy = quantiles_entropy,
	.pdf = quantiles_pdf,
	.log_pdf = quantiles_log_pdf,
	.cdf = quantiles_cdf,
	.quantile = quantiles_quantile,
	.crps = quantiles_crps,
	.draw = quantiles_draw,
};
