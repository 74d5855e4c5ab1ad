/*
 * server_state.c: the server's state in shared memory, and in words.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/device/server_state.h"

int			posterior_device = POSTERIOR_DEVICE_AUTO;
int			posterior_on_device_error = POSTERIOR_ON_ERROR_ERROR;
double		posterior_device_threshold = 2;

PosteriorServer *posterior_server = NULL;

static Size
server_size(void)
{
	return sizeof(PosteriorServer);
}

static void
server_initialize(void *part)
{
	PosteriorServer *server = part;

	pg_atomic_init_u32(&server->state, POSTERIOR_SERVER_OFF);
	pg_atomic_init_u64(&server->pid, 0);
	pg_atomic_init_u64(&server->starts, 0);
	pg_atomic_init_u64(&server->since, 0);
	pg_atomic_init_u64(&server->faults, 0);
	pg_atomic_init_u64(&server->fallbacks, 0);
}

PosteriorSharedPart posterior_server_part = {
	.place = (void **) &posterior_server,.size = server_size,.initialize = server_initialize
};

void
posterior_server_explain(TnpError *why)
{
	const PosteriorServer *server = posterior_server;

	memset(why, 0, sizeof(*why));
	switch ((PosteriorServerState) pg_atomic_read_u32(&posterior_server->state))
	{
		case POSTERIOR_SERVER_OFF:
			strlcpy(why->message,
					"none was started with PostgreSQL: there was no GPU, no pg_posterior_cuda.so, "
					"or posterior.device was cpu",
					sizeof(why->message));
			break;
		case POSTERIOR_SERVER_WAITING:
			snprintf(why->message, sizeof(why->message), "it will be started again; %.*s",
					 (int) sizeof(server->ended) - 1, server->ended);
			break;
		default:
			strlcpy(why->message, "it is being started", sizeof(why->message));
	}
}
