/*
 * gpu.h: what the host part needs of a GPU: memory, copies, launches, matrix products, waiting.
 * Implemented on the CUDA runtime and cuBLASLt (gpu_cuda.cu, gpu_products.cu) and, for the tests,
 * by the emulator (test/cuda/gpu_emulated.cpp). One device per process, one calling thread.
 *
 * Work is asked of one of two queues. What one queue is asked for is done in that order; what the
 * two are asked for may be done in any order, or at once. Memory is taken and given back in the
 * order of queue 0: queue 1 may use a piece after gpu_follow, and what queue 1 uses must be done
 * before it is given back.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef CUDA_GPU_H
#define CUDA_GPU_H

#include <stdbool.h>

#include "step.h"

#ifdef __cplusplus
extern "C"
{
#endif

#define GPU_QUEUES 2

typedef enum GpuResult
{
	GPU_OK,
	GPU_NO_MEMORY,				/* an ordinary answer: nothing has changed */
	GPU_ABSENT,					/* no driver, no such device, or one that is too old */
	GPU_REFUSED,				/* this launch cannot be made; nothing has changed */
	GPU_FAILED					/* the device cannot be used any more by this process */
} GpuResult;

typedef struct GpuFacts
{
	char		name[128],
				version[64];
	size_t		memory_total,
				memory_free;
	int			multiprocessors;
	int			shared_bytes;	/* shared memory that one block may have */
	int			team;			/* blocks of a team at most: 1 where there are no clusters */
	int			teams[4];		/* teams of 1, 2, 4, 8 blocks that run at once */
	int			together;		/* blocks that can wait for each other; 0: none */
} GpuFacts;

/* A kernel: precision, rows per tile (16, 32, 64), tiles of a head. */
typedef struct GpuKernel
{
	int			precision,
				rows,
				head_tiles;
} GpuKernel;

GpuResult	gpu_open(int ordinal, GpuFacts *facts);
void		gpu_close(void);

/* The device's own words for the last GPU_ABSENT, GPU_REFUSED or GPU_FAILED. */
const char *gpu_error(void);

GpuResult	gpu_allocate(size_t bytes, void **memory);
void		gpu_release(void *memory);

/*
 * Bytes that are held of the device's memory: allocated, or released and kept for later. 0 where
 * nothing is kept. gpu_trim waits for all that runs and keeps nothing any more.
 */
size_t		gpu_held(void);
void		gpu_trim(void);

/* Host memory that copies can read and write while the caller goes on. */
GpuResult	gpu_allocate_host(size_t bytes, void **memory);
void		gpu_release_host(void *memory);

/* Host memory must stay as it is until the queue is done. */
GpuResult	gpu_upload(int queue, void *to, const void *from, size_t bytes);
GpuResult	gpu_download(int queue, void *to, const void *from, size_t bytes);

/* These are asked of queue 0. */
GpuResult	gpu_copy(void *to, const void *from, size_t bytes);
GpuResult	gpu_clear(void *memory, size_t bytes);

/*
 * What queue 1 is asked for from now on comes after all that queue 0 has been asked for so far.
 */
GpuResult	gpu_follow(void);

/*
 * tiles * copies * team blocks of CUDA_THREADS threads with `shared` bytes each, all at once if
 * there are copies. GPU_REFUSED where the device has no room for such a launch, or no clusters of
 * this size.
 */
GpuResult	gpu_launch(int queue, const GpuKernel *kernel, const CudaWalk *walk, int shared);

/* ---- models that are computed layer by layer ------------------------------------------------- */

/* The kernel of step->kernel: step->blocks blocks. */
GpuResult	gpu_step(int queue, const CudaStep *step);

/* Rows that a product takes at once: it computes whole blocks of them. */
#define GPU_PRODUCT_ROWS 128

/* Bytes of device memory, in the caller's hands, that a product may use while it is computed. */
#define GPU_PRODUCT_WORK ((size_t) 4 << 20)

/*
 * y = x w' + bias, or y + x w' + bias if `add`, by the library of matrix products. What is in rows
 * beyond n, up to whole blocks, is anything afterwards.
 */
typedef struct GpuProduct
{
	const void *x;				/* [n, row_x]: 16 or 32 bits, as `precision` says */
	const void *w;				/* [out, in], likewise */
	const float *bias;			/* [out] or NULL */
	float	   *y;				/* [n, row_y] */
	void	   *work;			/* GPU_PRODUCT_WORK bytes */
	int			precision,
				in,				/* multiples of 16 */
				out,			/* and of 8 */
				row_x,			/* likewise */
				row_y,
				add;
	int64_t		n;
} GpuProduct;

/*
 * Choose how products of this shape are computed from now on, whatever their number of rows; done
 * once for each. GPU_REFUSED where there is no library, or it cannot compute this.
 */
GpuResult	gpu_prepare_product(const GpuProduct *product);

/* The shape has been prepared. */
GpuResult	gpu_multiply(int queue, const GpuProduct *product);

/* Whether everything that this queue has been asked for has been done; does not wait. */
GpuResult	gpu_done(int queue, bool *done);

/*
 * Measure the kernels launched from now on, or no longer; and the time they took since the last
 * call, with their number. Everything must be done whenever either is called; while kernels are
 * measured, queue 1 is queue 0.
 */
void		gpu_profile(bool on);
GpuResult	gpu_profiled(double *milliseconds, int *launches);

/*
 * Let the processor rest for a moment after look number `looks`, from 0, of a wait that has taken
 * ten milliseconds.
 */
void		gpu_pause(int looks);

#ifdef __cplusplus
}
#endif

#endif							/* CUDA_GPU_H */
