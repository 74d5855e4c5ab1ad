/*
 * device.c: asks the server. One connection per session, kept; one question at a time.
 *
 * While an answer is awaited the latch is watched, too: a cancelled statement closes the connection, by which the server knows that nobody wants the answer any more, and so does the end
 * of the process, however it comes. No error is raised between a question and its answer, because callers may hold the claim of a run.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "device.h"

#include "bridge.h"
#include "shared.h"
#include "supervisor.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "storage/latch.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define START_WAIT 10000		/* ms to wait for a server that is about to start */
#define LOOK_AGAIN 20			/* ms between two looks whether it has */
#define STATISTICS_WAIT 1000	/* ms to wait for statistics */
#define KNOWN_MODELS 16

int			posterior_device = POSTERIOR_DEVICE_AUTO;
int			posterior_on_device_error = POSTERIOR_ON_ERROR_ERROR;
double		posterior_device_threshold = 2;

static int	connection = -1;
static uint64 last_id = 0;
static TnpWireWelcome welcome;
static pg_uuid_t known[KNOWN_MODELS];	/* models that the server of this connection has, or had */
static int	n_known = 0;
static bool model_evicted = false;	/* by the last question's reply */
static bool no_server = false;	/* why the last connection failed: nobody was there */

/* ---- failures ------------------------------------------------------------------------------------------------------ */

static void
hang_up(void)
{
	if (connection >= 0)
		close(connection);
	connection = -1;
	n_known = 0;
}

static TnpStatus pg_attribute_printf(3, 4)
fault(TnpError *error, const char *message, const char *format,...)
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

static TnpStatus
no_device_memory(TnpError *error)
{
	fault(error, "out of device memory", "the model, the context and the question together need more than posterior.device_memory");
	posterior_fault_sqlstate = ERRCODE_OUT_OF_MEMORY;
	return POSTERIOR_FAULT;
}

/* The conversation is broken: whatever the server says next is not understood. */
static TnpStatus pg_attribute_printf(2, 3)
corrupt(TnpError *error, const char *format,...)
{
	char		detail[256];
	va_list		args;

	va_start(args, format);
	vsnprintf(detail, sizeof(detail), format, args);
	va_end(args);
	hang_up();
	return fault(error, "the reply of the posterior server is corrupt", "%s", detail);
}

static TnpStatus
lost_connection(TnpError *error)
{
	hang_up();
	no_server = true;
	return fault(error, "the connection to the posterior server was lost", "the server has ended, or was restarted; the server's log says why");
}

static TnpStatus
interrupted(TnpError *error)
{
	hang_up();
	memset(error, 0, sizeof(*error));
	error->status = TNP_INTERRUPTED;
	strlcpy(error->message, "interrupted", sizeof(error->message));
	return TNP_INTERRUPTED;
}

/* ---- waiting ------------------------------------------------------------------------------------------------------- */

/* Wait until the socket is ready, or the time is over (timeout >= 0; *late is then set). */
static TnpStatus
wait_for(int event, TimestampTz until, bool *late, TnpError *error)
{
	long		timeout = -1;
	int			events = event | WL_LATCH_SET | WL_EXIT_ON_PM_DEATH;

	if (posterior_interrupted())
		return interrupted(error);
	if (until != 0)
	{
		timeout = Max((long) ((until - GetCurrentTimestamp()) / 1000), 0);
		events |= WL_TIMEOUT;
	}
	events = WaitLatchOrSocket(MyLatch, events, connection >= 0 ? connection : PGINVALID_SOCKET, timeout, PG_WAIT_EXTENSION);
	if (events & WL_LATCH_SET)
	{
		ResetLatch(MyLatch);
		if (posterior_interrupted())
			return interrupted(error);
	}
	if ((events & WL_TIMEOUT) && late != NULL)
		*late = true;
	return TNP_OK;
}

/* ---- sending and receiving ----------------------------------------------------------------------------------------- */

/* Send a header, its file, and what follows on the socket. */
static TnpStatus
send_message(const TnpHeader *header, int file, const void *payload, TimestampTz until, TnpError *error)
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
			TnpStatus	status = wait_for(WL_SOCKET_WRITEABLE, until, &late, error);

			if (status != TNP_OK)
				return status;
			if (late)
				return lost_connection(error);
		}
		else if (n == 0 || errno != EINTR)
			return lost_connection(error);
	}
	return TNP_OK;
}

/* Receive exactly `length` bytes, and the file that comes with the first of them. */
static TnpStatus
receive_bytes(void *to, uint64 length, int *file, TimestampTz until, TnpError *error)
{
	uint64		got = 0;

	while (got < length)
	{
		struct iovec part = {(char *) to + got, Min(length - got, (uint64) 1 << 30)};
		union
		{
			struct cmsghdr header;
			char		room[CMSG_SPACE(sizeof(int))];
		}			control;
		struct msghdr message;
		ssize_t		n;

		memset(&message, 0, sizeof(message));
		message.msg_iov = &part;
		message.msg_iovlen = 1;
		message.msg_control = control.room;
		message.msg_controllen = sizeof(control.room);
		n = recvmsg(connection, &message, 0);
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		{
			bool		late = false;
			TnpStatus	status = wait_for(WL_SOCKET_READABLE, until, &late, error);

			if (status != TNP_OK)
				return status;
			if (late)
				return lost_connection(error);
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return lost_connection(error);
		for (struct cmsghdr *h = CMSG_FIRSTHDR(&message); h != NULL; h = CMSG_NXTHDR(&message, h))
			if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS && h->cmsg_len == CMSG_LEN(sizeof(int)))
			{
				if (*file >= 0)
					close(*file);
				memcpy(file, CMSG_DATA(h), sizeof(int));
				(void) fcntl(*file, F_SETFD, FD_CLOEXEC);
			}
		got += n;
	}
	return TNP_OK;
}

/* Receive the reply to question `id`. The parcel is the caller's to free. */
static TnpStatus
receive_reply(uint64 id, TnpHeader *header, TnpParcel *parcel, TimestampTz until, TnpError *error)
{
	int			file = -1;
	bool		foreign = false;
	TnpStatus	status;
	TnpError	why;

	memset(parcel, 0, sizeof(*parcel));
	status = receive_bytes(header, sizeof(*header), &file, until, error);
	if (status == TNP_OK && tnp_wire_check_header(header, &foreign, &why) != TNP_OK)
	{
		if (foreign)
		{
			hang_up();
			status = fault(error, "the posterior server is of another version", "%s", why.detail);
		}
		else
			status = corrupt(error, "%s", why.detail);
	}
	else if (status == TNP_OK && (header->id != id || (file >= 0) != ((header->flags & TNP_WIRE_FILE) != 0)))
		status = corrupt(error, "it answers question %llu instead of %llu, %s", (unsigned long long) header->id, (unsigned long long) id,
						 file >= 0 ? "with a file" : "without a file");
	if (status != TNP_OK || file < 0)
	{
		if (file >= 0)
			close(file);
		if (status != TNP_OK)
			return status;
		/* what is this long comes as a file where there are files */
		if (header->length > (tnp_parcel_files() ? 2 * TNP_WIRE_INLINE : TNP_WIRE_MAX_INLINE))
			return corrupt(error, "%llu bytes follow", (unsigned long long) header->length);
		if (!tnp_parcel_alloc(header->length, parcel))
		{
			hang_up();
			memset(error, 0, sizeof(*error));
			error->status = TNP_NO_MEMORY;
			strlcpy(error->message, "out of memory", sizeof(error->message));
			return TNP_NO_MEMORY;
		}
		status = receive_bytes(parcel->bytes, header->length, &file, until, error);
		if (file >= 0)
			close(file);
	}
	else if (!tnp_parcel_receive(file, header->length, parcel))
		status = corrupt(error, "its memory file of %llu bytes: %s", (unsigned long long) header->length, strerror(errno));
	if (status != TNP_OK)
		tnp_parcel_free(parcel);
	return status;
}

/* A failure that the server reports. */
static TnpStatus
take_failure(const TnpParcel *parcel, TnpError *error)
{
	bool		is_fault;
	TnpError	said;

	if (tnp_wire_read_failure(parcel->bytes, parcel->length, &is_fault, &said) != TNP_OK)
		return corrupt(error, "%s", said.detail);
	if (is_fault)
	{
		hang_up();
		return fault(error, "the posterior server has failed", "%s%s%s", said.message, said.detail[0] != '\0' ? ": " : "", said.detail);
	}
	if (said.status == TNP_NO_MEMORY)
		return no_device_memory(error);
	if (said.status == TNP_INTERRUPTED)
		return fault(error, "the posterior server has dropped the question", "%s", said.message);
	*error = said;
	return said.status;
}

/* ---- connecting ---------------------------------------------------------------------------------------------------- */

static TnpStatus
greet(TimestampTz until, TnpError *error)
{
	TnpHeader	hello = tnp_wire_header(TNP_HELLO, ++last_id, 0, false),
				header;
	TnpParcel	parcel;
	TnpStatus	status = send_message(&hello, -1, NULL, until, error);

	if (status == TNP_OK)
		status = receive_reply(last_id, &header, &parcel, until, error);
	if (status != TNP_OK)
		return status;
	if (header.kind == TNP_FAILED)
		status = take_failure(&parcel, error);
	else if (header.kind != TNP_WELCOME || header.length != sizeof(welcome))
		status = corrupt(error, "a greeting of kind %d, %llu bytes", header.kind, (unsigned long long) header.length);
	else
	{
		memcpy(&welcome, parcel.bytes, sizeof(welcome));
		tnp_wire_end_welcome(&welcome);
	}
	tnp_parcel_free(&parcel);
	if (status != TNP_OK)
		hang_up();
	return status;
}

/* Be connected. A connection whose server has gone is noticed before anything is asked. */
static TnpStatus
connect_server(TimestampTz until, TnpError *error)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX,.sun_path = POSTERIOR_SOCKET};
	char		byte;

	if (connection >= 0)
	{
		ssize_t		n = recv(connection, &byte, 1, MSG_PEEK);

		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
			return TNP_OK;
		hang_up();
	}
	no_server = false;
	connection = socket(AF_UNIX, SOCK_STREAM, 0);
	if (connection < 0)
		return fault(error, "the posterior server cannot be reached", "%s", strerror(errno));
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
			hang_up();
			no_server = true;
			return fault(error, "the posterior server cannot be reached", "%s", strerror(why));
		}
		connection = -1;
		status = wait_for(0, GetCurrentTimestamp() + LOOK_AGAIN * 1000, NULL, error);
		if (status == TNP_OK && until != 0 && GetCurrentTimestamp() > until)
			status = lost_connection(error);
		connection = keep;
		if (status != TNP_OK)
		{
			hang_up();
			return status;
		}
	}
	return greet(until, error);
}

bool
posterior_device_ready(const PosteriorModel *model, TnpError *error)
{
	bool		demanded = posterior_device == POSTERIOR_DEVICE_CUDA;
	TimestampTz until = 0;

	error->status = TNP_OK;
	if (posterior_device == POSTERIOR_DEVICE_CPU || posterior_kernels != 0)
		return false;
	if (!posterior_is_shared)
	{
		if (demanded)
		{
			fault(error, "no device can be used", "there is a server for devices only when shared_preload_libraries contains pg_posterior");
			posterior_fault_sqlstate = ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
		}
		return false;
	}
	for (;;)
	{
		PosteriorServerState state = (PosteriorServerState) pg_atomic_read_u32(&posterior_shared->server.state);
		TnpError	why;

		if (state == POSTERIOR_SERVER_READY)
		{
			if (connect_server(0, error) == TNP_OK)
			{
				error->status = TNP_OK;
				return demanded || model->refused_by != welcome.pid;
			}
			/* it has just ended, which the supervisor may not know yet: nothing was asked, so nothing has failed */
			if (error->status == POSTERIOR_FAULT && !demanded)
				error->status = TNP_OK;
			if (!demanded || error->status != POSTERIOR_FAULT || !no_server)
				return false;
		}
		if (!demanded)
			return false;
		if (until == 0)
			until = GetCurrentTimestamp() + START_WAIT * 1000L;
		if (state == POSTERIOR_SERVER_OFF || state == POSTERIOR_SERVER_WAITING || GetCurrentTimestamp() > until)
		{
			posterior_supervisor_explain(&why);
			fault(error, "the posterior server is not running", "%s", why.message);
			return false;
		}
		hang_up();
		if (wait_for(0, GetCurrentTimestamp() + LOOK_AGAIN * 1000, NULL, error) != TNP_OK)
			return false;
	}
}

static bool
is_known(const PosteriorModel *model)
{
	for (int i = 0; i < n_known; i++)
		if (memcmp(&known[i], &model->version, sizeof(pg_uuid_t)) == 0)
			return true;
	return false;
}

bool
posterior_device_at_hand(const PosteriorModel *model)
{
	return posterior_device != POSTERIOR_DEVICE_CPU && posterior_kernels == 0 && posterior_is_shared && connection >= 0
		&& pg_atomic_read_u32(&posterior_shared->server.state) == POSTERIOR_SERVER_READY && is_known(model);
}

bool
posterior_device_exact(void)
{
	return welcome.exact != 0;
}

/* ---- asking -------------------------------------------------------------------------------------------------------- */

/* Send a message in two parts, the second of them perhaps empty, and receive the reply. */
static TnpStatus
exchange(TnpMessage kind, const void *payload, uint64 length, TnpHeader *header, TnpParcel *parcel, TimestampTz until, TnpError *error)
{
	bool		as_file = length > TNP_WIRE_INLINE && tnp_parcel_files();
	int			file = as_file ? tnp_parcel_send(NULL, 0, payload, length) : -1;
	TnpHeader	question = tnp_wire_header(kind, ++last_id, length, file >= 0);
	TnpStatus	status;

	if (as_file && file < 0)
		return fault(error, "no memory file could be made for the posterior server", "%s", strerror(errno));
	status = send_message(&question, file, payload, until, error);
	if (file >= 0)
		close(file);
	return status == TNP_OK ? receive_reply(last_id, header, parcel, until, error) : status;
}

/* The name of a model on the wire. */
static void
name_model(const PosteriorModel *model, uint8_t *name)
{
	uint64		database = MyDatabaseId;

	memcpy(name, model->version.data, UUID_LEN);
	memcpy(name + UUID_LEN, &database, sizeof(database));
	StaticAssertStmt(UUID_LEN + sizeof(database) == TNP_WIRE_MODEL, "a model's name has this size");
}

/* The bytes of a question, allocated; NULL without memory. */
static void *
write_question(const PosteriorModel *model, const PosteriorBody *body, const TnpRequest *r, uint64 *length)
{
	TnpWireAsk	ask;
	TnpRows		given = posterior_body_view(body);
	void	   *bytes;

	memset(&ask, 0, sizeof(ask));
	name_model(model, ask.model);
	ask.key.epoch = posterior_shared->epoch;
	ask.key.serial = body->serial;
	ask.rows = r->rows;
	ask.prefix = body->prefix;
	ask.first = Min(body->mirrored, r->rows);
	ask.given = r->rows - ask.first;
	ask.capacity = body->capacity;
	ask.queries = r->queries.n;
	ask.seed = r->seed;
	ask.first_draw = r->first_draw;
	ask.draws = r->draws;
	ask.orders = r->orders;
	ask.n_features = body->n_features;
	ask.kind = r->kind;
	ask.reductions = r->reductions;
	ask.n_levels = r->n_levels;
	ask.flags = (body->kept || body->borrowed ? 0 : TNP_ASK_OWN) | (r->queries.y != NULL ? TNP_ASK_TARGETS : 0);
	*length = tnp_wire_ask_length(&ask);
	bytes = *length > 0 ? posterior_scratch_alloc(*length) : NULL;
	if (bytes == NULL)
		return NULL;
	given.n = ask.given;
	given.x += ask.first * given.n_features;
	given.y += ask.first;
	tnp_wire_write_ask(&ask, &given, &r->queries, r->levels, bytes);
	return bytes;
}

/* Doubles in the answer to a request. */
static uint64
answer_length(const PosteriorModel *model, const TnpRequest *r)
{
	TnpWireAsk	ask;
	TnpDistributionKind kind;
	int			components;
	uint64		length = 0;

	memset(&ask, 0, sizeof(ask));
	ask.kind = r->kind;
	ask.queries = r->queries.n;
	ask.draws = r->draws;
	ask.reductions = r->reductions;
	ask.n_levels = r->n_levels;
	tnp_answer_shape(model->model, &kind, &components);
	return tnp_wire_answer_length(&ask, kind, components, &length) ? length : 0;
}

TnpStatus
posterior_device_ask(PosteriorModel *model, PosteriorBody *body, TnpRequest *request, TnpError *error)
{
	TnpStatus	status = connect_server(0, error);

	model_evicted = false;
	for (int round = 0; status == TNP_OK; round++)
	{
		TnpHeader	header;
		TnpParcel	parcel;
		uint64		length;
		void	   *question = write_question(model, body, request, &length);

		if (question == NULL)
		{
			memset(error, 0, sizeof(*error));
			error->status = TNP_NO_MEMORY;
			strlcpy(error->message, "out of memory", sizeof(error->message));
			return TNP_NO_MEMORY;
		}
		status = exchange(TNP_ASK, question, length, &header, &parcel, 0, error);
		pfree(question);
		if (status != TNP_OK)
			return status;
		switch (header.kind)
		{
			case TNP_ANSWER:
				if (header.length != answer_length(model, request))
					status = corrupt(error, "an answer of %llu bytes instead of %llu", (unsigned long long) header.length,
									 (unsigned long long) answer_length(model, request));
				else
				{
					if (header.length > 0)
						memcpy(request->answer, parcel.bytes, header.length);
					body->mirrored = Max(body->mirrored, request->rows);
					tnp_parcel_free(&parcel);
					return TNP_OK;
				}
				break;
			case TNP_MISSING:
				{
					const TnpWireMissing *missing = parcel.bytes;

					if (header.length != sizeof(*missing) || missing->rows < 0 || missing->rows > request->rows)
						status = corrupt(error, "%llu bytes of what is missing", (unsigned long long) header.length);
					else if (missing->model != 0 || round == 3)
					{
						/* it was there a moment ago: memory is too small for all that is asked at once */
						status = no_device_memory(error);
						model_evicted = missing->model != 0;
						n_known = 0;
					}
					else
						body->mirrored = missing->rows;
					break;
				}
			case TNP_FAILED:
				status = take_failure(&parcel, error);
				break;
			default:
				status = corrupt(error, "it is of kind %d", header.kind);
		}
		tnp_parcel_free(&parcel);
	}
	return status;
}

bool
posterior_device_evicted_model(void)
{
	return model_evicted;
}

/* Send a model, or with file = NULL ask for it: *missing. */
static TnpStatus
load_model(const PosteriorModel *model, const bytea *file, bool *missing, TnpError *error)
{
	uint64		size = file != NULL ? VARSIZE_ANY_EXHDR(file) : 0,
				length = sizeof(TnpWireLoad) + MAXALIGN64(size);
	TnpWireLoad *load = MemoryContextAllocExtended(CurrentMemoryContext, length, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	TnpHeader	header;
	TnpParcel	parcel;
	TnpStatus	status;

	name_model(model, load->model);
	load->length = size;
	if (size > 0)
		memcpy(load + 1, VARDATA_ANY(file), size);
	status = exchange(TNP_LOAD, load, length, &header, &parcel, 0, error);
	pfree(load);
	if (status != TNP_OK)
		return status;
	*missing = false;
	if (header.kind == TNP_FAILED)
		status = take_failure(&parcel, error);
	else if (header.kind == TNP_MISSING && file == NULL)
		*missing = true;
	else if (header.kind != TNP_DONE)
		status = corrupt(error, "it is of kind %d", header.kind);
	tnp_parcel_free(&parcel);
	return status;
}

TnpStatus
posterior_device_prepare(PosteriorModel *model, TnpError *error)
{
	TnpStatus	status = connect_server(0, error);
	bool		missing;

	if (status != TNP_OK)
		return status;
	if (is_known(model))
		return TNP_OK;
	if (model->refused_by == welcome.pid)
		return fault(error, "the device cannot compute this model", "the posterior server has refused it; posterior.device = cpu answers without a device");
	status = load_model(model, NULL, &missing, error);
	if (status == TNP_OK && missing)
	{
		bytea	   *file = posterior_model_file(model);

		if (file == NULL)
			return fault(error, "the posterior server lacks the model", "the row of the model is not visible any more");
		status = load_model(model, file, &missing, error);
		pfree(file);
		if (status != TNP_OK && status != POSTERIOR_FAULT && status != TNP_INTERRUPTED)
		{
			char		text[256];

			strlcpy(text, error->message, sizeof(text));
			model->refused_by = welcome.pid;
			return fault(error, "the device cannot compute this model", "%s", text);
		}
	}
	if (status == TNP_OK)
		known[n_known < KNOWN_MODELS ? n_known++ : last_id % KNOWN_MODELS] = model->version;
	return status;
}

void
posterior_device_forget(uint64 serial)
{
	struct
	{
		TnpHeader	header;
		TnpWireKey	key;
	}			message;

	if (connection < 0)
		return;
	message.header = tnp_wire_header(TNP_FORGET, ++last_id, sizeof(TnpWireKey), false);
	message.key.epoch = posterior_shared->epoch;
	message.key.serial = serial;
	/* whoever has hung up has nothing of his own there any more */
	if (send(connection, &message, sizeof(message), 0) != sizeof(message))
		hang_up();
}

bool
posterior_device_statistics(TnpWireStatistics *statistics)
{
	TimestampTz until = GetCurrentTimestamp() + STATISTICS_WAIT * 1000L;
	TnpHeader	header;
	TnpParcel	parcel;
	TnpError	error;
	TnpStatus	status;
	bool		good;

	if (!posterior_is_shared || pg_atomic_read_u32(&posterior_shared->server.state) != POSTERIOR_SERVER_READY)
		return false;
	status = connect_server(until, &error);
	if (status == TNP_OK)
		status = exchange(TNP_STATS, NULL, 0, &header, &parcel, until, &error);
	if (status != TNP_OK)
	{
		CHECK_FOR_INTERRUPTS();
		return false;
	}
	good = header.kind == TNP_STATISTICS && header.length == sizeof(*statistics);
	if (good)
	{
		memcpy(statistics, parcel.bytes, sizeof(*statistics));
		tnp_wire_end_welcome(&statistics->device);
	}
	else
		hang_up();
	tnp_parcel_free(&parcel);
	return good;
}
