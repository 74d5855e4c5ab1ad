/*
 * moments_vnni.c: operations for sums, for AVX-512 with products of words (VNNI).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#if defined(__x86_64__)
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target( \
	"avx512f,avx512dq,avx512bw,avx512vnni,avx2,fma"))), \
	apply_to = function)
#else
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vnni,avx2,fma,prefer-vector-width=512")
#endif
#define KERNELS_BYTES 64
#define MOMENTS_TABLE tnp_cpu_moments_vnni
#include "cpu/moments_simd.h"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#else
typedef int tnp_no_moments_vnni;	/* an empty translation unit is not C */
#endif
