/*
 * row_digest.h: a number for every row of the prefix that stands for what its cells and its target
 * say, whatever its labels are called, its columns' order is and numbers and targets are counted
 * from (docs/model-format.md section 5, "Digests").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_ROW_DIGEST_H
#define TNP_ROW_DIGEST_H

#include "engine/features/statistics.h"

/* Into digest [n0]; the targets' scale is known. Fails without memory or where interrupted. */
TnpStatus	tnp_row_digests(const TnpModel *model, const TnpStats *stats, const TnpRows *rows,
							uint64_t *digest, TnpError *error);

#endif							/* TNP_ROW_DIGEST_H */
