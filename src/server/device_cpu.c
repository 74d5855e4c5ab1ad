/*
 * device_cpu.c: the cpu provider of the engine behind the table of device_api.h: what the server
 * runs with `--device cpu`, on machines without a GPU and in tests.
 *
 * "Device memory" is ordinary memory here, counted and limited in the same way. It is for tests and
 * comparison: a session that computes by itself is faster than one that asks a server which
 * computes on the same cores.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "server/protocol.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"

#define DEFAULT_MEMORY ((size_t) 1 << 30)
#define HEAD 16					/* bytes in front of every piece: its size */

struct TnpDevice
{
	TnpDeviceConfig config;
	size_t		limit,
				used;
	TnpEnv		env;
};

struct TnpDeviceModel
{
	TnpDevice  *device;
	TnpModel   *model;
	size_t		bytes;
};

struct TnpDeviceEncoding
{
	const TnpDeviceModel *model;
	TnpEncoding *encoding;
};

/* ---- memory ---------------------------------------------------------------------------------- */

static void *
limited_alloc(void *arg, size_t size)
{
	TnpDevice  *device = arg;
	char	   *piece;

	if (size > SIZE_MAX - HEAD || size + HEAD > device->limit - device->used)
		return NULL;
	piece = malloc(size + HEAD);
	if (piece == NULL)
		return NULL;
	device->used += size + HEAD;
	*(size_t *) piece = size + HEAD;
	return piece + HEAD;
}

static void
limited_free(void *arg, void *pointer)
{
	TnpDevice  *device = arg;
	char	   *piece = (char *) pointer - HEAD;

	device->used -= *(size_t *) piece;
	free(piece);
}

static bool
device_interrupted(void *arg)
{
	TnpDevice  *device = arg;

	return device->config.interrupted(device->config.arg);
}

static TnpStatus
no_memory(TnpError *error)
{
	error->status = TNP_NO_MEMORY;
	snprintf(error->message, sizeof(error->message), "out of memory");
	error->detail[0] = '\0';
	return TNP_NO_MEMORY;
}

/* ---- the device ------------------------------------------------------------------------------ */

static TnpStatus
device_init(const TnpDeviceConfig *config, TnpDevice **device, TnpError *error)
{
	TnpDevice  *d = calloc(1, sizeof(TnpDevice));

	*device = NULL;
	if (config->ordinal != 0)
	{
		free(d);
		error->status = TNP_BAD_ARGUMENT;
		snprintf(error->message, sizeof(error->message), "there is no cpu device %d",
				 config->ordinal);
		error->detail[0] = '\0';
		return TNP_BAD_ARGUMENT;
	}
	if (d == NULL)
		return no_memory(error);
	d->config = *config;
	d->limit = config->memory > 0 ? config->memory : DEFAULT_MEMORY;
	d->env = (TnpEnv) {.alloc = limited_alloc,.free = limited_free,
					   .interrupted = device_interrupted,
					   .arg = d,.kernels = tnp_cpu_kernels()};
	*device = d;
	return TNP_OK;
}

static void
shut_down(TnpDevice *device)
{
	free(device);
}

static void
device_describe(const TnpDevice *device, TnpDeviceInfo *info)
{
	memset(info, 0, sizeof(*info));
	snprintf(info->provider, sizeof(info->provider), "cpu");
	snprintf(info->name, sizeof(info->name), "the processor, by the engine");
	info->precision = TNP_PRECISION_FP32;
	info->exact = true;
	info->memory_limit = device->limit;
}

static bool
device_lost(const TnpDevice *device)
{
	(void) device;
	return false;
}

static size_t
memory_used(const TnpDevice *device)
{
	return device->used;
}

/* ---- models ---------------------------------------------------------------------------------- */

static TnpStatus
model_load(TnpDevice *device, const void *bytes, size_t length, TnpDeviceModel **model,
		   TnpError *error)
{
	TnpDeviceModel *m = calloc(1, sizeof(TnpDeviceModel));
	size_t		before = device->used;
	TnpStatus	status;

	*model = NULL;
	if (m == NULL)
		return no_memory(error);
	status = tnp_model_open(&device->env, bytes, length, &m->model, error);
	if (status != TNP_OK)
	{
		free(m);
		return status;
	}
	m->device = device;
	m->bytes = device->used - before;
	*model = m;
	return TNP_OK;
}

static void
model_free(TnpDeviceModel *model)
{
	tnp_model_close(model->model);
	free(model);
}

static const TnpModelInfo *
model_info(const TnpDeviceModel *model)
{
	return tnp_model_info(model->model);
}

static void
model_answer_shape(const TnpDeviceModel *model, TnpDistributionKind *kind, int *n)
{
	tnp_answer_shape(model->model, kind, n);
}

static size_t
model_bytes(const TnpDeviceModel *model)
{
	return model->bytes;
}

/* ---- encodings ------------------------------------------------------------------------------- */

static TnpStatus
encoding_build(TnpDeviceModel *model, const TnpRows *rows, int64_t prefix, int64_t capacity,
			   TnpDeviceEncoding **encoding, TnpError *error)
{
	TnpDeviceEncoding *e = calloc(1, sizeof(TnpDeviceEncoding));
	TnpStatus	status;

	(void) capacity;
	*encoding = NULL;
	if (e == NULL)
		return no_memory(error);
	e->model = model;
	status = tnp_build(model->model, rows, prefix, &e->encoding, error);
	if (status != TNP_OK)
	{
		free(e);
		return status;
	}
	*encoding = e;
	return TNP_OK;
}

static TnpStatus
encoding_append(TnpDeviceEncoding *encoding, const TnpRows *rows, TnpError *error)
{
	return tnp_append(encoding->encoding, rows, error);
}

static void
encoding_free(TnpDeviceEncoding *encoding)
{
	tnp_encoding_free(encoding->encoding);
	free(encoding);
}

static int64_t
encoding_rows(const TnpDeviceEncoding *encoding)
{
	return tnp_encoding_rows(encoding->encoding);
}

static int64_t
encoding_base_rows(const TnpDeviceEncoding *encoding)
{
	return tnp_encoding_base_rows(encoding->encoding);
}

static size_t
encoding_bytes(const TnpDeviceEncoding *encoding)
{
	return tnp_encoding_bytes(encoding->encoding);
}

/* ---- answers --------------------------------------------------------------------------------- */

static TnpStatus
device_answer(TnpDeviceEncoding *encoding, int n, TnpRequest *requests, TnpError *error)
{
	for (int i = 0; i < n; i++)
	{
		TnpRequest *r = &requests[i];

		r->status = tnp_execute(encoding->encoding, r, &r->error);
		if (r->status == TNP_INTERRUPTED)
		{
			*error = r->error;
			return TNP_INTERRUPTED;
		}
	}
	return TNP_OK;
}

const TnpDeviceApi tnp_cpu_device = {
	.version = TNP_DEVICE_API,
	.size = sizeof(TnpDeviceApi),
	.init = device_init,
	.shutdown = shut_down,
	.describe = device_describe,
	.lost = device_lost,
	.memory_used = memory_used,
	.model_load = model_load,
	.model_free = model_free,
	.model_info = model_info,
	.model_answer_shape = model_answer_shape,
	.model_bytes = model_bytes,
	.encoding_build = encoding_build,
	.encoding_append = encoding_append,
	.encoding_free = encoding_free,
	.encoding_rows = encoding_rows,
	.encoding_base_rows = encoding_base_rows,
	.encoding_bytes = encoding_bytes,
	.encoding_export = NULL,
	.answer = device_answer,
};
