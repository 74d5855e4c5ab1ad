/*
 * upper.c: upper Cholesky factors, four rows at a time.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/base/upper.h"

#include <math.h>
#include <stddef.h>

#include "engine/base/cholesky.h"

#define STEP 4					/* rows whose products are summed at once */

/* to[j] += the sum over four rows of c[k] row_k[j], j = from … n - 1; rows are `stride` apart. */
static void
add_rows(double *restrict to, const double *restrict rows, size_t stride, const double c[STEP],
		 int from, int n)
{
	const double *r0 = rows,
			   *r1 = rows + stride,
			   *r2 = rows + 2 * stride,
			   *r3 = rows + 3 * stride;

	for (int j = from; j < n; j++)
		to[j] += (c[0] * r0[j] + c[1] * r1[j]) + (c[2] * r2[j] + c[3] * r3[j]);
}

static void
add_row(double *restrict to, const double *restrict row, double c, int from, int n)
{
	for (int j = from; j < n; j++)
		to[j] += c * row[j];
}

/* The factor's rows first … last - 1, of a matrix from which all before has been taken. */
static bool
factorise_rows(double *a, int n, int first, int last)
{
	for (int k = first; k < last; k++)
	{
		double	   *row = a + (size_t) k * n;

		for (int t = first; t < k; t++)
			add_row(row, a + (size_t) t * n, -a[(size_t) t * n + k], k, n);
		if (!(row[k] > 0))
			return false;
		row[k] = sqrt(row[k]);
		for (int j = k + 1; j < n; j++)
			row[j] /= row[k];
	}
	return true;
}

bool
tnp_upper_factorise(double *a, int n)
{
	for (int k = 0; k < n; k += STEP)
	{
		int			last = k + STEP < n ? k + STEP : n;
		const double *rows = a + (size_t) k * n;

		if (!factorise_rows(a, n, k, last))
			return false;
		for (int i = last; i < n; i++)
		{
			const double c[STEP] = {-rows[i], -rows[n + i], -rows[2 * (size_t) n + i],
			-rows[3 * (size_t) n + i]};

			add_rows(a + (size_t) i * n, rows, n, c, i, n);
		}
	}
	return true;
}

void
tnp_upper_solve(const double *u, int n, int first, double *v)
{
	int			k = first;

	for (; k + STEP <= n; k += STEP)
	{
		const double *rows = u + (size_t) k * n;
		double		c[STEP];

		for (int t = 0; t < STEP; t++)
		{
			for (int s = 0; s < t; s++)
				v[k + t] -= v[k + s] * rows[(size_t) s * n + k + t];
			v[k + t] /= rows[(size_t) t * n + k + t];
			c[t] = -v[k + t];
		}
		add_rows(v, rows, n, c, k + STEP, n);
	}
	for (; k < n; k++)
	{
		v[k] /= u[(size_t) k * n + k];
		add_row(v, u + (size_t) k * n, -v[k], k + 1, n);
	}
}

void
tnp_upper_solve_back(const double *u, int n, double *v)
{
	for (int k = n - 1; k >= 0; k--)
	{
		const double *row = u + (size_t) k * n;

		v[k] = (v[k] - tnp_dot(n - k - 1, row + k + 1, v + k + 1)) / row[k];
	}
}

void
tnp_upper_add(double *a, int n, const double *v, const double *weight)
{
	for (int i = 0; i < n; i++)
	{
		double		c[STEP];

		for (int k = 0; k < STEP; k++)
			c[k] = weight[k] * v[(size_t) k * n + i];
		add_rows(a + (size_t) i * n, v, n, c, i, n);
	}
}
