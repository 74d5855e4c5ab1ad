/*
 * moments_baseline.c: operations for sums, for the compiler's baseline.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#define KERNELS_BYTES 16
#define MOMENTS_TABLE tnp_cpu_moments_16
#include "cpu/moments_simd.h"
