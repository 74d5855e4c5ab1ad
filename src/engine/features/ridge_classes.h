/*
 * ridge_classes.h: what a classifier makes of regressions of its classes' indicators
 * (docs/model-format.md section 5, "Ridge of a classifier").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_RIDGE_CLASSES_H
#define TNP_RIDGE_CLASSES_H

#include "engine/features/statistics.h"

/*
 * How sharp the regression's answers are, and whether they are shifted by the classes' shares: what
 * gives the prefix rows' classes, each row left out, the largest probability.
 */
TnpStatus	tnp_ridge_sharpen(const TnpModel *model, const TnpRows *rows, const TnpStats *stats,
							  TnpRidge *ridge, TnpError *error);

/*
 * The C + 2 numbers of one row x [F]; y is its class if it is one of the n0 rows (leave-one-out),
 * else NaN.
 */
void		tnp_ridge_class_features(const TnpModel *model, const TnpStats *stats,
									 const TnpRidge *ridge, const double *x, double y, float *out);

#endif							/* TNP_RIDGE_CLASSES_H */
