/*
 * far.h: numbers that are far from all others, of a column and of the targets (docs/model-format.md
 * section 3, "Far cells" and "Far targets").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_FAR_H
#define TNP_FAR_H

#include <math.h>

#include "engine/features/statistics.h"

/*
 * Say which numbers of a column count as missing, by its m cells v, ascending: those that are
 * `times` as far from the middle as all others, or farther. Returns how many of the m are left.
 */
int64_t		tnp_cells_bind(const double *v, int64_t m, double times, TnpReach *reach);

static inline bool
tnp_is_far(const TnpReach *reach, double x)
{
	return reach->is_set && fabs(x - reach->middle) > reach->farthest;
}

/*
 * Say which targets count as nearer than they are, by the m of the prefix, v, ascending: those that
 * are `times` as far from the middle as all others, or farther.
 */
void		tnp_targets_bind(const double *v, int64_t m, double times, TnpTargetBound *bound);

/*
 * Whether a column of the first m rows tells which of their targets are far: it has two different
 * cells, one in all these rows and in no other.
 */
bool		tnp_targets_foretold(const TnpRows *rows, int64_t m, const TnpTargetBound *bound);

/* The target that a context's row has for the network: y, or what a far one counts as. */
static inline double
tnp_bounded_target(const TnpTargetBound *bound, double y)
{
	if (!bound->is_set || !(fabs(y - bound->middle) > bound->farthest))
		return y;
	return bound->middle + copysign(bound->limit, y - bound->middle);
}

#endif							/* TNP_FAR_H */
