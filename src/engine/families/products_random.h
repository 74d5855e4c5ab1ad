/*
 * products_random.h: the positive random features of the softmax kernel (docs/families.md,
 * "Random-feature attention"; Choromanski et al. 2021, lemma 1).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_PRODUCTS_RANDOM_H
#define TNP_PRODUCTS_RANDOM_H

#include "engine/kernels/kernels.h"

/* What the features of a layer's heads are made of. */
typedef struct TnpRandomFeatures
{
	const float *omega;			/* [features, width] */
	TnpLinear	project;		/* omega times width^(-1/4), in units of log 2 */
} TnpRandomFeatures;

/* A number of such a projection. */
float		tnp_random_weight(float omega, int width);

/*
 * to [n, features] = exp(omega v - |v|^2 / 2) / sqrt(features) of heads v = u width^(-1/4), u [n,
 * width]. What a float does not hold is infinite. The features of a head are its own, whatever n.
 */
void		tnp_random_features(const TnpKernels *kernels, const TnpRandomFeatures *features, int n,
								const float *u, float *to);

#endif							/* TNP_PRODUCTS_RANDOM_H */
