/*
 * distribution_bars.c: a histogram as an answer; params: n masses, n + 1 borders.
 *
 * Bucket i spans (b[i], b[i+1]] and is uniform. With half-normal tails the first and the last
 * bucket are instead half-normals that leave their inner border outwards, with such a scale that
 * half of their mass lies within the borders. Sums run from the nearer end, so that both tails keep
 * full relative accuracy.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/distribution/distribution.h"

#include "engine/base/normal.h"

#include <math.h>

#define MASS(d, i) ((d)->params[i])
#define BORDER(d, i) ((d)->params[(d)->n + (i)])
#define WIDTH(d, i) (BORDER(d, (i) + 1) - BORDER(d, i))

#define SQRT_2_PI 0.79788456080286535588	/* sqrt(2 / pi), the mean of a half-normal */
/* integral of erfc(u / sqrt 2)^2 over u > 0: (2 sqrt 2 - 2) / sqrt pi */
#define SQUARED_TAIL 0.46738995451021813786

static bool
is_tail(const TnpDistribution *d, int i)
{
	return d->kind == TNP_BARS_HALF_NORMAL && (i == 0 || i == d->n - 1);
}

/* The scale of a half-normal bucket. */
static double
tail_scale(const TnpDistribution *d, int i)
{
	return WIDTH(d, i) / TNP_QUARTILE;
}

/*
 * The distance of y from the inner border of half-normal bucket i, in scales; negative on the inner
 * side.
 */
static double
tail_distance(const TnpDistribution *d, int i, double y)
{
	double		outwards = i == 0 ? BORDER(d, 1) - y : y - BORDER(d, i);

	return outwards / tail_scale(d, i);
}

/* The bucket whose interval holds y; the outermost for y outside. */
static int
bucket_of(const TnpDistribution *d, double y)
{
	int			low = 0,
				high = d->n - 1;

	while (low < high)
	{
		int			middle = low + (high - low) / 2;

		if (y <= BORDER(d, middle + 1))
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* The share of bucket i that lies below y, and its complement: exact in its own tail. */
static double
share_below(const TnpDistribution *d, int i, double y)
{
	if (is_tail(d, i))
	{
		double		u = tail_distance(d, i, y);

		if (i == 0)
			return u > 0.0 ? erfc(u * TNP_SQRT1_2) : 1.0;
		return u > 0.0 ? erf(u * TNP_SQRT1_2) : 0.0;
	}
	return fmin(fmax((y - BORDER(d, i)) / WIDTH(d, i), 0.0), 1.0);
}

static double
share_above(const TnpDistribution *d, int i, double y)
{
	if (is_tail(d, i))
	{
		double		u = tail_distance(d, i, y);

		if (i == 0)
			return u > 0.0 ? erf(u * TNP_SQRT1_2) : 0.0;
		return u > 0.0 ? erfc(u * TNP_SQRT1_2) : 1.0;
	}
	return fmin(fmax((BORDER(d, i + 1) - y) / WIDTH(d, i), 0.0), 1.0);
}

/* Mean and variance of bucket i alone. */
static double
bucket_mean(const TnpDistribution *d, int i)
{
	if (is_tail(d, i))
		return i == 0 ? BORDER(d, 1) - SQRT_2_PI * tail_scale(d, i)
			: BORDER(d, i) + SQRT_2_PI * tail_scale(d, i);
	return BORDER(d, i) + 0.5 * WIDTH(d, i);
}

static double
bucket_variance(const TnpDistribution *d, int i)
{
	if (is_tail(d, i))
		return tail_scale(d, i) * tail_scale(d, i) * (1.0 - SQRT_2_PI * SQRT_2_PI);
	return WIDTH(d, i) * WIDTH(d, i) / 12.0;
}

/* The logarithm of the density of bucket i alone at y, which is one of its points. */
static double
bucket_log_pdf(const TnpDistribution *d, int i, double y)
{
	if (is_tail(d, i))
		return log(2.0) + tnp_normal_log_pdf(tail_distance(d, i, y)) - log(tail_scale(d, i));
	return -log(WIDTH(d, i));
}

static bool
outside(const TnpDistribution *d, double y)
{
	return d->kind == TNP_BARS && !(y >= BORDER(d, 0) && y <= BORDER(d, d->n));
}

static double
bars_mean(const TnpDistribution *d)
{
	double		sum = 0.0;

	for (int i = 0; i < d->n; i++)
		sum += MASS(d, i) * bucket_mean(d, i);
	return sum / tnp_total_weight(d);
}

static double
bars_variance(const TnpDistribution *d)
{
	double		mean = bars_mean(d);
	double		sum = 0.0;

	for (int i = 0; i < d->n; i++)
	{
		double		offset = bucket_mean(d, i) - mean;

		sum += MASS(d, i) * (bucket_variance(d, i) + offset * offset);
	}
	return sum / tnp_total_weight(d);
}

/* The middle of the highest uniform bucket, or the inner border of a half-normal one. */
static double
bars_mode(const TnpDistribution *d)
{
	double		highest = -1.0,
				mode = NAN;

	for (int i = 0; i < d->n; i++)
	{
		double		height = MASS(d, i) / WIDTH(d, i);
		double		place = BORDER(d, i) + 0.5 * WIDTH(d, i);

		if (is_tail(d, i))
		{
			height = MASS(d, i) * SQRT_2_PI / tail_scale(d, i);
			place = BORDER(d, i == 0 ? 1 : i);
		}
		if (height > highest)
		{
			highest = height;
			mode = place;
		}
	}
	return mode;
}

static double
bars_entropy(const TnpDistribution *d)
{
	double		total = tnp_total_weight(d);
	double		sum = 0.0;

	for (int i = 0; i < d->n; i++)
	{
		double		mass = MASS(d, i) / total;
		double		alone = is_tail(d, i) ? 0.5 + TNP_LOG_SQRT2PI - log(2.0) + log(tail_scale(d, i))
			: log(WIDTH(d, i));

		if (mass > 0.0)
			sum += mass * (alone - log(mass));
	}
	return sum;
}

static double
bars_log_pdf(const TnpDistribution *d, double y)
{
	int			i = bucket_of(d, y);

	if (outside(d, y) || MASS(d, i) == 0.0)
		return -INFINITY;
	return log(MASS(d, i) / tnp_total_weight(d)) + bucket_log_pdf(d, i, y);
}

static double
bars_pdf(const TnpDistribution *d, double y)
{
	int			i = bucket_of(d, y);
	double		mass = MASS(d, i) / tnp_total_weight(d);

	if (outside(d, y))
		return 0.0;
	if (is_tail(d, i))
		return mass * (2.0 * tnp_normal_pdf(tail_distance(d, i, y)) / tail_scale(d, i));
	return mass / WIDTH(d, i);
}

static double
bars_cdf(const TnpDistribution *d, double y)
{
	int			bucket = bucket_of(d, y);
	double		below = MASS(d, bucket) * share_below(d, bucket, y);

	for (int i = 0; i < bucket; i++)
		below += MASS(d, i);
	return fmin(below / tnp_total_weight(d), 1.0);
}

/* ---- quantile -------------------------------------------------------------------------------- */

/* The point of bucket i with `share` of the bucket, in (0, 1], below it. */
static double
point_above_share(const TnpDistribution *d, int i, double share)
{
	if (is_tail(d, i))
	{
		if (i == 0)
			return BORDER(d, 1) + tail_scale(d, i) * tnp_normal_quantile(0.5 * share);
		return BORDER(d, i) - tail_scale(d, i) * tnp_normal_quantile(0.5 * (1.0 - share));
	}
	return fmin(BORDER(d, i) + share * WIDTH(d, i), BORDER(d, i + 1));
}

/* The point of bucket i with `share` of the bucket above it. */
static double
point_below_share(const TnpDistribution *d, int i, double share)
{
	if (is_tail(d, i))
	{
		if (i == 0)
			return BORDER(d, 1) + tail_scale(d, i) * tnp_normal_quantile(0.5 * (1.0 - share));
		return BORDER(d, i) - tail_scale(d, i) * tnp_normal_quantile(0.5 * share);
	}
	return fmax(BORDER(d, i + 1) - share * WIDTH(d, i), BORDER(d, i));
}

/* The quantile counted from below, for 0 < p <= 1/2. */
static double
lower_quantile(const TnpDistribution *d, double p)
{
	double		wanted = p * tnp_total_weight(d);
	double		below = 0.0;
	int			last = 0;

	for (int i = 0; i < d->n; i++)
	{
		if (MASS(d, i) == 0.0)
			continue;
		last = i;
		if (below + MASS(d, i) >= wanted)
			return point_above_share(d, i, fmin((wanted - below) / MASS(d, i), 1.0));
		below += MASS(d, i);
	}
	return point_above_share(d, last, 1.0);
}

/* The quantile counted from above, for q = 1 - p in (0, 1/2). */
static double
upper_quantile(const TnpDistribution *d, double q)
{
	double		wanted = q * tnp_total_weight(d);
	double		above = 0.0;
	int			last = d->n - 1;

	for (int i = d->n - 1; i >= 0; i--)
	{
		if (MASS(d, i) == 0.0)
			continue;
		last = i;
		if (above + MASS(d, i) > wanted)
			return point_below_share(d, i, (wanted - above) / MASS(d, i));
		above += MASS(d, i);
	}
	return point_below_share(d, last, 1.0);
}

/* The ends of the support. */
static double
support_start(const TnpDistribution *d)
{
	int			i = 0;

	while (MASS(d, i) == 0.0)
		i++;
	if (is_tail(d, i))
		return i == 0 ? -INFINITY : BORDER(d, i);
	return BORDER(d, i);
}

static double
support_end(const TnpDistribution *d)
{
	int			i = d->n - 1;

	while (MASS(d, i) == 0.0)
		i--;
	if (is_tail(d, i))
		return i == 0 ? BORDER(d, 1) : INFINITY;
	return BORDER(d, i + 1);
}

static double
bars_quantile(const TnpDistribution *d, double p)
{
	if (p == 0.0)
		return support_start(d);
	if (p == 1.0)
		return support_end(d);
	if (p <= 0.5)
		return lower_quantile(d, p);

	/* Counted from above the median may come out a rounding error lower: keep the order. */
	return fmax(upper_quantile(d, 1.0 - p), lower_quantile(d, 0.5));
}

static double
bars_draw(const TnpDistribution *d, const double u[2])
{
	return bars_quantile(d, u[0]);
}

/* ---- continuous ranked probability score ----------------------------------------------------- */

/* The integral of the square of a linear function with these end values over an interval. */
static double
squared_line(double start, double end, double length)
{
	return length * (start * start + start * end + end * end) / 3.0;
}

/*
 * A uniform bucket: the lower mass rises from `below` by `mass`, the upper falls to `above`; the
 * square of the lower counts up to y, that of the upper from there.
 */
static double
uniform_crps(const TnpDistribution *d, int i, double below, double mass, double above, double y)
{
	double		split = fmin(fmax(y, BORDER(d, i)), BORDER(d, i + 1));
	double		lower = below + mass * share_below(d, i, split);
	double		upper = above + mass * share_above(d, i, split);

	return squared_line(below, lower, split - BORDER(d, i)) +
		squared_line(upper, above, BORDER(d, i + 1) - split);
}

/*
 * A half-normal bucket: the outer mass at distance u is mass * erfc(u / sqrt 2), whose square
 * counts from infinity to y; between y and the inner border it is the square of its complement to
 * one.
 */
static double
tail_crps(const TnpDistribution *d, int i, double mass, double y)
{
	double		u = tail_distance(d, i, y);
	double		sum = mass * mass * SQUARED_TAIL;

	if (u > 0.0)
		sum += u - 2.0 * mass * (u * erfc(u * TNP_SQRT1_2) + SQRT_2_PI * -expm1(-0.5 * u * u));
	return tail_scale(d, i) * sum;
}

static double
bars_crps(const TnpDistribution *d, double y)
{
	double		total = tnp_total_weight(d);
	double		below = 0.0,
				sum = 0.0;

	for (int i = 0; i < d->n; i++)
	{
		double		mass = MASS(d, i) / total;

		if (is_tail(d, i))
			sum += tail_crps(d, i, mass, y);
		else
			sum += uniform_crps(d, i, below, mass, fmax(1.0 - below - mass, 0.0), y);
		below += mass;
	}

	/* Outside bounded bars the distribution function is 0 or 1 as far as y. */
	if (d->kind == TNP_BARS)
		sum += fmax(BORDER(d, 0) - y, 0.0) + fmax(y - BORDER(d, d->n), 0.0);
	return fmax(sum, 0.0);
}

const TnpDistributionOps tnp_bars_ops = {
	.mean = bars_mean,
	.variance = bars_variance,
	.mode = bars_mode,
	.entropy = bars_entropy,
	.pdf = bars_pdf,
	.log_pdf = bars_log_pdf,
	.cdf = bars_cdf,
	.quantile = bars_quantile,
	.crps = bars_crps,
	.draw = bars_draw,
};
