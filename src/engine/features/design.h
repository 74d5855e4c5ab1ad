/*
 * design.h: a row as regressions see it: the design of docs/model-format.md section 5, "Ridge".
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_DESIGN_H
#define TNP_DESIGN_H

#include "engine/features/statistics.h"

/*
 * Choose the entries: slots in order, as long as all entries of a slot fit beside the intercept.
 * Needs the slots and column cards of stats.
 */
void		tnp_design_choose(const TnpStats *stats, bool splines, TnpDesign *design);

/* The design's row u [n] of a raw row x [F]; the intercept is its last entry. */
void		tnp_design_row(const TnpModel *model, const TnpStats *stats, const TnpDesign *design,
						   const double *x, double *u);

#endif							/* TNP_DESIGN_H */
