/*
 * kernels_avx512_half.c: the same as kernels_avx512.c with keys and values in 16 bits, for AVX-512.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx2,fma,f16c"))), \
	apply_to = function)
#else
#pragma GCC target("avx512f,avx512dq,avx2,fma,f16c,prefer-vector-width=512")
#endif
#define KERNELS_TABLE tnp_cpu_avx512_half_kernels
#define KERNELS_BYTES 64
#define KERNELS_NAME "cpu-avx512-half"
#define KERNELS_HALF
#include "cpu/kernels_simd.h"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int tnp_no_avx512_half;		/* an empty translation unit is not C */
#endif
