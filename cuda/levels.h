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
	for (int i = lane; i < n && load_parameter(&levels->n) > 0; i += WARP)
	{
		double		mean = params[all + i],
					level,
					apart = INFINITY;
		const double *at = levels->value,
				   *last = at + load_parameter(&levels->n) - 1;

		ROLLED
		while (at < last && mean - load_parameter(at) > load_parameter(at + 1) - mean)
			at++;
		level = load_parameter(at);
		if (at > levels->value)
			apart = level - load_parameter(at - 1);
		if (at < last)
			apart = fmin(apart, load_parameter(at + 1) - level);
		if (params[2 * all + i] < load_parameter(&levels->narrow) * apart
			&& fabs(mean - level) <= LEVELS_REACH * params[2 * all + i])
			params[all + i] = level;
	}
}

#endif							/* CUDA_LEVELS_H */
