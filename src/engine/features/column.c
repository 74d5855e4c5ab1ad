/*
 * column.c: scaling, bins and relevance of one column (docs/model-format.md sections 3 and 5).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/column.h"

#include <math.h>

#include "engine/features/far.h"
#include "engine/features/power_column.h"

#define RELEVANCE_STEPS 1048576.0	/* steps in which the relevance of columns is compared */

double
tnp_soft_clip(double z, double knee)
{
	if (knee <= 0 || fabs(z) <= knee)
		return z;
	return copysign(knee + log1p(fabs(z) - knee), z);
}

int64_t
tnp_find_level(const TnpColumn *column, double identity)
{
	int64_t		low = 0,
				high = column->n_levels;

	while (low < high)
	{
		int64_t		middle = low + (high - low) / 2;

		if (column->levels[middle] < identity)
			low = middle + 1;
		else
			high = middle;
	}
	return low < column->n_levels && column->levels[low] == identity ? low : -1;
}

bool
tnp_column_lacks(const TnpColumn *column, double x)
{
	return isnan(x) || tnp_is_far(&column->reach, x);
}

double
tnp_column_value(const TnpColumn *column, double x)
{
	if (tnp_column_lacks(column, x))
		return NAN;
	if (column->kind == TNP_CATEGORICAL)
	{
		int64_t		level = tnp_find_level(column, x);

		if (level < 0)
			return NAN;
		return column->by_bin ? column->bin_code[column->level_bin[level]] : (double) level;
	}
	return column->turned ? 0 - x : x;
}

int
tnp_column_bin(const TnpColumn *column, double x)
{
	int			bin = 0;

	if (tnp_column_lacks(column, x))
		return TNP_MISSING_BIN;
	if (column->kind == TNP_CATEGORICAL)
	{
		int64_t		level = tnp_find_level(column, x);

		return level < 0 ? TNP_MISSING_BIN : column->level_bin[level];
	}
	x = tnp_column_value(column, x);
	while (bin < TNP_EDGES && x > column->edges[bin])
		bin++;
	return bin;
}

double
tnp_column_standardise(const TnpColumn *column, double value)
{
	double		z = (value - column->mean) / column->sd;

	/* the difference alone may have no room */
	return isfinite(z) ? z : value / column->sd - column->mean / column->sd;
}

double
tnp_column_scale(const TnpModel *model, const TnpColumn *column, double value)
{
	if (column->constant)
		return 0;
	if (model->config.input_scaling == TNP_SCALE_POWER)
		return tnp_soft_clip(tnp_power_column_scale(column, value), model->config.input_clip);
	return tnp_soft_clip(tnp_column_standardise(column, value), model->config.input_clip);
}

/* A target in the network's units, not clipped. */
static double
standard_target(const TnpStats *stats, int target, double y)
{
	return stats->orders_classes ? stats->class_place[(int) y]
		: (tnp_bounded_target(&stats->y_bound, y) - tnp_target_center(stats, target))
		/ tnp_target_scale(stats, target);
}

double
tnp_clipped_value(const TnpModel *model, const TnpStats *stats, int target, double y)
{
	return tnp_soft_clip(standard_target(stats, target, y), model->config.target_clip);
}

double
tnp_scaled_target(const TnpStats *stats, double y)
{
	return standard_target(stats, 0, y);
}

double
tnp_clipped_target(const TnpModel *model, const TnpStats *stats, double y)
{
	return tnp_clipped_value(model, stats, 0, y);
}

double
tnp_compared_target(const TnpModel *model, const TnpStats *stats, double y)
{
	return stats->n_classes > 0 ? -y : tnp_clipped_target(model, stats, y);
}

double
tnp_column_relevance(const TnpColumn *column)
{
	/* a column and a decreasing function of it, for one, are equal */
	return rint(fmax(column->between, column->correlation * column->correlation) *
				RELEVANCE_STEPS) / RELEVANCE_STEPS;
}

double
tnp_column_tie(const TnpColumn *column)
{
	return rint(column->unadjusted * RELEVANCE_STEPS);
}

bool
tnp_all_equal(const double *v, int64_t n, int stride)
{
	for (int64_t i = 1; i < n; i++)
		if (v[i * stride] != v[0])
			return false;
	return true;
}
