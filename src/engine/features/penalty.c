/*
 * penalty.c: the penalty of a ridge regression, chosen by the evidence.
 *
 * All in double precision: the penalty is the best of a grid, and which is best should not hang on
 * rounding.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/penalty.h"

#include <math.h>
#include <string.h>

#include "engine/base/cholesky.h"

#define LARGEST 8				/* log of the largest penalty to the base 4 */
#define SMALLEST_NOISE 1e-8		/* variance, in units of the target's */

void
tnp_equations_add(int n, const double *u, double y, double *gram, double *moment)
{
	for (int i = 0; i < n; i++)
	{
		double	   *row = gram + (size_t) i * n;

		/* indicators are mostly zero */
		if (u[i] == 0)
			continue;
		for (int j = 0; j <= i; j++)
			row[j] += u[i] * u[j];
		moment[i] += u[i] * y;
	}
}

/*
 * The evidence is that of Bishop 2006, section 3.5, with the noise at its maximum:
 * -1/2 (rows ln noise + ln det(U'U / penalty + I)). All targets share penalty and noise. The
 * largest penalty always has a factor: bounded entries keep the sums far below it times the
 * precision.
 */
double
tnp_choose_penalty(const TnpNormalEquations *e, double *weights, double *factor, double *noise)
{
	int			n = e->n;
	size_t		all = (size_t) e->n_targets * n;
	double		penalty = ldexp(1, 2 * e->smallest),
				chosen = penalty,
				best = -INFINITY;

	for (int k = e->smallest; k <= LARGEST; k++, penalty *= 4)
	{
		double		explained = 0,
					determinant = 0,
					variance,
					evidence;

		if (!tnp_factorise(e->gram, n, penalty, e->try_factor))
			continue;
		memcpy(e->try_weights, e->moment, all * sizeof(double));
		for (int t = 0; t < e->n_targets; t++)
			tnp_solve_lower(e->try_factor, n, e->try_weights + (size_t) t * n);
		for (size_t i = 0; i < all; i++)
			explained += e->try_weights[i] * e->try_weights[i];
		for (int i = 0; i < n; i++)
			determinant += 2 * log(e->try_factor[(size_t) i * n + i]) - log(penalty);
		variance = fmax((e->square - explained) / e->rows, SMALLEST_NOISE);
		evidence = -0.5 * (e->rows * log(variance) + determinant);
		if (!(evidence > best))
			continue;
		best = evidence;
		for (int t = 0; t < e->n_targets; t++)
			tnp_solve_upper(e->try_factor, n, e->try_weights + (size_t) t * n);
		memcpy(factor, e->try_factor, (size_t) n * n * sizeof(double));
		memcpy(weights, e->try_weights, all * sizeof(double));
		*noise = variance;
		chosen = penalty;
	}
	return chosen;
}
