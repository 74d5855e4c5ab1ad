/*
 * kernels_test.c: linear layers, norms, attention with bumps and the rounding of keys and values,
 * of every table of kernels against the reference provider, in shapes of all kinds. Attention
 * without bumps is in attention_test.c.
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
	return getenv("TNP_QUICK") != NULL ? 20 : 1000;
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

/* Keys, values and distances of `n` slots of a row in blocks, and what is hidden. */
typedef struct Bumps
{
	TnpBumps	b;
	int			block,
				n;
	float	   *k,
			   *v,
			   *distance;		/* [blocks, components, TNP_BLOCK] */
	bool	   *hidden;			/* [slots] */
} Bumps;

static void
bumps_make(Bumps *t)
{
	int			heads = size(5),
				width = size(40),
				values = size(40),
				components = (int) (test_uniform(&state) * 4),
				basis = size(6),
				slots;
	size_t		all = (size_t) components * heads * basis;
	float	   *rate = floats(all, -2);

	t->block = chance(0.5) ? TNP_BLOCK : TNP_PANEL;
	t->n = size(150);
	slots = (int) tnp_blocks(t->n, t->block);
	/* a score is at most about 40 */
	t->b = (TnpBumps) {heads, width, values, components, basis, floats(all, 0), rate,
					   floats(all, 1), floats((size_t) heads * width, 0), NULL};
	for (size_t i = 0; i < all; i++)
		rate[i] = rate[i] > 0 ? 0 : rate[i];
	/* vectors of the last value may reach into what follows the cache */
	t->k = floats((size_t) slots * heads * width, 0);
	t->v = floats((size_t) slots * heads * values + TNP_PANEL, 0);
	t->distance = floats((size_t) slots / t->block * (components + 1) * TNP_BLOCK, 2);
	t->hidden = calloc(slots, sizeof(bool));
	for (int i = 0; i < slots; i++)
		t->hidden[i] = chance(t->n % 3 * 0.45);
}

static void
bumps_free(Bumps *t)
{
	free((float *) t->b.height);
	free((float *) t->b.rate);
	free((float *) t->b.center);
	free((float *) t->b.q);
	free(t->k);
	free(t->v);
	free(t->distance);
	free(t->hidden);
}

/* The answer of a table, of the slots that are not hidden. */
static float *
bumps_answer(const Bumps *t, const TnpKernels *kernels)
{
	TnpBumps	b = t->b;
	float	   *out = floats((size_t) b.heads * b.value_width, 0);

	b.sums = floats(kernels->bump_floats(b.heads, b.value_width), 0);
	kernels->bump_begin(&b);
	for (int first = 0; first < t->n; first += t->block)
	{
		bool		hidden[TNP_BLOCK] = {false};
		int			n = t->n - first < t->block ? t->n - first : t->block;

		memcpy(hidden, t->hidden + first, n * sizeof(bool));
		kernels->bump_take(&b, t->k + (size_t) first * b.heads * b.key_width,
						   t->v + (size_t) first * b.heads * b.value_width, t->block, n,
						   t->distance + (size_t) first / t->block * b.components * TNP_BLOCK,
						   t->n % 3 > 0 ? hidden : NULL);
	}
	kernels->bump_end(&b, out);
	free(b.sums);
	return out;
}

static double
bumps_error(void)
{
	Bumps		t;
	float	   *got,
			   *want;
	double		worst = 0;

	bumps_make(&t);
	got = bumps_answer(&t, table);
	want = bumps_answer(&t, &tnp_reference_kernels);
	/* rounding of a score is an error of its weight: values are within 2 */
	for (int i = 0; i < t.b.heads * t.b.value_width; i++)
		worst = worse(worst, fabs((double) got[i] - want[i]) / 1e-4);
	free(got);
	free(want);
	bumps_free(&t);
	return worst;
}

/* What is hidden changes no bit, nor do the numbers behind the last slot. */
static bool
bumps_hide(void)
{
	Bumps		t;
	float	   *got,
			   *again;
	bool		same;

	bumps_make(&t);
	t.n += t.n % 3 == 0 ? -1 : 0;
	for (int i = t.n; i < (int) tnp_blocks(t.n, t.block); i++)
		t.hidden[i] = true;
	got = bumps_answer(&t, table);
	for (int i = 0; i < (int) tnp_blocks(t.n, t.block); i++)
		for (int h = 0; t.hidden[i] && h < t.b.heads; h++)
		{
			t.k[tnp_key_at(i, t.block, t.b.heads * t.b.key_width, h, t.b.key_width, 0)] = 3;
			t.v[tnp_value_at(i, t.block, t.b.heads * t.b.value_width, h, t.b.value_width)] = 7;
		}
	again = bumps_answer(&t, table);
	same = memcmp(got, again, (size_t) t.b.heads * t.b.value_width * sizeof(float)) == 0;
	free(got);
	free(again);
	bumps_free(&t);
	return same;
}

/* One slot whose score is NaN, by bumps of opposite infinities. */
static bool
bumps_refuse(void)
{
	const float height[] = {INFINITY, -INFINITY},
				rate[] = {0, 0},
				zero[TNP_BLOCK] = {0};
	float		out = 0;
	TnpBumps	b = {1, 1, 1, 1, 2, height, rate, zero, zero, NULL};

	b.sums = floats(table->bump_floats(1, 1), 0);
	table->bump_begin(&b);
	table->bump_take(&b, zero, zero, TNP_PANEL, 1, zero, NULL);
	table->bump_end(&b, &out);
	free(b.sums);
	return isnan(out);
}

static void
test_bumps(void)
{
	double		worst = 0;
	bool		hides = true;

	for (int i = 0; i < rounds(); i++)
	{
		worst = worse(worst, bumps_error());
		hides = bumps_hide() && hides;
	}
	if (!ok(worst <= 1, "%s: attention with bumps is the reference's", table->name))
		diag("%g times the tolerance", worst);
	ok(hides, "%s: slots that are hidden change no bit", table->name);
	ok(bumps_refuse(), "%s: a score that is NaN gives NaN", table->name);
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
			skip(why, "%s of %s: linear layers, norms, bumps and rounding", known->name,
				 known->architecture);
			continue;
		}
		found++;
		state = 1;
		test_linear();
		test_norm();
		test_bumps();
		if (table->narrow != NULL)
			test_narrow();
	}
	ok(found == n_tables, "no table of this machine is left out");
	return done_testing();
}
