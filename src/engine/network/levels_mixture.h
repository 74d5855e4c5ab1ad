/*
 * levels_mixture.h: components of a mixture on the values that targets have (docs/model-format.md
 * section 8, "Levels").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_LEVELS_MIXTURE_H
#define TNP_LEVELS_MIXTURE_H

#include "engine/features/statistics.h"

/*
 * The first n components of params [3, all], in units of the scaled target, go to the nearest level
 * where they are narrower than `narrow` of the distance from it to the next one, and within four of
 * their deviations of it.
 */
void		tnp_mixture_levels(const TnpTargetLevels *levels, double narrow, int n, int all,
							   double *params);

#endif							/* TNP_LEVELS_MIXTURE_H */
