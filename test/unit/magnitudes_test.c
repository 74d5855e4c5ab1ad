/*
 * magnitudes_test.c: numbers far from 1: norms, activations, attention and the cache of every table
 * of kernels, drift, and the functions of distributions. What cannot be right is NaN, or refused.
 * Whole models are asked in test/reference/check_magnitudes.py.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <stdlib.h>

#include "engine/network/kv_cache.h"
#include "models.h"
#include "tables.h"
#include "tap.h"

#define WIDTH 37
#define HEAD 16
/* powers of two within the limits of a distribution, 1e150 and 1e-150 */
#define LARGEST 490

static const TnpKernels *table;

/* A row of numbers about 2^power, one of them `odd` times as large. */
static void
fill(float *x, int power, float odd)
{
	unsigned	state = 7;

	for (int i = 0; i < WIDTH; i++)
		x[i] = ldexpf((float) (test_uniform(&state) - 0.3), power);
	x[5] *= odd;
}

static double
norm_error(TnpNormKind kind, int power, float odd)
{
	float		x[WIDTH],
				weight[WIDTH],
				bias[WIDTH],
				got[WIDTH],
				want[WIDTH];
	TnpNorm		norm = {kind, WIDTH, 1e-30f, weight, kind == TNP_LAYER_NORM ? bias : NULL};
	double		worst = 0;

	fill(x, power, odd);
	fill(weight, 0, 1);
	fill(bias, 0, 1);
	tnp_reference_kernels.norm(&norm, 1, x, want);
	table->norm(&norm, 1, x, got);
	for (int i = 0; i < WIDTH; i++)
		worst = isfinite(got[i]) && isfinite(want[i])
			? fmax(worst, fabs((double) got[i] - want[i])) : INFINITY;
	return worst;
}

static void
test_norms(void)
{
	double		worst = 0;

	for (int kind = 0; kind < 2; kind++)
		for (int power = -120; power <= 127; power++)
			for (int odd = 0; odd < 2; odd++)
				worst = fmax(worst,
							 norm_error(kind == 0 ? TNP_LAYER_NORM : TNP_RMS_NORM, power,
										odd ? 0.001f : 1));
	if (!ok(worst < 1e-5, "%s: norms are the reference's from 1e-36 to the largest float",
			table->name))
		diag("largest difference %g", worst);
}

/* What is not a number, or beyond the largest, does not become one. */
static void
test_not_finite(void)
{
	static const TnpActivation activations[] = {TNP_IDENTITY, TNP_RELU, TNP_GELU, TNP_GELU_TANH};
	float		weight[WIDTH],
			   *packed,
				x = NAN,
				row[WIDTH],
				y[WIDTH];
	TnpLinear	w = {1, WIDTH, 1, weight, NULL, NULL, NULL};
	TnpNorm		norm = {TNP_RMS_NORM, WIDTH, 1e-5f, weight, NULL};
	int			wrong = 0;

	if (posix_memalign((void **) &packed, 64,
					   (table->packed_floats(WIDTH, 1) + 1) * sizeof(float)) != 0)
		exit(1);
	fill(weight, 0, 1);
	table->pack(weight, WIDTH, 1, packed);
	w.packed = packed;
	for (int a = 0; a < 4; a++)
	{
		table->linear(&w, 1, &x, activations[a], false, y);
		for (int i = 0; i < WIDTH; i++)
			wrong += !isnan(y[i]);
	}
	ok(wrong == 0, "%s: no activation makes a number of NaN", table->name);
	fill(row, 0, 1);
	row[36] = INFINITY;
	table->norm(&norm, 1, row, y);
	ok(isnan(y[36]), "%s: nor does a norm of what is infinite", table->name);
	free(packed);
}

/*
 * One feature of one row's attention to two keys, whose first features are `first` and `second`,
 * with a query.
 */
static float
attend(float query, float first, float second, int seen)
{
	TnpKvCache	cache;
	TnpError	error;
	float		k[HEAD] = {0},
				v[HEAD],
				q[HEAD] = {query},
				scale = 1,
				out[HEAD],
			   *scratch;
	int64_t		context = seen;
	TnpKeys		own = {NULL, NULL, 0};
	TnpAttention a = {1, HEAD, 1, 1, q, &scale, NULL, NULL, &context, &own, NULL, out, 1};

	test_must(tnp_cache_make(&tnp_default_env,
							 &(TnpCacheShape) {1, 1, HEAD, HEAD, table->number, .planes = 1},
							 TNP_BLOCK, 2, &cache, &error), &error);
	if (posix_memalign((void **) &scratch, 64,
					   table->attend_floats(1, HEAD, 1, 1) * sizeof(float) + 1) != 0)
		exit(1);
	for (int i = 0; i < 2; i++)
	{
		k[0] = i == 0 ? first : second;
		for (int f = 0; f < HEAD; f++)
			v[f] = (float) (i + 1);
		tnp_cache_put(table, &cache, 0, i, k, v);
	}
	a.k = cache.k[0];
	a.v = cache.v[0];
	a.scratch = scratch;
	table->attend(&a);
	free(scratch);
	tnp_cache_free(&tnp_default_env, &cache);
	return out[3];
}

static void
test_attention(void)
{
	bool		reference = table == &tnp_reference_kernels;

	ok(fabsf(attend(1, 3, 3, 2) - 1.5f) < 1e-6f && fabsf(attend(300, 2, 1, 2) - 1) < 1e-6f,
	   "%s: attention to two keys", table->name);
	ok(attend(1e6f, 1, 1, 0) == 0, "%s: no key is no attention, whatever the query", table->name);
	ok(isnan(attend(1e6f, 1, 2, 2)) && isnan(attend(-1e6f, 1, 2, 2)),
	   "%s: scores that rounding makes are not weighed", table->name);
	ok(isnan(attend(NAN, 1, 2, 2)) && isnan(attend(INFINITY, 1, -2, 2)),
	   "%s: nor those that are not numbers", table->name);
	ok(reference || isnan(attend(1e20f, 0, 1e-3f, 2)),
	   "%s: nor those of a query whose products have no room", table->name);
}

static void
test_cache(void)
{
	TnpKvCache	cache;
	TnpError	error;
	bool		half = table->narrow != NULL;
	float		k[HEAD] = {1},
				v[HEAD] = {1};

	test_must(tnp_cache_make(&tnp_default_env,
							 &(TnpCacheShape) {1, 1, HEAD, HEAD, table->number, .planes = 1},
							 TNP_BLOCK, 1, &cache, &error), &error);
	ok(tnp_cache_put(table, &cache, 0, 0, k, v), "%s: what fits is stored", table->name);
	k[7] = 65504;
	v[9] = -65504;
	ok(tnp_cache_put(table, &cache, 0, 0, k, v), "%s: so are the largest halves", table->name);
	k[7] = 65520;
	ok(tnp_cache_put(table, &cache, 0, 0, k, v) == !half,
	   "%s: larger keys only where they are floats", table->name);
	k[7] = 1;
	v[9] = 1e30f;
	ok(tnp_cache_put(table, &cache, 0, 0, k, v) == !half, "%s: and larger values", table->name);
	v[9] = NAN;
	ok(!tnp_cache_put(table, &cache, 0, 0, k, v), "%s: NaN is not stored unnoticed", table->name);
	v[9] = 1;
	k[7] = 1e17f;
	ok(!tnp_cache_put(table, &cache, 0, 0, k, v), "%s: nor is a key whose products have no room",
	   table->name);
	tnp_cache_free(&tnp_default_env, &cache);
}

static void
test_table(const TnpKernels *kernels)
{
	table = kernels;
	test_norms();
	test_not_finite();
	test_attention();
	test_cache();
}

/* ---- drift ----------------------------------------------------------------------------------- */

#define ROWS 200
#define FIRST 100

/* Drift of a column with these units before and after, which moves by `shift` of its unit. */
static double
drift(int before, int after, double shift)
{
	double		x[ROWS],
				y[ROWS];
	unsigned	state = 3;
	TnpRows		rows = {ROWS, 1, NULL, x, y, 0, 0, 1};

	for (int i = 0; i < ROWS; i++)
	{
		x[i] = ldexp(test_uniform(&state) + (i < FIRST ? 0 : shift), i < FIRST ? before : after);
		y[i] = test_uniform(&state);
	}
	return tnp_drift(NULL, &rows, FIRST);
}

static void
test_drift(void)
{
	double		plain = drift(0, 0, 2),
				wider = drift(0, 300, 0);
	int			wrong = 0;

	for (int unit = -900; unit <= 1020; unit += 60)
		wrong += drift(unit, unit, 2) != plain || drift(unit, unit, 0) != 0;
	ok(plain > 1 && wrong == 0, "drift knows no unit");
	ok(wider > 1e80 && fabs(drift(-600, -300, 0) / wider - 1) < 1e-12 &&
	   fabs(drift(600, 900, 0) / wider - 1) < 1e-12, "nor a change of units");
	ok(fabs(drift(900, -900, 0) - 1800 * log(2)) < 3,
	   "numbers that become tiny drift by the logarithm");
	ok(isinf(drift(-900, 900, 0)), "those that become huge by more than there are numbers for");
}

/* ---- distributions --------------------------------------------------------------------------- */

#define ANSWERS 40

/* What is known of a distribution, but for its unit 2^power. */
static void
describe(TnpDistributionKind kind, int n, const double *plain, int power, double *out)
{
	double		params[16];
	int			size = tnp_distribution_size(kind, n),
				weights = kind == TNP_GAUSSIAN ? 0 : n;
	TnpDistribution d = {kind, n, params};

	for (int i = 0; i < size; i++)
		params[i] = i < weights ? plain[i] : ldexp(plain[i], power);
	memset(out, 0, ANSWERS * sizeof(double));
	if (tnp_distribution_check(&d, NULL) != TNP_OK)
		return;
	*out++ = 1;
	*out++ = ldexp(tnp_mean(&d), -power);
	*out++ = ldexp(tnp_variance(&d), -2 * power);
	*out++ = ldexp(tnp_mode(&d), -power);
	*out++ = tnp_entropy(&d) - power * log(2);
	for (int i = 0; i < 5; i++)
	{
		double		y = ldexp(-1.3 + i, power);

		*out++ = tnp_cdf(&d, y);
		*out++ = ldexp(tnp_pdf(&d, y), power);
		*out++ = tnp_log_pdf(&d, y) + power * log(2);
		*out++ = ldexp(tnp_crps(&d, y), -power);
		*out++ = ldexp(tnp_quantile(&d, 0.001 + 0.24 * i), -power);
		*out++ = ldexp(tnp_draw(&d, 5, i, 0), -power);
	}
}

static void
test_distributions(void)
{
	static const double gaussian[] = {0.3, 1.2},
				mixture[] = {0.2, 0.5, 0.3, -1, 0.1, 2, 0.5, 0.01, 1.5},
				bars[] = {0.1, 0.4, 0.5, -2, -1, 0.5, 3};
	static const struct
	{
		TnpDistributionKind kind;
		int			n;
		const double *params;
		const char *name;
	}			all[] = {
		{TNP_GAUSSIAN, 1, gaussian, "gaussian"}, {TNP_MIXTURE, 3, mixture, "mixture"},
		{TNP_BARS, 3, bars, "bars"}, {TNP_BARS_HALF_NORMAL, 3, bars, "bars with half-normal tails"}
	};

	for (int k = 0; k < 4; k++)
	{
		double		plain[ANSWERS],
					scaled[ANSWERS],
					worst = 0;

		describe(all[k].kind, all[k].n, all[k].params, 0, plain);
		for (int power = -LARGEST; power <= LARGEST; power += 49)
		{
			describe(all[k].kind, all[k].n, all[k].params, power, scaled);
			for (int i = 0; i < ANSWERS; i++)
				if (scaled[i] != plain[i])
					worst = fmax(worst, isfinite(scaled[i])
								 ? fabs(scaled[i] - plain[i]) / (1 + fabs(plain[i])) : INFINITY);
		}
		if (!ok(plain[0] == 1 && worst < 1e-10, "%s: the same in every unit from 1e-147 to 1e147",
				all[k].name))
			diag("largest difference %g", worst);
		describe(all[k].kind, all[k].n, all[k].params, 500, scaled);
		ok(scaled[0] == 0, "%s: refused beyond 1e150", all[k].name);
	}
}

int
main(void)
{
	const KnownTable *known;

	test_table(&tnp_reference_kernels);
	for (int i = 0; (known = known_table(i)) != NULL; i++)
	{
		const char *why;
		const TnpKernels *kernels = known_kernels(known, &why);

		if (kernels == NULL)
			skip(why, "%s of %s: all magnitudes", known->name, known->architecture);
		else
			test_table(kernels);
	}
	test_drift();
	test_distributions();
	return done_testing();
}
