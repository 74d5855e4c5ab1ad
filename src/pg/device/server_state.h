/*
 * server_state.h: what sessions and the supervisor know together of the server for devices:
 * settings, its socket, its state in shared memory.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_SERVER_STATE_H
#define POSTERIOR_SERVER_STATE_H

#include "pg/shmem/segment.h"

#include "engine/tnp.h"

/*
 * Where the server listens, relative to the data directory; pg_basebackup and pg_rewind leave out
 * names that begin like this.
 */
#define POSTERIOR_SOCKET "pgsql_tmp.pg_posterior.sock"

typedef enum PosteriorDeviceMode
{
	POSTERIOR_DEVICE_AUTO,
	POSTERIOR_DEVICE_CPU,
	POSTERIOR_DEVICE_CUDA
} PosteriorDeviceMode;

typedef enum PosteriorOnError
{
	POSTERIOR_ON_ERROR_ERROR,
	POSTERIOR_ON_ERROR_CPU
} PosteriorOnError;

extern int	posterior_device;	/* posterior.device */
extern int	posterior_on_device_error;	/* posterior.on_device_error */
extern double posterior_device_threshold;	/* posterior.device_threshold, million multiply-adds */

typedef enum PosteriorServerState
{
	POSTERIOR_SERVER_OFF,		/* nothing starts one */
	POSTERIOR_SERVER_STARTING,	/* it is started, or will be within a second */
	POSTERIOR_SERVER_READY,
	POSTERIOR_SERVER_WAITING	/* it has ended, and the next start is some time off */
} PosteriorServerState;

/* In shared memory. Sessions write the counters of failures, the supervisor all else. */
typedef struct PosteriorServer
{
	pg_atomic_uint32 state;
	pg_atomic_uint64 pid;		/* 0: none */
	pg_atomic_uint64 starts;	/* since PostgreSQL's start */
	pg_atomic_uint64 since;		/* TimestampTz of the last start */
	pg_atomic_uint64 faults;	/* requests that failed because of server or device */
	pg_atomic_uint64 fallbacks; /* of these, those that the CPU answered */
	/* how the last one ended; read while it is written: for display only */
	char		ended[128];
} PosteriorServer;

extern PosteriorServer *posterior_server;
extern PosteriorSharedPart posterior_server_part;

/* Why there is no server now. */
void		posterior_server_explain(TnpError *why);

#endif							/* POSTERIOR_SERVER_STATE_H */
