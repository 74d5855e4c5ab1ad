/*
 * dispatch.c: chooses the kernel table for this machine at run time, so that one package serves all
 * machines.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "cpu/cpu.h"

#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#if defined(__x86_64__)
/* Conversion of halves; every processor with AVX2 has it, but nothing says it must. */
static bool
has_halves(void)
{
	unsigned	a,
				b,
				c,
				d;

	return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C) != 0;
}

static bool
has_avx2(void)
{
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_halves();
}

static bool
has_avx512(void)
{
	return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")
		&& __builtin_cpu_supports("avx512bw");
}
#endif

/* The tables with floats, or those with halves. */
static int
list(bool halves, const TnpKernels **tables)
{
	int			n = 0;

#if defined(__x86_64__)
	if (has_avx512())
		tables[n++] = halves ? &tnp_cpu_avx512_half_kernels : &tnp_cpu_avx512_kernels;
	if (has_avx2())
		tables[n++] = halves ? &tnp_cpu_avx2_half_kernels : &tnp_cpu_avx2_kernels;
#elif defined(__aarch64__)
	if (halves)
		tables[n++] = &tnp_cpu_neon_half_kernels;
#endif
	if (!halves)
		tables[n++] = &tnp_cpu_baseline_kernels;
	return n;
}

int
tnp_cpu_all_kernels(const TnpKernels **tables, int max)
{
	const TnpKernels *all[TNP_CPU_TABLES];
	int			n = list(false, all);

	n += list(true, all + n);
	n = n < max ? n : max;
	memcpy(tables, all, n * sizeof(*tables));
	return n;
}

const TnpKernels *
tnp_cpu_kernels(void)
{
	const TnpKernels *all[TNP_CPU_TABLES];

	list(false, all);
	return all[0];
}

const TnpKernels *
tnp_cpu_half_kernels(void)
{
	const TnpKernels *all[TNP_CPU_TABLES];

	return list(true, all) > 0 ? all[0] : tnp_cpu_kernels();
}
