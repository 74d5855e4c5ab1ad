/*
 * sorted.h: places among sorted doubles.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_SORTED_H
#define TNP_SORTED_H

#include <stdbool.h>
#include <stdint.h>

/* How many of n ascending values are less than x, or not more than it. */
static inline int64_t
tnp_count_below(const double *values, int64_t n, double x, bool or_equal)
{
	int64_t		low = 0,
				high = n;

	while (low < high)
	{
		int64_t		middle = low + (high - low) / 2;

		if (values[middle] < x || (or_equal && values[middle] == x))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* How many of n ascending values are less than x, minus how many are more: 0 in their middle. */
static inline int64_t
tnp_place_from_middle(const double *values, int64_t n, double x)
{
	return tnp_count_below(values, n, x, false) + tnp_count_below(values, n, x, true) - n;
}

#endif							/* TNP_SORTED_H */
