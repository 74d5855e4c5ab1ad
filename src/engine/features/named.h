/*
 * named.h: numbers that name groups of rows, as an id does.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_NAMED_H
#define TNP_NAMED_H

#include "engine/features/statistics.h"

/* Whether numbers alone may leave something to be said. */
bool		tnp_labels_wanted(const TnpStats *stats);

/*
 * Which features [F] are numbers that name groups of prefix rows, by what the linear regression of
 * these, or a classifier's logistic one, leaves of their targets, and whether there are some. Needs
 * columns and regressions of stats.
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
