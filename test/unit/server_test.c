/*
 * server_test.c: the server from a client's end of a socket, and the store of models and encodings,
 * with every test model: answers are those of the engine, bitwise; what is least recently used
 * gives way; a client that leaves leaves nothing behind.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "models.h"
#include "engine/base/error.h"
#include "server/server.h"
#include "cpu/cpu.h"
#include "tap.h"

static TnpServer server;
static TnpDevice *device;
static bool stop = false;		/* what the device hears when it asks */

static bool
unwanted(void *argument)
{
	return stop || tnp_unwanted(argument);
}

static void
quiet(void *argument, const char *line)
{
	(void) argument;
	(void) line;
}

static void
start_server(size_t memory)
{
	TnpDeviceConfig config = {0, memory, TNP_PRECISION_FP32, unwanted, quiet, &server};
	TnpError	error;

	memset(&server, 0, sizeof(server));
	server.listener = -1;
	server.most_bytes = TNP_SERVER_BYTES;
	server.silent = true;
	if (tnp_cpu_device.init(&config, &device, &error) != TNP_OK)
		exit(1);
	tnp_store_init(&server.store, &tnp_cpu_device, device);
}

/* Everything is given back. */
static void
end_server(const char *name)
{
	tnp_close(&server);
	tnp_store_clear(&server.store);
	ok(tnp_cpu_device.memory_used(device) == 0, "%s: nothing is left on the device", name);
	tnp_cpu_device.shutdown(device);
}

static int
join(void)
{
	int			ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0 || !tnp_add_client(&server, ends[0]))
		exit(1);
	fcntl(ends[1], F_SETFL, O_NONBLOCK);
	return ends[1];
}

static void
work(void)
{
	for (int i = 0; i < 8; i++)
	{
		tnp_serve_once(&server, 0);
		tnp_answer_queued(&server);
	}
}

/* Send a message, as a file if it is long. */
static void
put(int s, TnpMessage kind, uint64_t id, const void *payload, uint64_t length)
{
	int			file = length > TNP_WIRE_INLINE && tnp_parcel_files()
		? tnp_parcel_send(NULL, 0, payload, length) : -1;
	TnpHeader	h = tnp_wire_header(kind, id, length, file >= 0);
	struct iovec parts[2] = {{&h, sizeof(h)}, {(void *) payload, (size_t) length}};
	struct msghdr m = {.msg_iov = parts,.msg_iovlen = file >= 0 || length == 0 ? 1 : 2};
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
	if (sendmsg(s, &m, MSG_NOSIGNAL) < 0)
		diag("could not send: %s", strerror(errno));
	if (file >= 0)
		close(file);
}

/* The reply: its kind, 0 if there is none, -1 at the end. The parcel is freed by the caller. */
static int
get(int s, uint64_t id, TnpParcel *parcel)
{
	TnpHeader	h;
	struct iovec part = {&h, sizeof(h)};
	char		room[CMSG_SPACE(sizeof(int))];
	struct msghdr m = {.msg_iov = &part,.msg_iovlen = 1,.msg_control = room,
					   .msg_controllen = sizeof(room)};
	ssize_t		n = recvmsg(s, &m, 0);
	bool		foreign;
	TnpError	error;

	*parcel = (TnpParcel) {NULL, 0, false};
	if (n <= 0)
		return n == 0 || errno == ECONNRESET ? -1 : 0;
	if (n != sizeof(h) || tnp_wire_check_header(&h, &foreign, &error) != TNP_OK || h.id != id)
	{
		ok(false, "a well-formed reply to question %llu", (unsigned long long) id);
		return -1;
	}
	if (m.msg_controllen > 0)
	{
		int			file;

		memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(int));
		if (!tnp_parcel_receive(file, h.length, parcel))
			ok(false, "the reply's file is good");
	}
	else
	{
		tnp_parcel_alloc(h.length, parcel);
		for (uint64_t got = 0; got < h.length;)
		{
			n = recv(s, (char *) parcel->bytes + got, (size_t) (h.length - got), 0);
			if (n <= 0)
			{
				work();
				continue;
			}
			got += (uint64_t) n;
		}
	}
	return h.kind;
}

/* A conversation: kind of the reply. */
static int
talk(int s, TnpMessage kind, uint64_t id, const void *payload, uint64_t length, TnpParcel *parcel)
{
	put(s, kind, id, payload, length);
	work();
	return get(s, id, parcel);
}

static int
say(int s, TnpMessage kind, uint64_t id, const void *payload, uint64_t length)
{
	TnpParcel	parcel;
	int			reply = talk(s, kind, id, payload, length, &parcel);

	tnp_parcel_free(&parcel);
	return reply;
}

static int
hello(void)
{
	int			s = join();

	is_int(say(s, TNP_HELLO, 1, NULL, 0), TNP_WELCOME, "a client is welcome");
	return s;
}

static int
load(int s, const TestModel *m, uint8_t id)
{
	uint64_t	length = sizeof(TnpWireLoad) + ((m->length + 7) & ~(uint64_t) 7);
	TnpWireLoad *l = calloc(1, (size_t) length);
	int			reply;

	l->model[0] = id;
	l->length = m->length;
	memcpy(l + 1, m->bytes, m->length);
	reply = say(s, TNP_LOAD, 2, l, length);
	free(l);
	return reply;
}

/*
 * A question about rows [0, n) of all, of which those from `first` on are sent; queries are the
 * last m rows.
 */
static TnpWireRequest
question(uint8_t model, uint64_t serial, const TestRows *all, int64_t n, int64_t prefix,
		 int64_t first, int64_t m)
{
	TnpWireRequest	a;

	memset(&a, 0, sizeof(a));
	a.model[0] = model;
	a.key = (TnpWireKey) {9, serial};
	a.rows = n;
	a.prefix = prefix;
	a.first = first;
	a.given = n - first;
	a.queries = m;
	a.n_features = all->view.n_features;
	a.n_classes = all->view.n_classes;
	a.kind = TNP_REQUEST_PREDICT;
	return a;
}

static void
put_question(int s, const TnpWireRequest *a, const TestRows *all, int from, const double *levels)
{
	TnpRows		given = test_slice(all, (int) a->first, (int) a->given),
				queries = test_slice(all, from, (int) a->queries);
	uint64_t	length = tnp_wire_request_length(a);
	void	   *bytes = malloc((size_t) length);

	tnp_wire_write_request(a, &given, &queries, levels, bytes);
	put(s, TNP_EXECUTE, 3, bytes, length);
	free(bytes);
}

static int
ask(int s, const TnpWireRequest *a, const TestRows *all, int from, const double *levels,
	TnpParcel *parcel)
{
	put_question(s, a, all, from, levels);
	work();
	return get(s, 3, parcel);
}

/* ---- answers are the engine's ---------------------------------------------------------------- */

static void
expect(const char *model, const char *what, int reply, TnpParcel *parcel, const double *answer,
	   uint64_t n)
{
	bool		same = reply == TNP_ANSWER && parcel->length == n * sizeof(double) &&
		(n == 0 || memcmp(parcel->bytes, answer, n * sizeof(double)) == 0);

	ok(same, "%s: %s as from the engine", model, what);
	if (!same)
		diag("reply %d, %llu bytes, %llu expected", reply, (unsigned long long) parcel->length,
			 (unsigned long long) (n * sizeof(double)));
	tnp_parcel_free(parcel);
}

static void
test_model(const TestModel *file)
{
	TnpEnv		env = tnp_default_env;
	TnpModel   *model;
	TnpEncoding *e;
	TnpError	error;
	TestRows	rows;
	TnpWireRequest	a;
	TnpParcel	parcel;
	bool		fault;
	TnpDistributionKind kind;
	int			components,
				size,
				s;
	int64_t		n = 24,
				m = 5;
	double		expected[4096],
				density;
	const double levels[2] = {0.25, 0.5};

	env.kernels = tnp_cpu_kernels();
	if (tnp_model_open(&env, file->bytes, file->length, &model, &error) != TNP_OK)
	{
		ok(false, "%s: opens: %s", file->name, error.message);
		return;
	}
	tnp_answer_shape(model, &kind, &components);
	size = tnp_distribution_size(kind, components);
	test_rows_make(&rows, tnp_model_info(model), (int) (n + m), 5);
	/* the protocol has one target */
	if (tnp_model_info(model)->min_rows > n || size * m > 4096
		|| tnp_model_info(model)->n_targets > 1)
	{
		tnp_model_close(model);
		test_rows_free(&rows);
		return;
	}
	start_server(0);
	s = hello();
	a = question(1, 1, &rows, n, tnp_whole_prefix(model, n), n, m);
	is_int(ask(s, &a, &rows, (int) n, NULL, &parcel), TNP_MISSING, "the model is missing");
	ok(((TnpWireMissing *) parcel.bytes)->model == 1, "and so it is told");
	tnp_parcel_free(&parcel);
	is_int(load(s, file, 1), TNP_DONE, "it is loaded");
	is_int(ask(s, &a, &rows, (int) n, NULL, &parcel), TNP_MISSING, "rows are missing");
	ok(((TnpWireMissing *) parcel.bytes)->model == 0 &&
	   ((TnpWireMissing *) parcel.bytes)->rows == 0, "all of them");
	tnp_parcel_free(&parcel);

	if (tnp_build(model, &(TnpRows) {n, rows.view.n_features, rows.view.kinds, rows.x, rows.y,
									 rows.view.n_classes, 0, 1}, a.prefix, &e, &error) != TNP_OK)
	{
		ok(false, "%s: builds: %s", file->name, error.message);
		return;
	}
	a = question(1, 1, &rows, n, a.prefix, 0, m);
	tnp_predict(e,
				&(TnpRows) {m, rows.view.n_features, rows.view.kinds,
							rows.x + n * rows.view.n_features, NULL, 0, 0, 1}, expected, &error);
	expect(file->name, "predictions", ask(s, &a, &rows, (int) n, NULL, &parcel), &parcel, expected,
		   (uint64_t) (m * size));
	a.first = n;
	a.given = 0;
	expect(file->name, "predictions from what is there", ask(s, &a, &rows, (int) n, NULL, &parcel),
		   &parcel, expected, (uint64_t) (m * size));

	{
		double		reduced[64];
		int			at = 0;

		for (int64_t i = 0; i < m; i++)
		{
			TnpDistribution d = {kind, components, expected + i * size};

			reduced[at++] = tnp_mean(&d);
			reduced[at++] = sqrt(tnp_variance(&d));
			reduced[at++] = tnp_quantile(&d, 0.25);
			reduced[at++] = tnp_quantile(&d, 0.5);
			reduced[at++] = tnp_log_pdf(&d, rows.y[n + i]);
		}
		a.kind = TNP_REQUEST_REDUCE;
		a.reductions =
			TNP_REDUCE_MEAN | TNP_REDUCE_SD | TNP_REDUCE_QUANTILES | TNP_REDUCE_LOG_DENSITY;
		a.n_levels = 2;
		a.flags = TNP_EXECUTE_TARGETS;
		expect(file->name, "reduced answers", ask(s, &a, &rows, (int) n, levels, &parcel), &parcel,
			   reduced, (uint64_t) at);
	}
	a = question(1, 1, &rows, n, a.prefix, n, m);
	a.kind = TNP_REQUEST_SAMPLE;
	a.draws = 7;
	a.first_draw = 3;
	a.seed = 11;
	tnp_sample(e,
			   &(TnpRows) {m, rows.view.n_features, rows.view.kinds,
						   rows.x + n * rows.view.n_features, NULL, 0, 0, 1}, 11, 3, 7, expected,
						   &error);
	expect(file->name, "draws", ask(s, &a, &rows, (int) n, NULL, &parcel), &parcel, expected,
		   (uint64_t) (7 * m));
	a.draws = TNP_WIRE_MAX_ANSWER / sizeof(double) + 1;
	is_int(ask(s, &a, &rows, (int) n, NULL, &parcel), TNP_FAILED,
		   "more draws than an answer holds are refused");
	ok(tnp_wire_read_failure(parcel.bytes, parcel.length, &fault, &error) == TNP_OK &&
	   error.status == TNP_BAD_ARGUMENT && !fault, "as a question that is wrong");
	tnp_parcel_free(&parcel);
	a = question(1, 1, &rows, n, a.prefix, n, m);
	a.kind = TNP_REQUEST_SCORE;
	a.flags = TNP_EXECUTE_TARGETS;
	a.orders = 3;
	tnp_score(e,
			  &(TnpRows) {m, rows.view.n_features, rows.view.kinds,
						  rows.x + n * rows.view.n_features, rows.y + n, 0, 0, 1}, 3, 0, &density,
						  NULL, &error);
	expect(file->name, "a density", ask(s, &a, &rows, (int) n, NULL, &parcel), &parcel, &density,
		   1);
	a.queries = 0;
	expect(file->name, "nothing about no rows", ask(s, &a, &rows, (int) n, NULL, &parcel), &parcel,
		   &density, 0);

	/* appended rows, and the first rows of what has grown */
	if (tnp_model_info(model)->appendable)
	{
		tnp_predict(e, &(TnpRows) {1, rows.view.n_features, rows.view.kinds, rows.x, NULL, 0, 0, 1},
					expected, &error);
		a = question(1, 1, &rows, n + 2, a.prefix, n, 1);
		is_int(ask(s, &a, &rows, 0, NULL, &parcel), TNP_ANSWER, "two rows are appended");
		tnp_parcel_free(&parcel);
		is_int((long long) server.store.appends, 1, "once");
		a = question(1, 1, &rows, n, a.prefix, n, 1);
		expect(file->name, "the rows that were there before", ask(s, &a, &rows, 0, NULL, &parcel),
			   &parcel, expected, (uint64_t) size);
	}
	close(s);
	work();
	is_int((long long) server.n_clients, 0, "the client has left");
	is_int((long long) server.store.encodings, 1, "what others may use stays");
	end_server(file->name);
	tnp_encoding_free(e);
	tnp_model_close(model);
	test_rows_free(&rows);
}

/* ---- several clients ------------------------------------------------------------------------- */

static void
test_clients(const TestModel *file)
{
	TnpError	error;
	TnpModel   *model;
	TestRows	rows;
	TnpWireRequest	a;
	TnpParcel	parcel;
	uint64_t	length;
	void	   *bytes;
	TnpRows		given,
				queries;
	int			s[4];
	size_t		idle;

	if (tnp_model_open(&tnp_default_env, file->bytes, file->length, &model, &error) != TNP_OK)
		exit(1);
	test_rows_make(&rows, tnp_model_info(model), 60, 3);
	start_server(0);
	for (int i = 0; i < 4; i++)
		s[i] = hello();
	is_int(load(s[0], file, 1), TNP_DONE, "a model");
	is_int(load(s[1], file, 1), TNP_DONE, "which another client finds");
	is_int((long long) server.store.models, 1, "is there once");
	idle = tnp_cpu_device.memory_used(device);

	/* all ask at once: one call of the device */
	a = question(1, 5, &rows, 40, tnp_whole_prefix(model, 40), 0, 3);
	given = test_slice(&rows, 0, 40);
	queries = test_slice(&rows, 40, 3);
	length = tnp_wire_request_length(&a);
	bytes = malloc((size_t) length);
	tnp_wire_write_request(&a, &given, &queries, NULL, bytes);
	for (int i = 0; i < 4; i++)
		put(s[i], TNP_EXECUTE, 8, bytes, length);
	for (int i = 0; i < 4; i++)
		tnp_serve_once(&server, 0);
	is_int((long long) server.n_queued, 4, "four questions wait");
	close(s[3]);
	tnp_serve_once(&server, 0);
	is_int((long long) server.n_queued, 3, "one of them is withdrawn");
	work();
	for (int i = 0; i < 3; i++)
	{
		is_int(get(s[i], 8, &parcel), TNP_ANSWER, "and the others are answered");
		tnp_parcel_free(&parcel);
	}
	is_int((long long) server.batches, 1, "at once");
	is_int((long long) server.largest_batch, 3, "all three");
	is_int((long long) server.store.builds, 1, "from one encoding");

	/* answers that would be large together are made one after the other */
	server.most_bytes = 1;
	for (int i = 0; i < 3; i++)
		put(s[i], TNP_EXECUTE, 8, bytes, length);
	for (int i = 0; i < 3; i++)
		tnp_serve_once(&server, 0);
	work();
	for (int i = 0; i < 3; i++)
	{
		is_int(get(s[i], 8, &parcel), TNP_ANSWER, "asked again");
		tnp_parcel_free(&parcel);
	}
	is_int((long long) server.batches, 4, "answered one by one");
	server.most_bytes = TNP_SERVER_BYTES;

	/* a client's own: no other client finds it; it ends with the client, or when that says so */
	a.key.serial = 6;
	a.flags = TNP_EXECUTE_OWN;
	is_int(ask(s[0], &a, &rows, 40, NULL, &parcel), TNP_ANSWER, "an encoding of one's own");
	tnp_parcel_free(&parcel);
	is_int(ask(s[1], &a, &rows, 40, NULL, &parcel), TNP_FAILED, "is not another's");
	tnp_parcel_free(&parcel);
	put(s[1], TNP_FORGET, 9, &a.key, sizeof(a.key));
	work();
	is_int((long long) server.store.encodings, 2, "and another client cannot have it freed");
	put(s[0], TNP_FORGET, 9, &a.key, sizeof(a.key));
	work();
	is_int((long long) server.store.encodings, 1, "its owner can");
	is_int(ask(s[0], &a, &rows, 40, NULL, &parcel), TNP_ANSWER, "made again");
	tnp_parcel_free(&parcel);
	close(s[0]);
	work();
	is_int((long long) server.store.encodings, 1, "it ends with its owner");
	put(s[2], TNP_FORGET, 9, &(TnpWireKey) {9, 5}, sizeof(TnpWireKey));
	work();
	is_int((long long) server.store.encodings, 1, "what all clients share is forgotten by none");

	/* the client wants the answer no more */
	a = question(1, 7, &rows, 40, tnp_whole_prefix(model, 40), 0, 3);
	stop = true;
	is_int(ask(s[1], &a, &rows, 40, NULL, &parcel), TNP_FAILED, "interrupted");
	tnp_parcel_free(&parcel);
	stop = false;
	is_int((long long) server.store.encodings, 1, "nothing half-made stays");

	/* other rows under a key that is known, and malformed messages */
	a = question(1, 5, &rows, 40, 3, 0, 3);
	is_int(ask(s[1], &a, &rows, 40, NULL, &parcel), TNP_FAILED,
		   "a key that stands for another encoding is refused");
	tnp_parcel_free(&parcel);
	put(s[1], TNP_EXECUTE, 4, bytes, length - 8);
	work();
	is_int(get(s[1], 4, &parcel), TNP_FAILED, "a malformed question is refused");
	tnp_parcel_free(&parcel);
	is_int(get(s[1], 4, &parcel), -1, "and its client sent away");
	put(s[2], TNP_EXECUTE, 4, bytes, length);
	put(s[2], TNP_EXECUTE, 5, bytes, length);
	work();
	{
		int			reply = get(s[2], 4, &parcel);

		tnp_parcel_free(&parcel);
		ok(reply == TNP_ANSWER || reply == -1,
		   "a client that does not wait for its answer is sent away, or served in turn");
	}
	close(s[1]);
	close(s[2]);
	s[0] = join();
	is_int(say(s[0], TNP_EXECUTE, 4, bytes, length), TNP_FAILED,
		   "a client that does not say hello is refused");
	close(s[0]);
	s[0] = join();
	if (write(s[0], "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 35) != 35)
		exit(1);
	work();
	ok(server.n_clients == 0 || server.clients->gone || server.clients->leaves,
	   "and one that speaks something else");
	close(s[0]);
	work();
	free(bytes);
	is_int((long long) server.n_clients, 0, "all have left");
	ok(tnp_cpu_device.memory_used(device) > idle, "one encoding is there");
	end_server("several clients");
	tnp_model_close(model);
	test_rows_free(&rows);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void
test_memory(const TestModel *file)
{
	TnpError	error;
	TnpModel   *model;
	TestRows	rows;
	TnpWireRequest	a;
	TnpParcel	parcel;
	int			s,
				wrong = 0,
				n = getenv("TNP_QUICK") != NULL ? 40 : 256;
	size_t		one,
				limit;

	if (tnp_model_open(&tnp_default_env, file->bytes, file->length, &model, &error) != TNP_OK)
		exit(1);
	test_rows_make(&rows, tnp_model_info(model), 300, 3);
	start_server(0);
	s = hello();
	is_int(load(s, file, 1), TNP_DONE, "a model");
	one = tnp_cpu_device.memory_used(device);
	a = question(1, 1, &rows, n, tnp_whole_prefix(model, n), 0, 1);
	is_int(ask(s, &a, &rows, n, NULL, &parcel), TNP_ANSWER, "a context");
	tnp_parcel_free(&parcel);
	limit = one + 6 * (tnp_cpu_device.memory_used(device) - one);
	close(s);
	end_server("to measure");

	start_server(limit);
	s = hello();
	is_int(load(s, file, 1), TNP_DONE, "a model in little memory");
	for (uint64_t k = 1; k <= 40; k++)
	{
		a = question(1, k % 20 + 1, &rows, n, tnp_whole_prefix(model, n), 0, 1);
		if (ask(s, &a, &rows, n, NULL, &parcel) != TNP_ANSWER ||
			tnp_cpu_device.memory_used(device) > limit)
			wrong++;
		tnp_parcel_free(&parcel);
	}
	is_int(wrong, 0, "twenty contexts in turn are answered, within the limit");
	ok(server.store.evictions > 0 && server.store.encodings < 20,
	   "because old ones give way: %llu evictions", (unsigned long long) server.store.evictions);
	a = question(1, 1, &rows, n, tnp_whole_prefix(model, n), n, 1);
	is_int(ask(s, &a, &rows, n, NULL, &parcel), TNP_ANSWER, "the last one is still there");
	tnp_parcel_free(&parcel);
	a.key.serial = 2;
	is_int(ask(s, &a, &rows, n, NULL, &parcel), TNP_MISSING, "the oldest is not");
	tnp_parcel_free(&parcel);

	/* keep one in use: it stays while others come and go */
	a = question(1, 1, &rows, n, tnp_whole_prefix(model, n), n, 1);
	for (uint64_t k = 30; k < 40; k++)
	{
		TnpWireRequest	b = question(1, k, &rows, n, tnp_whole_prefix(model, n), 0, 1);

		if (ask(s, &b, &rows, n, NULL, &parcel) != TNP_ANSWER)
			wrong++;
		tnp_parcel_free(&parcel);
		if (ask(s, &a, &rows, n, NULL, &parcel) != TNP_ANSWER)
			wrong++;
		tnp_parcel_free(&parcel);
	}
	is_int(wrong, 0, "what is used stays");
	is_int(load(s, file, 2), TNP_DONE, "another model finds room");
	close(s);
	end_server("little memory");

	start_server(one / 2);
	s = hello();
	is_int(load(s, file, 1), TNP_FAILED, "too little for the model");
	close(s);
	end_server("too little memory");
	tnp_model_close(model);
	test_rows_free(&rows);
}

/* ---- a client that is killed ----------------------------------------------------------------- */

static pid_t victim = 0;		/* to be killed when the device has asked ... */
static int	polls_left = 0;		/* ... this many times more */

/* As the server's own, and in the middle of the work the client's process is killed. */
static bool
unwanted_of_the_dead(void *argument)
{
	if (victim > 0 && polls_left-- == 0)
	{
		kill(victim, SIGKILL);
		waitpid(victim, NULL, 0);
		victim = 0;
	}
	return tnp_unwanted(argument);
}

/* A client is killed while its context is encoded or its request answered: nothing stays. */
static void
test_killed(const TestModel *file)
{
	TnpDeviceConfig config = {0, 0, TNP_PRECISION_FP32, unwanted_of_the_dead, quiet, &server};
	TnpError	error;
	TnpModel   *model;
	TestRows	rows;
	TnpWireRequest	a;
	TnpRows		given,
				queries;
	uint64_t	length;
	void	   *bytes;
	size_t		idle;
	int			s,
				wrong = 0,
				dropped = 0;

	if (tnp_model_open(&tnp_default_env, file->bytes, file->length, &model, &error) != TNP_OK)
		exit(1);
	test_rows_make(&rows, tnp_model_info(model), 220, 3);
	memset(&server, 0, sizeof(server));
	server.listener = -1;
	server.most_bytes = TNP_SERVER_BYTES;
	server.silent = true;
	if (tnp_cpu_device.init(&config, &device, &error) != TNP_OK)
		exit(1);
	tnp_store_init(&server.store, &tnp_cpu_device, device);
	s = hello();
	is_int(load(s, file, 1), TNP_DONE, "a model");
	close(s);
	work();
	idle = tnp_cpu_device.memory_used(device);

	a = question(1, 77, &rows, 200, tnp_whole_prefix(model, 200), 0, 20);
	a.flags = TNP_EXECUTE_OWN;
	a.kind = TNP_REQUEST_SAMPLE;
	a.draws = 300;
	given = test_slice(&rows, 0, 200);
	queries = test_slice(&rows, 200, 20);
	length = tnp_wire_request_length(&a);
	bytes = malloc((size_t) length);
	tnp_wire_write_request(&a, &given, &queries, NULL, bytes);
	for (int after = 0; after < 12; after += getenv("TNP_QUICK") != NULL ? 5 : 1)
	{
		int			ends[2];
		uint64_t	cancelled = server.cancelled;

		if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0 || !tnp_add_client(&server, ends[0]))
			exit(1);
		victim = fork();
		if (victim == 0)
		{
			put(ends[1], TNP_HELLO, 1, NULL, 0);
			for (char byte[sizeof(TnpHeader) + sizeof(TnpWireWelcome)];;)
				if (recv(ends[1], byte, sizeof(byte), MSG_WAITALL) == (ssize_t) sizeof(byte))
					break;
			put(ends[1], TNP_EXECUTE, 2, bytes, length);
			for (;;)
				pause();
		}
		close(ends[1]);
		polls_left = after;
		/* the question arrives when its sender gets to it */
		for (int turns = 0; victim > 0 && turns < 6000; turns++)
		{
			tnp_serve_once(&server, 10);
			tnp_answer_queued(&server);
		}
		work();
		/* where the device had little left to do the answer may be there, unread */
		if (victim > 0 || server.n_clients != 0 || server.store.encodings != 0 ||
			tnp_cpu_device.memory_used(device) != idle)
			wrong++;
		dropped += server.cancelled > cancelled;
		wrong += server.failures != 0;
	}
	is_int(wrong, 0, "a client is killed while it waits: no client, no encoding, no memory of it "
					 "stays, and nothing has failed");
	ok(dropped > 0, "and what it asked is dropped");
	free(bytes);
	end_server("a killed client");
	tnp_model_close(model);
	test_rows_free(&rows);
}

/* ---- what a device leaves to sessions -------------------------------------------------------- */

static TnpStatus
leave_all(TnpDeviceEncoding *encoding, int n, TnpRequest *requests, TnpError *error)
{
	(void) encoding;
	(void) error;
	for (int i = 0; i < n; i++)
		requests[i].status = tnp_fail(&requests[i].error, TNP_NOT_HERE, "the session's");
	return TNP_OK;
}

static void
test_left(const TestModel *file)
{
	TnpDeviceApi api = tnp_cpu_device;
	TnpModel   *model;
	TestRows	rows;
	TnpWireRequest a;
	TnpParcel	parcel;
	TnpError	error;
	int			s;

	api.answer = leave_all;
	if (tnp_model_open(&tnp_default_env, file->bytes, file->length, &model, &error) != TNP_OK)
		exit(1);
	test_rows_make(&rows, tnp_model_info(model), 45, 3);
	start_server(0);
	server.store.api = &api;
	s = hello();
	is_int(load(s, file, 1), TNP_DONE, "a model");
	a = question(1, 1, &rows, 40, tnp_whole_prefix(model, 40), 0, 5);
	is_int(ask(s, &a, &rows, 40, NULL, &parcel), TNP_FAILED, "a question that the device leaves");
	ok(((TnpWireFailure *) parcel.bytes)->status == TNP_NOT_HERE, "is told to be the session's");
	tnp_parcel_free(&parcel);
	is_int((long long) server.requests, 1, "it was a request");
	is_int((long long) server.failures, 0, "and has not failed");
	close(s);
	work();
	end_server("left to sessions");
	tnp_model_close(model);
	test_rows_free(&rows);
}

/* ---- a device without room, and one that is lost --------------------------------------------- */

static int	calls;

/* There is room for one request. */
static TnpStatus
answer_one(TnpDeviceEncoding *encoding, int n, TnpRequest *requests, TnpError *error)
{
	(void) encoding;
	calls++;
	if (n > 1)
		return tnp_fail(error, TNP_NO_MEMORY, "out of device memory");
	requests[0].status = TNP_OK;
	return TNP_OK;
}

static void
test_little_room(void)
{
	TnpDeviceApi api = tnp_cpu_device;
	TnpStore	store;
	TnpStoredModel model = {0};
	TnpStored	stored = {.model = &model};
	TnpRequest	requests[3] = {{0}};
	int			answered = 0;

	api.answer = answer_one;
	start_server(0);
	tnp_store_init(&store, &api, device);
	calls = 0;
	tnp_store_answer(&store, &stored, 3, requests);
	for (int i = 0; i < 3; i++)
		answered += requests[i].status == TNP_OK;
	is_int(answered, 3, "requests that have no room together are answered one by one");
	is_int(calls, 4, "each of them once");
	end_server("little room");
}

static bool device_is_lost;

static bool
lost(const TnpDevice *of)
{
	(void) of;
	return device_is_lost;
}

static TnpStatus
lose(TnpDeviceEncoding *encoding, int n, TnpRequest *requests, TnpError *error)
{
	(void) encoding;
	(void) n;
	(void) requests;
	device_is_lost = true;
	return tnp_fail(error, TNP_BAD_ARGUMENT, "an illegal address");
}

static void
test_lost(const TestModel *file)
{
	TnpDeviceApi api = tnp_cpu_device;
	TnpModel   *model;
	TestRows	rows;
	TnpError	error;
	int			s[2];

	api.answer = lose;
	api.lost = lost;
	device_is_lost = false;
	if (tnp_model_open(&tnp_default_env, file->bytes, file->length, &model, &error) != TNP_OK)
		exit(1);
	test_rows_make(&rows, tnp_model_info(model), 45, 3);
	start_server(0);
	server.store.api = &api;
	s[0] = hello();
	s[1] = hello();
	is_int(load(s[0], file, 1), TNP_DONE, "a model");
	for (int i = 0; i < 2; i++)
	{
		TnpWireRequest a = question(1, (uint64_t) i + 1, &rows, 40, tnp_whole_prefix(model, 40),
									0, 5);

		put_question(s[i], &a, &rows, 40, NULL);
	}
	while (server.n_queued < 2)
		tnp_serve_once(&server, 10);
	tnp_answer_queued(&server);
	ok(server.ending && server.code == 2, "a lost device ends the server");
	tnp_tell_queued(&server);
	work();
	for (int i = 0; i < 2; i++)
	{
		TnpParcel	parcel;

		ok(get(s[i], 3, &parcel) == TNP_FAILED, "client %d is told", i);
		is_string(((TnpWireFailure *) parcel.bytes)->message, "an illegal address", "of what");
		ok(((TnpWireFailure *) parcel.bytes)->fault == 1, "which is no fault of its request");
		tnp_parcel_free(&parcel);
		close(s[i]);
	}
	work();
	end_server("lost");
	tnp_model_close(model);
	test_rows_free(&rows);
}

/* ---- more clients than files ----------------------------------------------------------------- */

static void
test_files(void)
{
	char		path[] = "/tmp/tnp_server_test.XXXXXX";
	struct rlimit limit,
				few;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int			s[2],
				lowest;

	if (mkdtemp(path) == NULL || getrlimit(RLIMIT_NOFILE, &limit) != 0)
		exit(1);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", path);
	start_server(0);
	if (!tnp_listen(&server, address.sun_path))
		exit(1);
	for (int i = 0; i < 2; i++)
	{
		s[i] = socket(AF_UNIX, SOCK_STREAM, 0);
		if (connect(s[i], (struct sockaddr *) &address, sizeof(address)) != 0)
			exit(1);
		fcntl(s[i], F_SETFL, O_NONBLOCK);
	}
	/* the next file that is opened is the last one */
	lowest = dup(s[0]);
	close(lowest);
	few = limit;
	few.rlim_cur = (rlim_t) lowest + 1;
	if (setrlimit(RLIMIT_NOFILE, &few) != 0)
		exit(1);
	tnp_serve_once(&server, 0);
	is_int((long long) server.n_clients, 1, "one client finds a file");
	ok(server.backed_off_until > 0,
	   "a client without a place is left to wait, and the loop does not turn about it");
	is_int(say(s[0], TNP_HELLO, 1, NULL, 0), TNP_WELCOME, "the first is served meanwhile");
	setrlimit(RLIMIT_NOFILE, &limit);
	for (int turns = 0; server.n_clients < 2 && turns < 1000; turns++)
		tnp_serve_once(&server, 50);
	is_int(say(s[1], TNP_HELLO, 1, NULL, 0), TNP_WELCOME,
		   "when there are files again it is served");
	tnp_serve_once(&server, 0);
	close(s[0]);
	close(s[1]);
	work();
	end_server("few files");
	unlink(address.sun_path);
	rmdir(path);
}

int
main(void)
{
	int			n;
	TestModel  *models = test_models(&n);
	const TestModel *appendable = NULL;

	for (int i = 0; i < n; i++)
	{
		if (getenv("TNP_QUICK") == NULL || i % 6 == 0)
			test_model(&models[i]);
		/* head_bars is the one of its kind that a quick run has */
		if (strncmp(models[i].name, "prefix_causal", strlen("prefix_causal")) == 0
			|| (appendable == NULL && strcmp(models[i].name, "head_bars") == 0))
			appendable = &models[i];
	}
	if (!ok(appendable != NULL, "the models of the test are there"))
		return done_testing();
	test_clients(appendable);
	test_memory(appendable);
	test_killed(appendable);
	test_left(appendable);
	test_little_room();
	test_lost(appendable);
	/*
	 * valgrind, which asks for fewer rounds, counts files by itself, and closes the one too many
	 * instead of leaving its caller to wait
	 */
	if (getenv("TNP_QUICK") == NULL)
		test_files();
	test_models_free(models, n);
	return done_testing();
}
