/*
 * upper.c: upper Cholesky factors, four rows at a time.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/base/upper.h"

#include <math.h>
#include <stddef.h>

#include "engine/base/cholesky.h"
#include "engine/base/wide.h"

#define STEP TNP_UPPER_ROWS		/* rows whose products are summed at once */
#define GROUPS 2				/* fours of columns that many vectors are solved for at once */

/* to[j] += the sum over four rows of c[k] row_k[j], j = from … n - 1; rows are `stride` apart. */
TNP_WIDE_ANY
add_rows(double *restrict to, const double *restrict rows, size_t stride, const double c[STEP],
		 int from, int n)
{
	const double *r0 = rows,
			   *r1 = rows + stride,
			   *r2 = rows + 2 * stride,
			   *r3 = rows + 3 * stride;
	const double c0 = c[0],
				c1 = c[1],
				c2 = c[2],
				c3 = c[3];

	for (int j = from; j < n; j++)
		to[j] += (c0 * r0[j] + c1 * r1[j]) + (c2 * r2[j] + c3 * r3[j]);
}

TNP_WIDE_ANY
add_row(double *restrict to, const double *restrict row, double c, int from, int n)
{
	for (int j = from; j < n; j++)
		to[j] += c * row[j];
}

/* ---- the factor ------------------------------------------------------------------------------ */

TNP_WIDE_ANY
factorise_any(double *a, int n, bool *definite)
{
	*definite = false;
	for (int first = 0; first < n; first += STEP)
	{
		int			last = first + STEP < n ? first + STEP : n;
		const double *rows = a + (size_t) first * n;

		for (int k = first; k < last; k++)
		{
			double	   *row = a + (size_t) k * n;

			for (int t = first; t < k; t++)
				add_row(row, a + (size_t) t * n, -a[(size_t) t * n + k], k, n);
			if (!(row[k] > 0))
				return;
			row[k] = sqrt(row[k]);
			for (int j = k + 1; j < n; j++)
				row[j] /= row[k];
		}
		for (int i = last; i < n; i++)
		{
			const double c[STEP] = {-rows[i], -rows[n + i], -rows[2 * (size_t) n + i],
			-rows[3 * (size_t) n + i]};

			add_rows(a + (size_t) i * n, rows, n, c, i, n);
		}
	}
	*definite = true;
}
TNP_WIDE(factorise, (double *a, int n, bool *definite), (a, n, definite))

bool
tnp_upper_factorise(double *a, int n)
{
	bool		definite;

	factorise(a, n, &definite);
	return definite;
}

/* ---- systems --------------------------------------------------------------------------------- */

TNP_WIDE_ANY
solve_any(const double *u, int n, int rows, double *all)
{
	int			k = 0;

	for (; k + STEP <= n; k += STEP)
	{
		const double *of = u + (size_t) k * n;

		for (int r = 0; r < rows; r++)
		{
			double	   *v = all + (size_t) r * n,
						c[STEP];

			for (int t = 0; t < STEP; t++)
			{
				for (int s = 0; s < t; s++)
					v[k + t] -= v[k + s] * of[(size_t) s * n + k + t];
				v[k + t] /= of[(size_t) t * n + k + t];
				c[t] = -v[k + t];
			}
			add_rows(v, of, n, c, k + STEP, n);
		}
	}
	for (; k < n; k++)
		for (int r = 0; r < rows; r++)
		{
			double	   *v = all + (size_t) r * n;

			v[k] /= u[(size_t) k * n + k];
			add_row(v, u + (size_t) k * n, -v[k], k + 1, n);
		}
}
TNP_WIDE(solve, (const double *u, int n, int rows, double *v), (u, n, rows, v))

void
tnp_upper_solve(const double *u, int n, int rows, double *v)
{
	solve(u, n, rows, v);
}

#define LANES 2
#define WIDTH(name) name##_2
#include "engine/base/upper_lanes.h"
#define LANES 4
#define WIDTH(name) name##_4
#include "engine/base/upper_lanes.h"
#define LANES 8
#define WIDTH(name) name##_8
#include "engine/base/upper_lanes.h"

TNP_WIDE_ANY
solve_many_any(int lanes, const double *u, int n, double *v)
{
	if (lanes == 8)
		solve_lanes_8(u, n, v);
	else if (lanes == 4)
		solve_lanes_4(u, n, v);
	else
		solve_lanes_2(u, n, v);
}
TNP_WIDE_LANES(solve_many, (const double *u, int n, double *v), u, n, v)

void
tnp_upper_solve_many(const double *u, int n, double *v)
{
	solve_many(u, n, v);
}

TNP_WIDE_ANY
dot_many_any(int lanes, int n, const double *v, const double *b, double *out)
{
	if (lanes == 8)
		dot_lanes_8(n, v, b, out);
	else if (lanes == 4)
		dot_lanes_4(n, v, b, out);
	else
		dot_lanes_2(n, v, b, out);
}
TNP_WIDE_LANES(dot_many, (int n, const double *v, const double *b, double *out), n, v, b, out)

void
tnp_upper_dot_many(int n, const double *v, const double *b, double *out)
{
	dot_many(n, v, b, out);
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

/* ---- sums and the inverse -------------------------------------------------------------------- */

TNP_WIDE_ANY
add_any(double *a, int n, const double *v, const double *weight)
{
	for (int i = 0; i < n; i++)
	{
		double		c[STEP];

		for (int k = 0; k < STEP; k++)
			c[k] = weight[k] * v[(size_t) k * n + i];
		add_rows(a + (size_t) i * n, v, n, c, i, n);
	}
}
TNP_WIDE(add, (double *a, int n, const double *v, const double *weight), (a, n, v, weight))

void
tnp_upper_add(double *a, int n, const double *v, const double *weight)
{
	add(a, n, v, weight);
}

/* Rows of V = U'^-1, zero right of the diagonal; then V'V. */
TNP_WIDE_ANY
invert_any(const double *u, int n, double *v, double *inverse)
{
	for (size_t i = 0; i < (size_t) n * n; i++)
		v[i] = inverse[i] = 0;
	for (int first = 0; first < n; first += STEP)
	{
		int			last = first + STEP < n ? first + STEP : n;

		for (int t = first; t < last; t++)
		{
			double	   *row = v + (size_t) t * n;

			row[t] = 1;
			for (int k = 0; k < first; k += STEP)
			{
				const double *of = u + (size_t) k * n + t;
				const double c[STEP] = {-of[0], -of[n], -of[2 * (size_t) n], -of[3 * (size_t) n]};

				add_rows(row, v + (size_t) k * n, n, c, 0, k + STEP);
			}
			for (int k = first; k < t; k++)
				add_row(row, v + (size_t) k * n, -u[(size_t) k * n + t], 0, k + 1);
			for (int j = 0; j <= t; j++)
				row[j] /= u[(size_t) t * n + t];
		}
		if (last - first == STEP)
			for (int i = 0; i < last; i++)
			{
				const double *of = v + (size_t) first * n + i;
				const double c[STEP] = {of[0], of[n], of[2 * (size_t) n], of[3 * (size_t) n]};

				add_rows(inverse + (size_t) i * n, v + (size_t) first * n, n, c, i, last);
			}
		else
			for (int t = first; t < last; t++)
				for (int i = 0; i <= t; i++)
					add_row(inverse + (size_t) i * n, v + (size_t) t * n, v[(size_t) t * n + i], i,
							t + 1);
	}
}
TNP_WIDE(invert, (const double *u, int n, double *v, double *inverse), (u, n, v, inverse))

void
tnp_upper_invert(const double *u, int n, double *scratch, double *inverse)
{
	invert(u, n, scratch, inverse);
}
