/*
 * drift.c: how far later rows of a context have moved away from the rows that its statistics are of.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "tnp.h"

#include <math.h>

#define STANDARD_ERRORS 3

/* Number, mean and standard deviation of some numbers. */
typedef struct Moments
{
	int64_t		n;
	double		mean,
				sd;
} Moments;

/* Moments of x[i stride] for i in [first, end), those missing left out (Welford, Note on a method for calculating corrected sums of squares and products). */
static Moments
moments(const double *x, int64_t stride, int64_t first, int64_t end)
{
	Moments		m = {0, 0, 0};
	double		squares = 0;

	for (int64_t i = first; i < end; i++)
	{
		double		value = x[i * stride],
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

/* Drift of one column. */
static double
drift_of(Moments before, Moments after)
{
	double		rows;

	if (before.n < TNP_DRIFT_ROWS || after.n < TNP_DRIFT_ROWS)
		return 0;
	rows = 1 / (double) before.n + 1 / (double) after.n;
	/* what was constant has no unit in which to measure */
	if (before.sd == 0)
		return after.sd == 0 && after.mean == before.mean ? 0 : INFINITY;
	return fmax(beyond_chance((after.mean - before.mean) / before.sd, sqrt(rows)), beyond_chance(log(after.sd / before.sd), sqrt(rows / 2)));
}

double
tnp_drift(const TnpRows *rows, int64_t first)
{
	double		drift = 0;

	if (rows->n_classes == 0)
		drift = drift_of(moments(rows->y, 1, 0, first), moments(rows->y, 1, first, rows->n));
	for (int f = 0; f < rows->n_features; f++)
		if (rows->kinds == NULL || rows->kinds[f] == TNP_NUMERIC)
			drift = fmax(drift, drift_of(moments(rows->x + f, rows->n_features, 0, first), moments(rows->x + f, rows->n_features, first, rows->n)));
	return drift;
}
