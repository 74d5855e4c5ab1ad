/*
 * ridge.h: what two regressions of the prefix say about a row (docs/model-format.md section 5,
 * "Ridge", "Ridge of a classifier").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_RIDGE_H
#define TNP_RIDGE_H

#include "engine/features/statistics.h"

/*
 * Leave out the slots that look like noise (docs/model-format.md section 5, "Pruning"); the others
 * move up. Needs the slots and column cards of stats, before tnp_ridge_build.
 */
TnpStatus	tnp_ridge_prune(const TnpModel *model, const TnpRows *rows, TnpStats *stats,
							TnpError *error);

/*
 * Fit both regressions; needs the slots and column cards of stats. On failure what was made is
 * freed with stats.
 */
TnpStatus	tnp_ridge_build(const TnpModel *model, const TnpRows *rows, TnpStats *stats,
							TnpError *error);

/* Copies that share nothing; false when memory ran out: `to` can be freed. */
bool		tnp_ridge_copy(const TnpEnv *env, const TnpRidge *from, TnpRidge *to);
void		tnp_ridge_free(const TnpEnv *env, TnpRidge *ridge);
size_t		tnp_ridge_bytes(const TnpRidge *ridge);

/*
 * The tnp_ridge_width numbers of one row x [F]; y is its raw target if it is one of the n0 rows
 * (leave-one-out), else NaN.
 */
void		tnp_ridge_features(const TnpModel *model, const TnpStats *stats, const double *x,
							   double y, float *out);

#endif							/* TNP_RIDGE_H */
