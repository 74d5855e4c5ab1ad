/*
 * gpu_cuda.cu: gpu.h on the CUDA runtime.
 *
 * A queue is a stream. Memory is taken and given back in the order of queue 0, so that a piece can
 * be given back and taken again while kernels of that queue that use it still run. Errors are of
 * two sorts. Some say that a call could not be made: out of memory, and what a launch is refused
 * for. The runtime forgets them when they have been read, and the device is as it was. All others
 * are final: the runtime repeats them for every later call, and only a new process gets rid of
 * them.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "gpu_cuda.h"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>

#include <cuda_profiler_api.h>

/* kernels.cu, once per list */
typedef const void *FindKernel(int precision, int rows, int head_tiles);

extern "C"
{
const void *cuda_kernel_HALF_16(int precision, int rows, int head_tiles);
const void *cuda_kernel_HALF_32(int precision, int rows, int head_tiles);
const void *cuda_kernel_HALF_64(int precision, int rows, int head_tiles);
const void *cuda_kernel_FLOAT_16(int precision, int rows, int head_tiles);
const void *cuda_kernel_FLOAT_32(int precision, int rows, int head_tiles);
/* layered.cu, once per precision */
const void *cuda_step_HALF(int kernel, int head_tiles);
const void *cuda_step_FLOAT(int kernel, int head_tiles);
}

static FindKernel *const lists[] = {cuda_kernel_HALF_16, cuda_kernel_HALF_32, cuda_kernel_HALF_64,
									cuda_kernel_FLOAT_16, cuda_kernel_FLOAT_32};

static char failure[256] = "";
static cudaStream_t streams[GPU_QUEUES] = {nullptr, nullptr};
static cudaEvent_t ahead = nullptr; /* what queue 1 follows */
static int	shared_limit = 0;

/*
 * Where memory comes from; null on a device without pools, where every piece is taken from the
 * driver, and giving one back waits for all that runs. A pool keeps what is given back, up to
 * POOL_IDLE bytes once the stream has come to an end. What it holds is not limited here: the caller
 * looks at gpu_held before it takes more.
 */
static cudaMemPool_t pool = nullptr;
static bool given_back = false;
#define POOL_IDLE ((size_t) 256 << 20)

/* Pairs of events around launches, while these are measured. */
#define MOST_MEASURED 4096
static bool profiling = false;
static int	measured = 0;
static cudaEvent_t begun[MOST_MEASURED],
			ended[MOST_MEASURED];

/* Blocks of a cluster that every device with clusters has, unless it is a small part of one. */
#define MOST_BLOCKS 8

/* ns that a wait looks without sleeping: longer than requests take for which a sleep counts. */
#define SPIN_TIME 10000000

/*
 * One stream while kernels are measured: the times of kernels that share a device do not add up.
 */
cudaStream_t
gpu_stream(int queue)
{
	return streams[profiling ? 0 : queue];
}

/* Whether an error says that a launch was not made, and nothing else. */
static bool
is_refusal(cudaError_t error)
{
	switch (error)
	{
		case cudaErrorInvalidConfiguration:
		case cudaErrorLaunchOutOfResources:
		case cudaErrorInvalidClusterSize:
		case cudaErrorNoKernelImageForDevice:
		case cudaErrorInvalidDeviceFunction:
		case cudaErrorInvalidValue:
		case cudaErrorSharedObjectInitFailed:
		case cudaErrorInvalidPtx:
		case cudaErrorUnsupportedPtxVersion:
		case cudaErrorJitCompilerNotFound:
		case cudaErrorJitCompilationDisabled:
		case cudaErrorCooperativeLaunchTooLarge:
		case cudaErrorNotSupported:
			return true;
		default:
			return false;
	}
}

GpuResult
gpu_result(cudaError_t error)
{
	if (error == cudaSuccess)
		return GPU_OK;
	if (error == cudaErrorMemoryAllocation)
	{
		/* forget it: it is no failure of the device */
		(void) cudaGetLastError();
		return GPU_NO_MEMORY;
	}
	snprintf(failure, sizeof(failure), "%s (%s)", cudaGetErrorString(error),
			 cudaGetErrorName(error));
	if (is_refusal(error))
	{
		(void) cudaGetLastError();
		return GPU_REFUSED;
	}
	return GPU_FAILED;
}

GpuResult
gpu_say(GpuResult result, const char *reason)
{
	snprintf(failure, sizeof(failure), "%s", reason);
	return result;
}

/*
 * Allow a kernel all the shared memory that there is, the first time that it is launched; beside:
 * what one block of it leaves is for another one, and not for the cache.
 */
static cudaError_t
prepare(const void *function, bool beside)
{
	static const void *prepared[64];
	static int	n = 0;
	cudaError_t error;

	for (int i = 0; i < n; i++)
		if (prepared[i] == function)
			return cudaSuccess;
	error = cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
								 shared_limit);
	if (error == cudaSuccess && beside)
		error = cudaFuncSetAttribute(function, cudaFuncAttributePreferredSharedMemoryCarveout,
									 cudaSharedmemCarveoutMaxShared);
	if (error == cudaSuccess && n < 64)
		prepared[n++] = function;
	return error;
}

/*
 * Load all kernels now, and not at the first request that needs one: where there is no machine code
 * for the device the driver translates them, which takes minutes the first time. It keeps what it
 * has translated.
 */
static cudaError_t
load_kernels(void)
{
	static const int heights[] = {16, 32, 64},
				widths[] = {2, 3, 4, 8, 16};
	cudaFuncAttributes attributes;

	for (int kernel = STEP_ROW_WISE; kernel <= STEP_ANSWERS; kernel++)
		for (int precision = 0; precision < 2; precision++)
			for (int tiles : widths)
			{
				const void *function = precision == 0 ? cuda_step_HALF(kernel, tiles)
					: cuda_step_FLOAT(kernel, tiles);
				cudaError_t error = function == nullptr ? cudaSuccess
					: cudaFuncGetAttributes(&attributes, function);

				if (error != cudaSuccess)
					return error;
			}
	for (FindKernel *find : lists)
		for (int precision = 0; precision < 2; precision++)
			for (int rows : heights)
				for (int tiles : widths)
				{
					const void *function = find(precision, rows, tiles);
					cudaError_t error = function == nullptr ? cudaSuccess
						: cudaFuncGetAttributes(&attributes, function);

					if (error != cudaSuccess)
						return error;
				}
	return cudaSuccess;
}

/* How many teams run at once, of whose blocks each has a multiprocessor's whole shared memory. */
static int
teams_at_once(const void *function, int team)
{
	cudaLaunchConfig_t config = {};
	cudaLaunchAttribute attribute = {};
	int			clusters = 0;

	attribute.id = cudaLaunchAttributeClusterDimension;
	attribute.val.clusterDim.x = (unsigned) team;
	attribute.val.clusterDim.y = 1;
	attribute.val.clusterDim.z = 1;
	config.gridDim = dim3((unsigned) team);
	config.blockDim = dim3(CUDA_THREADS);
	config.dynamicSmemBytes = (size_t) shared_limit;
	config.attrs = &attribute;
	config.numAttrs = 1;
	if (cudaOccupancyMaxActiveClusters(&clusters, function, &config) != cudaSuccess)
	{
		(void) cudaGetLastError();
		return 0;
	}
	return clusters;
}

/*
 * What the kernels, as they were built, can have of this device: shared memory, and blocks of a
 * cluster. Code for an older machine, which the driver has translated, knows no clusters wherever
 * it runs; and a small part of a device may have room for smaller ones only. Loading them also
 * shows whether there is code for the device at all.
 */
static GpuResult
look_at_kernels(const cudaDeviceProp *properties, GpuFacts *facts)
{
	const void *function = cuda_kernel_HALF_16(0, 16, 2);
	cudaLaunchConfig_t config = {};
	cudaFuncAttributes attributes;
	int			blocks = 1;
	cudaError_t error = cudaFuncGetAttributes(&attributes, function);

	if (error == cudaSuccess)
		error = load_kernels();
	if (error != cudaSuccess)
	{
		snprintf(failure, sizeof(failure),
				 "this build has no code that runs on %.100s, of compute capability %d.%d: %.80s",
				 properties->name, properties->major, properties->minor, cudaGetErrorString(error));
		return GPU_ABSENT;
	}
	facts->shared_bytes = shared_limit =
		(int) (properties->sharedMemPerBlockOptin - attributes.sharedSizeBytes);
	facts->team = 1;
	facts->teams[0] = properties->multiProcessorCount;
	facts->together = properties->cooperativeLaunch ? properties->multiProcessorCount : 0;
	if (properties->major < 9 || attributes.ptxVersion < 90)
		return GPU_OK;
	config.gridDim = dim3(8);
	config.blockDim = dim3(CUDA_THREADS);
	config.dynamicSmemBytes = (size_t) shared_limit;
	if (prepare(function, false) != cudaSuccess
		|| cudaOccupancyMaxPotentialClusterSize(&blocks, function, &config) != cudaSuccess)
	{
		/* without clusters everything works, too */
		(void) cudaGetLastError();
		return GPU_OK;
	}
	for (int i = 1; facts->team < MOST_BLOCKS && 2 * facts->team <= blocks; i++)
	{
		facts->team *= 2;
		facts->teams[i] = teams_at_once(function, facts->team);
		if (properties->cooperativeLaunch)
			facts->together = facts->teams[i] * facts->team;
	}
	return GPU_OK;
}

/* Makes the pool; without one everything works, too. */
static void
make_pool(int ordinal)
{
	cudaMemPoolProps properties = {};
	int			supported = 0;
	uint64_t	all = UINT64_MAX;
	cudaError_t error = cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported,
											   ordinal);

	if (error == cudaSuccess && !supported)
		return;
	properties.allocType = cudaMemAllocationTypePinned;
	properties.handleTypes = cudaMemHandleTypeNone;
	properties.location.type = cudaMemLocationTypeDevice;
	properties.location.id = ordinal;
	if (error == cudaSuccess)
		error = cudaMemPoolCreate(&pool, &properties);
	if (error != cudaSuccess)
		pool = nullptr;
	/* it gives back when trim_pool says so, and at no other time */
	else if ((error = cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all)) !=
			 cudaSuccess)
	{
		(void) cudaMemPoolDestroy(pool);
		pool = nullptr;
	}
	if (error != cudaSuccess)
		(void) cudaGetLastError();
}

/* Gives the driver back what is not in use, but for `idle` bytes. */
static void
trim_pool(size_t idle)
{
	uint64_t	used = 0;

	if (cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used) != cudaSuccess
		|| cudaMemPoolTrimTo(pool, (size_t) used + idle) != cudaSuccess)
		(void) cudaGetLastError();
}

GpuResult
gpu_open(int ordinal, GpuFacts *facts)
{
	cudaDeviceProp properties;
	int			devices = 0,
				driver = 0,
				runtime = 0;
	cudaError_t error = cudaGetDeviceCount(&devices);

	memset(facts, 0, sizeof(*facts));
	if (error != cudaSuccess)
		return gpu_say(GPU_ABSENT, cudaGetErrorString(error));
	if (ordinal < 0 || ordinal >= devices)
	{
		snprintf(failure, sizeof(failure), "there are %d devices, numbered from 0", devices);
		return GPU_ABSENT;
	}
	if ((error = cudaSetDevice(ordinal)) != cudaSuccess
		|| (error = cudaGetDeviceProperties(&properties, ordinal)) != cudaSuccess
		|| (error = cudaMemGetInfo(&facts->memory_free, &facts->memory_total)) != cudaSuccess)
		return gpu_say(GPU_ABSENT, cudaGetErrorString(error));
	if (properties.major < 8)
	{
		snprintf(failure, sizeof(failure),
				 "%.100s has compute capability %d.%d, at least 8.0 is needed", properties.name,
				 properties.major, properties.minor);
		return GPU_ABSENT;
	}
	for (int queue = 0; error == cudaSuccess && queue < GPU_QUEUES; queue++)
		error = cudaStreamCreateWithFlags(&streams[queue], cudaStreamNonBlocking);
	if (error != cudaSuccess
		|| (error = cudaEventCreateWithFlags(&ahead, cudaEventDisableTiming)) != cudaSuccess)
	{
		gpu_close();
		return gpu_say(GPU_ABSENT, cudaGetErrorString(error));
	}
	make_pool(ordinal);
	(void) cudaDriverGetVersion(&driver);
	(void) cudaRuntimeGetVersion(&runtime);
	snprintf(facts->name, sizeof(facts->name), "%.127s", properties.name);
	snprintf(facts->version, sizeof(facts->version), "driver %d.%d, runtime %d.%d, sm_%d%d",
			 driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10,
			 properties.major, properties.minor);
	facts->multiprocessors = properties.multiProcessorCount;
	if (look_at_kernels(&properties, facts) != GPU_OK)
	{
		gpu_close();
		return GPU_ABSENT;
	}
	return GPU_OK;
}

void
gpu_close(void)
{
	gpu_close_products();
	if (pool != nullptr)
		(void) cudaMemPoolDestroy(pool);
	pool = nullptr;
	if (ahead != nullptr)
		(void) cudaEventDestroy(ahead);
	ahead = nullptr;
	for (cudaStream_t &stream : streams)
	{
		if (stream != nullptr)
			(void) cudaStreamDestroy(stream);
		stream = nullptr;
	}
}

const char *
gpu_error(void)
{
	return failure;
}

GpuResult
gpu_allocate(size_t bytes, void **memory)
{
	cudaError_t error;

	if (pool == nullptr)
		return gpu_result(cudaMalloc(memory, bytes));
	error = cudaMallocFromPoolAsync(memory, bytes, pool, streams[0]);
	if (error == cudaErrorMemoryAllocation)
	{
		/* what is kept may be in pieces that are too small */
		(void) cudaGetLastError();
		gpu_trim();
		error = cudaMallocFromPoolAsync(memory, bytes, pool, streams[0]);
	}
	return gpu_result(error);
}

size_t
gpu_held(void)
{
	uint64_t	held = 0;

	if (pool != nullptr
		&& cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &held) != cudaSuccess)
		(void) cudaGetLastError();
	return (size_t) held;
}

void
gpu_trim(void)
{
	if (pool == nullptr)
		return;
	/* only what the streams have come past can be given back; errors come from the next call */
	for (cudaStream_t stream : streams)
		(void) cudaStreamSynchronize(stream);
	trim_pool(0);
}

void
gpu_release(void *memory)
{
	if (pool == nullptr)
		(void) cudaFree(memory);
	else
	{
		(void) cudaFreeAsync(memory, streams[0]);
		given_back = true;
	}
}

GpuResult
gpu_allocate_host(size_t bytes, void **memory)
{
	return gpu_result(cudaMallocHost(memory, bytes));
}

void
gpu_release_host(void *memory)
{
	(void) cudaFreeHost(memory);
}

GpuResult
gpu_upload(int queue, void *to, const void *from, size_t bytes)
{
	return bytes == 0 ? GPU_OK
		: gpu_result(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, gpu_stream(queue)));
}

GpuResult
gpu_download(int queue, void *to, const void *from, size_t bytes)
{
	return bytes == 0 ? GPU_OK
		: gpu_result(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, gpu_stream(queue)));
}

GpuResult
gpu_copy(void *to, const void *from, size_t bytes)
{
	return bytes == 0 ? GPU_OK
		: gpu_result(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, streams[0]));
}

GpuResult
gpu_clear(void *memory, size_t bytes)
{
	return bytes == 0 ? GPU_OK : gpu_result(cudaMemsetAsync(memory, 0, bytes, streams[0]));
}

GpuResult
gpu_follow(void)
{
	cudaError_t error = cudaEventRecord(ahead, streams[0]);

	return gpu_result(error != cudaSuccess ? error : cudaStreamWaitEvent(streams[1], ahead, 0));
}

GpuResult
gpu_measured(int queue, const std::function<cudaError_t ()> &launch)
{
	cudaStream_t stream = gpu_stream(queue);
	cudaError_t error;

	if (!profiling || measured == MOST_MEASURED)
		return gpu_result(launch());
	if ((error = cudaEventCreate(&begun[measured])) != cudaSuccess
		|| (error = cudaEventCreate(&ended[measured])) != cudaSuccess
		|| (error = cudaEventRecord(begun[measured], stream)) != cudaSuccess
		|| (error = launch()) != cudaSuccess
		|| (error = cudaEventRecord(ended[measured], stream)) != cudaSuccess)
		return gpu_result(error);
	measured++;
	return GPU_OK;
}

GpuResult
gpu_launch(int queue, const GpuKernel *kernel, const CudaWalk *walk, int shared)
{
	const void *function = nullptr;
	cudaStream_t stream = gpu_stream(queue);
	cudaLaunchConfig_t config = {};
	cudaLaunchAttribute attributes[2] = {};
	void	   *arguments[1] = {(void *) walk};
	cudaError_t error;

	for (FindKernel *find : lists)
		if (function == nullptr)
			function = find(kernel->precision, kernel->rows, kernel->head_tiles);
	if (function == nullptr)
	{
		snprintf(failure, sizeof(failure),
				 "there is no kernel for tiles of %d rows and heads of %d columns", kernel->rows,
				 kernel->head_tiles * 8);
		return GPU_REFUSED;
	}
	error = prepare(function,
					CUDA_BESIDE(kernel->precision, kernel->rows, kernel->head_tiles) > 1);
	if (error != cudaSuccess)
		return gpu_result(error);
	config.gridDim = dim3((unsigned) walk->tiles * (unsigned) walk->copies *
						  (unsigned) walk->team);
	config.blockDim = dim3(CUDA_THREADS);
	config.dynamicSmemBytes = (size_t) shared;
	config.stream = stream;
	config.attrs = attributes;
	if (walk->team > 1)
	{
		attributes[0].id = cudaLaunchAttributeClusterDimension;
		attributes[0].val.clusterDim.x = (unsigned) walk->team;
		attributes[0].val.clusterDim.y = 1;
		attributes[0].val.clusterDim.z = 1;
		config.numAttrs++;
	}
	if (walk->copies > 1)
	{
		attributes[config.numAttrs].id = cudaLaunchAttributeCooperative;
		attributes[config.numAttrs].val.cooperative = 1;
		config.numAttrs++;
	}
	return gpu_measured(queue, [&] { return cudaLaunchKernelExC(&config, function, arguments); });
}

GpuResult
gpu_step(int queue, const CudaStep *step)
{
	int			tiles = step->walk.model.head_tiles,
				shared = cuda_step_shared(step);
	const void *function = step->walk.model.precision == 0 ? cuda_step_HALF(step->kernel, tiles)
		: cuda_step_FLOAT(step->kernel, tiles);
	void	   *arguments[1] = {(void *) step};
	cudaError_t error;

	if (function == nullptr)
	{
		snprintf(failure, sizeof(failure), "there is no kernel for heads of %d columns", tiles * 8);
		return GPU_REFUSED;
	}
	error = prepare(function, false);
	if (error != cudaSuccess)
		return gpu_result(error);
	return gpu_measured(queue, [&] {
		return cudaLaunchKernel(function, dim3((unsigned) step->blocks),
								dim3((unsigned) cuda_step_threads(step)), arguments,
								(size_t) shared, gpu_stream(queue));
	});
}

void
gpu_profile(bool on)
{
	profiling = on;
	/* Nsight Compute looks at no other launches (test/gpu-check); without it nothing happens */
	(void) (on ? cudaProfilerStart() : cudaProfilerStop());
}

GpuResult
gpu_profiled(double *milliseconds, int *launches)
{
	*milliseconds = 0;
	*launches = measured;
	while (measured > 0)
	{
		float		time = 0;
		cudaError_t error;

		measured--;
		error = cudaEventElapsedTime(&time, begun[measured], ended[measured]);
		(void) cudaEventDestroy(begun[measured]);
		(void) cudaEventDestroy(ended[measured]);
		if (error != cudaSuccess)
			return gpu_result(error);
		*milliseconds += time;
	}
	return GPU_OK;
}

GpuResult
gpu_done(int queue, bool *done)
{
	cudaError_t error = cudaStreamQuery(gpu_stream(queue));

	*done = error == cudaSuccess;
	if (*done && given_back)
	{
		given_back = false;
		if (pool != nullptr)
			trim_pool(POOL_IDLE);
	}
	return error == cudaErrorNotReady ? GPU_OK : gpu_result(error);
}

void
gpu_pause(int looks)
{
	static struct timespec began;
	struct timespec now,
				moment = {0, 50000};

	(void) clock_gettime(CLOCK_MONOTONIC, &now);
	if (looks == 0)
		began = now;
	if ((now.tv_sec - began.tv_sec) * 1000000000LL + (now.tv_nsec - began.tv_nsec) > SPIN_TIME)
		(void) nanosleep(&moment, nullptr);
}
