/*
 * ridge_fit.h: one ridge regression of the prefix, from which ridge_prune.c and ridge_classes.c
 * begin.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_RIDGE_FIT_H
#define TNP_RIDGE_FIT_H

#include "engine/features/statistics.h"

#define TNP_RIDGE_POLL_ROWS 256	/* rows between two looks at interrupts */

/*
 * Fit one regression, linear or with splines, of the target or of every class's indicator. On
 * failure what was made is freed by tnp_ridge_free.
 */
TnpStatus	tnp_ridge_fit(const TnpModel *model, const TnpRows *rows, const TnpStats *stats,
						  bool splines, TnpRidge *ridge, TnpError *error);

/*
 * What it says of one row x [F]: answers [n_targets]; returns the leverage. y is the row's raw
 * target if it is one of the n0 rows, else NaN; both are then those of the fit without the row.
 */
double		tnp_ridge_answer(const TnpModel *model, const TnpStats *stats, const TnpRidge *ridge,
							 const double *x, double y, double *answer);

#endif							/* TNP_RIDGE_FIT_H */
