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

/* Whether this list has the kernel; then it has run. */
extern "C" bool RUN(int precision, int rows, int head_tiles, const CudaWalk *walk, int shared);

bool
RUN(int precision, int rows, int head_tiles, const CudaWalk *walk, int shared)
{
#define ENTRY(type, height, wide) \
	if (precision == Precision<type>::code && rows == height && head_tiles == wide) \
	{ \
		emulator_run(walk->tiles, walk->team, CUDA_THREADS, (size_t) shared, \
					 [&]() { cuda_walk<type, height, wide>(*walk); }); \
		return true; \
	}
	JOIN(CUDA_KERNELS_, KERNELS_OF)(ENTRY)
	return false;
}
