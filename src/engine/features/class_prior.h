/*
 * class_prior.h: what a classifier's head takes a share of besides the network: the logistic
 * regression, a process and trees of the prefix (docs/model-format.md section 8, "classes").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_CLASS_PRIOR_H
#define TNP_CLASS_PRIOR_H

#include "engine/features/statistics.h"

/* Whether it takes more than what the features of a row already say. */
bool		tnp_prior_is_apart(const TnpModel *model, const TnpStats *stats);

/* How much of a row's logits all of these say, where trees speak or are silent: 0 … 1. */
double		tnp_prior_share(const TnpModel *model, const TnpStats *stats, bool trees_speak);

/*
 * What they say of a row x [F]: said [tnp_prior_logits_width] holds the C clipped logits of the
 * logistic regression, which are overwritten; the number behind them becomes 1 where trees speak,
 * else 0.
 */
void		tnp_prior_logits(const TnpModel *model, const TnpStats *stats, const double *x,
							 float *said);

#endif							/* TNP_CLASS_PRIOR_H */
