/*
 * class_counts.c: targets that are classes: their check, and the column cards and cells of the row
 * tokeniser (docs/model-format.md sections 3 and 5).
 *
 * Where a regression model's cell has one mean of the target in its bin, a classifier's has one
 * share for every class.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/class_counts.h"

#include <math.h>
#include <string.h>

#include "engine/features/column.h"

TnpStatus
tnp_class_check(double y, int classes, int64_t row, TnpError *error)
{
	if (y >= 0 && y < classes && y == floor(y))
		return TNP_OK;
	tnp_fail(error, TNP_BAD_VALUE, "a target is not the index of a class");
	tnp_detail(error, "row %lld has %g, the classes are 0 to %d", (long long) row + 1, y,
			   classes - 1);
	return TNP_BAD_VALUE;
}

/*
 * Doubles in the one block of memory: shares, then the excesses of every column. C is the model's.
 */
static size_t
block_size(int n_columns, int classes)
{
	return (size_t) classes * (1 + (size_t) n_columns * TNP_BINS);
}

TnpStatus
tnp_class_stats_make(const TnpModel *model, const TnpRows *rows, TnpStats *stats, TnpError *error)
{
	int			classes = tnp_classes(model);

	stats->class_room = classes;
	stats->class_blend_weight = tnp_alloc_zero(&model->env, block_size(stats->n_columns, classes),
											   sizeof(double));
	if (stats->class_blend_weight == NULL)
		return tnp_no_memory(error);
	stats->class_excess = stats->class_blend_weight + classes;
	for (int64_t i = 0; i < stats->n0; i++)
		stats->class_blend_weight[(int) rows->y[i]]++;
	for (int c = 0; c < classes && stats->n0 > 0; c++)
		stats->class_blend_weight[c] /= stats->n0;
	return TNP_OK;
}

bool
tnp_class_stats_copy(const TnpEnv *env, const TnpStats *from, TnpStats *to)
{
	size_t		n = block_size(from->n_columns, from->class_room);

	to->class_blend_weight = to->class_excess = NULL;
	if (from->class_blend_weight == NULL)
		return true;
	to->class_blend_weight = tnp_alloc(env, n, sizeof(double));
	if (to->class_blend_weight == NULL)
		return false;
	memcpy(to->class_blend_weight, from->class_blend_weight, n * sizeof(double));
	to->class_excess = to->class_blend_weight + from->class_room;
	return true;
}

void
tnp_class_log_shares(const TnpStats *stats, double *out)
{
	for (int c = 0; c < stats->n_classes; c++)
		out[c] = log((stats->class_blend_weight[c] * stats->n0 + 0.5) /
					 (stats->n0 + 0.5 * stats->n_classes));
}

double
tnp_log_sum(int n, const double *z)
{
	double		most = z[0],
				sum = 0;

	for (int c = 1; c < n; c++)
		most = fmax(most, z[c]);
	for (int c = 0; c < n; c++)
		sum += exp(z[c] - most);
	return most + log(sum);
}

size_t
tnp_class_stats_bytes(const TnpStats *stats)
{
	return stats->class_blend_weight == NULL ? 0
		: block_size(stats->n_columns, stats->class_room) * sizeof(double);
}

/* Excesses of the classes in one bin of a column, [C]. */
static double *
bin_excess(const TnpStats *stats, int f, int bin)
{
	return stats->class_excess + ((size_t) f * TNP_BINS + bin) * stats->class_room;
}

/* A share of variance that lies between groups of n values. */
typedef struct Share
{
	double		share;
	int64_t		n;
	int			groups;
} Share;

/* 1 - (1 - share) (n - 1) / (n - groups), at least 0; 0 where every group may be a single row. */
static double
adjusted(const Share *s)
{
	return s->n <= s->groups ? 0
		: fmax(0, 1 - (1 - s->share) * (double) (s->n - 1) / (double) (s->n - s->groups));
}

/* Goodman and Kruskal's tau between bins and classes. */
static Share
between_share(const TnpStats *stats, int f)
{
	const TnpColumn *column = &stats->columns[f];
	Share		found = {0, stats->n0, 0};
	double		inside = 0,
				total = 1;

	for (int c = 0; c < stats->class_room; c++)
		total -= stats->class_blend_weight[c] * stats->class_blend_weight[c];
	for (int b = 0; b < TNP_BINS; b++)
	{
		const double *excess = bin_excess(stats, f, b);

		if (column->count[b] == 0)
			continue;
		found.groups++;
		for (int c = 0; c < stats->class_room; c++)
			inside += excess[c] * excess[c] / column->count[b];
	}
	/* one class alone: nothing to explain, up to the rounding of its share */
	if (total > 1e-9)
		found.share = inside / (total * stats->n0);
	return found;
}

/* The share of the variance of z that lies between the classes; work [2, C]. */
static Share
correlation_ratio(const TnpModel *model, const TnpStats *stats, const TnpRows *rows, int f,
				  double *work)
{
	const TnpColumn *column = &stats->columns[f];
	int			room = stats->class_room;
	Share		found = {0, 0, 0};
	double	   *members = work,
			   *sums = work + room;
	double		mean = 0,
				total = 0,
				between = 0;

	memset(work, 0, 2 * room * sizeof(double));
	for (int pass = 0; pass < 2; pass++)
	{
		for (int64_t i = 0; i < stats->n0; i++)
		{
			double		value = tnp_column_value(column, rows->x[i * rows->n_features
														   + column->feature]),
						z;
			int			c = (int) rows->y[i];

			if (isnan(value))
				continue;
			z = tnp_column_scale(model, column, value);
			if (pass == 0)
			{
				mean += z;
				found.n++;
				continue;
			}
			members[c]++;
			sums[c] += z - mean;
			total += (z - mean) * (z - mean);
		}
		if (pass == 0 && found.n > 0)
			mean /= found.n;
	}
	for (int c = 0; c < room; c++)
		if (members[c] > 0)
		{
			between += sums[c] * sums[c] / members[c];
			found.groups++;
		}
	if (total > 0)
		found.share = fmin(1, between / total);
	return found;
}

TnpStatus
tnp_class_card(const TnpModel *model, TnpStats *stats, const TnpRows *rows, int f, TnpError *error)
{
	TnpColumn  *column = &stats->columns[f];
	double	   *work = tnp_alloc(&model->env, 2 * (size_t) stats->class_room, sizeof(double));
	Share		bins,
				classes;

	if (work == NULL)
		return tnp_no_memory(error);
	for (int64_t i = 0; i < stats->n0; i++)
	{
		int			bin = tnp_column_bin(column, rows->x[i * rows->n_features + column->feature]);

		column->count[bin]++;
		bin_excess(stats, f, bin)[(int) rows->y[i]]++;
	}
	for (int b = 0; b < TNP_BINS; b++)
		for (int c = 0; c < stats->class_room; c++)
			bin_excess(stats, f, b)[c] -= column->count[b] * stats->class_blend_weight[c];
	bins = between_share(stats, f);
	classes = correlation_ratio(model, stats, rows, f, work);
	column->between = adjusted(&bins);
	column->correlation = sqrt(adjusted(&classes));
	column->unadjusted = bins.share + classes.share;
	tnp_free(&model->env, work);
	return TNP_OK;
}

void
tnp_class_cell(const TnpModel *model, const TnpStats *stats, int f, double x, double y, float *cell)
{
	const TnpColumn *column = &stats->columns[f];
	double		value = tnp_column_value(column, x);
	int			bin = tnp_column_bin(column, x);
	const double *excess = bin_excess(stats, f, bin);
	bool		counted = !isnan(y);

	cell[0] = isnan(value) ? 0 : (float) tnp_column_scale(model, column, value);
	cell[1] = isnan(value) ? 1 : 0;
	cell[2] = column->kind == TNP_CATEGORICAL ? 1 : 0;
	cell[3] = (float) ((double) stats->n_classes / stats->class_room);
	cell[4] = (float) (log1p((double) stats->n0) / 8);
	cell[5] = (float) column->correlation;
	cell[6] = (float) column->between;
	cell[7] = (float) column->missing_rate;
	for (int c = 0; c < stats->class_room; c++)
	{
		/* leave-one-out: the row's own class must not reach it through its bin */
		double		own = counted ? (y == c) - stats->class_blend_weight[c] : 0;

		cell[TNP_CELL + c] =
			(float) ((excess[c] - own) / (column->count[bin] + (counted ? 0.5 : 1.5)));
	}
}
