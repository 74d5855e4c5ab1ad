/*
 * logistic.h: what a logistic regression of the prefix says about a row of a classifier
 * (docs/model-format.md section 5, "Logistic").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_LOGISTIC_H
#define TNP_LOGISTIC_H

#include "engine/features/statistics.h"

/*
 * Fit it; needs the slots and column cards of stats. On failure what was made is freed by
 * tnp_logistic_free.
 */
TnpStatus	tnp_logistic_fit(const TnpModel *model, const TnpRows *rows, const TnpStats *stats,
							 TnpLogistic *logistic, TnpError *error);

/* A copy that shares nothing; false when memory ran out: `to` can be freed. */
bool		tnp_logistic_copy(const TnpEnv *env, const TnpLogistic *from, TnpLogistic *to);
void		tnp_logistic_free(const TnpEnv *env, TnpLogistic *logistic);
size_t		tnp_logistic_bytes(const TnpLogistic *logistic);

/*
 * The C + 1 numbers of one row x [F]; row is its place if it is one of the n0 rows (leave-one-out),
 * else -1.
 */
void		tnp_logistic_features(const TnpModel *model, const TnpStats *stats, const double *x,
								  int64_t row, float *out);

/*
 * How much of a row's logits is what the regression says (section 8): the model's share, times how
 * much of what there is to know the regression knows, 0 … 1. 0 for models whose head takes none.
 */
double		tnp_logistic_blend_weight(const TnpModel *model, const TnpStats *stats);

/* What rows left out lose on average, in nats, by the best of the regressions of a classifier. */
double		tnp_regressions_loss(const TnpModel *model, const TnpStats *stats);

#endif							/* TNP_LOGISTIC_H */
