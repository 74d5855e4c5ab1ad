/*
 * random_walk.h: the last value, or the last cycle, goes on as it changed on average.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_RANDOM_WALK_H
#define TNP_RANDOM_WALK_H

#include "engine/features/series.h"

/*
 * Forecasts of a series by a random walk with drift: params [pairs, 2], mean and standard deviation
 * of the value steps[i] after the first origins[i] values. A value is expected to be that of
 * `cycle` steps before (1: the last one), and a drift per cycle; changes up to series->until tell
 * the drift and the variance. The drift is shrunk by what chance would make of it, so that one
 * within its own standard error is none. After c cycles the variance is that of a change times
 * c (1 + c / m), m the cycles that the drift is learned from (Hyndman and Athanasopoulos,
 * "Forecasting: Principles and Practice", section 5.5, third edition). A gap has the value before
 * it. NaN where the series tells nothing, or more than a double's square can hold.
 *
 * TNP_INTERRUPTED, TNP_NO_MEMORY. Arguments are as tnp_smooth() has checked them; cycle >= 1.
 */
TnpStatus	tnp_random_walk(const TnpEnv *env, const TnpSeries *series, int cycle, int pairs,
							const int32_t *origins, const int32_t *steps, double *params,
							TnpError *error);

#endif							/* TNP_RANDOM_WALK_H */
