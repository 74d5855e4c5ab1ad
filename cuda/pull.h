/*
 * pull.h: the mean of a mixture moved, as in the engine (engine/network/pull.c).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef CUDA_PULL_H
#define CUDA_PULL_H

#include "portable.h"

#define PULL_FARTHEST 3.0		/* of a tilt, in units of the mixture's inverse deviation */
#define PULL_STEPS 40			/* at most; a handful as a rule */
#define PULL_NEAR 1e-12			/* to the mean that is wanted, in deviations */

/*
 * Warp: change the weights of params [3, n] so that the mixture's mean m becomes m + share (wanted
 * - m), or as near as they may come; not at all where wanted is no number. A lane has its
 * components; sums over lanes are always in one order. It is a call, so that it takes few of the
 * registers that attention needs.
 */
DEVICE_CALL void
pull_mean(double *params, double share, double wanted, int n, int lane)
{
	double		mean = 0.0,
				variance = 0.0,
				most = 0.0,
				least = 0.0,
				low,
				high,
				eta = 0.0;

	if (wanted != wanted)
		return;
	params = in_device_memory(params);
	ROLLED
	for (int i = lane; i < n; i += WARP)
		mean += params[i] * params[n + i];
	mean = warp_sum(mean);
	ROLLED
	for (int i = lane; i < n; i += WARP)
	{
		double		from = params[n + i] - mean,
					own = params[2 * n + i];

		variance += params[i] * (own * own + from * from);
		if (params[i] > 0.0)
		{
			most = fmax(most, from);
			least = fmin(least, from);
		}
	}
	variance = warp_sum(variance);
	most = warp_max(most);
	least = -warp_max(-least);
	wanted = share * (wanted - mean);
	high = PULL_FARTHEST / sqrt(variance);
	low = -high;
	/* Newton's steps, which bisection replaces where they leave the bracket */
	ROLLED
	for (int k = 1; k <= PULL_STEPS; k++)
	{
		double		largest = eta * (eta > 0.0 ? most : least),
					all = 0.0,
					sum = 0.0,
					square = 0.0,
					off;

		ROLLED
		for (int i = lane; i < n; i += WARP)
		{
			double		from = params[n + i] - mean,
						weight = params[i] > 0.0 ? params[i] * exp(eta * from - largest) : 0.0;

			all += weight;
			sum += weight * from;
			square += weight * from * from;
		}
		all = warp_sum(all);
		sum = warp_sum(sum) / all;
		square = warp_sum(square) / all - sum * sum;
		off = sum - wanted;
		if (k == PULL_STEPS || fabs(off) <= PULL_NEAR * sqrt(variance))
		{
			ROLLED
			for (int i = lane; i < n; i += WARP)
				params[i] = params[i] > 0.0
					? params[i] * exp(eta * (params[n + i] - mean) - largest) / all : 0.0;
			return;
		}
		if (off < 0.0)
			low = eta;
		else
			high = eta;
		off = eta - off / square;
		eta = off > low && off < high ? off : 0.5 * (low + high);
	}
}

#endif							/* CUDA_PULL_H */
