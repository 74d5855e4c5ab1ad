/*
 * wide.h: loops in double precision, compiled for the vectors that a processor has and not only for
 * those that all have.
 *
 * Only loops along a row whose elements do not meet are worth it, and only they may be: nothing is
 * contracted (the build says so) and no sum changes its order, so that the bits are the same
 * whatever the processor. A function is written once, as NAME_any, declared TNP_WIDE_ANY;
 * TNP_WIDE(NAME, parameters, arguments) makes NAME of it.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_WIDE_H
#define TNP_WIDE_H

#include <stdbool.h>

#define TNP_WIDE_ANY static inline __attribute__((always_inline)) void

/*
 * a * b + c where a and b are floats: double precision holds their product, so that the bits are
 * those of two operations where a processor does both in one. (Of other numbers they are not, and
 * processors differ, as with the kernels' tables.) TNP_WIDE_FLOATS(NAME, parameters,
 * arguments...) makes NAME of NAME_any(fused, arguments...).
 *
 * TNP_WIDE_LANES(NAME, parameters, arguments...) makes NAME of NAME_any(lanes, arguments...), lanes
 * the doubles of a vector: for loops that are written in vectors.
 */
static inline __attribute__((always_inline)) double
tnp_add_product(const bool fused, double a, double b, double c)
{
	return fused ? __builtin_fma(a, b, c) : a * b + c;
}

#if defined(__x86_64__) && defined(__GNUC__)
#define TNP_WIDE(name, parameters, arguments) \
	__attribute__((target("avx512f"))) static void name##_512 parameters { name##_any arguments; } \
	__attribute__((target("avx2"))) static void name##_256 parameters { name##_any arguments; } \
	static void name##_128 parameters { name##_any arguments; } \
	static void name parameters \
	{ \
		if (__builtin_cpu_supports("avx512f")) \
			name##_512 arguments; \
		else if (__builtin_cpu_supports("avx2")) \
			name##_256 arguments; \
		else \
			name##_128 arguments; \
	}
#define TNP_WIDE_FLOATS(name, parameters, ...) \
	__attribute__((target("avx512f,fma"))) static void name##_512 parameters \
	{ \
		name##_any(true, __VA_ARGS__); \
	} \
	__attribute__((target("avx2,fma"))) static void name##_256 parameters \
	{ \
		name##_any(true, __VA_ARGS__); \
	} \
	static void name##_128 parameters { name##_any(false, __VA_ARGS__); } \
	static void name parameters \
	{ \
		if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("fma")) \
			name##_512(__VA_ARGS__); \
		else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) \
			name##_256(__VA_ARGS__); \
		else \
			name##_128(__VA_ARGS__); \
	}
#define TNP_WIDE_LANES(name, parameters, ...) \
	__attribute__((target("avx512f"))) static void name##_512 parameters \
	{ \
		name##_any(8, __VA_ARGS__); \
	} \
	__attribute__((target("avx2"))) static void name##_256 parameters \
	{ \
		name##_any(4, __VA_ARGS__); \
	} \
	static void name##_128 parameters { name##_any(2, __VA_ARGS__); } \
	static void name parameters \
	{ \
		if (__builtin_cpu_supports("avx512f")) \
			name##_512(__VA_ARGS__); \
		else if (__builtin_cpu_supports("avx2")) \
			name##_256(__VA_ARGS__); \
		else \
			name##_128(__VA_ARGS__); \
	}
#else
#define TNP_WIDE(name, parameters, arguments) \
	static void name parameters { name##_any arguments; }
#define TNP_WIDE_LANES(name, parameters, ...) \
	static void name parameters { name##_any(2, __VA_ARGS__); }
#ifdef __FP_FAST_FMA
#define TNP_WIDE_FLOATS(name, parameters, ...) \
	static void name parameters { name##_any(true, __VA_ARGS__); }
#else
#define TNP_WIDE_FLOATS(name, parameters, ...) \
	static void name parameters { name##_any(false, __VA_ARGS__); }
#endif
#endif

#endif							/* TNP_WIDE_H */
