/*
 * orient.h: which way round columns and targets are looked at, so that the negative of either is
 * the same table to the network (docs/model-format.md section 5, "Orientation").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_ORIENT_H
#define TNP_ORIENT_H

#include "engine/features/statistics.h"

/*
 * Whether the first target has to be turned, whose centre and scale (more than 0) are known: its
 * skewness is negative then, in steps of 2^-20.
 */
bool		tnp_target_turns(const TnpRows *rows, int64_t n0, double center, double scale);

/*
 * Whether column f has to be turned, a numeric one that is not yet and whose centre and scale are
 * known: its correlation with the targets is negative then, in steps of 2^-20.
 */
bool		tnp_column_turns(const TnpModel *model, const TnpStats *stats, const TnpRows *rows,
							 int f, const TnpColumn *column);

#endif							/* TNP_ORIENT_H */
