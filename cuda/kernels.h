/*
 * kernels.h: the kernels that exist, as one list.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef CUDA_KERNELS_H
#define CUDA_KERNELS_H

#include "layout.h"

/*
 * entry(type, rows, head tiles), by rows, so that they can be compiled side by side. Heads of more
 * than 64 features, and 32-bit inputs, have no tiles of 64 rows: their operands would not fit the
 * registers, or shared memory, of any device.
 */
#define CUDA_KERNELS_HALF_16(entry) \
	entry(half16, 16, 2) entry(half16, 16, 3) entry(half16, 16, 4) \
	entry(half16, 16, 8) entry(half16, 16, 16)
#define CUDA_KERNELS_HALF_32(entry) \
	entry(half16, 32, 2) entry(half16, 32, 3) entry(half16, 32, 4) \
	entry(half16, 32, 8) entry(half16, 32, 16)
#define CUDA_KERNELS_HALF_64(entry) \
	entry(half16, 64, 2) entry(half16, 64, 3) entry(half16, 64, 4) entry(half16, 64, 8)
#define CUDA_KERNELS_FLOAT_16(entry) \
	entry(float, 16, 2) entry(float, 16, 4) entry(float, 16, 8) entry(float, 16, 16)
#define CUDA_KERNELS_FLOAT_32(entry) \
	entry(float, 32, 2) entry(float, 32, 4) entry(float, 32, 8)

#define CUDA_KERNELS(entry) \
	CUDA_KERNELS_HALF_16(entry) CUDA_KERNELS_HALF_32(entry) CUDA_KERNELS_HALF_64(entry) \
	CUDA_KERNELS_FLOAT_16(entry) CUDA_KERNELS_FLOAT_32(entry)

/* entry(type, head tiles): attention of models that are computed layer by layer. */
#define CUDA_ATTENTION_HALF(entry) \
	entry(half16, 2) entry(half16, 3) entry(half16, 4) entry(half16, 8) entry(half16, 16)
#define CUDA_ATTENTION_FLOAT(entry) \
	entry(float, 2) entry(float, 4) entry(float, 8) entry(float, 16)

/* Largest tile for which there is a kernel. */
CUDA_SHARED int
cuda_largest_tile(int precision, int head_tiles)
{
	if (precision == 0)
		return head_tiles <= 8 ? 64 : 32;
	return head_tiles <= 8 ? 32 : 16;
}

#endif							/* CUDA_KERNELS_H */
