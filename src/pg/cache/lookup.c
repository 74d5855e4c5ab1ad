/*
 * lookup.c: encodings for call sites: from a run of the cache, by appending to one, by copying the
 * rows that are common, or built.
 *
 * Between becoming the writer of a run and yielding it only the engine, the device's client and the
 * arena are called, none of which raises: so no error can leave a claim behind.
 *
 * Runs for a device are runs of their own, told from those of the CPU by their key: they hold the
 * rows, and the server has keys and values of them.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/cache/lookup.h"

#include "pg/cache/route.h"
#include "pg/base/bridge.h"
#include "pg/models/engine_env.h"
#include "pg/device/device_client.h"
#include "pg/shmem/progress.h"
#include "pg/models/row_limit.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/memutils.h"

int			posterior_cache_mode = POSTERIOR_CACHE_ON;

/* A search for an encoding, or the making of one. */
typedef struct Attempt
{
	const PosteriorLookup *w;
	bool		device;			/* for a device */
	bool		full;			/* the arena has no room */
	bool		failed;			/* the device did, and the CPU may answer instead */
	/* `error` is to be raised, once the run that it began from is not claimed any more */
	bool		broken;
	TnpError	error;
} Attempt;

static dlist_head held = DLIST_STATIC_INIT(held);

/* At the end of the process memory contexts are not reset: let go of what call sites still hold. */
static void
handles_release_all(int code, Datum argument)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &held)
	{
		PosteriorContextHandle *e = dlist_container(PosteriorContextHandle, node, iter.cur);

		dlist_delete(&e->node);
		if (e->entry != NULL)
			posterior_entry_unpin(e->entry);
	}
	posterior_models_exit();
}

/* An empty one; NULL without memory, so that callers can let go of what they have. */
static PosteriorContextHandle *
handle_make(PosteriorModel *model, int n_features, const uint8 *classes,
			const PosteriorLabelList *labels)
{
	static bool registered = false;
	Size		head = MAXALIGN(sizeof(PosteriorContextHandle));
	PosteriorContextHandle *e;

	if (!registered && posterior_is_shared)
	{
		on_shmem_exit(handles_release_all, (Datum) 0);
		registered = true;
	}
	e = MemoryContextAllocExtended(TopMemoryContext, head + n_features + labels->bytes,
								   MCXT_ALLOC_ZERO | MCXT_ALLOC_NO_OOM);
	if (e == NULL)
		return NULL;
	e->classes = (uint8 *) e + head;
	memcpy(e->classes, classes, n_features);
	e->n_features = n_features;
	e->labels = (PosteriorLabelList) {labels->n, labels->bytes, (char *) e->classes + n_features};
	if (labels->bytes > 0)
		memcpy((char *) e->labels.text, labels->text, labels->bytes);
	e->model = model;
	posterior_model_acquire(model);
	dlist_push_head(&held, &e->node);
	return e;
}

void
posterior_handle_release(PosteriorContextHandle *e)
{
	if (e->other_provider != NULL)
		posterior_handle_release(e->other_provider);
	dlist_delete(&e->node);
	posterior_cached_free(e->cached);
	if (e->entry != NULL)
		posterior_entry_unpin(e->entry);
	posterior_model_release(e->model);
	pfree(e);
}

/*
 * Let go of a half-made encoding and raise what the engine reports; or return NULL, when it is the
 * device that failed and the CPU may answer.
 */
static PosteriorContextHandle *
handle_fail(Attempt *a, PosteriorContextHandle *e, const TnpError *error)
{
	char		name[NAMEDATALEN];

	strlcpy(name, e->model->name, sizeof(name));
	posterior_handle_release(e);
	if (error->status != POSTERIOR_FAULT || !posterior_may_fall_back(error))
		posterior_raise(error, name);
	a->failed = true;
	return NULL;
}

/* The same for one who has a claim to give up first: raise_broken does the rest. */
static PosteriorContextHandle *
handle_break_off(Attempt *a, PosteriorContextHandle *e, const TnpError *error)
{
	posterior_handle_release(e);
	a->error = *error;
	a->broken = true;
	return NULL;
}

static PosteriorContextHandle *
attempt_raise_broken(Attempt *a)
{
	if (a->error.status != POSTERIOR_FAULT || !posterior_may_fall_back(&a->error))
		posterior_raise(&a->error, a->w->model->name);
	a->failed = true;
	return NULL;
}

pg_noreturn static void
raise_no_memory(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("out of memory")));
}

PosteriorContextHandle *
posterior_handle_of_entry(PosteriorModel *model, int n_features, const uint8 *classes,
						  const PosteriorLabelList *labels, PosteriorCacheEntry *entry, int64 n)
{
	PosteriorContextHandle *e = handle_make(model, n_features, classes, labels);
	TnpError	error;

	if (e == NULL)
	{
		posterior_entry_unpin(entry);
		raise_no_memory();
	}
	e->entry = entry;
	if (posterior_cached_first(model, entry->cached, n, &e->cached, &error) != TNP_OK)
	{
		Attempt		none = {0};

		return handle_fail(&none, e, &error);
	}
	return e;
}

#define CHUNK 1024				/* rows appended between two looks of whoever watches */
#define DEVICE_CHUNK 262144

/* Append the rows from `from` on. */
static TnpStatus
attempt_append_rest(const Attempt *a, PosteriorCachedContext *b, int64 from, TnpError *error)
{
	const PosteriorLookup *w = a->w;
	TnpStatus	status = TNP_OK;

	while (status == TNP_OK && from < w->rows.n)
	{
		TnpRows		more = posterior_rows_rest(&w->rows, from);

		more.n = Min(more.n, a->device ? DEVICE_CHUNK : CHUNK);
		posterior_progress(POSTERIOR_SUFFIX, from, w->rows.n);
		status = posterior_cached_append(w->model, b, &more, error);
		from += more.n;
	}
	return status;
}

/* Rows that must be there before others can be appended: the prefix and those of the statistics. */
static int64
lookup_base_rows(const PosteriorLookup *w)
{
	int64		settled = Max(w->prefix, (int64) tnp_model_info(w->model->model)->min_rows);

	return Min(settled, w->rows.n);
}

/*
 * Build the first rows, to which the rest can be appended. All of them, where the model takes rows
 * only as a whole.
 */
static TnpStatus
attempt_build_first(const Attempt *a, PosteriorCachedContext **built, TnpError *error)
{
	const PosteriorLookup *w = a->w;
	TnpRows		first = w->rows;

	if (tnp_model_info(w->model->model)->appendable)
		first.n = lookup_base_rows(w);
	posterior_progress(POSTERIOR_PREFIX, 0, w->rows.n);
	return posterior_cached_build(w->model, a->device, &first, w->prefix, built, error);
}

static PosteriorContextHandle *
attempt_build_private(Attempt *a)
{
	PosteriorContextHandle *e =
		handle_make(a->w->model, a->w->rows.n_features, a->w->classes, &a->w->labels);
	TnpError	error;

	if (e == NULL)
		raise_no_memory();
	if (attempt_build_first(a, &e->cached, &error) != TNP_OK
		|| attempt_append_rest(a, e->cached, posterior_cached_rows(e->cached), &error) != TNP_OK)
		return handle_fail(a, e, &error);
	return e;
}

PosteriorContextHandle *
posterior_handle_build_uncached(const PosteriorLookup *w)
{
	Attempt		a = {.w = w,.device = posterior_build_on_device(w->model, w->rows.n)};

	return attempt_build_private(&a);
}

/*
 * An encoding of one's own that begins with the first `common` rows of a run, whose pin is taken
 * over.
 */
static PosteriorContextHandle *
attempt_copy_private(Attempt *a, PosteriorCacheEntry *entry, int64 common)
{
	const PosteriorLookup *w = a->w;
	PosteriorContextHandle *e = posterior_handle_of_entry(w->model, w->rows.n_features, w->classes,
														  &w->labels, entry, common);
	PosteriorCachedContext *own;
	TnpError	error;

	if (posterior_cached_copy(w->model, e->cached, common, w->rows.n, false, &own, &error)
		!= TNP_OK)
		return handle_fail(a, e, &error);
	posterior_cached_free(e->cached);
	e->cached = own;
	e->entry = NULL;
	posterior_entry_unpin(entry);
	if (attempt_append_rest(a, own, common, &error) != TNP_OK)
		return handle_fail(a, e, &error);
	return e;
}

/*
 * Room that a run is given beyond its rows: enough that appending one by one copies each row a few
 * times in all.
 */
static int64
lookup_capacity(const PosteriorLookup *w)
{
	return w->grows ? w->rows.n + w->rows.n / 4 + 64 : w->rows.n;
}

/* Bytes that a run of this many rows takes, roughly and not less. */
static Size
entry_size_estimate(const Attempt *a, int64 capacity)
{
	Size		row = (a->w->rows.n_features + 1) * sizeof(double);

	return ((a->device ? 0 : tnp_model_info(a->w->model->model)->encoding_bytes_per_row) + row)
			 * (Size) (capacity + 64)
		 + 65536;
}

/* A copy of a body in the arena, evicting others as needed. TNP_NO_MEMORY when it does not fit. */
static TnpStatus
cached_keep(const Attempt *a, PosteriorCachedContext *b, int64 n, int64 capacity,
			PosteriorCachedContext **kept, TnpError *error)
{
	TnpStatus	status;

	*kept = NULL;
	if (!posterior_make_room(entry_size_estimate(a, capacity)))
	{
		error->status = TNP_NO_MEMORY;
		return TNP_NO_MEMORY;
	}
	for (int i = 0;; i++)
	{
		status =
			posterior_cached_copy(a->w->model, b, n, capacity, posterior_is_shared, kept, error);
		if (status != TNP_NO_MEMORY || i == POSTERIOR_EVICTIONS
			|| !posterior_evict(entry_size_estimate(a, capacity) << i))
			return status;
	}
}

/*
 * Build the first rows and put them into the arena. If they do not fit there, all rows are built
 * all the same, in e.
 */
static TnpStatus
attempt_build_kept(Attempt *a, PosteriorContextHandle *e, PosteriorCachedContext **kept,
				   TnpError *error)
{
	PosteriorCachedContext *built;
	TnpStatus	status = attempt_build_first(a, &built, error);
	int64		n;

	if (status != TNP_OK)
		return status;
	n = posterior_cached_rows(built);
	status = cached_keep(a, built, n, lookup_capacity(a->w), kept, error);
	if (status == TNP_NO_MEMORY)
	{
		e->cached = built;
		a->full = true;
		status = attempt_append_rest(a, built, n, error);
		return status == TNP_OK ? TNP_NO_MEMORY : status;
	}
	posterior_cached_free(built);
	return status == TNP_OK ? attempt_append_rest(a, *kept, n, error) : status;
}

/*
 * A new run with all rows: the first `common` of `from` (claimed and pinned, or NULL) and the rest.
 * NULL when another session builds the same, when there is no room (a->full), or when it cannot be
 * made (a->broken). Raises nothing, for `from` is claimed.
 */
static PosteriorContextHandle *
attempt_build_entry(Attempt *a, const PosteriorEntryKey *key, PosteriorCacheEntry *from,
					int64 common)
{
	const PosteriorLookup *w = a->w;
	PosteriorContextHandle *e = handle_make(w->model, w->rows.n_features, w->classes, &w->labels);
	PosteriorCacheEntry *entry =
		e != NULL ? posterior_entry_announce(key, w->model, &a->full) : NULL;
	PosteriorCachedContext *kept = NULL;
	TnpError	error;
	TnpStatus	status;

	if (entry == NULL)
	{
		if (e == NULL)
			a->full = true;
		else
			posterior_handle_release(e);
		return NULL;
	}
	e->entry = entry;
	if (from != NULL)
	{
		status = cached_keep(a, from->cached, common, lookup_capacity(w), &kept, &error);
		if (status == TNP_OK)
			status = attempt_append_rest(a, kept, common, &error);
	}
	else
		status = attempt_build_kept(a, e, &kept, &error);
	/* what is published has been encoded: readers find it on the device */
	if (status == TNP_OK)
		status = posterior_cached_settle(w->model, kept, &error);
	if (status == TNP_OK)
	{
		posterior_entry_publish(entry, kept);
		if (posterior_cached_first(w->model, kept, w->rows.n, &e->cached, &error) != TNP_OK)
			return handle_break_off(a, e, &error);
		return e;
	}
	posterior_cached_free(kept);
	posterior_entry_unlist(entry);
	posterior_entry_yield(entry);
	if (e->cached != NULL && status == TNP_NO_MEMORY)
	{
		e->entry = NULL;
		posterior_entry_unpin(entry);
		return e;
	}
	if (status == TNP_NO_MEMORY)
	{
		a->full = true;
		posterior_handle_release(e);
		return NULL;
	}
	return handle_break_off(a, e, &error);
}

/* Append to a claimed run what it lacks; the claim ends. */
static TnpStatus
entry_append(const PosteriorLookup *w, PosteriorCacheEntry *entry, int64 common, TnpError *error)
{
	TnpRows		more = posterior_rows_rest(&w->rows, common);
	TnpStatus	status;

	posterior_progress(POSTERIOR_SUFFIX, common, w->rows.n);
	status = posterior_cached_append(w->model, entry->cached, &more, error);
	if (status == TNP_OK)
		posterior_entry_set_length(entry, w->rows.n);
	posterior_entry_yield(entry);
	return status;
}

/* Whether a question about n rows can be answered while rows are appended to this run. */
static bool
entry_can_answer(const PosteriorCacheEntry *entry, PosteriorModel *model, int64 n,
				 const PosteriorPendingRequest *question)
{
	return question != NULL && question->request->kind == TNP_REQUEST_PREDICT
		&& !posterior_cached_on_device(entry->cached)
		&& posterior_executes_here(model, n, question->request)
		&& n <= posterior_cached_capacity(entry->cached);
}

/*
 * Append to a claimed run of n rows, and answer the question if that can be done with it. The last
 * `own` rows are there only meanwhile: behind the published length nobody looks, and nobody else
 * writes while the run is claimed.
 */
static TnpStatus
entry_append_and_answer(PosteriorModel *model, PosteriorCacheEntry *entry, int64 n,
						const TnpRows *more, int64 own, PosteriorPendingRequest *question,
						TnpError *error)
{
	TnpRows		shared = *more;
	TnpStatus	status;

	shared.n -= own;
	if (!entry_can_answer(entry, model, n + more->n, question))
		return posterior_cached_append(model, entry->cached, &shared, error);
	status = tnp_append_predict(entry->cached->encoding, more, &question->request->queries,
								question->request->answer, error);
	question->answered = status == TNP_OK;
	if (question->answered)
		tnp_encoding_forget(entry->cached->encoding, n + shared.n);
	return status;
}

PosteriorContextHandle *
posterior_handle_extend(PosteriorModel *model, const uint8 *classes,
						const PosteriorLabelList *labels, PosteriorCacheEntry *entry, int64 n,
						const TnpRows *more, int64 own, PosteriorPendingRequest *question)
{
	PosteriorContextHandle *e;
	int64		length = posterior_entry_length(entry),
				shared = more->n - own,
				total = n + shared;
	TnpRows		there = posterior_cached_view(entry->cached);
	TnpError	error;

	if (length >= total)
	{
		/* somebody has appended these rows, or others */
		if (shared > 0
			&& (memcmp(there.y + n, more->y, shared * sizeof(double)) != 0
				|| memcmp(there.x + n * there.n_features, more->x,
						  shared * there.n_features * sizeof(double))
					   != 0))
			return NULL;
		return posterior_handle_of_entry(model, there.n_features, classes, labels, entry, total);
	}
	/*
	 * nothing may raise while the caller has the pin: whatever has to be prepared goes the long way
	 */
	if (posterior_cached_on_device(entry->cached) && !posterior_device_at_hand(model))
		return NULL;
	if (length != n || total > posterior_cached_capacity(entry->cached)
		|| !posterior_entry_claim(entry))
		return NULL;
	if (posterior_entry_length(entry) != n
		|| entry_append_and_answer(model, entry, n, more, own, question, &error) != TNP_OK)
	{
		/* whatever it was, the long way round says it */
		posterior_entry_yield(entry);
		return NULL;
	}
	posterior_entry_set_length(entry, total);
	posterior_entry_yield(entry);
	e = posterior_handle_of_entry(model, there.n_features, classes, labels, entry, total);
	if (e != NULL && question != NULL && question->answered)
	{
		e->by = POSTERIOR_BY_CPU;
		e->transient = own > 0;
	}
	return e;
}

/* Answer a question with rows that are in the run only meanwhile. True if it has been answered. */
static bool
entry_answer_beyond(PosteriorCacheEntry *entry, PosteriorModel *model, int64 n, const TnpRows *own,
					PosteriorPendingRequest *question)
{
	TnpError	error;

	if (!entry_can_answer(entry, model, n + own->n, question) || !posterior_entry_claim(entry))
		return false;
	if (posterior_entry_length(entry) == n)
		entry_append_and_answer(model, entry, n, own, own->n, question, &error);
	posterior_entry_yield(entry);
	return question->answered;
}

PosteriorContextHandle *
posterior_handle_with_own_rows(PosteriorContextHandle *e, const TnpRows *more,
							   PosteriorPendingRequest *question)
{
	Attempt		none = {0};
	int64		n = posterior_cached_rows(e->cached);
	PosteriorCachedContext *own;
	TnpError	error;

	posterior_entries_note_lookup(CACHE_LOOKUP_PRIVATE);
	/*
	 * what is not kept is not on a device either before it is asked, so it is not the device that
	 * can fail here
	 */
	if (e->entry != NULL)
	{
		if (entry_answer_beyond(e->entry, e->model, n, more, question))
		{
			e->by = POSTERIOR_BY_CPU;
			e->transient = true;
			return e;
		}
		if (posterior_cached_copy(e->model, e->cached, n, n + more->n, false, &own, &error)
			!= TNP_OK)
			return handle_fail(&none, e, &error);
		posterior_cached_free(e->cached);
		e->cached = own;
		posterior_entry_unpin(e->entry);
		e->entry = NULL;
	}
	if (posterior_cached_append(e->model, e->cached, more, &error) != TNP_OK)
		return handle_fail(&none, e, &error);
	return e;
}

static PosteriorContextHandle *
attempt_find(Attempt *a, PosteriorLookupOutcome *outcome)
{
	const PosteriorLookup *w = a->w;
	PosteriorEntryKey key;
	int64		settled = Max(w->prefix, (int64) tnp_model_info(w->model->model)->min_rows);

	memset(&key, 0, sizeof(key));
	key.incarnation = posterior_incarnation();
	key.role = w->role;
	key.context = w->context;
	key.model = w->model->version;
	key.kernels = a->device ? POSTERIOR_KERNELS_DEVICE : w->model->kernels;
	key.n_features = w->rows.n_features;
	key.n_classes = w->labels.n;
	key.prefix = w->prefix;
	posterior_entry_key_head(&key, w->classes, &w->rows, settled);

	for (;;)
	{
		int64		common;
		PosteriorContextHandle *e;
		PosteriorCacheEntry *building,
				   *entry = posterior_entry_search(&key, &w->rows, &common, &building);

		if (entry != NULL && common == w->rows.n)
		{
			*outcome = CACHE_LOOKUP_READ;
			return posterior_handle_of_entry(w->model, w->rows.n_features, w->classes, &w->labels,
											 entry, common);
		}
		/* a prefix that differs although its hash is the same */
		if (entry != NULL && common < settled)
		{
			posterior_entry_unpin(entry);
			entry = NULL;
		}
		if (!w->publish || (entry == NULL && w->model->weights == NULL && posterior_is_shared))
		{
			if (building != NULL)
				posterior_entry_unpin(building);
			*outcome = CACHE_LOOKUP_PRIVATE;
			return entry != NULL ? attempt_copy_private(a, entry, common)
								 : attempt_build_private(a);
		}
		if (entry == NULL && building != NULL)
		{
			posterior_entry_wait(building);
			CHECK_FOR_INTERRUPTS();
			continue;
		}
		if (entry != NULL)
		{
			bool		last = posterior_entry_length(entry) == common;

			if (!posterior_entry_claim(entry))
			{
				posterior_entry_wait(entry);
				CHECK_FOR_INTERRUPTS();
				continue;
			}
			if (last && (posterior_entry_length(entry) != common || !entry->listed))
			{
				/* somebody was faster: look again */
				posterior_entry_yield(entry);
				posterior_entry_unpin(entry);
				continue;
			}
			if (last && w->rows.n <= posterior_cached_capacity(entry->cached))
			{
				*outcome = CACHE_LOOKUP_EXTENSION;
				if (entry_append(w, entry, common, &a->error) != TNP_OK)
				{
					posterior_entry_unpin(entry);
					return attempt_raise_broken(a);
				}
				return posterior_handle_of_entry(w->model, w->rows.n_features, w->classes,
												 &w->labels, entry, w->rows.n);
			}
			*outcome = CACHE_LOOKUP_EXTENSION;
			e = attempt_build_entry(a, &key, entry, common);
			posterior_entry_yield(entry);
			if (e != NULL && last)
				posterior_entry_unlist(entry);
			if (e == NULL && a->full)
			{
				*outcome = CACHE_LOOKUP_PRIVATE;
				return attempt_copy_private(a, entry, common);
			}
			posterior_entry_unpin(entry);
			if (e != NULL)
				return e;
			if (a->broken)
				return attempt_raise_broken(a);
			/*
			 * another content of the same beginning is being built; then there is one more to
			 * compare with
			 */
			pg_usleep(1000L);
			CHECK_FOR_INTERRUPTS();
			continue;
		}
		*outcome = CACHE_LOOKUP_REBUILD;
		e = attempt_build_entry(a, &key, NULL, 0);
		if (a->full)
			*outcome = CACHE_LOOKUP_PRIVATE;
		if (e != NULL)
			return e;
		if (a->broken)
			return attempt_raise_broken(a);
		if (a->full)
			return attempt_build_private(a);
	}
}

/* Say why no kept encoding was used, or why this one is not kept, for log_min_messages = debug1. */
static void
lookup_explain(const Attempt *a, PosteriorLookupOutcome outcome)
{
	const PosteriorLookup *w = a->w;

	const char *counted = posterior_lookup_outcomes[outcome].cache_column;

	if (outcome == CACHE_LOOKUP_REBUILD)
		ereport(DEBUG1,
				(errmsg_internal("cache lookup, %s: %lld rows are encoded because no kept encoding "
								 "begins with the same %lld",
								 counted, (long long) w->rows.n, (long long) lookup_base_rows(w))));
	else if (outcome == CACHE_LOOKUP_PRIVATE)
		ereport(DEBUG1, (errmsg_internal(
							 "cache lookup, %s: an encoding of %lld rows is not kept because %s",
							 counted, (long long) w->rows.n,
							 a->full      ? "the cache has no room for it"
							 : w->publish ? "its model is not shared"
										  : "others may not see all of its rows"),
						 a->full ? errhint("Raise posterior.cache_size, or use fewer rows.") : 0));
	else
		ereport(DEBUG2,
				(errmsg_internal("cache lookup, %s: %s", counted,
								 posterior_lookup_outcomes[outcome].meaning)));
}

PosteriorContextHandle *
posterior_handle_lookup(const PosteriorLookup *w, PosteriorLookupOutcome *outcome)
{
	Attempt		a = {.w = w,.device = posterior_build_on_device(w->model, w->rows.n)};
	PosteriorContextHandle *e = attempt_find(&a, outcome);

	if (e == NULL)
	{
		a = (Attempt) {.w = w};
		e = attempt_find(&a, outcome);
	}
	lookup_explain(&a, *outcome);
	posterior_entries_note_lookup(*outcome);
	return e;
}

/* ---- context values -------------------------------------------------------------------------- */

PosteriorContextHandle *
posterior_handle_acquire(PosteriorModel *model, const PosteriorContext *context)
{
	TnpColumnKind *kinds = palloc(Max(context->n_features, 1) * sizeof(TnpColumnKind));
	PosteriorLookup lookup = {.model = model,
							  .role = GetUserId(),
							  .classes = context->classes,
							  .labels = posterior_context_labels(context),
							  .rows = {context->n, context->n_features, kinds,
									   posterior_context_x(context), posterior_context_y(context),
									   context->n_labels},
							  .prefix = tnp_whole_prefix(model->model, context->n),
							  .publish = true};
	PosteriorContextHandle *e;
	PosteriorLookupOutcome outcome;

	posterior_check_row_limit(model, "the context", context->n, context->n_features);
	posterior_check_model_labels(model->model, model->name, posterior_context_labelled(context));
	if (posterior_context_labelled(context))
		posterior_check_model_room(model->model, model->name, context->n_labels);
	for (int f = 0; f < context->n_features; f++)
		kinds[f] = context->classes[f] == POSTERIOR_CATEGORY ? TNP_CATEGORICAL : TNP_NUMERIC;
	e = posterior_cache_mode == POSTERIOR_CACHE_OFF ? posterior_handle_build_uncached(&lookup)
													: posterior_handle_lookup(&lookup, &outcome);
	pfree(kinds);
	return e;
}

PosteriorContextHandle *
posterior_handle_rebuild(const PosteriorContextHandle *e)
{
	PosteriorLookup lookup = {.model = e->model,
							  .classes = e->classes,
							  .labels = e->labels,
							  .rows = posterior_cached_view(e->cached),
							  .prefix = posterior_cached_prefix(e->cached)};

	return posterior_handle_build_uncached(&lookup);
}

PosteriorContextHandle *
posterior_handle_other_provider(PosteriorContextHandle *e)
{
	PosteriorLookup lookup = {.model = e->model,
							  .classes = e->classes,
							  .labels = e->labels,
							  .rows = posterior_cached_view(e->cached),
							  .prefix = posterior_cached_prefix(e->cached),
							  .publish = e->entry != NULL,
							  .grows = e->entry != NULL};
	Attempt		a = {.w = &lookup,.device = !posterior_cached_on_device(e->cached)};
	PosteriorLookupOutcome outcome;

	if (e->other_provider != NULL)
		return e->other_provider;
	if (e->entry != NULL)
	{
		lookup.context = e->entry->key.context;
		lookup.role = e->entry->key.role;
	}
	e->other_provider = e->entry != NULL && posterior_cache_mode != POSTERIOR_CACHE_OFF
						  ? attempt_find(&a, &outcome)
						  : attempt_build_private(&a);
	return e->other_provider;
}

void
posterior_handle_grow(PosteriorContextHandle *e, const TnpRows *rows)
{
	TnpError	error;

	if (posterior_cached_grow(e->model, e->cached, rows, &error) != TNP_OK
		|| (e->other_provider != NULL
			&& posterior_cached_grow(e->model, e->other_provider->cached, rows, &error) != TNP_OK))
		posterior_raise(&error, e->model->name);
}
