/*
 * products_sums.c: the arithmetic of attention without softmax, in double precision, for the
 * vectors that a processor has. Sums run row by row, or feature by feature. A few rows, or
 * features, and TOGETHER numbers of each are held in registers from the first term to the last.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/products_sums.h"

#include <math.h>
#include <string.h>

#include "engine/base/wide.h"

#define TOGETHER TNP_PRODUCTS_TOGETHER
#define CHUNK 64				/* numbers of a row, or rows, that are made doubles at a time */
#define FEATURE_ROWS 3			/* rows whose random features are made together */
#define PAIR 2					/* features that are added to together, or queries that read */

/* ---- random features ------------------------------------------------------------------------- */

/*
 * e^x, to 1e-8 of it, of `some` numbers: 2^n times a polynomial of the rest, at most half of ln 2.
 * Beyond what a float has it is greater, or less, than that.
 */
TNP_WIDE_ANY
exponentials_any(const int some, double *restrict x)
{
	const double shift = 6755399441055744.0;	/* 1.5 * 2^52: what is added to it is rounded */

	/* by themselves: branches here would keep the compiler from vectors below */
	for (int k = 0; k < some; k++)
	{
		x[k] = x[k] < 700 ? x[k] : 700;
		x[k] = x[k] > -700 ? x[k] : -700;
	}
	for (int k = 0; k < some; k++)
	{
		double		y = x[k] * 1.4426950408889634 + shift,
					r = x[k] - (y - shift) * 0.6931471805599453,
					p = 1.0 / 5040;
		int64_t		bits;

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

/* number [some, rows] = `some` numbers of `rows` rows u [rows, width] */
TNP_WIDE_ANY
take_rows(const int rows, int some, int width, const float *restrict u, double *restrict number)
{
	for (int f = 0; f < some; f++)
		for (int r = 0; r < rows; r++)
			number[f * rows + r] = u[(size_t) r * width + f];
}

/* product [rows, TOGETHER] += omega [some, next] times number [some, rows] */
TNP_WIDE_ANY
project(const bool fused, const int rows, int some, const double *restrict omega, size_t next,
		const double *restrict number, double *restrict product)
{
	for (int f = 0; f < some; f++, omega += next)
		for (int k = 0; k < TOGETHER; k++)
			for (int r = 0; r < rows; r++)
				product[r * TOGETHER + k] = tnp_add_product(fused, omega[k], number[f * rows + r],
															product[r * TOGETHER + k]);
}

/* Features of `rows` rows. */
TNP_WIDE_ANY
features_of(const bool fused, const int rows, const double *omega, int width, int m,
			float *restrict u, float *restrict to)
{
	size_t		next = tnp_products_omega_row(m);
	double		root = 1 / sqrt(sqrt((double) width)),
				share = 1 / sqrt((double) m),
				half[FEATURE_ROWS],
				number[FEATURE_ROWS * CHUNK],
				product[FEATURE_ROWS * TOGETHER];

	for (int r = 0; r < rows; r++)
		half[r] = 0;
	for (int f = 0; f < width; f++)
		for (int r = 0; r < rows; r++)
		{
			float	   *one = u + (size_t) r * width + f;

			*one = (float) (*one * root);
			half[r] += (double) *one * *one / 2;
		}
	for (int first = 0; first < m; first += TOGETHER)
	{
		int			some = m - first < TOGETHER ? m - first : TOGETHER;

		for (int r = 0; r < rows; r++)
			for (int k = 0; k < TOGETHER; k++)
				product[r * TOGETHER + k] = -half[r];
		for (int at = 0; at < width; at += CHUNK)
		{
			int			part = width - at < CHUNK ? width - at : CHUNK;

			if (first == 0 || width > CHUNK)
				take_rows(rows, part, width, u + at, number);
			project(fused, rows, part, omega + at * next + first, next, number, product);
		}
		exponentials_any(rows * TOGETHER, product);
		for (int r = 0; r < rows; r++)
			for (int k = 0; k < some; k++)
				to[(size_t) r * m + first + k] = (float) (product[r * TOGETHER + k] * share);
	}
}

TNP_WIDE_ANY
random_features_any(const bool fused, const double *omega, int n, int width, int m, float *u,
					float *to)
{
	int			i = 0;

	for (; i + FEATURE_ROWS <= n; i += FEATURE_ROWS)
		features_of(fused, FEATURE_ROWS, omega, width, m, u + (size_t) i * width,
					to + (size_t) i * m);
	for (; i < n; i++)
		features_of(fused, 1, omega, width, m, u + (size_t) i * width, to + (size_t) i * m);
}

TNP_WIDE_FLOATS(random_features,
				(const double *omega, int n, int width, int m, float *u, float *to),
				omega, n, width, m, u, to)

void
tnp_products_random(const double *omega, int n, int width, int m, float *u, float *to)
{
	random_features(omega, n, width, m, u, to);
}

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
