/*
 * compare.h: the order of doubles, for qsort().
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_COMPARE_H
#define TNP_COMPARE_H

/* Ascending; none is NaN. */
static inline int
tnp_compare_doubles(const void *a, const void *b)
{
	double		x = *(const double *) a,
				y = *(const double *) b;

	return (x > y) - (x < y);
}

#endif							/* TNP_COMPARE_H */
