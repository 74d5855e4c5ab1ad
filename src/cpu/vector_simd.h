/*
 * vector_simd.h: vectors of the width that KERNELS_BYTES says, and the functions of them that kernels need.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "cpu.h"

#define LANES TNP_PANEL			/* of a panel */
#define INLINE static inline __attribute__((always_inline))

/*
 * A panel of 16 is PARTS machine vectors. ROWS rows by PANELS panels of scores, LINEAR_ROWS by LINEAR_PANELS of a linear layer, LONE panels of one row, and
 * VALUE_ROWS rows by up to 4 vectors of values are sums that fit the registers; LINEAR_PANELS panels of weights fit the first cache.
 */
#if KERNELS_BYTES == 64
#define ROWS 6
#define PANELS 4
#define LONE 4
#define VALUE_ROWS 6
#define LINEAR_ROWS 12
#define LINEAR_PANELS 2
#elif KERNELS_BYTES == 32
#define ROWS 6
#define PANELS 1
#define LONE 4
#define VALUE_ROWS 3
#elif defined(__aarch64__)
#define ROWS 6
#define PANELS 1
#define LONE 4
#define VALUE_ROWS 6
#else
#define ROWS 2
#define PANELS 1
#define LONE 2
#define VALUE_ROWS 2
#endif
#ifndef LINEAR_ROWS
#define LINEAR_ROWS ROWS
#define LINEAR_PANELS PANELS
#endif
#define WIDTH (KERNELS_BYTES / 4)	/* lanes of a machine vector */
#define PARTS (LANES / WIDTH)

typedef float Vector __attribute__((vector_size(KERNELS_BYTES)));
typedef int32_t IntVector __attribute__((vector_size(KERNELS_BYTES)));

INLINE Vector
load(const float *p)
{
	Vector		v;

	memcpy(&v, p, sizeof(v));
	return v;
}

INLINE void
store(float *p, Vector v)
{
	memcpy(p, &v, sizeof(v));
}

/* s in all lanes; s - 0 is s, also for -0, so that nothing is left to compute. */
INLINE Vector
splat(float s)
{
	return s - (Vector) {0};
}

/* a where mask is all ones, else b. */
INLINE Vector
choose(IntVector mask, Vector a, Vector b)
{
	return (Vector) ((mask & (IntVector) a) | (~mask & (IntVector) b));
}

/* The larger, lane by lane: one instruction where there is one. */
INLINE Vector
vector_max(Vector a, Vector b)
{
#if KERNELS_BYTES == 64
	return (Vector) _mm512_max_ps((__m512) a, (__m512) b);
#elif KERNELS_BYTES == 32
	return (Vector) _mm256_max_ps((__m256) a, (__m256) b);
#elif defined(__SSE2__)
	return (Vector) _mm_max_ps((__m128) a, (__m128) b);
#else
	return choose(a > b, a, b);
#endif
}

/* The largest lane. */
INLINE float
max_lane(Vector v)
{
	typedef float Quarter __attribute__((vector_size(16)));
	Quarter		part[WIDTH / 4];
	float		max;

	memcpy(part, &v, sizeof(v));
	for (int i = 1; i < WIDTH / 4; i++)
	{
		typedef int32_t QuarterMask __attribute__((vector_size(16)));
		QuarterMask larger = part[i] > part[0];

		part[0] = (Quarter) ((larger & (QuarterMask) part[i]) | (~larger & (QuarterMask) part[0]));
	}
	max = part[0][0];
	for (int i = 1; i < 4; i++)
		max = part[0][i] > max ? part[0][i] : max;
	return max;
}

/* Lanes of a vector whose first lane is number `first` that are below n. */
INLINE IntVector
lanes_below(int64_t first, int64_t n)
{
	static const int32_t number[LANES] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
	IntVector	lanes;
	int64_t		rest = n - first;

	memcpy(&lanes, number, sizeof(lanes));
	return lanes < (int32_t) (rest < 0 ? 0 : rest > LANES ? LANES : rest);
}

/* Sum of a panel's lanes, always in the same order. */
INLINE float
sum_lanes(const Vector *v)
{
	float		lane[LANES],
				sum = 0;

	memcpy(lane, v, sizeof(lane));
	for (int i = 0; i < LANES; i++)
		sum += lane[i];
	return sum;
}

/*
 * 2^x for x <= 126 to 3e-7 relative error: x = n + f with |f| <= 1/2, a polynomial of degree 5 for 2^f that is exact at 0, and n added to the exponent.
 * Below -126 the result is 2^-126.
 */
INLINE Vector
vector_exp2(Vector x)
{
	const float magic = 12582912.0f;	/* 1.5 * 2^23: adding it rounds to an integer, which is then in the low bits */
	Vector		clamped = vector_max(x, splat(-126.0f)),
				shifted = clamped + magic,
				f = clamped - (shifted - magic),
				p = splat(1.326472731307149e-3f);

	p = p * f + 9.671512991189957e-3f;
	p = p * f + 5.550733581185341e-2f;
	p = p * f + 2.4022242426872253e-1f;
	p = p * f + 6.931470036506653e-1f;
	p = p * f + 1.0f;
	return (Vector) ((IntVector) p + ((IntVector) shifted << 23));
}

/* exp(x), never above 2^126. */
INLINE Vector
vector_exp(Vector x)
{
	Vector		y = x * 1.44269504088896341f;

	return vector_exp2(choose(y > splat(126.0f), splat(126.0f), y));
}

/* erf(x) to 1.5e-7 absolute error (Abramowitz and Stegun, formula 7.1.26). */
INLINE Vector
vector_erf(Vector x)
{
	Vector		a = choose(x < splat(0), -x, x),
				t = 1.0f / (1.0f + 0.3275911f * a),
				p = splat(1.061405429f),
				result;

	p = p * t - 1.453152027f;
	p = p * t + 1.421413741f;
	p = p * t - 0.284496736f;
	p = p * t + 0.254829592f;
	result = 1.0f - p * t * vector_exp(-a * a);
	return choose(x < splat(0), -result, result);
}

INLINE Vector
activate(Vector v, TnpActivation activation)
{
	switch (activation)
	{
		case TNP_IDENTITY:
			return v;
		case TNP_RELU:
			return vector_max(v, splat(0));
		case TNP_GELU:
			return 0.5f * v * (1.0f + vector_erf(v * 0.70710678118654752f));
		case TNP_GELU_TANH:
			/* tanh(u) = 1 - 2 / (exp(2u) + 1) */
			return v * (1.0f - 1.0f / (vector_exp(1.5957691216057308f * (v + 0.044715f * v * v * v)) + 1.0f));
	}
	return v;
}
