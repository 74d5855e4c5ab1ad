/*
 * answers.c: takes requests from the queue and asks the device, as many at once as are about one
 * encoding.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "server/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POLL_MS 1.0				/* the device may poll as often as it likes */

/* The clients whose requests are with the device. */
typedef struct Batch
{
	int			n;
	TnpClient  *clients[TNP_SERVER_BATCH];
	TnpRequest	requests[TNP_SERVER_BATCH];
	TnpParcel	answers[TNP_SERVER_BATCH];
} Batch;

static Batch batch;

bool
tnp_unwanted(void *argument)
{
	TnpServer  *server = argument;

	if (tnp_now() - server->turned >= POLL_MS)
		tnp_serve_once(server, 0);
	if (server->ending)
		return true;
	for (int i = 0; i < batch.n; i++)
		if (!batch.clients[i]->gone)
			return false;
	return batch.n > 0;
}

/* ---- the queue ------------------------------------------------------------------------------- */

/* Take a client out of the queue, `last` being the one before it. */
static void
queue_take(TnpServer *server, TnpClient *c, TnpClient *last)
{
	*(last != NULL ? &last->behind : &server->queue) = c->behind;
	if (server->queue_end == c)
		server->queue_end = last;
	server->n_queued--;
	c->state = TNP_ANSWERING;
	batch.clients[batch.n++] = c;
}

static bool
same_encoding(const TnpClient *a, const TnpClient *b)
{
	return b->header.kind == TNP_EXECUTE
		&& memcmp(&a->query->request->key, &b->query->request->key, sizeof(TnpWireKey)) == 0
		&& memcmp(a->query->request->model, b->query->request->model, TNP_WIRE_MODEL) == 0;
}

/* The oldest request, and all others about its encoding. */
static void
take_batch(TnpServer *server)
{
	TnpClient  *first = server->queue,
			   *last = NULL,
			   *next;

	batch.n = 0;
	queue_take(server, first, NULL);
	if (first->header.kind != TNP_EXECUTE)
		return;
	for (TnpClient *c = server->queue; c != NULL && batch.n < TNP_SERVER_BATCH; c = next)
	{
		next = c->behind;
		if (same_encoding(first, c))
			queue_take(server, c, last);
		else
			last = c;
	}
}

/* The client of this place has its reply: close the gap. */
static void
remove_from_batch(int i)
{
	batch.n--;
	memmove(&batch.clients[i], &batch.clients[i + 1], (size_t) (batch.n - i) * sizeof(TnpClient *));
}

/* ---- requests -------------------------------------------------------------------------------- */

/* A failure of the device itself ends the process, when all clients have been told. */
static bool
is_fault(TnpServer *server)
{
	if (!server->store.api->lost(server->store.device))
		return false;
	server->ending = true;
	server->code = 2;
	return true;
}

static void
reply_status(TnpServer *server, TnpClient *c, TnpStatus status, const TnpError *error)
{
	bool		known = server->code != 0,
				fault = is_fault(server);

	if (fault && !known)
	{
		server->failure = *error;
		tnp_say(server, 'W', "the device has failed: %s%s%s", error->message,
				error->detail[0] != '\0' ? ": " : "", error->detail);
	}
	tnp_reply_failure(server, c, status, fault || (status == TNP_INTERRUPTED && server->ending),
					  error);
}

/* The server ends before it has come to this client's request. */
static void
reply_end(TnpServer *server, TnpClient *c)
{
	TnpError	ends = {TNP_INTERRUPTED, "the server ends", ""};

	tnp_reply_failure(server, c, TNP_INTERRUPTED, true,
					  server->code != 0 ? &server->failure : &ends);
}

/*
 * Bring the batch's encoding up to what its requests want; those that cannot be answered get their
 * reply now.
 */
static TnpStored *
batch_prepare(TnpServer *server)
{
	TnpStored  *stored = NULL;

	for (int i = 0; i < batch.n;)
	{
		TnpClient  *c = batch.clients[i];
		TnpStored  *s;
		TnpWireMissing missing;
		TnpError	error = {TNP_OK, "", ""};
		TnpStatus	status = tnp_store_prepare(&server->store, c->query, c->number, &s, &missing,
											   &error);

		if (status == TNP_OK && s != NULL)
		{
			stored = s;
			i++;
			continue;
		}
		remove_from_batch(i);
		if (status == TNP_OK)
			tnp_reply(server, c, TNP_MISSING, &missing, sizeof(missing));
		else
			reply_status(server, c, status, &error);
		if (server->ending)
			return NULL;
	}
	return stored;
}

/*
 * Fill the engine's request from a client's; its answer's bytes are added to *bytes; false when it
 * has got its reply.
 */
static bool
make_request(TnpServer *server, const TnpStored *stored, int i, uint64_t *bytes)
{
	TnpClient  *c = batch.clients[i];
	const TnpWireQuery *q = c->query;
	TnpDistributionKind kind;
	int			components;
	uint64_t	length;
	TnpError	error = {TNP_NO_MEMORY, "out of memory", "of the server, for an answer"};
	bool		fits;

	if (c->gone)
	{
		error = (TnpError) {TNP_INTERRUPTED, "no client waits for the answer any more", ""};
		remove_from_batch(i);
		reply_status(server, c, error.status, &error);
		return false;
	}
	server->store.api->model_answer_shape(stored->model->model, &kind, &components);
	batch.answers[i] = (TnpParcel) {NULL, 0, false};
	fits = tnp_wire_answer_length(q->request, kind, components, &length);
	if (!fits)
		error = (TnpError) {TNP_BAD_ARGUMENT, "too much is asked at once",
							"An answer has at most 1 GiB."};
	if (!fits || !tnp_parcel_alloc(length, &batch.answers[i]))
	{
		remove_from_batch(i);
		reply_status(server, c, error.status, &error);
		return false;
	}
	*bytes += length;
	batch.requests[i] = (TnpRequest) {
		.kind = (TnpRequestKind) q->request->kind,.rows = q->request->rows,.queries = q->queries,
		.reductions = q->request->reductions,
		.n_levels = q->request->n_levels,.levels = q->levels,.seed = q->request->seed,
		.first_draw = q->request->first_draw,.draws = q->request->draws,
		.orders = q->request->orders,.answer = batch.answers[i].bytes
	};
	return true;
}

/* Requests without queries have their answer when the rows are encoded. */
static void
reply_to_builders(TnpServer *server)
{
	for (int i = 0; i < batch.n;)
	{
		TnpClient  *c = batch.clients[i];

		if (c->query->request->queries > 0)
		{
			i++;
			continue;
		}
		remove_from_batch(i);
		tnp_reply(server, c, TNP_ANSWER, NULL, 0);
	}
}

/* Answer the first requests of the batch: as many as their answers' size allows. */
static void
answer_some(TnpServer *server, TnpStored *stored)
{
	TnpClient  *clients[TNP_SERVER_BATCH];
	uint64_t	bytes = 0;
	int			n = 0;

	while (n < batch.n && (n == 0 || bytes < server->most_bytes))
		if (make_request(server, stored, n, &bytes))
			n++;
	if (n == 0)
		return;
	tnp_store_answer(&server->store, stored, n, batch.requests);
	server->batches++;
	if ((uint64_t) n > server->largest_batch)
		server->largest_batch = (uint64_t) n;
	/* nothing turns the loop while the replies go out */
	memcpy(clients, batch.clients, (size_t) n * sizeof(TnpClient *));
	batch.n -= n;
	for (int i = 0; i < batch.n; i++)
		batch.clients[i] = batch.clients[i + n];
	for (int i = 0; i < n; i++)
	{
		TnpRequest *r = &batch.requests[i];

		if (r->status == TNP_OK)
		{
			server->cancelled += clients[i]->gone;
			tnp_reply_parcel(server, clients[i], TNP_ANSWER, &batch.answers[i]);
		}
		else
			reply_status(server, clients[i], r->status, &r->error);
		tnp_parcel_free(&batch.answers[i]);
	}
}

static void
answer_batch(TnpServer *server)
{
	TnpStored  *stored = batch_prepare(server);

	if (stored == NULL)
		return;
	reply_to_builders(server);
	while (batch.n > 0 && !server->ending)
		answer_some(server, stored);
}

static void
client_load(TnpServer *server, TnpClient *c)
{
	const TnpWireLoad *l;
	const void *file;
	TnpError	error;
	TnpStatus	status = tnp_wire_read_load(c->payload.bytes, c->payload.length, &l, &file, &error);

	if (status == TNP_OK && l->length == 0 && tnp_store_model(&server->store, l->model) == NULL)
	{
		TnpWireMissing missing = {1, 0};

		tnp_reply(server, c, TNP_MISSING, &missing, sizeof(missing));
		return;
	}
	if (status == TNP_OK)
		status = tnp_store_load(&server->store, l->model, file, l->length, &error);
	if (status == TNP_OK)
		tnp_reply(server, c, TNP_DONE, NULL, 0);
	else
		reply_status(server, c, status, &error);
}

void
tnp_answer_queued(TnpServer *server)
{
	TnpClient  *first;

	for (size_t i = 0; i < server->n_released; i++)
	{
		TnpReleased *r = &server->released[i];

		if (r->all)
			tnp_store_forget_client(&server->store, r->client);
		else
			tnp_store_forget(&server->store, &r->key, r->client);
	}
	server->n_released = 0;
	if (server->queue == NULL)
		return;
	server->answering = true;
	take_batch(server);
	first = batch.clients[0];
	if (first->header.kind == TNP_EXECUTE)
	{
		server->requests += (uint64_t) batch.n;
		answer_batch(server);
	}
	else
		client_load(server, first);
	/* those that the end came before */
	for (int i = 0; i < batch.n; i++)
		if (batch.clients[i]->state == TNP_ANSWERING)
			reply_end(server, batch.clients[i]);
	batch.n = 0;
	server->answering = false;
	tnp_sweep(server);
}

void
tnp_tell_queued(TnpServer *server)
{
	while (server->queue != NULL)
	{
		batch.n = 0;
		queue_take(server, server->queue, NULL);
		reply_end(server, batch.clients[0]);
	}
	batch.n = 0;
}
