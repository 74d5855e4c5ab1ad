/*
 * vector_simd.h: vectors of the width that KERNELS_BYTES says, and the functions of them that
 * kernels need.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "cpu/cpu.h"

#define LANES TNP_PANEL			/* of a panel */
#define INLINE static inline __attribute__((always_inline))

/*
 * A panel of 16 is PARTS machine vectors. ROWS rows take a block of keys, or weights, together.
 * SCORE_ROWS rows by PANELS panels of scores, ROWS by LINEAR_PANELS of a linear layer, LONE panels
 * of one row, and VALUE_SUMS vectors of values are sums that fit the registers, as are EXPS vectors
 * on their way through an exponential; LINEAR_PANELS panels of weights fit the first cache.
 */
#if KERNELS_BYTES == 64
#define ROWS 12
#define SCORE_ROWS 6
#define PANELS 4
#define LINEAR_PANELS 2
#define LONE 4
#define VALUE_SUMS 24
#define EXPS 4
#elif KERNELS_BYTES == 32
#define ROWS 6
#define SCORE_ROWS 6
#define PANELS 1
#define LINEAR_PANELS 1
#define LONE 4
#define VALUE_SUMS 12
#define EXPS 2
#elif defined(__aarch64__)
#define ROWS 6
#define SCORE_ROWS 6
#define PANELS 1
#define LINEAR_PANELS 1
#define LONE 4
#define VALUE_SUMS 24
#define EXPS 4
#else
#define ROWS 2
#define SCORE_ROWS 2
#define PANELS 1
#define LINEAR_PANELS 1
#define LONE 2
#define VALUE_SUMS 8
#define EXPS 2
#endif

/*
 * CASE(rows) for every number of rows that a group can have, so that code for it is laid out for
 * that number.
 */
#if ROWS == 12
#define CASES(CASE) \
	CASE(1); CASE(2); CASE(3); CASE(4); CASE(5); CASE(6); \
	CASE(7); CASE(8); CASE(9); CASE(10); CASE(11); CASE(12)
#elif ROWS == 6
#define CASES(CASE) CASE(1); CASE(2); CASE(3); CASE(4); CASE(5); CASE(6)
#else
#define CASES(CASE) CASE(1); CASE(2)
#endif
#define WIDTH (KERNELS_BYTES / 4)	/* lanes of a machine vector */
#define PARTS (LANES / WIDTH)

typedef float Vector __attribute__((vector_size(KERNELS_BYTES)));
typedef int32_t IntVector __attribute__((vector_size(KERNELS_BYTES)));

/*
 * Rows are taken together in as few groups as ROWS allows, their sizes as equal as can be, the
 * larger ones first.
 */
INLINE int
groups_of(int n)
{
	return (n + ROWS - 1) / ROWS;
}

/* Rows of group g of n rows. */
INLINE int
group_size(int n, int g)
{
	return n / groups_of(n) + (g < n % groups_of(n));
}

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

#ifdef KERNELS_HALF
typedef uint16_t Number;		/* of keys and values */
#else
typedef float Number;
#endif

/*
 * Where an instruction turns halves into floats and back, weights that are halves are read as such.
 * It is asked for by name, since gcc converts a vector of __fp16 lane by lane.
 */
#if KERNELS_BYTES > 16 || defined(__aarch64__)
#define CONVERTS_HALVES

/* Floats from halves. */
INLINE Vector
load_half(const uint16_t *p)
{
#if KERNELS_BYTES == 64
	return (Vector) _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *) p));
#elif KERNELS_BYTES == 32
	return (Vector) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *) p));
#else
	return (Vector) vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
#endif
}

/* WIDTH halves from floats, rounded to the nearest. */
INLINE void
store_half(uint16_t *p, Vector v)
{
#if KERNELS_BYTES == 64
	_mm256_storeu_si256((__m256i *) p,
						_mm512_cvtps_ph((__m512) v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#elif KERNELS_BYTES == 32
	_mm_storeu_si128((__m128i *) p,
					 _mm256_cvtps_ph((__m256) v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#else
	vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32((float32x4_t) v)));
#endif
}
#endif

/* A vector of the numbers from an index on, which are halves or floats. */
INLINE Vector
load_numbers(const void *numbers, size_t index, const bool half)
{
#ifdef CONVERTS_HALVES
	if (half)
		return load_half((const uint16_t *) numbers + index);
#else
	(void) half;
#endif
	return load((const float *) numbers + index);
}

/* s in all lanes; s - 0 is s, also for -0, so that nothing is left to compute. */
INLINE Vector
splat(float s)
{
	return s - (Vector) {0};
}

/*
 * a * b + c, rounded once where the machine has an instruction for that. It is asked for by name:
 * a compiler that contracts products and sums by itself does so in one loop and not in the next
 * (gcc 16 avoids chains of it in 256 bits), and a row's bits would depend on the size of its tile.
 */
INLINE Vector
multiply_add(Vector a, Vector b, Vector c)
{
#if KERNELS_BYTES == 64
	return (Vector) _mm512_fmadd_ps((__m512) a, (__m512) b, (__m512) c);
#elif KERNELS_BYTES == 32
	return (Vector) _mm256_fmadd_ps((__m256) a, (__m256) b, (__m256) c);
#elif defined(__aarch64__)
	return (Vector) vfmaq_f32((float32x4_t) c, (float32x4_t) a, (float32x4_t) b);
#else
	return a * b + c;
#endif
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

/* Whether any lane is above a limit. */
INLINE bool
any_above(Vector v, float limit)
{
#if KERNELS_BYTES == 64
	return _mm512_cmp_ps_mask((__m512) v, _mm512_set1_ps(limit), _CMP_GT_OQ) != 0;
#elif KERNELS_BYTES == 32
	return _mm256_movemask_ps(_mm256_cmp_ps((__m256) v, _mm256_set1_ps(limit), _CMP_GT_OQ)) != 0;
#elif defined(__SSE2__)
	return _mm_movemask_ps(_mm_cmpgt_ps((__m128) v, _mm_set1_ps(limit))) != 0;
#else
	bool		any = false;

	for (int i = 0; i < WIDTH; i++)
		any |= v[i] > limit;
	return any;
#endif
}

/* The smaller, lane by lane. */
INLINE Vector
vector_min(Vector a, Vector b)
{
	return -vector_max(-a, -b);
}

typedef float Quarter __attribute__((vector_size(16)));

/* The quarters of a panel's vector, or all of it, in order; not through memory. */
INLINE void
take_quarters(Vector v, Quarter *part)
{
#if KERNELS_BYTES == 64
	part[0] = (Quarter) _mm512_castps512_ps128((__m512) v);
	part[1] = (Quarter) _mm512_extractf32x4_ps((__m512) v, 1);
	part[2] = (Quarter) _mm512_extractf32x4_ps((__m512) v, 2);
	part[3] = (Quarter) _mm512_extractf32x4_ps((__m512) v, 3);
#elif KERNELS_BYTES == 32
	part[0] = (Quarter) _mm256_castps256_ps128((__m256) v);
	part[1] = (Quarter) _mm256_extractf128_ps((__m256) v, 1);
#else
	part[0] = v;
#endif
}

/* The largest lane. */
INLINE float
max_lane(Vector v)
{
	Quarter		part[WIDTH / 4];
	float		max;

	take_quarters(v, part);
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

/* Sum of a panel's lanes: always i and i + 8 first, of these i and i + 4, and so on. */
INLINE float
sum_lanes(const Vector *v)
{
	Vector		sum[PARTS];
	Quarter		part[WIDTH / 4];

	for (int p = 0; p < PARTS; p++)
		sum[p] = v[p];
	for (int half = PARTS / 2; half > 0; half /= 2)
		for (int p = 0; p < half; p++)
			sum[p] += sum[p + half];
	take_quarters(sum[0], part);
	for (int half = WIDTH / 8; half > 0; half /= 2)
		for (int i = 0; i < half; i++)
			part[i] += part[i + half];
	return (part[0][0] + part[0][2]) + (part[0][1] + part[0][3]);
}

/*
 * 2^x for n vectors x <= 126 to 3e-7 relative error: x = n + f with |f| <= 1/2, a polynomial of
 * degree 5 for 2^f that is exact at 0, and n added to the exponent. Below -126 the result is
 * 2^-126. Step by step for all vectors, so that none waits for its own last step.
 */
INLINE void
vectors_exp2(const int n, Vector *x)
{
	static const float factor[] = {9.671512991189957e-3f, 5.550733581185341e-2f,
								   2.4022242426872253e-1f, 6.931470036506653e-1f, 1.0f};
	/* 1.5 * 2^23: adding it rounds to an integer, which is then in the low bits */
	const float magic = 12582912.0f;
	Vector		shifted[EXPS],
				p[EXPS];

	for (int i = 0; i < n; i++)
		x[i] = vector_max(x[i], splat(-126.0f));
	for (int i = 0; i < n; i++)
		shifted[i] = x[i] + magic;
	for (int i = 0; i < n; i++)
		x[i] -= shifted[i] - magic;
	for (int i = 0; i < n; i++)
		p[i] = splat(1.326472731307149e-3f);
	for (int j = 0; j < 5; j++)
		for (int i = 0; i < n; i++)
			p[i] = multiply_add(p[i], x[i], splat(factor[j]));
	for (int i = 0; i < n; i++)
		x[i] = (Vector) ((IntVector) p[i] + ((IntVector) shifted[i] << 23));
}

INLINE Vector
vector_exp2(Vector x)
{
	vectors_exp2(1, &x);
	return x;
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
	const IntVector sign = (IntVector) splat(-0.0f);
	Vector		a = (Vector) ((IntVector) x & ~sign),
				t = 1.0f / multiply_add(splat(0.3275911f), a, splat(1.0f)),
				p = splat(1.061405429f),
				result;

	p = multiply_add(p, t, splat(-1.453152027f));
	p = multiply_add(p, t, splat(1.421413741f));
	p = multiply_add(p, t, splat(-0.284496736f));
	p = multiply_add(p, t, splat(0.254829592f));
	/* exponents are at most 0 */
	result = multiply_add(-p * t, vector_exp2(-a * a * 1.44269504088896341f), splat(1.0f));
	return (Vector) ((IntVector) result ^ ((IntVector) x & sign));
}

INLINE Vector
activate(Vector v, TnpActivation activation)
{
	switch (activation)
	{
		case TNP_IDENTITY:
			return v;
		case TNP_RELU:
			return vector_max(splat(0), v);	/* in this order NaN stays NaN */
		case TNP_GELU:
			return 0.5f * v * (1.0f + vector_erf(v * 0.70710678118654752f));
		case TNP_GELU_TANH:
			/* tanh(u) = 1 - 2 / (exp(2u) + 1) */
			return v * (1.0f - 1.0f /
						(vector_exp(1.5957691216057308f * (v + 0.044715f * v * v * v)) + 1.0f));
	}
	return v;
}
