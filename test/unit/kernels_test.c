/*
 * kernels_test.c: linear layers, norms and the rounding of keys and values, of every table of
 * kernels against the reference provider, in shapes of all kinds. Attention is in attention_test.c.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <stdlib.h>

#include "models.h"
#include "tables.h"
#include "tap.h"

#define LARGEST 150				/* inputs, outputs and widths */
#define TOLERANCE 1e-6			/* relative to the sum of what is added up, regardless of signs */

static const TnpKernels *table;
static unsigned state;

static int
rounds(void)
{
	return getenv("TNP_QUICK") != NULL ? 40 : 1000;
}

/* 1 … most, half of the time a small one. */
static int
size(int most)
{
	int			limit = test_uniform(&state) < 0.5 && most > 9 ? 9 : most;

	return 1 + (int) (test_uniform(&state) * limit);
}

static bool
chance(double p)
{
	return test_uniform(&state) < p;
}

/*
 * As many floats as asked for and not one more, so that reading beyond them is seen; around
 * `center`.
 */
static float *
floats(size_t n, double center)
{
	float	   *x = NULL;

	if (posix_memalign((void **) &x, 64, n > 0 ? n * sizeof(float) : 1) != 0)
		exit(1);
	for (size_t i = 0; i < n; i++)
		x[i] = (float) (center + 4 * (test_uniform(&state) - 0.5));
	return x;
}

static float *
copy(const float *x, size_t n)
{
	float	   *y = floats(n, 0);

	memcpy(y, x, n * sizeof(float));
	return y;
}

/* Numbers of 11 bits, which are halves. */
static void
shorten(size_t n, float *x)
{
	for (size_t i = 0; i < n; i++)
		x[i] = truncf(x[i] * 512) / 512;
}

/* The larger error; NaN is the largest. */
static double
worse(double a, double b)
{
	return isnan(a) || isnan(b) ? INFINITY : fmax(a, b);
}

/* What is added up for output o of a row, all of it positive: rounding is relative to that. */
static double
magnitude(const TnpLinear *w, const float *x, int o, float before)
{
	double		sum = fabs(before) + (w->bias != NULL ? fabs(w->bias[o]) : 0);

	for (int i = 0; i < w->in; i++)
		sum += fabs((double) w->weight[(size_t) o * w->stride + i] * x[i]);
	return sum;
}

/* One random layer; the largest error relative to the tolerance. */
static double
linear_error(TnpActivation activation, bool accumulate)
{
	TnpLinear	w = {.in = size(LARGEST),.out = size(LARGEST)};
	int			n = size(chance(0.8) ? 30 : TNP_TILE);
	bool		halves = table->pack_halves != NULL && chance(0.5);
	size_t		n_weights,
				n_packed;
	float	   *weight,
			   *bias = floats(w.out, 0),
			   *x = floats((size_t) n * w.in, 0),
			   *before = floats((size_t) n * w.out, 0),
			   *got = copy(before, (size_t) n * w.out),
			   *want = copy(before, (size_t) n * w.out),
			   *packed;
	uint16_t   *packed_halves = NULL;
	double		worst = 0;

	w.stride = w.in + (chance(0.2) ? size(5) : 0);
	n_weights = (size_t) w.out * w.stride;
	n_packed = table->packed_floats(w.out, w.stride);
	weight = floats(n_weights, 0);
	/* sums of about 1, where activations are bent */
	for (size_t i = 0; i < n_weights; i++)
		weight[i] /= sqrtf((float) w.in);
	if (halves)
		shorten(n_weights, weight);
	packed = floats(n_packed, 0);
	w.weight = weight;
	w.bias = chance(0.8) ? bias : NULL;
	table->pack(weight, w.out, w.stride, packed);
	w.packed = packed;
	if (halves)
	{
		if (posix_memalign((void **) &packed_halves, 64, n_packed * sizeof(uint16_t)) != 0)
			exit(1);
		table->pack_halves(weight, w.out, w.stride, packed_halves);
		w.halves = packed_halves;
	}
	table->linear(&w, n, x, activation, accumulate, got);
	tnp_reference_kernels.linear(&w, n, x, activation, accumulate, want);
	for (int r = 0; r < n; r++)
		for (int o = 0; o < w.out; o++)
		{
			size_t		at = (size_t) r * w.out + o;
			double		error = fabs((double) got[at] - want[at]) /
				(TOLERANCE *
				 (1 + magnitude(&w, x + (size_t) r * w.in, o, accumulate ? before[at] : 0)));

			worst = worse(worst, error);
		}
	free(weight);
	free(bias);
	free(x);
	free(before);
	free(got);
	free(want);
	free(packed);
	free(packed_halves);
	return worst;
}

static void
test_linear(void)
{
	static const char *const names[] = {"identity", "relu", "gelu", "gelu of tanh"};

	for (int kind = 0; kind < 5; kind++)
	{
		bool		accumulate = kind == 4;
		double		worst = 0;

		for (int i = 0; i < rounds(); i++)
		{
			double		error = linear_error(accumulate ? TNP_IDENTITY : (TnpActivation) kind,
											 accumulate);

			worst = worse(worst, error);
		}
		if (!ok(worst <= 1, "%s: linear layers are the reference's, %s", table->name,
				accumulate ? "added to what was there" : names[kind]))
			diag("%g times the tolerance", worst);
	}
}

/* One random norm, in place or not; the largest error relative to the tolerance. */
static double
norm_error(TnpNormKind kind)
{
	int			width = size(LARGEST),
				n = size(20);
	size_t		all = (size_t) n * width;
	double		center = chance(0.5) ? 0 : 3,
				worst = 0;
	float	   *x = floats(all, center),
			   *weight = floats(width, 1),
			   *bias = floats(width, 0),
			   *got = floats(all, 0),
			   *want = floats(all, 0),
			   *own = copy(x, all);
	TnpNorm		norm = {kind, width, 1e-2f, weight, kind == TNP_LAYER_NORM && chance(0.7) ? bias
						: NULL};

	tnp_reference_kernels.norm(&norm, n, x, want);
	table->norm(&norm, n, x, got);
	table->norm(&norm, n, own, own);
	for (size_t i = 0; i < all; i++)
	{
		/* the mean that is taken from a number may be as large as the number */
		double		tolerance = TOLERANCE * (1 + (1 + fabs(x[i])) * (1 + fabs(weight[i % width]))),
					error = fabs((double) got[i] - want[i]) / tolerance;

		if (memcmp(&got[i], &own[i], sizeof(float)) != 0)
			error = INFINITY;
		worst = worse(worst, error);
	}
	free(x);
	free(weight);
	free(bias);
	free(got);
	free(want);
	free(own);
	return worst;
}

static void
test_norm(void)
{
	static const TnpNormKind kinds[] = {TNP_LAYER_NORM, TNP_RMS_NORM};

	for (int k = 0; k < 2; k++)
	{
		double		worst = 0;

		for (int i = 0; i < rounds(); i++)
		{
			double		error = norm_error(kinds[k]);

			worst = worse(worst, error);
		}
		if (!ok(worst <= 1, "%s: %s norms are the reference's, in place or not", table->name,
				kinds[k] == TNP_LAYER_NORM ? "layer" : "root mean square"))
			diag("%g times the tolerance", worst);
	}
}

/* The number that a finite half stands for. */
static double
half_value(int half)
{
	int			exponent = half >> 10 & 31;

	return exponent == 0 ? ldexp(half & 1023, -24) : ldexp(1024 + (half & 1023), exponent - 25);
}

/*
 * Every positive half is itself, and what lies between two of them goes to the nearer, in the
 * middle to the even one; negative numbers likewise.
 */
static void
test_narrow(void)
{
	enum { HALVES = 0x7bff };		/* below the largest */
	float	   *x = floats(8 * (size_t) HALVES, 0);
	uint16_t   *want = malloc(8 * HALVES * sizeof(uint16_t)),
			   *got = malloc(8 * HALVES * sizeof(uint16_t));
	int			n = 0,
				wrong = 0;

	for (int half = 0; half < HALVES; half++)
	{
		float		low = (float) half_value(half),
					middle = (float) ((half_value(half) + half_value(half + 1)) / 2);
		const float four[4] = {low, nextafterf(middle, 0), middle, nextafterf(middle, INFINITY)};
		const int	to[4] = {half, half, half + (half & 1), half + 1};

		for (int i = 0; i < 8; i++, n++)
		{
			x[n] = i < 4 ? four[i] : -four[i - 4];
			want[n] = (uint16_t) (to[i % 4] | (i < 4 ? 0 : 0x8000));
		}
	}
	table->narrow(n - 3, x, got);
	for (int i = 0; i < n - 3; i++)
		wrong += got[i] != want[i];
	ok(wrong == 0, "%s: keys and values are rounded to the nearest half, %d of %d wrongly",
	   table->name, wrong, n - 3);
	free(x);
	free(want);
	free(got);
}

int
main(void)
{
	const KnownTable *known;
	const TnpKernels *tables[TNP_CPU_TABLES];
	int			n_tables = tnp_cpu_all_kernels(tables, TNP_CPU_TABLES),
				found = 0;

	for (int i = 0; (known = known_table(i)) != NULL; i++)
	{
		const char *why;

		if ((table = known_kernels(known, &why)) == NULL)
		{
			skip(why, "%s of %s: linear layers, norms and rounding", known->name,
				 known->architecture);
			continue;
		}
		found++;
		state = 1;
		test_linear();
		test_norm();
		if (table->narrow != NULL)
			test_narrow();
	}
	ok(found == n_tables, "no table of this machine is left out");
	return done_testing();
}
