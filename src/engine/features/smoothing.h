/*
 * smoothing.h: exponential smoothing of a series, without a model.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_SMOOTHING_H
#define TNP_SMOOTHING_H

#include "engine/features/series.h"

typedef enum TnpSmoothForm
{
	TNP_SMOOTH_USUAL,
	TNP_SMOOTH_LIKELY,
	TNP_SMOOTH_LEVEL,
	TNP_SMOOTH_DRIFT,
	TNP_SMOOTH_CYCLES,
	TNP_SMOOTH_FORMS
} TnpSmoothForm;

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
 * form:
 *   TNP_SMOOTH_USUAL    the above; the states before the first step are those that the means of the
 *                       first cycles tell
 *   TNP_SMOOTH_LIKELY   the series as it is, never its logarithms; the states before the first step
 *                       are of maximal likelihood, as the parameters are (section 5.2 there): given
 *                       the parameters errors are linear in them, so that least squares find them
 *   TNP_SMOOTH_LEVEL    the same without a trend, ETS(A, N, A); of logarithms where those are
 *                       likelier
 *   TNP_SMOOTH_DRIFT    the last value and the mean change of a step, "random walk with drift";
 *                       an estimated drift has a variance, too (Hyndman and Athanasopoulos,
 *                       "Forecasting: Principles and Practice", section 5.5, third edition)
 *   TNP_SMOOTH_CYCLES   the same of cycles: the last season, and the mean change of a cycle
 *
 * TNP_BAD_ARGUMENT unless season >= 1, 1 <= until <= n, 1 <= origins[i] <= n, steps[i] >= 1
 * and a known form.
 */
TnpStatus	tnp_smooth(const TnpEnv *env, const TnpSeries *series, TnpSmoothForm form,
					   int pairs, const int32_t *origins, const int32_t *steps,
					   double *params, TnpError *error);

#endif							/* TNP_SMOOTHING_H */
