/*
 * ridge_prune.c: slots that look like noise are left out (docs/model-format.md section 5,
 * "Pruning").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/ridge.h"

#include <math.h>
#include <string.h>

#include "engine/base/cholesky.h"
#include "engine/features/column.h"
#include "engine/features/ridge_fit.h"
#include "engine/features/ridge_pairs.h"

/* What chance hardly makes of a column of noise, and how many slots stay in any case. */
#define ALWAYS_KEPT 8
#define CHANCE 8.0				/* relevance times rows */
#define DEVIATIONS 2.5			/* of a weight from zero */
#define ENOUGH_ROWS 100.0		/* fewer tell noise less well: the thresholds shrink with them */

/*
 * Whether the weight of entry i is further from zero than the noise would carry it; strictness 0 …
 * 1. Over samples of the noise the weights have the covariance noise A^-1 U'U A^-1 = noise (A^-1 -
 * penalty A^-2), A = U'U + penalty I.
 */
static bool
weighs(const TnpRidge *ridge, int i, double strictness)
{
	double		v[TNP_LARGEST_DESIGN] = {0};
	double		spread;

	v[i] = 1;
	tnp_solve_lower(ridge->factor, ridge->design.n, v);
	tnp_solve_upper(ridge->factor, ridge->design.n, v);
	spread = fmax(v[i] - ridge->penalty * tnp_dot(ridge->design.n, v, v),
				  0) * exp(2 * ridge->log_noise);
	return ridge->weights[i] * ridge->weights[i] > strictness * DEVIATIONS * DEVIATIONS * spread;
}

TnpStatus
tnp_ridge_prune(const TnpModel *model, const TnpRows *rows, TnpStats *stats, TnpError *error)
{
	TnpRidge	ridge;
	bool		heavy[TNP_MOST_SLOTS] = {false};
	double		strictness = fmin(1, (double) stats->n0 / ENOUGH_ROWS);
	int			kept = 0,
				below = model->config.encode_x.prune_below;
	TnpStatus	status;

	if (stats->n_slots <= ALWAYS_KEPT
		|| (below > 0 && stats->n0 >= (int64_t) below * stats->n_slots))
		return TNP_OK;
	memset(&ridge, 0, sizeof(ridge));
	status = tnp_ridge_fit(model, rows, stats, false, &ridge, error);
	for (int i = 0; status == TNP_OK && i < ridge.design.n - 1; i++)
		if (ridge.design.slot[i] >= ALWAYS_KEPT && !heavy[ridge.design.slot[i]])
			heavy[ridge.design.slot[i]] = weighs(&ridge, i, strictness);
	if (status == TNP_OK && model->config.encode_x.pairs)
		status = tnp_ridge_pairs(model, rows, stats, &ridge, heavy, error);
	for (int s = 0; status == TNP_OK && s < stats->n_slots; s++)
		if (s < ALWAYS_KEPT || tnp_column_relevance(tnp_slot_column(stats, s)) *
			(double) stats->n0 > strictness * CHANCE || heavy[s])
			stats->slot[kept++] = stats->slot[s];
	if (status == TNP_OK)
	{
		stats->n_pruned = stats->n_slots - kept;
		stats->n_slots = kept;
	}
	tnp_ridge_free(&model->env, &ridge);
	return status;
}
