/*
 * supervisor.h: the background worker that starts the server for devices.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_SUPERVISOR_H
#define POSTERIOR_SUPERVISOR_H

#include "pg/base/compat.h"

extern int	posterior_device_memory;	/* posterior.device_memory, MB */
extern int	posterior_device_number;	/* posterior.device_number */
extern int	posterior_device_timeout;	/* posterior.device_timeout, s */
extern int	posterior_precision;	/* posterior.precision: TnpPrecision */
extern int	posterior_server_device;	/* posterior.server_device: 0 cuda, 1 cpu */
extern char *posterior_server_program;	/* posterior.server_program */

/*
 * Called by _PG_init while libraries are preloaded: have the supervisor started, if there is a
 * device to supervise a server for.
 */
void		posterior_supervisor_register(void);

/* Whether there seems to be a GPU: looks for the driver's files, calls nothing. */
bool		posterior_device_seen(void);

extern PGDLLEXPORT void posterior_supervisor_main(Datum argument);

#endif							/* POSTERIOR_SUPERVISOR_H */
