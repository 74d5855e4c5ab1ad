/*
 * upper_lanes.h: systems of an upper factor for TNP_UPPER_MANY vectors at once, a number of each
 * side by side. Included by upper.c once for each width of vectors, with LANES, the doubles of one,
 * and WIDTH(), which names what is of it.
 *
 * A number of the factor is read once for all, and nothing is summed across lanes: products and
 * their order are those of tnp_upper_solve, and so are the bits.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#define PARTS (TNP_UPPER_MANY / LANES)	/* vectors of the processor for a number of each */

typedef double WIDTH(Vector) __attribute__((vector_size(8 * LANES), aligned(8), may_alias));

/* to[p] += the sum over four columns of -v_k[p] times row_k's number, p in vectors; from [4]. */
static inline __attribute__((always_inline)) void
WIDTH(take_four)(WIDTH(Vector) *restrict to, const WIDTH(Vector) *restrict from, const double *row,
				 size_t n)
{
	const double r0 = row[0],
				r1 = row[n],
				r2 = row[2 * n],
				r3 = row[3 * n];

	for (int p = 0; p < PARTS; p++)
		to[p] += (from[p] * r0 + from[PARTS + p] * r1)
			+ (from[2 * PARTS + p] * r2 + from[3 * PARTS + p] * r3);
}

/*
 * `groups` fours of columns from column k on, and what is left of the later ones without them; c
 * [4 groups, PARTS] is scratch.
 */
static inline __attribute__((always_inline)) void
WIDTH(solve_columns)(const double *u, size_t n, size_t k, const size_t groups, WIDTH(Vector) *v,
					 WIDTH(Vector) *restrict c)
{
	const double *of = u + k * n;

	for (size_t g = 0; g < groups; g++)
	{
		size_t		first = k + 4 * g;
		const double *rows = of + 4 * g * n;

		for (size_t t = 0; t < 4; t++)
		{
			WIDTH(Vector) *x = v + (first + t) * PARTS;

			for (size_t s = 0; s < t; s++)
				for (int p = 0; p < PARTS; p++)
					x[p] -= v[(first + s) * PARTS + p] * rows[s * n + first + t];
			for (int p = 0; p < PARTS; p++)
			{
				x[p] /= rows[t * n + first + t];
				c[(4 * g + t) * PARTS + p] = -x[p];
			}
		}
		for (size_t j = first + 4; j < k + 4 * groups; j++)
			WIDTH(take_four)(v + j * PARTS, c + 4 * g * PARTS, rows + j, n);
	}
	for (size_t j = k + 4 * groups; j < n; j++)
	{
		WIDTH(Vector) sum[PARTS];

		for (int p = 0; p < PARTS; p++)
			sum[p] = v[j * PARTS + p];
		for (size_t g = 0; g < groups; g++)
			WIDTH(take_four)(sum, c + 4 * g * PARTS, of + 4 * g * n + j, n);
		for (int p = 0; p < PARTS; p++)
			v[j * PARTS + p] = sum[p];
	}
}

static inline __attribute__((always_inline)) void
WIDTH(solve_lanes)(const double *u, size_t n, double *numbers)
{
	WIDTH(Vector) *v = (WIDTH(Vector) *) numbers,
				c[4 * GROUPS * PARTS] __attribute__((aligned(64)));
	size_t		k = 0;

	for (; k + 4 * GROUPS <= n; k += 4 * GROUPS)
		WIDTH(solve_columns)(u, n, k, GROUPS, v, c);
	for (; k + 4 <= n; k += 4)
		WIDTH(solve_columns)(u, n, k, 1, v, c);
	for (; k < n; k++)
		for (int p = 0; p < PARTS; p++)
		{
			v[k * PARTS + p] /= u[k * n + k];
			for (size_t j = k + 1; j < n; j++)
				v[j * PARTS + p] += -v[k * PARTS + p] * u[k * n + j];
		}
}

/* out [TNP_UPPER_MANY] = tnp_dot of each vector and b [n], or itself where b is NULL. */
static inline __attribute__((always_inline)) void
WIDTH(dot_lanes)(size_t n, const double *numbers, const double *b, double *out)
{
	const WIDTH(Vector) *v = (const WIDTH(Vector) *) numbers;
	WIDTH(Vector) sum[4][PARTS] = {0};

	for (size_t t = 0; t < 4; t++)
		for (size_t i = t; i < n / 4 * 4; i += 4)
			for (int p = 0; p < PARTS; p++)
				sum[t][p] += b == NULL ? v[i * PARTS + p] * v[i * PARTS + p]
					: v[i * PARTS + p] * b[i];
	for (size_t i = n / 4 * 4; i < n; i++)
		for (int p = 0; p < PARTS; p++)
			sum[0][p] += b == NULL ? v[i * PARTS + p] * v[i * PARTS + p] : v[i * PARTS + p] * b[i];
	for (int p = 0; p < PARTS; p++)
		((WIDTH(Vector) *) out)[p] = (sum[0][p] + sum[1][p]) + (sum[2][p] + sum[3][p]);
}
#undef LANES
#undef PARTS
#undef WIDTH
