/*
 * gate.h: how much of an answer is what the Gaussian process of the prefix says
 * (docs/model-format.md section 8, "process").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_GATE_H
#define TNP_GATE_H

#include "engine/features/statistics.h"

/*
 * The mixture of n components in standardised units, weights, means and deviations [3, n + 1], gets
 * the process's answer as its last one; said [TNP_PROCESS_NUMBERS] are the process's numbers of the
 * query, which sees `behind` rows that the process does not know.
 */
void		tnp_gate_add(const TnpModel *model, const TnpStats *stats, const float *said,
						 int64_t behind, int n, double *params);

/* What the gate reads of the size of the prefix. */
float		tnp_gate_rows(const TnpStats *stats);

/* What it may read of the rows behind the prefix. */
float		tnp_gate_behind(int64_t behind);

/* How much a line that is certain weighs: one more row than those that bore it out may depart. */
double		tnp_gate_certain(const TnpStats *stats);

#endif							/* TNP_GATE_H */
