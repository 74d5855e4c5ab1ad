/*
 * kernels.cu: the kernels of one list of kernels.h, compiled. The build compiles this file once per
 * list, named by KERNELS_OF (HALF_16, …), which also names the function that finds one. With
 * KERNELS_LEFT_OUT the list has none, with KERNELS_TILES only those for heads of so many tiles.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "kernels.h"
#include "walk.h"

static_assert(sizeof(CudaWalk) <= 4096, "the parameters of a launch have room for no more");

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define FIND JOIN(cuda_kernel_, KERNELS_OF)

#ifndef KERNELS_TILES
#define KERNELS_TILES 0
#endif

template <class T, int R, int NV> static const void *
kernel(void)
{
	if constexpr (KERNELS_TILES == 0 || KERNELS_TILES == NV)
		return (const void *) cuda_walk<T, R, NV>;
	return nullptr;
}

/* The kernel of this list with the given shape, or NULL. */
extern "C" const void *
FIND([[maybe_unused]] int precision, [[maybe_unused]] int rows, [[maybe_unused]] int head_tiles)
{
#define ENTRY(type, height, wide) \
	if (precision == Precision<type>::code && rows == height && head_tiles == wide) \
		return kernel<type, height, wide>();
#ifndef KERNELS_LEFT_OUT
	JOIN(CUDA_KERNELS_, KERNELS_OF)(ENTRY)
#endif
	return nullptr;
}
