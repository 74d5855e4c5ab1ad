/*
 * device_client.h: this session as a client of the server process that holds models and encodings
 * on a device.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_DEVICE_CLIENT_H
#define POSTERIOR_DEVICE_CLIENT_H

#include "pg/device/server_state.h"
#include "pg/models/model_cache.h"

#include "server/protocol.h"

/* Rows that the device encodes, as the session knows them. */
typedef struct PosteriorDeviceRows
{
	uint64		serial;			/* under which the server knows them: never used for others */
	int64		mirrored;		/* rows that the server has, as far as is known here */
	TnpRows		rows;			/* with targets */
	int64		prefix,
				capacity;		/* rows that the server is to make room for */
	bool		own;			/* no other session knows the serial number */
} PosteriorDeviceRows;

/*
 * Whether, as things are, a device could be asked, or its absence would be an error. Neither waits
 * nor raises.
 */
bool		posterior_device_possible(void);

/*
 * Whether a device may answer requests about this model in this session. If not, *fault is filled
 * when the settings demand one; else its status is TNP_OK. Waits for a server that is about to
 * start, if the settings demand one.
 */
bool		posterior_device_ready(const PosteriorModel *model, TnpError *fault);

/*
 * Whether the device can be asked about this model right now, as far as is known here. Neither
 * waits nor raises.
 */
bool		posterior_device_at_hand(const PosteriorModel *model);

/*
 * Have the server know this model. POSTERIOR_FAULT if it cannot be had; may raise whatever reading
 * the model's row raises.
 */
TnpStatus	posterior_device_prepare(PosteriorModel *model, TnpError *error);

/*
 * Have the device answer a request about the first request->rows of these rows; they are sent as
 * far as the server lacks them, and rows->mirrored becomes what it has. Does not raise:
 * TNP_INTERRUPTED when the statement is cancelled, POSTERIOR_FAULT when device or server failed
 * (posterior_raise gives that its SQLSTATE), else what the engine would report.
 */
TnpStatus	posterior_device_execute(PosteriorModel *model, PosteriorDeviceRows *rows,
									 TnpRequest *request, TnpError *error);

/*
 * Whether the last request failed because the server has evicted the model since it was prepared:
 * worth another try.
 */
bool		posterior_device_evicted_model(void);

/* Whether the answers are bitwise those of the engine. */
bool		posterior_device_exact(void);

/* Let the server forget rows that this session alone knows. Cannot fail. */
void		posterior_device_forget(uint64 serial);

/* What the server says of itself; false if it does not, within a second. */
bool		posterior_device_statistics(TnpWireStatistics *statistics);

#endif							/* POSTERIOR_DEVICE_CLIENT_H */
