/*
 * tokens.h: path B of the row tokeniser: a small transformer over the cells of one row
 * (docs/model-format.md section 5).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_TOKENS_H
#define TNP_TOKENS_H

#include "engine/network/scratch.h"

/*
 * Add path B of n rows to y [n, d]; cells [n_slots, cell width] of every row, `stride` floats from
 * one row to the next.
 */
void		tnp_encode_tokens(const TnpModel *model, int n, int n_slots, const float *cells,
							  int stride, TnpTokenWork *work, float *y);

#endif							/* TNP_TOKENS_H */
