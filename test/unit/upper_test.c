/*
 * upper_test.c: upper Cholesky factors against their definition, and the same bits whatever vectors
 * a processor has.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <stdlib.h>
#include <string.h>

/* the source itself, under other names: its vectors are chosen by the processor */
#define tnp_upper_factorise own_factorise
#define tnp_upper_solve own_solve
#define tnp_upper_solve_many own_solve_many
#define tnp_upper_dot_many own_dot_many
#define tnp_upper_solve_back own_solve_back
#define tnp_upper_add own_add
#define tnp_upper_invert own_invert
#include "engine/base/upper.c"

#include "noise.h"
#include "tap.h"

#define MOST 131
#define SQUARE (MOST * MOST)

static double matrix[SQUARE],
			factor[SQUARE],
			inverse[SQUARE],
			scratch[SQUARE],
			again[SQUARE],
			vectors[STEP * MOST],
			solved[STEP * MOST],
			lanes[TNP_UPPER_MANY * MOST],
			solved_lanes[TNP_UPPER_MANY * MOST];

/* A definite matrix [n, n], as of points that lie close together. */
static void
fill(int n)
{
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			matrix[i * n + j] = exp(-0.5 * pow(noise(3 * i) - noise(3 * j), 2))
				+ (i == j ? 0.1 : 0);
	for (int i = 0; i < STEP * n; i++)
		vectors[i] = noise(7 * i + 1);
	for (int i = 0; i < TNP_UPPER_MANY * n; i++)
		lanes[i] = noise(11 * i + 5);
}

/* Largest difference of the product of two factors' rows from the matrix. */
static double
off_matrix(int n)
{
	double		most = 0;

	for (int i = 0; i < n; i++)
		for (int j = i; j < n; j++)
		{
			double		sum = 0;

			for (int k = 0; k <= i; k++)
				sum += factor[k * n + i] * factor[k * n + j];
			most = fmax(most, fabs(sum - matrix[i * n + j]));
		}
	return most;
}

static double
entry(int n, int i, int j)
{
	return i <= j ? inverse[i * n + j] : inverse[j * n + i];
}

/* Largest difference of the matrix times its inverse from the identity. */
static double
off_identity(int n)
{
	double		most = 0;

	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
		{
			double		sum = i == j ? -1 : 0;

			for (int k = 0; k < n; k++)
				sum += matrix[i * n + k] * entry(n, k, j);
			most = fmax(most, fabs(sum));
		}
	return most;
}

/* Largest difference of U'v from what was solved for. */
static double
off_vectors(int n)
{
	double		most = 0;

	for (int r = 0; r < STEP; r++)
		for (int j = 0; j < n; j++)
		{
			double		sum = -vectors[r * n + j];

			for (int k = 0; k <= j; k++)
				sum += factor[k * n + j] * solved[r * n + k];
			most = fmax(most, fabs(sum));
		}
	return most;
}

static void
check_definition(int n)
{
	bool		alone = true;

	fill(n);
	memcpy(factor, matrix, sizeof(matrix));
	ok(own_factorise(factor, n), "%d rows: definite", n);
	ok(off_matrix(n) < 1e-12, "%d rows: U'U is the matrix", n);
	own_invert(factor, n, scratch, inverse);
	ok(off_identity(n) < 1e-9, "%d rows: the inverse", n);
	memcpy(solved, vectors, sizeof(vectors));
	own_solve(factor, n, STEP, solved);
	ok(off_vectors(n) < 1e-11, "%d rows: U'v = w", n);
	for (int r = 0; r < STEP; r++)
	{
		memcpy(again, vectors + r * n, n * sizeof(double));
		own_solve(factor, n, 1, again);
		alone &= memcmp(again, solved + r * n, n * sizeof(double)) == 0;
	}
	ok(alone, "%d rows: a vector's bits do not depend on the others", n);
	own_solve_back(factor, n, solved);
	for (int i = 0; i < n; i++)
	{
		double		sum = 0;

		for (int k = 0; k < n; k++)
			sum += entry(n, i, k) * vectors[k];
		alone &= fabs(sum - solved[i]) < 1e-9;
	}
	ok(alone, "%d rows: U'Uv = w", n);
}

/* Vectors side by side get the bits of each alone; the factor is that of check_definition. */
static void
check_many(int n)
{
	double		squares[TNP_UPPER_MANY],
				products[TNP_UPPER_MANY];
	bool		same = true,
				dots = true;

	memcpy(solved_lanes, lanes, sizeof(lanes));
	own_solve_many(factor, n, solved_lanes);
	own_dot_many(n, solved_lanes, NULL, squares);
	own_dot_many(n, solved_lanes, vectors, products);
	for (int r = 0; r < TNP_UPPER_MANY; r++)
	{
		for (int i = 0; i < n; i++)
			again[i] = lanes[i * TNP_UPPER_MANY + r];
		own_solve(factor, n, 1, again);
		for (int i = 0; i < n; i++)
			same &= memcmp(&again[i], &solved_lanes[i * TNP_UPPER_MANY + r], sizeof(double)) == 0;
		dots &= squares[r] == tnp_dot(n, again, again) && products[r] == tnp_dot(n, again, vectors);
	}
	ok(same, "%d rows: vectors side by side, the bits of each alone", n);
	ok(dots, "%d rows: and so their products", n);
}

#if defined(__x86_64__) && defined(__GNUC__)
/* All results of one width; out [2 SQUARE + (STEP + TNP_UPPER_MANY) MOST + TNP_UPPER_MANY]. */
#define RESULTS(width) \
static void \
results_##width(int n, double *out) \
{ \
	bool		definite; \
	const double weight[STEP] = {0.3, 1.7, 0.01, 2.5}; \
	memcpy(out, matrix, sizeof(matrix)); \
	memcpy(out + 2 * SQUARE, vectors, sizeof(vectors)); \
	add_##width(out, n, vectors, weight); \
	factorise_##width(out, n, &definite); \
	invert_##width(out, n, scratch, out + SQUARE); \
	solve_##width(out, n, STEP, out + 2 * SQUARE); \
	memcpy(out + 2 * SQUARE + STEP * MOST, lanes, sizeof(lanes)); \
	solve_many_##width(out, n, out + 2 * SQUARE + STEP * MOST); \
	dot_many_##width(n, out + 2 * SQUARE + STEP * MOST, vectors, \
					 out + 2 * SQUARE + (STEP + TNP_UPPER_MANY) * MOST); \
}
RESULTS(128)
RESULTS(256)
RESULTS(512)

#define RESULTS_SIZE ((2 * SQUARE + (STEP + TNP_UPPER_MANY) * MOST + TNP_UPPER_MANY) \
					  * sizeof(double))

static void
check_widths(int n)
{
	double	   *plain = calloc(1, RESULTS_SIZE),
			   *wide = calloc(1, RESULTS_SIZE);

	fill(n);
	results_128(n, plain);
	if (!__builtin_cpu_supports("avx2"))
		skip("the processor has no such vectors", "%d rows: vectors of 256 bits", n);
	else
	{
		results_256(n, wide);
		ok(memcmp(plain, wide, RESULTS_SIZE) == 0, "%d rows: vectors of 256 bits", n);
	}
	if (!__builtin_cpu_supports("avx512f"))
		skip("the processor has no such vectors", "%d rows: vectors of 512 bits", n);
	else
	{
		memset(wide, 0, RESULTS_SIZE);
		results_512(n, wide);
		ok(memcmp(plain, wide, RESULTS_SIZE) == 0, "%d rows: vectors of 512 bits", n);
	}
	free(plain);
	free(wide);
}
#else
static void
check_widths(int n)
{
	skip("one width only", "%d rows: other vectors", n);
}
#endif

int
main(void)
{
	static const int sizes[] = {1, 2, 3, 4, 5, 7, 8, 30, 64, MOST};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
	{
		check_definition(sizes[i]);
		check_many(sizes[i]);
		check_widths(sizes[i]);
	}
	fill(8);
	memcpy(factor, matrix, sizeof(matrix));
	factor[3 * 8 + 3] = -1;
	ok(!own_factorise(factor, 8), "an indefinite matrix has no factor");
	return done_testing();
}
