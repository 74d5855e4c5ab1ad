/*
 * trees_grow.c: growing boosted trees on the prefix, of its classes or of its numbers
 * (docs/model-format.md section 8, "Trees").
 *
 * Three times two thirds of the rows grow trees, and the last third says how many are good. Sums
 * are those of whole numbers, so that no order of the rows changes a bit, and the rows of a third
 * follow from their cells. Second derivatives as in Chen and Guestrin (2016), one tree for all
 * classes.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/trees_growth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/compare.h"
#include "engine/base/mix.h"
#include "engine/features/class_counts.h"
#include "engine/features/column.h"
#include "engine/features/trees_known.h"

#define LEAST_ROWS 512			/* fewer say too little about which of two predictions is better */
#define RATE 0.2
#define PENALTY 1.0				/* of a leaf's squared value */
#define LEAST_CURVATURE 1.0		/* of the rows in a leaf, with classes */
#define LEAST_NUMBERS 8.0		/* rows in a leaf, with numbers */
#define MOST_NUMBERS (1 << 25)	/* rows: sums of errors as whole numbers have no room for more */
#define FARTHEST_NUMBER 8.0		/* scaled, from the mean */
#define FARTHEST_ERROR 32.0		/* of a number, as it counts */
#define ERROR_BITS 5
#define LEAST_GAIN 1e-6			/* of a split */
#define SLOTS_OF_TREE 12
#define WHOLE_BITS 30			/* of the largest sum over all rows */
#define TREE_BINS (TNP_TREE_EDGES + 2)	/* as many as labels have, or more */
#define MOST_NODES (TNP_TREE_LEAVES / 2)	/* of a level that part */

/* ---- bins and folds -------------------------------------------------------------------------- */

/* The cuts of a numeric slot: quantiles of its m non-missing numbers; work [n]. */
static void
cut_slot(const TnpRows *rows, const TnpStats *stats, int64_t n, int slot, double *work,
		 double *edges)
{
	int64_t		m = 0;

	for (int64_t i = 0; i < n; i++)
	{
		double		cell = tnp_slot_cell(stats, slot, rows->x + i * rows->n_features);

		cell = tnp_column_value(tnp_slot_column(stats, slot), cell);
		if (!isnan(cell))
			work[m++] = cell;
	}
	qsort(work, (size_t) m, sizeof(double), tnp_compare_doubles);
	for (int j = 1; m > 0 && j <= TNP_TREE_EDGES; j++)
		edges[j - 1] = work[((m - 1) * j + (TNP_TREE_EDGES + 1) / 2) / (TNP_TREE_EDGES + 1)];
}

typedef struct Place
{
	uint64_t	key;
	int64_t		row;
	double		y;
} Place;

static int
compare_places(const void *a, const void *b)
{
	const Place *p = a,
			   *q = b;

	return p->key != q->key ? (p->key > q->key) - (p->key < q->key)
		: (p->y > q->y) - (p->y < q->y);
}

/*
 * Folds [n]: rows in the order of a hash of their bins, then of their target, take turns. Rows that
 * are equal here are equal to trees.
 */
static TnpStatus
choose_folds(const TnpGrowth *g, unsigned char *fold, TnpError *error)
{
	Place	   *places = tnp_alloc(&g->model->env, (size_t) g->n, sizeof(Place));

	if (places == NULL)
		return tnp_no_memory(error);
	for (int64_t i = 0; i < g->n; i++)
	{
		uint64_t	key = 0;

		for (int s = 0; s < g->n_slots; s++)
			key = tnp_mix(key ^ g->bin[(size_t) s * g->n + i]);
		places[i] = (Place) {key, i, g->number != NULL ? g->number[i] : g->y[i]};
	}
	qsort(places, (size_t) g->n, sizeof(Place), compare_places);
	for (int64_t r = 0; r < g->n; r++)
		fold[places[r].row] = (unsigned char) (r % TNP_TREE_FOLDS);
	tnp_free(&g->model->env, places);
	return TNP_OK;
}

/* The slots [SLOTS_OF_TREE] that tree number t may split at, ascending; returns how many. */
static int
choose_slots(int n_slots, int t, int *slots)
{
	int			n = 0;

	if (n_slots <= SLOTS_OF_TREE)
	{
		for (; n < n_slots; n++)
			slots[n] = n;
		return n;
	}
	for (int s = 0; s < n_slots; s++)
	{
		uint64_t	own = tnp_mix((uint64_t) t * TNP_MOST_SLOTS + s);
		int			before = 0;

		for (int other = 0; other < n_slots; other++)
			before += tnp_mix((uint64_t) t * TNP_MOST_SLOTS + other) < own;
		if (before < SLOTS_OF_TREE)
			slots[n++] = s;
	}
	return n;
}

/* ---- one tree -------------------------------------------------------------------------------- */

/* What numbers of a fold lose, half the squares of their errors, and slopes of all rows. */
static int64_t
measure_numbers(TnpGrowth *g, int fold)
{
	int64_t		lost = 0;

	for (int64_t i = 0; i < g->n; i++)
	{
		int32_t    *sum = g->sum + (size_t) i * g->width;
		double		error = fmin(fmax(g->score[i] - g->number[i], -FARTHEST_ERROR), FARTHEST_ERROR);

		if (g->fold[i] == fold)
			lost += llrint(0.5 * error * error * TNP_TREE_LOSS_UNIT);
		sum[0] = (int32_t) lrint(error * g->unit);
		sum[1] = (int32_t) g->unit;
	}
	return lost;
}

/* What the rows of a fold lose, and slopes and curvatures of the others. */
static int64_t
measure_rows(TnpGrowth *g, int fold)
{
	int64_t		lost = 0;
	double		z[TNP_MAX_CLASS_ROOM] = {0};
	int			first = g->classes - g->channels;

	for (int64_t i = 0; i < g->n; i++)
	{
		int32_t    *sum = g->sum + (size_t) i * g->width;
		double		total;

		for (int c = 0; c < g->channels; c++)
			z[first + c] = g->score[i * g->channels + c];
		total = tnp_log_sum(g->classes, z);
		if (g->fold[i] == fold)
		{
			lost += llrint((total - z[g->y[i]]) * TNP_TREE_LOSS_UNIT);
			continue;
		}
		for (int c = 0; c < g->channels; c++)
		{
			double		p = exp(z[first + c] - total);

			sum[c] = (int32_t) lrint((p - (g->y[i] == first + c)) * g->unit);
			sum[g->channels + c] = (int32_t) lrint(p * (1 - p) * g->unit);
		}
	}
	return lost;
}

/* What a leaf of these sums gains, but for a constant; its curvature is returned in *curvature. */
static double
leaf_gain(const TnpGrowth *g, const int32_t *sum, double *curvature)
{
	double		gain = 0;

	*curvature = 0;
	for (int c = 0; c < g->channels; c++)
	{
		double		slope = sum[c] * g->real,
					curve = sum[g->channels + c] * g->real;

		gain += slope * slope / (curve + PENALTY);
		*curvature += curve;
	}
	return gain;
}

/* The best split of a node with these cells [slots, TREE_BINS, width]. */
static TnpTreeSplit
best_split(const TnpGrowth *g, const int *slots, int n, const int32_t *cells)
{
	TnpTreeSplit best = {.slot = -1};
	int32_t		all[2 * TNP_MAX_CLASS_ROOM] = {0},
				left[2 * TNP_MAX_CLASS_ROOM],
				right[2 * TNP_MAX_CLASS_ROOM];
	double		most = LEAST_GAIN,
				whole,
				curvature;

	for (int b = 0; b < TREE_BINS; b++)
		for (int c = 0; c < g->width; c++)
			all[c] += cells[(size_t) b * g->width + c];
	whole = leaf_gain(g, all, &curvature);
	for (int j = 0; curvature >= 2 * g->least && j < n; j++)
	{
		bool		label = g->label[slots[j]];
		const int32_t *from = cells + (size_t) j * TREE_BINS * g->width;

		memset(left, 0, sizeof(left));
		for (int b = 0; b < TREE_BINS - 1; b++)
		{
			double		less,
						more,
						gain;

			for (int c = 0; c < g->width; c++)
			{
				left[c] = (label ? 0 : left[c]) + from[(size_t) b * g->width + c];
				right[c] = all[c] - left[c];
			}
			gain = leaf_gain(g, left, &less);
			gain += leaf_gain(g, right, &more);
			gain -= whole;
			if (less >= g->least && more >= g->least && gain > most)
			{
				most = gain;
				best = (TnpTreeSplit) {(short) slots[j], (unsigned char) b, label};
			}
		}
	}
	return best;
}

/* The same of numbers, whose curvature is their number: bins without rows need no look. */
static TnpTreeSplit
best_number_split(const TnpGrowth *g, const int *slots, int n, const int32_t *cells)
{
	TnpTreeSplit best = {.slot = -1};
	int32_t		slope = 0,
				rows = 0,
				least = (int32_t) (g->least * g->unit);
	int32_t		sum[2];
	double		most = LEAST_GAIN,
				whole,
				unused;

	for (int b = 0; b < TREE_BINS; b++)
	{
		slope += cells[2 * b];
		rows += cells[2 * b + 1];
	}
	sum[0] = slope;
	sum[1] = rows;
	whole = leaf_gain(g, sum, &unused);
	for (int j = 0; rows >= 2 * least && j < n; j++)
	{
		bool		label = g->label[slots[j]];
		const int32_t *from = cells + (size_t) j * 2 * TREE_BINS;
		int32_t		left[2] = {0, 0};

		for (int b = 0; b < TREE_BINS - 1; b++, from += 2)
		{
			double		gain;

			/* without rows of its own a bin parts the others as the one before it does */
			if (from[1] == 0)
				continue;
			left[0] = (label ? 0 : left[0]) + from[0];
			left[1] = (label ? 0 : left[1]) + from[1];
			sum[0] = slope - left[0];
			sum[1] = rows - left[1];
			if (left[1] < least || sum[1] < least)
				continue;
			gain = leaf_gain(g, left, &unused);
			gain += leaf_gain(g, sum, &unused);
			gain -= whole;
			if (gain > most)
			{
				most = gain;
				best = (TnpTreeSplit) {(short) slots[j], (unsigned char) b, label};
			}
		}
	}
	return best;
}

/* Add the sums of rows [from, to) of the order to cells [slots, TREE_BINS, width]. */
static inline __attribute__((always_inline)) void
add_some_rows(const TnpGrowth *g, const int width, const int *slots, int n, int64_t from,
			  int64_t to, int32_t *cells)
{
	for (int j = 0; j < n; j++, cells += (size_t) TREE_BINS * width)
	{
		const unsigned char *bin = g->bin + (size_t) slots[j] * g->n;

		for (int64_t r = from; r < to; r++)
		{
			int64_t		i = g->order[r];
			const int32_t *sum = g->sum + (size_t) i * width;
			int32_t    *cell = cells + (size_t) bin[i] * width;

			for (int c = 0; c < width; c++)
				cell[c] += sum[c];
		}
	}
}

/* Numbers, and two classes, have sums of two, which a compiler adds at once if it knows. */
static void
add_rows(const TnpGrowth *g, const int *slots, int n, int64_t from, int64_t to, int32_t *cells)
{
	if (g->width == 2)
		add_some_rows(g, 2, slots, n, from, to, cells);
	else
		add_some_rows(g, g->width, slots, n, from, to, cells);
}

/*
 * The cells of two nodes of which one, whose rows [begin[0], begin[1]) of the order were parted at
 * begin[1] < begin[2], was made: those of the node with fewer rows are added up, and the other one
 * has what is left. at: places in g->cells of both; of the node before at first, and of none.
 */
static void
part_cells(const TnpGrowth *g, const int *slots, int n, const int64_t *begin, int *at)
{
	const bool	left = begin[1] - begin[0] <= begin[2] - begin[1];	/* has fewer */
	const size_t each = (size_t) SLOTS_OF_TREE * TREE_BINS * g->width,
				used = (size_t) n * TREE_BINS * g->width;
	int32_t    *rest = g->cells + at[0] * each,
			   *few = g->cells + at[1] * each;

	memset(few, 0, used * sizeof(int32_t));
	add_rows(g, slots, n, begin[left ? 0 : 1], begin[left ? 1 : 2], few);
	for (size_t i = 0; i < used; i++)
		rest[i] -= few[i];
	if (left)
	{
		int			swap = at[0];

		at[0] = at[1];
		at[1] = swap;
	}
}

/* Rows [from, to) of the order, those left of a split first; returns where the others begin. */
static int64_t
part_rows(TnpGrowth *g, const TnpTreeSplit *split, int64_t from, int64_t to)
{
	int64_t		left = from,
				right = 0;

	if (split->slot < 0)
		return to;
	for (int64_t r = from; r < to; r++)
	{
		int64_t		i = g->order[r];
		int			own = g->bin[(size_t) split->slot * g->n + i];

		if (split->label ? own == split->bin : own <= split->bin)
			g->order[left++] = i;
		else
			g->other[right++] = i;
	}
	memcpy(g->order + left, g->other, (size_t) right * sizeof(int64_t));
	return left;
}

static void
fill_leaf(const TnpGrowth *g, int64_t from, int64_t to, float *value)
{
	int32_t		sum[2 * TNP_MAX_CLASS_ROOM] = {0};

	for (int64_t r = from; r < to; r++)
		for (int c = 0; c < g->width; c++)
			sum[c] += g->sum[(size_t) g->order[r] * g->width + c];
	for (int c = 0; c < g->channels; c++)
		value[c] = (float) (-RATE * (sum[c] * g->real)
							/ (sum[g->channels + c] * g->real + PENALTY));
}

/* Tree number t on the rows that are not of a fold, of which there are m. */
static void
grow_tree(TnpGrowth *g, int t, int64_t m, TnpTreeSplit *split, float *value)
{
	int64_t		begin[TNP_TREE_LEAVES + 1] = {0, m};
	int			slots[SLOTS_OF_TREE],
				n = choose_slots(g->n_slots, t, slots),
				at[MOST_NODES] = {0};	/* place of a node's cells */
	size_t		each = (size_t) SLOTS_OF_TREE * TREE_BINS * g->width;

	memset(g->cells, 0, (size_t) n * TREE_BINS * g->width * sizeof(int32_t));
	add_rows(g, slots, n, 0, m, g->cells);
	for (int nodes = 1; nodes < TNP_TREE_LEAVES; nodes *= 2)
	{
		int64_t		next[TNP_TREE_LEAVES + 1];

		for (int v = 0; v < nodes; v++)
		{
			TnpTreeSplit *own = &split[nodes - 1 + v];
			const int32_t *cells = g->cells + at[v] * each;

			*own = g->number != NULL ? best_number_split(g, slots, n, cells)
				: best_split(g, slots, n, cells);
			next[2 * v] = begin[v];
			next[2 * v + 1] = part_rows(g, own, begin[v], begin[v + 1]);
		}
		next[2 * nodes] = m;
		memcpy(begin, next, (size_t) (2 * nodes + 1) * sizeof(int64_t));
		for (int v = nodes - 1; v >= 0 && nodes < MOST_NODES; v--)
		{
			int			both[2] = {at[v], nodes + v};

			part_cells(g, slots, n, begin + 2 * v, both);
			at[2 * v] = both[0];
			at[2 * v + 1] = both[1];
		}
	}
	for (int leaf = 0; leaf < TNP_TREE_LEAVES; leaf++)
		fill_leaf(g, begin[leaf], begin[leaf + 1], value + (size_t) leaf * g->channels);
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Scores at the start: the mean of the rows that are not of the fold. */
static int64_t
start_numbers(TnpGrowth *g, int fold)
{
	double	   *start = g->trees->start + fold;
	int64_t		m = 0,
				sum = 0;

	for (int64_t i = 0; i < g->n; i++)
		if (g->fold[i] != fold)
		{
			sum += llrint(g->number[i] * TNP_TREE_LOSS_UNIT);
			m++;
		}
	*start = (double) sum / TNP_TREE_LOSS_UNIT / (double) m;
	for (int64_t i = 0; i < g->n; i++)
		g->score[i] = *start;
	return m;
}

/* Scores at the start: logs of the shares of the classes in the rows that are not of the fold. */
static int64_t
start_fold(TnpGrowth *g, int fold)
{
	double		share[TNP_MAX_CLASS_ROOM],
			   *start = g->trees->start + (size_t) fold * g->channels;
	int64_t		m = 0;

	for (int c = 0; c < g->classes; c++)
		share[c] = 0.5;
	for (int64_t i = 0; i < g->n; i++)
		if (g->fold[i] != fold)
		{
			share[g->y[i]]++;
			m++;
		}
	for (int c = 0; c < g->classes; c++)
		share[c] = log(share[c] / (m + 0.5 * g->classes));
	for (int c = 0; c < g->channels; c++)
		start[c] = g->classes == 2 ? share[1] - share[0] : share[c];
	for (int64_t i = 0; i < g->n * g->channels; i++)
		g->score[i] = start[i % g->channels];
	return m;
}

static TnpStatus
grow_fold(TnpGrowth *g, int fold, TnpError *error)
{
	int64_t		m = g->number != NULL ? start_numbers(g, fold) : start_fold(g, fold);

	for (int t = 0;; t++)
	{
		size_t		tree = (size_t) fold * TNP_TREE_ROUNDS + t;
		TnpTreeSplit *split = g->trees->split + tree * TNP_TREE_SPLITS;
		float	   *value = g->trees->value + tree * TNP_TREE_LEAVES * g->channels;
		int64_t		at = 0;

		if (tnp_interrupted(&g->model->env))
			return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		g->loss[t] += g->number != NULL ? measure_numbers(g, fold) : measure_rows(g, fold);
		if (t == TNP_TREE_ROUNDS)
			return TNP_OK;
		for (int64_t i = 0; i < g->n; i++)
			if (g->fold[i] != fold)
				g->order[at++] = i;
		grow_tree(g, t, m, split, value);
		for (int64_t i = 0; i < g->n; i++)
		{
			const float *own = value
				+ (size_t) tnp_tree_leaf(split, g->bin + i, (size_t) g->n) * g->channels;

			for (int c = 0; c < g->channels; c++)
				g->score[i * g->channels + c] += own[c];
		}
	}
}

/* Keep the trees of the best number of rounds, which are those of the smallest loss. */
static void
keep_best(TnpGrowth *g)
{
	TnpTrees   *trees = g->trees;
	size_t		values = (size_t) TNP_TREE_LEAVES * g->channels;
	int			best = 0;

	for (int t = 1; t <= TNP_TREE_ROUNDS; t++)
		if (g->loss[t] < g->loss[best])
			best = t;
	for (int fold = 1; fold < TNP_TREE_FOLDS; fold++)
	{
		memmove(trees->split + (size_t) fold * best * TNP_TREE_SPLITS,
				trees->split + (size_t) fold * TNP_TREE_ROUNDS * TNP_TREE_SPLITS,
				(size_t) best * TNP_TREE_SPLITS * sizeof(TnpTreeSplit));
		memmove(trees->value + fold * best * values, trees->value + fold * TNP_TREE_ROUNDS * values,
				best * values * sizeof(float));
	}
	trees->rounds = best;
	trees->loss = (double) g->loss[best] / TNP_TREE_LOSS_UNIT / (double) g->n;
}

/* ---- from rows ------------------------------------------------------------------------------- */

/* Cuts and bins of all slots, and classes or numbers. */
static TnpStatus
bin_rows(TnpGrowth *g, const TnpRows *rows, const TnpStats *stats, bool *label, unsigned char *bin,
		 unsigned char *y, double *number, TnpError *error)
{
	const TnpEnv *env = &g->model->env;
	double	   *work = tnp_alloc(env, (size_t) g->n, sizeof(double));
	unsigned char own[TNP_MOST_SLOTS];

	if (work == NULL)
		return tnp_no_memory(error);
	for (int s = 0; s < g->n_slots; s++)
	{
		label[s] = tnp_slot_column(stats, s)->kind == TNP_CATEGORICAL;
		if (!label[s])
			cut_slot(rows, stats, g->n, s, work,
					 g->trees->edges + (size_t) s * TNP_TREE_EDGES);
	}
	tnp_free(env, work);
	for (int64_t i = 0; i < g->n; i++)
	{
		tnp_trees_bins(stats, g->trees, rows->x + i * rows->n_features, own);
		for (int s = 0; s < g->n_slots; s++)
			bin[(size_t) s * g->n + i] = own[s];
		if (stats->n_classes > 0)
			y[i] = (unsigned char) rows->y[i];
		else
			number[i] = fmin(fmax((rows->y[i] - stats->y_center) / stats->y_scale,
								  -FARTHEST_NUMBER), FARTHEST_NUMBER);
	}
	return TNP_OK;
}

static TnpStatus
grow(TnpGrowth *g, const TnpRows *rows, const TnpStats *stats, TnpError *error)
{
	const TnpEnv *env = &g->model->env;
	size_t		n = (size_t) g->n;
	bool	   *label = tnp_alloc(env, (size_t) g->n_slots + 1, sizeof(bool));
	unsigned char *bin = tnp_alloc(env, (size_t) g->n_slots + 1, n),
			   *y = tnp_alloc(env, n, 1),
			   *fold = tnp_alloc(env, n, 1);
	double	   *number = g->classes > 1 ? NULL : tnp_alloc(env, n, sizeof(double));
	TnpStatus	status;

	g->score = tnp_alloc(env, n, g->channels * sizeof(double));
	g->sum = tnp_alloc(env, n, g->width * sizeof(int32_t));
	g->order = tnp_alloc(env, n, sizeof(int64_t));
	g->other = tnp_alloc(env, n, sizeof(int64_t));
	g->cells = tnp_alloc(env, (size_t) MOST_NODES * SLOTS_OF_TREE * TREE_BINS,
						 g->width * sizeof(int32_t));
	g->label = label;
	g->bin = bin;
	g->y = y;
	g->number = number;
	g->fold = fold;
	status = label == NULL || bin == NULL || y == NULL || fold == NULL || g->score == NULL
		|| g->sum == NULL || g->order == NULL || g->other == NULL || g->cells == NULL
		|| (number == NULL && g->classes == 1)
		? tnp_no_memory(error) : bin_rows(g, rows, stats, label, bin, y, number, error);
	if (status == TNP_OK)
		status = choose_folds(g, fold, error);
	for (int f = 0; status == TNP_OK && f < TNP_TREE_FOLDS; f++)
		status = grow_fold(g, f, error);
	if (status == TNP_OK)
	{
		keep_best(g);
		if (number != NULL)
			tnp_growth_share(g, stats);
		else
			status = tnp_growth_sharpness(g, error);
	}
	tnp_free(env, label);
	tnp_free(env, bin);
	tnp_free(env, y);
	tnp_free(env, number);
	tnp_free(env, fold);
	tnp_free(env, g->score);
	tnp_free(env, g->sum);
	tnp_free(env, g->order);
	tnp_free(env, g->other);
	tnp_free(env, g->cells);
	return status;
}

TnpStatus
tnp_trees_grow(const TnpModel *model, const TnpRows *rows, const TnpStats *stats, TnpTrees *trees,
			   TnpError *error)
{
	TnpGrowth		g = {.model = model, .trees = trees, .n = stats->n0, .n_slots = stats->n_slots,
					 .classes = stats->n_classes};
	TnpStatus	status;
	int			bits = 0;

	if (model->config.trees_blend_weight == 0 || stats->n0 < LEAST_ROWS || stats->n_classes == 1
		|| (stats->n_classes == 0 && stats->n0 > MOST_NUMBERS) || stats->n_slots == 0)
		return TNP_OK;
	/* a regression model has no classes, and its trees one score */
	if (stats->n_classes == 0)
		g.classes = 1;
	if (!tnp_trees_make(&model->env, g.n_slots, g.classes, TNP_TREE_ROUNDS, trees))
		return tnp_no_memory(error);
	status = tnp_trees_note_known(&model->env, rows, stats, trees, error);
	if (status != TNP_OK)
		return status;
	while (((int64_t) 1 << bits) < g.n)
		bits++;
	g.unit = ldexp(1, WHOLE_BITS - bits - (g.classes == 1 ? ERROR_BITS : 0));
	g.real = 1 / g.unit;
	g.least = g.classes == 1 ? LEAST_NUMBERS : LEAST_CURVATURE;
	g.channels = trees->channels;
	g.width = 2 * g.channels;
	return grow(&g, rows, stats, error);
}
