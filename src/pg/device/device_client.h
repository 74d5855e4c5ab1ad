/*
 * device_client.h: this session as a client of the server process that holds models and encodings on a device.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_DEVICE_H
#define POSTERIOR_DEVICE_H

#include "pg/cache/cached_context.h"

#include "server/protocol.h"

/* Where the server listens, relative to the data directory; the name is one that pg_basebackup and pg_rewind leave out. */
#define POSTERIOR_SOCKET "pgsql_tmp.pg_posterior.sock"

typedef enum PosteriorDeviceMode { POSTERIOR_DEVICE_AUTO, POSTERIOR_DEVICE_CPU, POSTERIOR_DEVICE_CUDA } PosteriorDeviceMode;
typedef enum PosteriorOnError { POSTERIOR_ON_ERROR_ERROR, POSTERIOR_ON_ERROR_CPU } PosteriorOnError;

extern int	posterior_device;	/* posterior.device */
extern int	posterior_on_device_error;	/* posterior.on_device_error */
extern double posterior_device_threshold;	/* posterior.device_threshold, million multiply-adds */

/* Whether, as things are, a device could be asked, or its absence would be an error. Neither waits nor raises. */
bool		posterior_device_possible(void);

/*
 * Whether a device may answer questions about this model in this session. If not, *fault is filled when the settings demand one; else its status is TNP_OK. Waits for a server that
 * is about to start, if the settings demand one.
 */
bool		posterior_device_ready(const PosteriorModel *model, TnpError *fault);

/* Whether the device can be asked about this model right now, as far as is known here. Neither waits nor raises. */
bool		posterior_device_at_hand(const PosteriorModel *model);

/*
 * Have the server know this model. POSTERIOR_FAULT if it cannot be had; may raise whatever reading the model's row raises.
 */
TnpStatus	posterior_device_prepare(PosteriorModel *model, TnpError *error);

/*
 * Ask the device about the first request->rows rows of a body that has no encoding here; they go to the server as far as it lacks them. Does not raise: TNP_INTERRUPTED when the
 * statement is cancelled, POSTERIOR_FAULT when device or server failed (whoever raises that, by posterior_raise, gives it its SQLSTATE), else what the engine would say.
 */
TnpStatus	posterior_device_execute(PosteriorModel *model, PosteriorCachedContext *cached, TnpRequest *request, TnpError *error);

/* Whether the last question failed because the server has let go of the model since it was prepared: worth another try. */
bool		posterior_device_evicted_model(void);

/* Whether the answers are bitwise those of the engine. */
bool		posterior_device_exact(void);

/* Let the server forget a body that this session alone knows. Cannot fail. */
void		posterior_device_forget(uint64 serial);

/* What the server says of itself; false if it does not, within a second. */
bool		posterior_device_statistics(TnpWireStatistics *statistics);

#endif							/* POSTERIOR_DEVICE_H */
