/*
 * named.c: numbers that name groups of rows, as those of shops or patients do
 * (docs/model-format.md section 5, "Named groups").
 *
 * What a regression leaves of the targets of one number's rows follows a smooth curve in the mean,
 * up to the noise within groups, where numbers measure something. How far each mean is from the
 * line through its two neighbours tells how much more they differ (Gasser, Sroka &
 * Jennen-Steinmetz 1986).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/named.h"

#include <math.h>
#include <stdlib.h>

#include "engine/base/error.h"
#include "engine/features/column.h"
#include "engine/features/ridge_fit.h"
#include "engine/features/ridge_absent.h"

#define POLL_ROWS 64			/* rows between two looks at interrupts */
#define FEWEST_ROWS 2			/* of a group */
#define FEWEST_GROUPS 6
#define SMALLEST_WITHIN 1e-6	/* variance within groups, of all of it */
#define BEYOND_NOISE 5.0		/* standard deviations of what noise alone would make */
#define SPREAD_OF_SQUARES 3.9	/* about twice 35/18: variance of squared differences, in units */
#define LEAST_ROUGH 0.3			/* of the variance between groups: what neighbours do not tell */
#define AHEAD 0.03				/* nats a row by which labels are ahead in what the process says */
#define REGRESSION_AHEAD 0.1	/* or regressions say */
#define AHEAD_TOGETHER 6.0		/* but of all rows together at least this */
#define BEHIND 0.05				/* where regressions are ahead the process may lose this */
#define LOG_TWO_PI 1.8378770664093453

typedef struct Cell
{
	double		x,
				y;
} Cell;

/* A group: its number, its rows and the mean of their targets. */
typedef struct Group
{
	double		x,
				n,
				mean,
				noise;			/* variance of the mean, by the rows' own */
} Group;

static int
compare_cells(const void *a, const void *b)
{
	const Cell *c = a,
			   *d = b;

	if (c->x != d->x)
		return c->x > d->x ? 1 : -1;
	return (c->y > d->y) - (c->y < d->y);
}

/* What the linear regression leaves of the prefix rows' targets [n0], each without its row. */
static TnpStatus
leave_targets(const TnpModel *model, const TnpStats *stats, const TnpRows *rows, double *left,
			  TnpError *error)
{
	for (int64_t i = 0; i < stats->n0; i++)
	{
		double		mean = 0;

		if (i % POLL_ROWS == 0 && tnp_interrupted(&model->env))
			return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		if (model->config.encode_x.ridge)
			tnp_ridge_answer(model, stats, &stats->ridge[0], rows->x + i * rows->n_features,
							 rows->y[i], &mean);
		left[i] = tnp_clipped_target(model, stats, rows->y[i]) - mean;
	}
	return TNP_OK;
}

/* The column's m cells and what is left of their targets in ascending order. */
static int64_t
sort_cells(const TnpStats *stats, const TnpRows *rows, const TnpColumn *column, const double *left,
		   Cell *cells)
{
	int64_t		m = 0;

	for (int64_t i = 0; i < stats->n0; i++)
	{
		double		x = rows->x[i * rows->n_features + column->feature];

		if (!tnp_column_lacks(column, x))
			cells[m++] = (Cell) {x, left[i]};
	}
	qsort(cells, m, sizeof(Cell), compare_cells);
	return m;
}

/* The groups of FEWEST_ROWS and more of m sorted cells, and the squares within these. */
static int
find_groups(const Cell *cells, int64_t m, Group *groups, double *within)
{
	int			k = 0;

	*within = 0;
	for (int64_t i = 0, end; i < m; i = end)
	{
		double		sum = 0,
					square = 0,
					mean;

		for (end = i; end < m && cells[end].x == cells[i].x; end++)
			sum += cells[end].y;
		if (end - i < FEWEST_ROWS)
			continue;
		mean = sum / (double) (end - i);
		for (int64_t j = i; j < end; j++)
			square += (cells[j].y - mean) * (cells[j].y - mean);
		*within += square;
		groups[k++] = (Group) {cells[i].x, (double) (end - i), mean,
							   square / (double) ((end - i) * (end - i - 1))};
	}
	return k;
}

/* Whether k groups of m cells, with these squares within them, are named and not measured. */
static bool
are_named(const Group *groups, int k, int64_t m, double within)
{
	double		n = 0,
				squares = 0,	/* of group sizes */
				largest = 0,
				mean = 0,
				between = 0,
				variance,		/* within groups */
				apart = 0,		/* squares of distances from the neighbours' line, */
				by_noise = 0,	/* what the noise within groups makes of that, */
				by_own = 0,		/* or that of each group by itself, */
				by_groups = 0,	/* and differences of groups, in units of their variance */
				rough,
				all;

	for (int g = 0; g < k; g++)
	{
		n += groups[g].n;
		squares += groups[g].n * groups[g].n;
		largest = fmax(largest, groups[g].n);
		mean += groups[g].n * groups[g].mean;
	}
	if (k < FEWEST_GROUPS || 2 * n < (double) m || 2 * largest > (double) m)
		return false;
	mean /= n;
	for (int g = 0; g < k; g++)
		between += groups[g].n * (groups[g].mean - mean) * (groups[g].mean - mean);
	variance = fmax(within / (n - k), SMALLEST_WITHIN * (within + between) / n);
	for (int g = 1; g + 1 < k; g++)
	{
		const Group *a = &groups[g - 1],
				   *b = &groups[g + 1];
		/* halves: a difference may have no room */
		double		share = (0.5 * b->x - 0.5 * groups[g].x) / (0.5 * b->x - 0.5 * a->x),
					rest = 1 - share,
					off = share * a->mean + rest * b->mean - groups[g].mean;

		apart += off * off;
		by_own += share * share * a->noise + rest * rest * b->noise + groups[g].noise;
		by_noise += variance * (share * share / a->n + rest * rest / b->n + 1 / groups[g].n);
		by_groups += share * share + rest * rest + 1;
	}
	/* the noise of few rows may hide in either */
	by_noise = fmax(by_noise, by_own);
	rough = (apart - by_noise) / by_groups;
	all = (between - (k - 1) * variance) / (n - squares / n);
	return by_noise > 0 && all > 0 && rough > LEAST_ROUGH * all
		&& apart > by_noise * (1 + BEYOND_NOISE * sqrt(SPREAD_OF_SQUARES / (k - 2) + 2 / (n - k)));
}

static bool
names_groups(const TnpStats *stats, const TnpRows *rows, const TnpColumn *column,
			 const double *left, Cell *cells, Group *groups)
{
	int64_t		m = sort_cells(stats, rows, column, left, cells);
	double		within;
	int			k = find_groups(cells, m, groups, &within);

	return are_named(groups, k, m, within);
}

TnpStatus
tnp_columns_name(const TnpModel *model, const TnpStats *stats, const TnpRows *rows, bool *named,
				 bool *some, TnpError *error)
{
	double	   *left = tnp_alloc(&model->env, stats->n0, sizeof(double));
	Cell	   *cells = tnp_alloc(&model->env, stats->n0, sizeof(Cell));
	Group	   *groups = tnp_alloc(&model->env, stats->n0 / FEWEST_ROWS + 1, sizeof(Group));
	TnpStatus	status = left == NULL || cells == NULL || groups == NULL ? tnp_no_memory(error)
		: leave_targets(model, stats, rows, left, error);

	*some = false;
	for (int f = 0; status == TNP_OK && f < rows->n_features; f++)
	{
		const TnpColumn *column = &stats->columns[f];

		if (tnp_interrupted(&model->env))
			status = tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		named[f] = status == TNP_OK && column->kind == TNP_NUMERIC && !column->constant
			&& names_groups(stats, rows, column, left, cells, groups);
		*some |= named[f];
	}
	tnp_free(&model->env, left);
	tnp_free(&model->env, cells);
	tnp_free(&model->env, groups);
	return status;
}

/* Mean log density of the prefix rows, each left out, by the better of the regressions. */
static TnpStatus
regressions_density(const TnpModel *model, const TnpRows *rows, const TnpStats *stats,
					double *density, TnpError *error)
{
	*density = -INFINITY;
	for (int k = 0; k < TNP_RIDGES; k++)
	{
		const TnpRidge *ridge = &stats->ridge[k];
		double		sum = 0;

		for (int64_t i = 0; i < stats->n0; i++)
		{
			const double *x = rows->x + i * rows->n_features;
			double		mean,
						leverage = tnp_ridge_answer(model, stats, ridge, x, rows->y[i], &mean)
				+ tnp_ridge_absent(stats, ridge, x),
						spread = exp(2 * ridge->log_noise) * (1 + leverage),
						away = tnp_clipped_target(model, stats, rows->y[i]) - mean;

			if (i % POLL_ROWS == 0 && tnp_interrupted(&model->env))
				return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
			sum -= 0.5 * (LOG_TWO_PI + log(spread) + away * away / spread);
		}
		*density = fmax(*density, sum / stats->n0);
	}
	return TNP_OK;
}

TnpStatus
tnp_labels_help(const TnpModel *model, const TnpRows *rows, const TnpStats *without,
				const TnpStats *with, bool *help, TnpError *error)
{
	double		ahead = with->process.density - without->process.density,
				together = AHEAD_TOGETHER / without->n0,
				before,
				after;
	TnpStatus	status;

	*help = ahead > fmax(AHEAD, together);
	if (*help || !model->config.encode_x.ridge || !(ahead > -BEHIND))
		return TNP_OK;
	status = regressions_density(model, rows, without, &before, error);
	if (status == TNP_OK)
		status = regressions_density(model, rows, with, &after, error);
	*help = status == TNP_OK && after - before > fmax(REGRESSION_AHEAD, together);
	return status;
}
