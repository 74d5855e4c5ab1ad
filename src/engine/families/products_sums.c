/*
 * products_sums.c: the arithmetic of attention without softmax, in double precision, for the
 * vectors that a processor has. Sums run row by row, or feature by feature; several terms are
 * added, one after the other, before a number is stored.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/products_sums.h"

#include <math.h>
#include <string.h>

#include "engine/base/wide.h"

#define TOGETHER 64				/* numbers that are worked at together */
#define TERMS 4					/* added before a number is stored */

/* ---- random features ------------------------------------------------------------------------- */

/*
 * e^x, to 1e-8 of it, of `some` numbers: 2^n times a polynomial of the rest, at most half of ln 2.
 * Beyond what a float has it is greater, or less, than that.
 */
TNP_WIDE_ANY
exponentials_any(int some, double *restrict x)
{
	const double shift = 6755399441055744.0;	/* 1.5 * 2^52: what is added to it is rounded */

	for (int k = 0; k < some; k++)
	{
		double		held = x[k] < 700 ? x[k] : 700,
					y,
					r,
					p;
		int64_t		bits;

		held = held > -700 ? held : -700;
		y = held * 1.4426950408889634 + shift;
		r = held - (y - shift) * 0.6931471805599453;
		p = 1.0 / 5040;
		p = p * r + 1.0 / 720;
		p = p * r + 1.0 / 120;
		p = p * r + 1.0 / 24;
		p = p * r + 1.0 / 6;
		p = p * r + 0.5;
		p = p * r + 1;
		p = p * r + 1;
		memcpy(&bits, &y, sizeof(bits));
		bits = (int64_t) (((uint64_t) bits << 52) + ((uint64_t) 1023 << 52));
		memcpy(&y, &bits, sizeof(y));
		x[k] = p * y;
	}
}

TNP_WIDE_ANY
random_features_any(const float *restrict omega, int n, int width, int m, float *restrict u,
		   float *restrict to)
{
	double		root = 1 / sqrt(sqrt((double) width)),
				share = 1 / sqrt((double) m),
				product[TOGETHER];

	for (int i = 0; i < n; i++, u += width, to += m)
	{
		double		half = 0;

		for (int f = 0; f < width; f++)
		{
			u[f] = (float) (u[f] * root);
			half += (double) u[f] * u[f] / 2;
		}
		for (int first = 0; first < m; first += TOGETHER)
		{
			int			some = m - first < TOGETHER ? m - first : TOGETHER;

			for (int k = 0; k < some; k++)
				product[k] = -half;
			for (int f = 0; f < width; f++)
			{
				const float *part = omega + (size_t) f * m + first;
				double		number = u[f];

				for (int k = 0; k < some; k++)
					product[k] += part[k] * number;
			}
			exponentials_any(some, product);
			for (int k = 0; k < some; k++)
				to[first + k] = (float) (product[k] * share);
		}
	}
}

TNP_WIDE(random_features, (const float *omega, int n, int width, int m, float *u, float *to),
		 (omega, n, width, m, u, to))

void
tnp_products_random(const float *omega, int n, int width, int m, float *u, float *to)
{
	random_features(omega, n, width, m, u, to);
}

/* ---- sums over rows -------------------------------------------------------------------------- */

/* sum[t] += Σ weight_r value_r[t] over TERMS rows, in their order, TOGETHER numbers apart */
TNP_WIDE_ANY
add_terms(int some, const double *restrict weight, const double *restrict value,
		  double *restrict sum)
{
	for (int t = 0; t < some; t++)
		sum[t] = (((sum[t] + weight[0] * value[t]) + weight[1] * value[TOGETHER + t])
				  + weight[2] * value[2 * TOGETHER + t]) + weight[3] * value[3 * TOGETHER + t];
}

/* Add `terms` rows from row i on; those that are missing of TERMS are zero and change no bit. */
TNP_WIDE_ANY
add_rows(const TnpProductRows *rows, int64_t i, const int terms, double *restrict sums)
{
	double		value[TERMS * TOGETHER],
				weight[TERMS] = {0};

	for (int j = 0; j < rows->width; j += TOGETHER)
	{
		int			some = rows->width - j < TOGETHER ? rows->width - j : TOGETHER;

		if (terms < TERMS)
			memset(value, 0, sizeof(value));
		for (int r = 0; r < terms; r++)
			for (int t = 0; t < some; t++)
				value[r * TOGETHER + t] = rows->v[(i + r) * rows->next_v + j + t];
		for (int f = 0; f < rows->features; f++)
		{
			for (int r = 0; r < terms; r++)
				weight[r] = rows->k[(i + r) * rows->next_k + f];
			add_terms(some, weight, value, sums + (size_t) f * (rows->width + 1) + j);
		}
	}
	for (int f = 0; f < rows->features; f++)
		for (int r = 0; r < terms; r++)
			sums[(size_t) f * (rows->width + 1) + rows->width] +=
				rows->k[(i + r) * rows->next_k + f];
}

TNP_WIDE_ANY
add_any(const TnpProductRows *rows, double *restrict sums)
{
	int64_t		i = 0;

	for (; i + TERMS <= rows->n; i += TERMS)
		add_rows(rows, i, TERMS, sums);
	if (i < rows->n)
		add_rows(rows, i, (int) (rows->n - i), sums);
}

TNP_WIDE(add, (const TnpProductRows *rows, double *sums), (rows, sums))

void
tnp_products_add(const TnpProductRows *rows, double *sums)
{
	add(rows, sums);
}

/* ---- what a query reads ---------------------------------------------------------------------- */

TNP_WIDE_ANY
read_sums_any(int features, int width, const float *restrict q, const double *restrict sums,
		 double *restrict values)
{
	size_t		next = width + 1;
	int			f = 0;

	for (; f + TERMS <= features; f += TERMS, sums += TERMS * next)
	{
		double		w0 = q[f],
					w1 = q[f + 1],
					w2 = q[f + 2],
					w3 = q[f + 3];

		for (int i = 0; i <= width; i++)
			values[i] = (((values[i] + w0 * sums[i]) + w1 * sums[next + i])
						 + w2 * sums[2 * next + i]) + w3 * sums[3 * next + i];
	}
	for (; f < features; f++, sums += next)
		for (int i = 0; i <= width; i++)
			values[i] += (double) q[f] * sums[i];
}

TNP_WIDE(read_sums, (int features, int width, const float *q, const double *sums, double *values),
		 (features, width, q, sums, values))

void
tnp_products_read(int features, int width, const float *q, const double *sums, double *values)
{
	read_sums(features, width, q, sums, values);
}
