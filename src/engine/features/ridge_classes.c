/*
 * ridge_classes.c: probabilities from regressions of classes' indicators (docs/model-format.md
 * section 5, "Ridge of a classifier").
 *
 * A regression of indicators orders the classes as a linear discriminant does, but its answers are
 * no probabilities. A softmax of a multiple of them is, and which multiple the rows themselves
 * tell, each answered by the fit without it.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/ridge_classes.h"

#include <math.h>

#include "engine/features/class_counts.h"
#include "engine/features/ridge_fit.h"
#include "engine/features/column.h"

#define MULTIPLES 15			/* 2^-2 … 2^5 in steps of the root of two */
#define SMALLEST_MULTIPLE 0.25
#define WAYS (2 * MULTIPLES)	/* each without and with the classes' shares */

/*
 * Add to sum [WAYS] the log probability of class y under every way, from the regression's answers
 * [n]. Every second multiple is twice the one before, so its exponentials are squares: two rows of
 * them are taken for all. log_share [n], share [n] its exponentials; work [2, n].
 */
static void
add_row(int n, const double *answer, int y, const double *log_share, const double *share,
		double *work, double *sum)
{
	double		most = answer[0],
				multiple = SMALLEST_MULTIPLE;

	for (int c = 1; c < n; c++)
		most = fmax(most, answer[c]);
	for (int k = 0; k < MULTIPLES; k++, multiple *= sqrt(2))
	{
		double	   *e = work + (size_t) (k % 2) * n;
		double		plain = 0,
					blending = 0,
					own = multiple * (answer[y] - most);

		for (int c = 0; c < n; c++)
		{
			e[c] = k < 2 ? exp(multiple * (answer[c] - most)) : e[c] * e[c];
			plain += e[c];
			blending += e[c] * share[c];
		}
		sum[2 * k] += own - log(plain);
		sum[2 * k + 1] += own + log_share[y] - log(blending);
	}
}

/*
 * Sums [WAYS] of the prefix rows' log probabilities, each row left out. log_share [n]; work [4, n].
 */
static TnpStatus
score_ways(const TnpModel *model, const TnpRows *rows, const TnpStats *stats, const TnpRidge *ridge,
		   const double *log_share, double *work, double *sum, TnpError *error)
{
	int			n = ridge->n_targets;
	double	   *answer = work,
			   *share = work + n;

	for (int c = 0; c < n; c++)
		share[c] = exp(log_share[c]);
	for (int64_t r = 0; r < stats->n0; r++)
	{
		if (r % TNP_RIDGE_POLL_ROWS == 0 && tnp_interrupted(&model->env))
			return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		tnp_ridge_answer(model, stats, ridge, rows->x + r * rows->n_features, rows->y[r], answer);
		add_row(n, answer, (int) rows->y[r], log_share, share, work + 2 * n, sum);
	}
	return TNP_OK;
}

TnpStatus
tnp_ridge_sharpen(const TnpModel *model, const TnpRows *rows, const TnpStats *stats,
				  TnpRidge *ridge, TnpError *error)
{
	int			n = ridge->n_targets,
				best = 0;
	double		sum[WAYS] = {0};	/* [multiple, without and with shares] */
	double	   *work = tnp_alloc(&model->env, 5 * (size_t) n, sizeof(double));
	TnpStatus	status;

	if (work == NULL)
		return tnp_no_memory(error);
	tnp_class_log_shares(stats, work);
	status = score_ways(model, rows, stats, ridge, work, work + n, sum, error);
	if (status == TNP_OK)
	{
		for (int way = 1; way < WAYS; way++)
			if (sum[way] > sum[best])
				best = way;
		ridge->multiple = SMALLEST_MULTIPLE * pow(2, 0.5 * (best / 2));
		ridge->quality = sum[best] / stats->n0 + log(n);
		for (int c = 0; c < n; c++)
			ridge->shift[c] = best % 2 ? work[c] : 0;
	}
	tnp_free(&model->env, work);
	return status;
}

void
tnp_ridge_class_features(const TnpModel *model, const TnpStats *stats, const TnpRidge *ridge,
						 const double *x, double y, float *out)
{
	int			n = ridge->n_targets,
				room = stats->class_room;
	double		z[TNP_MAX_CLASS_ROOM];
	double		leverage = tnp_ridge_answer(model, stats, ridge, x, y, z),
				sum;

	for (int c = 0; c < n; c++)
		z[c] = ridge->multiple * z[c] + ridge->shift[c];
	sum = tnp_log_sum(n, z);
	for (int c = 0; c < room; c++)
		out[c] = c < n ? (float) tnp_soft_clip(z[c] - sum + log(n), model->config.input_clip) : 0;
	out[room] = (float) ridge->quality;
	out[room + 1] = (float) (0.5 * log1p(leverage));
}
