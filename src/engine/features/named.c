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

#define DENSE 3.0				/* mean log density of rows left out that leaves next to nothing */
#define POLL_ROWS 64			/* rows between two looks at interrupts */
#define FEWEST_ROWS 2			/* of a group */
#define FEWEST_GROUPS 6
#define SMALLEST_WITHIN 1e-6	/* variance within groups, of all of it */
#define BEYOND_NOISE 5.0		/* standard deviations of what noise alone would make, */
#define CLASS_BEYOND_NOISE 3.0	/* of classes, which say less */
#define SPREAD_OF_SQUARES 3.9	/* about twice 35/18: variance of squared differences, in units */
#define LEAST_ROUGH 0.3			/* of the variance between groups: what neighbours do not tell */
#define AHEAD 0.03				/* nats a row by which labels are ahead in what the process says */
#define REGRESSION_AHEAD 0.1	/* or regressions say */
#define AHEAD_TOGETHER 6.0		/* but of all rows together at least this */
#define CLASS_AHEAD 0.02		/* the same of the logistic regression of a classifier */
#define CLASS_AHEAD_TOGETHER 4.0
#define BEHIND 0.05				/* where regressions are ahead the process may lose this */
#define LOG_TWO_PI 1.8378770664093453

typedef struct Cell
{
	double		x;
	int64_t		row;
} Cell;

/* A group: its number, its rows, and the variance of its mean by the rows' own. */
typedef struct Group
{
	double		x,
				n,
				noise;
} Group;

/* What the targets' groups are looked for in, and the memory for it. */
typedef struct Search
{
	int			channels;		/* numbers of a row's target: 1, or one for each class */
	int			degrees;		/* of freedom of these */
	double	   *left;			/* [n0, channels] what a regression leaves of the targets */
	Cell	   *cells;			/* [n0] */
	Group	   *groups;			/* [n0 / FEWEST_ROWS] */
	double	   *means;			/* [n0 / FEWEST_ROWS, channels] of the groups */
} Search;

static int
compare_cells(const void *a, const void *b)
{
	const Cell *c = a,
			   *d = b;

	if (c->x != d->x)
		return c->x > d->x ? 1 : -1;
	return (c->row > d->row) - (c->row < d->row);
}

static void
search_free(const TnpEnv *env, Search *search)
{
	tnp_free(env, search->left);
	tnp_free(env, search->cells);
	tnp_free(env, search->groups);
	tnp_free(env, search->means);
}

static TnpStatus
search_make(const TnpEnv *env, const TnpStats *stats, Search *search, TnpError *error)
{
	int64_t		most = stats->n0 / FEWEST_ROWS + 1;
	size_t		width = stats->n_classes > 0 ? stats->n_classes : 1;

	search->channels = (int) width;
	search->left = tnp_alloc(env, stats->n0 * width, sizeof(double));
	search->cells = tnp_alloc(env, stats->n0, sizeof(Cell));
	search->groups = tnp_alloc(env, most, sizeof(Group));
	search->means = tnp_alloc(env, most * width, sizeof(double));
	return search->left == NULL || search->cells == NULL || search->groups == NULL
		|| search->means == NULL ? tnp_no_memory(error) : TNP_OK;
}

/* What the linear regression leaves of the prefix rows' targets, each without its row. */
static TnpStatus
leave_numbers(const TnpModel *model, const TnpStats *stats, const TnpRows *rows, Search *search,
			  TnpError *error)
{
	search->degrees = 1;
	for (int64_t i = 0; i < stats->n0; i++)
	{
		double		mean = 0;

		if (i % POLL_ROWS == 0 && tnp_interrupted(&model->env))
			return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		if (model->config.encode_x.ridge)
			tnp_ridge_answer(model, stats, &stats->ridge[0], rows->x + i * rows->n_features,
							 rows->y[i], &mean);
		search->left[i] = tnp_clipped_target(model, stats, rows->y[i]) - mean;
	}
	return TNP_OK;
}

/* What the logistic regression leaves of their classes' indicators. */
static void
leave_classes(const TnpStats *stats, const TnpRows *rows, Search *search)
{
	int			classes = search->channels;

	search->degrees = -1;
	for (int c = 0; c < classes; c++)
		search->degrees += stats->class_blend_weight[c] > 0;
	for (int64_t i = 0; i < stats->n0; i++)
		for (int c = 0; c < classes; c++)
			search->left[i * classes + c] = (rows->y[i] == c)
				- exp(stats->logistic.left_out[i * classes + c]);
}

bool
tnp_labels_wanted(const TnpStats *stats)
{
	return stats->n_classes > 0 ? stats->logistic.left_out != NULL
		: stats->process.density <= DENSE;
}

/* The column's m cells, in ascending order. */
static int64_t
sort_cells(const TnpStats *stats, const TnpRows *rows, const TnpColumn *column, Search *search)
{
	int64_t		m = 0;

	for (int64_t i = 0; i < stats->n0; i++)
	{
		double		x = rows->x[i * rows->n_features + column->feature];

		if (!tnp_column_lacks(column, x))
			search->cells[m++] = (Cell) {x, i};
	}
	qsort(search->cells, m, sizeof(Cell), compare_cells);
	return m;
}

/* The group of cells number first … end - 1; returns the squares within it. */
static double
measure_group(const Search *search, int64_t first, int64_t end, Group *group, double *mean)
{
	double		n = (double) (end - first),
				within = 0;

	for (int c = 0; c < search->channels; c++)
	{
		double		sum = 0;

		for (int64_t i = first; i < end; i++)
			sum += search->left[search->cells[i].row * search->channels + c];
		mean[c] = sum / n;
		for (int64_t i = first; i < end; i++)
		{
			double		away = search->left[search->cells[i].row * search->channels + c]
				- mean[c];

			within += away * away;
		}
	}
	*group = (Group) {search->cells[first].x, n, within / (n * (n - 1))};
	return within;
}

/* The groups of FEWEST_ROWS and more of m sorted cells, and the squares within these. */
static int
find_groups(const Search *search, int64_t m, double *within)
{
	int			k = 0;

	*within = 0;
	for (int64_t i = 0, end; i < m; i = end)
	{
		for (end = i; end < m && search->cells[end].x == search->cells[i].x; end++)
			continue;
		if (end - i < FEWEST_ROWS)
			continue;
		*within += measure_group(search, i, end, &search->groups[k],
								 search->means + (size_t) k * search->channels);
		k++;
	}
	return k;
}

/* The squares between k groups of n rows in all. */
static double
squares_between(const Search *search, int k, double n)
{
	double		between = 0;

	for (int c = 0; c < search->channels; c++)
	{
		const double *mean = search->means + c;
		double		all = 0;

		for (int g = 0; g < k; g++)
			all += search->groups[g].n * mean[(size_t) g * search->channels] / n;
		for (int g = 0; g < k; g++)
		{
			double		away = mean[(size_t) g * search->channels] - all;

			between += search->groups[g].n * away * away;
		}
	}
	return between;
}

/* Whether k groups of m cells, with these squares within them, are named and not measured. */
static bool
are_named(const Search *search, int k, int64_t m, double within)
{
	const Group *groups = search->groups;
	double		n = 0,
				squares = 0,	/* of group sizes */
				largest = 0,
				between,
				variance,		/* within groups */
				apart = 0,		/* squares of distances from the neighbours' line, */
				by_noise = 0,	/* what the noise within groups makes of that, */
				by_own = 0,		/* or that of each group by itself, */
				by_groups = 0,	/* and differences of groups, in units of their variance */
				rough,
				all,
				chance;

	for (int g = 0; g < k; g++)
	{
		n += groups[g].n;
		squares += groups[g].n * groups[g].n;
		largest = fmax(largest, groups[g].n);
	}
	if (k < FEWEST_GROUPS || 2 * n < (double) m || 2 * largest > (double) m
		|| search->degrees < 1)
		return false;
	between = squares_between(search, k, n);
	variance = fmax(within / (n - k), SMALLEST_WITHIN * (within + between) / n);
	for (int g = 1; g + 1 < k; g++)
	{
		const Group *a = &groups[g - 1],
				   *b = &groups[g + 1];
		const double *mean = search->means + (size_t) g * search->channels;
		/* halves: a difference may have no room */
		double		share = (0.5 * b->x - 0.5 * groups[g].x) / (0.5 * b->x - 0.5 * a->x),
					rest = 1 - share;

		for (int c = 0; c < search->channels; c++)
		{
			double		off = share * mean[c - search->channels]
				+ rest * mean[c + search->channels] - mean[c];

			apart += off * off;
		}
		by_own += share * share * a->noise + rest * rest * b->noise + groups[g].noise;
		by_noise += variance * (share * share / a->n + rest * rest / b->n + 1 / groups[g].n);
		by_groups += share * share + rest * rest + 1;
	}
	/* the noise of few rows may hide in either */
	by_noise = fmax(by_noise, by_own);
	rough = (apart - by_noise) / by_groups;
	all = (between - (k - 1) * variance) / (n - squares / n);
	chance = sqrt((SPREAD_OF_SQUARES / (k - 2) + 2 / (n - k)) / search->degrees);
	return by_noise > 0 && all > 0 && rough > LEAST_ROUGH * all
		&& apart > by_noise * (1 + (search->channels > 1 ? CLASS_BEYOND_NOISE : BEYOND_NOISE)
							   * chance);
}

static bool
names_groups(const TnpStats *stats, const TnpRows *rows, const TnpColumn *column, Search *search)
{
	int64_t		m = sort_cells(stats, rows, column, search);
	double		within;
	int			k = find_groups(search, m, &within);

	return are_named(search, k, m, within);
}

TnpStatus
tnp_columns_name(const TnpModel *model, const TnpStats *stats, const TnpRows *rows, bool *named,
				 bool *some, TnpError *error)
{
	Search		search = {0};
	TnpStatus	status = search_make(&model->env, stats, &search, error);

	*some = false;
	if (status == TNP_OK && stats->n_classes > 0)
		leave_classes(stats, rows, &search);
	else if (status == TNP_OK)
		status = leave_numbers(model, stats, rows, &search, error);
	for (int f = 0; status == TNP_OK && f < rows->n_features; f++)
	{
		const TnpColumn *column = &stats->columns[f];

		if (tnp_interrupted(&model->env))
			status = tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		named[f] = status == TNP_OK && column->kind == TNP_NUMERIC && !column->constant
			&& names_groups(stats, rows, column, &search);
		*some |= named[f];
	}
	search_free(&model->env, &search);
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

	if (without->n_classes > 0)
	{
		*help = with->logistic.quality - without->logistic.quality
			> fmax(CLASS_AHEAD, CLASS_AHEAD_TOGETHER / without->n0);
		return TNP_OK;
	}
	*help = ahead > fmax(AHEAD, together);
	if (*help || !model->config.encode_x.ridge || !(ahead > -BEHIND))
		return TNP_OK;
	status = regressions_density(model, rows, without, &before, error);
	if (status == TNP_OK)
		status = regressions_density(model, rows, with, &after, error);
	*help = status == TNP_OK && after - before > fmax(REGRESSION_AHEAD, together);
	return status;
}
