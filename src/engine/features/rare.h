/*
 * rare.h: targets of the prefix that are far from all others (docs/model-format.md section 8,
 * "Rare targets").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_RARE_H
#define TNP_RARE_H

#include "engine/features/statistics.h"

/*
 * Find them; needs the targets' center and scale, and the process. Row order changes sums in their
 * last bits.
 */
void		tnp_rare_build(const TnpModel *model, const TnpRows *rows, TnpStats *stats);

#endif							/* TNP_RARE_H */
