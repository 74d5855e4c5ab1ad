/*
 * record.c: the process's record. Rows left out say whether the process is as sure as it may be,
 * where it goes by near rows (their own answers lean on themselves) above all; regressions say how
 * much of the targets needs no process; the weights say how rough and how wide its function is. A
 * gate that reads this tells a process that has found the function from one that has come to rest
 * on noise.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/record.h"

#include <math.h>

#define SMALLEST 1e-6			/* of a mean square */
#define FARTHEST 4.0			/* that the log of one may be from 0 */
#define LEAST_WEIGHT (-5.0)		/* log of weights */
#define MOST_WEIGHT 10.0

static double
within(double value, double least, double most)
{
	return fmin(fmax(value, least), most);
}

static float
log_square(double square)
{
	return (float) within(log(fmax(square, SMALLEST)), -FARTHEST, FARTHEST);
}

void
tnp_record_build(TnpStats *stats)
{
	const TnpProcess *p = &stats->process;
	float	   *out = stats->record;
	double		sum = 0,
				most = 0;
	bool		near = p->nearest.points.n > 0;
	const double *weight = near ? p->nearest.weight : p->weight;
	int			axes = p->is_line ? 0 : near ? p->nearest.points.n_axes : p->points.n_axes;

	for (int a = 0; a < axes; a++)
	{
		sum += weight[a];
		most = fmax(most, weight[a]);
	}
	out[0] = log_square(p->square);
	out[1] = log_square(p->square_near);
	out[2] = (float) log1p((double) axes);
	out[3] = (float) stats->ridge[0].log_noise;
	out[4] = (float) stats->ridge[1].log_noise;
	out[5] = (float) (axes > 0 ? within(log(sum), LEAST_WEIGHT, MOST_WEIGHT) : 0);
	out[6] = (float) (axes > 0 ? within(log(most), LEAST_WEIGHT, MOST_WEIGHT) : 0);
}
