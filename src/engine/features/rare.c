/*
 * rare.c: targets of the prefix that are far from all others (docs/model-format.md section 8, "Rare
 * targets").
 *
 * Where most targets are one value, as sales of a day without any, the others may be so rare that a
 * network takes them for mistakes, and sums of means fall far behind what comes. How often they
 * came and where they lie is a component of its own. Without such a value it may be mistakes that
 * are far: then a network does well to leave them.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/rare.h"

#include <math.h>

#include "engine/features/column.h"

#define TRUST 2.0				/* rows that the spread supposed beforehand counts as */
#define SUPPOSED 0.5			/* it, of the distance from the value of most targets */

static double
scaled(const TnpStats *stats, double y)
{
	return (y - stats->y_center) / stats->y_scale;
}

/* The value that more than half of the n numbers are, or NaN (Boyer and Moore's vote). */
static double
most_common(const double *y, int64_t n)
{
	double		value = NAN;
	int64_t		ahead = 0,
				count = 0;

	for (int64_t i = 0; i < n; i++)
	{
		if (ahead == 0)
			value = y[i];
		ahead += y[i] == value ? 1 : -1;
	}
	for (int64_t i = 0; i < n; i++)
		count += y[i] == value;
	return 2 * count > n ? value : NAN;
}

/* Whether the process says at least half of a target, far on a side, without its row. */
static bool
is_foreseen(const TnpModel *model, const TnpRows *rows, const TnpStats *stats, int64_t row,
			int side)
{
	double		clipped = tnp_clipped_target(model, stats, rows->y[row]);

	return side * stats->process.left_out[2 * row] >= 0.5 * side * clipped;
}

/* The rare targets on one side; common is the value of most, in units of the scaled target. */
static void
build_side(const TnpModel *model, const TnpRows *rows, const TnpStats *stats, int side,
		   double common, TnpRare *rare)
{
	int64_t		count = 0,
				unforeseen = 0;
	double		sum = 0,
				square = 0,
				mean,
				apart;

	for (int64_t i = 0; i < stats->n0; i++)
	{
		double		y = scaled(stats, rows->y[i]);

		if (!(side * y > model->config.rare))
			continue;
		count++;
		sum += y;
		unforeseen += !is_foreseen(model, rows, stats, i, side);
	}
	if (unforeseen == 0)
		return;
	mean = sum / count;
	for (int64_t i = 0; i < stats->n0; i++)
	{
		double		y = scaled(stats, rows->y[i]);

		if (side * y > model->config.rare)
			square += (y - mean) * (y - mean);
	}
	apart = SUPPOSED * (mean - common);
	rare->weight[rare->n] = (double) unforeseen / (stats->n0 + 1);
	rare->mean[rare->n] = mean;
	rare->sd[rare->n] = sqrt((square + TRUST * apart * apart) / (count + TRUST));
	rare->n++;
}

void
tnp_rare_build(const TnpModel *model, const TnpRows *rows, TnpStats *stats)
{
	double		common = most_common(rows->y, stats->n0);

	stats->rare.n = 0;
	if (isnan(common) || stats->process.left_out == NULL)
		return;
	for (int side = 1; side >= -1; side -= 2)
		build_side(model, rows, stats, side, scaled(stats, common), &stats->rare);
}
