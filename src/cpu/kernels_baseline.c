/*
 * kernels_baseline.c: the CPU provider's kernels for the compiler's baseline (NEON on 64-bit ARM).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#define KERNELS_TABLE tnp_cpu_baseline_kernels
#define KERNELS_BYTES 16
#define KERNELS_NAME "cpu-baseline"
#include "cpu/kernels_simd.h"
