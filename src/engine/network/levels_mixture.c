/*
 * levels_mixture.c: components of a mixture on the values that targets have (docs/model-format.md
 * section 8, "Levels").
 *
 * A network that puts narrow components on the values of a count or a grade knows that there are
 * such, and misses them by about as much as these are wide: by the more the more rows beyond those
 * of its training it sees. Where they are is known exactly. A component farther off says something
 * else: rows behind the prefix, or those of a chain, may have values of their own.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/network/levels_mixture.h"

#include <math.h>

#define REACH 4.0				/* deviations of a component to its level, at most */

void
tnp_mixture_levels(const TnpTargetLevels *levels, double narrow, int n, int all, double *params)
{
	const double *value = levels->value;

	for (int i = 0; i < n && levels->n > 0; i++)
	{
		double	   *mean = &params[all + i],
					apart = INFINITY;
		int			k = 0;

		while (k + 1 < levels->n && *mean - value[k] > value[k + 1] - *mean)
			k++;
		if (k > 0)
			apart = value[k] - value[k - 1];
		if (k + 1 < levels->n)
			apart = fmin(apart, value[k + 1] - value[k]);
		if (params[2 * all + i] < narrow * apart
			&& fabs(*mean - value[k]) <= REACH * params[2 * all + i])
			*mean = value[k];
	}
}
