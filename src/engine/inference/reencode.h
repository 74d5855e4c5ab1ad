/*
 * reencode.h: joint questions to families that answer for themselves: each row is put into the
 * context, which is encoded again (docs/model-format.md section 9 with K = 1).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_REENCODE_H
#define TNP_REENCODE_H

#include "engine/inference/encode.h"

/* tnp_sample, whose arguments have been checked. */
TnpStatus	tnp_sample_by_encoding(const TnpEncoding *e, const TnpRows *queries, uint64_t seed,
								   uint64_t first_draw, int64_t draws, double *y,
								   TnpError *error);

/* Conditional log densities [n] of rows place[0 … n - 1], each given those before it. */
TnpStatus	tnp_score_by_encoding(const TnpEncoding *e, const TnpRows *rows, const int64_t *place,
								  double *steps, TnpError *error);

#endif							/* TNP_REENCODE_H */
