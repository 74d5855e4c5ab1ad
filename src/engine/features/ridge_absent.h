/*
 * ridge_absent.h: what a regression of the prefix does not know of a row with missing cells
 * (docs/model-format.md section 5, "Absent cells").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_RIDGE_ABSENT_H
#define TNP_RIDGE_ABSENT_H

#include "engine/features/statistics.h"

/* Measure it for a fitted regression; what was made is freed by tnp_ridge_free. */
TnpStatus	tnp_ridge_measure_absent(const TnpModel *model, const TnpRows *rows,
									 const TnpStats *stats, TnpRidge *ridge, TnpError *error);

/* What the missing cells of a row x [F] add to its leverage; 0 if it was not measured. */
double		tnp_ridge_absent(const TnpStats *stats, const TnpRidge *ridge, const double *x);

#endif							/* TNP_RIDGE_ABSENT_H */
