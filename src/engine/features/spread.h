/*
 * spread.h: some rows of the prefix, evenly spaced along the targets.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_SPREAD_H
#define TNP_SPREAD_H

#include "engine/features/statistics.h"

/*
 * At most `most` of the n0 rows, in ascending order of their targets: chosen [most]; returns how
 * many. Negative when memory ran out.
 */
int			tnp_spread_rows(const TnpModel *model, const TnpRows *rows, const TnpStats *stats,
							int most, int64_t *chosen);

#endif							/* TNP_SPREAD_H */
