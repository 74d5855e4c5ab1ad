/*
 * connection.h: this session's connection to the server for devices.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_CONNECTION_H
#define POSTERIOR_CONNECTION_H

#include "pg/base/bridge.h"

#include "utils/timestamp.h"

#include "server/protocol.h"

/* What the server said when it was connected to. */
extern TnpWireWelcome posterior_welcome;

/*
 * Be connected, until `until` at the latest (0: as long as it takes; the statement may be
 * cancelled). A connection whose server has gone is noticed before anything is asked.
 * POSTERIOR_FAULT or TNP_INTERRUPTED on failure.
 */
TnpStatus	posterior_connect(TimestampTz until, TnpError *error);

/* The number of the connection, another one for each; 0 without one. */
uint64		posterior_connection(void);

/* Whether the last attempt failed because there was no server, or it has just gone. */
bool		posterior_server_absent(void);

void		posterior_disconnect(void);

/* Send a request and receive the reply; the parcel is the caller's to free. */
TnpStatus	posterior_exchange(TnpMessage kind, const void *payload, uint64 length,
							   TnpHeader *header, TnpParcel *parcel, TimestampTz until,
							   TnpError *error);

/* Send something that has no reply; hangs up when it cannot be sent at once. */
void		posterior_send(TnpMessage kind, const void *payload, uint64 length);

/* Wait some milliseconds. TNP_INTERRUPTED when the statement is cancelled. */
TnpStatus	posterior_pause(int ms, TnpError *error);

/* What a TNP_FAILED says, as a status. */
TnpStatus	posterior_take_failure(const TnpParcel *parcel, TnpError *error);

/* Fill an error with a fault of server or device, of SQLSTATE 58000. */
TnpStatus	posterior_fault(TnpError *error, const char *message, const char *format,
							...) TNP_PRINTF(3, 4);

/* Fill an error where a reply makes no sense, and hang up. */
TnpStatus	posterior_corrupt(TnpError *error, const char *format,...) TNP_PRINTF(2, 3);

/* Fill an error with a lack of device memory, of SQLSTATE 53200. */
TnpStatus	posterior_no_device_memory(TnpError *error);

#endif							/* POSTERIOR_CONNECTION_H */
