/*
 * process_pairs.h: pairs of axes along which alike rows have alike targets (docs/model-format.md
 * section 5, "Process").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_PROCESS_PAIRS_H
#define TNP_PROCESS_PAIRS_H

#include "engine/features/process_points.h"

#define TNP_PAIRS 2				/* that are found at most, each of */
#define TNP_PAIR_TARGETS 2		/* sorts of targets */

typedef struct TnpAxisPair
{
	int			axis[2];
	double		score;			/* how alike targets of alike rows are */
} TnpAxisPair;

/*
 * Those of the highest scores, highest first, of points with these targets, which are in order; how
 * many there are of each sort of targets, or -1 when memory ran out.
 */
int			tnp_pairs_find(const TnpModel *model, const TnpStats *stats, const TnpPoints *points,
						   const double *const y[TNP_PAIR_TARGETS],
						   TnpAxisPair found[TNP_PAIR_TARGETS][TNP_PAIRS]);

#endif							/* TNP_PROCESS_PAIRS_H */
