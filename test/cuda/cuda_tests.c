/*
 * cuda_tests.c: a device on the emulator, and comparisons.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "cuda_tests.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"
#include "tap.h"

long		cuda_polls,
			cuda_stop_at;

static bool
interrupted(void *arg)
{
	(void) arg;
	return ++cuda_polls == cuda_stop_at;
}

static void
log_line(void *arg, const char *line)
{
	(void) arg;
	printf("# %s\n", line);
}

TnpDevice *
cuda_open(TnpPrecision precision, size_t memory)
{
	TnpDeviceConfig config = {0, memory, precision, interrupted, log_line, NULL};
	TnpDevice  *device;
	TnpError	error;

	if (tnp_device.init(&config, &device, &error) != TNP_OK)
	{
		printf("Bail out! %s\n", error.message);
		exit(2);
	}
	return device;
}

void
cuda_read_shape(void)
{
	const char *shape = getenv("CUDA_TEST_SHAPE");

	if (shape != NULL && sscanf(shape, "%d %d %d %d", &cuda_force.rows, &cuda_force.team,
								&cuda_force.split, &cuda_force.part_in_memory) != 4)
	{
		printf("Bail out! CUDA_TEST_SHAPE is not four numbers: %s\n", shape);
		exit(2);
	}
}

TnpDeviceModel *
cuda_load(TnpDevice *device, const TestModel *file)
{
	TnpDeviceModel *model;
	TnpError	error;

	if (tnp_device.model_load(device, file->bytes, file->length, &model, &error) != TNP_OK)
	{
		printf("Bail out! %s: %s\n", file->name, error.message);
		exit(2);
	}
	return model;
}

TnpDeviceModel *
cuda_load_layered(TnpDevice *device, const TestModel *file)
{
	TnpDeviceModel *model;
	TnpError	error;
	TnpStatus	status;

	cuda_force_layers = true;
	status = tnp_device.model_load(device, file->bytes, file->length, &model, &error);
	cuda_force_layers = false;
	if (status == TNP_BAD_CONFIG && strstr(error.message, "no library") != NULL)
	{
		ok(true, "%s # SKIP %s", file->name, error.message);
		return NULL;
	}
	if (status != TNP_OK)
	{
		printf("Bail out! %s: %s\n", file->name, error.message);
		exit(2);
	}
	return model;
}

double
largest_difference(const double *a, const double *b, size_t n)
{
	double		largest = 0;

	for (size_t i = 0; i < n; i++)
	{
		double		difference = fabs(a[i] - b[i]) / (1 + fabs(b[i]));

		if (a[i] == b[i] || (isnan(a[i]) && isnan(b[i])))
			continue;
		if (!(difference <= largest))
			largest = isnan(difference) ? INFINITY : difference;
	}
	return largest;
}

TnpStatus
cuda_ask(TnpDeviceEncoding *e, TnpRequest *request)
{
	TnpError	error;
	TnpStatus	status;

	request->status = TNP_INTERRUPTED;
	status = tnp_device.answer(e, 1, request, &error);
	if (status != TNP_OK)
	{
		request->status = status;
		request->error = error;
	}
	return request->status;
}
