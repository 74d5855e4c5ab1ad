/*
 * rare_mixture.h: components of a mixture that stand for rare targets (docs/model-format.md section
 * 8, "Rare targets").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_RARE_MIXTURE_H
#define TNP_RARE_MIXTURE_H

#include "engine/features/statistics.h"

/*
 * Let those of the first n components of params [3, all], in units of the scaled target, that weigh
 * least stand for the rare targets; n is more than there are of these.
 */
void		tnp_mixture_rare(const TnpRare *rare, int n, int all, double *params);

#endif							/* TNP_RARE_MIXTURE_H */
