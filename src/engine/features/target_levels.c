/*
 * target_levels.c: the values that a prefix's targets have, where these are few
 * (docs/model-format.md section 8, "Levels").
 *
 * Counts, grades and rounded numbers come again: where each value has eight rows on average the
 * next one is among them all but always.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/target_levels.h"

#include <string.h>

#define ROWS_OF_LEVEL 8			/* on average, or more */

/* Put a value where it belongs among those before, if there is room; false if there is none. */
static bool
add_value(TnpTargetLevels *levels, int64_t most, double value)
{
	int			low = 0,
				high = levels->n;

	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (levels->value[middle] < value)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < levels->n && levels->value[low] == value)
		return true;
	if (levels->n == most)
		return false;
	memmove(levels->value + low + 1, levels->value + low, (levels->n - low) * sizeof(double));
	levels->value[low] = value;
	levels->n++;
	return true;
}

void
tnp_target_levels_build(const TnpRows *rows, TnpStats *stats)
{
	TnpTargetLevels *levels = &stats->target_levels;
	int64_t		most = stats->n0 / ROWS_OF_LEVEL;

	levels->n = 0;
	/* what a line that is certain says may be a value that has not come yet */
	if (stats->process.is_certain)
		return;
	if (most > TNP_TARGET_LEVELS)
		most = TNP_TARGET_LEVELS;
	for (int64_t i = 0; i < stats->n0; i++)
		if (!add_value(levels, most, (rows->y[i] - stats->y_center) / stats->y_scale))
		{
			levels->n = 0;
			return;
		}
	if (levels->n < 2)
		levels->n = 0;
}
