/*
 * wanted_mean.h: what the mean of a mixture moves to, and how far (docs/model-format.md section 8,
 * "Trees of numbers", "Few values").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_WANTED_MEAN_H
#define TNP_WANTED_MEAN_H

#include "engine/features/statistics.h"

/* Decide; needs the regressions, the process and the trees of stats. */
TnpStatus	tnp_wanted_mean_build(const TnpModel *model, const TnpRows *rows, TnpStats *stats,
								  TnpError *error);

/*
 * What the mean of the answer to a row x [F] moves to, in units of the scaled target; NaN of a row
 * that trees may not speak of, where they do. numbers: what the process says of the row, behind
 * what the regressions say, as the row's features have it.
 */
double		tnp_wanted_mean(const TnpStats *stats, const double *x, const float *numbers);

#endif							/* TNP_WANTED_MEAN_H */
