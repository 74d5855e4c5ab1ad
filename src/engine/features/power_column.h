/*
 * power_column.h: the scaling "power" of a column: standardised, made normal by a power transform,
 * outliers bounded (docs/families.md, "The set encoder").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_POWER_COLUMN_H
#define TNP_POWER_COLUMN_H

#include "engine/features/statistics.h"

/* Fit to the known numbers x [n] of a column whose mean and deviation are known; x is lost. */
void		tnp_power_column_fit(TnpColumn *column, int64_t n, double *x);

/* What becomes of a number (after tnp_column_value); not clipped yet. */
double		tnp_power_column_scale(const TnpColumn *column, double value);

#endif							/* TNP_POWER_COLUMN_H */
