/*
 * power.c: the power transform of Yeo and Johnson (2000), fitted by maximum likelihood.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/power.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

#define TOLERANCE 1.48e-8		/* of the search */
#define MOST_STEPS 500

double
tnp_power_transform(double x, double power)
{
	if (x >= 0)
		return fabs(power) < DBL_EPSILON ? log1p(x) : expm1(power * log1p(x)) / power;
	return fabs(power - 2) <= DBL_EPSILON ? -log1p(-x) : -expm1((2 - power) * log1p(-x))
		/ (2 - power);
}

typedef struct Sample
{
	int64_t		n;
	const double *x;
	double		logs;			/* the sum of sign(x) ln(1 + |x|) */
} Sample;

/* Minus the log likelihood, up to a constant; infinite where the variance is lost in rounding. */
static double
loss(const Sample *s, double power)
{
	double		mean = 0,
				variance = 0;

	for (int64_t i = 0; i < s->n; i++)
		mean += tnp_power_transform(s->x[i], power);
	mean /= s->n;
	for (int64_t i = 0; i < s->n; i++)
	{
		double		offset = tnp_power_transform(s->x[i], power) - mean;

		variance += offset * offset;
	}
	variance /= s->n;
	if (!(variance >= DBL_MIN && variance <= DBL_MAX))
		return INFINITY;
	return 0.5 * s->n * log(variance) - (power - 1) * s->logs;
}

/* Brent's minimisation without derivatives in (low, high) (1973, chapter 5). */
static double
minimum(const Sample *s, double low, double high)
{
	const double golden = 0.5 * (3 - sqrt(5.0)),
				root_epsilon = sqrt(2.2e-16);
	double		best = low + golden * (high - low),
				second = best,
				third = best,
				f_best = loss(s, best),
				f_second = f_best,
				f_third = f_best,
				step = 0,
				before = 0,
				middle = 0.5 * (low + high),
				tolerance = root_epsilon * fabs(best) + TOLERANCE / 3;

	for (int i = 0; i < MOST_STEPS && fabs(best - middle) > 2 * tolerance - 0.5 * (high - low); i++)
	{
		bool		sectioned = true;
		double		tried,
					f;

		if (fabs(before) > tolerance)
		{
			double		r = (best - second) * (f_best - f_third),
						q = (best - third) * (f_best - f_second),
						p = (best - third) * q - (best - second) * r,
						last = before;

			q = 2 * (q - r);
			p = q > 0 ? -p : p;
			q = fabs(q);
			before = step;
			if (fabs(p) < fabs(0.5 * q * last) && p > q * (low - best) && p < q * (high - best))
			{
				step = p / q;
				sectioned = false;
				if (best + step - low < 2 * tolerance || high - best - step < 2 * tolerance)
					step = middle >= best ? tolerance : -tolerance;
			}
		}
		if (sectioned)
		{
			before = best >= middle ? low - best : high - best;
			step = golden * before;
		}
		tried = best + (step >= 0 ? 1 : -1) * fmax(fabs(step), tolerance);
		f = loss(s, tried);
		if (f <= f_best)
		{
			if (tried >= best)
				low = best;
			else
				high = best;
			third = second, f_third = f_second;
			second = best, f_second = f_best;
			best = tried, f_best = f;
		}
		else
		{
			if (tried < best)
				low = tried;
			else
				high = tried;
			if (f <= f_second || second == best)
			{
				third = second, f_third = f_second;
				second = tried, f_second = f;
			}
			else if (f <= f_third || third == best || third == second)
				third = tried, f_third = f;
		}
		middle = 0.5 * (low + high);
		tolerance = root_epsilon * fabs(best) + TOLERANCE / 3;
	}
	return best;
}

double
tnp_power_fit(int64_t n, const double *x)
{
	Sample		s = {n, x, 0};
	double		largest = 0,
				reach,
				low,
				high;
	int64_t		negative = 0;

	for (int64_t i = 0; i < n; i++)
	{
		largest = fmax(largest, fabs(x[i]));
		negative += x[i] < 0;
		s.logs += x[i] < 0 ? -log1p(-x[i]) : log1p(x[i]);
	}
	reach = log1p(20 * largest);
	low = 0.5 * (log(DBL_MIN) - log(DBL_EPSILON)) / reach;
	high = 0.5 * (log(DBL_MAX) + log(DBL_EPSILON)) / reach;
	if (negative == n)
		return minimum(&s, 2 - high, 2 - low);
	if (negative > 0)
		return minimum(&s, fmax(2 - high, low), fmin(2 - low, high));
	return minimum(&s, low, high);
}
