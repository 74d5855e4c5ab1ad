/*
 * gpu_emulated.cpp: cuda/gpu.h on the emulator: device memory is host memory, kernels run when they
 * are launched.
 *
 * A test may ask for little memory, and for a failure of the n-th call.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "gpu_emulated.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "emulator.h"
#include "races.h"

typedef bool RunKernel(int precision, int rows, int head_tiles, const CudaWalk *walk, int shared);

extern "C" RunKernel emulated_kernel_HALF_16,
			emulated_kernel_HALF_32,
			emulated_kernel_HALF_64,
			emulated_kernel_FLOAT_16,
			emulated_kernel_FLOAT_32;

GpuEmulated gpu_emulated;

static RunKernel *const run_kernel[] = {emulated_kernel_HALF_16, emulated_kernel_HALF_32,
										emulated_kernel_HALF_64, emulated_kernel_FLOAT_16,
emulated_kernel_FLOAT_32};

static const char *failure = "";

/* Memory of the device; where races are looked for, in a place that is watched. */
static void *
device_memory(size_t bytes)
{
#ifdef EMULATOR_RACES
	return race_allocate(bytes, false);
#else
	return malloc(bytes);
#endif
}

static void
free_device_memory(void *memory)
{
#ifdef EMULATOR_RACES
	(void) memory;
#else
	free(memory);
#endif
}

/*
 * Released memory stays held until it is trimmed, and no piece fits a later wish: the worst that a
 * pool may do.
 */
static std::map<void *, size_t> piece_bytes;

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
	facts->together = 4 * facts->multiprocessors;
	return GPU_OK;
}

void
gpu_close(void)
{
	gpu_trim();
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
	*memory = device_memory(bytes);
	memset(*memory, 0xff, bytes);
	gpu_emulated.live++;
	piece_bytes[*memory] = bytes;
	gpu_emulated.held += bytes;
	if (gpu_emulated.held > gpu_emulated.most_held)
		gpu_emulated.most_held = gpu_emulated.held;
	return GPU_OK;
}

size_t
gpu_held(void)
{
	return gpu_emulated.held;
}

void
gpu_trim(void)
{
	gpu_emulated.held = 0;
	for (const auto &piece : piece_bytes)
		gpu_emulated.held += piece.second;
}

void
gpu_release(void *memory)
{
	gpu_emulated.live -= memory != nullptr;
	piece_bytes.erase(memory);
	free_device_memory(memory);
#ifdef EMULATOR_RACES
	if (gpu_emulated.live == 0)
		race_free_all();
#endif
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
	if (++gpu_emulated.launches == gpu_emulated.refuse_at
		|| (gpu_emulated.refuse_teams > 0 && walk->team > gpu_emulated.refuse_teams)
		|| (gpu_emulated.refuse_copies && walk->copies > 1))
	{
		gpu_emulated.refused++;
		failure = "too many resources requested for launch";
		return GPU_REFUSED;
	}
	if (shared > (gpu_emulated.shared_bytes > 0 ? gpu_emulated.shared_bytes : 227 << 10)
		|| shared % 16 != 0)
		emulator_stop("a launch with more shared memory than there is");
	for (RunKernel *run : run_kernel)
		if (run(kernel->precision, kernel->rows, kernel->head_tiles, walk, shared))
			return GPU_OK;
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
gpu_profile(bool on)
{
	(void) on;
}

GpuResult
gpu_profiled(double *milliseconds, int *launches)
{
	*milliseconds = 0;
	*launches = (int) gpu_emulated.launches;
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

const char *
gpu_emulated_barrier(int i, int *line)
{
	return emulator_barrier(i, line);
}

void
gpu_emulated_leave_out(const char *file, int line)
{
	emulator_leave_out(file, line);
}

void
gpu_emulated_miscount(const char *file, int line, int bytes)
{
	emulator_miscount(file, line, bytes);
}
