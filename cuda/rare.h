/*
 * rare.h: components of a mixture that stand for rare targets, as in the engine
 * (engine/network/rare_mixture.c).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef CUDA_RARE_H
#define CUDA_RARE_H

#include "layout.h"
#include "portable.h"

/*
 * Warp: let those of the first n components of params [3, all], in original units, that weigh least
 * stand for the rare targets. A lane changes its own components. It is a call, so that it takes few
 * of the registers that attention needs.
 */
DEVICE_CALL void
put_rare(const CudaRare *rare, double *params, int n, int all, int lane)
{
	const int	count = load_parameter(&rare->n);
	int			taken = -1;

	params = in_device_memory(params);
	ROLLED
	for (int k = 0; k < count; k++)
	{
		const double weight = load_parameter(rare->weight + k);
		double		own = INFINITY,
					least,
					rest;
		int			place = all;

		ROLLED
		for (int i = lane; i < n; i += WARP)
			if (i != taken && params[i] < own)
			{
				own = params[i];
				place = i;
			}
		least = -warp_max(-own);
		/* the first of equal ones */
		taken = -warp_max(own == least ? -place : -all);
		rest = (1.0 - weight) / (1.0 - least);
		ROLLED
		for (int i = lane; i < all; i += WARP)
			params[i] *= rest;
		if (taken % WARP != lane)
			continue;
		params[taken] = weight;
		params[all + taken] = load_parameter(rare->mean + k);
		params[2 * all + taken] = load_parameter(rare->sd + k);
	}
}

#endif							/* CUDA_RARE_H */
