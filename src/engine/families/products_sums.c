/*
 * products_sums.c: the arithmetic of attention without softmax, in double precision, for the
 * vectors that a processor has. Sums run row by row, or feature by feature. A few rows, or
 * features, and TOGETHER numbers of each are held in registers from the first term to the last.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/products_sums.h"

#include <string.h>

#include "engine/base/wide.h"

#define TOGETHER TNP_PRODUCTS_TOGETHER
#define CHUNK 64				/* rows whose numbers are made doubles at a time */
#define PAIR 2					/* features that are added to together, or queries that read */

/* ---- sums over rows -------------------------------------------------------------------------- */

/* sums of `features` features += weights k [n, TOGETHER] times `some` numbers of v [n, TOGETHER] */
TNP_WIDE_ANY
add_terms(const bool fused, const int features, int n, const double *restrict k,
		  const double *restrict v, const int some, size_t next, double *restrict sums)
{
	double		sum[PAIR * TOGETHER];

	for (int f = 0; f < features; f++)
		for (int t = 0; t < some; t++)
			sum[f * TOGETHER + t] = sums[f * next + t];
	for (int r = 0; r < n; r++)
		for (int t = 0; t < some; t++)
			for (int f = 0; f < features; f++)
				sum[f * TOGETHER + t] = tnp_add_product(fused, k[r * TOGETHER + f],
														v[r * TOGETHER + t],
														sum[f * TOGETHER + t]);
	for (int f = 0; f < features; f++)
		for (int t = 0; t < some; t++)
			sums[f * next + t] = sum[f * TOGETHER + t];
}

/* to [n, TOGETHER] = `some` numbers of n rows, zeros after them */
TNP_WIDE_ANY
take(int n, int some, const float *restrict from, size_t next, double *restrict to)
{
	for (int r = 0; r < n; r++, from += next, to += TOGETHER)
		if (some == TOGETHER)
			for (int t = 0; t < TOGETHER; t++)
				to[t] = from[t];
		else
			for (int t = 0; t < TOGETHER; t++)
				to[t] = t < some ? from[t] : 0;
}

/* The weights themselves k [n, TOGETHER], behind the values of each feature. */
TNP_WIDE_ANY
add_weights(int features, int n, const double *restrict k, size_t next, double *restrict sums)
{
	double		sum[TOGETHER] = {0};

	for (int f = 0; f < features; f++)
		sum[f] = sums[f * next];
	for (int r = 0; r < n; r++)
		for (int f = 0; f < TOGETHER; f++)
			sum[f] += k[r * TOGETHER + f];
	for (int f = 0; f < features; f++)
		sums[f * next] = sum[f];
}

TNP_WIDE_ANY
add_any(const bool fused, const TnpProductRows *rows, double *restrict sums)
{
	size_t		next = rows->width + 1;
	double		k[CHUNK * TOGETHER],
				v[CHUNK * TOGETHER];

	for (int64_t i = 0; i < rows->n; i += CHUNK)
	{
		int			n = rows->n - i < CHUNK ? (int) (rows->n - i) : CHUNK;

		take(n, rows->features, rows->k + i * rows->next_k, rows->next_k, k);
		add_weights(rows->features, n, k, next, sums + rows->width);
		for (int j = 0; j < rows->width; j += TOGETHER)
		{
			int			some = rows->width - j < TOGETHER ? rows->width - j : TOGETHER,
						f = 0;

			take(n, some, rows->v + i * rows->next_v + j, rows->next_v, v);
			for (; f + PAIR <= rows->features; f += PAIR)
				if (some == TOGETHER)
					add_terms(fused, PAIR, n, k + f, v, TOGETHER, next, sums + f * next + j);
				else
					add_terms(fused, PAIR, n, k + f, v, some, next, sums + f * next + j);
			if (f < rows->features)
				add_terms(fused, 1, n, k + f, v, some, next, sums + f * next + j);
		}
	}
}

TNP_WIDE_FLOATS(add, (const TnpProductRows *rows, double *sums), rows, sums)

void
tnp_products_add(const TnpProductRows *rows, double *sums)
{
	add(rows, sums);
}

/* ---- what queries read ----------------------------------------------------------------------- */

/* `some` numbers of what `queries` queries read. These products are rounded: sums are no floats. */
TNP_WIDE_ANY
read_numbers(const int queries, const int some, int features, const float *restrict q,
			 size_t next_q, const double *restrict sums, size_t next, double *restrict values,
			 size_t next_value)
{
	double		sum[PAIR * TOGETHER];

	for (int i = 0; i < queries; i++)
		for (int t = 0; t < some; t++)
			sum[i * some + t] = values[i * next_value + t];
	for (int f = 0; f < features; f++, sums += next)
		for (int t = 0; t < some; t++)
			for (int i = 0; i < queries; i++)
				sum[i * some + t] += (double) q[i * next_q + f] * sums[t];
	for (int i = 0; i < queries; i++)
		for (int t = 0; t < some; t++)
			values[i * next_value + t] = sum[i * some + t];
}

TNP_WIDE_ANY
read_some(const int queries, int features, int width, const float *q, size_t next_q,
		  const double *sums, double *values, size_t next_value)
{
	size_t		next = width + 1;
	int			t = 0;

	for (; t + TOGETHER <= width + 1; t += TOGETHER)
		read_numbers(queries, TOGETHER, features, q, next_q, sums + t, next, values + t,
					 next_value);
	for (; t + 4 <= width + 1; t += 4)
		read_numbers(queries, 4, features, q, next_q, sums + t, next, values + t, next_value);
	for (; t <= width; t++)
		read_numbers(queries, 1, features, q, next_q, sums + t, next, values + t, next_value);
}

TNP_WIDE_ANY
read_sums_any(const TnpProductQueries *p, const double *sums, double *values)
{
	int			i = 0;

	for (; i + PAIR <= p->n; i += PAIR)
		read_some(PAIR, p->features, p->width, p->q + i * p->next_q, p->next_q, sums,
				  values + i * p->next_value, p->next_value);
	if (i < p->n)
		read_some(1, p->features, p->width, p->q + i * p->next_q, p->next_q, sums,
				  values + i * p->next_value, p->next_value);
}

TNP_WIDE(read_sums, (const TnpProductQueries *p, const double *sums, double *values),
		 (p, sums, values))

void
tnp_products_read(const TnpProductQueries *queries, const double *sums, double *values)
{
	read_sums(queries, sums, values);
}
