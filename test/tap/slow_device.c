/*
 * slow_device.c: a device that takes its time to open, as one does whose kernels the driver
 * translates first, and then is none.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "server/device_api.h"

#include <string.h>
#include <unistd.h>

#define SECONDS 5

static TnpStatus
open_slowly(const TnpDeviceConfig *config, TnpDevice **device, TnpError *error)
{
	for (unsigned left = SECONDS; left > 0;)
		left = sleep(left);
	config->log(config->arg, "the slow device has been translated");
	*device = NULL;
	memset(error, 0, sizeof(*error));
	error->status = TNP_BAD_ARGUMENT;
	strcpy(error->message, "it is too slow");
	return TNP_BAD_ARGUMENT;
}

extern const TnpDeviceApi tnp_device;

__attribute__((visibility("default"))) const TnpDeviceApi tnp_device = {
	.version = TNP_DEVICE_API,
	.size = sizeof(TnpDeviceApi),
	.init = open_slowly,
};
