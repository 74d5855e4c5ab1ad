/*
 * moments_test.c: operations for sums of every instruction set against the reference: features and
 * second moments bit by bit, products of matrices within rounding; factors and inverses.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <stdlib.h>

#include "models.h"
#include "tables.h"
#include "tap.h"

#include "cpu/moments_tables.h"
#include "engine/families/sums_factor.h"
#include "engine/kernels/moments_reference.h"

#define R TNP_MOMENT_ROWS
#define WAVES 20
#define MOST 150				/* features, and sizes of matrices */
#define BLOCKS TNP_MOMENT_BLOCKS

static const TnpMoments *moments;
static const char *name;
static unsigned state = 1;

static double
uniform(double low, double high)
{
	return low + (high - low) * test_uniform(&state);
}

static void
check_features(void)
{
	int			waves_differ = 0,
				rounds_differ = 0;

	for (int turn = 0; turn < 200; turn++)
	{
		double		x[R],
					part[(WAVES + 1) * R],
					want[(WAVES + 1) * R],
					center = uniform(-2, 2),
					scale = uniform(0.1, 3);
		int			waves = turn % (WAVES + 1);

		for (int r = 0; r < R; r++)
			x[r] = test_uniform(&state) < 0.1 ? NAN
				: test_uniform(&state) < 0.1 ? uniform(-1, 1) * 1e300 : uniform(-9, 9);
		/* both sides of where squashing begins */
		x[0] = center + 2 * scale;
		x[1] = center - 2 * scale;
		moments->waves(x, center, scale, waves, part);
		tnp_reference_moments.waves(x, center, scale, waves, want);
		for (int i = 0; i < (waves + 1) * R; i++)
			waves_differ += part[i] != want[i];
		for (int k = 0; k < waves; k++)
			for (int product = 0; product < 2; product++)
			{
				int16_t		phi[R],
							wanted[R];
				const double *b = product ? want + (k + 1) * R : NULL;

				want[k * R] = uniform(-1.1, 1.1);
				/* halfway between two integers */
				want[k * R + 1] = (floor(uniform(-9, 9)) + 0.5) / TNP_MOMENT_UNIT;
				moments->round(want + k * R, b, phi);
				tnp_reference_moments.round(want + k * R, b, wanted);
				rounds_differ += memcmp(phi, wanted, sizeof(phi)) != 0;
			}
	}
	ok(waves_differ == 0, "%s: waves are those of the reference, bitwise", name);
	ok(rounds_differ == 0, "%s: so are rounded values and products", name);
}

/*
 * Features of n: some all 0, some at a limit in all rows, some anything within it. As few as eight
 * neighbours have one limit, so that sums of one, two and more blocks have room in 32 bits.
 */
static void
fill_phi(int n, int rows, int16_t *phi)
{
	int			limit = TNP_MOMENT_UNIT;

	memset(phi, 0, (size_t) n * R * sizeof(*phi));
	for (int i = 0; i < n; i++)
	{
		double		kind = test_uniform(&state);

		if (i % 8 == 0)
			limit = (int) uniform(TNP_MOMENT_UNIT / 3, TNP_MOMENT_UNIT * 1.5);
		limit = limit < TNP_MOMENT_UNIT ? limit : TNP_MOMENT_UNIT;
		for (int r = 0; r < rows; r++)
			phi[i * R + r] = (int16_t) (kind < 0.3 ? 0 : kind < 0.5 ? limit : kind < 0.6 ? -limit
										: floor(uniform(-limit, limit)));
	}
}

static void
lay_out_all(const TnpMoments *m, int n, int blocks, int pairs, const int16_t *phi,
			int32_t *panels, uint16_t *norms)
{
	for (int b = 0; b < blocks; b++)
		m->lay_out(n, pairs, phi + (size_t) b * n * R, panels + b * tnp_panel_words(n),
				   norms + b * TNP_MOMENT_NORMS);
}

static void
check_moments(void)
{
	size_t		words = MOST * (MOST + 1) / 2;
	int16_t    *phi = malloc(BLOCKS * MOST * R * sizeof(int16_t));
	int32_t    *panels = malloc(BLOCKS * tnp_panel_words(MOST) * sizeof(int32_t));
	uint16_t	norms[BLOCKS * TNP_MOMENT_NORMS];
	int64_t    *gram = calloc(words + 1, sizeof(int64_t)),
			   *want = calloc(words + 1, sizeof(int64_t)),
				y[R],
				product[MOST],
				wanted[MOST];
	int			grams_differ = 0,
				products_differ = 0;

	for (int turn = 0; turn < 120; turn++)
	{
		int			n = 1 + (int) (test_uniform(&state) * (turn % 2 ? MOST : 9)),
					blocks = 1 + turn % BLOCKS,
					rows = blocks > 1 ? R : 1 + turn / 4 % R,
					sign = turn % 3 ? 1 : -1;
		size_t		used = (size_t) n * (n + 1) / 2;

		for (int b = 0; b < blocks; b++)
			fill_phi(n, rows, phi + (size_t) b * n * R);
		for (int r = 0; r < R; r++)
			y[r] = turn % 5 ? (int64_t) uniform(-1e9, 1e9) : (int64_t) 1 << 44;
		gram[used] = want[used] = 77;
		lay_out_all(moments, n, blocks, (rows + 1) / 2, phi, panels, norms);
		moments->add(n, blocks, (rows + 1) / 2, sign, panels, norms, gram);
		moments->product(n, (rows + 1) / 2, panels, y, product);
		lay_out_all(&tnp_reference_moments, n, blocks, R / 2, phi, panels, norms);
		tnp_reference_moments.add(n, blocks, R / 2, sign, panels, norms, want);
		/* the number behind the last is not touched */
		grams_differ += memcmp(gram, want, (used + 1) * sizeof(int64_t)) != 0;
		tnp_reference_moments.product(n, R / 2, panels, y, wanted);
		products_differ += memcmp(product, wanted, n * sizeof(int64_t)) != 0;
	}
	ok(grams_differ == 0, "%s: second moments are those of the reference, bitwise", name);
	ok(products_differ == 0, "%s: so are products with the target", name);
	free(phi);
	free(panels);
	free(gram);
	free(want);
}

static double *
matrix(int m, int n)
{
	double	   *a = malloc((size_t) m * n * sizeof(double));

	for (int i = 0; i < m * n; i++)
		a[i] = uniform(-1, 1);
	return a;
}

static void
check_subtract(void)
{
	double		worst = 0;

	for (int turn = 0; turn < 30; turn++)
	{
		int			m = TNP_MOMENT_TILE * (1 + turn % 4),
					n = TNP_MOMENT_TILE * (1 + turn % 3),
					k = (int) uniform(0, 90);
		double	   *a = matrix(m, k + 3),
				   *b = matrix(k + 1, n + 5),
				   *c = matrix(m, n + 1),
				   *want = malloc((size_t) m * (n + 1) * sizeof(double));

		memcpy(want, c, (size_t) m * (n + 1) * sizeof(double));
		moments->subtract(m, n, k, a, k + 3, b, n + 5, c, n + 1);
		tnp_reference_moments.subtract(m, n, k, a, k + 3, b, n + 5, want, n + 1);
		for (int i = 0; i < m * (n + 1); i++)
			worst = fmax(worst, fabs(c[i] - want[i]));
		free(a);
		free(b);
		free(c);
		free(want);
	}
	ok(worst < 1e-13, "%s: products of matrices", name);
}

/* Both solutions one after the other solve A u = v, also of the first rows and columns. */
static void
check_solve(int n, const double *a, const double *factor)
{
	double	   *v = matrix(n, 1),
			   *u = malloc(n * sizeof(double)),
				worst = 0;

	for (int m = n; m > n - SUMS_FACTOR_BLOCK; m -= 13)
	{
		memcpy(u, v, m * sizeof(double));
		sums_solve_lower(factor, m, u);
		sums_solve_upper(factor, m, u);
		for (int i = 0; i < m; i++)
		{
			double		sum = -v[i];

			for (int j = 0; j < m; j++)
				sum += a[j <= i ? i * n + j : j * n + i] * u[j];
			worst = fmax(worst, fabs(sum));
		}
	}
	ok(worst < 1e-10, "%s: solutions by the factor of %d", name, n);
	free(v);
	free(u);
}

/* A = V V' + I: its factor times itself, and times its inverse. */
static void
check_factor(void)
{
	for (int n = SUMS_FACTOR_BLOCK; n <= 5 * SUMS_FACTOR_BLOCK; n += 2 * SUMS_FACTOR_BLOCK)
	{
		double	   *v = matrix(n, n),
				   *a = calloc((size_t) n * n, sizeof(double)),
				   *factor = malloc(sums_stair(n) * sizeof(double)),
				   *inverse = malloc((size_t) n * n * sizeof(double)),
				   *scratch = malloc(sums_factor_numbers(n) * sizeof(double)),
					worst = 0,
					unit = 0;

		for (int i = 0; i < n; i++)
			for (int j = 0; j <= i; j++)
			{
				for (int k = 0; k < n; k++)
					a[i * n + j] += v[i * n + k] * v[j * n + k];
				a[i * n + j] += i == j;
			}
		for (int i = 0; i < n; i++)
			memcpy(factor + sums_stair(i), a + i * n, (i + 1) * sizeof(double));
		ok(sums_factorise(moments, n, factor, scratch), "%s: a matrix of %d has a factor", name, n);
		sums_invert(moments, n, factor, scratch, inverse);
		for (int i = 0; i < n; i++)
			for (int j = 0; j <= i; j++)
			{
				double		product = 0,
							one = 0;

				for (int k = 0; k <= j; k++)
					product += factor[sums_stair(i) + k] * factor[sums_stair(j) + k];
				for (int k = j; k <= i; k++)
					one += factor[sums_stair(i) + k] * inverse[k * n + j];
				worst = fmax(worst, fabs(product - a[i * n + j]));
				unit = fmax(unit, fabs(one - (i == j)));
			}
		ok(worst < 1e-10 && unit < 1e-10, "%s: factor and inverse of %d", name, n);
		check_solve(n, a, factor);
		for (int i = 0; i < n; i++)
			memcpy(factor + sums_stair(i), a + i * n, (i + 1) * sizeof(double));
		factor[sums_stair(n - 1) + n - 1] = -1;
		ok(!sums_factorise(moments, n, factor, scratch), "%s: an indefinite one has none", name);
		free(v);
		free(a);
		free(factor);
		free(inverse);
		free(scratch);
	}
}

static void
check(const TnpMoments *m, const char *of)
{
	moments = m;
	name = of;
	check_features();
	check_moments();
	check_subtract();
	check_factor();
}

int
main(void)
{
	const TnpKernels *tables[TNP_CPU_TABLES];
	int			n = tnp_cpu_all_kernels(tables, TNP_CPU_TABLES);

	check(&tnp_reference_moments, "reference");
	check(&tnp_cpu_moments_16, "baseline");
	for (int i = 0; i < n; i++)
		check(tables[i]->moments(), tables[i]->name);
#if defined(__x86_64__)
	/* what a table leaves for the more instructions of this machine */
	if (strcmp(tables[0]->name, "cpu-avx512") == 0)
		check(&tnp_cpu_moments_64, "cpu-avx512 without products of words");
#endif
	return done_testing();
}
