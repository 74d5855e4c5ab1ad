/*
 * head.h: from the states of queries to distributions (docs/model-format.md section 8).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_HEAD_H
#define TNP_HEAD_H

#include "engine/features/statistics.h"
#include "engine/network/scratch.h"

/*
 * Answers of n query states h [n, state width] (overwritten): final norm, head, back to original
 * units. params [n, D, size]. What the head takes a share of (embed.h) lies at said + i * step for
 * answer i; step is tnp_prior_logits_width, or 0 where all n are about the same row.
 */
TnpStatus	tnp_answers(const TnpModel *model, const TnpStats *stats, int64_t n, float *h,
						const float *prior_logits, int step, TnpScratch *work, double *params,
						TnpError *error);

#endif							/* TNP_HEAD_H */
