/*
 * dispatch.c: chooses the kernel table for this machine at run time, so that one package serves all machines.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "cpu.h"

int
tnp_cpu_all_kernels(const TnpKernels **tables, int max)
{
	int			n = 0;

#if defined(__x86_64__)
	if (n < max && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
		tables[n++] = &tnp_cpu_avx512_kernels;
	if (n < max && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		tables[n++] = &tnp_cpu_avx2_kernels;
#endif
	if (n < max)
		tables[n++] = &tnp_cpu_baseline_kernels;
	return n;
}

const TnpKernels *
tnp_cpu_kernels(void)
{
	const TnpKernels *best = NULL;

	tnp_cpu_all_kernels(&best, 1);
	return best;
}
