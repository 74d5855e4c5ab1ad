/*
 * gpu_emulated.cpp: cuda/gpu.h on the emulator: device memory is host memory, kernels run when they are launched.
 *
 * A test may ask for little memory, and for a failure of the n-th call.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "gpu_emulated.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernels.h"
#include "walk.h"

GpuEmulated gpu_emulated;

static const char *failure = "";

/* Whether this call is the one that fails. */
static bool
fails(void)
{
	gpu_emulated.calls++;
	if (gpu_emulated.fail_at > 0 && gpu_emulated.calls >= gpu_emulated.fail_at)
	{
		failure = "an illegal memory access was encountered";
		return true;
	}
	return false;
}

GpuResult
gpu_open(int ordinal, GpuFacts *facts)
{
	if (ordinal != 0)
	{
		failure = "invalid device ordinal";
		return GPU_ABSENT;
	}
	memset(facts, 0, sizeof(*facts));
	snprintf(facts->name, sizeof(facts->name), "emulator");
	facts->memory_total = (size_t) 1 << 30;
	facts->memory_free = (size_t) 1 << 30;
	facts->multiprocessors = gpu_emulated.multiprocessors > 0 ? gpu_emulated.multiprocessors : 8;
	facts->shared_bytes = gpu_emulated.shared_bytes > 0 ? gpu_emulated.shared_bytes : 227 << 10;
	facts->team = gpu_emulated.team > 0 ? gpu_emulated.team : 8;
	return GPU_OK;
}

void
gpu_close(void)
{
}

const char *
gpu_error(void)
{
	return failure;
}

GpuResult
gpu_allocate(size_t bytes, void **memory)
{
	if (fails())
		return GPU_FAILED;
	if (++gpu_emulated.allocations == gpu_emulated.no_memory_at)
		return GPU_NO_MEMORY;
	*memory = malloc(bytes);
	memset(*memory, 0xff, bytes);
	gpu_emulated.live++;
	return GPU_OK;
}

void
gpu_release(void *memory)
{
	gpu_emulated.live -= memory != nullptr;
	free(memory);
}

GpuResult
gpu_allocate_host(size_t bytes, void **memory)
{
	*memory = malloc(bytes);
	gpu_emulated.live++;
	return GPU_OK;
}

void
gpu_release_host(void *memory)
{
	gpu_emulated.live -= memory != nullptr;
	free(memory);
}

GpuResult
gpu_upload(void *to, const void *from, size_t bytes)
{
	if (fails())
		return GPU_FAILED;
	memcpy(to, from, bytes);
	return GPU_OK;
}

GpuResult
gpu_download(void *to, const void *from, size_t bytes)
{
	return gpu_upload(to, from, bytes);
}

GpuResult
gpu_copy(void *to, const void *from, size_t bytes)
{
	return gpu_upload(to, from, bytes);
}

GpuResult
gpu_clear(void *memory, size_t bytes)
{
	if (fails())
		return GPU_FAILED;
	memset(memory, 0, bytes);
	return GPU_OK;
}

GpuResult
gpu_launch(const GpuKernel *kernel, const CudaWalk *walk, int shared)
{
	if (fails())
		return GPU_FAILED;
	gpu_emulated.launches++;
	if (shared > (gpu_emulated.shared_bytes > 0 ? gpu_emulated.shared_bytes : 227 << 10) || shared % 16 != 0)
		emulator_stop("a launch with more shared memory than there is");
#define ENTRY(type, height, wide) \
	if (kernel->precision == Precision<type>::code && kernel->rows == height && kernel->head_tiles == wide) \
	{ \
		emulator_run(walk->tiles, walk->team, CUDA_THREADS, (size_t) shared, [&]() { cuda_walk<type, height, wide>(*walk); }); \
		return GPU_OK; \
	}
	CUDA_KERNELS_OF_HALF(ENTRY)
	CUDA_KERNELS_OF_FLOAT(ENTRY)
	emulator_stop("a launch of a kernel that does not exist");
}

GpuResult
gpu_done(bool *done)
{
	if (fails())
		return GPU_FAILED;
	/* the second look finds it done, so that waiting is exercised */
	*done = ++gpu_emulated.looks % 2 == 0;
	return GPU_OK;
}

void
gpu_pause(int looks)
{
	(void) looks;
}

void
gpu_emulated_order(int order)
{
	emulator_order = (EmulatorOrder) order;
}
