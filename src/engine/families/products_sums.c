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

/*
 * sums of `features` features += weights k of n rows, next_r apart from row to row and next_f from
 * feature to feature, times `some` numbers of v [n, TOGETHER]
 */
TNP_WIDE_ANY
add_terms(const bool fused, const int features, int n, const double *restrict k,
		  const size_t next_r, const size_t next_f, const double *restrict v, const int some,
		  size_t next, double *restrict sums)
{
	double		sum[PAIR * TOGETHER];

	for (int f = 0; f < features; f++)
		for (int t = 0; t < some; t++)
			sum[f * TOGETHER + t] = sums[f * next + t];
	for (int r = 0; r < n; r++)
		for (int t = 0; t < some; t++)
			for (int f = 0; f < features; f++)
				sum[f * TOGETHER + t] = tnp_add_product(fused, k[r * next_r + f * next_f],
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

/* to [some, CHUNK] = `some` features of rows in panels, of which n are wanted */
TNP_WIDE_ANY
take_panels(int n, int some, const float *restrict panel, size_t next, double *restrict to)
{
	for (int r = 0; r < n; r += TNP_PANEL, panel += next, to += TNP_PANEL)
		for (int f = 0; f < some; f++)
			for (int t = 0; t < TNP_PANEL; t++)
				to[f * CHUNK + t] = panel[f * TNP_PANEL + t];
}

/* The weights themselves k, behind the values of each feature. */
TNP_WIDE_ANY
add_weights(int features, int n, const double *restrict k, const size_t next_r,
			const size_t next_f, size_t next, double *restrict sums)
{
	double		sum[TOGETHER] = {0};

	for (int f = 0; f < features; f++)
		sum[f] = sums[f * next];
	for (int r = 0; r < n; r++)
		for (int f = 0; f < TOGETHER; f++)
			sum[f] += k[r * next_r + f * next_f];
	for (int f = 0; f < features; f++)
		sums[f * next] = sum[f];
}

/* A chunk of n rows from number i on, with their weights k. */
TNP_WIDE_ANY
add_chunk(const bool fused, const TnpProductRows *rows, int64_t i, int n, const double *k,
		  const size_t next_r, const size_t next_f, double *restrict sums)
{
	size_t		next = rows->width + 1;
	double		v[CHUNK * TOGETHER];

	add_weights(rows->features, n, k, next_r, next_f, next, sums + rows->width);
	for (int j = 0; j < rows->width; j += TOGETHER)
	{
		int			some = rows->width - j < TOGETHER ? rows->width - j : TOGETHER,
					f = 0;

		take(n, some, rows->v + i * rows->next_v + j, rows->next_v, v);
		for (; f + PAIR <= rows->features; f += PAIR)
			if (some == TOGETHER)
				add_terms(fused, PAIR, n, k + f * next_f, next_r, next_f, v, TOGETHER, next,
						  sums + f * next + j);
			else
				add_terms(fused, PAIR, n, k + f * next_f, next_r, next_f, v, some, next,
						  sums + f * next + j);
		if (f < rows->features)
			add_terms(fused, 1, n, k + f * next_f, next_r, next_f, v, some, next,
					  sums + f * next + j);
	}
}

TNP_WIDE_ANY
add_any(const bool fused, const TnpProductRows *rows, double *restrict sums)
{
	double		k[CHUNK * TOGETHER];

	if (rows->next_panel > 0)
		memset(k, 0, sizeof(k));	/* for features that are not there */
	for (int64_t i = 0; i < rows->n; i += CHUNK)
	{
		int			n = rows->n - i < CHUNK ? (int) (rows->n - i) : CHUNK;

		if (rows->next_panel > 0)
		{
			take_panels(n, rows->features, rows->k + i / TNP_PANEL * rows->next_panel,
						rows->next_panel, k);
			add_chunk(fused, rows, i, n, k, 1, CHUNK, sums);
		}
		else
		{
			take(n, rows->features, rows->k + i * rows->next_k, rows->next_k, k);
			add_chunk(fused, rows, i, n, k, TOGETHER, 1, sums);
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
 * `some` numbers of what `queries` queries read, the weight of query i and feature f being q[i *
 * next_q + f * next_f]. Sums are no floats: where a processor multiplies and adds in one operation
 * these are its bits, which others do not have.
 */
TNP_WIDE_ANY
read_numbers(const bool fused, const int queries, const int some, int features,
			 const double *restrict q, const size_t next_q, const size_t next_f,
			 const double *restrict sums, size_t next, double *restrict values, size_t next_value)
{
	double		sum[TRIPLE * TOGETHER];

	for (int i = 0; i < queries; i++)
		for (int t = 0; t < some; t++)
			sum[i * some + t] = values[i * next_value + t];
	for (int f = 0; f < features; f++, q += next_f, sums += next)
		for (int t = 0; t < some; t++)
			for (int i = 0; i < queries; i++)
				sum[i * some + t] = tnp_add_product(fused, q[i * next_q], sums[t],
													sum[i * some + t]);
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
		  const size_t next_q, const size_t next_f, const double *sums, size_t next,
		  double *values, size_t next_value)
{
	int			i = 0;

	for (; i + TRIPLE <= queries; i += TRIPLE)
		read_numbers(fused, TRIPLE, some, features, q + i * next_q, next_q, next_f, sums, next,
					 values + i * next_value, next_value);
	for (; i < queries; i++)
		read_numbers(fused, 1, some, features, q + i * next_q, next_q, next_f, sums, next,
					 values + i * next_value, next_value);
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
			read_some(fused, TOGETHER, p->n, features, q, 1, READERS, sums + t, next, values + t,
					  p->next_value);
		for (; t + 4 <= p->width; t += 4)
			read_some(fused, 4, p->n, features, q, 1, READERS, sums + t, next, values + t,
					  p->next_value);
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

/* ---- what queries read of slots -------------------------------------------------------------- */

/*
 * weights [TRIPLE, TNP_BLOCK] of the slots of a panel += products of features: each slot's sum is
 * its own.
 */
TNP_WIDE_ANY
weigh_triple(const bool fused, int features, const double *restrict q, const float *restrict k,
			 double *restrict weights)
{
	double		sum[TRIPLE * TNP_PANEL];

	for (int i = 0; i < TRIPLE; i++)
		for (int t = 0; t < TNP_PANEL; t++)
			sum[i * TNP_PANEL + t] = weights[i * TNP_BLOCK + t];
	for (int f = 0; f < features; f++, q += READERS, k += TNP_PANEL)
		for (int t = 0; t < TNP_PANEL; t++)
			for (int i = 0; i < TRIPLE; i++)
				sum[i * TNP_PANEL + t] = tnp_add_product(fused, q[i], k[t],
														 sum[i * TNP_PANEL + t]);
	for (int i = 0; i < TRIPLE; i++)
		for (int t = 0; t < TNP_PANEL; t++)
			weights[i * TNP_BLOCK + t] = sum[i * TNP_PANEL + t];
}

/* The same of one query and `panels` panels, whose sums do not wait for each other. */
TNP_WIDE_ANY
weigh_one(const bool fused, const int panels, int features, const double *restrict q,
		  const float *restrict k, size_t next_k, double *restrict weights)
{
	double		sum[PAIR * TNP_PANEL];

	for (int t = 0; t < panels * TNP_PANEL; t++)
		sum[t] = weights[t];
	for (int f = 0; f < features; f++, q += READERS, k += TNP_PANEL)
	{
		double		of_panels[PAIR * TNP_PANEL];

		for (int t = 0; t < TNP_PANEL; t++)
			of_panels[t] = k[t];
		for (int t = 0; panels == PAIR && t < TNP_PANEL; t++)
			of_panels[TNP_PANEL + t] = k[next_k + t];
		for (int t = 0; t < panels * TNP_PANEL; t++)
			sum[t] = tnp_add_product(fused, *q, of_panels[t], sum[t]);
	}
	for (int t = 0; t < panels * TNP_PANEL; t++)
		weights[t] = sum[t];
}

/* Weights of the slots, with zeros where a query does not see one. */
TNP_WIDE_ANY
weigh_slots(const bool fused, const TnpProductQueries *p, const TnpProductSlots *slots,
			double *weights)
{
	size_t		next_k = (size_t) p->features * TNP_PANEL;
	int			panels = (slots->n + TNP_PANEL - 1) / TNP_PANEL;
	double		q[CHUNK * READERS];

	for (int i = 0; i < p->n; i++)
		memset(weights + i * TNP_BLOCK, 0, panels * TNP_PANEL * sizeof(double));
	for (int f = 0; f < p->features; f += CHUNK)
	{
		int			features = p->features - f < CHUNK ? p->features - f : CHUNK,
					i = 0;
		const float *k = slots->k + (size_t) f * TNP_PANEL;

		if (p->n > 1)
			turn(p->n, features, p->q + f, p->next_q, q);
		else
			for (int j = 0; j < features; j++)
				q[j * READERS] = p->q[f + j];
		for (; i + TRIPLE <= p->n; i += TRIPLE)
			for (int at = 0; at < panels; at++)
				weigh_triple(fused, features, q + i, k + at * next_k,
							 weights + i * TNP_BLOCK + at * TNP_PANEL);
		for (; i < p->n; i++)
		{
			int			at = 0;

			for (; at + PAIR <= panels; at += PAIR)
				weigh_one(fused, PAIR, features, q + i, k + at * next_k, next_k,
						  weights + i * TNP_BLOCK + at * TNP_PANEL);
			if (at < panels)
				weigh_one(fused, 1, features, q + i, k + at * next_k, 0,
						  weights + i * TNP_BLOCK + at * TNP_PANEL);
		}
	}
	for (int i = 0; i < p->n; i++)
		for (int s = slots->seen[i]; s < panels * TNP_PANEL; s++)
			weights[i * TNP_BLOCK + s] = 0;
}

/* The weights themselves, behind the values of each query. */
TNP_WIDE_ANY
sum_weights(const int queries, int n, const double *restrict weights, double *restrict values,
			size_t next_value)
{
	double		sum[TRIPLE];

	for (int i = 0; i < queries; i++)
		sum[i] = values[i * next_value];
	for (int s = 0; s < n; s++)
		for (int i = 0; i < queries; i++)
			sum[i] += weights[i * TNP_BLOCK + s];
	for (int i = 0; i < queries; i++)
		values[i * next_value] = sum[i];
}

/* Numbers [t, t + some) of the values, `most` of them with zeros after those. */
TNP_WIDE_ANY
read_values(const bool fused, const int most, int some, const TnpProductQueries *p,
			const TnpProductSlots *slots, int t, const double *weights, double *values)
{
	double		v[TNP_BLOCK * TOGETHER],
				sum[READERS * TOGETHER] = {0};

	take(slots->n, some, slots->v + t, p->width, v);
	for (int i = 0; i < p->n; i++)
		memcpy(sum + i * TOGETHER, values + i * p->next_value + t, some * sizeof(double));
	read_some(fused, most, p->n, slots->n, weights, TNP_BLOCK, 1, v, TOGETHER, sum, TOGETHER);
	for (int i = 0; i < p->n; i++)
		memcpy(values + i * p->next_value + t, sum + i * TOGETHER, some * sizeof(double));
}

TNP_WIDE_ANY
read_slots_any(const bool fused, const TnpProductQueries *p, const TnpProductSlots *slots,
			   double *values)
{
	double		weights[READERS * TNP_BLOCK];
	int			i = 0;

	weigh_slots(fused, p, slots, weights);
	for (int t = 0; t < p->width; t += TOGETHER)
	{
		int			some = p->width - t < TOGETHER ? p->width - t : TOGETHER;

		if (some > 4)
			read_values(fused, TOGETHER, some, p, slots, t, weights, values);
		else
			read_values(fused, 4, some, p, slots, t, weights, values);
	}
	for (; i + TRIPLE <= p->n; i += TRIPLE)
		sum_weights(TRIPLE, slots->n, weights + i * TNP_BLOCK,
					values + i * p->next_value + p->width, p->next_value);
	for (; i < p->n; i++)
		sum_weights(1, slots->n, weights + i * TNP_BLOCK, values + i * p->next_value + p->width,
					p->next_value);
}

TNP_WIDE_FLOATS(read_slots, (const TnpProductQueries *p, const TnpProductSlots *slots,
							 double *values), p, slots, values)

void
tnp_products_read_slots(const TnpProductQueries *queries, const TnpProductSlots *slots,
						double *values)
{
	read_slots(queries, slots, values);
}
