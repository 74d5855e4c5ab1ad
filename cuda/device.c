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

GpuResult
cuda_drain(TnpDevice *device)
{
	GpuResult	result = device->lost ? GPU_FAILED : GPU_OK;

	for (int queue = 0; queue < GPU_QUEUES; queue++)
	{
		bool		done = false;

		for (int looks = 0; result == GPU_OK && !done; looks++)
		{
			result = gpu_done(queue, &done);
			if (!done)
				gpu_pause(looks);
		}
	}
	return result;
}

TnpStatus
cuda_failed(TnpDevice *device, GpuResult result, TnpError *error)
{
	char		reason[256];

	snprintf(reason, sizeof(reason), "%s", gpu_error());
	/* what was asked for before may still use the room that the next attempt is given */
	if (result == GPU_NO_MEMORY || result == GPU_REFUSED)
	{
		GpuResult	drained = cuda_drain(device);

		if (drained == GPU_OK && result == GPU_NO_MEMORY)
			return tnp_fail(error, TNP_NO_MEMORY, "out of device memory");
		if (drained == GPU_OK)
			return tnp_fail(error, TNP_BAD_CONFIG, "the CUDA device refuses to compute this: %s",
							reason);
	}
	device->lost = true;
	tnp_fail(error, TNP_BAD_ARGUMENT, "the CUDA device failed: %s", gpu_error());
	return TNP_BAD_ARGUMENT;
}

TnpStatus
cuda_launch(TnpDevice *device, int queue, const CudaPlan *plan, const CudaWalk *walk,
			TnpError *error)
{
	GpuResult	result = gpu_launch(queue, &plan->kernel, walk, plan->shared);
	TnpStatus	status;
	char		line[256];

	if (result == GPU_OK)
		return TNP_OK;
	status = cuda_failed(device, result, error);
	if (status != TNP_BAD_CONFIG || (walk->team == 1 && walk->copies == 1))
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

static void
drop_scratch(TnpDevice *device, CudaRoom *room)
{
	cuda_give(device, room->scratch, room->scratch_bytes);
	room->scratch = NULL;
	room->scratch_bytes = room->scratch_used = 0;
}

/* Give back what earlier questions have left behind; whether there was anything. */
static bool
drop_rooms(TnpDevice *device)
{
	bool		any = false;

	for (int i = 0; i < GPU_QUEUES; i++)
		if (!device->rooms[i].busy && device->rooms[i].scratch != NULL)
		{
			drop_scratch(device, &device->rooms[i]);
			any = true;
		}
	return any;
}

TnpStatus
cuda_take(TnpDevice *device, size_t bytes, void **memory, TnpError *error)
{
	GpuResult	result;

	*memory = NULL;
	/* room that a large question has left behind must not keep others out */
	if (bytes > device->limit - device->used)
		drop_rooms(device);
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
	if (result == GPU_NO_MEMORY && drop_rooms(device))
		result = gpu_allocate(bytes > 0 ? bytes : 1, memory);
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
cuda_wait(TnpDevice *device, int queue, TnpError *error)
{
	bool		done = false,
				stopped = false;

	/*
	 * what has been launched cannot be taken back: an interrupt ends the wait's meaning, not the
	 * wait
	 */
	for (int looks = 0; !done; looks++)
	{
		GpuResult	result = gpu_done(queue, &done);

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

/* Device memory of a room, of at least so many bytes. */
static TnpStatus
grow_scratch(TnpDevice *device, CudaRoom *room, size_t bytes, TnpError *error)
{
	size_t		most = grown(bytes);
	TnpStatus	status;

	drop_scratch(device, room);
	if (most > device->limit - device->used)
		most = bytes;
	status = cuda_take(device, most, &room->scratch, error);
	if (status == TNP_NO_MEMORY && most > bytes)
		status = cuda_take(device, most = bytes, &room->scratch, error);
	if (status == TNP_OK)
		room->scratch_bytes = most;
	return status;
}

static TnpStatus
grow_staging(TnpDevice *device, CudaRoom *room, size_t bytes, TnpError *error)
{
	GpuResult	result;

	gpu_release_host(room->staging);
	room->staging = NULL;
	room->staging_bytes = 0;
	result = gpu_allocate_host(grown(bytes), &room->staging);
	if (result != GPU_OK)
		return cuda_failed(device, result, error);
	room->staging_bytes = grown(bytes);
	return TNP_OK;
}

TnpStatus
cuda_begin(TnpDevice *device, int queue, size_t scratch, size_t staging, TnpError *error)
{
	CudaRoom   *room = &device->rooms[queue];
	TnpStatus	status = TNP_OK;

	device->room = room;
	room->scratch_used = room->staging_used = 0;
	if (scratch > room->scratch_bytes)
	{
		GpuResult	result = GPU_OK;

		status = grow_scratch(device, room, scratch, error);
		/* queue 0 takes the memory */
		if (status == TNP_OK && queue > 0)
			result = gpu_follow();
		if (result != GPU_OK)
			return cuda_failed(device, result, error);
	}
	if (status == TNP_OK && staging > room->staging_bytes)
		status = grow_staging(device, room, staging, error);
	return status;
}

void *
cuda_scratch(TnpDevice *device, size_t bytes)
{
	CudaRoom   *room = device->room;
	void	   *piece = (char *) room->scratch + room->scratch_used;

	room->scratch_used += cuda_piece(bytes);
	return piece;
}

void *
cuda_staging(TnpDevice *device, size_t bytes)
{
	CudaRoom   *room = device->room;
	void	   *piece = (char *) room->staging + room->staging_used;

	room->staging_used += cuda_piece(bytes);
	return piece;
}

/* ---- the device ------------------------------------------------------------------------------ */

static void
close_device(TnpDevice *device)
{
	for (int i = 0; i < GPU_QUEUES; i++)
	{
		drop_scratch(device, &device->rooms[i]);
		gpu_release_host(device->rooms[i].staging);
	}
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
	free(m->layers);
	tnp_model_close(m->model);
	free(m);
}

static TnpStatus
load_model(TnpDevice *device, const void *bytes, size_t length, TnpDeviceModel **model,
		   TnpError *error)
{
	TnpEnv		env = {.alloc = plain_alloc,.free = plain_free,.interrupted = engine_interrupted,
					   .threads = cuda_host_threads,.arg = device};
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
