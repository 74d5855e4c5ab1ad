/*
 * orient.c: which way round columns and targets are looked at (docs/model-format.md section 5,
 * "Orientation"). A network that learnt from one way round and the other alike still answers a
 * little differently to each. One of the two, chosen by what changes sign with the numbers, makes
 * their answers the same at no cost.
 *
 * All sums change their sign exactly where the numbers do, so that the choice does, too. Steps keep
 * rounding, which differs with the order of the rows, from deciding where there is nothing to say.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/orient.h"

#include <math.h>

#include "engine/features/column.h"

#define STEPS 1048576.0			/* in which correlation and skewness are compared with 0 */

bool
tnp_target_turns(const TnpRows *rows, int64_t n0, double center, double scale)
{
	double		sum = 0;

	for (int64_t i = 0; i < n0; i++)
	{
		double		z = (rows->y[i] - center) / scale;

		sum += z * z * z;
	}
	return n0 > 0 && rint(STEPS * sum / n0) < 0;
}

/* Means of scaled cells of column f and of targets, over the m prefix rows that have the cell. */
static int64_t
mean_pair(const TnpModel *model, const TnpStats *stats, const TnpRows *rows, int f,
		  const TnpColumn *column, double *mean_z, double *mean_y)
{
	int64_t		m = 0;

	*mean_z = *mean_y = 0;
	for (int64_t i = 0; i < stats->n0; i++)
	{
		double		x = rows->x[i * rows->n_features + f];

		if (tnp_column_lacks(column, x))
			continue;
		*mean_z += tnp_column_scale(model, column, x);
		*mean_y += tnp_compared_target(model, stats, rows->y[i]);
		m++;
	}
	if (m > 0)
	{
		*mean_z /= m;
		*mean_y /= m;
	}
	return m;
}

bool
tnp_column_turns(const TnpModel *model, const TnpStats *stats, const TnpRows *rows, int f,
				 const TnpColumn *column)
{
	double		mean_z,
				mean_y,
				zy = 0,
				zz = 0,
				yy = 0;

	if (mean_pair(model, stats, rows, f, column, &mean_z, &mean_y) == 0)
		return false;
	for (int64_t i = 0; i < stats->n0; i++)
	{
		double		x = rows->x[i * rows->n_features + f],
					z,
					y;

		if (tnp_column_lacks(column, x))
			continue;
		z = tnp_column_scale(model, column, x) - mean_z;
		y = tnp_compared_target(model, stats, rows->y[i]) - mean_y;
		zy += z * y;
		zz += z * z;
		yy += y * y;
	}
	return zz > 0 && yy > 0 && rint(STEPS * zy / sqrt(zz * yy)) < 0;
}
