/*
 * directions.h: directions, weighted sums of columns whose sine and cosine say much of what lines
 * leave of the targets (docs/sums.md, "The basis").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_DIRECTIONS_H
#define TNP_DIRECTIONS_H

#include "engine/base/error.h"

#define TNP_DIRECTION_UNIT 1024 /* a weight of 1 */
#define TNP_MOST_DIRECTION_WEIGHT (1 << 24)

/*
 * Find directions of the columns z [n, columns], which are standard scores, 0 where missing. rest
 * [n] are the targets in standard deviations; what no direction has explained is left of them. At
 * most `most` and `room` are found, in at most 2 * most searches; weight [that many, columns] in
 * units of 1 / TNP_DIRECTION_UNIT, such that the sums have the standard deviation 1. Without enough
 * rows none is found.
 */
TnpStatus	tnp_directions_find(const TnpEnv *env, int n, int columns, const double *z,
								double *rest, int most, int room, int64_t *weight, int *found,
								TnpError *error);

#endif							/* TNP_DIRECTIONS_H */
