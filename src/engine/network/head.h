/*
 * head.h: from the states of queries to distributions (docs/model-format.md section 8).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_HEAD_H
#define TNP_HEAD_H

#include "engine/features/statistics.h"
#include "engine/network/scratch.h"

/* What answers take beside the states of queries: for answer i that which lies i steps further. */
typedef struct TnpBeside
{
	const float *prior_logits;	/* what the head takes a share of (embed.h) */
	int			step;			/* tnp_prior_logits_width, or 0 where all are about the same row */
	/* rows that the query sees and that neither statistics nor its process know */
	const int64_t *behind;
	int			behind_step;	/* 1, or 0 where all see the same */
} TnpBeside;

/*
 * Answers of n query states h [n, state width] (overwritten): final norm, head, back to original
 * units. params [n, D, size].
 */
TnpStatus	tnp_answers(const TnpModel *model, const TnpStats *stats, int64_t n, float *h,
						const TnpBeside *beside, TnpScratch *work, double *params,
						TnpError *error);

#endif							/* TNP_HEAD_H */
