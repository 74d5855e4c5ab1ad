/*
 * drift.c: how far later rows of a context have moved away from the rows that its statistics are
 * of.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/drift.h"

#include <math.h>
#include <stdlib.h>

#include "engine/base/compare.h"
#include "engine/features/far.h"

#define STANDARD_ERRORS 3
#define LOG_2 0.69314718055994530942

/*
 * numbers beyond it, or all below its inverse, are taken in a unit of their own: their squares have
 * no room
 */
#define LARGEST_PLAIN 1e100

/* The unit of some numbers: 0 unless they are very large or very small. */
static int
unit_of(const double *x, int64_t n)
{
	double		largest = 0;

	for (int64_t i = 0; i < n; i++)
		largest = fmax(largest, fabs(x[i]));
	return largest == 0 || (largest <= LARGEST_PLAIN && largest >= 1 / LARGEST_PLAIN) ? 0
		: ilogb(largest);
}

/*
 * Moments of n numbers, those missing left out (Welford, Note on a method for calculating corrected
 * sums of squares and products).
 */
static TnpSpread
moments(const double *x, int64_t n)
{
	TnpSpread	m = {0, 0, 0, unit_of(x, n)};
	double		squares = 0;

	for (int64_t i = 0; i < n; i++)
	{
		double		value = m.unit == 0 ? x[i] : ldexp(x[i], -m.unit),
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

/* Numbers of one column or target, of all rows; and those of the first rows, in order. */
typedef struct Numbers
{
	double	   *x,				/* [n] */
			   *sorted;			/* [n] room */
	int64_t		n,
				first;
} Numbers;

/* Sort the numbers of the first rows; returns how many are there. */
static int64_t
sort_first(const Numbers *numbers)
{
	int64_t		m = 0;

	for (int64_t i = 0; i < numbers->first; i++)
		if (!isnan(numbers->x[i]))
			numbers->sorted[m++] = numbers->x[i];
	qsort(numbers->sorted, m, sizeof(double), tnp_compare_doubles);
	return m;
}

/* Make far cells missing. */
static void
leave_near_cells(const Numbers *numbers, double times)
{
	TnpReach	reach;

	tnp_cells_bind(numbers->sorted, sort_first(numbers), times, &reach);
	for (int64_t i = 0; i < numbers->n; i++)
		if (tnp_is_far(&reach, numbers->x[i]))
			numbers->x[i] = NAN;
}

static void
bring_targets_near(const Numbers *numbers, double times)
{
	TnpTargetBound bound;

	tnp_targets_bind(numbers->sorted, sort_first(numbers), times, &bound);
	for (int64_t i = 0; i < numbers->n; i++)
		numbers->x[i] = tnp_bounded_target(&bound, numbers->x[i]);
}

static double
drift_of(const Numbers *numbers)
{
	return tnp_spread_drift(moments(numbers->x, numbers->first),
							moments(numbers->x + numbers->first, numbers->n - numbers->first));
}

double
tnp_drift(const TnpModel *model, const TnpRows *rows, int64_t first)
{
	TnpEnv		env = model != NULL ? model->env : tnp_default_env;
	Numbers		numbers = {NULL, NULL, rows->n, first};
	int			targets = tnp_rows_targets(rows);
	double		far_cells = model != NULL ? model->config.far_cells : 0,
				far_targets = model != NULL && targets == 1 ? model->config.far_targets : 0,
				drift = 0;

	if (rows->n == 0)
		return 0;
	numbers.x = tnp_alloc(&env, rows->n, 2 * sizeof(double));
	if (numbers.x == NULL)
		return NAN;
	numbers.sorted = numbers.x + rows->n;
	for (int t = 0; rows->n_classes == 0 && t < targets; t++)
	{
		for (int64_t i = 0; i < rows->n; i++)
			numbers.x[i] = rows->y[i * targets + t];
		if (far_targets > 0)
			bring_targets_near(&numbers, far_targets);
		drift = fmax(drift, drift_of(&numbers));
	}
	for (int f = 0; f < rows->n_features; f++)
	{
		if (rows->kinds != NULL && rows->kinds[f] != TNP_NUMERIC)
			continue;
		for (int64_t i = 0; i < rows->n; i++)
			numbers.x[i] = rows->x[i * rows->n_features + f];
		if (far_cells > 0)
			leave_near_cells(&numbers, far_cells);
		drift = fmax(drift, drift_of(&numbers));
	}
	tnp_free(&env, numbers.x);
	return drift;
}
