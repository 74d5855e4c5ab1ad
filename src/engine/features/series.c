/*
 * series.c: values of a series that are far from all others.
 *
 * A value may be far from all others, or, where the series wanders, its distance from the median of
 * those around it from all such distances: both by the rule of far targets (far.c). It counts as
 * missing and not as nearer: smoothing, the last value and what is learned from it have use for a
 * value of the right size alone. Growth has no far values, however fast, nor has a level that two
 * values or more have reached: of several at the end the rule could call far as many as it allows,
 * but they are where the series is now.
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

/* The values that are there. */
typedef struct Values
{
	int			m;
	int		   *step;			/* [m] */
	double	   *y,				/* [m] */
			   *apart,			/* [m] what is to be far: the values, or distances of them */
			   *sorted;			/* [m] room */
} Values;

static bool
is_far(const TnpTargetBound *bound, double y)
{
	return tnp_bounded_target(bound, y) != y;
}

/* Where those begin that end the series and are far on one side; m if fewer than two do. */
static int
begin_last_level(const Values *v, const TnpTargetBound *bound)
{
	int			begin = v->m;

	while (begin > 0 && is_far(bound, v->apart[begin - 1])
		   && (v->apart[begin - 1] > bound->middle) == (v->apart[v->m - 1] > bound->middle))
		begin--;
	return v->m - begin > 1 ? begin : v->m;
}

/* Leave out those that are far, and say so in near. */
static void
leave_near(Values *v, double times, double *near)
{
	TnpTargetBound bound;
	int			last,
				left = 0;

	memcpy(v->sorted, v->apart, (size_t) v->m * sizeof(double));
	qsort(v->sorted, (size_t) v->m, sizeof(double), tnp_compare_doubles);
	tnp_targets_bind(v->sorted, v->m, times, &bound);
	last = begin_last_level(v, &bound);
	for (int i = 0; i < v->m; i++)
		if (i < last && is_far(&bound, v->apart[i]))
			near[v->step[i]] = NAN;
		else
		{
			v->step[left] = v->step[i];
			v->y[left++] = v->y[i];
		}
	v->m = left;
}

/* The median of the values around value i; at an end, of those nearest to it. */
static double
median_around(const Values *v, int i)
{
	double		sorted[AROUND];
	int			first = i - AROUND / 2;

	if (first > v->m - AROUND)
		first = v->m - AROUND;
	if (first < 0)
		first = 0;
	memcpy(sorted, v->y + first, sizeof(sorted));
	qsort(sorted, AROUND, sizeof(double), tnp_compare_doubles);
	return sorted[AROUND / 2];
}

TnpStatus
tnp_series_near(const TnpModel *model, const double *y, int n, double *near, TnpError *error)
{
	const TnpConfig *c = &model->config;
	Values		v = {.m = 0};

	if (n > 0)
		memcpy(near, y, (size_t) n * sizeof(double));
	if (n < AROUND || c->far_targets == 0 || c->n_targets != 1)
		return TNP_OK;
	v.y = tnp_alloc(&model->env, (size_t) n, 3 * sizeof(double) + sizeof(int));
	if (v.y == NULL)
		return tnp_no_memory(error);
	v.apart = v.y + n;
	v.sorted = v.apart + n;
	v.step = (int *) (v.sorted + n);
	for (int t = 0; t < n; t++)
		if (!isnan(y[t]))
		{
			v.step[v.m] = t;
			v.apart[v.m] = v.y[v.m] = y[t];
			v.m++;
		}
	leave_near(&v, c->far_targets, near);
	if (v.m >= AROUND)
	{
		for (int i = 0; i < v.m; i++)
			v.apart[i] = v.y[i] - median_around(&v, i);
		leave_near(&v, c->far_targets, near);
	}
	tnp_free(&model->env, v.y);
	return TNP_OK;
}
