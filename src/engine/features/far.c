/*
 * far.c: numbers of a column that are far from all others (docs/model-format.md section 3, "Far
 * cells").
 *
 * -999 that stands for nothing, or a decimal point in the wrong place, would make all other cells
 * of a column nearly equal. What such a cell says is what a missing one says.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/far.h"

#include <math.h>

#define ROWS_OF_FAR 8			/* at most one cell of so many is far, */
#define FEW_DIFFERENT 2			/* with so many values at most, */
#define ROWS_OF_MISTAKE 64		/* or one of so many: else they are a group of their own */

int64_t
tnp_column_bind(const double *v, int64_t m, double times, TnpColumn *column)
{
	int64_t		low = 0,
				high = m - 1,
				left = m,
				equal = 0,
				different = 0;
	double		middle;

	if (m < ROWS_OF_FAR)
		return m;
	middle = 0.5 * v[(m - 1) / 2] + 0.5 * v[m / 2];
	for (int64_t i = 0; i < m; i++)
		equal += v[i] == middle;
	/* events among nothing are no mistakes */
	if (2 * equal > m)
		return m;
	/* from the farthest cell inwards */
	for (int64_t k = 1; k <= m / ROWS_OF_FAR; k++)
	{
		double		outer = fmax(middle - v[low], v[high] - middle),
					inner;

		if (middle - v[low] == outer)
		{
			different += low == 0 || v[low] != v[low - 1];
			low++;
		}
		else
		{
			different += high == m - 1 || v[high] != v[high + 1];
			high--;
		}
		inner = fmax(middle - v[low], v[high] - middle);
		if (inner > 0 && outer >= times * inner
			&& (different <= FEW_DIFFERENT || k <= m / ROWS_OF_MISTAKE))
		{
			left = m - k;
			column->bounded = true;
			column->middle = middle;
			column->farthest = sqrt(inner) * sqrt(outer);
		}
	}
	return left;
}
