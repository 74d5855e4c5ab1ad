/*
 * levels.c: the labels of categorical columns: their bins and codes, and the parts that a feature
 * of many labels is split into (docs/model-format.md section 5, "Codes", "Bins", "Splitting").
 *
 * A column tells 15 labels apart, as the networks have learnt it. A feature of more labels stands
 * as several columns, each of which tells 15 others apart: nothing has to be learnt anew for that.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/levels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/base/mix.h"
#include "engine/features/column.h"

#define CODE_STEPS 1048576.0	/* in which mean targets are compared */
#define CODE_SHRINKAGE 1.5		/* rows of the mean target that a bin has in addition */
#define OFTEN 2					/* rows of a label: without these a rare one is not told apart */
#define BEYOND_CHANCE 2.0		/* standard deviations of what labels say where they say nothing */

/* A distinct identity of a column: how often it occurs, and its place in ascending order. */
typedef struct Level
{
	double		identity;
	int64_t		count;
	int64_t		place;
	double		told;			/* sum of its targets, in steps, where codes follow the targets */
	uint64_t	company;		/* sum of its rows' digests, likewise */
	uint64_t	lot;			/* 0 while none are drawn */
} Level;

/*
 * Most frequent first, then by lot, then ascending sum of targets, then ascending sum of digests,
 * then ascending identity.
 */
static int
compare_levels(const void *a, const void *b)
{
	const Level *x = a,
			   *y = b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	if (x->lot != y->lot)
		return x->lot > y->lot ? 1 : -1;
	if (x->told != y->told)
		return x->told > y->told ? 1 : -1;
	if (x->company != y->company)
		return x->company > y->company ? 1 : -1;
	return (x->identity > y->identity) - (x->identity < y->identity);
}

/*
 * The levels of a column in the order of their bins, ranked [n_levels]. What tells levels of equal
 * counts apart where their names must not: the sums of their targets, in steps, and of labels for
 * which these are equal, of their rows' digests. Rare levels in the order of the targets would make
 * parts of like ones, which seem to say a lot: places in that order draw lots.
 */
static void
rank_levels(const TnpModel *model, const TnpStats *stats, const TnpRows *rows,
			const TnpColumn *column, Level *ranked)
{
	bool		by_targets = model->config.encode_x.codes_by_targets,
				names = column->kind == TNP_CATEGORICAL && !column->of_number,
				lots = by_targets && model->config.encode_x.split > 1
		&& column->n_levels > TNP_OWN_LABELS + 1;

	for (int64_t k = 0; k < column->n_levels; k++)
		ranked[k] = (Level) {column->levels[k], 0, k, 0, 0, 0};
	for (int64_t i = 0; i < stats->n0; i++)
	{
		double		x = rows->x[i * rows->n_features + column->feature];
		bool		lacks = tnp_column_lacks(column, x);
		Level	   *level = &ranked[lacks ? 0 : tnp_find_level(column, x)];

		if (lacks)
			continue;
		level->count++;
		if (by_targets)
		{
			level->told += tnp_compared_target(model, stats, rows->y[i]);
			if (names)
				level->company += stats->digest[i];
		}
	}
	for (int64_t k = 0; k < column->n_levels; k++)
		ranked[k].told = rint(CODE_STEPS * ranked[k].told);
	qsort(ranked, column->n_levels, sizeof(Level), compare_levels);
	for (int64_t k = 0; lots && k < column->n_levels; k++)
		ranked[k].lot = tnp_mix((uint64_t) k);
	if (lots)
		qsort(ranked, column->n_levels, sizeof(Level), compare_levels);
}

/*
 * How many of the ranked levels parts tell apart: all, or where most are there once, as names and
 * numbers of rows are, those that are there more often.
 */
static int64_t
count_told_apart(const Level *ranked, int64_t n)
{
	int64_t		rows = 0,
				told_apart = n;

	for (int64_t k = 0; k < n; k++)
		rows += ranked[k].count;
	while (OFTEN * n > rows && told_apart > 0 && ranked[told_apart - 1].count < OFTEN)
		told_apart--;
	return told_apart;
}

/*
 * Sums over the prefix rows of each of the groups, of row i that of `group[i]`: sums [n_groups, 1 +
 * channels] of rows and of targets as inputs, in a classifier of each class. Returns the squares'
 * sum of the targets.
 */
static double
sum_groups(const TnpModel *model, const TnpStats *stats, const TnpRows *rows, const int64_t *group,
		   int channels, double *sums)
{
	double		square = 0;

	for (int64_t i = 0; i < stats->n0; i++)
	{
		double	   *own = sums + group[i] * (1 + channels);
		double		y = stats->n_classes > 0 ? 1 : tnp_clipped_target(model, stats, rows->y[i]);

		own[0]++;
		own[1 + (stats->n_classes > 0 ? (int) rows->y[i] : 0)] += y;
		square += y * y;
	}
	return square;
}

/*
 * Whether groups differ in their targets by more than chance: their share of the variance,
 * adjusted, is two standard deviations beyond the 0 that it is on average where they do not. sums
 * [n_groups, 1 + channels] and square of sum_groups().
 */
static bool
groups_differ(const TnpStats *stats, const double *sums, int64_t n_groups, int channels,
			  double square)
{
	double		n = (double) stats->n0,
				between = 0,
				mean = 0,		/* sum of squares of the channels' sums over all rows, by n */
				adjusted,
				degrees;
	int			groups = 0,
				filled = 0;

	for (int64_t g = 0; g < n_groups; g++)
	{
		const double *own = sums + g * (1 + channels);

		groups += own[0] > 0;
		for (int c = 0; own[0] > 0 && c < channels; c++)
			between += own[1 + c] * own[1 + c] / own[0];
	}
	for (int c = 0; c < channels; c++)
	{
		double		sum = 0;

		for (int64_t g = 0; g < n_groups; g++)
			sum += sums[g * (1 + channels) + 1 + c];
		mean += sum * sum / n;
		filled += stats->n_classes == 0 || sum > 0;
	}
	if (!(square > mean) || n <= groups)
		return false;
	degrees = filled > 1 ? filled - 1 : 1;
	adjusted = 1 - (1 - (between - mean) / (square - mean)) * (n - 1) / (n - groups);
	return adjusted > (1 - adjusted) * BEYOND_CHANCE
		* sqrt(2 * (groups - 1) / ((n - 1) * (n - groups) * degrees));
}

/*
 * Whether the levels of a column say more than chance about the targets, those not told apart as
 * one.
 */
static TnpStatus
labels_matter(const TnpModel *model, const TnpStats *stats, const TnpRows *rows,
			  const TnpColumn *column, const Level *ranked, int64_t told_apart, bool *matter,
			  TnpError *error)
{
	const TnpEnv *env = &model->env;
	int64_t		n_groups = told_apart + 2;	/* with the others, and what is missing */
	int			channels = stats->n_classes > 0 ? stats->n_classes : 1;
	int64_t    *of_level = tnp_alloc(env, column->n_levels, sizeof(int64_t)),
			   *group = tnp_alloc(env, stats->n0, sizeof(int64_t));
	double	   *sums = tnp_alloc_zero(env, n_groups * (1 + channels), sizeof(double));
	TnpStatus	status = TNP_OK;

	if (of_level == NULL || group == NULL || sums == NULL)
		status = tnp_no_memory(error);
	else
	{
		double		square;

		for (int64_t k = 0; k < column->n_levels; k++)
			of_level[ranked[k].place] = k < told_apart ? k : told_apart;
		for (int64_t i = 0; i < stats->n0; i++)
		{
			double		x = rows->x[i * rows->n_features + column->feature];

			group[i] = isnan(x) ? told_apart + 1 : of_level[tnp_find_level(column, x)];
		}
		square = sum_groups(model, stats, rows, group, channels, sums);
		*matter = groups_differ(stats, sums, n_groups, channels, square);
	}
	tnp_free(env, of_level);
	tnp_free(env, group);
	tnp_free(env, sums);
	return status;
}

/* How many parts tell so many labels apart, or as many as there may be. */
static int64_t
most_parts(const TnpModel *model, int64_t told_apart)
{
	int64_t		parts = (told_apart + TNP_OWN_LABELS - 1) / TNP_OWN_LABELS;

	return parts < model->config.encode_x.split ? parts : model->config.encode_x.split;
}

/* Which part of a feature's labels a column is: a number's come after the number itself. */
static int
part_of_labels(const TnpColumn *column)
{
	return column->part - column->of_number;
}

/* How many parts the feature of a column has: one where all levels have a bin, or say nothing. */
static TnpStatus
count_parts(const TnpModel *model, const TnpStats *stats, const TnpRows *rows, const Level *ranked,
			TnpColumn *column, TnpError *error)
{
	int64_t		n = column->n_levels,
				told_apart = n > TNP_OWN_LABELS + 1 ? count_told_apart(ranked, n) : 0,
				parts = most_parts(model, told_apart);
	bool		matter = false;
	TnpStatus	status = TNP_OK;

	if (parts > 1)
		status = labels_matter(model, stats, rows, column, ranked, told_apart, &matter, error);
	column->n_parts = matter ? (int) parts : 1;
	return status;
}

/*
 * The column's bins: the part's own levels have one each, in their order, and all others share the
 * next. Returns how many are its own.
 */
static int
set_bins(const Level *ranked, TnpColumn *column)
{
	int64_t		n = column->n_levels,
				first = (int64_t) part_of_labels(column) * TNP_OWN_LABELS,
				end = first == 0 ? n : count_told_apart(ranked, n),
				own = end - first < TNP_OWN_LABELS ? end - first : TNP_OWN_LABELS;

	for (int64_t k = 0; k < n; k++)
		column->level_bin[ranked[k].place] =
			(unsigned char) (k >= first && k < first + own ? k - first : own);
	return (int) own;
}

/*
 * Codes by the targets: the rank of a level's bin by the mean target in it, shrunk, of equal ones
 * the lower bin first. In steps, so that rounding does not decide.
 */
static void
set_codes_by_targets(const TnpModel *model, const TnpStats *stats, const TnpRows *rows,
					 TnpColumn *column)
{
	double		count[TNP_MISSING_BIN] = {0},
				sum[TNP_MISSING_BIN] = {0};

	for (int64_t i = 0; i < stats->n0; i++)
	{
		int			bin = tnp_column_bin(column, rows->x[i * rows->n_features + column->feature]);

		if (bin == TNP_MISSING_BIN)
			continue;
		count[bin]++;
		sum[bin] += tnp_compared_target(model, stats, rows->y[i]);
	}
	for (int b = 0; b < TNP_MISSING_BIN; b++)
		sum[b] = rint(CODE_STEPS * sum[b] / (count[b] + CODE_SHRINKAGE));
	column->by_bin = true;
	for (int b = 0; b < TNP_MISSING_BIN; b++)
		for (int other = 0; other < TNP_MISSING_BIN; other++)
			if (count[other] > 0 && (sum[other] < sum[b] || (sum[other] == sum[b] && other < b)))
				column->bin_code[b]++;
}

/* Codes of a part by identity: the rank of its own levels; the others come after them. */
static void
set_codes_of_part(const Level *ranked, int own, TnpColumn *column)
{
	const Level *level = ranked + (int64_t) part_of_labels(column) * TNP_OWN_LABELS;

	column->by_bin = true;
	column->bin_code[own] = (unsigned char) own;
	for (int b = 0; b < own; b++)
		for (int other = 0; other < own; other++)
			column->bin_code[b] += level[other].place < level[b].place;
}

/* Bins and codes of the column, whose levels are known; it becomes the part that it says it is. */
static TnpStatus
set_part(const TnpModel *model, const TnpStats *stats, const TnpRows *rows, TnpColumn *column,
		 TnpError *error)
{
	const TnpEncoderConfig *c = &model->config.encode_x;
	Level	   *ranked = tnp_alloc(&model->env, column->n_levels, sizeof(Level));
	TnpStatus	status = TNP_OK;

	column->level_bin = tnp_alloc(&model->env, column->n_levels, 1);
	if (ranked == NULL || column->level_bin == NULL)
	{
		tnp_free(&model->env, ranked);
		return tnp_no_memory(error);
	}
	rank_levels(model, stats, rows, column, ranked);
	if (column->part == 0)
		status = count_parts(model, stats, rows, ranked, column, error);
	if (status == TNP_OK)
	{
		int			own = set_bins(ranked, column);

		if (c->codes_by_targets)
			set_codes_by_targets(model, stats, rows, column);
		else if (column->n_parts > 1 + column->of_number)
			set_codes_of_part(ranked, own, column);
	}
	tnp_free(&model->env, ranked);
	return status;
}

/* The column's levels from m sorted identities; false when memory ran out. */
static bool
find_levels(const TnpModel *model, const double *sorted, int64_t m, TnpColumn *column)
{
	int64_t		n = 0;

	for (int64_t i = 0; i < m; i++)
		n += i == 0 || sorted[i] != sorted[i - 1];
	column->levels = tnp_alloc(&model->env, n, sizeof(double));
	for (int64_t i = 0; column->levels != NULL && i < m; i++)
		if (i == 0 || sorted[i] != sorted[i - 1])
			column->levels[column->n_levels++] = sorted[i];
	return column->levels != NULL;
}

TnpStatus
tnp_levels_build(const TnpModel *model, const TnpStats *stats, const TnpRows *rows,
				 const double *sorted, int64_t m, TnpColumn *column, TnpError *error)
{
	if (!find_levels(model, sorted, m, column))
		return tnp_no_memory(error);
	return set_part(model, stats, rows, column, error);
}

TnpStatus
tnp_levels_of_number(const TnpModel *model, const TnpStats *stats, const TnpRows *rows,
					 const double *sorted, int64_t m, TnpColumn *column, TnpError *error)
{
	Level	   *ranked;
	int64_t		parts = 1;

	if (!find_levels(model, sorted, m, column))
		return tnp_no_memory(error);
	ranked = tnp_alloc(&model->env, column->n_levels, sizeof(Level));
	if (ranked == NULL)
		return tnp_no_memory(error);
	rank_levels(model, stats, rows, column, ranked);
	if (column->n_levels > TNP_OWN_LABELS + 1)
		parts = most_parts(model, count_told_apart(ranked, column->n_levels));
	column->n_parts = 1 + (parts > 1 ? (int) parts : 1);
	tnp_free(&model->env, ranked);
	return TNP_OK;
}

TnpStatus
tnp_levels_part(const TnpModel *model, const TnpStats *stats, const TnpRows *rows,
				const TnpColumn *first, int part, TnpColumn *column, TnpError *error)
{
	*column = (TnpColumn) {
		.kind = TNP_CATEGORICAL,
		.feature = first->feature,
		.part = part,
		.n_parts = first->n_parts,
		.of_number = first->kind == TNP_NUMERIC,
		.reach = first->reach,
		.n_levels = first->n_levels,
		.levels = first->levels,
		.missing_rate = first->missing_rate,
	};
	return set_part(model, stats, rows, column, error);
}

void
tnp_levels_free(const TnpEnv *env, TnpColumn *column)
{
	if (column->part == 0)
		tnp_free(env, column->levels);
	tnp_free(env, column->level_bin);
}

size_t
tnp_levels_bytes(const TnpColumn *column)
{
	return (size_t) column->n_levels * (column->part == 0 ? sizeof(double) + 1 : 1);
}
