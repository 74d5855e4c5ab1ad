/*
 * ridge.c: two ridge regressions of the prefix, one linear and one with a spline for every numeric
 * column, whose answers the row tokeniser sees as further numbers of a row (docs/model-format.md
 * section 5, "Ridge"). The regressions themselves are in ridge_fit.c; what a classifier makes of
 * them is in ridge_classes.c.
 *
 * Attention would have to invert the covariance of nearly collinear columns; here a Cholesky factor
 * does.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/ridge.h"

#include <math.h>
#include <string.h>

#include "engine/features/ridge_absent.h"
#include "engine/features/ridge_classes.h"
#include "engine/features/ridge_fit.h"
#include "engine/features/column.h"

TnpStatus
tnp_ridge_build(const TnpModel *model, const TnpRows *rows, TnpStats *stats, TnpError *error)
{
	TnpStatus	status = TNP_OK;

	for (int k = 0; status == TNP_OK && k < TNP_RIDGES; k++)
	{
		status = tnp_ridge_fit(model, rows, stats, k > 0, &stats->ridge[k], error);
		if (status == TNP_OK && model->config.encode_x.absent)
			status = tnp_ridge_measure_absent(model, rows, stats, &stats->ridge[k], error);
		if (status == TNP_OK && tnp_classes(model) > 0)
			status = tnp_ridge_sharpen(model, rows, stats, &stats->ridge[k], error);
	}
	return status;
}

/* A copy of `size` bytes, or NULL. */
static void *
duplicate(const TnpEnv *env, const void *from, size_t size)
{
	void	   *p = tnp_alloc(env, 1, size);

	if (p != NULL)
		memcpy(p, from, size);
	return p;
}

bool
tnp_ridge_copy(const TnpEnv *env, const TnpRidge *from, TnpRidge *to)
{
	size_t		n = from->design.n;

	memset(to, 0, sizeof(*to));
	if (n == 0)
		return true;
	*to = *from;
	to->factor = to->absent = NULL;
	to->weights = duplicate(env, from->weights, from->n_targets * (n + 1) * sizeof(double));
	to->shift = to->weights == NULL ? NULL : to->weights + from->n_targets * n;
	to->factor = duplicate(env, from->factor, n * n * sizeof(double));
	if (from->absent != NULL)
		to->absent = duplicate(env, from->absent, from->n_slots * sizeof(double));
	return to->weights != NULL && to->factor != NULL
		&& (to->absent != NULL) == (from->absent != NULL);
}

void
tnp_ridge_free(const TnpEnv *env, TnpRidge *ridge)
{
	tnp_free(env, ridge->weights);
	tnp_free(env, ridge->factor);
	tnp_free(env, ridge->absent);
	memset(ridge, 0, sizeof(*ridge));
}

size_t
tnp_ridge_bytes(const TnpRidge *ridge)
{
	size_t		n = ridge->design.n;

	return n == 0 ? 0 : (n * n + ridge->n_targets * (n + 1)
						 + (ridge->absent != NULL ? ridge->n_slots : 0)) * sizeof(double);
}

/* The three numbers of one regression. */
static void
regression_features_of(const TnpModel *model, const TnpStats *stats, const TnpRidge *ridge,
					   const double *x, double y, float *out)
{
	double		mean,
				leverage = tnp_ridge_answer(model, stats, ridge, x, y, &mean)
		+ tnp_ridge_absent(stats, ridge, x);

	out[0] = (float) tnp_soft_clip(mean, model->config.target_clip);
	out[1] = (float) ridge->log_noise;
	out[2] = (float) (0.5 * log1p(leverage));
}

void
tnp_ridge_features(const TnpModel *model, const TnpStats *stats, const double *x, double y,
				   float *out)
{
	int			width = tnp_ridge_width(model) / TNP_RIDGES;

	for (int k = 0; k < TNP_RIDGES; k++, out += width)
		if (tnp_classes(model) > 0)
			tnp_ridge_class_features(model, stats, &stats->ridge[k], x, y, out);
		else
			regression_features_of(model, stats, &stats->ridge[k], x, y, out);
}
