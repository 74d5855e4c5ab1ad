/*
 * least_squares.c: small regressions with a fixed penalty.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/least_squares.h"

#include <stdbool.h>
#include <string.h>

#include "engine/base/cholesky.h"

#define PENALTY 0.1

double *
tnp_least_squares(int n, int m, const double *design, const double *y, double *gram)
{
	double	   *factor = gram + (size_t) m * m,
			   *weights = factor + (size_t) m * m;

	memset(gram, 0, (size_t) m * m * sizeof(double));
	memset(weights, 0, m * sizeof(double));
	for (int i = 0; i < n; i++)
	{
		const double *entry = design + (size_t) i * m;

		for (int a = 0; a < m; a++)
		{
			for (int b = 0; b <= a; b++)
				gram[(size_t) a * m + b] += entry[a] * entry[b];
			weights[a] += entry[a] * y[i];
		}
	}
	if (!tnp_factorise(gram, m, PENALTY, factor))
		return NULL;
	tnp_solve_lower(factor, m, weights);
	tnp_solve_upper(factor, m, weights);
	return weights;
}

void
tnp_least_squares_rest(int n, int m, const double *design, double *y, double *gram)
{
	const double *weights = tnp_least_squares(n, m, design, y, gram);

	for (int i = 0; weights != NULL && i < n; i++)
		y[i] -= tnp_dot(m, design + (size_t) i * m, weights);
}
