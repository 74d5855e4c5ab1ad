/*
 * process.h: what a Gaussian process of the prefix says about a row (docs/model-format.md section
 * 5, "Process").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_PROCESS_H
#define TNP_PROCESS_H

#include "engine/features/statistics.h"

/*
 * Fit it; needs the slots and columns of stats. On failure what was made is freed with stats.
 */
TnpStatus	tnp_process_build(const TnpModel *model, const TnpRows *rows, TnpStats *stats,
							  TnpError *error);

/* A copy that shares nothing; false when memory ran out: `to` can be freed. */
bool		tnp_process_copy(const TnpEnv *env, const TnpProcess *from, TnpProcess *to);
void		tnp_process_free(const TnpEnv *env, TnpProcess *process);
size_t		tnp_process_bytes(const TnpProcess *process);

/*
 * The TNP_PROCESS_NUMBERS numbers of one row x [F]; row is its place if it is one of the n0 rows
 * (leave-one-out), else -1.
 */
void		tnp_process_features(const TnpModel *model, const TnpStats *stats, const double *x,
								 int64_t row, float *out);

#endif							/* TNP_PROCESS_H */
