/*
 * trees.c: what boosted trees of the prefix say about a row, and how much of a classifier's answer
 * that is (docs/model-format.md section 8, "Trees"). They are grown in trees_grow.c.
 *
 * A network of smooth attention averages over neighbours, and needs many rows to find the steps and
 * combinations of cells that a tree finds at once. How much the trees know that regressions of the
 * same rows do not, each judged by rows that it has not seen, says whether a table is of that kind.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/trees.h"

#include <math.h>
#include <string.h>

#include "engine/features/class_counts.h"
#include "engine/features/column.h"
#include "engine/features/logistic.h"
#include "engine/features/trees_known.h"

/* of the share of the regressions' loss that the trees do away with */
#define SLOPE 1.5
#define SHARPER 1.5				/* are means over folds than what a fold says of rows not seen */
#define SMALLEST_LOSS 1e-6		/* of the regressions, in nats */

/* ---- memory ---------------------------------------------------------------------------------- */

static size_t
edges_bytes(const TnpTrees *trees)
{
	return (size_t) trees->n_slots * TNP_TREE_EDGES * sizeof(double);
}

static size_t
starts_bytes(const TnpTrees *trees)
{
	return (size_t) TNP_TREE_FOLDS * trees->channels * sizeof(double);
}

static size_t
splits_bytes(const TnpTrees *trees)
{
	return (size_t) TNP_TREE_FOLDS * trees->rounds * TNP_TREE_SPLITS * sizeof(TnpTreeSplit);
}

static size_t
values_bytes(const TnpTrees *trees)
{
	return (size_t) TNP_TREE_FOLDS * trees->rounds * TNP_TREE_LEAVES * trees->channels
		* sizeof(float);
}

static size_t
known_until_bytes(const TnpTrees *trees)
{
	return trees->known_until == NULL ? 0 : (size_t) trees->n_slots * sizeof(int64_t);
}

static size_t
known_bytes(const TnpTrees *trees)
{
	return trees->known_until == NULL ? 0
		: (size_t) trees->known_until[trees->n_slots - 1] * sizeof(double);
}

bool
tnp_trees_make(const TnpEnv *env, int n_slots, int classes, int rounds, TnpTrees *trees)
{
	*trees = (TnpTrees) {.n_classes = classes, .n_slots = n_slots, .rounds = rounds,
						 .channels = classes == 2 ? 1 : classes};
	trees->edges = tnp_alloc_zero(env, 1, edges_bytes(trees));
	trees->start = tnp_alloc_zero(env, 1, starts_bytes(trees));
	/* a byte more: there may be no round */
	trees->split = tnp_alloc_zero(env, 1, splits_bytes(trees) + 1);
	trees->value = tnp_alloc_zero(env, 1, values_bytes(trees) + 1);
	return trees->edges != NULL && trees->start != NULL && trees->split != NULL
		&& trees->value != NULL;
}

bool
tnp_trees_copy(const TnpEnv *env, const TnpTrees *from, TnpTrees *to)
{
	memset(to, 0, sizeof(*to));
	if (from->n_classes == 0)
		return true;
	if (!tnp_trees_make(env, from->n_slots, from->n_classes, from->rounds, to))
		return false;
	to->loss = from->loss;
	to->sharpness = from->sharpness;
	to->share = from->share;
	memcpy(to->edges, from->edges, edges_bytes(from));
	memcpy(to->start, from->start, starts_bytes(from));
	memcpy(to->split, from->split, splits_bytes(from));
	memcpy(to->value, from->value, values_bytes(from));
	if (from->known_until == NULL)
		return true;
	to->known_until = tnp_alloc(env, 1, known_until_bytes(from));
	/* a byte more: no slot may have few values */
	to->known = tnp_alloc(env, 1, known_bytes(from) + 1);
	if (to->known_until == NULL || to->known == NULL)
		return false;
	memcpy(to->known_until, from->known_until, known_until_bytes(from));
	memcpy(to->known, from->known, known_bytes(from));
	return true;
}

void
tnp_trees_free(const TnpEnv *env, TnpTrees *trees)
{
	tnp_free(env, trees->edges);
	tnp_free(env, trees->start);
	tnp_free(env, trees->split);
	tnp_free(env, trees->value);
	tnp_free(env, trees->known_until);
	tnp_free(env, trees->known);
	memset(trees, 0, sizeof(*trees));
}

size_t
tnp_trees_bytes(const TnpTrees *trees)
{
	return trees->n_classes == 0 ? 0 : edges_bytes(trees) + starts_bytes(trees)
		+ splits_bytes(trees) + values_bytes(trees) + known_until_bytes(trees)
		+ known_bytes(trees);
}

/* ---- rows ------------------------------------------------------------------------------------ */

void
tnp_trees_bins(const TnpStats *stats, const TnpTrees *trees, const double *x, unsigned char *bin)
{
	for (int s = 0; s < trees->n_slots; s++)
	{
		const TnpColumn *column = tnp_slot_column(stats, s);
		const double *edges = trees->edges + (size_t) s * TNP_TREE_EDGES;
		double		value = tnp_slot_cell(stats, s, x);
		int			at = 0;

		if (column->kind == TNP_CATEGORICAL)
			at = tnp_column_bin(column, value);
		else if (!tnp_column_lacks(column, value))
		{
			value = tnp_column_value(column, value);
			at = 1;
			while (at <= TNP_TREE_EDGES && value > edges[at - 1])
				at++;
		}
		bin[s] = (unsigned char) at;
	}
}

int
tnp_tree_leaf(const TnpTreeSplit *split, const unsigned char *bin, size_t stride)
{
	int			node = 0;

	while (node < TNP_TREE_SPLITS)
	{
		const TnpTreeSplit *at = &split[node];
		int			own = at->slot < 0 ? 0 : bin[(size_t) at->slot * stride];
		bool		left = at->slot < 0 || (at->label ? own == at->bin : own <= at->bin);

		node = 2 * node + (left ? 1 : 2);
	}
	return node - TNP_TREE_SPLITS;
}

/* The folds' scores of a row, added up: sum [channels]. */
static void
add_folds(const TnpStats *stats, const double *x, double *sum)
{
	const TnpTrees *trees = &stats->trees;
	int			channels = trees->channels;
	unsigned char bin[TNP_MOST_SLOTS];

	memset(sum, 0, channels * sizeof(double));
	tnp_trees_bins(stats, trees, x, bin);
	for (int i = 0; i < TNP_TREE_FOLDS * channels; i++)
		sum[i % channels] += trees->start[i];
	for (int t = 0; t < TNP_TREE_FOLDS * trees->rounds; t++)
	{
		int			leaf = tnp_tree_leaf(trees->split + (size_t) t * TNP_TREE_SPLITS, bin, 1);
		const float *value = trees->value + ((size_t) t * TNP_TREE_LEAVES + leaf) * channels;

		for (int c = 0; c < channels; c++)
			sum[c] += value[c];
	}
}

double
tnp_trees_number(const TnpStats *stats, const double *x)
{
	double		sum;

	if (stats->trees.n_classes != 1)
		return 0;
	if (!tnp_trees_know(stats, x))
		return NAN;
	add_folds(stats, x, &sum);
	return sum / TNP_TREE_FOLDS;
}

/*
 * The mean over the folds' scores, as sure as rows left out allow, and surer: three folds together
 * know more than each, and the network, with which the answer is a mean, knows less of steps.
 */
void
tnp_trees_logits(const TnpStats *stats, const double *x, double *logits)
{
	const TnpTrees *trees = &stats->trees;
	int			channels = trees->channels;
	double		sum[TNP_MAX_CLASS_ROOM],
				total;

	add_folds(stats, x, sum);
	if (trees->n_classes == 2)
		logits[0] = 0;
	for (int c = 0; c < channels; c++)
		logits[trees->n_classes - channels + c]
			= SHARPER * trees->sharpness * sum[c] / TNP_TREE_FOLDS;
	total = tnp_log_sum(trees->n_classes, logits);
	for (int c = 0; c < trees->n_classes; c++)
		logits[c] += log(trees->n_classes) - total;
}

/* ---- how much of an answer ------------------------------------------------------------------- */

double
tnp_trees_blend_weight(const TnpModel *model, const TnpStats *stats)
{
	double		loss;

	if (stats->trees.n_classes < 2)
		return 0;
	loss = fmax(tnp_regressions_loss(model, stats), SMALLEST_LOSS);
	return fmin(fmax(SLOPE * (1 - stats->trees.loss / loss), 0),
				model->config.trees_blend_weight);
}
