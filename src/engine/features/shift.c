/*
 * shift.c: whether a missing cell shifts the target. A row of the prefix that lacks cells is asked
 * about as a query would be, with those of its donors; how far its target is from that is what
 * their absence says. Rows that lack several cells share this out among them, by least squares, so
 * that a query which lacks others together is shifted by the sum of theirs.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/shift.h"

#include <math.h>
#include <string.h>

#include "engine/base/cholesky.h"
#include "engine/features/column.h"
#include "engine/features/donors.h"
#include "engine/features/process.h"

#define SUPPOSED 4.0			/* variance of a shift beforehand, in that of the targets */
#define SMALLEST_REST 1e-9		/* of one minus the share of a prefix row in its own answer */
#define ROWS_OF_SHIFT 4			/* of the prefix, for each cell that may */
#define POLL_ROWS 16			/* rows between two looks at interrupts */

/* What one row of the prefix that lacks cells says. */
typedef struct Lacking
{
	uint64_t	cells;			/* bit j: it lacks that of feature j of the shifts */
	double		apart,			/* from what is said of it with the cells of its donors */
				weight;			/* the inverse of the variance of that */
} Lacking;

_Static_assert(TNP_SHIFTED <= 64, "features are bits");

/* ---- what rows say --------------------------------------------------------------------------- */

/* Features whose cells a few rows of the prefix lack, in the order of the slots. */
static void
choose_features(const TnpStats *stats, TnpShifts *shifts)
{
	int64_t		most = stats->n0 / ROWS_OF_SHIFT < TNP_SHIFTED ? stats->n0 / ROWS_OF_SHIFT
		: TNP_SHIFTED;

	for (int s = 0; s < stats->n_slots && shifts->n < most; s++)
	{
		const TnpColumn *column = tnp_slot_column(stats, s);
		int			j = 0;

		if (column->count[TNP_MISSING_BIN] == 0 || !tnp_column_is_lent(stats, stats->slot[s]))
			continue;
		while (j < shifts->n && shifts->feature[j] != column->feature)
			j++;
		shifts->feature[j] = column->feature;
		shifts->n += j == shifts->n;
	}
}

static uint64_t
cells_lacking(const TnpStats *stats, const double *x)
{
	const TnpShifts *shifts = &stats->shifts;
	uint64_t	cells = 0;

	for (int j = 0; j < shifts->n; j++)
		if (tnp_column_lacks(&stats->columns[shifts->feature[j]], x[shifts->feature[j]]))
			cells |= (uint64_t) 1 << j;
	return cells;
}

/*
 * How far a row x [F] with target y is from what the process says of it without its own target and
 * with the cells of its donors; false if it has none. variants [TNP_MOST_VARIANTS, F] and work
 * [4, n_features] are scratch.
 */
static bool
compare_row(const TnpModel *model, const TnpStats *stats, const double *means,
			const double *x, double y, double *variants, double *work, Lacking *row)
{
	const TnpProcess *p = &stats->process;
	int			n = p->n_features,
				sample,
				count;
	double		weight[TNP_MOST_VARIANTS],
			   *reached = work,
			   *unknown = work + n,
			   *own_reached = work + 2 * n,
			   *own_unknown = work + 3 * n,
				mean,
				own_mean,
				spread,
				variance,
				own,
				share;

	count = tnp_donors_of(model, stats, x, variants, weight, &sample);
	if (count == 0)
		return false;
	variance = tnp_process_mix(model, stats, means, variants, stats->donors.n_features, count,
							   weight, reached, unknown, &mean, &spread);
	own = tnp_process_reach(model, stats, x, own_reached, own_unknown, &own_mean);
	share = tnp_dot(n, own_unknown, own_unknown);
	own -= share;
	mean -= tnp_dot(n, unknown, own_unknown) / own * (y - own_mean)
		/ fmax(1 - share / own, SMALLEST_REST);
	row->apart = y - mean;
	row->weight = 1 / (p->variance * variance + spread);
	return true;
}

/* All rows of the prefix that lack cells and have donors, into found [n0]; how many, or -1. */
static int64_t
compare_rows(const TnpModel *model, const TnpRows *rows, const TnpStats *stats, Lacking *found,
			 TnpError *error)
{
	const TnpProcess *p = &stats->process;
	int			width = rows->n_features;
	size_t		n = p->n_features;
	double	   *work = tnp_alloc(&model->env, 5 * n + (size_t) TNP_MOST_VARIANTS * width,
								 sizeof(double));
	int64_t		count = 0;

	if (work == NULL)
	{
		tnp_no_memory(error);
		return -1;
	}
	tnp_process_means(p, work + 4 * n);
	for (int64_t r = 0; r < stats->n0; r++)
	{
		const double *x = rows->x + r * width;
		uint64_t	cells = cells_lacking(stats, x);

		if (cells == 0)
			continue;
		if (count % POLL_ROWS == 0 && tnp_interrupted(&model->env))
		{
			tnp_fail(error, TNP_INTERRUPTED, "interrupted");
			count = -1;
			break;
		}
		found[count].cells = cells;
		count += compare_row(model, stats, work + 4 * n, x,
							 tnp_process_target(model, stats, p, rows->y[r]), work + 5 * n, work,
							 &found[count]);
	}
	tnp_free(&model->env, work);
	return count;
}

/* ---- least squares --------------------------------------------------------------------------- */

/*
 * Means [n] of the shifts and the lower factor [n, n] of the inverse of their covariance, when row
 * i counts by its weight over the largest `scale` [n] of the cells that it lacks.
 */
static void
solve_shifts(const TnpShifts *shifts, const Lacking *rows, int64_t count, const double *scale,
			 double *gram, double *factor, double *mean)
{
	int			n = shifts->n;

	memset(gram, 0, (size_t) n * n * sizeof(double));
	memset(mean, 0, n * sizeof(double));
	for (int64_t i = 0; i < count; i++)
	{
		double		by = 0;

		for (int j = 0; j < n; j++)
			if (rows[i].cells >> j & 1)
				by = fmax(by, scale[j]);
		for (int j = 0; j < n; j++)
		{
			if ((rows[i].cells >> j & 1) == 0)
				continue;
			mean[j] += rows[i].weight / by * rows[i].apart;
			for (int k = 0; k <= j; k++)
				if (rows[i].cells >> k & 1)
					gram[j * n + k] += rows[i].weight / by;
		}
	}
	/* what a shift is supposed to be keeps it definite */
	(void) tnp_factorise(gram, n, 1 / SUPPOSED, factor);
	tnp_solve_lower(factor, n, mean);
	tnp_solve_upper(factor, n, mean);
}

/* By what the squares of rows that lack each cell are larger than expected, 1 at least: [n]. */
static void
measure_scale(const TnpShifts *shifts, const Lacking *rows, int64_t count, double *scale)
{
	int			n = shifts->n;

	for (int j = 0; j < n; j++)
	{
		/* one square of the size that is expected beforehand, so that few rows say little */
		double		square = 1;
		int64_t		members = 0;

		for (int64_t i = 0; i < count; i++)
		{
			double		rest = rows[i].apart;

			if ((rows[i].cells >> j & 1) == 0)
				continue;
			for (int k = 0; k < n; k++)
				if (rows[i].cells >> k & 1)
					rest -= shifts->mean[k];
			square += rows[i].weight * rest * rest;
			members++;
		}
		scale[j] = members == 0 ? 1 : fmax(square / (double) members, 1);
	}
}

/* The covariance from the factor of its inverse. */
static void
invert(int n, const double *factor, double *column, double *covariance)
{
	for (int j = 0; j < n; j++)
	{
		memset(column, 0, n * sizeof(double));
		column[j] = 1;
		tnp_solve_lower(factor, n, column);
		tnp_solve_upper(factor, n, column);
		memcpy(covariance + (size_t) j * n, column, n * sizeof(double));
	}
}

TnpStatus
tnp_shifts_build(const TnpModel *model, const TnpRows *rows, TnpStats *stats, TnpError *error)
{
	TnpShifts  *shifts = &stats->shifts;
	Lacking    *found;
	double	   *gram,
			   *factor,
			   *scale;
	size_t		n;
	int64_t		count;
	TnpStatus	status = TNP_OK;

	choose_features(stats, shifts);
	n = shifts->n;
	if (n == 0)
		return TNP_OK;
	shifts->covariance = tnp_alloc(&model->env, n * n + n, sizeof(double));
	found = tnp_alloc(&model->env, stats->n0, sizeof(Lacking));
	gram = tnp_alloc(&model->env, 2 * n * n + n, sizeof(double));
	if (shifts->covariance == NULL || found == NULL || gram == NULL)
		status = tnp_no_memory(error);
	else
	{
		shifts->mean = shifts->covariance + n * n;
		factor = gram + n * n;
		scale = factor + n * n;
		count = compare_rows(model, rows, stats, found, error);
		if (count < 0)
			status = error->status;
		else
		{
			for (size_t j = 0; j < n; j++)
				scale[j] = 1;
			solve_shifts(shifts, found, count, scale, gram, factor, shifts->mean);
			measure_scale(shifts, found, count, scale);
			solve_shifts(shifts, found, count, scale, gram, factor, shifts->mean);
			invert((int) n, factor, gram, shifts->covariance);
		}
	}
	tnp_free(&model->env, gram);
	tnp_free(&model->env, found);
	return status;
}

bool
tnp_shifts_copy(const TnpEnv *env, const TnpShifts *from, TnpShifts *to)
{
	*to = *from;
	if (from->n == 0)
		return true;
	to->covariance = tnp_alloc(env, 1, tnp_shifts_bytes(from));
	if (to->covariance == NULL)
		return false;
	memcpy(to->covariance, from->covariance, tnp_shifts_bytes(from));
	to->mean = to->covariance + (size_t) to->n * to->n;
	return true;
}

void
tnp_shifts_free(const TnpEnv *env, TnpShifts *shifts)
{
	tnp_free(env, shifts->covariance);
	memset(shifts, 0, sizeof(*shifts));
}

size_t
tnp_shifts_bytes(const TnpShifts *shifts)
{
	return ((size_t) shifts->n * shifts->n + shifts->n) * sizeof(double);
}

/* ---- what a query is shifted by -------------------------------------------------------------- */

/*
 * The cells that a query lacks, m of them: of the others nothing is known. a [m, m] and b [m] are
 * what rows say of these alone: inverse variances, and shifts times them.
 */
static int
restrict_to(const TnpStats *stats, const double *x, double *a, double *b)
{
	const TnpShifts *shifts = &stats->shifts;
	uint64_t	cells = cells_lacking(stats, x);
	double		gram[TNP_SHIFTED * TNP_SHIFTED],
				factor[TNP_SHIFTED * TNP_SHIFTED],
				column[TNP_SHIFTED];
	int			at[TNP_SHIFTED],
				m = 0;

	for (int j = 0; j < shifts->n; j++)
		if (cells >> j & 1)
			at[m++] = j;
	for (int i = 0; i < m; i++)
	{
		b[i] = shifts->mean[at[i]];
		for (int j = 0; j < m; j++)
			gram[i * m + j] = shifts->covariance[(size_t) at[i] * shifts->n + at[j]];
	}
	/* the inverse of a definite matrix */
	if (m == 0 || !tnp_factorise(gram, m, 0, factor))
		return 0;
	invert(m, factor, column, a);
	tnp_solve_lower(factor, m, b);
	tnp_solve_upper(factor, m, b);
	for (int i = 0; i < m; i++)
		a[i * m + i] = fmax(a[i * m + i] - 1 / SUPPOSED, 0);
	return m;
}

int
tnp_shifts_of(const TnpStats *stats, const double *x, TnpShift *shift)
{
	double		a[TNP_SHIFTED * TNP_SHIFTED],
				b[TNP_SHIFTED],
				one[TNP_SHIFTED],
				rest = 1,
				mean = 0,
				variance = 0;
	bool		taken[TNP_SHIFTED] = {false};
	int			m = stats->shifts.n > 0 ? restrict_to(stats, x, a, b) : 0,
				n = 0;

	if (m == 0)
		return 0;
	shift[n++] = (TnpShift) {1, 0, 0};
	for (int i = 0; i < m; i++)
		one[i] = 1;
	/* one cell more at a time, that which shifts most surely given those before it */
	while (n <= m && n < TNP_MOST_SHIFTS)
	{
		double		best = -INFINITY,
					pivot;
		int			g = 0;

		for (int i = 0; i < m; i++)
		{
			double		own = a[i * m + i],
						odds = 0.5 * (b[i] * b[i] / (1 / SUPPOSED + own) - log1p(SUPPOSED * own));

			if (taken[i] || !(odds > best))
				continue;
			best = odds;
			g = i;
		}
		taken[g] = true;
		pivot = 1 / SUPPOSED + a[g * m + g];
		mean += one[g] * b[g] / pivot;
		variance += one[g] * one[g] / pivot;
		shift[n - 1].weight = rest / (1 + exp(best));
		rest /= 1 + exp(-best);
		shift[n++] = (TnpShift) {rest, mean * stats->y_scale,
								 sqrt(variance) * fabs(stats->y_scale)};
		for (int i = 0; i < m; i++)
		{
			double		by = a[i * m + g] / pivot;

			if (taken[i])
				continue;
			b[i] -= by * b[g];
			one[i] -= by * one[g];
			for (int j = 0; j < m; j++)
				if (!taken[j])
					a[i * m + j] -= by * a[g * m + j];
		}
	}
	return n;
}
