/*
 * connection.c: this session's connection to the server process for devices: connecting, sending,
 * receiving, and waiting for it.
 *
 * A conversation is a request and its reply, one at a time, each a header and a payload; a large
 * payload travels as a file in memory whose descriptor is passed (server/protocol.h). Replies carry
 * the number of their request. After any failure in the middle of a conversation the state of the
 * stream is unknown, so the connection is closed; the next request opens another one. Its number
 * (posterior_connection) changes then, by which the client knows that the server may be another
 * one.
 *
 * Waiting. The socket does not block; connection_wait() waits for the socket and the process latch.
 * Where replies usually come within SPIN, a session looks for so long before it sleeps: to be woken
 * takes as long as a small answer. It does not where more processes run than there are processors:
 * there, one that has slept is woken sooner than one that has looked. A cancel or the end of the
 * process closes the connection, by which the server knows that the answer is not wanted any more:
 * TNP_INTERRUPTED. `until` bounds the wait where a server that hangs must not stop the caller, such
 * as a choice between providers; a request itself waits as long as it takes, for the supervisor
 * kills a server that hangs. The end of the postmaster ends the process.
 *
 * Errors. Nothing here raises, because callers may have claimed a cache entry (cache/entries.c).
 * Failures are statuses: POSTERIOR_FAULT for the server or the device, with
 * posterior_fault_sqlstate, TNP_NO_MEMORY for this process, else what the engine would report.
 * posterior_raise() raises them when the claim has ended.
 *
 * Lifetimes. The connection lasts as long as the process, over transactions and statements. What a
 * reply is received into is the caller's to free. Descriptors are closed on exec.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/device/connection.h"

#include "pg/base/bridge.h"
#include "pg/device/server_state.h"

#include "miscadmin.h"
#include "portability/instr_time.h"
#include "pgstat.h"
#include "storage/latch.h"
#include "utils/memutils.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define LOOK_AGAIN 20			/* ms between two attempts to connect */
#define SPIN 250				/* microseconds that a wait for a reply looks before it sleeps, */
/* until two looks lie so many apart: others want the processor, and it sleeps at once */
#define PREEMPTED 50
#define SPIN_AGAIN 1000000		/* for so many */
#define AHEAD 16384				/* bytes of a payload that are received with its header */

TnpWireWelcome posterior_welcome;

static int	connection = -1;
static WaitEventSet *watched = NULL;	/* the latch, the postmaster, and the connection's socket */
static int	watched_socket = 0; /* its place there */
static double usual_wait = 0;	/* microseconds for a reply, forgetting */
static uint64 serial = 0;		/* of connections */
static uint64 last_id = 0;
static bool no_server = false;	/* the last connection failed because there was no server */

/* ---- failures -------------------------------------------------------------------------------- */

void
posterior_disconnect(void)
{
	if (watched != NULL)
		FreeWaitEventSet(watched);
	watched = NULL;
	if (connection >= 0)
		close(connection);
	connection = -1;
}

/* Make the set of what waits are for: once per connection, because making one is dear. */
static void
connection_watch(void)
{
	watched = posterior_make_wait_set(3);
	AddWaitEventToSet(watched, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
	AddWaitEventToSet(watched, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL, NULL);
	watched_socket = AddWaitEventToSet(watched, WL_SOCKET_READABLE, connection, NULL, NULL);
}

uint64
posterior_connection(void)
{
	return connection >= 0 ? serial : 0;
}

bool
posterior_server_absent(void)
{
	return no_server;
}

TnpStatus
posterior_fault(TnpError *error, const char *message, const char *format,...)
{
	va_list		args;

	memset(error, 0, sizeof(*error));
	error->status = POSTERIOR_FAULT;
	strlcpy(error->message, message, sizeof(error->message));
	va_start(args, format);
	vsnprintf(error->detail, sizeof(error->detail), format, args);
	va_end(args);
	posterior_fault_sqlstate = ERRCODE_SYSTEM_ERROR;
	return POSTERIOR_FAULT;
}

TnpStatus
posterior_no_device_memory(TnpError *error)
{
	posterior_fault(
		error, "out of device memory",
		"the model, the context and the request together need more than posterior.device_memory");
	posterior_fault_sqlstate = ERRCODE_OUT_OF_MEMORY;
	return POSTERIOR_FAULT;
}

/* The conversation is broken: whatever the server says next is not understood. */
TnpStatus
posterior_corrupt(TnpError *error, const char *format,...)
{
	char		detail[256];
	va_list		args;

	va_start(args, format);
	vsnprintf(detail, sizeof(detail), format, args);
	va_end(args);
	posterior_disconnect();
	return posterior_fault(error, "the reply of the posterior server is corrupt", "%s", detail);
}

static TnpStatus
connection_lost(TnpError *error)
{
	posterior_disconnect();
	no_server = true;
	return posterior_fault(error, "the connection to the posterior server was lost",
						   "the server has ended, or was restarted; the server's log says why");
}

static TnpStatus
connection_interrupted(TnpError *error)
{
	posterior_disconnect();
	memset(error, 0, sizeof(*error));
	error->status = TNP_INTERRUPTED;
	strlcpy(error->message, "interrupted", sizeof(error->message));
	return TNP_INTERRUPTED;
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Wait until the socket is ready, or the time is over (timeout >= 0; *late is then set). */
static TnpStatus
connection_wait(int event, TimestampTz until, bool *late, TnpError *error)
{
	static uint32 server_event = 0;
	long		timeout = -1;
	uint32		name = posterior_wait_event(&server_event, "PosteriorServer");
	int			events;

	if (posterior_interrupted())
		return connection_interrupted(error);
	if (until != 0)
		timeout = Max((long) ((until - GetCurrentTimestamp()) / 1000), 0);
	if (event != 0 && watched != NULL)
	{
		WaitEvent	occurred;

		/* without a change these are no system calls */
		ModifyWaitEvent(watched, 0, WL_LATCH_SET, MyLatch);
		ModifyWaitEvent(watched, watched_socket, event, NULL);
		events = WaitEventSetWait(watched, timeout, &occurred, 1, name) == 0 ? WL_TIMEOUT
			: (int) occurred.events;
	}
	else
		events = WaitLatch(MyLatch, WL_LATCH_SET | WL_EXIT_ON_PM_DEATH
						   | (timeout >= 0 ? WL_TIMEOUT : 0), timeout, name);
	if (events & WL_LATCH_SET)
	{
		ResetLatch(MyLatch);
		if (posterior_interrupted())
			return connection_interrupted(error);
	}
	if ((events & WL_TIMEOUT) && late != NULL)
		*late = true;
	return TNP_OK;
}

TnpStatus
posterior_pause(int ms, TnpError *error)
{
	return connection_wait(0, GetCurrentTimestamp() + ms * 1000L, NULL, error);
}

/* ---- sending and receiving ------------------------------------------------------------------- */

/* Send a header, its file, and what follows on the socket. */
static TnpStatus
message_send(const TnpHeader *header, int file, const void *payload, TimestampTz until,
			 TnpError *error)
{
	uint64		total = sizeof(TnpHeader) + (file >= 0 ? 0 : header->length),
				sent = 0;

	while (sent < total)
	{
		struct iovec parts[2];
		struct msghdr message;
		union
		{
			struct cmsghdr header;
			char		room[CMSG_SPACE(sizeof(int))];
		}			control;
		ssize_t		n;

		memset(&message, 0, sizeof(message));
		message.msg_iov = parts;
		if (sent < sizeof(TnpHeader))
		{
			parts[message.msg_iovlen].iov_base = (char *) header + sent;
			parts[message.msg_iovlen++].iov_len = sizeof(TnpHeader) - sent;
		}
		if (total > sizeof(TnpHeader))
		{
			uint64		from = sent < sizeof(TnpHeader) ? 0 : sent - sizeof(TnpHeader);

			parts[message.msg_iovlen].iov_base = (char *) payload + from;
			parts[message.msg_iovlen++].iov_len = Min(header->length - from, (uint64) 1 << 30);
		}
		if (sent == 0 && file >= 0)
		{
			memset(&control, 0, sizeof(control));
			message.msg_control = control.room;
			message.msg_controllen = sizeof(control.room);
			control.header.cmsg_level = SOL_SOCKET;
			control.header.cmsg_type = SCM_RIGHTS;
			control.header.cmsg_len = CMSG_LEN(sizeof(int));
			memcpy(CMSG_DATA(&control.header), &file, sizeof(int));
		}
		n = sendmsg(connection, &message, 0);
		if (n > 0)
			sent += n;
		else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		{
			bool		late = false;
			TnpStatus	status = connection_wait(WL_SOCKET_WRITEABLE, until, &late, error);

			if (status != TNP_OK)
				return status;
			if (late)
				return connection_lost(error);
		}
		else if (n == 0 || errno != EINTR)
			return connection_lost(error);
	}
	return TNP_OK;
}

/* Microseconds of a clock that only goes forward. */
static double
connection_clock(void)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	return INSTR_TIME_GET_DOUBLE(now) * 1e6;
}

/* Whether a wait that began at `began` looks once more instead of sleeping; *last: of the looks. */
static bool
connection_spins(double began, double *last)
{
	static int	processors = 0;
	static double not_before = 0;
	double		now = connection_clock();

	if (processors == 0)
		processors = (int) sysconf(_SC_NPROCESSORS_ONLN);
	if (now - *last > PREEMPTED)
		not_before = now + SPIN_AGAIN;
	*last = now;
	return processors > 1 && now >= not_before && usual_wait <= SPIN && now - began < SPIN;
}

/*
 * Receive `least` bytes, and up to `length` if more have come with them, and the file that comes
 * with the first of them: into `to`, and from `first` on into `rest`. *got is their number.
 */
static TnpStatus
message_receive_bytes(void *to, uint64 first, void *rest, uint64 least, uint64 length, uint64 *got,
					  int *file, TimestampTz until, TnpError *error)
{
	double		began = connection_clock(),
				last = began;

	for (*got = 0; *got < least;)
	{
		struct iovec parts[2];
		union
		{
			struct cmsghdr header;
			char		room[CMSG_SPACE(sizeof(int))];
		}			control;
		struct msghdr message;
		ssize_t		n;

		memset(&message, 0, sizeof(message));
		message.msg_iov = parts;
		if (*got < first)
		{
			parts[message.msg_iovlen].iov_base = (char *) to + *got;
			parts[message.msg_iovlen++].iov_len = Min(first - *got, (uint64) 1 << 30);
		}
		if (length > first)
		{
			uint64		from = Max(*got, first);

			parts[message.msg_iovlen].iov_base = (char *) rest + (from - first);
			parts[message.msg_iovlen++].iov_len = length - from;
		}
		message.msg_control = control.room;
		message.msg_controllen = sizeof(control.room);
		n = recvmsg(connection, &message, 0);
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		{
			bool		late = false;
			TnpStatus	status;

			if (!InterruptPending && connection_spins(began, &last))
				continue;
			status = connection_wait(WL_SOCKET_READABLE, until, &late, error);
			if (status != TNP_OK)
				return status;
			if (late)
				return connection_lost(error);
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return connection_lost(error);
		for (struct cmsghdr *h = CMSG_FIRSTHDR(&message); h != NULL; h = CMSG_NXTHDR(&message, h))
			if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS
				&& h->cmsg_len == CMSG_LEN(sizeof(int)))
			{
				if (*file >= 0)
					close(*file);
				memcpy(file, CMSG_DATA(h), sizeof(int));
				(void) fcntl(*file, F_SETFD, FD_CLOEXEC);
			}
		*got += n;
	}
	return TNP_OK;
}

/* Receive a header and what of its payload comes with it, *more bytes in `ahead` [AHEAD]. */
static TnpStatus
header_receive(TnpHeader *header, char *ahead, uint64 *more, int *file, TimestampTz until,
			   TnpError *error)
{
	double		began = connection_clock();
	uint64		got;
	TnpStatus	status;

	status = message_receive_bytes(header, sizeof(*header), ahead, sizeof(*header),
								   sizeof(*header) + AHEAD, &got, file, until, error);
	/* one slow answer among many quick ones counts little */
	usual_wait += (Min(connection_clock() - began, 10.0 * SPIN) - usual_wait) / 8;
	*more = got - sizeof(*header);
	return status;
}

/* Receive the reply to request `id`. The parcel is the caller's to free. */
static TnpStatus
reply_receive(uint64 id, TnpHeader *header, TnpParcel *parcel, TimestampTz until, TnpError *error)
{
	static char ahead[AHEAD];
	int			file = -1;
	bool		foreign = false;
	uint64		more = 0,
				got;
	TnpStatus	status;
	TnpError	why;

	memset(parcel, 0, sizeof(*parcel));
	status = header_receive(header, ahead, &more, &file, until, error);
	if (status == TNP_OK && tnp_wire_check_header(header, &foreign, &why) != TNP_OK)
	{
		if (foreign)
		{
			posterior_disconnect();
			status = posterior_fault(error, "the posterior server is of another version", "%s",
									 why.detail);
		}
		else
			status = posterior_corrupt(error, "%s", why.detail);
	}
	else if (status == TNP_OK
			 && (header->id != id || (file >= 0) != ((header->flags & TNP_WIRE_FILE) != 0)))
		status = posterior_corrupt(error, "it answers request %llu instead of %llu, %s",
								   (unsigned long long) header->id, (unsigned long long) id,
								   file >= 0 ? "with a file" : "without a file");
	else if (status == TNP_OK && more > (file >= 0 ? 0 : header->length))
		status = posterior_corrupt(error, "%llu bytes more than it says",
								   (unsigned long long) (more - (file >= 0 ? 0 : header->length)));
	if (status != TNP_OK || file < 0)
	{
		if (file >= 0)
			close(file);
		if (status != TNP_OK)
			return status;
		/* what is this long comes as a file where there are files */
		if (header->length > (tnp_parcel_files() ? 2 * TNP_WIRE_INLINE : TNP_WIRE_MAX_INLINE))
			return posterior_corrupt(error, "%llu bytes follow",
									 (unsigned long long) header->length);
		if (!tnp_parcel_alloc(header->length, parcel))
		{
			posterior_disconnect();
			return posterior_no_memory(error);
		}
		if (more > 0)
			memcpy(parcel->bytes, ahead, more);
		status = message_receive_bytes((char *) parcel->bytes + more, header->length - more, NULL,
									   header->length - more, header->length - more, &got, &file,
									   until, error);
		if (file >= 0)
			close(file);
	}
	else if (!tnp_parcel_receive(file, header->length, parcel))
		status = posterior_corrupt(error, "its memory file of %llu bytes: %s",
								   (unsigned long long) header->length, strerror(errno));
	if (status != TNP_OK)
		tnp_parcel_free(parcel);
	return status;
}

/* A failure that the server reports. */
TnpStatus
posterior_take_failure(const TnpParcel *parcel, TnpError *error)
{
	bool		is_fault;
	TnpError	prior_logits;

	if (tnp_wire_read_failure(parcel->bytes, parcel->length, &is_fault, &prior_logits) != TNP_OK)
		return posterior_corrupt(error, "%s", prior_logits.detail);
	if (is_fault)
	{
		posterior_disconnect();
		return posterior_fault(error, "the posterior server has failed", "%s%s%s",
							   prior_logits.message, prior_logits.detail[0] != '\0' ? ": " : "",
							   prior_logits.detail);
	}
	if (prior_logits.status == TNP_NO_MEMORY)
		return posterior_no_device_memory(error);
	if (prior_logits.status == TNP_INTERRUPTED)
		return posterior_fault(error, "the posterior server has dropped the request", "%s",
							   prior_logits.message);
	*error = prior_logits;
	return prior_logits.status;
}

/* ---- connecting ------------------------------------------------------------------------------ */

static TnpStatus
connection_greet(TimestampTz until, TnpError *error)
{
	TnpHeader	hello = tnp_wire_header(TNP_HELLO, ++last_id, 0, false),
				header;
	TnpParcel	parcel;
	TnpStatus	status = message_send(&hello, -1, NULL, until, error);

	if (status == TNP_OK)
		status = reply_receive(last_id, &header, &parcel, until, error);
	if (status != TNP_OK)
		return status;
	if (header.kind == TNP_FAILED)
		status = posterior_take_failure(&parcel, error);
	else if (header.kind != TNP_WELCOME || header.length != sizeof(posterior_welcome))
		status = posterior_corrupt(error, "a greeting of kind %d, %llu bytes", header.kind,
								   (unsigned long long) header.length);
	else
	{
		memcpy(&posterior_welcome, parcel.bytes, sizeof(posterior_welcome));
		tnp_wire_end_welcome(&posterior_welcome);
	}
	tnp_parcel_free(&parcel);
	if (status != TNP_OK)
		posterior_disconnect();
	return status;
}

/* Be connected. A connection whose server has gone is noticed before anything is asked. */
TnpStatus
posterior_connect(TimestampTz until, TnpError *error)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX,.sun_path = POSTERIOR_SOCKET};
	char		byte;

	/* what no set was made for was never greeted */
	if (connection >= 0 && watched == NULL)
		posterior_disconnect();
	if (connection >= 0)
	{
		ssize_t		n = recv(connection, &byte, 1, MSG_PEEK);

		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
			return TNP_OK;
		posterior_disconnect();
	}
	no_server = false;
	serial++;
	connection = socket(AF_UNIX, SOCK_STREAM, 0);
	if (connection < 0)
		return posterior_fault(error, "the posterior server cannot be reached", "%s",
							   strerror(errno));
	(void) fcntl(connection, F_SETFD, FD_CLOEXEC);
	(void) fcntl(connection, F_SETFL, O_NONBLOCK);
	while (connect(connection, (struct sockaddr *) &address, sizeof(address)) != 0)
	{
		int			why = errno,
					keep = connection;
		TnpStatus	status;

		/* its queue is full: it hangs, or many come at once */
		if (why != EAGAIN && why != EINTR)
		{
			posterior_disconnect();
			no_server = true;
			return posterior_fault(error, "the posterior server cannot be reached", "%s",
								   strerror(why));
		}
		connection = -1;
		status = connection_wait(0, GetCurrentTimestamp() + LOOK_AGAIN * 1000, NULL, error);
		if (status == TNP_OK && until != 0 && GetCurrentTimestamp() > until)
			status = connection_lost(error);
		connection = keep;
		if (status != TNP_OK)
		{
			posterior_disconnect();
			return status;
		}
	}
	connection_watch();
	return connection_greet(until, error);
}

/* Send a message in two parts, the second of them perhaps empty, and receive the reply. */
TnpStatus
posterior_exchange(TnpMessage kind, const void *payload, uint64 length, TnpHeader *header,
				   TnpParcel *parcel, TimestampTz until, TnpError *error)
{
	bool		as_file = length > TNP_WIRE_INLINE && tnp_parcel_files();
	int			file = as_file ? tnp_parcel_send(NULL, 0, payload, length) : -1;
	TnpHeader	sent = tnp_wire_header(kind, ++last_id, length, file >= 0);
	TnpStatus	status;

	if (as_file && file < 0)
		return posterior_fault(error, "no memory file could be made for the posterior server", "%s",
							   strerror(errno));
	status = message_send(&sent, file, payload, until, error);
	if (file >= 0)
		close(file);
	return status == TNP_OK ? reply_receive(last_id, header, parcel, until, error) : status;
}

void
posterior_send(TnpMessage kind, const void *payload, uint64 length)
{
	TnpHeader	header = tnp_wire_header(kind, ++last_id, length, false);
	struct iovec parts[2] = {{&header, sizeof(header)}, {(void *) payload, length}};
	struct msghdr message;

	if (connection < 0)
		return;
	memset(&message, 0, sizeof(message));
	message.msg_iov = parts;
	message.msg_iovlen = 2;
	if (sendmsg(connection, &message, 0) != (ssize_t) (sizeof(header) + length))
		posterior_disconnect();
}
