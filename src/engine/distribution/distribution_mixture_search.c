/*
 * distribution_mixture_search.c: mode, quantile and entropy of a mixture of Gaussians, which have
 * no closed form.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/distribution/distribution.h"

#include "engine/base/normal.h"
#include "engine/base/search.h"

#include <float.h>
#include <math.h>

/* ---- mode ------------------------------------------------------------------------------------ */

#define CLIMB_STEPS 500

/*
 * The logarithm of the density at y and what its climb needs: the mean-shift step and the Newton
 * step (0 if none).
 */
typedef struct Slope
{
	double		height;
	double		shift;
	double		newton;
} Slope;

static Slope
slope_at(const TnpDistribution *d, double y)
{
	Slope		slope = {-INFINITY, 0.0, 0.0};
	double		sum = 0.0,
				pull = 0.0,		/* sum of r (m - y) / s^2 */
				stiffness = 0.0,	/* sum of r / s^2 */
				bend = 0.0;		/* sum of r ((m - y) / s^2)^2 */
	double		gradient,
				curvature;

	for (int i = 0; i < d->n; i++)
	{
		double		z = (MEAN(d, i) - y) / SD(d, i);
		double		term = log(WEIGHT(d, i)) - log(SD(d, i)) - 0.5 * z * z;
		double		scale;

		if (term == -INFINITY)
			continue;
		if (term > slope.height)
		{
			scale = exp(slope.height - term);
			sum *= scale;
			pull *= scale;
			stiffness *= scale;
			bend *= scale;
			slope.height = term;
		}
		scale = exp(term - slope.height);
		sum += scale;
		scale /= SD(d, i);
		pull += scale * z;
		bend += scale * z * (z / SD(d, i));
		stiffness += scale / SD(d, i);
	}
	if (sum == 0.0)
		return slope;
	slope.height += log(sum);
	slope.shift = pull / stiffness;
	gradient = pull / sum;
	curvature = (bend - stiffness) / sum - gradient * gradient;
	if (curvature < 0.0 && isfinite(curvature))
		slope.newton = -gradient / curvature;
	return slope;
}

/*
 * Climb from *y to a local maximum; returns the height. A Newton step that does not climb gives way
 * to mean shift.
 */
static double
climb(const TnpDistribution *d, double *y)
{
	Slope		here = slope_at(d, *y);

	for (int i = 0; i < CLIMB_STEPS; i++)
	{
		double		next = *y + here.newton;
		Slope		there = slope_at(d, next);

		if (!(there.height > here.height))
		{
			next = *y + here.shift;
			there = slope_at(d, next);
		}
		if (!(there.height > here.height))
			break;
		*y = next;
		here = there;
	}
	return here.height;
}

/*
 * A one-dimensional mixture of n Gaussians has at most n modes; each is looked for from the mean of
 * a component.
 */
double
tnp_mixture_mode(const TnpDistribution *d)
{
	double		highest = -INFINITY,
				mode = NAN;

	for (int i = 0; i < d->n; i++)
	{
		double		y = MEAN(d, i);
		double		height;

		if (WEIGHT(d, i) == 0.0)
			continue;
		height = climb(d, &y);
		if (height > highest || isnan(mode))
		{
			highest = height;
			mode = y;
		}
	}
	return mode;
}

/* ---- quantile -------------------------------------------------------------------------------- */

#define NEWTON_STEPS 200

/* Below this the tail mass is subnormal somewhere and has no relative accuracy to steer by. */
#define SMALLEST_TAIL 1e-290

typedef struct Target
{
	const TnpDistribution *d;
	bool		upper;			/* compare the upper tail, because p > 1/2 */
	double		mass;			/* the tail mass looked for, not divided by the total weight */
	double		half;			/* half of the total weight */
} Target;

/* Is the quantile at or below y? Where p > 1/2 it is not below a median. */
static bool
quantile_reached(double y, const void *arg)
{
	const Target *target = arg;
	double		upper;

	if (!target->upper)
		return tnp_mixture_lower(target->d, y) >= target->mass;
	upper = tnp_mixture_upper(target->d, y);
	return upper <= target->mass
		&& (upper < 0.98 * target->half || tnp_mixture_lower(target->d, y) >= target->half);
}

/*
 * On which side of the quantile is y: -1 or 1 only where the computed tail leaves no doubt, that is
 * beyond the rounding errors of a sum of n terms. *excess is log(lower tail / mass looked for), or
 * its negative for the upper tail.
 */
static int
side(const Target *target, double y, double *excess)
{
	double		doubt = 4.0 * DBL_EPSILON * (target->d->n + 8);
	double		mass = target->upper ? tnp_mixture_upper(target->d, y)
		: tnp_mixture_lower(target->d, y);
	double		ratio = mass / target->mass;
	int			sign = target->upper ? -1 : 1;

	*excess = sign * log(ratio);
	if (ratio < 1.0 - doubt)
		return -sign;
	if (ratio > 1.0 + doubt)
		return sign;
	return 0;
}

/* From y step away, farther each time, until clearly on side `direction` (-1 below, 1 above). */
static double
step_out(const Target *target, double y, double step, int direction)
{
	double		excess;

	step = fmax(step, fmax(fabs(y) * DBL_EPSILON, DBL_MIN));
	while (fabs(y) < DBL_MAX)
	{
		y += direction * step;
		step *= 4.0;
		if (side(target, y, &excess) == direction)
			return y;
	}
	return direction * DBL_MAX;
}

/*
 * Narrow [*below, *above] around the quantile by Newton steps on the logarithm of the tail, with
 * bisection where they leave the bracket or are slow. On return both ends are clearly on their
 * side.
 */
static void
narrow(const Target *target, double *below, double *above)
{
	double		y = *below + 0.5 * (*above - *below);
	double		width = INFINITY;

	for (int i = 0; i < NEWTON_STEPS; i++)
	{
		double		excess;
		int			where = side(target, y, &excess);
		double		tail = target->upper ? tnp_mixture_upper(target->d, y)
			: tnp_mixture_lower(target->d, y);
		double		density = tnp_mixture_density(target->d, y);
		double		next = y - excess * tail / density;

		if (where == 0)
		{
			double		step = 8.0 * DBL_EPSILON * (target->d->n + 8) * tail / density;

			if (!isfinite(step))
				step = 0.0;
			*below = fmax(*below, step_out(target, y, step, -1));
			*above = fmin(*above, step_out(target, y, step, 1));
			return;
		}
		if (where < 0)
			*below = y;
		else
			*above = y;

		/*
		 * Bisect when Newton leaves the bracket, and every third time unless the bracket shrinks
		 * well.
		 */
		if (!(next > *below && next < *above) || (i % 3 == 2 && *above - *below > 0.25 * width))
			next = *below + 0.5 * (*above - *below);
		if (i % 3 == 2)
			width = *above - *below;
		if (next <= *below || next >= *above)
			return;
		y = next;
	}
}

/*
 * Between the smallest and the largest quantile of the components lies that of the mixture. The
 * bracket is narrowed to where rounding leaves room for doubt, and the last steps are those of
 * tnp_first_reached, whose result does not depend on the bracket: quantiles of one distribution are
 * exactly ordered.
 */
double
tnp_mixture_quantile(const TnpDistribution *d, double p)
{
	Target		target;
	double		total = tnp_total_weight(d);
	double		z = tnp_normal_quantile(p);
	double		below = INFINITY,
				above = -INFINITY;
	double		slack = INFINITY;

	if (isinf(z))
		return z;
	target.d = d;
	target.upper = p > 0.5;
	target.mass = (target.upper ? 1.0 - p : p) * total;
	target.half = 0.5 * total;
	if (target.mass < SMALLEST_TAIL)
		return tnp_first_reached(-DBL_MAX, DBL_MAX, quantile_reached, &target);

	for (int i = 0; i < d->n; i++)
	{
		if (WEIGHT(d, i) == 0.0)
			continue;
		below = fmin(below, MEAN(d, i) + z * SD(d, i));
		above = fmax(above, MEAN(d, i) + z * SD(d, i));
		slack = fmin(slack, SD(d, i));
	}
	slack *= 1e-12;
	below = step_out(&target, below, slack, -1);
	above = step_out(&target, above, slack, 1);
	narrow(&target, &below, &above);
	return tnp_first_reached(below, above, quantile_reached, &target);
}

/* ---- entropy --------------------------------------------------------------------------------- */

/* A point as an unevaluated sum, so that narrow components far from zero keep their shape. */
typedef struct Point
{
	double		high,
				low;
} Point;

/*
 * Where the line is cut, in standard deviations from the mean of every component; nothing matters
 * beyond the ends.
 */
static const double cuts[] = {-8.5, -6.0, -4.0, -2.5, -1.25, 0.0, 1.25, 2.5, 4.0, 6.0, 8.5};
#define N_CUTS ((int) (sizeof(cuts) / sizeof(cuts[0])))
#define OUTERMOST_CUT 8.5

#define MOST_HALVINGS 30
/* of one piece; the error is far below the estimate that is compared with it */
#define ENTROPY_TOLERANCE 1e-10

/* a + b without rounding (Knuth). */
static Point
exact_sum(double a, double b)
{
	Point		sum;
	double		part;

	sum.high = a + b;
	part = sum.high - a;
	sum.low = (a - (sum.high - part)) + (b - part);
	return sum;
}

/* The distance from a to b. */
static double
distance(Point a, Point b)
{
	return (b.high - a.high) + (b.low - a.low);
}

/* -f log f at distance t from a point, f the density. */
static double
surprise(const TnpDistribution *d, double total, Point from, double t)
{
	double		f = 0.0;

	for (int i = 0; i < d->n; i++)
	{
		double		z = ((from.high - MEAN(d, i)) + (from.low + t)) / SD(d, i);

		if (fabs(z) < 38.0)
			f += WEIGHT(d, i) * (tnp_normal_pdf(z) / SD(d, i));
	}
	f /= total;
	return f > 0.0 ? -f * log(f) : 0.0;
}

/*
 * Gauss-Kronrod (7, 15) over [start, start + length] from a point, halved until both rules agree.
 */
static double
integrate(const TnpDistribution *d, double total, Point from, double start, double length,
		  int halvings)
{
	static const double node[8] = {
		0.991455371120812639206854697526329, 0.949107912342758524526189684047851,
		0.864864423359769072789712788640926, 0.741531185599394439863864773280788,
		0.586087235467691130294144691693, 0.405845151377397166906606412076961,
		0.207784955007898467600689403773245, 0.0
	};
	static const double kronrod[8] = {
		0.022935322010529224963732008058970, 0.063092092629978553290700663189204,
		0.104790010322250183839876322541518, 0.140653259715525918745189590510238,
		0.169004726639267902826583426598550, 0.190350578064785409913256402421014,
		0.204432940075298892414161999234649, 0.209482141084727828012999174891714
	};
	static const double gauss[4] = {
		0.129484966168869693270611432679082, 0.279705391489276667901467771423780,
		0.381830050505118944950369775488975, 0.417959183673469387755102040816327
	};
	double		half = 0.5 * length;
	double		fine = 0.0,
				coarse = 0.0;

	for (int i = 0; i < 8; i++)
	{
		double		value = surprise(d, total, from, start + half * (1.0 - node[i]));

		if (i < 7)
			value += surprise(d, total, from, start + half * (1.0 + node[i]));
		fine += kronrod[i] * value;
		if (i % 2 == 1)
			coarse += gauss[i / 2] * value;
	}
	if (fabs(fine - coarse) * half <= ENTROPY_TOLERANCE || halvings == 0)
		return fine * half;
	return integrate(d, total, from, start, half, halvings - 1) +
		integrate(d, total, from, start + half, half, halvings - 1);
}

/*
 * The end of the piece that starts at a point: the next cut, or a later one as long as the piece
 * stays short against every component that it touches. False if there is no later cut.
 */
static bool
piece_end(const TnpDistribution *d, Point from, Point *end)
{
	double		next = INFINITY,
				later = 0.0,
				finest = INFINITY;

	for (int i = 0; i < d->n; i++)
	{
		double		first = distance(from, exact_sum(MEAN(d, i), -OUTERMOST_CUT * SD(d, i)));
		double		last = distance(from, exact_sum(MEAN(d, i), OUTERMOST_CUT * SD(d, i)));

		if (WEIGHT(d, i) > 0.0 && last > 0.0)
			finest = fmin(finest, fmax(first, SD(d, i)));
	}
	for (int i = 0; i < d->n; i++)
	{
		for (int k = 0; k < N_CUTS && WEIGHT(d, i) > 0.0; k++)
		{
			Point		cut = exact_sum(MEAN(d, i), cuts[k] * SD(d, i));
			double		ahead = distance(from, cut);

			if (ahead > 0.0 && (ahead < next || (ahead > later && ahead <= 0.5 * finest)))
			{
				/* A later cut within reach wins over the next one. */
				if (ahead <= 0.5 * finest)
					later = fmax(later, ahead);
				if (later == 0.0 || ahead == later)
					*end = cut;
				next = fmin(next, ahead);
			}
		}
	}
	return next < INFINITY;
}

/* The pieces are at most as many as there are cuts. */
double
tnp_mixture_entropy(const TnpDistribution *d)
{
	double		total = tnp_total_weight(d);
	double		sum = 0.0;
	Point		from = {INFINITY, 0.0};
	Point		end = from;

	for (int i = 0; i < d->n; i++)
	{
		Point		start = exact_sum(MEAN(d, i), cuts[0] * SD(d, i));

		if (WEIGHT(d, i) > 0.0 && (isinf(from.high) || distance(start, from) > 0.0))
			from = start;
	}
	for (int i = 0; i < N_CUTS * d->n && piece_end(d, from, &end); i++)
	{
		sum += integrate(d, total, from, 0.0, distance(from, end), MOST_HALVINGS);
		from = end;
	}
	return sum;
}
