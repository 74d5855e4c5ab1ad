/*
 * open.c: opens build/pg_posterior_cuda.so as the server does. Without a GPU it must say so, in
 * words, and leave nothing; with one it must describe it.
 *
 *   [CUDA_LIBRARY=file] cuda-tests-open [--gpu]
 *
 * With --gpu one is known to be there, and a driver that is too old for the toolkit, say, is no
 * excuse.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <dlfcn.h>
#include <stdlib.h>

#include "server/device_api.h"
#include "tap.h"

static bool
never(void *arg)
{
	(void) arg;
	return false;
}

static void
quiet(void *arg, const char *line)
{
	(void) arg;
	(void) line;
}

int
main(int argc, char **argv)
{
	const char *path = getenv("CUDA_LIBRARY");
	void	   *library = dlopen(path != NULL ? path : "build/pg_posterior_cuda.so",
								 RTLD_NOW | RTLD_LOCAL);
	const TnpDeviceApi *api = library != NULL ? dlsym(library, TNP_DEVICE_SYMBOL) : NULL;
	TnpDeviceConfig config = {0, 0, TNP_PRECISION_FP16, never, quiet, NULL};
	bool		gpu = argc > 1 && strcmp(argv[1], "--gpu") == 0;
	TnpDevice  *device = NULL;
	TnpDeviceInfo info;
	TnpError	error = {0};

	ok(library != NULL, "the shared object opens: %s",
	   library != NULL ? "no symbol is missing" : dlerror());
	ok(api != NULL, "it has the table of functions");
	if (api == NULL)
		return done_testing();
	is_int(api->version, TNP_DEVICE_API, "of this version");
	is_int(api->size, sizeof(TnpDeviceApi), "and size");
	ok(dlsym(library, "tnp_predict") == NULL, "the engine inside it is its own");
	if (api->init(&config, &device, &error) == TNP_OK)
	{
		api->describe(device, &info);
		ok(info.memory_limit > 0, "%s, %s", info.name, info.version);
		is_int((long long) api->memory_used(device), 0, "nothing is used");
		api->shutdown(device);
	}
	else if (gpu)
		ok(false, "the GPU of this machine opens: %s", error.message);
	else
	{
		is_int(error.status, TNP_BAD_ARGUMENT, "without a GPU it is refused");
		contains(error.message, "CUDA device 0 cannot be used", "in words");
		diag("%s", error.message);
	}
	return done_testing();
}
