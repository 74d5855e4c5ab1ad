/*
 * random_features_test.c: positive random features of every table of kernels against double
 * precision, small and large; a head's are its own, whatever other heads are in the call.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/families/products_random.h"
#include "tables.h"
#include "tap.h"

#define HEADS 41				/* of the call */
#define MOST 80					/* features, and numbers of a head */

static uint32_t state = 1;

/* Uniform in [-1, 1]. */
static float
uniform(void)
{
	state = state * 1664525u + 1013904223u;
	return (float) ((double) (state >> 8) / (1 << 23) - 1);
}

/* The features of heads of `width` numbers whose squares have the sum `square` on average. */
typedef struct Case
{
	int			width,
				m;
	double		square;
} Case;

static TnpRandomFeatures
make_features(const TnpKernels *kernels, const Case *c, float *omega, float *weight, float *packed)
{
	TnpRandomFeatures features = {omega, {.in = c->width, .out = c->m, .stride = c->width,
										  .weight = weight}};

	for (int i = 0; i < c->m * c->width; i++)
	{
		omega[i] = 1.7f * uniform();
		weight[i] = tnp_random_weight(omega[i], c->width);
	}
	if (kernels->packed_floats(c->m, c->width) > 0)
	{
		kernels->pack(weight, c->m, c->width, packed);
		features.project.packed = packed;
	}
	return features;
}

/* The largest error of any feature, relative where a float holds it with all its digits. */
static double
worst_error(const Case *c, const float *omega, const float *u, const float *to)
{
	double		root = 1 / sqrt(sqrt((double) c->width)),
				worst = 0;

	for (int i = 0; i < HEADS; i++)
		for (int k = 0; k < c->m; k++)
		{
			double		x = 0,
						wanted,
						got = to[i * c->m + k];

			for (int f = 0; f < c->width; f++)
			{
				double		v = u[i * c->width + f] * root;

				x += omega[k * c->width + f] * v - v * v / 2;
			}
			wanted = exp(x) / sqrt((double) c->m);
			worst = fmax(worst, fabs(got - wanted) / fmax(wanted, FLT_MIN));
		}
	return worst;
}

static void
check_case(const TnpKernels *kernels, const Case *c)
{
	static float omega[MOST * MOST],
				weight[MOST * MOST],
				packed[2 * MOST * MOST],
				u[HEADS * MOST],
				to[HEADS * MOST],
				alone[MOST];
	TnpRandomFeatures features = make_features(kernels, c, omega, weight, packed);
	float		size = (float) sqrt(3 * c->square / c->width);
	int			differ = 0;

	for (int i = 0; i < HEADS * c->width; i++)
		u[i] = size * uniform();
	tnp_random_features(kernels, &features, HEADS, u, to);
	ok(worst_error(c, omega, u, to) < 1e-5, "%s: %d features of %d numbers, squares of %g",
	   kernels->name, c->m, c->width, c->square);
	for (int i = 0; i < HEADS; i++)
	{
		tnp_random_features(kernels, &features, 1, u + i * c->width, alone);
		differ += memcmp(alone, to + i * c->m, c->m * sizeof(float)) != 0;
	}
	ok(differ == 0, "%s: of each head alone the same", kernels->name);

	/* what has no features: nothing is left of a very long vector, NaN stays */
	u[0] = 1e30f;
	u[c->width] = NAN;
	tnp_random_features(kernels, &features, 2, u, to);
	ok(to[0] == 0 && to[c->m - 1] == 0, "%s: a very long vector has features of 0", kernels->name);
	ok(isnan(to[c->m]) && isnan(to[2 * c->m - 1]), "%s: NaN has NaN", kernels->name);

	/* and one that points to a very large weight has one that no float holds */
	omega[0] = 1e4f;
	weight[0] = tnp_random_weight(omega[0], c->width);
	if (features.project.packed != NULL)
		kernels->pack(weight, c->m, c->width, packed);
	memset(u, 0, c->width * sizeof(float));
	u[0] = 1;
	tnp_random_features(kernels, &features, 1, u, to);
	ok(isinf(to[0]) && to[0] > 0 && isfinite(to[1]), "%s: one beyond a float is infinite",
	   kernels->name);
}

int
main(void)
{
	/* of the largest, some heads are in reach of float32 and some are not */
	const Case cases[] = {{16, 64, 0.1}, {16, 64, 30}, {4, 6, 100}, {17, 33, 300}, {33, 80, 1100},
						  {64, 16, 3000}};
	const KnownTable *table;
	const char *why;

	for (int i = 0; (table = known_table(i)) != NULL; i++)
	{
		const TnpKernels *kernels = known_kernels(table, &why);

		if (kernels == NULL)
			skip(why, "%s", table->name);
		for (size_t c = 0; kernels != NULL && c < sizeof(cases) / sizeof(cases[0]); c++)
			check_case(kernels, &cases[c]);
	}
	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++)
		check_case(&tnp_reference_kernels, &cases[c]);
	return done_testing();
}
