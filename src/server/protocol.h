/*
 * protocol.h: what clients and the server say to each other over the socket.
 *
 * A message is a header of 32 bytes and `length` bytes of payload, which follow on the socket or
 * lie in a sealed memory file that comes with the header. Both sides run on one machine and are
 * built from one source: numbers are in the machine's own form, and another TNP_WIRE_VERSION ends
 * the conversation with a clear text. Payloads are structures of this file, and arrays of doubles
 * behind them, all aligned to 8 bytes; every length and count in them is checked against the length
 * of the payload before anything is read (protocol.c), from any sender.
 *
 * A client asks, and waits for the reply before it sends anything else; only TNP_FORGET has no
 * reply. A client that closes the socket has given up: the server drops its request, also while it
 * is computed, and frees what was kept for it alone.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_PROTOCOL_H
#define TNP_PROTOCOL_H

#include "server/device_api.h"

#define TNP_WIRE_MAGIC 0x53504e54U	/* "TNPS" */
#define TNP_WIRE_VERSION 3

/*
 * payloads up to this size follow the header, larger ones come as memory files where the system has
 * them
 */
#define TNP_WIRE_INLINE 65536
#define TNP_WIRE_MAX ((uint64_t) 1 << 40)	/* no payload is longer */
#define TNP_WIRE_MAX_INLINE ((uint64_t) 1 << 32)
/*
 * a request of a few bytes must not ask for all memory there is; sessions ask in batches far below
 * this
 */
#define TNP_WIRE_MAX_ANSWER ((uint64_t) 1 << 30)
#define TNP_WIRE_MAX_FEATURES 4096
#define TNP_WIRE_MAX_CLASSES 65536
#define TNP_WIRE_MAX_ROWS ((int64_t) 1 << 34)

typedef enum TnpMessage
{
	TNP_HELLO = 1,				/* first of all; reply TNP_WELCOME */
	/*
	 * TnpWireLoad, model file or nothing; reply TNP_DONE, or TNP_MISSING if nothing was given and
	 * it is not there
	 */
	TNP_LOAD,
	/* TnpWireRequest and what it counts; reply TNP_ANSWER, TNP_MISSING */
	TNP_EXECUTE,
	TNP_FORGET,					/* TnpWireKey: an encoding of this client's own; no reply */
	TNP_STATS,					/* reply TNP_STATISTICS */
	TNP_WELCOME = 64,			/* TnpWireWelcome */
	TNP_DONE,
	TNP_ANSWER,					/* doubles */
	TNP_MISSING,				/* TnpWireMissing */
	TNP_STATISTICS,				/* TnpWireStatistics */
	TNP_FAILED					/* TnpWireFailure: reply to anything */
} TnpMessage;

/* flag of a header: the payload lies in the memory file that comes with it */
#define TNP_WIRE_FILE 1

typedef struct TnpHeader
{
	uint32_t	magic;
	uint16_t	version;
	uint16_t	kind;			/* TnpMessage */
	uint64_t	id;				/* of the request; the reply repeats it */
	uint64_t	length;			/* bytes of payload */
	uint32_t	flags;
	uint32_t	sum;			/* of the bytes before it */
} TnpHeader;

/*
 * Under what the server keeps an encoding: a key that is used again means equal rows, or these and
 * more after them.
 */
typedef struct TnpWireKey
{
	uint64_t	epoch;			/* of the shared memory that counts serials */
	uint64_t	serial;
} TnpWireKey;

#define TNP_WIRE_MODEL 24		/* bytes that name a model: its version, the life of its database */

typedef struct TnpWireLoad
{
	uint8_t		model[TNP_WIRE_MODEL];	/* the file follows, padded to 8 bytes */
	uint64_t	length;			/* of the file */
} TnpWireLoad;

/* the encoding is this client's own: it ends with TNP_FORGET or with the connection */
#define TNP_EXECUTE_OWN 1
#define TNP_EXECUTE_TARGETS 2		/* queries have targets */

/*
 * A request about the first `rows` rows of an encoding, and those of the rows that the server may
 * not have yet. Behind it: kinds [n_features] as bytes, padded to 8; levels [n_levels]; x [given,
 * n_features]; y [given]; x [queries, n_features]; y [queries] with TNP_EXECUTE_TARGETS. No
 * queries: the rows are to be encoded, that is all.
 */
typedef struct TnpWireRequest
{
	uint8_t		model[TNP_WIRE_MODEL];
	TnpWireKey	key;
	int64_t		rows,
				prefix,
				first,			/* rows [first, first + given) are in the payload */
				given,
				capacity,		/* room that is worth having */
				queries,
				before;			/* of the queries, as in TnpRows */
	uint64_t	seed,
				first_draw;
	int64_t		draws,
				orders;
	int32_t		n_features;
	uint32_t	kind;			/* TnpRequestKind */
	uint32_t	reductions;
	int32_t		n_levels;
	uint32_t	flags;
	int32_t		n_classes;		/* of the targets, as in TnpRows */
} TnpWireRequest;

/* What the server lacks for a request. */
typedef struct TnpWireMissing
{
	uint64_t	model;			/* 1: the model; then nothing is said of rows */
	int64_t		rows;			/* it has this many of the encoding's rows */
} TnpWireMissing;

typedef struct TnpWireFailure
{
	uint32_t	status;			/* TnpStatus, never TNP_OK */
	uint32_t	fault;			/* 1: the device or the server failed, not the request */
	char		message[256];
	char		detail[256];
} TnpWireFailure;

typedef struct TnpWireWelcome
{
	char		provider[16];
	char		name[128];
	char		version[64];
	uint32_t	precision;
	uint32_t	exact;
	uint64_t	memory_total,
				memory_limit;
	uint64_t	pid;
} TnpWireWelcome;

typedef struct TnpWireStatistics
{
	TnpWireWelcome device;
	uint64_t	clients,
				waiting,		/* requests that wait for the device */
				requests,		/* requests answered or failed */
				batches,		/* calls of the device for them */
				largest_batch,
				failures,
				cancelled,
				rows_received,
				builds,
				appends,
				evictions,
				models,
				encodings,
				memory_used,
				uptime_ms;
} TnpWireStatistics;

/* A request as the server uses it; pointers into the payload. */
typedef struct TnpWireQuery
{
	const TnpWireRequest *request;
	TnpRows		given;			/* rows [ask->first, ...) */
	TnpRows		queries;
	const double *levels;
	TnpColumnKind kinds[TNP_WIRE_MAX_FEATURES];
} TnpWireQuery;

/* A header that is ready to be sent. */
TnpHeader	tnp_wire_header(TnpMessage kind, uint64_t id, uint64_t length, bool file);

/*
 * Check a header that was received: magic, sum, version, flags, length. TNP_BAD_ARGUMENT with a
 * text if it is none; *foreign: well-formed, but of another version.
 */
TnpStatus	tnp_wire_check_header(const TnpHeader *header, bool *foreign, TnpError *error);

/* Bytes of a request's payload, from its counts; 0 if they are out of range. */
uint64_t	tnp_wire_request_length(const TnpWireRequest *request);

/*
 * Bytes of the answer to a well-formed request of this answer shape; false if they are too many.
 */
bool		tnp_wire_answer_length(const TnpWireRequest *request, TnpDistributionKind kind,
								   int components, uint64_t *length);

/*
 * Read payloads, which must be aligned to 8 bytes. TNP_BAD_ARGUMENT with a text if they are
 * malformed.
 */
TnpStatus	tnp_wire_read_request(const void *payload, uint64_t length, TnpWireQuery *query,
								  TnpError *error);
TnpStatus	tnp_wire_read_load(const void *payload, uint64_t length, const TnpWireLoad **load,
							   const void **file, TnpError *error);
TnpStatus	tnp_wire_read_failure(const void *payload, uint64_t length, bool *fault,
								  TnpError *error);

/* Write the payload of a request: `to` has tnp_wire_request_length bytes. */
void		tnp_wire_write_request(const TnpWireRequest *request, const TnpRows *given,
								   const TnpRows *queries, const double *levels, void *to);

/* A failure as it is sent. */
TnpWireFailure tnp_wire_failure(TnpStatus status, bool fault, const TnpError *error);

/* Texts of a fixed-size structure that was received end within it. */
void		tnp_wire_end_welcome(TnpWireWelcome *welcome);

/* ---- memory files (parcel.c) ----------------------------------------------------------------- */

/* Bytes that are mapped or allocated. */
typedef struct TnpParcel
{
	void	   *bytes;			/* NULL if there are none */
	uint64_t	length;
	bool		mapped;
} TnpParcel;

/* Whether this system has sealed memory files. */
bool		tnp_parcel_files(void);

/* A sealed memory file with a copy of `length` bytes, the first part from `head`; -1 with errno. */
int			tnp_parcel_send(const void *head, uint64_t head_length, const void *bytes,
							uint64_t length);

/*
 * Map a memory file that was received, which must be sealed and have exactly `length` bytes. Closes
 * it. False with errno.
 */
bool		tnp_parcel_receive(int file, uint64_t length, TnpParcel *parcel);

/* Allocated memory instead. */
bool		tnp_parcel_alloc(uint64_t length, TnpParcel *parcel);
void		tnp_parcel_free(TnpParcel *parcel);

#endif							/* TNP_PROTOCOL_H */
