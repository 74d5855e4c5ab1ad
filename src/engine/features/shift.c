/*
 * shift.c: whether a missing cell shifts the target. A row of the prefix that lacks cells is asked
 * about as a query would be, with those of its donors; how far its target is from that is what
 * their absence says. Rows that lack several cells share this out among them, by least squares, so
 * that a query which lacks others together is shifted by the sum of theirs. A cell may be missing
 * for what it would have said, and then those of donors mislead. Rows that lack it tell: where the
 * process knows their targets better by the rows as they are, the cell is not lent at all.
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
#define OUTLYING 3.0			/* deviations */
#define CLEAR 3.0				/* nats by which rows as they are must be ahead to be kept so, */
#define CLEAR_EACH 0.06			/* and for each of them */

/* What one row of the prefix that lacks cells says. */
typedef struct Lacking
{
	uint64_t	cells;			/* bit j: it lacks that of feature j of the shifts */
	double		apart,			/* from what is said of it with the cells of its donors */
				weight,			/* the inverse of the variance of that */
				as_it_is,		/* log density of its target by the row itself */
				wide,			/* variance of the target where the cells are a donor's, and */
				narrow;			/* if there is no more to know of these than of a mean; */
	int			donors;			/* of each: */
	double	   *share,			/* its weight, and */
			   *from;			/* how far the target is from what it says */
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
		int			j = 0,
					kept = 0;

		while (kept < shifts->n_kept && shifts->kept[kept] != column->feature)
			kept++;
		if (column->count[TNP_MISSING_BIN] == 0 || !tnp_column_is_lent(stats, stats->slot[s])
			|| kept < shifts->n_kept)
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

/* But for a constant. */
static double
log_normal(double apart, double variance)
{
	return -0.5 * (apart * apart / variance + log(variance));
}

/*
 * How far a row x [F] with target y is from what the process says of it without its own target and
 * with the cells of its donors, and what it says of the row itself; false if it has none. variants
 * [TNP_MOST_VARIANTS, F] and work [4, n_features] are scratch; row->share and from are [donors].
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
				each[TNP_MOST_VARIANTS],
			   *reached = work,
			   *unknown = work + n,
			   *own_reached = work + 2 * n,
			   *own_unknown = work + 3 * n,
				mean,
				own_mean,
				spread = 0,
				variance,
				own,
				share,
				rest,
				away,
				by_own;

	count = row->donors = tnp_donors_of(model, stats, x, variants, weight, &sample);
	if (count == 0)
		return false;
	variance = tnp_process_mix(model, stats, means, variants, stats->donors.n_features, count,
							   weight, reached, unknown, &mean, each);
	own = tnp_process_reach(model, stats, x, own_reached, own_unknown, &own_mean);
	share = tnp_dot(n, own_unknown, own_unknown);
	own -= share;
	rest = fmax(1 - share / own, SMALLEST_REST);
	away = (y - own_mean) / rest;
	by_own = tnp_dot(n, unknown, own_unknown) / own * away;
	for (int k = 0; k < count; k++)
	{
		spread += weight[k] * (each[k] - mean) * (each[k] - mean);
		row->share[k] = weight[k];
		row->from[k] = y - (each[k] - by_own);
	}
	row->apart = y - (mean - by_own);
	row->weight = 1 / (p->variance * variance + spread);
	row->as_it_is = log_normal(away, p->variance * (own + share / rest));
	row->wide = p->variance * variance;
	row->narrow = p->variance * ((p->is_line ? 1 : p->noise) + tnp_dot(n, unknown, unknown));
	return true;
}

/*
 * All rows of the prefix that lack cells and have donors, into found, for which there is room, as
 * for two numbers of each of their donors; how many, or -1.
 */
static int64_t
compare_rows(const TnpModel *model, const TnpRows *rows, const TnpStats *stats, Lacking *found,
			 double *of_donors, TnpError *error)
{
	const TnpProcess *p = &stats->process;
	int			width = rows->n_features,
				donors = model->config.encode_x.donors;
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
		found[count].share = of_donors + count * 2 * donors;
		found[count].from = found[count].share + donors;
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

/*
 * A row that is further from what the others foretell than OUTLYING deviations counts as that far:
 * one mistake among the targets shifts nothing that other rows do not.
 */
static void
widen_outliers(const TnpShifts *shifts, Lacking *rows, int64_t count)
{
	int			n = shifts->n;

	for (int64_t i = 0; i < count; i++)
	{
		double		known = 0,
					apart = rows[i].apart,
					rest;

		for (int j = 0; j < n; j++)
			for (int k = 0; (rows[i].cells >> j & 1) && k < n; k++)
				if (rows[i].cells >> k & 1)
					known += shifts->covariance[(size_t) j * n + k];
		for (int j = 0; j < n; j++)
			if (rows[i].cells >> j & 1)
				apart -= shifts->mean[j];
		rest = fmax(1 - known * rows[i].weight, SMALLEST_REST);
		apart /= rest;
		rows[i].weight = 1 / fmax(1 / rows[i].weight,
								  apart * apart / (OUTLYING * OUTLYING) - known / rest);
	}
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

/* ---- whether cells are lent ------------------------------------------------------------------ */

/* The log density of a row's target with the cells of its donors. */
static double
by_donors(const Lacking *row, double mean, double variance)
{
	double		most = -INFINITY,
				sum = 0;

	for (int k = 0; k < row->donors; k++)
		most = fmax(most, log_normal(row->from[k] - mean, variance));
	for (int k = 0; k < row->donors; k++)
		sum += row->share[k] * exp(log_normal(row->from[k] - mean, variance) - most);
	return most + log(sum);
}

/*
 * By how much the log density of a row's target is larger by the row as it is than with the cells
 * of its donors and the shifts [n] without it: as wide as may be, and narrow. scale [n] is by what
 * rows that lack a cell count less.
 */
static void
compare_ways(const TnpShifts *shifts, const Lacking *row, const double *scale, double *ahead)
{
	int			n = shifts->n;
	double		by = 0,
				mean = 0,
				variance = 0,
				own,
				rest;

	for (int j = 0; j < n; j++)
	{
		if ((row->cells >> j & 1) == 0)
			continue;
		by = fmax(by, scale[j]);
		mean += shifts->mean[j];
		for (int k = 0; k < n; k++)
			if (row->cells >> k & 1)
				variance += shifts->covariance[(size_t) j * n + k];
	}
	own = variance * row->weight / by;
	rest = fmax(1 - own, SMALLEST_REST);
	mean = (mean - own * row->apart) / rest;
	variance /= rest;
	ahead[0] = row->as_it_is - by_donors(row, mean, row->wide + variance);
	ahead[1] = row->as_it_is - by_donors(row, mean, row->narrow + variance);
}

/*
 * Features whose missing cells are kept, the surest first; of the others only rows that have its
 * cell tell. Both ways have to be behind: single rows are far from what a narrow one says. ahead
 * [count, 2] is scratch.
 */
static void
keep_cells(TnpShifts *shifts, const Lacking *rows, int64_t count, const double *scale,
		   double *ahead)
{
	uint64_t	kept = 0;

	for (int64_t i = 0; i < count; i++)
		compare_ways(shifts, &rows[i], scale, ahead + 2 * i);
	for (;;)
	{
		double		best = CLEAR;
		int			at = -1;

		for (int j = 0; j < shifts->n; j++)
		{
			double		wide = 0,
						narrow = 0;

			for (int64_t i = 0; i < count; i++)
			{
				if ((rows[i].cells >> j & 1) == 0 || (rows[i].cells & kept) != 0)
					continue;
				wide += ahead[2 * i] - CLEAR_EACH;
				narrow += ahead[2 * i + 1] - CLEAR_EACH;
			}
			if (fmin(wide, narrow) > best)
			{
				best = fmin(wide, narrow);
				at = j;
			}
		}
		if (at < 0)
			return;
		kept |= (uint64_t) 1 << at;
		shifts->kept[shifts->n_kept++] = shifts->feature[at];
	}
}

/* ---- building -------------------------------------------------------------------------------- */

static int64_t
count_lacking(const TnpRows *rows, const TnpStats *stats)
{
	int64_t		count = 0;

	for (int64_t r = 0; r < stats->n0; r++)
		count += cells_lacking(stats, rows->x + r * rows->n_features) != 0;
	return count;
}

/* The shifts of the features chosen; and, if asked for, which of these are kept. */
static TnpStatus
build_shifts(const TnpModel *model, const TnpRows *rows, TnpStats *stats, bool judges,
			 TnpError *error)
{
	TnpShifts  *shifts = &stats->shifts;
	size_t		n = shifts->n;
	int64_t		count = count_lacking(rows, stats);
	Lacking    *found = tnp_alloc(&model->env, count + 1, sizeof(Lacking));
	double	   *of_donors = tnp_alloc(&model->env, count + 1,
									  2 * (model->config.encode_x.donors + 1) * sizeof(double)),
			   *gram = tnp_alloc(&model->env, 2 * n * n + n, sizeof(double)),
			   *factor,
			   *scale;
	TnpStatus	status = TNP_OK;

	shifts->covariance = tnp_alloc(&model->env, n * n + n, sizeof(double));
	if (shifts->covariance == NULL || found == NULL || of_donors == NULL || gram == NULL)
		status = tnp_no_memory(error);
	else
	{
		double	   *ahead = of_donors + count * 2 * model->config.encode_x.donors;

		shifts->mean = shifts->covariance + n * n;
		factor = gram + n * n;
		scale = factor + n * n;
		count = compare_rows(model, rows, stats, found, of_donors, error);
		if (count < 0)
			status = error->status;
		else
		{
			for (size_t j = 0; j < n; j++)
				scale[j] = 1;
			solve_shifts(shifts, found, count, scale, gram, factor, shifts->mean);
			invert((int) n, factor, gram, shifts->covariance);
			widen_outliers(shifts, found, count);
			solve_shifts(shifts, found, count, scale, gram, factor, shifts->mean);
			measure_scale(shifts, found, count, scale);
			solve_shifts(shifts, found, count, scale, gram, factor, shifts->mean);
			invert((int) n, factor, gram, shifts->covariance);
			if (judges)
				keep_cells(shifts, found, count, scale, ahead);
		}
	}
	tnp_free(&model->env, gram);
	tnp_free(&model->env, of_donors);
	tnp_free(&model->env, found);
	return status;
}

TnpStatus
tnp_shifts_build(const TnpModel *model, const TnpRows *rows, TnpStats *stats, TnpError *error)
{
	TnpShifts  *shifts = &stats->shifts;
	TnpStatus	status;

	choose_features(stats, shifts);
	if (shifts->n == 0)
		return TNP_OK;
	status = build_shifts(model, rows, stats, true, error);
	if (status != TNP_OK || shifts->n_kept == 0)
		return status;
	/* the others, as rows lack them beside cells that stay missing */
	tnp_free(&model->env, shifts->covariance);
	shifts->covariance = NULL;
	shifts->n = 0;
	choose_features(stats, shifts);
	return shifts->n == 0 ? TNP_OK : build_shifts(model, rows, stats, false, error);
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
