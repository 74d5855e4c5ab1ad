/*
 * drift.h: how far numbers, or a share of rows, have moved, less what chance makes of it.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_DRIFT_H
#define TNP_DRIFT_H

#include <stdint.h>

/* Number, mean and standard deviation of some numbers, in units of 2^unit. */
typedef struct TnpSpread
{
	int64_t		n;
	double		mean,
				sd;
	int			unit;
} TnpSpread;

/*
 * The larger of the difference of the means, in standard deviations before, and of the logarithm of
 * the ratio of the standard deviations, each less three standard errors; infinite where one of them
 * is constant and the other is not the same constant; 0 where either has fewer than TNP_DRIFT_ROWS
 * numbers.
 */
double		tnp_spread_drift(TnpSpread before, TnpSpread after);

/*
 * The difference of the shares that `some` are of n rows, less three standard errors; 0 where
 * either has fewer than TNP_DRIFT_ROWS rows.
 */
double		tnp_share_drift(int64_t some_before, int64_t before, int64_t some_after, int64_t after);

#endif							/* TNP_DRIFT_H */
