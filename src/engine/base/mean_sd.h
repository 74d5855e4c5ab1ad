/*
 * mean_sd.h: mean and standard deviation of numbers of any size.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_MEAN_SD_H
#define TNP_MEAN_SD_H

#include <stdint.h>

/*
 * Mean and population standard deviation of n values, `step` apart; where a sum or a square has
 * left the range of a double, in a unit near the largest value. Both are 0 where n is.
 */
void		tnp_mean_and_sd(const double *v, int64_t n, int step, double *mean, double *sd);

#endif							/* TNP_MEAN_SD_H */
