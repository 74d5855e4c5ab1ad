/*
 * stats.h: makes the statistics of the leading rows of a context (docs/model-format.md section 3).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_STATS_H
#define TNP_STATS_H

#include "engine/features/statistics.h"

/* Statistics of the first n0 rows; tnp_stats_free is safe after failure and on zeroed memory. */
TnpStatus	tnp_stats_build(const TnpModel *model, const TnpRows *rows, int64_t n0, TnpStats *stats,
							TnpError *error);
void		tnp_stats_free(const TnpEnv *env, TnpStats *stats);
size_t		tnp_stats_bytes(const TnpStats *stats);

#endif							/* TNP_STATS_H */
