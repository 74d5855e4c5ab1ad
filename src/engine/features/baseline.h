/*
 * baseline.h: a ridge regression without a model, what predictions are compared with.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_BASELINE_H
#define TNP_BASELINE_H

#include "engine/tnp.h"

/*
 * Normal distributions of the targets of queries [m, F], by a ridge regression of a context [n, F]:
 * params [m, 2], mean and standard deviation. Its design has a standardized number, an indicator of
 * missing cells, and indicators of the most frequent labels of each feature; the penalty is the one
 * of the largest evidence (penalty.h), and the answer the posterior predictive of that penalty and
 * noise (Bishop, "Pattern Recognition and Machine Learning", 2006, section 3.3): its variance is
 * noise * (1 + 1/n + leverage).
 *
 * TNP_TOO_FEW_ROWS for an empty context, TNP_BAD_SHAPE where the queries have other columns,
 * TNP_BAD_VALUE for an infinite cell or a target that is not finite.
 */
TnpStatus	tnp_baseline_ridge(const TnpEnv *env, const TnpRows *context, const TnpRows *queries,
							   double *params, TnpError *error);

#endif							/* TNP_BASELINE_H */
