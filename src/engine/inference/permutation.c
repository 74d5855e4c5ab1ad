/*
 * permutation.c: random orders of rows (docs/model-format.md section 11).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/inference/permutation.h"

#include <math.h>

#include "engine/base/random.h"

void
tnp_fill_order(int64_t n, uint64_t seed, int64_t order, int64_t *place)
{
	for (int64_t i = 0; i < n; i++)
		place[i] = i;
	for (int64_t i = n - 1; order >= 0 && i > 0; i--)
	{
		double		u[2];
		int64_t		other,
					keep = place[i];

		tnp_random(seed, (uint64_t) order, (uint32_t) i, 1, u);
		other = (int64_t) floor(u[0] * (double) (i + 1));
		place[i] = place[other];
		place[other] = keep;
	}
}

double
tnp_log_add(double a, double b)
{
	double		max = fmax(a, b);

	return isinf(max) ? max : max + log(exp(a - max) + exp(b - max));
}
