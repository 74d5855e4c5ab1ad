/*
 * cholesky.c: the little linear algebra that regressions of the prefix need.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/base/cholesky.h"

#include <math.h>

double
tnp_dot(int n, const double *a, const double *b)
{
	/* so that an addition need not wait for the one before it */
	double		sum[4] = {0, 0, 0, 0};
	int			i = 0;

	for (; i + 4 <= n; i += 4)
		for (int k = 0; k < 4; k++)
			sum[k] += a[i + k] * b[i + k];
	for (; i < n; i++)
		sum[0] += a[i] * b[i];
	return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

bool
tnp_factorise(const double *gram, int n, double penalty, double *factor)
{
	for (int i = 0; i < n; i++)
	{
		double	   *row = factor + (size_t) i * n;

		for (int j = 0; j <= i; j++)
		{
			const double *other = factor + (size_t) j * n;
			double		sum = gram[(size_t) i * n + j] + (i == j ? penalty : 0) -
				tnp_dot(j, row, other);

			if (i != j)
				row[j] = sum / other[j];
			else if (sum > 0)
				row[j] = sqrt(sum);
			else
				return false;
		}
	}
	return true;
}

void
tnp_solve_lower(const double *factor, int n, double *v)
{
	for (int i = 0; i < n; i++)
	{
		const double *row = factor + (size_t) i * n;

		v[i] = (v[i] - tnp_dot(i, row, v)) / row[i];
	}
}

void
tnp_solve_upper(const double *factor, int n, double *v)
{
	for (int i = n - 1; i >= 0; i--)
	{
		const double *row = factor + (size_t) i * n;

		v[i] /= row[i];
		for (int j = 0; j < i; j++)
			v[j] -= row[j] * v[i];
	}
}
