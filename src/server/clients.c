/*
 * clients.c: the sockets. Nothing here blocks but poll(), and nothing calls the device: the loop is turned from within its calls, too.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define HEARTBEAT 500			/* ms between two signs of life */
#define MAX_CLIENTS 10000

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif
#ifndef MSG_CMSG_CLOEXEC
#define MSG_CMSG_CLOEXEC 0
#endif

bool
tnp_listen(TnpServer *server, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	mode_t		mask;
	int			status;

	if (strlen(path) >= sizeof(address.sun_path))
	{
		tnp_say(server, 'W', "the socket's path \"%s\" is too long", path);
		return false;
	}
	strcpy(address.sun_path, path);
	server->listener = socket(AF_UNIX, SOCK_STREAM, 0);
	unlink(path);
	mask = umask(0177);
	status = server->listener < 0 ? -1 : bind(server->listener, (struct sockaddr *) &address, sizeof(address));
	umask(mask);
	if (status != 0 || listen(server->listener, 256) != 0)
	{
		tnp_say(server, 'W', "could not listen at \"%s\": %s", path, strerror(errno));
		return false;
	}
	fcntl(server->listener, F_SETFL, O_NONBLOCK);
	fcntl(server->listener, F_SETFD, FD_CLOEXEC);
	return true;
}

/* ---- coming and going -------------------------------------------------------------------------------------------------------- */

bool
tnp_add_client(TnpServer *server, int socket)
{
	TnpClient  *c = server->n_clients < MAX_CLIENTS ? calloc(1, sizeof(TnpClient)) : NULL;

	if (c == NULL)
	{
		close(socket);
		return false;
	}
	fcntl(socket, F_SETFL, O_NONBLOCK);
	fcntl(socket, F_SETFD, FD_CLOEXEC);
	c->socket = socket;
	c->file = c->reply_file = -1;
	c->number = ++server->last_number;
	c->next = server->clients;
	server->clients = c;
	server->n_clients++;
	return true;
}

static void
accept_clients(TnpServer *server)
{
	int			socket;

	while ((socket = accept(server->listener, NULL, NULL)) >= 0)
		tnp_add_client(server, socket);
}

/* Forget the message that was received. */
static void
drop_message(TnpClient *c)
{
	tnp_parcel_free(&c->payload);
	free(c->question);
	c->question = NULL;
	if (c->file >= 0)
		close(c->file);
	c->file = -1;
	c->header_got = 0;
	c->payload_got = 0;
}

static void
drop_reply(TnpClient *c)
{
	tnp_parcel_free(&c->reply_payload);
	if (c->reply_file >= 0)
		close(c->reply_file);
	c->reply_file = -1;
	c->sent = 0;
}

/* Have an encoding of the client's own freed, or all of them, between two calls of the device. */
static void
release(TnpServer *server, const TnpClient *c, const TnpWireKey *key)
{
	TnpReleased *r;

	if (server->n_released == server->max_released)
	{
		size_t		room = server->max_released * 2 + 64;
		TnpReleased *grown = realloc(server->released, room * sizeof(TnpReleased));

		if (grown == NULL)
			return;				/* the least recently used go first anyway */
		server->released = grown;
		server->max_released = room;
	}
	r = &server->released[server->n_released++];
	r->client = c->number;
	r->all = key == NULL;
	if (key != NULL)
		r->key = *key;
}

/* The client has left, or is told to. Its question is dropped unless the device is at it. */
static void
leave(TnpServer *server, TnpClient *c)
{
	if (c->gone)
		return;
	c->gone = true;
	if (c->socket >= 0)
		close(c->socket);
	c->socket = -1;
	if (c->state == TNP_QUEUED)
	{
		TnpClient **link = &server->queue,
				   *last = NULL;

		while (*link != c)
		{
			last = *link;
			link = &(*link)->behind;
		}
		*link = c->behind;
		if (server->queue_end == c)
			server->queue_end = last;
		server->n_queued--;
		server->cancelled++;
		c->state = TNP_LISTENING;
	}
	release(server, c, NULL);
}

void
tnp_sweep(TnpServer *server)
{
	for (TnpClient **link = &server->clients; *link != NULL;)
	{
		TnpClient  *c = *link;

		if (!c->gone || c->state == TNP_ANSWERING)
		{
			link = &c->next;
			continue;
		}
		*link = c->next;
		drop_message(c);
		drop_reply(c);
		free(c);
		server->n_clients--;
	}
}

/* ---- sending ----------------------------------------------------------------------------------------------------------------- */

/* Send what the socket takes. The file goes with the header's first byte. */
static void
send_some(TnpServer *server, TnpClient *c)
{
	uint64_t	total = sizeof(TnpHeader) + ((c->reply.flags & TNP_WIRE_FILE) != 0 ? 0 : c->reply_payload.length);

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
			parts[message.msg_iovlen++] = (struct iovec) {(char *) &c->reply + c->sent, sizeof(TnpHeader) - (size_t) c->sent};
		if (total > sizeof(TnpHeader))
		{
			uint64_t	from = c->sent < sizeof(TnpHeader) ? 0 : c->sent - sizeof(TnpHeader);

			parts[message.msg_iovlen++] = (struct iovec) {(char *) c->reply_payload.bytes + from, (size_t) (c->reply_payload.length - from)};
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
			leave(server, c);
			return;
		}
		c->sent += (uint64_t) n;
	}
	drop_reply(c);
	c->state = TNP_LISTENING;
	if (c->leaves)
		leave(server, c);
}

void
tnp_reply_parcel(TnpServer *server, TnpClient *c, TnpMessage kind, TnpParcel *payload)
{
	uint64_t	id = c->header.id;
	bool		file = false;

	drop_message(c);
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
	send_some(server, c);
}

void
tnp_reply(TnpServer *server, TnpClient *c, TnpMessage kind, const void *payload, uint64_t length)
{
	TnpParcel	copy;

	if (!tnp_parcel_alloc(length, &copy))
	{
		leave(server, c);
		c->state = TNP_REPLYING;
		return;
	}
	if (length > 0)
		memcpy(copy.bytes, payload, (size_t) length);
	tnp_reply_parcel(server, c, kind, &copy);
}

void
tnp_reply_failure(TnpServer *server, TnpClient *c, TnpStatus status, bool fault, const TnpError *error)
{
	TnpWireFailure failure = tnp_wire_failure(status, fault, error);

	server->failures++;
	tnp_reply(server, c, TNP_FAILED, &failure, sizeof(failure));
}

/* Tell a client why it is not understood, and close. */
static void
refuse(TnpServer *server, TnpClient *c, const TnpError *error)
{
	tnp_say(server, 'W', "a client is refused: %s (%s)", error->message, error->detail);
	c->leaves = true;
	tnp_reply_failure(server, c, TNP_BAD_ARGUMENT, true, error);
}

/* ---- receiving --------------------------------------------------------------------------------------------------------------- */

static void
enqueue(TnpServer *server, TnpClient *c)
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
		snprintf(error.detail, sizeof(error.detail), "it is of kind %d, and nothing came before it", c->header.kind);
		refuse(server, c, &error);
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
		case TNP_ASK:
			c->question = malloc(sizeof(TnpQuestion));
			if (c->question == NULL)
			{
				leave(server, c);
				return;
			}
			status = tnp_wire_read_ask(c->payload.bytes, c->payload.length, c->question, &error);
			break;
		case TNP_LOAD:
			{
				const TnpWireLoad *load;
				const void *file;

				status = tnp_wire_read_load(c->payload.bytes, c->payload.length, &load, &file, &error);
				break;
			}
		case TNP_FORGET:
			if (c->header.length == sizeof(TnpWireKey))
			{
				release(server, c, c->payload.bytes);
				drop_message(c);
				return;
			}
			snprintf(error.detail, sizeof(error.detail), "a key of %llu bytes", (unsigned long long) c->header.length);
			status = TNP_BAD_ARGUMENT;
			break;
		default:
			snprintf(error.detail, sizeof(error.detail), "it is of kind %d", c->header.kind);
			status = TNP_BAD_ARGUMENT;
			break;
	}
	if (status != TNP_OK)
		refuse(server, c, &error);
	else
		enqueue(server, c);
}

/* Receive up to `length` bytes, and a file if one comes. Returns the number; 0: nothing now; -1: the client has left. */
static ssize_t
receive_bytes(TnpClient *c, void *to, uint64_t length)
{
	struct iovec part = {to, length > ((uint64_t) 1 << 30) ? (size_t) 1 << 30 : (size_t) length};
	union
	{
		struct cmsghdr header;
		char		room[CMSG_SPACE(4 * sizeof(int))];
	}			control;
	struct msghdr message = {.msg_iov = &part,.msg_iovlen = 1,.msg_control = control.room,.msg_controllen = sizeof(control.room)};
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
		refuse(server, c, &error);
		return false;
	}
	if (file != (received >= 0))
	{
		snprintf(error.detail, sizeof(error.detail), file ? "its memory file is missing" : "a file came with it");
		refuse(server, c, &error);
		return false;
	}
	c->file = -1;
	if (file ? !tnp_parcel_receive(received, c->header.length, &c->payload) : !tnp_parcel_alloc(c->header.length, &c->payload))
	{
		snprintf(error.message, sizeof(error.message), "the payload could not be taken");
		snprintf(error.detail, sizeof(error.detail), "%llu bytes: %s", (unsigned long long) c->header.length, strerror(errno));
		refuse(server, c, &error);
		return false;
	}
	c->payload_got = file ? c->header.length : 0;
	return true;
}

/* Read what there is of the next message. */
static void
receive_some(TnpServer *server, TnpClient *c)
{
	/* one message per turn, so that nobody is served before the others */
	while (!c->gone && c->state == TNP_LISTENING)
	{
		bool		head = c->header_got < sizeof(TnpHeader);
		ssize_t		n;

		if (!head && c->payload_got == c->header.length)
		{
			take_message(server, c);
			return;
		}
		n = head ? receive_bytes(c, (char *) &c->header + c->header_got, sizeof(TnpHeader) - c->header_got)
			: receive_bytes(c, (char *) c->payload.bytes + c->payload_got, c->header.length - c->payload_got);
		if (n < 0)
			leave(server, c);
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

/* A client that waits for its answer may leave, but not speak. */
static void
watch(TnpServer *server, TnpClient *c)
{
	char		byte;
	ssize_t		n = recv(c->socket, &byte, 1, MSG_PEEK);

	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
		return;
	if (n > 0)
		tnp_say(server, 'W', "a client is refused: it asks again before it has the answer");
	leave(server, c);
}

/* ---- the loop ---------------------------------------------------------------------------------------------------------------- */

static void
serve(TnpServer *server, TnpClient *c, short events)
{
	if (c->gone || events == 0)
		return;
	switch (c->state)
	{
		case TNP_LISTENING:
			receive_some(server, c);
			break;
		case TNP_QUEUED:
		case TNP_ANSWERING:
			watch(server, c);
			break;
		case TNP_REPLYING:
			send_some(server, c);
			break;
	}
}

void
tnp_turn(TnpServer *server, int timeout)
{
	static struct pollfd *files = NULL;
	static TnpClient **who = NULL;
	static size_t room = 0;
	size_t		n = 2;
	double		now;

	if (room < server->n_clients + 2)
	{
		size_t		wanted = 2 * (server->n_clients + 64);
		struct pollfd *more = realloc(files, wanted * sizeof(struct pollfd));
		TnpClient **more_who;

		if (more != NULL)
			files = more;
		more_who = realloc(who, wanted * sizeof(TnpClient *));
		if (more_who != NULL)
			who = more_who;
		if (more != NULL && more_who != NULL)
			room = wanted;
		else if (room == 0)
		{
			server->ending = true;
			return;
		}
	}
	files[0] = (struct pollfd) {server->listener, POLLIN, 0};
	files[1] = (struct pollfd) {server->supervised ? 0 : -1, POLLIN, 0};
	for (TnpClient *c = server->clients; c != NULL && n < room; c = c->next)
		if (!c->gone)
		{
			files[n] = (struct pollfd) {c->socket, c->state == TNP_REPLYING ? POLLOUT : POLLIN, 0};
			who[n++] = c;
		}
	if (poll(files, n, timeout < 0 || timeout > HEARTBEAT ? HEARTBEAT : timeout) > 0)
	{
		for (size_t i = 2; i < n; i++)
			serve(server, who[i], files[i].revents);
		if (files[0].revents != 0)
			accept_clients(server);
		/* nothing is ever written to it: it ends with the supervisor */
		if (files[1].revents != 0)
			server->ending = true;
	}
	now = tnp_now();
	server->turned = now;
	if (server->supervised && now - server->beat >= HEARTBEAT)
	{
		/* an empty line is a sign of life; if nobody reads, it is not missed */
		if (write(2, "\n", 1) < 0 && errno == EPIPE)
			server->ending = true;
		server->beat = now;
	}
	if (!server->answering)
		tnp_sweep(server);
}

void
tnp_close(TnpServer *server)
{
	for (TnpClient *c = server->clients; c != NULL; c = c->next)
		leave(server, c);
	tnp_sweep(server);
	free(server->released);
	close(server->listener);
}
