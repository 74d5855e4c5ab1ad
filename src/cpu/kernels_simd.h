/*
 * kernels_simd.h: the kernels in portable vectors. Included once per instruction set by
 * kernels_*.c, which set KERNELS_BYTES, the size of a machine vector, and KERNELS_HALF if keys and
 * values shall be kept as halves.
 *
 * Whatever the number of rows in a call, an output element is the same sequence of operations: sums
 * over features run left to right, sums over keys run left to right within a lane (lane = slot mod
 * 16) and lanes are added in one fixed order. Blocking over rows only shares loads.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "cpu/vector_simd.h"
#include "cpu/linear_simd.h"
#include "cpu/attention_simd.h"
#include "cpu/bumps_simd.h"
#include "cpu/gates_simd.h"
#include "cpu/moments_tables.h"

#ifdef KERNELS_HALF
#define NARROW narrow
#else
#define NARROW NULL
#endif

#ifdef CONVERTS_HALVES
#define PACK_HALVES pack_halves
#else
#define PACK_HALVES NULL
#endif

static const TnpMoments *
moments(void)
{
#if KERNELS_BYTES == 64
	return __builtin_cpu_supports("avx512vnni") ? &tnp_cpu_moments_vnni : &tnp_cpu_moments_64;
#elif KERNELS_BYTES == 32
	return &tnp_cpu_moments_32;
#else
	return &tnp_cpu_moments_16;
#endif
}

const TnpKernels KERNELS_TABLE = {
	TNP_KERNELS_API, sizeof(TnpKernels), KERNELS_NAME, sizeof(Number), NARROW, packed_floats, pack,
	PACK_HALVES, linear, norm,
	attend_floats, sum_floats, attend, attend_begin, attend_span, attend_more, attend_rest,
	bump_floats, bump_begin, bump_take, bump_end, gate, moments
};
