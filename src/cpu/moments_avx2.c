/*
 * moments_avx2.c: operations for sums, for AVX2.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC target("avx2,fma")
#endif
#define KERNELS_BYTES 32
#define MOMENTS_TABLE tnp_cpu_moments_32
#include "cpu/moments_simd.h"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int tnp_no_moments_avx2;	/* an empty translation unit is not C */
#endif
