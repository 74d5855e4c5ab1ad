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
#define CHUNK 64				/* rows, or features, whose numbers are made doubles at a time */
#define PAIR 2					/* features that are added to together */
#define TRIPLE 3				/* queries that read together */
#define READERS TNP_PRODUCTS_READERS
#define SIDES 2					/* vectors that one query reads together, of heads or not */
#define HEADS 8					/* heads of which one query reads one number together */

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

/* to [features, READERS] = weights of the queries, zeros after them */
TNP_WIDE_ANY
turn(int queries, int features, const float *restrict q, size_t next_q, double *restrict to)
{
	for (int f = 0; f < features; f++)
		for (int i = 0; i < READERS; i++)
			to[f * READERS + i] = i < queries ? q[i * next_q + f] : 0;
}

/*
 * `some` numbers of what `queries` queries read, with weights q [features, READERS]. Sums are no
 * floats: where a processor multiplies and adds in one operation these are its bits, which others
 * do not have.
 */
TNP_WIDE_ANY
read_numbers(const bool fused, const int queries, const int some, int features,
			 const double *restrict q, const double *restrict sums, size_t next,
			 double *restrict values, size_t next_value)
{
	double		sum[TRIPLE * TOGETHER];

	for (int i = 0; i < queries; i++)
		for (int t = 0; t < some; t++)
			sum[i * some + t] = values[i * next_value + t];
	for (int f = 0; f < features; f++, q += READERS, sums += next)
		for (int t = 0; t < some; t++)
			for (int i = 0; i < queries; i++)
				sum[i * some + t] = tnp_add_product(fused, q[i], sums[t], sum[i * some + t]);
	for (int i = 0; i < queries; i++)
		for (int t = 0; t < some; t++)
			values[i * next_value + t] = sum[i * some + t];
}

/* One number of what READERS queries read: their sums do not wait for each other. */
TNP_WIDE_ANY
read_number(const bool fused, int queries, int features, const double *restrict q,
			const double *restrict sums, size_t next, double *restrict values, size_t next_value)
{
	double		sum[READERS] = {0};

	for (int i = 0; i < queries; i++)
		sum[i] = values[i * next_value];
	for (int f = 0; f < features; f++, q += READERS, sums += next)
		for (int i = 0; i < READERS; i++)
			sum[i] = tnp_add_product(fused, q[i], *sums, sum[i]);
	for (int i = 0; i < queries; i++)
		values[i * next_value] = sum[i];
}

/* `some` numbers of all of the queries, which find them in the nearest cache. */
TNP_WIDE_ANY
read_some(const bool fused, const int some, int queries, int features, const double *q,
		  const double *sums, size_t next, double *values, size_t next_value)
{
	int			i = 0;

	for (; i + TRIPLE <= queries; i += TRIPLE)
		read_numbers(fused, TRIPLE, some, features, q + i, sums, next, values + i * next_value,
					 next_value);
	for (; i < queries; i++)
		read_numbers(fused, 1, some, features, q + i, sums, next, values + i * next_value,
					 next_value);
}

/* What n queries read of one head. */
TNP_WIDE_ANY
read_head(const bool fused, const TnpProductQueries *p, const double *sums, double *values)
{
	size_t		next = p->width + 1;
	double		q[CHUNK * READERS];

	for (int f = 0; f < p->features; f += CHUNK, sums += CHUNK * next)
	{
		int			features = p->features - f < CHUNK ? p->features - f : CHUNK,
					t = 0;

		turn(p->n, features, p->q + f, p->next_q, q);
		for (; t + TOGETHER <= p->width; t += TOGETHER)
			read_some(fused, TOGETHER, p->n, features, q, sums + t, next, values + t,
					  p->next_value);
		for (; t + 4 <= p->width; t += 4)
			read_some(fused, 4, p->n, features, q, sums + t, next, values + t, p->next_value);
		for (; t <= p->width; t++)
			read_number(fused, p->n, features, q, sums + t, next, values + t, p->next_value);
	}
}

/* ---- what one query reads -------------------------------------------------------------------- */

/*
 * `some` numbers of each of `n` places of sums, with the weights of the heads that they are of: the
 * sums of one place wait for each other, those of two do not.
 */
TNP_WIDE_ANY
read_places(const bool fused, const int n, const int some, int features, const float *const *q,
			const double *const *sums, size_t next, double *const *values)
{
	double		sum[HEADS * TOGETHER];

	for (int i = 0; i < n; i++)
		for (int t = 0; t < some; t++)
			sum[i * some + t] = values[i][t];
	for (int f = 0; f < features; f++)
		for (int i = 0; i < n; i++)
			for (int t = 0; t < some; t++)
				sum[i * some + t] = tnp_add_product(fused, q[i][f], sums[i][f * next + t],
													sum[i * some + t]);
	for (int i = 0; i < n; i++)
		for (int t = 0; t < some; t++)
			values[i][t] = sum[i * some + t];
}

/* Places that are read together when there are enough of them. */
typedef struct Places
{
	int			n;
	const float *q[HEADS];
	const double *sums[HEADS];
	double	   *values[HEADS];
} Places;

/* Read the places, and have none. */
TNP_WIDE_ANY
read_rest(const bool fused, const int some, int features, size_t next, Places *places)
{
	for (int i = 0; i < places->n; i++)
		read_places(fused, 1, some, features, places->q + i, places->sums + i, next,
					places->values + i);
	places->n = 0;
}

/* Numbers [from, to) of all heads, `some` at a time, the heads' `most` together. */
TNP_WIDE_ANY
read_numbers_of_heads(const bool fused, const int most, const int some, int from, int to,
					  const TnpProductQueries *p, const double *sums, double *values)
{
	size_t		next = p->width + 1;
	Places		places = {0};

	for (int h = 0; h < p->heads; h++)
		for (int t = from; t < to; t += some)
		{
			places.q[places.n] = p->q + (size_t) h * p->features;
			places.sums[places.n] = sums + h * p->features * next + t;
			places.values[places.n] = values + h * p->next_value + t;
			if (++places.n == most)
			{
				read_places(fused, most, some, p->features, places.q, places.sums, next,
							places.values);
				places.n = 0;
			}
		}
	read_rest(fused, some, p->features, next, &places);
}

TNP_WIDE_ANY
read_heads(const bool fused, const TnpProductQueries *p, const double *sums, double *values)
{
	int			wide = p->width / TOGETHER * TOGETHER,
				narrow = p->width / 4 * 4;

	read_numbers_of_heads(fused, SIDES, TOGETHER, 0, wide, p, sums, values);
	read_numbers_of_heads(fused, SIDES, 4, wide, narrow, p, sums, values);
	read_numbers_of_heads(fused, HEADS, 1, narrow, p->width + 1, p, sums, values);
}

TNP_WIDE_ANY
read_sums_any(const bool fused, const TnpProductQueries *p, const double *sums, double *values)
{
	if (p->n == 1)
		read_heads(fused, p, sums, values);
	else
		read_head(fused, p, sums, values);
}

TNP_WIDE_FLOATS(read_sums, (const TnpProductQueries *p, const double *sums, double *values),
				p, sums, values)

void
tnp_products_read(const TnpProductQueries *queries, const double *sums, double *values)
{
	read_sums(queries, sums, values);
}
