/*
 * smoothing.h: exponential smoothing of a series, without a model.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_SMOOTHING_H
#define TNP_SMOOTHING_H

#include "engine/tnp.h"

/* A series in steps of equal length. */
typedef struct TnpSeries
{
	const double *y;			/* [n], NaN where there is no value */
	int			n;
	int			season;			/* steps of a cycle; 1: none */
	int			until;			/* parameters are chosen by the errors of the first `until` steps */
} TnpSeries;

/*
 * Forecasts of a series by smoothing with a damped trend and an additive season: params [pairs, 2],
 * mean and standard deviation of the value steps[i] after the first origins[i] values; both are NaN
 * where the series tells nothing, or where they are beyond 1e150.
 *
 * The model is ETS(A, Ad, A) of Hyndman, Koehler, Ord and Snyder, "Forecasting with Exponential
 * Smoothing" (2008), in its error-correction form; the variances of its forecasts are those of
 * table 6.2 there. Parameters minimise the squared one-step errors. A positive series is smoothed
 * in logarithms where those have the higher likelihood, and a forecast has the moments of the
 * log-normal then. A season that is not there twice, and a step more, is none.
 *
 * TNP_BAD_ARGUMENT unless season >= 1, 1 <= until <= n, 1 <= origins[i] <= n and steps[i] >= 1.
 */
TnpStatus	tnp_smooth(const TnpEnv *env, const TnpSeries *series, int pairs,
					   const int32_t *origins, const int32_t *steps, double *params,
					   TnpError *error);

#endif							/* TNP_SMOOTHING_H */
