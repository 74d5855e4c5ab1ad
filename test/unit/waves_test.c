/*
 * waves_test.c: sines against the mathematical library, sums against their definition, and the same
 * bits whatever vectors a processor has.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <stdlib.h>

/* the source itself, under other names: its vectors are chosen by the processor */
#define tnp_sines own_sines
#define tnp_weighted_sum own_weighted_sum
#define tnp_sum_of_products own_sum_of_products
#include "engine/base/waves.c"

#include "noise.h"
#include "tap.h"

#define MOST 1031
#define COLUMNS 5
#define RESULTS (3 * MOST + 1)

static double angle[MOST],
			columns[COLUMNS * MOST],
			weight[COLUMNS] = {0.3, -1.7, 0.01, 2.5, 0},
			results[RESULTS],
			others[RESULTS];

/* Angles up to `most`, each third of them close to a multiple of an eighth of a turn. */
static void
fill(double most)
{
	for (int i = 0; i < MOST; i++)
	{
		angle[i] = most * noise(i);
		if (i % 3 == 0)
			angle[i] = 0.78539816339744828 * trunc(angle[i] / 0.78539816339744828);
	}
	for (int i = 0; i < COLUMNS * MOST; i++)
		columns[i] = noise(7 * i + 1);
}

static void
check_sines(double most)
{
	double		worst = 0;

	fill(most);
	own_sines(MOST, angle, results, results + MOST);
	for (int i = 0; i < MOST; i++)
	{
		worst = fmax(worst, fabs(results[i] - sin(angle[i])));
		worst = fmax(worst, fabs(results[MOST + i] - cos(angle[i])));
	}
	/* what is left of a large angle has the rounding of its turns */
	ok(worst < 3e-16 + 1e-22 * most, "sines of angles up to %g", most);
}

static void
check_sums(int n)
{
	double		off = 0,
				sum = 0;

	own_weighted_sum(n, COLUMNS, columns, weight, results);
	for (int i = 0; i < n; i++)
	{
		double		one = 0;

		for (int c = 0; c < COLUMNS; c++)
			one += weight[c] * columns[c * n + i];
		off = fmax(off, fabs(results[i] - one));
		sum += angle[i] * columns[i];
	}
	ok(off < 1e-15, "%d rows: weighted sums", n);
	ok(fabs(own_sum_of_products(n, angle, columns) - sum) <= 1e-9, "%d rows: products", n);
}

#if defined(__x86_64__) && defined(__GNUC__)
/* All results of one width; out [RESULTS]. */
#define RESULTS_OF(width) \
static void \
results_##width(double *out) \
{ \
	sines_##width(MOST, angle, out, out + MOST); \
	weighted_sum_##width(MOST, COLUMNS, columns, weight, out + 2 * MOST); \
	sum_of_products_##width(MOST, angle, columns, out + 3 * MOST); \
}
RESULTS_OF(128)
RESULTS_OF(256)
RESULTS_OF(512)

static void
check_widths(void)
{
	results_128(results);
	if (__builtin_cpu_supports("avx2"))
	{
		results_256(others);
		ok(memcmp(results, others, sizeof(results)) == 0, "vectors of 256 bits: the same bits");
	}
	else
		skip("no AVX2", "vectors of 256 bits: the same bits");
	if (__builtin_cpu_supports("avx512f"))
	{
		results_512(others);
		ok(memcmp(results, others, sizeof(results)) == 0, "vectors of 512 bits: the same bits");
	}
	else
		skip("no AVX-512", "vectors of 512 bits: the same bits");
}
#else
static void
check_widths(void)
{
	skip("one width", "the same bits");
}
#endif

int
main(void)
{
	check_sines(0.5);
	check_sines(10);
	check_sines(1000);
	check_sines(TNP_MOST_ANGLE);
	fill(10);
	for (int n = 1; n <= 17; n++)
		check_sums(n);
	check_sums(MOST);
	fill(100);
	check_widths();
	return done_testing();
}
