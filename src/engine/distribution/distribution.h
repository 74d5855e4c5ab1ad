/*
 * distribution.h: what every kind of distribution provides; inside the engine only.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_DISTRIBUTION_H
#define TNP_DISTRIBUTION_H

#include "engine/tnp.h"

/*
 * Most components of a mixture, buckets of bars, classes, quantiles: the limits of
 * docs/model-format.md section 13.
 */
#define TNP_MAX_COMPONENTS 1024
#define TNP_MAX_BUCKETS 65536
#define TNP_MAX_CLASSES 65536
#define TNP_MAX_QUANTILES 65536

/*
 * Locations are at most LARGEST in absolute value, standard deviations and bucket widths at least
 * SMALLEST: squares and densities then stay within the range of a double.
 */
#define TNP_LARGEST_PARAMETER 1e150
#define TNP_SMALLEST_SCALE 1e-150

/* Weights must sum to one within this; the functions divide by their sum. */
#define TNP_WEIGHT_TOLERANCE 1e-6

/* The questions, as in tnp.h; parameters are checked, y is not NaN, p is within [0, 1]. */
typedef struct TnpDistributionOps
{
	double		(*mean) (const TnpDistribution *d);
	double		(*variance) (const TnpDistribution *d);
	double		(*mode) (const TnpDistribution *d);
	double		(*entropy) (const TnpDistribution *d);
	double		(*pdf) (const TnpDistribution *d, double y);
	double		(*log_pdf) (const TnpDistribution *d, double y);
	double		(*cdf) (const TnpDistribution *d, double y);
	double		(*quantile) (const TnpDistribution *d, double p);
	double		(*crps) (const TnpDistribution *d, double y);
	double		(*draw) (const TnpDistribution *d, const double u[2]);
} TnpDistributionOps;

extern const TnpDistributionOps tnp_gaussian_ops;
extern const TnpDistributionOps tnp_mixture_ops;
extern const TnpDistributionOps tnp_bars_ops;
extern const TnpDistributionOps tnp_classes_ops;
extern const TnpDistributionOps tnp_quantiles_ops;

/* As tnp_draw, for target number `target` of a row: each has random numbers of its own. */
double		tnp_draw_target(const TnpDistribution *d, uint64_t seed, uint64_t draw, uint32_t step,
							int target);

/* The sum of the first n parameters: weights, masses or probabilities. */
double		tnp_total_weight(const TnpDistribution *d);

/* The parameters of component i of a mixture. */
#define WEIGHT(d, i) ((d)->params[i])
#define MEAN(d, i) ((d)->params[(d)->n + (i)])
#define SD(d, i) ((d)->params[2 * (d)->n + (i)])

/* The parts of a mixture that are found by searching: distribution_mixture_search.c. */
double		tnp_mixture_mode(const TnpDistribution *d);
double		tnp_mixture_quantile(const TnpDistribution *d, double p);
double		tnp_mixture_entropy(const TnpDistribution *d);

/*
 * Weighted sums over the components, not divided by the total weight: density, lower and upper
 * tail.
 */
double		tnp_mixture_density(const TnpDistribution *d, double y);
double		tnp_mixture_lower(const TnpDistribution *d, double y);
double		tnp_mixture_upper(const TnpDistribution *d, double y);

#endif							/* TNP_DISTRIBUTION_H */
