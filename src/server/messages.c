/*
 * messages.c: what arrives from a client and what is sent to it, as far as the socket takes it at
 * once.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "server/server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif
#ifndef MSG_CMSG_CLOEXEC
#define MSG_CMSG_CLOEXEC 0
#endif

/* Forget the message that was received. */
void
tnp_drop_message(TnpClient *c)
{
	tnp_parcel_free(&c->payload);
	free(c->query);
	c->query = NULL;
	if (c->file >= 0)
		close(c->file);
	c->file = -1;
	c->header_got = 0;
	c->payload_got = 0;
}

void
tnp_drop_reply(TnpClient *c)
{
	tnp_parcel_free(&c->reply_payload);
	if (c->reply_file >= 0)
		close(c->reply_file);
	c->reply_file = -1;
	c->sent = 0;
}

/* ---- sending --------------------------------------------------------------------------------- */

/* Send what the socket takes. The file goes with the header's first byte. */
void
tnp_send_some(TnpServer *server, TnpClient *c)
{
	uint64_t	total = sizeof(TnpHeader) +
		((c->reply.flags & TNP_WIRE_FILE) != 0 ? 0 : c->reply_payload.length);

	while (c->sent < total)
	{
		struct iovec parts[2];
		struct msghdr message = {.msg_iov = parts};
		union
		{
			struct cmsghdr header;
			char		room[CMSG_SPACE(sizeof(int))];
		}			control;
		ssize_t		n;

		if (c->sent < sizeof(TnpHeader))
			parts[message.msg_iovlen++] = (struct iovec) {(char *) &c->reply + c->sent,
														  sizeof(TnpHeader) - (size_t) c->sent};
		if (total > sizeof(TnpHeader))
		{
			uint64_t	from = c->sent < sizeof(TnpHeader) ? 0 : c->sent - sizeof(TnpHeader);

			parts[message.msg_iovlen++] = (struct iovec) {
				(char *) c->reply_payload.bytes + from, (size_t) (c->reply_payload.length - from)
			};
		}
		if (c->sent == 0 && c->reply_file >= 0)
		{
			memset(&control, 0, sizeof(control));
			message.msg_control = control.room;
			message.msg_controllen = sizeof(control.room);
			control.header.cmsg_level = SOL_SOCKET;
			control.header.cmsg_type = SCM_RIGHTS;
			control.header.cmsg_len = CMSG_LEN(sizeof(int));
			memcpy(CMSG_DATA(&control.header), &c->reply_file, sizeof(int));
		}
		n = sendmsg(c->socket, &message, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (n <= 0)
		{
			tnp_leave(server, c);
			return;
		}
		c->sent += (uint64_t) n;
	}
	tnp_drop_reply(c);
	c->state = TNP_LISTENING;
	if (c->leaves)
		tnp_leave(server, c);
}

void
tnp_reply_parcel(TnpServer *server, TnpClient *c, TnpMessage kind, TnpParcel *payload)
{
	uint64_t	id = c->header.id;
	bool		file = false;

	tnp_drop_message(c);
	c->reply_payload = *payload;
	*payload = (TnpParcel) {NULL, 0, false};
	c->state = TNP_REPLYING;
	c->sent = 0;
	if (c->gone)
		return;
	if (c->reply_payload.length > TNP_WIRE_INLINE && tnp_parcel_files())
	{
		c->reply_file = tnp_parcel_send(NULL, 0, c->reply_payload.bytes, c->reply_payload.length);
		file = c->reply_file >= 0;
	}
	c->reply = tnp_wire_header(kind, id, c->reply_payload.length, file);
	if (file)
		tnp_parcel_free(&c->reply_payload);
	tnp_send_some(server, c);
}

void
tnp_reply(TnpServer *server, TnpClient *c, TnpMessage kind, const void *payload, uint64_t length)
{
	TnpParcel	copy;

	if (!tnp_parcel_alloc(length, &copy))
	{
		tnp_leave(server, c);
		c->state = TNP_REPLYING;
		return;
	}
	if (length > 0)
		memcpy(copy.bytes, payload, (size_t) length);
	tnp_reply_parcel(server, c, kind, &copy);
}

void
tnp_reply_failure(TnpServer *server, TnpClient *c, TnpStatus status, bool fault,
				  const TnpError *error)
{
	TnpWireFailure failure = tnp_wire_failure(status, fault, error);

	/* what was dropped because its client has left has not failed, nor has what it is to compute */
	if (c->gone)
		server->cancelled++;
	else if (status != TNP_NOT_HERE)
		server->failures++;
	tnp_reply(server, c, TNP_FAILED, &failure, sizeof(failure));
}

/* Tell a client why it is not understood, and close. */
static void
client_refuse(TnpServer *server, TnpClient *c, const TnpError *error)
{
	tnp_say(server, 'W', "a client is refused: %s (%s)", error->message, error->detail);
	c->leaves = true;
	tnp_reply_failure(server, c, TNP_BAD_ARGUMENT, true, error);
}

/* ---- receiving ------------------------------------------------------------------------------- */

static void
client_enqueue(TnpServer *server, TnpClient *c)
{
	c->state = TNP_QUEUED;
	c->behind = NULL;
	*(server->queue != NULL ? &server->queue_end->behind : &server->queue) = c;
	server->queue_end = c;
	server->n_queued++;
}

static void
send_statistics(TnpServer *server, TnpClient *c)
{
	TnpWireStatistics s;

	memset(&s, 0, sizeof(s));
	s.device = server->welcome;
	s.clients = server->n_clients;
	s.waiting = server->n_queued;
	s.requests = server->requests;
	s.batches = server->batches;
	s.largest_batch = server->largest_batch;
	s.failures = server->failures;
	s.cancelled = server->cancelled;
	s.rows_received = server->store.rows;
	s.builds = server->store.builds;
	s.appends = server->store.appends;
	s.evictions = server->store.evictions;
	s.models = server->store.models;
	s.encodings = server->store.encodings;
	s.memory_used = server->store.api->memory_used(server->store.device);
	s.uptime_ms = (uint64_t) (tnp_now() - server->began);
	tnp_reply(server, c, TNP_STATISTICS, &s, sizeof(s));
}

/* A whole message has arrived. */
static void
take_message(TnpServer *server, TnpClient *c)
{
	TnpError	error = {TNP_BAD_ARGUMENT, "malformed message", ""};
	TnpStatus	status = TNP_OK;

	if (!c->greeted && c->header.kind != TNP_HELLO)
	{
		snprintf(error.detail, sizeof(error.detail), "it is of kind %d, and nothing came before it",
				 c->header.kind);
		client_refuse(server, c, &error);
		return;
	}
	switch (c->header.kind)
	{
		case TNP_HELLO:
			c->greeted = true;
			tnp_reply(server, c, TNP_WELCOME, &server->welcome, sizeof(server->welcome));
			return;
		case TNP_STATS:
			send_statistics(server, c);
			return;
		case TNP_EXECUTE:
			c->query = malloc(sizeof(TnpWireQuery));
			if (c->query == NULL)
			{
				tnp_leave(server, c);
				return;
			}
			status = tnp_wire_read_request(c->payload.bytes, c->payload.length, c->query,
										   &error);
			break;
		case TNP_LOAD:
			{
				const TnpWireLoad *load;
				const void *file;

				status = tnp_wire_read_load(c->payload.bytes, c->payload.length, &load, &file,
											&error);
				break;
			}
		case TNP_FORGET:
			if (c->header.length == sizeof(TnpWireKey))
			{
				tnp_release(server, c, c->payload.bytes);
				tnp_drop_message(c);
				return;
			}
			snprintf(error.detail, sizeof(error.detail), "a key of %llu bytes",
					 (unsigned long long) c->header.length);
			status = TNP_BAD_ARGUMENT;
			break;
		default:
			snprintf(error.detail, sizeof(error.detail), "it is of kind %d", c->header.kind);
			status = TNP_BAD_ARGUMENT;
			break;
	}
	if (status != TNP_OK)
		client_refuse(server, c, &error);
	else
		client_enqueue(server, c);
}

/*
 * Receive up to `length` bytes, and a file if one comes. Returns the number; 0: nothing now; -1:
 * the client has left.
 */
static ssize_t
receive_bytes(TnpClient *c, void *to, uint64_t length)
{
	struct iovec part = {to, length > ((uint64_t) 1 << 30) ? (size_t) 1 << 30 : (size_t) length};
	union
	{
		struct cmsghdr header;
		char		room[CMSG_SPACE(4 * sizeof(int))];
	}			control;
	struct msghdr message = {.msg_iov = &part,.msg_iovlen = 1,.msg_control = control.room,
							 .msg_controllen = sizeof(control.room)};
	ssize_t		n;

	do
		n = recvmsg(c->socket, &message, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
	for (struct cmsghdr *h = CMSG_FIRSTHDR(&message); h != NULL; h = CMSG_NXTHDR(&message, h))
	{
		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = 0; h->cmsg_len >= CMSG_LEN(at + sizeof(int)); at += sizeof(int))
		{
			int			file;

			memcpy(&file, CMSG_DATA(h) + at, sizeof(int));
			if (c->file >= 0)
				close(file);
			else
				c->file = file;
		}
	}
	return n == 0 ? -1 : n;
}

/* The header is there: make room for the payload, or map it. False when the client is refused. */
static bool
take_header(TnpServer *server, TnpClient *c)
{
	TnpError	error = {TNP_BAD_ARGUMENT, "malformed message", ""};
	bool		foreign,
				file = (c->header.flags & TNP_WIRE_FILE) != 0;
	int			received = c->file;

	if (tnp_wire_check_header(&c->header, &foreign, &error) != TNP_OK)
	{
		client_refuse(server, c, &error);
		return false;
	}
	if (file != (received >= 0))
	{
		snprintf(error.detail, sizeof(error.detail),
				 file ? "its memory file is missing" : "a file came with it");
		client_refuse(server, c, &error);
		return false;
	}
	c->file = -1;
	if (file ? !tnp_parcel_receive(received, c->header.length, &c->payload)
		: !tnp_parcel_alloc(c->header.length, &c->payload))
	{
		snprintf(error.message, sizeof(error.message), "the payload could not be taken");
		snprintf(error.detail, sizeof(error.detail), "%llu bytes: %s",
				 (unsigned long long) c->header.length, strerror(errno));
		client_refuse(server, c, &error);
		return false;
	}
	c->payload_got = file ? c->header.length : 0;
	return true;
}

/* Read what there is of the next message. */
void
tnp_receive_some(TnpServer *server, TnpClient *c)
{
	/* one message per turn, so that all clients are served alike */
	while (!c->gone && c->state == TNP_LISTENING)
	{
		bool		head = c->header_got < sizeof(TnpHeader);
		ssize_t		n;

		if (!head && c->payload_got == c->header.length)
		{
			take_message(server, c);
			return;
		}
		n = head ? receive_bytes(c, (char *) &c->header + c->header_got,
								 sizeof(TnpHeader) - c->header_got)
			: receive_bytes(c, (char *) c->payload.bytes + c->payload_got,
							c->header.length - c->payload_got);
		if (n < 0)
			tnp_leave(server, c);
		if (n <= 0)
			return;
		if (head)
			c->header_got += (size_t) n;
		else
			c->payload_got += (uint64_t) n;
		if (head && c->header_got == sizeof(TnpHeader) && !take_header(server, c))
			return;
	}
}
