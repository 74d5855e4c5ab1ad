/*
 * named.h: numbers that name groups of rows, as an id does.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_NAMED_H
#define TNP_NAMED_H

#include "engine/features/statistics.h"

/* Where rows left out are denser than this, numbers alone say next to all of the targets. */
#define TNP_LABELS_WANTED 3.0

/*
 * Which features [F] are numbers that name groups of prefix rows, by what the linear regression of
 * these leaves of their targets, and whether there are some. Needs columns and regressions of
 * stats.
 */
TnpStatus	tnp_columns_name(const TnpModel *model, const TnpStats *stats, const TnpRows *rows,
							 bool *named, bool *some, TnpError *error);

/*
 * Whether what process and regressions say of prefix rows left out is better with labels for such
 * numbers than without, in *help.
 */
TnpStatus	tnp_labels_help(const TnpModel *model, const TnpRows *rows, const TnpStats *without,
							const TnpStats *with, bool *help, TnpError *error);

#endif							/* TNP_NAMED_H */
