/*
 * kernels_neon_half.c: the same as kernels_baseline.c on 64-bit ARM, with keys and values in 16
 * bits.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#if defined(__aarch64__)
#define KERNELS_TABLE tnp_cpu_neon_half_kernels
#define KERNELS_BYTES 16
#define KERNELS_NAME "cpu-baseline-half"
#define KERNELS_HALF
#include "cpu/kernels_simd.h"
#else
typedef int tnp_no_neon_half;	/* an empty translation unit is not C */
#endif
