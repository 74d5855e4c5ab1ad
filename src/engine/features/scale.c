/*
 * scale.c: scaling of features and targets, and the cells of the row tokeniser
 * (docs/model-format.md sections 3, 5). The statistics themselves are made in stats.c.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/scale.h"

#include <float.h>
#include <math.h>

#include "engine/features/class_counts.h"
#include "engine/features/logistic.h"
#include "engine/features/process.h"
#include "engine/features/ridge.h"
#include "engine/features/column.h"

/* Refuse one cell that the model has no meaning for. */
static TnpStatus
check_cell(const TnpModel *model, const TnpRows *rows, int column, double value, TnpError *error)
{
	bool		category = rows->kinds != NULL && rows->kinds[column] == TNP_CATEGORICAL;

	if (isinf(value))
		return tnp_fail(error, TNP_BAD_VALUE, "feature %d is infinite", column + 1);
	if (isnan(value) && !model->info.takes_missing)
		return tnp_fail(error, TNP_BAD_VALUE,
						"feature %d is missing, and this model takes no missing values",
						column + 1);
	if (category && !isnan(value)
		&& !(value >= 0 && value < 9007199254740992.0 && value == floor(value)))
		return tnp_fail(error, TNP_BAD_VALUE, "feature %d is not a category identity", column + 1);
	return TNP_OK;
}

/* Name row i of these in the error's detail, where a user can count them. */
static void
detail_row(const TnpRows *rows, int64_t i, TnpError *error)
{
	if (rows->before != TNP_UNNUMBERED)
		tnp_detail(error, "row %lld", (long long) (rows->before + i + 1));
}

TnpStatus
tnp_rows_check(const TnpModel *model, const TnpRows *rows, bool need_y, TnpError *error)
{
	const TnpConfig *c = &model->config;
	int			targets = c->n_targets;

	if (rows->n < 0 || rows->n > INT32_MAX / 2 / targets)
		return tnp_fail(error, TNP_BAD_ARGUMENT, "the number of rows is out of range");
	if (c->n_features > 0 ? rows->n_features != c->n_features : rows->n_features < 1
		|| rows->n_features > 65535)
	{
		tnp_fail(error, TNP_BAD_SHAPE, "the model takes %d feature column%s, not %d",
				 c->n_features > 0 ? c->n_features : 1, c->n_features > 0
				 ? (c->n_features == 1 ? "" : "s") : " or more", rows->n_features);
		return TNP_BAD_SHAPE;
	}
	if (c->embedder == TNP_SET && rows->n_features > c->max_features)
		return tnp_fail(error, TNP_BAD_SHAPE, "the model takes at most %d feature columns, not %d",
						c->max_features, rows->n_features);
	if (need_y && rows->y == NULL && rows->n > 0)
		return tnp_fail(error, TNP_BAD_ARGUMENT, "rows of a context need targets");
	if (need_y && tnp_rows_targets(rows) != targets)
		return tnp_fail(error, TNP_BAD_SHAPE, "the model takes %d target%s per row, not %d",
						targets, targets == 1 ? "" : "s", tnp_rows_targets(rows));
	if (tnp_classes(model) > 0 && (rows->n_classes < 0 || rows->n_classes > tnp_classes(model)))
	{
		tnp_fail(error, TNP_BAD_VALUE, "more classes than the model has room for");
		tnp_detail(error, "%d classes, room for %d", rows->n_classes, tnp_classes(model));
		return TNP_BAD_VALUE;
	}
	if (rows->kinds != NULL && !model->info.takes_categories)
		for (int f = 0; f < rows->n_features; f++)
			if (rows->kinds[f] == TNP_CATEGORICAL)
				return tnp_fail(error, TNP_BAD_VALUE,
								"feature %d is categorical, and this model takes numbers only",
								f + 1);
	for (int64_t i = 0; i < rows->n; i++)
	{
		for (int f = 0; f < rows->n_features; f++)
		{
			TnpStatus	status = check_cell(model, rows, f, rows->x[i * rows->n_features + f],
											error);

			if (status != TNP_OK)
			{
				detail_row(rows, i, error);
				return status;
			}
		}
		if (need_y && tnp_classes(model) > 0)
		{
			TnpStatus	status = tnp_class_check(rows->y[i], rows->n_classes > 0 ? rows->n_classes
												 : tnp_classes(model), rows->before + i, error);

			if (status != TNP_OK)
				return status;
		}
		for (int t = 0; need_y && t < targets; t++)
		{
			double		y = rows->y[i * targets + t];

			if (isfinite(y))
				continue;
			tnp_fail(error, TNP_BAD_VALUE, "a target is %s", isnan(y) ? "NaN" : "infinite");
			detail_row(rows, i, error);
			return TNP_BAD_VALUE;
		}
	}
	return TNP_OK;
}

float
tnp_scale_target(const TnpModel *model, const TnpStats *stats, double y)
{
	return (float) tnp_clipped_target(model, stats, y);
}

bool
tnp_scale_targets(const TnpModel *model, const TnpStats *stats, const double *y, float *out)
{
	for (int t = 0; t < model->config.n_targets; t++)
		out[t] = (float) tnp_clipped_value(model, stats, t, y[t]);
	return tnp_all_finite(model->config.n_targets, out);
}

int
tnp_features_width(const TnpModel *model, const TnpStats *stats)
{
	if (!tnp_fills_slots(model))
		return model->config.max_features;
	return tnp_regression_features_width(model) + stats->n_slots * tnp_cell_width(model);
}

/* The eight numbers of one cell (section 5). */
static void
write_cell(const TnpModel *model, const TnpStats *stats, const TnpColumn *column, double x,
		   double y, float *cell)
{
	double		value = tnp_column_value(column, x);
	int			bin = tnp_column_bin(column, x);
	double		sum = column->sum[bin],
				count = column->count[bin];

	/* leave-one-out: the row's own target must not reach it through its bin */
	if (isnan(y))
		sum /= count + 1.5;
	else
		sum = (sum - tnp_clipped_target(model, stats, y)) / (count + 0.5);
	cell[0] = isnan(value) ? 0 : (float) tnp_column_scale(model, column, value);
	cell[1] = isnan(value) ? 1 : 0;
	cell[2] = column->kind == TNP_CATEGORICAL ? 1 : 0;
	cell[3] = (float) sum;
	cell[4] = (float) (log1p((double) stats->n0) / 8);
	cell[5] = (float) column->correlation;
	cell[6] = (float) column->between;
	cell[7] = (float) column->missing_rate;
}

double
tnp_scale_feature(const TnpModel *model, const TnpStats *stats, int column, double x)
{
	const TnpConfig *c = &model->config;

	if (c->input_scaling == TNP_SCALE_PREFIX)
		return tnp_column_scale(model, &stats->columns[column], x);
	if (c->input_scaling == TNP_SCALE_FIXED)
		return tnp_soft_clip((x - c->input_center[column]) / c->input_scale[column],
							 c->input_clip);
	return tnp_soft_clip(x, c->input_clip);
}

/* Scaled cells of a row of a whole table, 0 where missing, and zeros up to the most columns. */
static void
write_table_row(const TnpModel *model, const TnpStats *stats, const double *x, float *out)
{
	for (int f = 0; f < model->config.max_features; f++)
	{
		double		value = f < stats->n_columns ? tnp_column_value(&stats->columns[f], x[f]) : NAN;

		out[f] = isnan(value) ? 0 : (float) tnp_column_scale(model, &stats->columns[f], value);
	}
}

/* The features of one row, without those of a process. */
static void
write_row(const TnpModel *model, const TnpStats *stats, const TnpRows *rows, int64_t row,
		  bool in_context, float *out)
{
	const TnpConfig *c = &model->config;
	const double *x = rows->x + row * rows->n_features;
	bool		own = in_context && row < stats->n0;
	double		y = !own ? NAN : stats->orders_classes ? stats->class_place[(int) rows->y[row]]
		: rows->y[row];

	if (tnp_fills_slots(model))
	{
		if (c->encode_x.ridge)
			tnp_ridge_features(model, stats, x, y, out);
		if (c->encode_x.logistic)
			tnp_logistic_features(model, stats, x, own ? row : -1, out + tnp_ridge_width(model));
		out += tnp_regression_features_width(model);
		for (int s = 0; s < stats->n_slots; s++)
		{
			double		cell = tnp_slot_cell(stats, s, x);

			if (tnp_classes(model) > 0)
				tnp_class_cell(model, stats, stats->slot[s], cell, y,
							   out + s * tnp_cell_width(model));
			else
				write_cell(model, stats, tnp_slot_column(stats, s), cell, y, out + s * TNP_CELL);
		}
		return;
	}
	if (c->embedder == TNP_SET)
	{
		write_table_row(model, stats, x, out);
		return;
	}
	for (int f = 0; f < c->n_features; f++)
		out[f] = (float) tnp_scale_feature(model, stats, f, x[f]);
}

void
tnp_scale_features(const TnpModel *model, const TnpStats *stats, const TnpRows *rows, int64_t first,
				   int n, bool in_context, float *out)
{
	int			width = tnp_features_width(model, stats);

	for (int r = 0; r < n; r++)
		write_row(model, stats, rows, first + r, in_context, out + (size_t) r * width);
	if (tnp_fills_slots(model) && model->config.encode_x.process)
		tnp_process_features(model, stats, rows, first, n, in_context, out + tnp_ridge_width(model),
							 width);
}

bool
tnp_all_finite(size_t n, const float *x)
{
	float		beyond[8] = {0};	/* NaN where a number is not finite */
	size_t		i = 0;

	for (; i + 8 <= n; i += 8)
		for (int j = 0; j < 8; j++)
			beyond[j] += x[i + j] * 0;
	for (; i < n; i++)
		beyond[0] += x[i] * 0;
	for (int j = 1; j < 8; j++)
		beyond[0] += beyond[j];
	return beyond[0] == 0;
}

/* The size of a feature; what is not finite is the largest. */
static float
feature_size(float x)
{
	return isnan(x) ? INFINITY : fabsf(x);
}

TnpStatus
tnp_feature_too_large(const TnpModel *model, const TnpStats *stats, const TnpRows *rows,
					  int64_t row, const float *features, TnpError *error)
{
	bool		cells = tnp_fills_slots(model);
	int			n = cells ? stats->n_slots : model->config.max_features,
				step = cells ? tnp_cell_width(model) : 1,
				most = 0;

	if (cells)
		features += tnp_regression_features_width(model);
	for (int i = 1; i < n; i++)
		if (feature_size(features[i * step]) > feature_size(features[most * step]))
			most = i;
	if (n > 0)
		tnp_fail(error, TNP_BAD_VALUE, "feature %d is too large for the model",
				 (cells ? tnp_slot_column(stats, most)->feature : most) + 1);
	else
		tnp_fail(error, TNP_BAD_VALUE, "a feature is too large for the model");
	detail_row(rows, row, error);
	return TNP_BAD_VALUE;
}
