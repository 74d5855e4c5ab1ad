/*
 * ridge_fit.c: one ridge regression of the prefix (docs/model-format.md section 5, "Ridge"): its
 * sums, its answers. What is solved, and with which penalty, is in penalty.c.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/ridge_fit.h"

#include <math.h>
#include <string.h>

#include "engine/base/cholesky.h"
#include "engine/features/design.h"
#include "engine/features/column.h"
#include "engine/features/penalty.h"

#define SMALLEST_REST 1e-6		/* of one minus the leverage of a prefix row */

/* ---- the fit --------------------------------------------------------------------------------- */

/* Memory for the fit of one regression. */
typedef struct RidgeWork
{
	double	   *gram;			/* [n, n] U'U, lower triangle */
	double	   *moment;			/* [n_targets, n] U'y */
	double	   *factor;			/* [n, n] of one penalty */
	double	   *weights;		/* [n_targets, n] */
	double		square;			/* sum of y'y over the targets */
} RidgeWork;

/*
 * The indicator of a class lacks its share in the mean: y = [class] - share. What has been summed
 * of the indicators alone becomes that of such targets; the last row of the gram matrix holds the
 * sums of the design's entries.
 */
static void
centre_indicators(const TnpStats *stats, const TnpRidge *ridge, RidgeWork *w)
{
	const double *sums = w->gram + (size_t) (ridge->design.n - 1) * ridge->design.n;

	for (int c = 0; c < ridge->n_targets; c++)
	{
		double		share = stats->class_blend_weight[c];

		for (int i = 0; i < ridge->design.n; i++)
			w->moment[(size_t) c * ridge->design.n + i] -= share * sums[i];
		w->square += stats->n0 * share * (1 - share);
	}
}

/* Sums over the prefix. */
static TnpStatus
sum_rows(const TnpModel *model, const TnpRows *rows, const TnpStats *stats, const TnpRidge *ridge,
		 RidgeWork *w, TnpError *error)
{
	bool		classes = tnp_classes(model) > 0;
	double		u[TNP_LARGEST_DESIGN];
	int			n = ridge->design.n;

	for (int64_t r = 0; r < stats->n0; r++)
	{
		double		y = classes ? 1 : tnp_clipped_target(model, stats, rows->y[r]);
		double	   *moment = w->moment + (classes ? (size_t) rows->y[r] * n : 0);

		if (r % TNP_RIDGE_POLL_ROWS == 0 && tnp_interrupted(&model->env))
			return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		tnp_design_row(model, stats, &ridge->design, rows->x + r * rows->n_features, u);
		tnp_equations_add(n, u, y, w->gram, moment);
		if (!classes)
			w->square += y * y;
	}
	if (classes)
		centre_indicators(stats, ridge, w);
	return TNP_OK;
}

TnpStatus
tnp_ridge_fit(const TnpModel *model, const TnpRows *rows, const TnpStats *stats, bool splines,
			  TnpRidge *ridge, TnpError *error)
{
	const TnpEnv *env = &model->env;
	RidgeWork	w = {NULL, NULL, NULL, NULL, 0};
	TnpNormalEquations sums;
	TnpStatus	status;
	double		noise = 1;
	int			n,
				targets = tnp_classes(model) > 0 ? stats->n_classes : 1;

	tnp_design_choose(stats, splines, &ridge->design);
	n = ridge->design.n;
	ridge->n_targets = targets;
	ridge->factor = tnp_alloc_zero(env, (size_t) n * n, sizeof(double));
	ridge->weights = tnp_alloc_zero(env, (size_t) targets * (n + 1), sizeof(double));
	w.gram = tnp_alloc_zero(env, (size_t) n * n, sizeof(double));
	w.factor = tnp_alloc_zero(env, (size_t) n * n, sizeof(double));
	w.moment = tnp_alloc_zero(env, (size_t) targets * n, sizeof(double));
	w.weights = tnp_alloc_zero(env, (size_t) targets * n, sizeof(double));
	if (ridge->factor == NULL || ridge->weights == NULL || w.gram == NULL || w.factor == NULL
		|| w.moment == NULL || w.weights == NULL)
		status = tnp_no_memory(error);
	else
		status = sum_rows(model, rows, stats, ridge, &w, error);
	if (status == TNP_OK)
	{
		ridge->shift = ridge->weights + (size_t) targets * n;
		sums = (TnpNormalEquations){.rows = stats->n0,
									.smallest = TNP_SMALLEST_PENALTY,
									.n = n,
									.n_targets = targets,
									.gram = w.gram,
									.moment = w.moment,
									.square = w.square,
									.try_factor = w.factor,
									.try_weights = w.weights};
		ridge->penalty = tnp_choose_penalty(&sums, ridge->weights, ridge->factor, &noise);
		ridge->log_noise = 0.5 * log(noise);
	}
	tnp_free(env, w.gram);
	tnp_free(env, w.factor);
	tnp_free(env, w.moment);
	tnp_free(env, w.weights);
	return status;
}

/* ---- answers --------------------------------------------------------------------------------- */

double
tnp_ridge_answer(const TnpModel *model, const TnpStats *stats, const TnpRidge *ridge,
				 const double *x, double y, double *answer)
{
	bool		classes = tnp_classes(model) > 0;
	double		u[TNP_LARGEST_DESIGN];
	double		leverage,
				rest;

	tnp_design_row(model, stats, &ridge->design, x, u);
	for (int t = 0; t < ridge->n_targets; t++)
		answer[t] = tnp_dot(ridge->design.n, u, ridge->weights + (size_t) t * ridge->design.n);
	tnp_solve_lower(ridge->factor, ridge->design.n, u);
	leverage = tnp_dot(ridge->design.n, u, u);
	if (isnan(y))
		return leverage;
	/* without its own row (Sherman-Morrison): residual and leverage grow by 1 / (1 - leverage) */
	rest = fmax(1 - leverage, SMALLEST_REST);
	for (int t = 0; t < ridge->n_targets; t++)
	{
		double		own = classes ? (y == t) - stats->class_blend_weight[t]
			: tnp_clipped_target(model, stats, y);

		answer[t] = own - (own - answer[t]) / rest;
	}
	return leverage / rest;
}
