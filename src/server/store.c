/*
 * store.c: models and encodings on the device.
 *
 * Encodings stand in a list by their last use, and so do models. What the device cannot hold it
 * refuses exactly (device_api.h); then the least recently used encoding that the request does not
 * need is freed, or a model without encodings if that was used longer ago, and the device is asked
 * again.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "server/store.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"

static void TNP_PRINTF(2, 3)
store_say(TnpStore *store, const char *format,...)
{
	char		line[256];
	va_list		args;

	if (store->log == NULL)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	store->log(store->arg, line);
}

void
tnp_store_init(TnpStore *store, const TnpDeviceApi *api, TnpDevice *device)
{
	memset(store, 0, sizeof(*store));
	store->api = api;
	store->device = device;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static TnpStored **
store_bucket(TnpStore *store, const TnpWireKey *key)
{
	uint64_t	hash = (key->serial ^ key->epoch) * UINT64_C(0x9e3779b97f4a7c15);

	return &store->buckets[(hash >> 32) % TNP_STORE_BUCKETS];
}

static void
unlink_stored(TnpStore *store, TnpStored *s)
{
	*(s->newer != NULL ? &s->newer->older : &store->newest) = s->older;
	*(s->older != NULL ? &s->older->newer : &store->oldest) = s->newer;
}

static void
push_stored(TnpStore *store, TnpStored *s)
{
	s->newer = NULL;
	s->older = store->newest;
	*(store->newest != NULL ? &store->newest->newer : &store->oldest) = s;
	store->newest = s;
	s->used = ++store->clock;
}

static void
unlink_model(TnpStore *store, TnpStoredModel *m)
{
	*(m->newer != NULL ? &m->newer->older : &store->newest_model) = m->older;
	*(m->older != NULL ? &m->older->newer : &store->oldest_model) = m->newer;
}

static void
push_model(TnpStore *store, TnpStoredModel *m)
{
	m->newer = NULL;
	m->older = store->newest_model;
	*(store->newest_model != NULL ? &store->newest_model->newer : &store->oldest_model) = m;
	store->newest_model = m;
	m->used = ++store->clock;
}

static void
free_stored(TnpStore *store, TnpStored *s)
{
	TnpStored **link = store_bucket(store, &s->key);

	while (*link != s)
		link = &(*link)->next;
	*link = s->next;
	unlink_stored(store, s);
	store->api->encoding_free(s->encoding);
	s->model->encodings--;
	store->encodings--;
	free(s);
}

static void
free_model(TnpStore *store, TnpStoredModel *m)
{
	unlink_model(store, m);
	store->api->model_free(m->model);
	store->models--;
	free(m);
}

void
tnp_store_clear(TnpStore *store)
{
	while (store->newest != NULL)
		free_stored(store, store->newest);
	while (store->newest_model != NULL)
		free_model(store, store->newest_model);
}

/* Free what was used least recently, but neither of these two; false if there is nothing else. */
static bool
store_evict(TnpStore *store, const TnpStored *needed, const TnpStoredModel *needed_model)
{
	TnpStored  *s = store->oldest;
	TnpStoredModel *m = store->oldest_model;

	if (s == needed && s != NULL)
		s = s->newer;
	while (m != NULL && (m == needed_model || m->encodings > 0))
		m = m->newer;
	if (m != NULL && (s == NULL || m->used < s->used))
	{
		store_say(store, "a model of %zu bytes is freed to make room",
				  store->api->model_bytes(m->model));
		free_model(store, m);
	}
	else if (s != NULL)
	{
		store_say(store, "an encoding of %lld rows, %zu bytes, is freed to make room",
				  (long long) store->api->encoding_rows(s->encoding),
				  store->api->encoding_bytes(s->encoding));
		free_stored(store, s);
	}
	else
		return false;
	store->evictions++;
	return true;
}

/* ---- models ---------------------------------------------------------------------------------- */

TnpStoredModel *
tnp_store_model(TnpStore *store, const uint8_t id[TNP_WIRE_MODEL])
{
	for (TnpStoredModel *m = store->newest_model; m != NULL; m = m->older)
		if (memcmp(m->id, id, sizeof(m->id)) == 0)
		{
			unlink_model(store, m);
			push_model(store, m);
			return m;
		}
	return NULL;
}

TnpStatus
tnp_store_load(TnpStore *store, const uint8_t id[TNP_WIRE_MODEL], const void *bytes,
			   uint64_t length, TnpError *error)
{
	TnpStoredModel *m;
	TnpStatus	status;

	if (tnp_store_model(store, id) != NULL)
		return TNP_OK;
	m = calloc(1, sizeof(TnpStoredModel));
	if (m == NULL)
		return tnp_fail(error, TNP_NO_MEMORY, "out of memory");
	do
		status = store->api->model_load(store->device, bytes, (size_t) length, &m->model, error);
	while (status == TNP_NO_MEMORY && store_evict(store, NULL, NULL));
	if (status != TNP_OK)
	{
		free(m);
		return status;
	}
	memcpy(m->id, id, sizeof(m->id));
	push_model(store, m);
	store->models++;
	store_say(store, "a model of %llu parameters is loaded, %zu bytes",
			  (unsigned long long) store->api->model_info(m->model)->n_parameters,
			  store->api->model_bytes(m->model));
	return TNP_OK;
}

/* ---- encodings ------------------------------------------------------------------------------- */

static TnpStored *
store_find(TnpStore *store, const TnpWireKey *key)
{
	TnpStored  *s = *store_bucket(store, key);

	while (s != NULL && (s->key.epoch != key->epoch || s->key.serial != key->serial))
		s = s->next;
	return s;
}

/* Encode the first rows of a request, which all came with it. */
static TnpStatus
store_build(TnpStore *store, const TnpWireQuery *q, uint64_t client, TnpStoredModel *m,
			TnpStored **stored, TnpError *error)
{
	TnpStored  *s = calloc(1, sizeof(TnpStored));
	TnpRows		rows = q->given;
	TnpStatus	status;

	if (s == NULL)
		return tnp_fail(error, TNP_NO_MEMORY, "out of memory");
	do
		status = store->api->encoding_build(m->model, &rows, q->request->prefix,
											q->request->capacity,
											&s->encoding, error);
	while (status == TNP_NO_MEMORY && store_evict(store, NULL, m));
	if (status != TNP_OK)
	{
		free(s);
		return status;
	}
	s->model = m;
	s->key = q->request->key;
	s->owner = (q->request->flags & TNP_EXECUTE_OWN) != 0 ? client : 0;
	s->prefix = q->request->prefix;
	s->n_features = q->request->n_features;
	s->n_classes = q->request->n_classes;
	s->next = *store_bucket(store, &s->key);
	*store_bucket(store, &s->key) = s;
	push_stored(store, s);
	m->encodings++;
	store->encodings++;
	store->builds++;
	*stored = s;
	return TNP_OK;
}

/* Append those of the request's rows that are not there yet. */
static TnpStatus
store_append(TnpStore *store, const TnpWireQuery *q, TnpStored *s, TnpError *error)
{
	int64_t		skip = store->api->encoding_rows(s->encoding) - q->request->first;
	TnpRows		more = tnp_rows_part(&q->given, skip, q->given.n - skip);
	TnpStatus	status;

	do
		status = store->api->encoding_append(s->encoding, &more, error);
	while (status == TNP_NO_MEMORY && store_evict(store, s, s->model));
	if (status == TNP_OK)
		store->appends++;
	return status;
}

TnpStatus
tnp_store_prepare(TnpStore *store, const TnpWireQuery *q, uint64_t client, TnpStored **stored,
				  TnpWireMissing *missing, TnpError *error)
{
	const TnpWireRequest *request = q->request;
	TnpStoredModel *m = tnp_store_model(store, request->model);
	TnpStored  *s = store_find(store, &request->key);
	int64_t		there = 0;

	*stored = NULL;
	*missing = (TnpWireMissing) {m == NULL, 0};
	if (m == NULL)
		return TNP_OK;
	if (s != NULL)
	{
		if (s->model != m || s->prefix != request->prefix || s->n_features != request->n_features
			|| s->n_classes != request->n_classes || (s->owner != 0 && s->owner != client))
			return tnp_fail(error, TNP_BAD_ARGUMENT, "the key belongs to another encoding");
		unlink_stored(store, s);
		push_stored(store, s);
		there = store->api->encoding_rows(s->encoding);
	}
	store->rows += (uint64_t) request->given;
	if (s == NULL ? request->first > 0 || request->given < request->rows : there < request->rows
		&& (request->first > there || request->first + request->given < request->rows))
	{
		missing->rows = there;
		return TNP_OK;
	}
	if (s == NULL)
		return store_build(store, q, client, m, stored, error);
	if (there < request->rows)
	{
		TnpStatus	status = store_append(store, q, s, error);

		if (status != TNP_OK)
			return status;
	}
	else if (request->rows < store->api->encoding_base_rows(s->encoding))
		return tnp_fail(error, TNP_BAD_ARGUMENT, "these rows are not an encoding of their own");
	*stored = s;
	return TNP_OK;
}

/* Have the device answer a request by itself. */
static void
store_answer_one(TnpStore *store, TnpStored *stored, TnpRequest *r)
{
	TnpError	error;
	TnpStatus	status;

	r->status = TNP_INTERRUPTED;
	status = store->api->answer(stored->encoding, 1, r, &error);
	if (status != TNP_OK && r->status == TNP_INTERRUPTED)
	{
		r->status = status;
		r->error = error;
	}
}

void
tnp_store_answer(TnpStore *store, TnpStored *stored, int n, TnpRequest *requests)
{
	TnpError	error = {TNP_INTERRUPTED, "no client waits for the answer any more", ""};
	TnpStatus	status;

	for (int i = 0; i < n; i++)
	{
		requests[i].status = TNP_INTERRUPTED;
		requests[i].error = error;
	}
	status = store->api->answer(stored->encoding, n, requests, &error);
	for (int i = 0; i < n; i++)
	{
		TnpRequest *r = &requests[i];

		if (status != TNP_OK && r->status == TNP_INTERRUPTED)
		{
			r->status = status;
			r->error = error;
		}
	}
	/* one by one they need less room at once */
	for (int i = 0; i < n; i++)
		while (requests[i].status == TNP_NO_MEMORY && !store->api->lost(store->device))
		{
			bool		room = store_evict(store, stored, stored->model);

			if (!room && n == 1)
				break;
			store_answer_one(store, stored, &requests[i]);
			if (!room)
				break;
		}
}

void
tnp_store_forget(TnpStore *store, const TnpWireKey *key, uint64_t client)
{
	TnpStored  *s = store_find(store, key);

	if (s != NULL && s->owner == client)
		free_stored(store, s);
}

void
tnp_store_forget_client(TnpStore *store, uint64_t client)
{
	TnpStored  *older;

	for (TnpStored *s = store->newest; s != NULL; s = older)
	{
		older = s->older;
		if (s->owner == client)
			free_stored(store, s);
	}
}
