/*
 * device.c: the table of functions that the server calls, device memory, and waiting for the
 * device.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RESERVE ((size_t) 1 << 20)	/* scratch and staging grow by at least this */
#define POLL_EVERY 64			/* looks at the device per poll for interrupts, */
#define POLL_ALWAYS 10000		/* until so many: by then gpu_pause sleeps */

TnpStatus
cuda_failed(TnpDevice *device, GpuResult result, TnpError *error)
{
	if (result == GPU_NO_MEMORY)
	{
		bool		done = false;

		/* what was asked for before may still use the room that the next attempt is given */
		result = gpu_done(&done);
		for (int looks = 0; result == GPU_OK && !done; looks++)
		{
			gpu_pause(looks);
			result = gpu_done(&done);
		}
		if (result == GPU_OK)
			return tnp_fail(error, TNP_NO_MEMORY, "out of device memory");
	}
	if (result == GPU_REFUSED)
	{
		tnp_fail(error, TNP_BAD_CONFIG, "the CUDA device refuses to compute this: %s", gpu_error());
		return TNP_BAD_CONFIG;
	}
	device->lost = true;
	tnp_fail(error, TNP_BAD_ARGUMENT, "the CUDA device failed: %s", gpu_error());
	return TNP_BAD_ARGUMENT;
}

TnpStatus
cuda_launch(TnpDevice *device, const CudaPlan *plan, const CudaWalk *walk, TnpError *error)
{
	GpuResult	result = gpu_launch(&plan->kernel, walk, plan->shared);
	TnpStatus	status;
	char		line[256];

	if (result == GPU_OK)
		return TNP_OK;
	status = cuda_failed(device, result, error);
	if (result != GPU_REFUSED || (walk->team == 1 && walk->copies == 1))
		return status;
	/* what was queued before it still uses the room that the next attempt is given */
	status = cuda_wait(device, error);
	if (status != TNP_OK)
		return status;
	device->again = true;
	if (walk->copies > 1)
	{
		device->facts.together = 0;
		snprintf(line, sizeof(line),
				 "%d blocks that run at once are refused (%.80s): none from now on",
				 walk->tiles * walk->copies * walk->team, gpu_error());
	}
	else
	{
		device->facts.team = walk->team / 2;
		snprintf(line, sizeof(line),
				 "clusters of %d blocks are refused (%.80s): at most %d from now on", walk->team,
				 gpu_error(), device->facts.team);
	}
	device->config.log(device->config.arg, line);
	return TNP_BAD_CONFIG;
}

bool
cuda_again(TnpDevice *device)
{
	bool		again = device->again;

	device->again = false;
	return again;
}

/* Give back the room of the last call, which no call in progress uses yet. */
static void
drop_scratch(TnpDevice *device)
{
	cuda_give(device, device->scratch, device->scratch_bytes);
	device->scratch = NULL;
	device->scratch_bytes = device->scratch_used = 0;
}

TnpStatus
cuda_take(TnpDevice *device, size_t bytes, void **memory, TnpError *error)
{
	GpuResult	result;

	*memory = NULL;
	/* room that a large question has left behind must not keep others out */
	if (bytes > device->limit - device->used)
		drop_scratch(device);
	if (bytes > device->limit - device->used)
	{
		tnp_fail(error, TNP_NO_MEMORY, "out of device memory");
		tnp_detail(error, "%zu bytes asked for, %zu of %zu in use", bytes, device->used,
				   device->limit);
		return TNP_NO_MEMORY;
	}
	/* nor what was released and may be in pieces of the wrong size */
	if (gpu_held() > device->limit - bytes)
		gpu_trim();
	result = gpu_allocate(bytes > 0 ? bytes : 1, memory);
	if (result == GPU_NO_MEMORY && device->scratch != NULL)
	{
		drop_scratch(device);
		result = gpu_allocate(bytes > 0 ? bytes : 1, memory);
	}
	if (result != GPU_OK)
		return cuda_failed(device, result, error);
	device->used += bytes;
	return TNP_OK;
}

void
cuda_give(TnpDevice *device, void *memory, size_t bytes)
{
	if (memory == NULL)
		return;
	gpu_release(memory);
	device->used -= bytes;
}

TnpStatus
cuda_wait(TnpDevice *device, TnpError *error)
{
	bool		done = false,
				stopped = false;

	/*
	 * what has been launched cannot be taken back: an interrupt ends the wait's meaning, not the
	 * wait
	 */
	for (int looks = 0; !done; looks++)
	{
		GpuResult	result = gpu_done(&done);

		if (result != GPU_OK)
			return cuda_failed(device, result, error);
		/* the caller's look at its clients is not free; once the wait sleeps between looks it is */
		if ((looks % POLL_EVERY == 0 || looks > POLL_ALWAYS)
			&& device->config.interrupted(device->config.arg))
			stopped = true;
		if (!done)
			gpu_pause(looks);
	}
	return stopped ? tnp_fail(error, TNP_INTERRUPTED, "interrupted") : TNP_OK;
}

/*
 * Room for `bytes` and some more, so that questions that grow slowly do not allocate, which waits
 * for the device, each time.
 */
static size_t
grown(size_t bytes)
{
	return (bytes + bytes / 8 + RESERVE - 1) / RESERVE * RESERVE;
}

TnpStatus
cuda_begin(TnpDevice *device, size_t scratch, size_t staging, TnpError *error)
{
	TnpStatus	status;

	device->scratch_used = device->staging_used = 0;
	if (scratch > device->scratch_bytes)
	{
		size_t		room = grown(scratch);

		drop_scratch(device);
		if (room > device->limit - device->used)
			room = scratch;
		status = cuda_take(device, room, &device->scratch, error);
		if (status == TNP_NO_MEMORY && room > scratch)
			status = cuda_take(device, room = scratch, &device->scratch, error);
		if (status != TNP_OK)
			return status;
		device->scratch_bytes = room;
	}
	if (staging > device->staging_bytes)
	{
		GpuResult	result;

		gpu_release_host(device->staging);
		device->staging = NULL;
		device->staging_bytes = 0;
		result = gpu_allocate_host(grown(staging), &device->staging);
		if (result != GPU_OK)
			return cuda_failed(device, result, error);
		device->staging_bytes = grown(staging);
	}
	return TNP_OK;
}

void *
cuda_scratch(TnpDevice *device, size_t bytes)
{
	void	   *piece = (char *) device->scratch + device->scratch_used;

	device->scratch_used += cuda_piece(bytes);
	return piece;
}

void *
cuda_staging(TnpDevice *device, size_t bytes)
{
	void	   *piece = (char *) device->staging + device->staging_used;

	device->staging_used += cuda_piece(bytes);
	return piece;
}

/* ---- the device ------------------------------------------------------------------------------ */

static void
close_device(TnpDevice *device)
{
	cuda_give(device, device->scratch, device->scratch_bytes);
	gpu_release_host(device->staging);
	gpu_close();
	free(device);
}

static TnpStatus
open_device(const TnpDeviceConfig *config, TnpDevice **device, TnpError *error)
{
	TnpDevice  *d = calloc(1, sizeof(TnpDevice));
	GpuResult	result;

	*device = NULL;
	if (d == NULL)
		return tnp_no_memory(error);
	d->config = *config;
	result = gpu_open(config->ordinal, &d->facts);
	if (result != GPU_OK)
	{
		tnp_fail(error, TNP_BAD_ARGUMENT, "CUDA device %d cannot be used: %s", config->ordinal,
				 gpu_error());
		free(d);
		return TNP_BAD_ARGUMENT;
	}
	d->limit = config->memory > 0 ? config->memory : d->facts.memory_free / 4 * 3;
	*device = d;
	return TNP_OK;
}

static void
describe(const TnpDevice *device, TnpDeviceInfo *info)
{
	memset(info, 0, sizeof(*info));
	snprintf(info->provider, sizeof(info->provider), "cuda");
	memcpy(info->name, device->facts.name, sizeof(info->name));
	memcpy(info->version, device->facts.version, sizeof(info->version));
	info->precision = device->config.precision;
	info->exact = false;
	info->memory_total = device->facts.memory_total;
	info->memory_limit = device->limit;
}

static bool
is_lost(const TnpDevice *device)
{
	return device->lost;
}

static size_t
memory_used(const TnpDevice *device)
{
	return device->used;
}

/* ---- models ---------------------------------------------------------------------------------- */

static void *
plain_alloc(void *arg, size_t size)
{
	(void) arg;
	return malloc(size);
}

static void
plain_free(void *arg, void *pointer)
{
	(void) arg;
	free(pointer);
}

static bool
engine_interrupted(void *arg)
{
	TnpDevice  *device = arg;

	return device->config.interrupted(device->config.arg);
}

static void
free_model(TnpDeviceModel *m)
{
	if (m == NULL)
		return;
	cuda_give(m->device, m->weights, m->bytes);
	tnp_model_close(m->model);
	free(m);
}

static TnpStatus
load_model(TnpDevice *device, const void *bytes, size_t length, TnpDeviceModel **model,
		   TnpError *error)
{
	TnpEnv		env = {.alloc = plain_alloc,.free = plain_free,.interrupted = engine_interrupted,
					   .arg = device};
	TnpDeviceModel *m = calloc(1, sizeof(TnpDeviceModel));
	TnpStatus	status;

	*model = NULL;
	if (m == NULL)
		return tnp_no_memory(error);
	m->device = device;
	status = tnp_model_open(&env, bytes, length, &m->model, error);
	if (status == TNP_OK)
		status = cuda_load_weights(m, device->config.precision, error);
	if (status != TNP_OK)
	{
		free_model(m);
		return status;
	}
	*model = m;
	return TNP_OK;
}

static const TnpModelInfo *
model_info(const TnpDeviceModel *m)
{
	return tnp_model_info(m->model);
}

static void
model_answer_shape(const TnpDeviceModel *m, TnpDistributionKind *kind, int *n)
{
	tnp_answer_shape(m->model, kind, n);
}

static size_t
model_bytes(const TnpDeviceModel *m)
{
	return m->bytes;
}

/* ---- encodings ------------------------------------------------------------------------------- */

static int64_t
encoding_rows(const TnpDeviceEncoding *e)
{
	return e->n;
}

static int64_t
encoding_base_rows(const TnpDeviceEncoding *e)
{
	return e->prefix > e->stats.n0 ? e->prefix : e->stats.n0;
}

static size_t
encoding_bytes(const TnpDeviceEncoding *e)
{
	return e->bytes;
}

TNP_EXPORT extern const TnpDeviceApi tnp_device;

const TnpDeviceApi tnp_device = {
	.version = TNP_DEVICE_API,
	.size = sizeof(TnpDeviceApi),
	.init = open_device,
	.shutdown = close_device,
	.describe = describe,
	.lost = is_lost,
	.memory_used = memory_used,
	.model_load = load_model,
	.model_free = free_model,
	.model_info = model_info,
	.model_answer_shape = model_answer_shape,
	.model_bytes = model_bytes,
	.encoding_build = cuda_encoding_build,
	.encoding_append = cuda_encoding_append,
	.encoding_free = cuda_encoding_free,
	.encoding_rows = encoding_rows,
	.encoding_base_rows = encoding_base_rows,
	.encoding_bytes = encoding_bytes,
	.encoding_export = cuda_encoding_export,
	.answer = cuda_answer,
};
