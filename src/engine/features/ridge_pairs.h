/*
 * ridge_pairs.h: columns that say something together (docs/model-format.md section 5, "Pairs").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_RIDGE_PAIRS_H
#define TNP_RIDGE_PAIRS_H

#include "engine/features/statistics.h"

/*
 * Set said [n_slots] of the numeric slots that, in a product with another, say something of what
 * the linear regression leaves of the targets: beyond what chance makes of so many pairs. Others
 * stay as they are.
 */
TnpStatus	tnp_ridge_pairs(const TnpModel *model, const TnpRows *rows, const TnpStats *stats,
							const TnpRidge *ridge, bool *said, TnpError *error);

#endif							/* TNP_RIDGE_PAIRS_H */
