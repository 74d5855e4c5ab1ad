/*
 * nearest.c: the rows of a table that are nearest to a place in it, found by a plain scan.
 *
 * Distances. A number is standardised by the first rows, as many as the largest power of two that
 * the table has, so that a row more seldom moves the others, and beyond KNEE its distance from the
 * mean counts by its logarithm. Two values that know nothing of each other are TNP_UNRELATED apart,
 * squared, in every column: for standardised numbers that is the mean; two labels that differ are
 * so far apart that it is the mean as well (FAR at most), and a number that is missing, or is for
 * the model (far.c), is that far from one that is not. Each column's square is weighted by the
 * square root of its relevance (relevance.h) and, since columns may matter together only, a FLOOR
 * of the columns' mean.
 *
 * Blocks. Encoding the neighbours of each question by themselves would take an encoding per
 * question. So every step-th row is an anchor, a question belongs to the block of the anchor that
 * is nearest to it, and all questions of a block have the anchor's neighbours. Both are functions
 * of the table and the question alone: no question depends on another. Of equal distances the
 * earlier row comes first.
 *
 * Targets. A block's encoding knows few rows. Of several far targets that lie together it would
 * take the smaller ones for what is usual, so the targets of a block are brought near by the rule
 * of all rows before (tnp_nearest_target).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/nearest.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/compare.h"
#include "engine/base/error.h"
#include "engine/features/column.h"
#include "engine/features/far.h"
#include "engine/file/model.h"

#define KNEE 3.0
#define FAR 9.0					/* squared, of labels of a column that has nearly one only */
#define LARGEST 1e9				/* standardised */
#define FLOOR 0.25
#define ROWS_PER_STEP 16		/* of a neighbourhood, for each row between two anchors */
#define CUTS 7

/* Groups of a number's relevance: eighths of the normal distribution, and what is missing. */
static const double cuts[CUTS] = {-1.15, -0.67, -0.32, 0, 0.32, 0.67, 1.15};

static int64_t
power_of_two(int64_t n)
{
	int64_t		power = 1;

	while (power <= n / 2)
		power *= 2;
	return n < 1 ? 0 : power;
}

/* ---- scaling --------------------------------------------------------------------------------- */

static double
column_scale(const TnpNearestColumn *column, double x)
{
	double		z;

	if (column->kind == TNP_CATEGORICAL || isnan(x))
		return x;
	if (tnp_is_far(&column->reach, x))
		return NAN;
	if (column->unit == 0)
		return 0;
	z = (x / column->unit - column->mean) / column->sd;
	return tnp_soft_clip(fmin(fmax(z, -LARGEST), LARGEST), KNEE);
}

/* Which of m numbers x are far; work [m]. */
static void
column_bind(TnpNearestColumn *column, const double *x, int64_t m, double times, double *work)
{
	int64_t		there = 0;

	for (int64_t i = 0; i < m; i++)
		if (!isnan(x[i]))
			work[there++] = x[i];
	qsort(work, (size_t) there, sizeof(double), tnp_compare_doubles);
	tnp_cells_bind(work, there, times, &column->reach);
}

/* Mean and standard deviation of m numbers x, those missing and far left out. */
static void
column_measure(TnpNearestColumn *column, const double *x, int64_t m)
{
	int64_t		there = 0;
	double		square = 0;

	for (int64_t i = 0; i < m; i++)
		if (!isnan(x[i]) && !tnp_is_far(&column->reach, x[i]))
			column->unit = fmax(column->unit, fabs(x[i]));
	for (int64_t i = 0; column->unit > 0 && i < m; i++)
		if (!isnan(x[i]) && !tnp_is_far(&column->reach, x[i]))
		{
			column->mean += x[i] / column->unit;
			there++;
		}
	if (there > 0)
		column->mean /= (double) there;
	for (int64_t i = 0; there > 0 && i < m; i++)
		if (!isnan(x[i]) && !tnp_is_far(&column->reach, x[i]))
		{
			double		from = x[i] / column->unit - column->mean;

			square += from * from;
		}
	column->sd = there > 0 ? sqrt(square / (double) there) : 0;
	/* what rounding makes of equal numbers is no deviation */
	if (column->sd <= 1e-12)
		column->unit = 0;
}

/* ---- weights --------------------------------------------------------------------------------- */

typedef struct Label
{
	double		identity;		/* -1: missing */
	int64_t		row;
} Label;

static int
compare_labels(const void *a, const void *b)
{
	const Label *p = a,
			   *q = b;

	return p->identity != q->identity ? (p->identity > q->identity) - (p->identity < q->identity)
		: (p->row > q->row) - (p->row < q->row);
}

/* The groups of the first m rows by a column's labels, and how many there are. */
static TnpStatus
labels_group(const TnpEnv *env, const double *points, int64_t m, int *group, int *n_groups,
			 double *squares, TnpError *error)
{
	Label	   *labels = tnp_alloc(env, (size_t) m, sizeof(Label));
	int64_t		run = 0;

	if (labels == NULL)
		return tnp_no_memory(error);
	for (int64_t i = 0; i < m; i++)
		labels[i] = (Label) {isnan(points[i]) ? -1 : points[i], i};
	qsort(labels, (size_t) m, sizeof(Label), compare_labels);
	*n_groups = 0;
	*squares = 0;
	for (int64_t i = 0; i < m; i++)
	{
		run++;
		group[labels[i].row] = *n_groups;
		if (i + 1 == m || labels[i + 1].identity != labels[i].identity)
		{
			*squares += (double) run * (double) run / ((double) m * (double) m);
			(*n_groups)++;
			run = 0;
		}
	}
	tnp_free(env, labels);
	return TNP_OK;
}

static void
numbers_group(const double *points, int64_t m, int *group)
{
	for (int64_t i = 0; i < m; i++)
	{
		int			bin = 0;

		while (!isnan(points[i]) && bin < CUTS && points[i] > cuts[bin])
			bin++;
		group[i] = isnan(points[i]) ? CUTS + 1 : bin;
	}
}

/* The relevance of column f by the first m rows, into its weight, and what a mismatch is. */
static TnpStatus
column_weigh(TnpNearest *nearest, int f, const TnpRelevanceTargets *targets, int *group,
			 TnpError *error)
{
	TnpNearestColumn *column = &nearest->columns[f];
	const double *points = nearest->points + (size_t) f * (size_t) nearest->n;
	int			n_groups = CUTS + 2;
	double		squares = 0;
	TnpStatus	status;

	if (column->kind == TNP_CATEGORICAL)
	{
		status = labels_group(&nearest->env, points, targets->m, group, &n_groups, &squares,
							  error);
		if (status != TNP_OK)
			return status;
		column->mismatch = squares < 1 ? fmin(TNP_UNRELATED / (1 - squares), FAR) : FAR;
	}
	else
		numbers_group(points, targets->m, group);
	return tnp_relevance_of(&nearest->env, targets, group, n_groups, &column->weight, error);
}

/* From relevances to weights of squares. */
static void
columns_settle(TnpNearest *nearest)
{
	double		mean = 0;

	for (int f = 0; f < nearest->n_features; f++)
		mean += sqrt(nearest->columns[f].weight) / nearest->n_features;
	for (int f = 0; f < nearest->n_features; f++)
	{
		TnpNearestColumn *column = &nearest->columns[f];

		column->weight = mean > 0 ? sqrt(column->weight) + FLOOR * mean : 1;
		column->mismatch *= column->weight;
	}
}

static TnpStatus
columns_weigh(TnpNearest *nearest, const TnpRows *rows, int64_t m, TnpError *error)
{
	TnpRelevanceTargets targets;
	int		   *group = tnp_alloc(&nearest->env, (size_t) m, sizeof(int));
	TnpStatus	status;

	if (group == NULL)
		return tnp_no_memory(error);
	status = tnp_relevance_begin(&nearest->env, rows, m, &targets, error);
	for (int f = 0; status == TNP_OK && f < nearest->n_features; f++)
		status = tnp_interrupted(&nearest->env)
			? tnp_fail(error, TNP_INTERRUPTED, "interrupted")
			: column_weigh(nearest, f, &targets, group, error);
	tnp_relevance_end(&nearest->env, &targets);
	tnp_free(&nearest->env, group);
	columns_settle(nearest);
	return status;
}

/* ---- making ---------------------------------------------------------------------------------- */

/* Say which targets are far, and bring them near among the first m, into y [m]; work [rows->n]. */
static void
bring_near(const TnpRows *rows, int64_t m, double times, double *work, TnpTargetBound *bound,
		   double *y)
{
	memcpy(work, rows->y, (size_t) rows->n * sizeof(double));
	qsort(work, (size_t) rows->n, sizeof(double), tnp_compare_doubles);
	tnp_targets_bind(work, rows->n, times, bound);
	if (tnp_targets_foretold(rows, rows->n, bound))
		bound->is_set = false;
	for (int64_t i = 0; i < m; i++)
		y[i] = tnp_bounded_target(bound, rows->y[i]);
}

/* Scale the columns, by the first m rows, and weigh them; work [3 m], all rows fit into [2 m]. */
static TnpStatus
nearest_fill(const TnpModel *model, TnpNearest *nearest, const TnpRows *rows, int64_t m,
			 double *work, TnpError *error)
{
	const TnpConfig *c = &model->config;
	int			n_features = rows->n_features;
	TnpRows		near = *rows;

	for (int f = 0; f < n_features; f++)
	{
		TnpNearestColumn *column = &nearest->columns[f];
		double	   *points = nearest->points + (size_t) f * (size_t) rows->n;

		if (tnp_interrupted(&nearest->env))
			return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		column->kind = rows->kinds != NULL ? rows->kinds[f] : TNP_NUMERIC;
		for (int64_t i = 0; i < rows->n; i++)
			points[i] = rows->x[i * n_features + f];
		if (column->kind == TNP_NUMERIC && c->far_cells > 0)
			column_bind(column, points, m, c->far_cells, work);
		if (column->kind == TNP_NUMERIC)
			column_measure(column, points, m);
		for (int64_t i = 0; i < rows->n; i++)
			points[i] = column_scale(column, points[i]);
	}
	/* all rows are neighbours, however far */
	if (nearest->k == rows->n)
		return TNP_OK;
	if (c->far_targets > 0 && c->n_targets == 1 && m > 0)
	{
		TnpTargetBound first;
		double	   *y = work + 2 * m;

		bring_near(rows, m, c->far_targets, work, &nearest->bound, y);
		near.y = y;
		near.n = m;
		bring_near(&near, m, c->far_targets, work, &first, y);
	}
	return columns_weigh(nearest, &near, m, error);
}

TnpStatus
tnp_nearest_make(const TnpModel *model, const TnpRows *rows, int64_t k, TnpNearest **nearest,
				 TnpError *error)
{
	const TnpEnv *env = &model->env;
	TnpNearest *made = tnp_alloc_zero(env, 1, sizeof(TnpNearest));
	size_t		n_features = (size_t) rows->n_features;
	int64_t		m = power_of_two(rows->n);
	double	   *work = NULL;
	TnpStatus	status;

	*nearest = NULL;
	if (made == NULL)
		return tnp_no_memory(error);
	made->env = *env;
	made->n = rows->n;
	made->k = k < rows->n ? k : rows->n;
	made->step = power_of_two(k / ROWS_PER_STEP);
	if (made->step < 1)
		made->step = 1;
	made->n_features = rows->n_features;
	made->columns = tnp_alloc_zero(env, n_features, sizeof(TnpNearestColumn));
	if (rows->n == 0 || n_features <= SIZE_MAX / sizeof(double) / (size_t) rows->n)
		made->points = tnp_alloc(env, n_features * (size_t) rows->n, sizeof(double));
	if (made->points != NULL)
		work = tnp_alloc(env, (size_t) m, 3 * sizeof(double));
	status = made->columns == NULL || work == NULL ? tnp_no_memory(error)
		: nearest_fill(model, made, rows, m, work, error);
	tnp_free(env, work);
	if (status != TNP_OK)
	{
		tnp_nearest_free(made);
		return status;
	}
	*nearest = made;
	return TNP_OK;
}

void
tnp_nearest_free(TnpNearest *nearest)
{
	TnpEnv		env;

	if (nearest == NULL)
		return;
	env = nearest->env;
	tnp_free(&env, nearest->columns);
	tnp_free(&env, nearest->points);
	tnp_free(&env, nearest);
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* Add column f's part of the distances between a scaled value z and every step-th row. */
static void
add_distances(const TnpNearest *nearest, int f, double z, int64_t step, double *distance)
{
	const TnpNearestColumn *column = &nearest->columns[f];
	const double *points = nearest->points + (size_t) f * (size_t) nearest->n;
	double		unrelated = TNP_UNRELATED * column->weight;
	int64_t		count = (nearest->n + step - 1) / step;

	if (column->kind == TNP_NUMERIC && column->unit == 0)
		return;
	for (int64_t i = 0; i < count; i++)
	{
		double		point = points[i * step],
					from = point - z;

		if (column->kind == TNP_CATEGORICAL)
			distance[i] += point == z || (isnan(point) && isnan(z)) ? 0 : column->mismatch;
		else if (isnan(point) || isnan(z))
			distance[i] += isnan(point) && isnan(z) ? 0 : unrelated;
		else
			distance[i] += column->weight * from * from;
	}
}

TnpStatus
tnp_nearest_block(const TnpNearest *nearest, const double *x, int64_t *block, TnpError *error)
{
	int64_t		count = (nearest->n + nearest->step - 1) / nearest->step;
	double	   *distance;

	*block = 0;
	if (nearest->k == nearest->n)
		return TNP_OK;
	if (tnp_interrupted(&nearest->env))
		return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
	distance = tnp_alloc_zero(&nearest->env, (size_t) count, sizeof(double));
	if (distance == NULL)
		return tnp_no_memory(error);
	for (int f = 0; f < nearest->n_features; f++)
		add_distances(nearest, f, column_scale(&nearest->columns[f], x[f]), nearest->step,
					  distance);
	for (int64_t i = 1; i < count; i++)
		if (distance[i] < distance[*block])
			*block = i;
	tnp_free(&nearest->env, distance);
	return TNP_OK;
}

typedef struct Candidate
{
	double		distance;
	int64_t		row;
} Candidate;

static bool
is_farther(const Candidate *a, const Candidate *b)
{
	return a->distance > b->distance || (a->distance == b->distance && a->row > b->row);
}

/* Put a candidate into a place of a heap of n, below which all is in order. */
static void
heap_settle(Candidate *heap, int64_t n, int64_t place, Candidate candidate)
{
	int64_t		child;

	while ((child = 2 * place + 1) < n)
	{
		if (child + 1 < n && is_farther(&heap[child + 1], &heap[child]))
			child++;
		if (!is_farther(&heap[child], &candidate))
			break;
		heap[place] = heap[child];
		place = child;
	}
	heap[place] = candidate;
}

/* The k nearest of n rows into a heap, the farthest of them first. */
static void
heap_select(Candidate *heap, int64_t k, const double *distance, int64_t n)
{
	for (int64_t i = 0; i < k; i++)
		heap[i] = (Candidate) {distance[i], i};
	for (int64_t i = k / 2 - 1; i >= 0; i--)
		heap_settle(heap, k, i, heap[i]);
	for (int64_t i = k; i < n; i++)
	{
		Candidate	candidate = {distance[i], i};

		if (is_farther(&heap[0], &candidate))
			heap_settle(heap, k, 0, candidate);
	}
}

static int
compare_rows(const void *a, const void *b)
{
	const int64_t *p = a,
			   *q = b;

	return (*p > *q) - (*p < *q);
}

int64_t
tnp_nearest_size(const TnpNearest *nearest)
{
	return nearest->k;
}

double
tnp_nearest_target(const TnpNearest *nearest, double y)
{
	return tnp_bounded_target(&nearest->bound, y);
}

TnpStatus
tnp_nearest_rows(const TnpNearest *nearest, int64_t block, int64_t *rows, TnpError *error)
{
	size_t		n = (size_t) nearest->n,
				step = (size_t) nearest->step;
	double	   *distance;
	Candidate  *heap;

	for (int64_t i = 0; nearest->k == nearest->n && i < nearest->n; i++)
		rows[i] = i;
	if (nearest->k == nearest->n)
		return TNP_OK;
	distance = tnp_alloc_zero(&nearest->env, n, sizeof(double));
	heap = tnp_alloc(&nearest->env, (size_t) nearest->k, sizeof(Candidate));
	for (int f = 0; distance != NULL && heap != NULL && f < nearest->n_features; f++)
		add_distances(nearest, f, nearest->points[(size_t) f * n + (size_t) block * step], 1,
					  distance);
	if (distance != NULL && heap != NULL)
	{
		heap_select(heap, nearest->k, distance, nearest->n);
		for (int64_t i = 0; i < nearest->k; i++)
			rows[i] = heap[i].row;
		qsort(rows, (size_t) nearest->k, sizeof(int64_t), compare_rows);
	}
	tnp_free(&nearest->env, distance);
	tnp_free(&nearest->env, heap);
	return distance == NULL || heap == NULL ? tnp_no_memory(error) : TNP_OK;
}
