/*
 * cpu.h: the CPU provider's kernel tables.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_CPU_H
#define TNP_CPU_H

#include "engine/kernels/kernels.h"

#define TNP_CPU_TABLES 5

/* The best table that this machine runs; chosen at the first call, the same ever after. */
TNP_EXPORT const TnpKernels *tnp_cpu_kernels(void);

/*
 * The same with keys and values in 16 bits; on a machine that cannot convert them,
 * tnp_cpu_kernels().
 */
TNP_EXPORT const TnpKernels *tnp_cpu_half_kernels(void);

/*
 * All tables that this machine runs, those with floats first and the best of them first; returns
 * their number, at most max and TNP_CPU_TABLES.
 */
TNP_EXPORT int tnp_cpu_all_kernels(const TnpKernels **tables, int max);

/* One per instruction set; those this build does not have are absent from tnp_cpu_all_kernels. */
extern const TnpKernels tnp_cpu_baseline_kernels;
extern const TnpKernels tnp_cpu_avx2_kernels;
extern const TnpKernels tnp_cpu_avx512_kernels;
extern const TnpKernels tnp_cpu_avx2_half_kernels;
extern const TnpKernels tnp_cpu_avx512_half_kernels;
extern const TnpKernels tnp_cpu_neon_half_kernels;

#endif							/* TNP_CPU_H */
