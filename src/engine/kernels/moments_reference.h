/*
 * moments_reference.h: features of one value, and the operations of moments.h in plain C.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_MOMENTS_REFERENCE_H
#define TNP_MOMENTS_REFERENCE_H

#include "engine/kernels/moments.h"

extern const TnpMoments tnp_reference_moments;

/* The squashed standard score of a number that is not NaN. */
double		tnp_squash(double x, double center, double scale);

/* sin(k theta), k = 1 … n, of the angle that belongs to a squashed value. */
void		tnp_waves(double z, int n, double *out);

#endif							/* TNP_MOMENTS_REFERENCE_H */
