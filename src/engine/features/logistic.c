/*
 * logistic.c: what a logistic regression of the prefix says about a row, which the row tokeniser of
 * a classifier sees as further numbers of it (docs/model-format.md section 5, "Logistic"). The fit
 * itself is in logistic_fit.c.
 *
 * Regressions of indicators (ridge_classes.c) order the classes, but what their answers are worth
 * as probabilities differs near the borders.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/logistic.h"

#include <math.h>
#include <string.h>

#include "engine/base/cholesky.h"
#include "engine/features/class_counts.h"
#include "engine/features/design.h"
#include "engine/features/column.h"

/* Sizes of weights and shift, and of left_out. */
static size_t
weights_bytes(const TnpLogistic *logistic)
{
	return (size_t) logistic->n_classes * (logistic->design.n + 1) * sizeof(double);
}

static size_t
left_out_bytes(const TnpLogistic *logistic)
{
	return (size_t) logistic->n0 * logistic->n_classes * sizeof(float);
}

bool
tnp_logistic_copy(const TnpEnv *env, const TnpLogistic *from, TnpLogistic *to)
{
	*to = *from;
	if (from->design.n == 0)
		return true;
	to->weights = tnp_alloc(env, 1, weights_bytes(from));
	to->left_out = tnp_alloc(env, 1, left_out_bytes(from));
	if (to->weights == NULL || to->left_out == NULL)
		return false;
	memcpy(to->weights, from->weights, weights_bytes(from));
	memcpy(to->left_out, from->left_out, left_out_bytes(from));
	to->shift = to->weights + (from->shift - from->weights);
	return true;
}

void
tnp_logistic_free(const TnpEnv *env, TnpLogistic *logistic)
{
	tnp_free(env, logistic->weights);
	tnp_free(env, logistic->left_out);
	memset(logistic, 0, sizeof(*logistic));
}

size_t
tnp_logistic_bytes(const TnpLogistic *logistic)
{
	return logistic->design.n == 0 ? 0 : weights_bytes(logistic) + left_out_bytes(logistic);
}

void
tnp_logistic_features(const TnpModel *model, const TnpStats *stats, const double *x, int64_t row,
					  float *out)
{
	const TnpLogistic *logistic = &stats->logistic;
	int			n = logistic->design.n,
				classes = logistic->n_classes;
	double		u[TNP_LARGEST_DESIGN],
				score[TNP_MAX_CLASS_ROOM],
				sum = 0;

	if (row >= 0)
		for (int c = 0; c < classes; c++)
			score[c] = logistic->left_out[row * classes + c];
	else
	{
		tnp_design_row(model, stats, &logistic->design, x, u);
		for (int c = 0; c < classes; c++)
			score[c] = tnp_dot(n, u, logistic->weights + (size_t) c * n) + logistic->shift[c];
		sum = tnp_log_sum(classes, score);
	}
	for (int c = 0; c < stats->class_room; c++)
		out[c] = c < classes ? (float) tnp_soft_clip(score[c] - sum + log(classes),
													 model->config.input_clip) : 0;
	out[stats->class_room] = (float) logistic->quality;
}

double
tnp_logistic_blend_weight(const TnpModel *model, const TnpStats *stats)
{
	double		known = stats->n_classes < 2 ? 0 : stats->logistic.quality / log(stats->n_classes);

	return model->config.logistic_blend_weight * fmin(fmax(known, 0), 1);
}

double
tnp_regressions_loss(const TnpModel *model, const TnpStats *stats)
{
	double		known = stats->logistic.quality;

	for (int k = 0; model->config.encode_x.ridge && k < TNP_RIDGES; k++)
		known = fmax(known, stats->ridge[k].quality);
	return log(stats->n_classes) - known;
}
