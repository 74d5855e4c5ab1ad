/*
 * levels.h: components of a mixture on the values that targets have, as in the engine
 * (engine/network/levels_mixture.c).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef CUDA_LEVELS_H
#define CUDA_LEVELS_H

#include "layout.h"
#include "portable.h"

#define LEVELS_REACH 4.0		/* deviations of a component to its level, at most */

/*
 * Warp: narrow ones of the first n components of params [3, all], in original units, go to the
 * nearest level within reach. A lane changes its own components. It is a call, as put_rare is.
 */
DEVICE_CALL void
put_levels(const CudaLevels *levels, double *params, int n, int all, int lane)
{
	params = in_device_memory(params);
	ROLLED
	for (int i = lane; i < n && levels->n > 0; i += WARP)
	{
		double		mean = params[all + i],
					apart = INFINITY;
		int			k = 0;

		ROLLED
		while (k + 1 < levels->n && mean - levels->value[k] > levels->value[k + 1] - mean)
			k++;
		if (k > 0)
			apart = levels->value[k] - levels->value[k - 1];
		if (k + 1 < levels->n && levels->value[k + 1] - levels->value[k] < apart)
			apart = levels->value[k + 1] - levels->value[k];
		if (params[2 * all + i] < levels->narrow * apart
			&& fabs(mean - levels->value[k]) <= LEVELS_REACH * params[2 * all + i])
			params[all + i] = levels->value[k];
	}
}

#endif							/* CUDA_LEVELS_H */
