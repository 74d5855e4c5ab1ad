/*
 * power.h: the power transform of Yeo and Johnson (2000), which makes a column more normal.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_POWER_H
#define TNP_POWER_H

#include <stdint.h>

/*
 * x >= 0: ((x + 1)^power - 1) / power, ln(x + 1) at 0; x < 0: -((1 - x)^(2 - power) - 1) /
 * (2 - power), -ln(1 - x) at 2. power = 1 is the identity.
 */
double		tnp_power_transform(double x, double power);

/*
 * The power of largest likelihood of x [n], n at least 1, not all 0, under a normal distribution of
 * what becomes of them (Yeo and Johnson's equation 3.1). By Brent's bounded search between powers
 * that no value up to 20 times the largest one overflows with.
 */
double		tnp_power_fit(int64_t n, const double *x);

#endif							/* TNP_POWER_H */
