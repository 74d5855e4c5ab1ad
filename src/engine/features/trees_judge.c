/*
 * trees_judge.c: how much trees of the prefix count, by rows that they have not seen
 * (docs/model-format.md section 8, "Trees").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/trees_growth.h"

#include <math.h>

#include "engine/features/class_counts.h"

#define SHARPNESS_STEPS 6
#define MOST_SHARPNESS 4.0
#define SLOPE_OF_SHARE 2.0		/* in how much less trees of a number lose than the process */

/* Scores of all rows by the kept trees of their folds. */
static void
score_rows(TnpGrowth *g)
{
	const TnpTrees *trees = g->trees;

	for (int64_t i = 0; i < g->n; i++)
	{
		double	   *z = g->score + i * g->channels;
		int			fold = g->fold[i];

		for (int c = 0; c < g->channels; c++)
			z[c] = trees->start[fold * g->channels + c];
		for (int t = fold * trees->rounds; t < (fold + 1) * trees->rounds; t++)
		{
			int			leaf = tnp_tree_leaf(trees->split + (size_t) t * TNP_TREE_SPLITS,
											 g->bin + i, (size_t) g->n);
			const float *own = trees->value + ((size_t) t * TNP_TREE_LEAVES + leaf) * g->channels;

			for (int c = 0; c < g->channels; c++)
				z[c] += own[c];
		}
	}
}

/*
 * Slope and curvature of the rows' log probabilities in what their scores are multiplied by, in
 * units of 1 / TNP_TREE_LOSS_UNIT: whole numbers, whose sums no order of the rows changes.
 */
static void
measure_sharpness(const TnpGrowth *g, double sharpness, int64_t *slope, int64_t *curve)
{
	int			first = g->classes - g->channels;
	double		z[TNP_MAX_CLASS_ROOM] = {0},
				sharp[TNP_MAX_CLASS_ROOM] = {0};

	*slope = *curve = 0;
	for (int64_t i = 0; i < g->n; i++)
	{
		double		total,
					mean = 0,
					square = 0;

		for (int c = first; c < g->classes; c++)
		{
			z[c] = g->score[i * g->channels + c - first];
			sharp[c] = sharpness * z[c];
		}
		total = tnp_log_sum(g->classes, sharp);
		for (int c = 0; c < g->classes; c++)
		{
			double		p = exp(sharp[c] - total);

			mean += p * z[c];
			square += p * z[c] * z[c];
		}
		*slope += llrint((z[g->y[i]] - mean) * TNP_TREE_LOSS_UNIT);
		*curve += llrint(fmax(square - mean * mean, 0) * TNP_TREE_LOSS_UNIT);
	}
}

TnpStatus
tnp_growth_sharpness(TnpGrowth *g, TnpError *error)
{
	double		sharpness = 1;

	score_rows(g);
	for (int step = 0; step < SHARPNESS_STEPS; step++)
	{
		int64_t		slope,
					curve;

		if (tnp_interrupted(&g->model->env))
			return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		measure_sharpness(g, sharpness, &slope, &curve);
		if (curve > 0)
			sharpness = fmin(fmax(sharpness + (double) slope / (double) curve, 1 / MOST_SHARPNESS),
							 MOST_SHARPNESS);
	}
	g->trees->sharpness = sharpness;
	return TNP_OK;
}

void
tnp_growth_share(TnpGrowth *g, const TnpStats *stats)
{
	TnpTrees   *trees = g->trees;
	int64_t		sum = 0;
	double		lost;

	for (int64_t i = 0; i < g->n; i++)
	{
		double		error = stats->process.left_out[2 * i] - g->number[i];

		sum += llrint(0.5 * error * error * TNP_TREE_LOSS_UNIT);
	}
	lost = (double) sum / TNP_TREE_LOSS_UNIT / (double) g->n;
	trees->share = trees->rounds == 0 || sum == 0 ? 0
		: fmin(fmax(0.5 + SLOPE_OF_SHARE * (1 - trees->loss / lost), 0),
			   g->model->config.trees_blend_weight);
}
