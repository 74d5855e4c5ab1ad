/*
 * kernels_emulated.cpp: cuda/kernels.cu for the emulator: launches a kernel of one list, named by
 * KERNELS_OF.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "kernels.h"
#include "walk.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define RUN JOIN(emulated_kernel_, KERNELS_OF)

/* EMULATOR_TILES: only kernels for heads of so many tiles are compiled, which takes a fifth. */
#ifndef EMULATOR_TILES
#define EMULATOR_TILES 0
#endif

template <bool wanted> struct Run
{
	template <class T, int R, int NV> static bool
	kernel(const CudaWalk *walk, int shared)
	{
		emulator_run(walk->tiles * walk->copies, walk->team, CUDA_THREADS, (size_t) shared,
					 walk->copies > 1, [&]() { cuda_walk<T, R, NV>(*walk); });
		return true;
	}
};

template <> struct Run<false>
{
	template <class T, int R, int NV> static bool
	kernel(const CudaWalk *, int)
	{
		return false;
	}
};

/* Whether this list has the kernel; then it has run. */
extern "C" bool RUN(int precision, int rows, int head_tiles, const CudaWalk *walk, int shared);

bool
RUN(int precision, int rows, int head_tiles, const CudaWalk *walk, int shared)
{
#define ENTRY(type, height, wide) \
	if (precision == Precision<type>::code && rows == height && head_tiles == wide) \
		return Run<EMULATOR_TILES == 0 || EMULATOR_TILES == wide>::kernel<type, height, wide>( \
			walk, shared);
	JOIN(CUDA_KERNELS_, KERNELS_OF)(ENTRY)
	return false;
}
