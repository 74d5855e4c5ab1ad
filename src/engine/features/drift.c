/*
 * drift.c: how far later rows of a context have moved away from the rows that its statistics are
 * of.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/drift.h"

#include <math.h>

#include "engine/tnp.h"

#define STANDARD_ERRORS 3
#define LOG_2 0.69314718055994530942

/*
 * numbers beyond it, or all below its inverse, are taken in a unit of their own: their squares have
 * no room
 */
#define LARGEST_PLAIN 1e100

/* The unit of some numbers: 0 unless they are very large or very small. */
static int
unit_of(const double *x, int64_t stride, int64_t first, int64_t end)
{
	double		largest = 0;

	for (int64_t i = first; i < end; i++)
		largest = fmax(largest, fabs(x[i * stride]));
	return largest == 0 || (largest <= LARGEST_PLAIN && largest >= 1 / LARGEST_PLAIN) ? 0
		: ilogb(largest);
}

/*
 * Moments of x[i stride] for i in [first, end), those missing left out (Welford, Note on a method
 * for calculating corrected sums of squares and products).
 */
static TnpSpread
moments(const double *x, int64_t stride, int64_t first, int64_t end)
{
	TnpSpread	m = {0, 0, 0, unit_of(x, stride, first, end)};
	double		squares = 0;

	for (int64_t i = first; i < end; i++)
	{
		double		value = m.unit == 0 ? x[i * stride] : ldexp(x[i * stride], -m.unit),
					from = value - m.mean;

		if (isnan(value))
			continue;
		m.n++;
		m.mean += from / (double) m.n;
		squares += from * (value - m.mean);
	}
	m.sd = m.n > 0 ? sqrt(squares / (double) m.n) : 0;
	return m;
}

/* A difference without what chance makes of it, never below 0. */
static double
beyond_chance(double difference, double standard_error)
{
	return fmax(fabs(difference) - STANDARD_ERRORS * standard_error, 0);
}

double
tnp_spread_drift(TnpSpread before, TnpSpread after)
{
	double		rows,
				mean,
				ratio;

	if (before.n < TNP_DRIFT_ROWS || after.n < TNP_DRIFT_ROWS)
		return 0;
	rows = 1 / (double) before.n + 1 / (double) after.n;
	/* what was constant has no unit in which to measure */
	mean = after.unit == before.unit ? after.mean : ldexp(after.mean, after.unit - before.unit);
	if (before.sd == 0)
		return after.sd == 0 && mean == before.mean ? 0 : INFINITY;
	ratio = log(after.sd / before.sd) + (after.unit - before.unit) * LOG_2;
	return fmax(beyond_chance((mean - before.mean) / before.sd, sqrt(rows)),
				beyond_chance(ratio, sqrt(rows / 2)));
}

double
tnp_share_drift(int64_t some_before, int64_t before, int64_t some_after, int64_t after)
{
	double		share;

	if (before < TNP_DRIFT_ROWS || after < TNP_DRIFT_ROWS)
		return 0;
	share = ((double) some_before + (double) some_after) / ((double) before + (double) after);
	return beyond_chance((double) some_after / (double) after
						 - (double) some_before / (double) before,
						 sqrt(share * (1 - share) * (1 / (double) before + 1 / (double) after)));
}

double
tnp_drift(const TnpRows *rows, int64_t first)
{
	double		drift = 0;
	int			targets = tnp_rows_targets(rows);

	for (int t = 0; rows->n_classes == 0 && t < targets; t++)
		drift = fmax(drift, tnp_spread_drift(moments(rows->y + t, targets, 0, first),
											 moments(rows->y + t, targets, first, rows->n)));
	for (int f = 0; f < rows->n_features; f++)
		if (rows->kinds == NULL || rows->kinds[f] == TNP_NUMERIC)
			drift = fmax(drift, tnp_spread_drift(moments(rows->x + f, rows->n_features, 0, first),
												 moments(rows->x + f, rows->n_features, first,
														 rows->n)));
	return drift;
}
