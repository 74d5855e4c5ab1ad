/*
 * encoding.c: encodings for call sites: from a run of the cache, by appending to one, by copying the rows that are common, or built.
 *
 * Between becoming the writer of a run and yielding it only the engine, the device's client and the arena are called, none of which raises: so no error can leave a
 * claim behind.
 *
 * Runs for a device are runs of their own, told from those of the CPU by their key: they hold the rows, and the server has keys and values of them.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "encoding.h"

#include "ask.h"
#include "bridge.h"
#include "device.h"
#include "progress.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/memutils.h"


/* A search for an encoding, or the making of one. */
typedef struct Attempt
{
	const PosteriorWanted *w;
	bool		device;			/* for a device */
	bool		full;			/* the arena has no room */
	bool		failed;			/* the device did, and the CPU may answer instead */
	bool		broken;			/* `error` is to be raised, once the run that it began from is not claimed any more */
	TnpError	error;
} Attempt;

static dlist_head held = DLIST_STATIC_INIT(held);

/* At the end of the process memory contexts are not reset: let go of what call sites still hold. */
static void
release_all(int code, Datum argument)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &held)
	{
		PosteriorEncoding *e = dlist_container(PosteriorEncoding, node, iter.cur);

		dlist_delete(&e->node);
		if (e->run != NULL)
			posterior_run_unpin(e->run);
	}
	posterior_models_exit();
}

/* An empty one; NULL without memory, so that callers can let go of what they have. */
static PosteriorEncoding *
make(PosteriorModel *model, int n_features, const uint8 *classes, const PosteriorLabelList *labels)
{
	static bool registered = false;
	Size		head = MAXALIGN(sizeof(PosteriorEncoding));
	PosteriorEncoding *e;

	if (!registered && posterior_is_shared)
	{
		on_shmem_exit(release_all, (Datum) 0);
		registered = true;
	}
	e = MemoryContextAllocExtended(TopMemoryContext, head + n_features + labels->bytes, MCXT_ALLOC_ZERO | MCXT_ALLOC_NO_OOM);
	if (e == NULL)
		return NULL;
	e->classes = (uint8 *) e + head;
	memcpy(e->classes, classes, n_features);
	e->n_features = n_features;
	e->labels = (PosteriorLabelList) {labels->n, labels->bytes, (char *) e->classes + n_features};
	if (labels->bytes > 0)
		memcpy((char *) e->labels.text, labels->text, labels->bytes);
	e->model = model;
	posterior_model_hold(model);
	dlist_push_head(&held, &e->node);
	return e;
}

void
posterior_encoding_release(PosteriorEncoding *e)
{
	if (e->twin != NULL)
		posterior_encoding_release(e->twin);
	dlist_delete(&e->node);
	posterior_body_free(e->body);
	if (e->run != NULL)
		posterior_run_unpin(e->run);
	posterior_model_release(e->model);
	pfree(e);
}

/* Let go of a half-made encoding and raise what the engine reports; or return NULL, when it is the device that failed and the CPU may answer. */
static PosteriorEncoding *
fail(Attempt *a, PosteriorEncoding *e, const TnpError *error)
{
	char		name[NAMEDATALEN];

	strlcpy(name, e->model->name, sizeof(name));
	posterior_encoding_release(e);
	if (error->status != POSTERIOR_FAULT || !posterior_may_fall_back(error))
		posterior_raise(error, name);
	a->failed = true;
	return NULL;
}

/* The same for one who has a claim to give up first: raise_broken does the rest. */
static PosteriorEncoding *
break_off(Attempt *a, PosteriorEncoding *e, const TnpError *error)
{
	posterior_encoding_release(e);
	a->error = *error;
	a->broken = true;
	return NULL;
}

static PosteriorEncoding *
raise_broken(Attempt *a)
{
	if (a->error.status != POSTERIOR_FAULT || !posterior_may_fall_back(&a->error))
		posterior_raise(&a->error, a->w->model->name);
	a->failed = true;
	return NULL;
}

pg_noreturn static void
no_memory(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("out of memory")));
}

PosteriorEncoding *
posterior_encoding_of_run(PosteriorModel *model, int n_features, const uint8 *classes, const PosteriorLabelList *labels, PosteriorRun *run, int64 n)
{
	PosteriorEncoding *e = make(model, n_features, classes, labels);
	TnpError	error;

	if (e == NULL)
	{
		posterior_run_unpin(run);
		no_memory();
	}
	e->run = run;
	if (posterior_body_first(model, run->body, n, &e->body, &error) != TNP_OK)
	{
		Attempt		none = {0};

		return fail(&none, e, &error);
	}
	return e;
}

#define CHUNK 1024				/* rows appended between two looks of whoever watches */
#define DEVICE_CHUNK 262144

/* Append the rows from `from` on. */
static TnpStatus
append_rest(const Attempt *a, PosteriorBody *b, int64 from, TnpError *error)
{
	const PosteriorWanted *w = a->w;
	TnpStatus	status = TNP_OK;

	while (status == TNP_OK && from < w->rows.n)
	{
		TnpRows		more = posterior_rows_rest(&w->rows, from);

		more.n = Min(more.n, a->device ? DEVICE_CHUNK : CHUNK);
		posterior_progress(POSTERIOR_SUFFIX, from, w->rows.n);
		status = posterior_body_append(w->model, b, &more, error);
		from += more.n;
	}
	return status;
}

/* Rows that must be there before others can be appended: the prefix and those of the statistics. */
static int64
settled_rows(const PosteriorWanted *w)
{
	int64		settled = Max(w->prefix, (int64) tnp_model_info(w->model->model)->min_rows);

	return Min(settled, w->rows.n);
}

/* Build the first rows, to which the rest can be appended. All of them, where the model takes rows only as a whole. */
static TnpStatus
build_first(const Attempt *a, PosteriorBody **built, TnpError *error)
{
	const PosteriorWanted *w = a->w;
	TnpRows		first = w->rows;

	if (tnp_model_info(w->model->model)->appendable)
		first.n = settled_rows(w);
	posterior_progress(POSTERIOR_PREFIX, 0, w->rows.n);
	return posterior_body_build(w->model, a->device, &first, w->prefix, built, error);
}

static PosteriorEncoding *
fresh(Attempt *a)
{
	PosteriorEncoding *e = make(a->w->model, a->w->rows.n_features, a->w->classes, &a->w->labels);
	TnpError	error;

	if (e == NULL)
		no_memory();
	if (build_first(a, &e->body, &error) != TNP_OK || append_rest(a, e->body, posterior_body_rows(e->body), &error) != TNP_OK)
		return fail(a, e, &error);
	return e;
}

PosteriorEncoding *
posterior_encoding_fresh(const PosteriorWanted *w)
{
	Attempt		a = {.w = w,.device = posterior_build_on_device(w->model, w->rows.n)};

	return fresh(&a);
}

/* An encoding of one's own that begins with the first `common` rows of a run, whose pin is taken over. */
static PosteriorEncoding *
private_copy(Attempt *a, PosteriorRun *run, int64 common)
{
	const PosteriorWanted *w = a->w;
	PosteriorEncoding *e = posterior_encoding_of_run(w->model, w->rows.n_features, w->classes, &w->labels, run, common);
	PosteriorBody *own;
	TnpError	error;

	if (posterior_body_copy(w->model, e->body, common, w->rows.n, false, &own, &error) != TNP_OK)
		return fail(a, e, &error);
	posterior_body_free(e->body);
	e->body = own;
	e->run = NULL;
	posterior_run_unpin(run);
	if (append_rest(a, own, common, &error) != TNP_OK)
		return fail(a, e, &error);
	return e;
}

/* Room that a run is given beyond its rows: enough that appending one by one copies each row a few times in all. */
static int64
room(const PosteriorWanted *w)
{
	return w->grows ? w->rows.n + w->rows.n / 4 + 64 : w->rows.n;
}

/* Bytes that a run of this many rows takes, roughly and not less. */
static Size
estimate(const Attempt *a, int64 capacity)
{
	Size		row = (a->w->rows.n_features + 1) * sizeof(double);

	return ((a->device ? 0 : tnp_model_info(a->w->model->model)->encoding_bytes_per_row) + row) * (Size) (capacity + 64) + 65536;
}

/* A copy of a body in the arena, evicting others as needed. TNP_NO_MEMORY when it does not fit. */
static TnpStatus
keep(const Attempt *a, PosteriorBody *b, int64 n, int64 capacity, PosteriorBody **kept, TnpError *error)
{
	TnpStatus	status;

	*kept = NULL;
	if (!posterior_make_room(estimate(a, capacity)))
	{
		error->status = TNP_NO_MEMORY;
		return TNP_NO_MEMORY;
	}
	for (int i = 0;; i++)
	{
		status = posterior_body_copy(a->w->model, b, n, capacity, posterior_is_shared, kept, error);
		if (status != TNP_NO_MEMORY || i == POSTERIOR_EVICTIONS || !posterior_evict(estimate(a, capacity) << i))
			return status;
	}
}

/* Build the first rows and put them into the arena. If they do not fit there, all rows are built all the same, in e. */
static TnpStatus
build_kept(Attempt *a, PosteriorEncoding *e, PosteriorBody **kept, TnpError *error)
{
	PosteriorBody *built;
	TnpStatus	status = build_first(a, &built, error);
	int64		n;

	if (status != TNP_OK)
		return status;
	n = posterior_body_rows(built);
	status = keep(a, built, n, room(a->w), kept, error);
	if (status == TNP_NO_MEMORY)
	{
		e->body = built;
		a->full = true;
		status = append_rest(a, built, n, error);
		return status == TNP_OK ? TNP_NO_MEMORY : status;
	}
	posterior_body_free(built);
	return status == TNP_OK ? append_rest(a, *kept, n, error) : status;
}

/*
 * A new run with all rows: the first `common` of `from` (claimed and pinned, or NULL) and the rest. NULL when another session builds the same, when
 * there is no room (a->full), or when it cannot be made (a->broken). Raises nothing, for `from` is claimed.
 */
static PosteriorEncoding *
new_run(Attempt *a, const PosteriorRunKey *key, PosteriorRun *from, int64 common)
{
	const PosteriorWanted *w = a->w;
	PosteriorEncoding *e = make(w->model, w->rows.n_features, w->classes, &w->labels);
	PosteriorRun *run = e != NULL ? posterior_run_announce(key, w->model, &a->full) : NULL;
	PosteriorBody *kept = NULL;
	TnpError	error;
	TnpStatus	status;

	if (run == NULL)
	{
		if (e == NULL)
			a->full = true;
		else
			posterior_encoding_release(e);
		return NULL;
	}
	e->run = run;
	if (from != NULL)
	{
		status = keep(a, from->body, common, room(w), &kept, &error);
		if (status == TNP_OK)
			status = append_rest(a, kept, common, &error);
	}
	else
		status = build_kept(a, e, &kept, &error);
	/* what is published has been encoded: readers find it on the device */
	if (status == TNP_OK)
		status = posterior_body_settle(w->model, kept, &error);
	if (status == TNP_OK)
	{
		posterior_run_publish(run, kept);
		if (posterior_body_first(w->model, kept, w->rows.n, &e->body, &error) != TNP_OK)
			return break_off(a, e, &error);
		return e;
	}
	posterior_body_free(kept);
	posterior_run_unlist(run);
	posterior_run_yield(run);
	if (e->body != NULL && status == TNP_NO_MEMORY)
	{
		e->run = NULL;
		posterior_run_unpin(run);
		return e;
	}
	if (status == TNP_NO_MEMORY)
	{
		a->full = true;
		posterior_encoding_release(e);
		return NULL;
	}
	return break_off(a, e, &error);
}

/* Append to a claimed run what it lacks; the claim ends. */
static TnpStatus
extend(const PosteriorWanted *w, PosteriorRun *run, int64 common, TnpError *error)
{
	TnpRows		more = posterior_rows_rest(&w->rows, common);
	TnpStatus	status = posterior_body_append(w->model, run->body, &more, error);

	if (status == TNP_OK)
		posterior_run_set_length(run, w->rows.n);
	posterior_run_yield(run);
	return status;
}

/* Whether a question about n rows can be answered while rows are appended to this run. */
static bool
answers_on_the_way(const PosteriorRun *run, PosteriorModel *model, int64 n, const PosteriorQuestion *question)
{
	return question != NULL && question->request->kind == TNP_REQUEST_PREDICT && !posterior_body_on_device(run->body)
		&& posterior_answers_here(model, n, question->request) && n <= posterior_body_capacity(run->body);
}

/*
 * Append to a claimed run of n rows, and answer the question if that can be done with it. The last `own` rows are there only meanwhile: behind the published length
 * nobody looks, and nobody else writes while the run is claimed.
 */
static TnpStatus
append_and_answer(PosteriorModel *model, PosteriorRun *run, int64 n, const TnpRows *more, int64 own, PosteriorQuestion *question, TnpError *error)
{
	TnpRows		shared = *more;
	TnpStatus	status;

	shared.n -= own;
	if (!answers_on_the_way(run, model, n + more->n, question))
		return posterior_body_append(model, run->body, &shared, error);
	status = tnp_append_predict(run->body->encoding, more, &question->request->queries, question->request->answer, error);
	question->answered = status == TNP_OK;
	if (question->answered)
		tnp_encoding_forget(run->body->encoding, n + shared.n);
	return status;
}

PosteriorEncoding *
posterior_encoding_extend(PosteriorModel *model, const uint8 *classes, const PosteriorLabelList *labels, PosteriorRun *run, int64 n,
						  const TnpRows *more, int64 own, PosteriorQuestion *question)
{
	PosteriorEncoding *e;
	int64		length = posterior_run_length(run),
				shared = more->n - own,
				total = n + shared;
	TnpRows		there = posterior_body_view(run->body);
	TnpError	error;

	if (length >= total)
	{
		/* somebody has appended these rows, or others */
		if (memcmp(there.y + n, more->y, shared * sizeof(double)) != 0
			|| memcmp(there.x + n * there.n_features, more->x, shared * there.n_features * sizeof(double)) != 0)
			return NULL;
		return posterior_encoding_of_run(model, there.n_features, classes, labels, run, total);
	}
	/* nothing may raise while the caller has the pin: whatever has to be prepared goes the long way */
	if (posterior_body_on_device(run->body) && !posterior_device_at_hand(model))
		return NULL;
	if (length != n || total > posterior_body_capacity(run->body) || !posterior_run_claim(run))
		return NULL;
	if (posterior_run_length(run) != n || append_and_answer(model, run, n, more, own, question, &error) != TNP_OK)
	{
		/* whatever it was, the long way round says it */
		posterior_run_yield(run);
		return NULL;
	}
	posterior_run_set_length(run, total);
	posterior_run_yield(run);
	e = posterior_encoding_of_run(model, there.n_features, classes, labels, run, total);
	if (e != NULL && question != NULL && question->answered)
	{
		e->by = POSTERIOR_BY_CPU;
		e->lacks = own > 0;
	}
	return e;
}

/* Answer a question with rows that are in the run only meanwhile. True if it has been answered. */
static bool
answer_beyond(PosteriorRun *run, PosteriorModel *model, int64 n, const TnpRows *own, PosteriorQuestion *question)
{
	TnpError	error;

	if (!answers_on_the_way(run, model, n + own->n, question) || !posterior_run_claim(run))
		return false;
	if (posterior_run_length(run) == n)
		append_and_answer(model, run, n, own, own->n, question, &error);
	posterior_run_yield(run);
	return question->answered;
}

PosteriorEncoding *
posterior_encoding_own(PosteriorEncoding *e, const TnpRows *more, PosteriorQuestion *question)
{
	Attempt		none = {0};
	int64		n = posterior_body_rows(e->body);
	PosteriorBody *own;
	TnpError	error;

	pg_atomic_fetch_add_u64(&posterior_shared->counters.privates, 1);
	/* what is not kept is not on a device either before it is asked, so it is not the device that can fail here */
	if (e->run != NULL)
	{
		if (answer_beyond(e->run, e->model, n, more, question))
		{
			e->by = POSTERIOR_BY_CPU;
			e->lacks = true;
			return e;
		}
		if (posterior_body_copy(e->model, e->body, n, n + more->n, false, &own, &error) != TNP_OK)
			return fail(&none, e, &error);
		posterior_body_free(e->body);
		e->body = own;
		posterior_run_unpin(e->run);
		e->run = NULL;
	}
	if (posterior_body_append(e->model, e->body, more, &error) != TNP_OK)
		return fail(&none, e, &error);
	return e;
}

static PosteriorEncoding *
find(Attempt *a, PosteriorOutcome *outcome)
{
	const PosteriorWanted *w = a->w;
	PosteriorRunKey key;
	int64		settled = Max(w->prefix, (int64) tnp_model_info(w->model->model)->min_rows);

	memset(&key, 0, sizeof(key));
	key.database = MyDatabaseId;
	key.role = w->role;
	key.context = w->context;
	key.model = w->model->version;
	key.kernels = a->device ? POSTERIOR_KERNELS_DEVICE : w->model->kernels;
	key.n_features = w->rows.n_features;
	key.n_classes = w->labels.n;
	key.prefix = w->prefix;
	posterior_run_key_head(&key, w->classes, &w->rows, settled);

	for (;;)
	{
		int64		common;
		PosteriorEncoding *e;
		PosteriorRun *building,
				   *run = posterior_run_search(&key, &w->rows, &common, &building);

		if (run != NULL && common == w->rows.n)
		{
			*outcome = POSTERIOR_HIT;
			return posterior_encoding_of_run(w->model, w->rows.n_features, w->classes, &w->labels, run, common);
		}
		/* a prefix that differs although its hash is the same */
		if (run != NULL && common < settled)
		{
			posterior_run_unpin(run);
			run = NULL;
		}
		if (!w->publish || (run == NULL && w->model->weights == NULL && posterior_is_shared))
		{
			if (building != NULL)
				posterior_run_unpin(building);
			*outcome = POSTERIOR_PRIVATE;
			return run != NULL ? private_copy(a, run, common) : fresh(a);
		}
		if (run == NULL && building != NULL)
		{
			posterior_run_wait(building);
			CHECK_FOR_INTERRUPTS();
			continue;
		}
		if (run != NULL)
		{
			bool		last = posterior_run_length(run) == common;

			if (!posterior_run_claim(run))
			{
				posterior_run_wait(run);
				CHECK_FOR_INTERRUPTS();
				continue;
			}
			if (last && (posterior_run_length(run) != common || !run->listed))
			{
				/* somebody was faster: look again */
				posterior_run_yield(run);
				posterior_run_unpin(run);
				continue;
			}
			if (last && w->rows.n <= posterior_body_capacity(run->body))
			{
				*outcome = POSTERIOR_APPENDED;
				if (extend(w, run, common, &a->error) != TNP_OK)
				{
					posterior_run_unpin(run);
					return raise_broken(a);
				}
				return posterior_encoding_of_run(w->model, w->rows.n_features, w->classes, &w->labels, run, w->rows.n);
			}
			*outcome = POSTERIOR_COPIED;
			e = new_run(a, &key, run, common);
			posterior_run_yield(run);
			if (e != NULL && last)
				posterior_run_unlist(run);
			if (e == NULL && a->full)
			{
				*outcome = POSTERIOR_PRIVATE;
				return private_copy(a, run, common);
			}
			posterior_run_unpin(run);
			if (e != NULL)
				return e;
			if (a->broken)
				return raise_broken(a);
			/* another content of the same beginning is being built; then there is one more to compare with */
			pg_usleep(1000L);
			CHECK_FOR_INTERRUPTS();
			continue;
		}
		*outcome = POSTERIOR_BUILT;
		e = new_run(a, &key, NULL, 0);
		if (a->full)
			*outcome = POSTERIOR_PRIVATE;
		if (e != NULL)
			return e;
		if (a->broken)
			return raise_broken(a);
		if (a->full)
			return fresh(a);
	}
}

/* Say why no kept encoding was used, or why this one is not kept, for log_min_messages = debug1. */
static void
explain(const Attempt *a, PosteriorOutcome outcome)
{
	const PosteriorWanted *w = a->w;

	if (outcome == POSTERIOR_BUILT)
		ereport(DEBUG1,
				(errmsg_internal("%lld rows are encoded because no kept encoding begins with the same %lld", (long long) w->rows.n, (long long) settled_rows(w))));
	else if (outcome == POSTERIOR_PRIVATE)
		ereport(DEBUG1,
				(errmsg_internal("an encoding of %lld rows is not kept because %s", (long long) w->rows.n,
								 a->full ? "the cache has no room for it" : w->publish ? "its model is not shared" : "others may not see all of its rows"),
				 a->full ? errhint("Raise posterior.cache_size, or use fewer rows.") : 0));
}

PosteriorEncoding *
posterior_encoding_find(const PosteriorWanted *w, PosteriorOutcome *outcome)
{
	Attempt		a = {.w = w,.device = posterior_build_on_device(w->model, w->rows.n)};
	PosteriorEncoding *e = find(&a, outcome);
	PosteriorCounters *counters = &posterior_shared->counters;

	if (e == NULL)
	{
		a = (Attempt) {.w = w};
		e = find(&a, outcome);
	}
	explain(&a, *outcome);
	switch (*outcome)
	{
		case POSTERIOR_HIT:
			pg_atomic_fetch_add_u64(&counters->hits, 1);
			break;
		case POSTERIOR_APPENDED:
		case POSTERIOR_COPIED:
			pg_atomic_fetch_add_u64(&counters->appends, 1);
			break;
		case POSTERIOR_BUILT:
			pg_atomic_fetch_add_u64(&counters->misses, 1);
			break;
		case POSTERIOR_PRIVATE:
			pg_atomic_fetch_add_u64(&counters->privates, 1);
			break;
	}
	return e;
}

/* ---- context values ---------------------------------------------------------------------------------------------- */

PosteriorEncoding *
posterior_encoding_hold(PosteriorModel *model, const PosteriorContext *context)
{
	TnpColumnKind *kinds = palloc(Max(context->n_features, 1) * sizeof(TnpColumnKind));
	PosteriorWanted wanted = {.model = model,.role = GetUserId(),.classes = context->classes,
		.labels = posterior_context_labels(context),
		.rows = {context->n, context->n_features, kinds, posterior_context_x(context), posterior_context_y(context), context->n_labels},
		.prefix = tnp_whole_prefix(model->model, context->n),
	.publish = true};
	PosteriorEncoding *e;
	PosteriorOutcome outcome;

	posterior_check_model_labels(model->model, model->name, posterior_context_labelled(context));
	if (posterior_context_labelled(context))
		posterior_check_model_room(model->model, model->name, context->n_labels);
	for (int f = 0; f < context->n_features; f++)
		kinds[f] = context->classes[f] == POSTERIOR_CATEGORY ? TNP_CATEGORICAL : TNP_NUMERIC;
	e = posterior_cache_mode == POSTERIOR_CACHE_OFF ? posterior_encoding_fresh(&wanted) : posterior_encoding_find(&wanted, &outcome);
	pfree(kinds);
	return e;
}

PosteriorEncoding *
posterior_encoding_again(const PosteriorEncoding *e)
{
	PosteriorWanted wanted = {.model = e->model,.classes = e->classes,.labels = e->labels,.rows = posterior_body_view(e->body),
	.prefix = posterior_body_prefix(e->body)};

	return posterior_encoding_fresh(&wanted);
}

PosteriorEncoding *
posterior_encoding_twin(PosteriorEncoding *e)
{
	PosteriorWanted wanted = {.model = e->model,.classes = e->classes,.labels = e->labels,.rows = posterior_body_view(e->body),
	.prefix = posterior_body_prefix(e->body),.publish = e->run != NULL,.grows = e->run != NULL};
	Attempt		a = {.w = &wanted,.device = !posterior_body_on_device(e->body)};
	PosteriorOutcome outcome;

	if (e->twin != NULL)
		return e->twin;
	if (e->run != NULL)
	{
		wanted.context = e->run->key.context;
		wanted.role = e->run->key.role;
	}
	e->twin = e->run != NULL && posterior_cache_mode != POSTERIOR_CACHE_OFF ? find(&a, &outcome) : fresh(&a);
	return e->twin;
}

void
posterior_encoding_grow(PosteriorEncoding *e, const TnpRows *rows)
{
	TnpError	error;

	if (posterior_body_grow(e->model, e->body, rows, &error) != TNP_OK
		|| (e->twin != NULL && posterior_body_grow(e->model, e->twin->body, rows, &error) != TNP_OK))
		posterior_raise(&error, e->model->name);
}
