/*
 * extend.c: appends to an entry that a reuse proof has found, without a search.
 *
 * The caller (named/acquire.c) has a pin and knows that the rows come after those of the entry. It
 * appends them under the entry's claim, behind the published length (entries.c), and lets the
 * length follow. Between claim and yield nothing raises; where something might, as where a device
 * has to be prepared, NULL sends the caller to the search of lookup.c, which reports any error.
 *
 * Rows of the own transaction must never be found by another session. For the time of one request
 * they may lie behind the published length: readers look at no row there, and the claim keeps other
 * writers away. tnp_encoding_forget() removes them before the claim ends.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/cache/extend.h"

#include "pg/cache/route.h"
#include "pg/device/device_client.h"
#include "pg/models/engine_env.h"
#include "pg/rows/rows.h"

/* Whether a request about n rows can be answered while rows are appended to this entry. */
static bool
entry_can_answer(const PosteriorCacheEntry *entry, PosteriorModel *model, int64 n,
				 const PosteriorPendingRequest *pending)
{
	return pending != NULL && pending->request->kind == TNP_REQUEST_PREDICT
		&& !posterior_cached_on_device(entry->cached)
		&& posterior_executes_here(model, n, pending->request)
		&& n <= posterior_cached_capacity(entry->cached);
}

/*
 * Append to a claimed entry of n rows, and answer the request if that can be done along with it.
 * The last `own` rows are there only meanwhile.
 */
static TnpStatus
entry_append_and_answer(PosteriorModel *model, PosteriorCacheEntry *entry, int64 n,
						const TnpRows *more, int64 own, PosteriorPendingRequest *pending,
						TnpError *error)
{
	TnpRows		shared = *more;
	TnpStatus	status;

	shared.n -= own;
	if (!entry_can_answer(entry, model, n + more->n, pending))
		return posterior_cached_append(model, entry->cached, &shared, error);
	posterior_encode_event_begin();
	status = tnp_append_predict(entry->cached->encoding, more, &pending->request->queries,
								pending->request->answer, error);
	posterior_encode_event_end();
	pending->answered = status == TNP_OK;
	if (pending->answered)
		tnp_encoding_forget(entry->cached->encoding, n + shared.n);
	return status;
}

/* Whether rows n … of the entry, which are published, are these. */
static bool
entry_has_rows(const TnpRows *there, int64 n, const TnpRows *rows, int64 n_rows)
{
	int			targets = tnp_rows_targets(there);

	return n_rows == 0
		|| (memcmp(there->y + n * targets, rows->y, n_rows * targets * sizeof(double)) == 0
			&& memcmp(there->x + n * there->n_features, rows->x,
					  n_rows * there->n_features * sizeof(double)) == 0);
}

PosteriorContextHandle *
posterior_handle_extend(PosteriorModel *model, const uint8 *kinds,
						const PosteriorLabelList *labels, PosteriorCacheEntry *entry, int64 n,
						const TnpRows *more, int64 own, PosteriorPendingRequest *pending)
{
	PosteriorContextHandle *e;
	int64		length = posterior_entry_length(entry),
				shared = more->n - own,
				total = n + shared;
	TnpRows		there = posterior_cached_view(entry->cached);
	TnpError	error;

	if (length >= total)
	{
		/* another backend has appended these rows, or others */
		if (!entry_has_rows(&there, n, more, shared))
			return NULL;
		return posterior_handle_of_entry(model, there.n_features, kinds, labels, entry, total);
	}
	/* nothing may raise while the caller has the pin */
	if (posterior_cached_on_device(entry->cached) && !posterior_device_at_hand(model))
		return NULL;
	if (length != n || total > posterior_cached_capacity(entry->cached)
		|| !posterior_entry_claim(entry))
		return NULL;
	if (posterior_entry_length(entry) != n
		|| entry_append_and_answer(model, entry, n, more, own, pending, &error) != TNP_OK)
	{
		/* the search reports the error, if it lasts */
		posterior_entry_yield(entry);
		return NULL;
	}
	posterior_entry_set_length(entry, total);
	posterior_entry_yield(entry);
	e = posterior_handle_of_entry(model, there.n_features, kinds, labels, entry, total);
	if (e != NULL && pending != NULL && pending->answered)
	{
		e->by = POSTERIOR_BY_CPU;
		e->transient = own > 0;
	}
	return e;
}

/* Answer a request with rows that are in the entry only meanwhile. True if it has been answered. */
static bool
entry_answer_beyond(PosteriorCacheEntry *entry, PosteriorModel *model, int64 n, const TnpRows *own,
					PosteriorPendingRequest *pending)
{
	TnpError	error;

	if (!entry_can_answer(entry, model, n + own->n, pending) || !posterior_entry_claim(entry))
		return false;
	if (posterior_entry_length(entry) == n)
		entry_append_and_answer(model, entry, n, own, own->n, pending, &error);
	posterior_entry_yield(entry);
	return pending->answered;
}

PosteriorContextHandle *
posterior_handle_with_own_rows(PosteriorContextHandle *e, const TnpRows *more,
							   PosteriorPendingRequest *pending)
{
	int64		n = posterior_cached_rows(e->cached);
	PosteriorCachedContext *own;
	TnpError	error;

	posterior_entries_note_lookup(CACHE_LOOKUP_PRIVATE);
	/*
	 * the device has nothing of an encoding that is not kept before the first request: it cannot
	 * fail
	 */
	if (e->entry != NULL)
	{
		if (entry_answer_beyond(e->entry, e->model, n, more, pending))
		{
			e->by = POSTERIOR_BY_CPU;
			e->transient = true;
			return e;
		}
		if (posterior_cached_copy(e->model, e->cached, n, n + more->n, false, &own, &error)
			!= TNP_OK)
			return posterior_handle_fail(e, &error);
		posterior_cached_free(e->cached);
		e->cached = own;
		if (posterior_entry_has_model(e->entry, e->model))
			posterior_entry_unpin(e->entry);
		else
			e->lender = e->entry;
		e->entry = NULL;
	}
	if (posterior_cached_append(e->model, e->cached, more, &error) != TNP_OK)
		return posterior_handle_fail(e, &error);
	return e;
}
