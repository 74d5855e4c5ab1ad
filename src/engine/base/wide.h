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

#define TNP_WIDE_ANY static inline __attribute__((always_inline)) void

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
#else
#define TNP_WIDE(name, parameters, arguments) \
	static void name parameters { name##_any arguments; }
#endif

#endif							/* TNP_WIDE_H */
