/*
 * series.c: values of a series that are far from all others.
 *
 * A value may be far from all others, or, where the series wanders, its distance from the median of
 * those around it from all such distances: both by the rule of far targets (far.c). It counts as
 * missing and not as nearer: smoothing, the last value and what is learned from it have use for a
 * value of the right size alone.
 *
 * Growth has no far values, however fast, nor has a level that two values or more have reached: of
 * several at the end the rule could call far as many as it allows, but they are where the series is
 * now. Nor is a value far that a column foretells, by a cell that no near value has: an event that
 * is announced is no mistake. What is foretold says nothing of how far others may be.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/series.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/compare.h"
#include "engine/base/error.h"
#include "engine/features/far.h"
#include "engine/file/model.h"

#define AROUND 9				/* values whose median one is compared with, itself included */
#define LEVEL_OF_FAR 4			/* a level at the end has at most so many values for a far one */
#define VALUES_OF_CELL 4		/* at least, in the mean of a column that foretells something */

/* The values that are there. */
typedef struct Values
{
	int			m;
	int		   *step;			/* [m] */
	double	   *y,				/* [m] */
			   *apart,			/* [m] what is to be far: the values, or distances of them */
			   *sorted;			/* [m] room */
	bool	   *foretold;		/* [m] by a column */
	int			n_far,
			   *far;			/* [n_far] those that are far, and those foretold */
	double		times;			/* as far as others: how far is far */
	TnpTargetBound bound;
} Values;

static bool
is_far(const Values *v, int i)
{
	return tnp_bounded_target(&v->bound, v->apart[i]) != v->apart[i];
}

static double
distance(const Values *v, int i)
{
	return fabs(v->apart[i] - v->bound.middle);
}

static void
sort_doubles(double *v, int n)
{
	qsort(v, (size_t) n, sizeof(double), tnp_compare_doubles);
}

/* The median of `count` values from value `first` on; at most AROUND, the upper one of two. */
static double
median_from(const Values *v, int first, int count)
{
	double		sorted[AROUND];

	memcpy(sorted, v->y + first, (size_t) count * sizeof(double));
	sort_doubles(sorted, count);
	return sorted[count / 2];
}

/* ---- what a column foretells ----------------------------------------------------------------- */

static double
cell_of(const Values *v, const TnpStepColumns *columns, int c, int i)
{
	return columns->x[(size_t) v->step[i] * columns->pitch + c];
}

/* The cells of a column that near values have, in ascending order, into sorted; how many. */
static int
sort_near_cells(Values *v, const TnpStepColumns *columns, int c)
{
	int			count = 0;

	for (int i = 0; i < v->m; i++)
		if (!v->foretold[i] && !is_far(v, i) && !isnan(cell_of(v, columns, c, i)))
			v->sorted[count++] = cell_of(v, columns, c, i);
	sort_doubles(v->sorted, count);
	return count;
}

static int
count_different(const double *sorted, int n)
{
	int			different = n > 0;

	for (int i = 1; i < n; i++)
		different += sorted[i] != sorted[i - 1];
	return different;
}

/*
 * Whether the cell of value i in column c is one that no value has which is so many times as near:
 * none of the near ones, whose cells are sorted [count], and none of the others that are far.
 */
static bool
cell_foretells(const Values *v, const TnpStepColumns *columns, int c, int i, int count)
{
	double		cell = cell_of(v, columns, c, i);

	if (isnan(cell) || bsearch(&cell, v->sorted, (size_t) count, sizeof(double),
							   tnp_compare_doubles) != NULL)
		return false;
	for (int f = 0; f < v->n_far; f++)
		if (cell_of(v, columns, c, v->far[f]) == cell
			&& v->times * distance(v, v->far[f]) <= distance(v, i))
			return false;
	return true;
}

/*
 * Mark the far values that a column foretells, one of few different cells: where most are new, one
 * that is new says nothing. Returns whether there is one that was not marked.
 */
static bool
mark_foretold(Values *v, const TnpStepColumns *columns)
{
	bool		found = false;

	for (int c = 0; c < columns->n; c++)
	{
		int			count = sort_near_cells(v, columns, c);

		if (VALUES_OF_CELL * count_different(v->sorted, count) > count)
			continue;
		for (int f = 0; f < v->n_far; f++)
			if (!v->foretold[v->far[f]] && cell_foretells(v, columns, c, v->far[f], count))
				v->foretold[v->far[f]] = found = true;
	}
	return found;
}

/* ---- the level at the end -------------------------------------------------------------------- */

/*
 * Whether the values from value i on are a new level: more than two thirds of them, and two at
 * least, are far from the values before, on that side. It may be a level that goes up and down, of
 * which only some values are far from those around them.
 */
static bool
begins_level(const Values *v, int i, double side)
{
	int			before = i < AROUND ? i : AROUND,
				beyond = 0,
				all = 0;
	double		middle = median_from(v, i - before, before);

	for (int j = i; j < v->m; j++)
		if (!v->foretold[j])
		{
			all++;
			beyond += side * (v->y[j] - middle) > v->bound.farthest;
		}
	return beyond >= 2 && 3 * beyond > 2 * all;
}

/* Where the level that ends the series begins, if it is on that side of the middle; else m. */
static int
begin_last_level(const Values *v, double side)
{
	int			begin = v->m,
				far = 0;

	for (int i = v->m - 1; i > 0 && v->m - i <= LEVEL_OF_FAR * (far + 1); i--)
		if (!v->foretold[i] && is_far(v, i) && side * (v->apart[i] - v->bound.middle) > 0)
		{
			far++;
			if (begins_level(v, i, side))
				begin = i;
		}
	return begin;
}

/* ---- far values ------------------------------------------------------------------------------ */

/* How far is far, by the values that no column foretells, and which are. */
static void
find_far(Values *v)
{
	int			count = 0;

	for (int i = 0; i < v->m; i++)
		if (!v->foretold[i])
			v->sorted[count++] = v->apart[i];
	sort_doubles(v->sorted, count);
	tnp_targets_bind(v->sorted, count, v->times, &v->bound);
	v->n_far = 0;
	for (int i = 0; i < v->m; i++)
		if (v->foretold[i] || is_far(v, i))
			v->far[v->n_far++] = i;
}

/* Leave out those that are far, and say so in near. */
static void
leave_near(Values *v, const TnpStepColumns *columns, double *near)
{
	int			last[2],
				left = 0;

	do
		find_far(v);
	while (v->bound.is_set && mark_foretold(v, columns));
	if (!v->bound.is_set)
		return;
	for (int above = 0; above <= 1; above++)
		last[above] = begin_last_level(v, above ? 1.0 : -1.0);
	for (int i = 0; i < v->m; i++)
		if (!v->foretold[i] && is_far(v, i) && i < last[v->apart[i] > v->bound.middle])
			near[v->step[i]] = NAN;
		else
		{
			v->step[left] = v->step[i];
			v->foretold[left] = v->foretold[i];
			v->y[left++] = v->y[i];
		}
	v->m = left;
}

/* The median of the values around value i; at an end, of those nearest to it. */
static double
median_around(const Values *v, int i)
{
	int			first = i - AROUND / 2;

	if (first > v->m - AROUND)
		first = v->m - AROUND;
	return median_from(v, first < 0 ? 0 : first, AROUND);
}

TnpStatus
tnp_series_near(const TnpModel *model, const double *y, int n, const TnpStepColumns *columns,
				double *near, TnpError *error)
{
	const TnpConfig *c = &model->config;
	Values		v = {.times = c->far_targets};

	if (n > 0)
		memcpy(near, y, (size_t) n * sizeof(double));
	if (n < AROUND || c->far_targets == 0 || c->n_targets != 1)
		return TNP_OK;
	v.y = tnp_alloc(&model->env, (size_t) n, 3 * sizeof(double) + 2 * sizeof(int) + sizeof(bool));
	if (v.y == NULL)
		return tnp_no_memory(error);
	v.apart = v.y + n;
	v.sorted = v.apart + n;
	v.step = (int *) (v.sorted + n);
	v.far = v.step + n;
	v.foretold = (bool *) (v.far + n);
	for (int t = 0; t < n; t++)
		if (!isnan(y[t]))
		{
			v.step[v.m] = t;
			v.foretold[v.m] = false;
			v.apart[v.m] = v.y[v.m] = y[t];
			v.m++;
		}
	leave_near(&v, columns, near);
	if (v.m >= AROUND)
	{
		for (int i = 0; i < v.m; i++)
			v.apart[i] = v.y[i] - median_around(&v, i);
		leave_near(&v, columns, near);
	}
	tnp_free(&model->env, v.y);
	return TNP_OK;
}
