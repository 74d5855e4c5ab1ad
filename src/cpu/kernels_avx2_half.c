/*
 * kernels_avx2_half.c: the same as kernels_avx2.c with keys and values in 16 bits, for AVX2 and
 * FMA.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,f16c")
#endif
#define KERNELS_TABLE tnp_cpu_avx2_half_kernels
#define KERNELS_BYTES 32
#define KERNELS_NAME "cpu-avx2-half"
#define KERNELS_HALF
#include "cpu/kernels_simd.h"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int tnp_no_avx2_half;		/* an empty translation unit is not C */
#endif
