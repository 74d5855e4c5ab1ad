/*
 * encoding.c: encodings for call sites: from a run of the cache, by appending to one, by copying the rows that are common, or built.
 *
 * Between becoming the writer of a run and yielding it only the engine and the arena are called, neither of which raises: so no error can leave a
 * claim behind.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "encoding.h"

#include "bridge.h"
#include "progress.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/memutils.h"

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
	dlist_delete(&e->node);
	tnp_encoding_free(e->encoding);
	if (e->run != NULL)
		posterior_run_unpin(e->run);
	posterior_model_release(e->model);
	pfree(e);
}

/* Let go of a half-made encoding and raise what the engine reports. */
pg_noreturn static void
fail(PosteriorEncoding *e, const TnpError *error)
{
	char		name[NAMEDATALEN];

	strlcpy(name, e->model->name, sizeof(name));
	posterior_encoding_release(e);
	posterior_raise(error, name);
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
	if (tnp_encoding_first(run->encoding, n, &e->encoding, &error) != TNP_OK)
		fail(e, &error);
	return e;
}

/* Rows of `all` from row n on. */
static TnpRows
rest(const TnpRows *all, int64 n)
{
	TnpRows		rows = *all;

	rows.n -= n;
	rows.x += n * rows.n_features;
	rows.y += n;
	return rows;
}

#define CHUNK 1024				/* rows appended between two looks of whoever watches */

/* Append the rows from `from` on. */
static TnpStatus
append_rest(const PosteriorWanted *w, TnpEncoding *e, int64 from, TnpError *error)
{
	TnpStatus	status = TNP_OK;

	while (status == TNP_OK && from < w->rows.n)
	{
		TnpRows		more = rest(&w->rows, from);

		more.n = Min(more.n, CHUNK);
		posterior_progress(POSTERIOR_SUFFIX, from, w->rows.n);
		status = tnp_append(e, &more, error);
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
build_first(const PosteriorWanted *w, TnpEncoding **built, TnpError *error)
{
	TnpRows		first = w->rows;

	if (tnp_model_info(w->model->model)->appendable)
		first.n = settled_rows(w);
	posterior_progress(POSTERIOR_PREFIX, 0, w->rows.n);
	return tnp_build(w->model->model, &first, w->prefix, built, error);
}

PosteriorEncoding *
posterior_encoding_fresh(const PosteriorWanted *w)
{
	PosteriorEncoding *e = make(w->model, w->rows.n_features, w->classes, &w->labels);
	TnpError	error;

	if (e == NULL)
		no_memory();
	if (build_first(w, &e->encoding, &error) != TNP_OK || append_rest(w, e->encoding, tnp_encoding_rows(e->encoding), &error) != TNP_OK)
		fail(e, &error);
	return e;
}

/* An encoding of one's own that begins with the first `common` rows of a run, whose pin is taken over. */
static PosteriorEncoding *
private_copy(const PosteriorWanted *w, PosteriorRun *run, int64 common)
{
	PosteriorEncoding *e = posterior_encoding_of_run(w->model, w->rows.n_features, w->classes, &w->labels, run, common);
	TnpEncoding *own;
	TnpError	error;

	if (tnp_encoding_copy(e->encoding, common, w->rows.n, false, &own, &error) != TNP_OK)
		fail(e, &error);
	tnp_encoding_free(e->encoding);
	e->encoding = own;
	e->run = NULL;
	posterior_run_unpin(run);
	if (append_rest(w, own, common, &error) != TNP_OK)
		fail(e, &error);
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
estimate(const PosteriorWanted *w, int64 capacity)
{
	return (tnp_model_info(w->model->model)->encoding_bytes_per_row + (w->rows.n_features + 1) * sizeof(double)) * (Size) (capacity + 64) + 65536;
}

/* A copy of an encoding in the arena, evicting others as needed. TNP_NO_MEMORY when it does not fit. */
static TnpStatus
keep(const PosteriorWanted *w, const TnpEncoding *e, int64 n, int64 capacity, TnpEncoding **kept, TnpError *error)
{
	TnpStatus	status;

	*kept = NULL;
	if (!posterior_make_room(estimate(w, capacity)))
	{
		error->status = TNP_NO_MEMORY;
		return TNP_NO_MEMORY;
	}
	/* the arena may be in pieces: free more, a quarter at a time */
	for (int i = 1;; i++)
	{
		status = tnp_encoding_copy(e, n, capacity, posterior_is_shared, kept, error);
		if (status != TNP_NO_MEMORY || i > 4 || !posterior_make_room(Min((Size) posterior_cache_size * 256 * i, estimate(w, capacity) * (i + 1))))
			return status;
	}
}

/*
 * A new run with all rows: the first `common` of `from` (claimed and pinned, or NULL) and the rest. NULL when another session builds the same, or when
 * there is no room (*full).
 */
static PosteriorEncoding *
new_run(const PosteriorWanted *w, const PosteriorRunKey *key, PosteriorRun *from, int64 common, bool *full)
{
	PosteriorEncoding *e = make(w->model, w->rows.n_features, w->classes, &w->labels);
	PosteriorRun *run = e != NULL ? posterior_run_announce(key, w->model, full) : NULL;
	TnpEncoding *kept = NULL;
	TnpError	error;
	TnpStatus	status;

	if (run == NULL)
	{
		if (e == NULL)
			*full = true;
		else
			posterior_encoding_release(e);
		return NULL;
	}
	e->run = run;
	if (from != NULL)
	{
		status = keep(w, from->encoding, common, room(w), &kept, &error);
		if (status == TNP_OK)
			status = append_rest(w, kept, common, &error);
	}
	else
	{
		TnpEncoding *built;

		status = build_first(w, &built, &error);
		if (status == TNP_OK)
		{
			int64		n = tnp_encoding_rows(built);

			status = keep(w, built, n, room(w), &kept, &error);
			if (status == TNP_NO_MEMORY)
			{
				/* what is built is of use all the same */
				e->encoding = built;
				*full = true;
				if ((status = append_rest(w, built, n, &error)) == TNP_OK)
					status = TNP_NO_MEMORY;
			}
			else
			{
				tnp_encoding_free(built);
				if (status == TNP_OK)
					status = append_rest(w, kept, n, &error);
			}
		}
	}
	if (status == TNP_OK)
	{
		posterior_run_publish(run, kept);
		if (tnp_encoding_first(kept, w->rows.n, &e->encoding, &error) != TNP_OK)
			fail(e, &error);
		return e;
	}
	tnp_encoding_free(kept);
	posterior_run_unlist(run);
	posterior_run_yield(run);
	if (e->encoding != NULL && status == TNP_NO_MEMORY)
	{
		e->run = NULL;
		posterior_run_unpin(run);
		return e;
	}
	if (status == TNP_NO_MEMORY)
	{
		*full = true;
		posterior_encoding_release(e);
		return NULL;
	}
	fail(e, &error);
}

/* Append to a claimed run what it lacks; the claim ends. */
static TnpStatus
extend(const PosteriorWanted *w, PosteriorRun *run, int64 common, TnpError *error)
{
	TnpRows		more = rest(&w->rows, common);
	TnpStatus	status = tnp_append(run->encoding, &more, error);

	if (status == TNP_OK)
		posterior_run_set_length(run, w->rows.n);
	posterior_run_yield(run);
	return status;
}

PosteriorEncoding *
posterior_encoding_extend(PosteriorModel *model, const uint8 *classes, const PosteriorLabelList *labels, PosteriorRun *run, int64 n,
						  const TnpRows *more)
{
	int64		length = posterior_run_length(run),
				total = n + more->n;
	TnpRows		there = tnp_encoding_view(run->encoding);
	TnpError	error;

	if (length >= total)
	{
		/* somebody has appended these rows, or others */
		if (memcmp(there.y + n, more->y, more->n * sizeof(double)) != 0
			|| memcmp(there.x + n * there.n_features, more->x, more->n * there.n_features * sizeof(double)) != 0)
			return NULL;
		return posterior_encoding_of_run(model, there.n_features, classes, labels, run, total);
	}
	if (length != n || total > tnp_encoding_capacity(run->encoding) || !posterior_run_claim(run))
		return NULL;
	if (posterior_run_length(run) != n || tnp_append(run->encoding, more, &error) != TNP_OK)
	{
		/* whatever it was, the long way round says it */
		posterior_run_yield(run);
		return NULL;
	}
	posterior_run_set_length(run, total);
	posterior_run_yield(run);
	return posterior_encoding_of_run(model, there.n_features, classes, labels, run, total);
}

static PosteriorEncoding *
find(const PosteriorWanted *w, PosteriorOutcome *outcome)
{
	PosteriorRunKey key;
	int64		settled = Max(w->prefix, (int64) tnp_model_info(w->model->model)->min_rows);

	memset(&key, 0, sizeof(key));
	key.database = MyDatabaseId;
	key.role = w->role;
	key.context = w->context;
	key.model = w->model->version;
	key.kernels = w->model->kernels;
	key.n_features = w->rows.n_features;
	key.n_classes = w->labels.n;
	key.prefix = w->prefix;
	posterior_run_key_head(&key, w->classes, &w->rows, settled);

	for (;;)
	{
		int64		common;
		bool		full = false;
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
			return run != NULL ? private_copy(w, run, common) : posterior_encoding_fresh(w);
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
			if (last && w->rows.n <= tnp_encoding_capacity(run->encoding))
			{
				TnpError	error;

				*outcome = POSTERIOR_APPENDED;
				if (extend(w, run, common, &error) != TNP_OK)
				{
					posterior_run_unpin(run);
					posterior_raise(&error, w->model->name);
				}
				return posterior_encoding_of_run(w->model, w->rows.n_features, w->classes, &w->labels, run, w->rows.n);
			}
			*outcome = POSTERIOR_COPIED;
			e = new_run(w, &key, run, common, &full);
			posterior_run_yield(run);
			if (e != NULL && last)
				posterior_run_unlist(run);
			if (e == NULL && full)
			{
				*outcome = POSTERIOR_PRIVATE;
				return private_copy(w, run, common);
			}
			posterior_run_unpin(run);
			if (e != NULL)
				return e;
			/* another content of the same beginning is being built; then there is one more to compare with */
			pg_usleep(1000L);
			CHECK_FOR_INTERRUPTS();
			continue;
		}
		*outcome = POSTERIOR_BUILT;
		e = new_run(w, &key, NULL, 0, &full);
		if (full)
			*outcome = POSTERIOR_PRIVATE;
		if (e != NULL)
			return e;
		if (full)
			return posterior_encoding_fresh(w);
	}
}

PosteriorEncoding *
posterior_encoding_find(const PosteriorWanted *w, PosteriorOutcome *outcome)
{
	PosteriorEncoding *e = find(w, outcome);
	PosteriorCounters *counters = &posterior_shared->counters;

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
	PosteriorWanted wanted = {.model = e->model,.classes = e->classes,.labels = e->labels,.rows = tnp_encoding_view(e->encoding),
	.prefix = tnp_encoding_prefix(e->encoding)};

	return posterior_encoding_fresh(&wanted);
}
