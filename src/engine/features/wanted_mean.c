/*
 * wanted_mean.c: what the mean of a mixture moves to, and how far: boosted trees, and where targets
 * have few values the process and the additive regression (docs/model-format.md section 8, "Trees
 * of numbers", "Few values").
 *
 * The gate to the process's answer goes by densities. Where targets are counts or grades a network
 * that has put its components on them is far ahead in these, and the process counts for nothing;
 * but it may know the mean better.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/wanted_mean.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/compare.h"
#include "engine/base/error.h"
#include "engine/features/column.h"
#include "engine/features/ridge_fit.h"
#include "engine/features/trees.h"

#define LEAST_ROWS 256			/* of a prefix: with fewer the regressions' own fit misleads */
#define ROWS_OF_VALUE 8			/* on average, or more, of few values */
#define MOST_VALUES 16			/* with more a mixture has no peaks on them: the gate is right */
#define SPLINES 1				/* the regression with these of the two */
#define SPLINES_FROM_PROCESS (-3)	/* its mean, in the numbers of a row before the process's */
#define LEAST_APART 1e-12		/* of two opinions: a share of their squares */

/* How many different targets the prefix has; 0 when memory ran out. */
static int64_t
count_values(const TnpEnv *env, const TnpRows *rows, int64_t n)
{
	double	   *y = tnp_alloc(env, n, sizeof(double));
	int64_t		found = 1;

	if (y == NULL)
		return 0;
	memcpy(y, rows->y, n * sizeof(double));
	qsort(y, n, sizeof(double), tnp_compare_doubles);
	for (int64_t i = 1; i < n; i++)
		found += y[i] != y[i - 1];
	tnp_free(env, y);
	return found;
}

/* Sums of products of what the process and the regression say of rows left out, and of targets. */
typedef struct Products
{
	double		pp,
				pr,
				rr,
				py,
				ry;
} Products;

/* The squared error, up to a constant, of a sum of the two opinions with these weights. */
static double
lost(const Products *s, double process, double ridge)
{
	return process * process * s->pp + 2 * process * ridge * s->pr + ridge * ridge * s->rr
		- 2 * process * s->py - 2 * ridge * s->ry;
}

static double
within_unit(double x)
{
	return fmin(fmax(x, 0), 1);
}

/* Take these weights if they lose less. */
static void
consider(const Products *s, double process, double ridge, TnpWantedMean *best)
{
	if (lost(s, process, ridge) < lost(s, best->process, best->ridge))
	{
		best->process = process;
		best->ridge = ridge;
	}
}

/* The weights of the least error which are not negative and at most 1 together. */
static void
choose_weights(const Products *s, TnpWantedMean *best)
{
	double		apart = s->pp - 2 * s->pr + s->rr,
				determinant = s->pp * s->rr - s->pr * s->pr;

	best->process = best->ridge = 0;
	if (s->pp > 0)
		consider(s, within_unit(s->py / s->pp), 0, best);
	if (s->rr > 0)
		consider(s, 0, within_unit(s->ry / s->rr), best);
	if (apart > LEAST_APART * (s->pp + s->rr))
	{
		double		process = within_unit((s->py - s->ry - s->pr + s->rr) / apart);

		consider(s, process, 1 - process, best);
	}
	if (determinant > LEAST_APART * s->pp * s->rr)
	{
		double		process = (s->py * s->rr - s->ry * s->pr) / determinant,
					ridge = (s->ry * s->pp - s->py * s->pr) / determinant;

		if (process >= 0 && ridge >= 0 && process + ridge <= 1)
			consider(s, process, ridge, best);
	}
}

static TnpStatus
sum_products(const TnpModel *model, const TnpRows *rows, const TnpStats *stats, Products *s,
			 TnpError *error)
{
	double		knee = model->config.target_clip;

	memset(s, 0, sizeof(*s));
	for (int64_t i = 0; i < stats->n0; i++)
	{
		double		y = tnp_clipped_target(model, stats, rows->y[i]),
					p = stats->process.left_out[2 * i],
					r;

		if (i % TNP_RIDGE_POLL_ROWS == 0 && tnp_interrupted(&model->env))
			return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		tnp_ridge_answer(model, stats, &stats->ridge[SPLINES], rows->x + i * rows->n_features,
						 rows->y[i], &r);
		r = tnp_soft_clip(r, knee);
		s->pp += p * p;
		s->pr += p * r;
		s->rr += r * r;
		s->py += p * y;
		s->ry += r * y;
	}
	return TNP_OK;
}

TnpStatus
tnp_wanted_mean_build(const TnpModel *model, const TnpRows *rows, TnpStats *stats, TnpError *error)
{
	TnpWantedMean *w = &stats->wanted_mean;
	double		few = model->config.few_values,
				trees = stats->trees.share;
	int64_t		values;
	Products	s;
	TnpStatus	status;

	*w = (TnpWantedMean) {.share = trees, .trees = 1};
	if (stats->process.is_certain)
	{
		w->share = 0;
		return TNP_OK;
	}
	if (few == 0 || stats->n0 < LEAST_ROWS || stats->n_slots == 0)
		return TNP_OK;
	values = count_values(&model->env, rows, stats->n0);
	if (values == 0)
		return tnp_no_memory(error);
	if (values == 1 || values > MOST_VALUES || values > stats->n0 / ROWS_OF_VALUE)
		return TNP_OK;
	status = sum_products(model, rows, stats, &s, error);
	if (status != TNP_OK)
		return status;
	choose_weights(&s, w);
	/* a step to the trees and one to the others from there is one to this sum */
	w->share = 1 - (1 - trees) * (1 - few);
	w->trees = (1 - few) * trees / w->share;
	w->process *= few / w->share;
	w->ridge *= few / w->share;
	return TNP_OK;
}

double
tnp_wanted_mean(const TnpStats *stats, const double *x, const float *numbers)
{
	const TnpWantedMean *w = &stats->wanted_mean;
	/* also where trees have no weight: what they are silent about is a row of a new group */
	double		sum = stats->trees.share > 0 ? w->trees * tnp_trees_number(stats, x) : 0;

	if (w->process > 0)
		sum += w->process * numbers[0];
	if (w->ridge > 0)
		sum += w->ridge * numbers[SPLINES_FROM_PROCESS];
	return sum;
}
