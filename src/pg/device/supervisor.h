/*
 * supervisor.h: the background worker that starts the server for devices, and what it tells the sessions.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_SUPERVISOR_H
#define POSTERIOR_SUPERVISOR_H

#include "pg/shmem/segment.h"

#include "port/atomics.h"

#include "engine/tnp.h"

typedef enum PosteriorServerState
{
	POSTERIOR_SERVER_OFF,		/* nobody starts one */
	POSTERIOR_SERVER_STARTING,	/* it is started, or will be within a second */
	POSTERIOR_SERVER_READY,
	POSTERIOR_SERVER_WAITING	/* it has ended, and the next start is some time off */
} PosteriorServerState;

/* In shared memory. Written by the supervisor alone. */
typedef struct PosteriorServer
{
	pg_atomic_uint32 state;
	pg_atomic_uint64 pid;		/* 0: none */
	pg_atomic_uint64 starts;	/* since PostgreSQL's start */
	pg_atomic_uint64 since;		/* TimestampTz of the last start */
	pg_atomic_uint64 faults;	/* questions that failed because of server or device */
	pg_atomic_uint64 fallbacks; /* of these, those that the CPU answered */
	char		ended[128];		/* how the last one ended; may be read while it is written: for people only */
} PosteriorServer;

extern int	posterior_device_memory;	/* posterior.device_memory, MB */
extern int	posterior_device_number;	/* posterior.device_number */
extern int	posterior_device_timeout;	/* posterior.device_timeout, s */
extern int	posterior_precision;	/* posterior.precision: TnpPrecision */
extern int	posterior_server_device;	/* posterior.server_device: 0 cuda, 1 cpu */
extern char *posterior_server_program;	/* posterior.server_program */

extern PosteriorServer *posterior_server;
extern PosteriorSharedPart posterior_server_part;

/* Called by _PG_init while libraries are preloaded: have the supervisor started, if there is a device to supervise a server for. */
void		posterior_supervisor_register(void);

/* Why there is no server now. */
void		posterior_supervisor_explain(TnpError *why);

/* Whether there seems to be a GPU: looks for the driver's files, calls nothing. */
bool		posterior_device_seen(void);

extern PGDLLEXPORT void posterior_supervisor_main(Datum argument);

#endif							/* POSTERIOR_SUPERVISOR_H */
