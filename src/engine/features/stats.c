/*
 * stats.c: statistics of the prefix: centre and scale of every column and target, bins and
 * column cards of the row tokeniser (docs/model-format.md sections 3 and 5). All in double
 * precision, each a function of the prefix rows and their order alone.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/stats.h"

#include "engine/features/class_counts.h"
#include "engine/features/class_order.h"
#include "engine/features/class_process.h"
#include "engine/distribution/distribution.h"
#include "engine/features/column.h"
#include "engine/features/donors.h"
#include "engine/features/shift.h"
#include "engine/features/far.h"
#include "engine/features/levels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/compare.h"
#include "engine/base/mean_sd.h"
#include "engine/features/logistic.h"
#include "engine/features/named.h"
#include "engine/features/orient.h"
#include "engine/features/power_column.h"
#include "engine/features/process.h"
#include "engine/features/rare.h"
#include "engine/features/record.h"
#include "engine/features/ridge.h"
#include "engine/features/row_digest.h"
#include "engine/features/target_levels.h"
#include "engine/features/trees.h"
#include "engine/features/wanted_mean.h"

#define SMALLEST_SCALE 1e-100	/* of targets */
#define LEAST_SCALE 1e-11		/* of targets, to their mean: rounding is far below it */
#define ALL_SLOTS_AHEAD 0.1		/* in nats a row left out, and this over their number */
#define ALL_TOGETHER 12.0

/* Edges of a numeric column from its m sorted non-missing values. */
static void
build_edges(const double *sorted, int64_t m, TnpColumn *column)
{
	for (int j = 1; j <= TNP_EDGES; j++)
	{
		double		h = (double) (m - 1) * j / (TNP_EDGES + 1);
		int64_t		low = m > 0 ? (int64_t) floor(h) : 0,
					high = low + 1 < m ? low + 1 : low;

		column->edges[j - 1] = m > 0 ? sorted[low] + (sorted[high] - sorted[low]) * (h - low) : 0;
		/* the difference may have no room */
		if (!isfinite(column->edges[j - 1]))
			column->edges[j - 1] = sorted[low] * (1 - (h - low)) + sorted[high] * (h - low);
	}
}

/* From now on the column's numbers are their negatives, those of its m values in work, too. */
static void
turn_column(TnpColumn *column, int64_t m, double *work)
{
	column->turned = true;
	column->mean = 0 - column->mean;
	for (int64_t i = 0; i < m; i++)
		work[i] = 0 - work[i];
}

/*
 * Centre and scale of a column, whose m values are then in work [n0]. In row order, so that they do
 * not depend on a sort.
 */
static TnpStatus
measure_column(const TnpStats *stats, const TnpRows *rows, double *work, int64_t *m,
			   TnpColumn *column, TnpError *error)
{
	*m = 0;
	column->constant = true;
	for (int64_t i = 0; i < stats->n0; i++)
	{
		double		value = tnp_column_value(column, rows->x[i * rows->n_features
														   + column->feature]);

		if (isnan(value))
			continue;
		work[(*m)++] = value;
		if (value != work[0])
			column->constant = false;
	}
	tnp_mean_and_sd(work, *m, 1, &column->mean, &column->sd);
	if (column->sd == 0)
		column->constant = true;
	if (!isfinite(column->mean) || !isfinite(column->sd))
		return tnp_fail(error, TNP_BAD_VALUE, "the values of feature %d are too large to be scaled",
						column->feature + 1);
	return TNP_OK;
}

/* Centre, scale, levels and edges of one feature's column; work [n0]. */
static TnpStatus
build_column(const TnpModel *model, const TnpStats *stats, const TnpRows *rows, int f, double *work,
			 TnpColumn *column, TnpError *error)
{
	int64_t		n0 = stats->n0;
	bool		cards = model->info.takes_missing;
	int64_t		m = 0;
	TnpStatus	status = TNP_OK;

	memset(column, 0, sizeof(*column));
	column->kind = rows->kinds != NULL ? rows->kinds[f] : TNP_NUMERIC;
	column->feature = f;
	column->n_parts = 1;
	for (int64_t i = 0; i < n0; i++)
	{
		double		x = rows->x[i * rows->n_features + f];

		if (!isnan(x))
			work[m++] = x;
	}
	if (model->config.far_cells > 0 && column->kind == TNP_NUMERIC)
	{
		qsort(work, m, sizeof(double), tnp_compare_doubles);
		m = tnp_cells_bind(work, m, model->config.far_cells, &column->reach);
	}
	column->missing_rate = n0 > 0 ? (double) (n0 - m) / n0 : 0;
	if (cards && column->kind == TNP_CATEGORICAL)
	{
		qsort(work, m, sizeof(double), tnp_compare_doubles);
		status = tnp_levels_build(model, stats, rows, work, m, column, error);
	}
	if (status == TNP_OK)
		status = measure_column(stats, rows, work, &m, column, error);
	if (status != TNP_OK)
		return status;
	if (model->config.input_scaling == TNP_SCALE_POWER)
		tnp_power_column_fit(column, m, work);
	if (model->config.encode_x.orient && column->kind == TNP_NUMERIC
		&& tnp_column_turns(model, stats, rows, f, column))
		turn_column(column, m, work);
	if (cards && column->kind == TNP_NUMERIC)
	{
		qsort(work, m, sizeof(double), tnp_compare_doubles);
		build_edges(work, m, column);
	}
	return TNP_OK;
}

/* The labels of a numeric column whose cells name groups; work [n0]. */
static TnpStatus
label_column(const TnpModel *model, const TnpStats *stats, const TnpRows *rows, double *work,
			 TnpColumn *column, TnpError *error)
{
	int64_t		m = 0;

	for (int64_t i = 0; i < stats->n0; i++)
	{
		double		x = rows->x[i * rows->n_features + column->feature];

		if (!tnp_column_lacks(column, x))
			work[m++] = x;
	}
	qsort(work, m, sizeof(double), tnp_compare_doubles);
	return tnp_levels_of_number(model, stats, rows, work, m, column, error);
}

/*
 * The parts of split features, but for the first ones, behind the columns, and labels of numbers
 * that are named, if that is not NULL; work [n0].
 */
static TnpStatus
build_parts(const TnpModel *model, const TnpRows *rows, const bool *named, double *work,
			TnpStats *stats, TnpError *error)
{
	int			n = stats->n_columns,
				all = n;
	int64_t		m;
	TnpColumn  *columns;
	TnpStatus	status = TNP_OK;

	for (int f = 0; status == TNP_OK && f < n; f++)
	{
		if (named != NULL && named[f])
			status = label_column(model, stats, rows, work, &stats->columns[f], error);
		all += stats->columns[f].n_parts - 1;
	}
	if (status != TNP_OK)
		return status;
	if (all == n)
		return TNP_OK;
	columns = tnp_alloc_zero(&model->env, all, sizeof(TnpColumn));
	if (columns == NULL)
		return tnp_no_memory(error);
	memcpy(columns, stats->columns, n * sizeof(TnpColumn));
	tnp_free(&model->env, stats->columns);
	stats->columns = columns;
	for (int f = 0; f < n; f++)
		for (int part = 1; status == TNP_OK && part < columns[f].n_parts; part++)
		{
			TnpColumn  *column = &columns[stats->n_columns++];

			if (tnp_interrupted(&model->env))
				status = tnp_fail(error, TNP_INTERRUPTED, "interrupted");
			else
				status = tnp_levels_part(model, stats, rows, &columns[f], part, column, error);
			if (status == TNP_OK)
				status = measure_column(stats, rows, work, &m, column, error);
		}
	return status;
}

/* Bin sums, correlation and between-bin share of one column; needs the target's scale. */
static void
build_card(const TnpModel *model, const TnpStats *stats, const TnpRows *rows, TnpColumn *column)
{
	int64_t		n0 = stats->n0;
	double		mean = 0,
				total = 0,
				between = 0,
				zy = 0,
				zz = 0,
				yy = 0,
				mean_z = 0,
				mean_y = 0;
	int64_t		m = 0;
	int			bins = 0;

	for (int64_t i = 0; i < n0; i++)
	{
		double		x = rows->x[i * rows->n_features + column->feature],
					y = tnp_clipped_target(model, stats, rows->y[i]),
					value = tnp_column_value(column, x);
		int			bin = tnp_column_bin(column, x);

		column->count[bin]++;
		column->sum[bin] += y;
		mean += y / n0;
		if (!isnan(value))
		{
			mean_z += tnp_column_scale(model, column, value);
			mean_y += y;
			m++;
		}
	}
	if (m > 0)
	{
		mean_z /= m;
		mean_y /= m;
	}
	for (int64_t i = 0; i < n0; i++)
	{
		double		y = tnp_clipped_target(model, stats, rows->y[i]),
					value = tnp_column_value(column, rows->x[i * rows->n_features
														   + column->feature]);

		total += (y - mean) * (y - mean);
		if (!isnan(value))
		{
			double		z = tnp_column_scale(model, column, value) - mean_z;

			zy += z * (y - mean_y);
			zz += z * z;
			yy += (y - mean_y) * (y - mean_y);
		}
	}
	for (int b = 0; b < TNP_BINS; b++)
		if (column->count[b] > 0)
		{
			double		difference = column->sum[b] / column->count[b] - mean;

			between += column->count[b] * difference * difference;
			bins++;
		}
	if (zz > 0 && yy > 0)
		column->correlation = fmax(-1, fmin(1, zy / sqrt(zz * yy)));
	column->unadjusted = column->correlation * column->correlation
		+ (total > 0 ? between / total : 0);
	if (n0 > bins && total > 0)
		column->between =
			fmax(0, 1 - (1 - between / total) * (double) (n0 - 1) / (double) (n0 - bins));
}

/* The cards of all columns. */
static TnpStatus
build_cards(const TnpModel *model, const TnpRows *rows, TnpStats *stats, TnpError *error)
{
	bool		classes = tnp_classes(model) > 0;
	TnpStatus	status = classes ? tnp_class_stats_make(model, rows, stats, error) : TNP_OK;

	for (int f = 0; status == TNP_OK && f < stats->n_columns; f++)
	{
		if (tnp_interrupted(&model->env))
			status = tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		else if (classes)
			status = tnp_class_card(model, stats, rows, f, error);
		else
			build_card(model, stats, rows, &stats->columns[f]);
	}
	return status;
}

/* Whether column a comes before column b whatever their places. */
static bool
is_before(const TnpColumn *a, const TnpColumn *b)
{
	double		own = tnp_column_relevance(a),
				other = tnp_column_relevance(b);

	return own != other ? own > other : tnp_column_tie(a) > tnp_column_tie(b);
}

/* Whether a column says nothing: all cells of the prefix are equal, or all are missing. */
static bool
is_flat(const TnpColumn *column)
{
	return column->constant && (column->missing_rate == 0 || column->missing_rate == 1);
}

/*
 * Assign the most relevant columns to slots, those that are equal in their order. Columns that say
 * nothing get none, so that a table with them has the answers of one without, unless there are no
 * others.
 */
static TnpStatus
build_slots(const TnpModel *model, TnpStats *stats, TnpError *error)
{
	int			n = 0;
	int		   *order = tnp_alloc(&model->env, stats->n_columns, sizeof(int));

	if (order == NULL)
		return tnp_no_memory(error);
	for (int f = 0; f < stats->n_columns; f++)
	{
		int			place = n;

		if (tnp_interrupted(&model->env))
		{
			tnp_free(&model->env, order);
			return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		}
		if (is_flat(&stats->columns[f]))
			continue;
		/* insertion keeps equal columns in order; a few dozen columns, as a rule */
		while (place > 0 && is_before(&stats->columns[f], &stats->columns[order[place - 1]]))
		{
			order[place] = order[place - 1];
			place--;
		}
		order[place] = f;
		n++;
	}
	if (n == 0 && stats->n_columns > 0)
		order[n++] = 0;
	stats->slot = order;
	stats->n_slots = n < model->config.max_features ? n : model->config.max_features;
	return TNP_OK;
}

static bool
only_zeros(const TnpRows *rows, int t, int64_t n, int n_targets)
{
	for (int64_t i = 0; i < n; i++)
		if (rows->y[i * n_targets + t] != 0)
			return false;
	return true;
}

/*
 * Centre and scale of target number t. Targets that are all equal, as the first ones of counts may
 * be, do not say how far others lie: their own size is the only one there is.
 */
static TnpStatus
build_target(const TnpModel *model, const TnpRows *rows, int t, TnpStats *stats, TnpError *error)
{
	const TnpConfig *c = &model->config;
	double		center = 0,
				scale = 1,
				sd;

	if (c->target_scaling == TNP_SCALE_FIXED)
	{
		center = c->target_center[t];
		scale = c->target_scale[t];
	}
	else if (c->target_scaling == TNP_SCALE_PREFIX)
	{
		tnp_mean_and_sd(rows->y + t, stats->n0, c->n_targets, &center, &sd);
		scale = tnp_all_equal(rows->y + t, stats->n0, c->n_targets) ? fabs(center)
			: fmax(sd, LEAST_SCALE * fabs(center));
		if (scale < SMALLEST_SCALE && !only_zeros(rows, t, stats->n0, c->n_targets))
		{
			tnp_fail(error, TNP_BAD_VALUE, "the targets are too small to be scaled");
			tnp_detail(error, "mean %g, standard deviation %g, which is to be at least %g", center,
					   sd, SMALLEST_SCALE);
			return TNP_BAD_VALUE;
		}
		if (scale < SMALLEST_SCALE)
			scale = 1;
		if (!(fabs(center) <= TNP_LARGEST_PARAMETER && scale <= TNP_LARGEST_PARAMETER))
		{
			tnp_fail(error, TNP_BAD_VALUE, "the targets are too large to be scaled");
			tnp_detail(error, "mean %g, standard deviation %g, each at most %g", center, sd,
					   TNP_LARGEST_PARAMETER);
			return TNP_BAD_VALUE;
		}
	}
	if (c->encode_x.orient && stats->n_classes == 0
		&& tnp_target_turns(rows, stats->n0, center, scale))
		scale = -scale;
	if (t == 0)
	{
		stats->y_center = center;
		stats->y_scale = scale;
	}
	else
	{
		stats->y_more[2 * (t - 1)] = center;
		stats->y_more[2 * (t - 1) + 1] = scale;
	}
	return TNP_OK;
}

/* Centre and scale of each target. */
static TnpStatus
build_targets(const TnpModel *model, const TnpRows *rows, TnpStats *stats, TnpError *error)
{
	TnpStatus	status = TNP_OK;

	stats->n_classes = tnp_classes(model) > 0 && rows->n_classes > 0 ? rows->n_classes
		: tnp_classes(model);
	stats->n_more = model->config.n_targets - 1;
	if (stats->n_more > 0)
	{
		stats->y_more = tnp_alloc_zero(&model->env, stats->n_more, 2 * sizeof(double));
		if (stats->y_more == NULL)
			return tnp_no_memory(error);
	}
	for (int t = 0; status == TNP_OK && t < model->config.n_targets; t++)
		status = build_target(model, rows, t, stats, error);
	return status;
}

/* Digests of the prefix's rows, where labels are ordered and their names must not decide. */
static TnpStatus
build_digests(const TnpModel *model, const TnpRows *rows, TnpStats *stats, TnpError *error)
{
	bool		some = false;

	for (int f = 0; rows->kinds != NULL && f < rows->n_features; f++)
		some = some || rows->kinds[f] == TNP_CATEGORICAL;
	if (!some || !model->config.encode_x.codes_by_targets)
		return TNP_OK;
	stats->digest = tnp_alloc(&model->env, stats->n0, sizeof(uint64_t));
	return stats->digest == NULL ? tnp_no_memory(error)
		: tnp_row_digests(model, stats, rows, stats->digest, error);
}

/* Columns, and parts of those that are split; numbers that are named stand as labels, too. */
static TnpStatus
build_columns(const TnpModel *model, const TnpRows *rows, const bool *named, TnpStats *stats,
			  TnpError *error)
{
	double	   *work = tnp_alloc(&model->env, stats->n0, sizeof(double));
	TnpStatus	status;

	stats->columns = tnp_alloc_zero(&model->env, rows->n_features, sizeof(TnpColumn));
	if (work == NULL || stats->columns == NULL)
		status = tnp_no_memory(error);
	else
	{
		stats->n_columns = rows->n_features;
		status = build_digests(model, rows, stats, error);
	}
	for (int f = 0; status == TNP_OK && f < rows->n_features; f++)
	{
		if (tnp_interrupted(&model->env))
			status = tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		else
			status = build_column(model, stats, rows, f, work, &stats->columns[f], error);
	}
	if (status == TNP_OK)
		status = build_parts(model, rows, named, work, stats, error);
	tnp_free(&model->env, stats->digest);
	stats->digest = NULL;
	tnp_free(&model->env, work);
	return status;
}

/*
 * What does not hang on the targets' scale alone, up to what process and regressions say. Without
 * `prune` all slots stay; else stats->n_pruned is how many do not.
 */
static TnpStatus
build_opinions(const TnpModel *model, const TnpRows *rows, const bool *named, bool prune,
			   TnpStats *stats, TnpError *error)
{
	const TnpConfig *c = &model->config;
	TnpStatus	status = build_columns(model, rows, named, stats, error);

	if (status == TNP_OK && tnp_fills_slots(model))
		status = build_cards(model, rows, stats, error);
	if (status == TNP_OK && tnp_fills_slots(model))
		status = build_slots(model, stats, error);
	if (status == TNP_OK && prune)
		status = tnp_ridge_prune(model, rows, stats, error);
	if (status == TNP_OK && c->encode_x.ridge)
		status = tnp_ridge_build(model, rows, stats, error);
	if (status == TNP_OK && c->encode_x.process)
		status = tnp_process_build(model, rows, stats, error);
	if (status == TNP_OK && c->encode_x.logistic)
		status = tnp_logistic_fit(model, rows, stats, &stats->logistic, error);
	return status;
}

static void
free_opinions(const TnpEnv *env, TnpStats *stats)
{
	for (int f = 0; f < stats->n_columns; f++)
		tnp_levels_free(env, &stats->columns[f]);
	for (int k = 0; k < TNP_RIDGES; k++)
		tnp_ridge_free(env, &stats->ridge[k]);
	tnp_process_free(env, &stats->process);
	tnp_logistic_free(env, &stats->logistic);
	tnp_free(env, stats->class_blend_weight);
	tnp_free(env, stats->columns);
	tnp_free(env, stats->slot);
}

/* Opinions anew, with the targets' scale of stats: to be freed also after a failure. */
static TnpStatus
build_other(const TnpModel *model, const TnpRows *rows, const bool *named, bool prune,
			const TnpStats *stats, TnpStats *other, TnpError *error)
{
	*other = *stats;
	other->n_columns = other->n_slots = other->n_pruned = 0;
	other->columns = NULL;
	other->slot = NULL;
	memset(other->ridge, 0, sizeof(other->ridge));
	memset(&other->process, 0, sizeof(other->process));
	memset(&other->logistic, 0, sizeof(other->logistic));
	other->class_blend_weight = NULL;
	return build_opinions(model, rows, named, prune, other, error);
}

/* What was built is `other` from now on, if that is better; what is not is freed. */
static void
take_better(const TnpEnv *env, bool better, TnpStats *stats, TnpStats *other)
{
	TnpStats	loser = *other;

	if (better)
	{
		loser = *stats;
		*stats = *other;
	}
	free_opinions(env, &loser);
}

/*
 * Where slots were left out what is built with all of them takes its place, if rows left out are
 * predicted better: columns of noise say nothing, but those that say something only with others may
 * look like them. *prune becomes false then.
 */
static TnpStatus
judge_pruning(const TnpModel *model, const TnpRows *rows, TnpStats *stats, bool *prune,
			  TnpError *error)
{
	TnpStats	other;
	bool		better;
	TnpStatus	status;

	if (stats->n_pruned == 0)
		return TNP_OK;
	status = build_other(model, rows, NULL, false, stats, &other, error);
	better = status == TNP_OK
		&& other.process.density > stats->process.density + ALL_SLOTS_AHEAD
		+ ALL_TOGETHER / stats->n0;
	take_better(&model->env, better, stats, &other);
	*prune = !better;
	/* sums without room say nothing of what was built before */
	return status == TNP_BAD_VALUE ? TNP_OK : status;
}

/*
 * The same with labels for numbers that are named takes the place of what was built without, if
 * rows left out are predicted better.
 */
static TnpStatus
try_labels(const TnpModel *model, const TnpRows *rows, const bool *named, bool prune,
		   TnpStats *stats, TnpError *error)
{
	TnpStats	other;
	bool		help = false;
	TnpStatus	status = build_other(model, rows, named, prune, stats, &other, error);

	if (status == TNP_OK)
		status = tnp_labels_help(model, rows, stats, &other, &help, error);
	take_better(&model->env, status == TNP_OK && help, stats, &other);
	return status == TNP_BAD_VALUE ? TNP_OK : status;
}

static TnpStatus
add_labels(const TnpModel *model, const TnpRows *rows, bool prune, TnpStats *stats,
		   TnpError *error)
{
	bool	   *named = tnp_alloc(&model->env, rows->n_features, sizeof(bool)),
				some = false;
	TnpStatus	status = named == NULL ? tnp_no_memory(error)
		: tnp_columns_name(model, stats, rows, named, &some, error);

	if (status == TNP_OK && some)
		status = try_labels(model, rows, named, prune, stats, error);
	tnp_free(&model->env, named);
	return status;
}

/* All that the rows say beyond centre and scale of their targets. */
static TnpStatus
build_inputs(const TnpModel *model, const TnpRows *rows, TnpStats *stats, TnpError *error)
{
	const TnpConfig *c = &model->config;
	bool		prune = c->encode_x.prune;
	TnpStatus	status = build_opinions(model, rows, NULL, prune, stats, error);

	if (status == TNP_OK && c->encode_x.prune_judged)
		status = judge_pruning(model, rows, stats, &prune, error);

	if (status == TNP_OK && c->encode_x.labels && tnp_labels_wanted(stats))
		status = add_labels(model, rows, prune, stats, error);
	if (status == TNP_OK && c->trees_blend_weight > 0)
		status = tnp_trees_grow(model, rows, stats, &stats->trees, error);
	if (status == TNP_OK && c->class_process > 0)
		status = tnp_class_process_build(model, rows, stats, &stats->class_process, error);
	/* what says nothing is not kept in every encoding */
	if (status == TNP_OK && c->class_process > 0 && tnp_class_process_share(model, stats) == 0)
		tnp_class_process_free(&model->env, &stats->class_process);
	if (status == TNP_OK && c->trees_blend_weight > 0 && c->gate_hidden > 0)
		status = tnp_wanted_mean_build(model, rows, stats, error);
	if (status == TNP_OK && c->rare > 0)
		tnp_rare_build(model, rows, stats);
	if (status == TNP_OK && c->levels > 0)
		tnp_target_levels_build(rows, stats);
	if (status == TNP_OK && c->gate_record)
		tnp_record_build(stats);
	if (status == TNP_OK && c->encode_x.donors > 0)
		status = tnp_donors_build(model, rows, stats, error);
	if (status == TNP_OK && c->encode_x.shift)
		status = tnp_shifts_build(model, rows, stats, error);
	return status;
}

/* The same of rows whose classes are in the order in which the network sees them. */
static TnpStatus
build_in_order(const TnpModel *model, const TnpRows *rows, TnpStats *stats, TnpError *error)
{
	double	   *y = tnp_alloc(&model->env, stats->n0, sizeof(double));
	TnpRows		ordered = *rows;
	TnpStatus	status;

	if (y == NULL)
		return tnp_no_memory(error);
	ordered.n = stats->n0;
	ordered.y = y;
	status = tnp_class_order_build(model, rows, stats, y, error);
	if (status == TNP_OK)
		status = build_inputs(model, &ordered, stats, error);
	tnp_free(&model->env, y);
	stats->orders_classes = true;
	return status;
}

static TnpStatus
build_all(const TnpModel *model, const TnpRows *rows, TnpStats *stats, TnpError *error)
{
	TnpStatus	status = build_targets(model, rows, stats, error);

	if (status == TNP_OK && model->config.orders_classes)
		status = build_in_order(model, rows, stats, error);
	else if (status == TNP_OK && tnp_scales_inputs(&model->config))
		status = build_inputs(model, rows, stats, error);
	return status;
}

/* The same of rows of which those with a far target have what it counts as. */
static TnpStatus
build_bounded(const TnpModel *model, const TnpRows *rows, TnpStats *stats, TnpError *error)
{
	double	   *y = tnp_alloc(&model->env, stats->n0, sizeof(double));
	TnpRows		bounded = *rows;
	TnpStatus	status;

	if (y == NULL)
		return tnp_no_memory(error);
	memcpy(y, rows->y, stats->n0 * sizeof(double));
	qsort(y, stats->n0, sizeof(double), tnp_compare_doubles);
	tnp_targets_bind(y, stats->n0, model->config.far_targets, &stats->y_bound);
	if (tnp_targets_foretold(rows, stats->n0, &stats->y_bound))
		stats->y_bound.is_set = false;
	for (int64_t i = 0; i < stats->n0; i++)
		y[i] = tnp_bounded_target(&stats->y_bound, rows->y[i]);
	bounded.n = stats->n0;
	bounded.y = y;
	status = build_all(model, &bounded, stats, error);
	tnp_free(&model->env, y);
	return status;
}

TnpStatus
tnp_stats_build(const TnpModel *model, const TnpRows *rows, int64_t n0, TnpStats *stats,
				TnpError *error)
{
	TnpStatus	status;

	memset(stats, 0, sizeof(*stats));
	stats->n0 = n0;
	if (model->config.far_targets > 0 && model->config.n_targets == 1 && n0 > 0)
		status = build_bounded(model, rows, stats, error);
	else
		status = build_all(model, rows, stats, error);
	if (status != TNP_OK)
		tnp_stats_free(&model->env, stats);
	return status;
}

void
tnp_stats_free(const TnpEnv *env, TnpStats *stats)
{
	free_opinions(env, stats);
	tnp_trees_free(env, &stats->trees);
	tnp_class_process_free(env, &stats->class_process);
	tnp_donors_free(env, &stats->donors);
	tnp_shifts_free(env, &stats->shifts);
	tnp_free(env, stats->y_more);
	memset(stats, 0, sizeof(*stats));
}

size_t
tnp_stats_bytes(const TnpStats *stats)
{
	size_t		bytes = (size_t) stats->n_columns * sizeof(TnpColumn) +
		(size_t) stats->n_slots * sizeof(int) + (size_t) stats->n_more * 2 * sizeof(double);

	for (int f = 0; f < stats->n_columns; f++)
		bytes += tnp_levels_bytes(&stats->columns[f]);
	for (int k = 0; k < TNP_RIDGES; k++)
		bytes += tnp_ridge_bytes(&stats->ridge[k]);
	bytes += tnp_process_bytes(&stats->process) + tnp_donors_bytes(&stats->donors)
		+ tnp_shifts_bytes(&stats->shifts);
	bytes += tnp_logistic_bytes(&stats->logistic) + tnp_trees_bytes(&stats->trees)
		+ tnp_class_process_bytes(&stats->class_process);
	return bytes + tnp_class_stats_bytes(stats);
}
