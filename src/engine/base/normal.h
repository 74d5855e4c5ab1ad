/*
 * normal.h: the standard normal distribution in double precision.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_NORMAL_H
#define TNP_NORMAL_H

#define TNP_SQRT1_2 0.70710678118654752440	/* 1 / sqrt(2) */
#define TNP_1_SQRTPI 0.56418958354775628695 /* 1 / sqrt(pi) */
#define TNP_1_SQRT2PI 0.39894228040143267794	/* 1 / sqrt(2 pi) */
#define TNP_LOG_SQRT2PI 0.91893853320467274178	/* ln sqrt(2 pi) */
#define TNP_QUARTILE 0.67448975019608174320 /* the quantile at 0.75 */

/* Density and its logarithm. */
double		tnp_normal_pdf(double z);
double		tnp_normal_log_pdf(double z);

/*
 * Distribution function with full relative accuracy in the lower tail; the upper tail is
 * tnp_normal_cdf(-z).
 */
double		tnp_normal_cdf(double z);

/* Its logarithm, which stays finite where the distribution function underflows. */
double		tnp_normal_log_cdf(double z);

/*
 * The quantile at p in [0, 1], infinite at the ends, NaN outside. Relative error a few units in the
 * last place; exactly antisymmetric about 1/2 and exactly non-decreasing in p.
 */
double		tnp_normal_quantile(double p);

#endif							/* TNP_NORMAL_H */
