/*
 * protocol_fuzz.c: libFuzzer target for the server: whatever a client sends, it is answered or
 * refused, and nothing stays behind when the client has left.
 *
 * An input is what arrives at the server's end of a socket, after a greeting and, if there is a
 * test model to read, with that model loaded. Random bytes seldom make a header, so an input may
 * also begin with M: then it is cut into messages, each a byte for its kind, two for the length of
 * its payload, and the payload, for which headers are made; F asks for such a payload to come as a
 * memory file.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/server.h"

#define BUDGET ((size_t) 64 << 20)
#define MODEL "build/models/packed_causal.safetensors"

static TnpServer server;
static TnpDevice *device;
static unsigned polls;

/* A question that takes long is not worth it. */
static bool
unwanted(void *argument)
{
	return tnp_unwanted(argument) || ++polls > 20;
}

static void
quiet(void *argument, const char *line)
{
	(void) argument;
	(void) line;
}

/* The server starts once; its model stays. */
static void
start(void)
{
	static const uint8_t id[TNP_WIRE_MODEL] = {1};
	TnpDeviceConfig config = {0, BUDGET, TNP_PRECISION_FP32, unwanted, quiet, &server};
	FILE	   *file = fopen(MODEL, "rb");
	static char bytes[1 << 20];
	TnpError	error;

	server.listener = -1;
	server.silent = true;
	if (tnp_cpu_device.init(&config, &device, &error) != TNP_OK)
	{
		fprintf(stderr, "no device: %s\n", error.message);
		abort();
	}
	tnp_store_init(&server.store, &tnp_cpu_device, device);
	if (file != NULL)
	{
		size_t		length = fread(bytes, 1, sizeof(bytes), file);

		if (tnp_store_load(&server.store, id, bytes, length, &error) != TNP_OK)
			abort();
		fclose(file);
	}
}

/* Read away what the server has replied. */
static void
drain(int s)
{
	char		bytes[4096],
				room[256];
	struct iovec part = {bytes, sizeof(bytes)};

	for (;;)
	{
		struct msghdr m = {
			.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};

		if (recvmsg(s, &m, MSG_DONTWAIT) <= 0)
			return;
		for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h != NULL; h = CMSG_NXTHDR(&m, h))
		{
			int			file;

			memcpy(&file, CMSG_DATA(h), sizeof(int));
			close(file);
		}
	}
}

static void
turn(int s)
{
	for (int i = 0; i < 3; i++)
	{
		tnp_serve_once(&server, 0);
		tnp_answer_queued(&server);
		drain(s);
	}
}

static void
send_bytes(int s, const void *bytes, size_t length, int file)
{
	struct iovec part = {(void *) bytes, length};
	struct msghdr m = {.msg_iov = &part,.msg_iovlen = 1};
	union
	{
		struct cmsghdr header;
		char		room[CMSG_SPACE(sizeof(int))];
	}			control;

	if (file >= 0)
	{
		memset(&control, 0, sizeof(control));
		m.msg_control = control.room;
		m.msg_controllen = sizeof(control.room);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.header), &file, sizeof(int));
	}
	(void) !sendmsg(s, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Messages with proper headers. */
static void
send_messages(int s, const uint8_t *data, size_t size, bool files)
{
	while (size >= 3)
	{
		size_t		length = data[1] | (size_t) data[2] << 8;
		int			file = -1;
		TnpHeader	h;

		if (length > size - 3)
			length = size - 3;
		if (files && tnp_parcel_files())
			file = tnp_parcel_send(NULL, 0, data + 3, length);
		h = tnp_wire_header((TnpMessage) data[0], 7, length, file >= 0);
		send_bytes(s, &h, sizeof(h), file);
		if (file >= 0)
			close(file);
		else if (length > 0)
			send_bytes(s, data + 3, length, -1);
		turn(s);
		data += 3 + length;
		size -= 3 + length;
	}
}

int			LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	TnpHeader	hello = tnp_wire_header(TNP_HELLO, 1, 0, false);
	int			ends[2];

	polls = 0;
	if (device == NULL)
		start();
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0 || !tnp_add_client(&server, ends[0]))
	{
		perror("no client beside the server");
		abort();
	}
	send_bytes(ends[1], &hello, sizeof(hello), -1);
	turn(ends[1]);
	if (size > 0 && (data[0] == 'M' || data[0] == 'F'))
		send_messages(ends[1], data + 1, size - 1, data[0] == 'F');
	else if (size > 0)
		send_bytes(ends[1], data, size, -1);
	turn(ends[1]);
	close(ends[1]);
	for (int i = 0; i < 4; i++)
	{
		tnp_serve_once(&server, 0);
		tnp_answer_queued(&server);
	}
	if (server.n_clients != 0 || server.queue != NULL
		|| tnp_cpu_device.memory_used(device) > BUDGET)
	{
		fprintf(stderr, "left: %llu clients, %llu in the queue, %zu bytes\n",
				(unsigned long long) server.n_clients, (unsigned long long) server.n_queued,
				(size_t) tnp_cpu_device.memory_used(device));
		abort();
	}
	/* what others may use stays, by right; here it would make one input depend on another */
	while (server.store.newest != NULL)
	{
		server.store.newest->owner = 1;
		tnp_store_forget_client(&server.store, 1);
	}
	server.ending = false;
	return 0;
}
