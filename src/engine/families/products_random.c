/*
 * products_random.c: positive random features, as powers of two: a linear layer in float32 makes
 * omega v, and |v|^2 / 2 goes in double precision into the exponent, as a whole number and a rest.
 *
 * Where both are small, rounding omega v moves a feature by 1e-5 of it at most. Heads with larger
 * ones, rare, are computed in double precision one feature after the other.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/products_random.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "engine/base/wide.h"

#define TOGETHER 16				/* features, or numbers, that are worked at together */
#define LOG2_E 1.4426950408889634
#define AT_ONCE 48				/* heads */
#define LARGEST 100				/* of omega v, and of |v|^2 / 2, in units of log 2 */

float
tnp_random_weight(float omega, int width)
{
	return (float) (omega * (LOG2_E / sqrt(sqrt((double) width))));
}

/* |u|^2 */
static inline __attribute__((always_inline)) double
square(int width, const float *u)
{
	double		part[8] = {0};
	int			f = 0;

	for (; f + 8 <= width; f += 8)
		for (int i = 0; i < 8; i++)
			part[i] += (double) u[f + i] * u[f + i];
	for (int i = 0; f + i < width; i++)
		part[i] += (double) u[f + i] * u[f + i];
	for (int half = 4; half > 0; half /= 2)
		for (int i = 0; i < half; i++)
			part[i] += part[i + half];
	return part[0];
}

/*
 * x [TOGETHER] = 2^(x - rest) times scale, to 3e-7 of it: 2^n times a polynomial of what is left,
 * as in the kernels' exponentials. beyond [TOGETHER] is marked where x is not small.
 */
static inline __attribute__((always_inline)) void
powers(float rest, float scale, float *restrict x, int32_t *restrict beyond)
{
	const float shift = 12582912.0f;	/* 1.5 * 2^23: what is added to it is rounded */

	for (int k = 0; k < TOGETHER; k++)
	{
		float		e = x[k] - rest,
					y = e + shift,
					r = e - (y - shift),
					p = 1.326472731307149e-3f;
		int32_t		bits,
					n;

		beyond[k] |= !(fabsf(x[k]) <= LARGEST);
		p = p * r + 9.671512991189957e-3f;
		p = p * r + 5.550733581185341e-2f;
		p = p * r + 2.4022242426872253e-1f;
		p = p * r + 6.931470036506653e-1f;
		p = p * r + 1;
		memcpy(&bits, &p, sizeof(bits));
		memcpy(&n, &y, sizeof(n));
		bits = (int32_t) ((uint32_t) bits + ((uint32_t) n << 23));
		memcpy(&p, &bits, sizeof(p));
		x[k] = p * scale;
	}
}

/* The features of a head, in double precision. */
static __attribute__((noinline)) void
large_features(const TnpRandomFeatures *features, const float *u, float *to)
{
	int			width = features->project.in,
				m = features->project.out;
	double		root = 1 / sqrt(sqrt((double) width)),
				half = square(width, u) * root * root / 2;

	for (int k = 0; k < m; k++)
	{
		double		x = -half;

		for (int f = 0; f < width; f++)
			x += features->omega[(size_t) k * width + f] * (u[f] * root);
		to[k] = (float) (exp(x) / sqrt((double) m));
	}
}

/* The features of a head, from its projection; `halved` makes |v|^2 / 2 of |u|^2. */
static inline __attribute__((always_inline)) void
features_of(const TnpRandomFeatures *features, double halved, double share, const float *u,
			float *to)
{
	int			m = features->project.out,
				k = 0;
	double		half = square(features->project.in, u) * halved;
	int			whole = half <= LARGEST ? (int) half : 0;
	uint64_t	bits = (uint64_t) (1023 - whole) << 52;
	double		power;			/* 2^-whole */
	float		rest = (float) (half - whole),
				last[TOGETHER] = {0};
	int32_t		beyond[TOGETHER] = {0},
				any = !(half <= LARGEST);

	memcpy(&power, &bits, sizeof(power));
	for (; k + TOGETHER <= m; k += TOGETHER)
		powers(rest, (float) (power * share), to + k, beyond);
	if (k < m)
	{
		memcpy(last, to + k, (m - k) * sizeof(float));
		powers(rest, (float) (power * share), last, beyond);
		memcpy(to + k, last, (m - k) * sizeof(float));
	}
	for (int i = 0; i < TOGETHER; i++)
		any |= beyond[i];
	if (__builtin_expect(any, 0))
		large_features(features, u, to);
}

TNP_WIDE_ANY
weigh_any(const TnpRandomFeatures *features, int n, const float *u, float *to)
{
	double		halved = LOG2_E / 2 / sqrt((double) features->project.in),
				share = 1 / sqrt((double) features->project.out);

	for (int i = 0; i < n; i++)
		features_of(features, halved, share, u + (size_t) i * features->project.in,
					to + (size_t) i * features->project.out);
}

TNP_WIDE(weigh, (const TnpRandomFeatures *features, int n, const float *u, float *to),
		 (features, n, u, to))

void
tnp_random_features(const TnpKernels *kernels, const TnpRandomFeatures *features, int n,
					const float *u, float *to)
{
	/* so many at a time that the projections stay in the nearest cache */
	for (int i = 0; i < n; i += AT_ONCE)
	{
		int			some = n - i < AT_ONCE ? n - i : AT_ONCE;
		const float *from = u + (size_t) i * features->project.in;
		float	   *made = to + (size_t) i * features->project.out;

		kernels->linear(&features->project, some, from, TNP_IDENTITY, false, made);
		weigh(features, some, from, made);
	}
}
