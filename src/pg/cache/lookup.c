/*
 * lookup.c: the search for the encoding of given rows, and its making.
 *
 * A search begins with a key (entry_key.h): what all rows of an entry depend on, with a hash of the
 * base rows, that is the prefix and the rows of the statistics. Entries of this key are compared
 * with the wanted rows, byte by byte (posterior_entry_search), and the longest common beginning
 * decides, with models whose rows can be taken over in any place (tnp_revise) also what follows:
 *
 *   all rows are there          the entry is used                          CACHE_LOOKUP_READ
 *   they continue the entry     they are appended to it, if it has room    CACHE_LOOKUP_EXTENSION
 *   they leave it at some row   a new entry begins with a copy of the      CACHE_LOOKUP_EXTENSION
 *                               common rows; one without room is replaced
 *   with most rows behind it,   a new entry takes over all common rows     CACHE_LOOKUP_REVISION
 *   which the model takes over
 *   no entry has the base rows  a new entry is built, with models that     CACHE_LOOKUP_REBUILD
 *                               go on (tnp_revise) from one of the same
 *                               named context with fewer or other rows
 *   others may not use them,    a copy or an encoding for this session     CACHE_LOOKUP_PRIVATE
 *   or the arena has no room    alone
 *
 * Waiting. An entry that is being built has no length yet: a search that finds nothing else waits
 * for it instead of building the same. A search that wants to append to a claimed entry waits for
 * the claim to end. After each wait the search begins anew, since anything may have happened; no
 * lock, pin or claim is held while it begins anew, and a cancel is heeded there.
 *
 * Claims and errors. Only the claim's holder writes to an entry, and nothing ends a claim but its
 * holder (entries.c). So no error may be raised between claim and yield: in that stretch only the
 * engine, the device's client and the arena are called, which report failures by status. A failure
 * is kept in the Attempt (`broken`) and raised by attempt_raise_broken() when the claim has ended.
 *
 * Publishing. A new entry is announced first, claimed and without a length; then it is filled, and
 * published complete or taken from the directory. The handle has a pin from the announcement on.
 *
 * Devices. Entries for a device are entries of their own, told from those of the CPU by their key:
 * they hold the rows, and the server process has the keys and values. A published entry has been
 * encoded there (posterior_cached_settle). Where the device fails and posterior.on_device_error is
 * cpu, the search returns NULL and is repeated for the CPU.
 *
 * Called in a transaction, from the functions that statements call and from the worker; never from
 * callbacks of transactions, since it may raise.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/cache/lookup.h"

#include "pg/cache/sums_handle.h"

#include "pg/base/bridge.h"
#include "pg/cache/route.h"
#include "pg/models/engine_env.h"
#include "pg/models/row_limit.h"
#include "pg/rows/targets.h"
#include "pg/shmem/progress.h"

#include "miscadmin.h"

int			posterior_cache_mode = POSTERIOR_CACHE_ON;

/* A search for an encoding, or the making of one. */
typedef struct Attempt
{
	const PosteriorLookup *w;
	bool		device;			/* for a device */
	bool		anew;			/* whatever the cache holds */
	bool		full;			/* the arena has no room */
	bool		went_on;		/* from an entry of another prefix */
	bool		revised;		/* rows of an entry were taken over, and not its first ones alone */
	bool		broken;			/* `error` is to be raised, when no entry is claimed any more */
	TnpError	error;
} Attempt;

/* Release a half-made handle; attempt_raise_broken() raises the error when the claim has ended. */
static PosteriorContextHandle *
attempt_break_off(Attempt *a, PosteriorContextHandle *e, const TnpError *error)
{
	posterior_handle_release(e);
	a->error = *error;
	a->broken = true;
	return NULL;
}

/* Raise the error, or return NULL if the CPU may answer instead of the device. */
static PosteriorContextHandle *
attempt_raise_broken(const Attempt *a)
{
	if (a->error.status != POSTERIOR_FAULT || !posterior_may_fall_back(&a->error))
		posterior_raise(&a->error, a->w->model->name);
	return NULL;
}

/* ---- encoding -------------------------------------------------------------------------------- */

#define CHUNK 1024				/* rows between two reports of progress */
#define DEVICE_CHUNK 262144
#define FEW 256					/* rows are encoded sooner than all entries are looked at */

/* Append the rows from `from` on. */
static TnpStatus
attempt_append_rest(const Attempt *a, PosteriorCachedContext *b, int64 from, TnpError *error)
{
	const PosteriorLookup *w = a->w;
	TnpStatus	status = TNP_OK;

	while (status == TNP_OK && from < w->rows.n)
	{
		TnpRows		more = tnp_rows_part(&w->rows, from, w->rows.n - from);

		more.n = Min(more.n, a->device ? DEVICE_CHUNK : CHUNK);
		posterior_progress(POSTERIOR_SUFFIX, from, w->rows.n);
		status = posterior_cached_append(w->model, b, &more, error);
		from += more.n;
	}
	return status;
}

/* The base rows, to which others can be appended: the prefix and those of the statistics. */
static int64
lookup_base_rows(const PosteriorLookup *w)
{
	int64		n_base = Max(w->prefix, (int64) tnp_model_info(w->model->model)->min_rows);

	return Min(n_base, w->rows.n);
}

/* Whether the rows are those of a named context. */
static bool
lookup_is_named(const PosteriorLookup *w)
{
	static const pg_uuid_t none = {{0}};

	return memcmp(&w->context, &none, sizeof(none)) != 0;
}

/*
 * The rows that an entry's key says something of: the base rows, where others depend on them, or
 * where entries of many contexts have to be told apart. Those of a named context of which rows can
 * be taken over in any place share one key.
 */
static int64
lookup_key_rows(const PosteriorLookup *w)
{
	const TnpModelInfo *info = tnp_model_info(w->model->model);

	if (info->revisable && !info->scales_by_prefix && lookup_is_named(w))
		return 0;
	return lookup_base_rows(w);
}

/* Whether the rows go on from the first `common` rows of an entry, by appending. */
static bool
lookup_goes_on(const PosteriorLookup *w, int64 common)
{
	return common >= lookup_base_rows(w);
}

/* Whether rows of an entry may be taken over that it has in other places. */
static bool
lookup_revises(const PosteriorLookup *w)
{
	return tnp_model_info(w->model->model)->revisable && !w->plain;
}

/* Whether a device is to have the rows. */
static bool
lookup_on_device(const PosteriorLookup *w)
{
	return !w->plain && posterior_build_on_device(w->model, w->rows.n);
}

/* What the entry or the session is to hold of the rows. */
static PosteriorHolding
attempt_holding(const Attempt *a)
{
	return a->w->plain ? POSTERIOR_HOLDS_PLAIN_ROWS
		: a->device ? POSTERIOR_HOLDS_DEVICE_ROWS : POSTERIOR_HOLDS_ENCODING;
}

/* A key but for prefix and rows: of all entries of one named context. */
static void
attempt_make_context_key(const Attempt *a, PosteriorEntryKey *key)
{
	const PosteriorLookup *w = a->w;

	memset(key, 0, sizeof(*key));
	key->incarnation = posterior_incarnation();
	key->role = w->role;
	key->context = w->context;
	key->model = w->model->version;
	key->kernels = w->plain ? POSTERIOR_KERNELS_NONE
		: a->device ? POSTERIOR_KERNELS_DEVICE
		: posterior_model_arithmetic(w->model, w->views);
	key->n_features = w->rows.n_features;
	key->n_classes = w->labels.n;
	key->n_targets = tnp_rows_targets(&w->rows);
}

/*
 * Build all rows with what an entry of this context under another prefix spares, where the model
 * goes on with such; *built is NULL where there is none. Others may append to that entry meanwhile.
 */
static TnpStatus
attempt_go_on(Attempt *a, PosteriorCachedContext **built, TnpError *error)
{
	const PosteriorLookup *w = a->w;
	PosteriorEntryKey key;
	PosteriorCacheEntry *older;
	PosteriorCachedContext *view;
	TnpStatus	status = TNP_OK;

	*built = NULL;
	if (a->anew || w->rows.n < FEW || !lookup_is_named(w)
		|| !tnp_model_info(w->model->model)->goes_on || w->plain || a->device)
		return TNP_OK;
	attempt_make_context_key(a, &key);
	older = posterior_entry_search_older(&key);
	if (older == NULL)
		return TNP_OK;
	if (posterior_entry_has_model(older, w->model)
		&& (status = posterior_cached_first(w->model, older->cached, posterior_entry_length(older),
											&view, error)) == TNP_OK)
	{
		status = posterior_cached_revise(view, &w->rows, w->prefix, built, error);
		posterior_cached_free(view);
		a->went_on = *built != NULL;
	}
	posterior_entry_unpin(older);
	return status;
}

/* Build the base rows; all rows, where the model takes them only as a whole. */
static TnpStatus
attempt_build_first(Attempt *a, PosteriorCachedContext **built, TnpError *error)
{
	const PosteriorLookup *w = a->w;
	TnpRows		first = w->rows;
	TnpStatus	status;

	if (tnp_model_info(w->model->model)->appendable)
		first.n = lookup_base_rows(w);
	posterior_progress(POSTERIOR_PREFIX, 0, w->rows.n);
	status = attempt_go_on(a, built, error);
	if (status != TNP_OK || *built != NULL)
		return status;
	return posterior_cached_build(w->model, attempt_holding(a), &first, w->prefix, w->views, built,
								  error);
}

static PosteriorContextHandle *
attempt_build_private(Attempt *a)
{
	PosteriorContextHandle *e =
		posterior_handle_make(a->w->model, a->w->rows.n_features, a->w->kinds, &a->w->labels);
	TnpError	error;

	if (e == NULL)
		posterior_raise_no_memory();
	if (attempt_build_first(a, &e->cached, &error) != TNP_OK
		|| attempt_append_rest(a, e->cached, posterior_cached_rows(e->cached), &error) != TNP_OK)
		return posterior_handle_fail(e, &error);
	return e;
}

PosteriorContextHandle *
posterior_handle_build_uncached(const PosteriorLookup *w)
{
	Attempt		a = {.w = w,.device = lookup_on_device(w),.anew = true};
	bool		shown = posterior_progress_begin(NULL);
	PosteriorContextHandle *e = attempt_build_private(&a);

	if (shown)
		posterior_progress_end();
	return e;
}

/*
 * Make from an entry's rows what a private encoding begins with: all rows, where they can be taken
 * over, or a copy of the first `common`, or where these are too few the base rows.
 */
static TnpStatus
attempt_begin_private(Attempt *a, PosteriorCachedContext *view, int64 common,
					  PosteriorCachedContext **own, TnpError *error)
{
	const PosteriorLookup *w = a->w;
	TnpStatus	status = TNP_OK;

	*own = NULL;
	if (lookup_revises(w))
		status = posterior_cached_revise(view, &w->rows, w->prefix, own, error);
	if (status != TNP_OK || *own != NULL)
		return status;
	if (!lookup_goes_on(w, common))
		return attempt_build_first(a, own, error);
	return posterior_cached_copy(w->model, view, common, w->rows.n, false, own, error);
}

/* A private encoding that begins with rows of an entry; takes over its pin. */
static PosteriorContextHandle *
attempt_copy_private(Attempt *a, PosteriorCacheEntry *entry, int64 common)
{
	const PosteriorLookup *w = a->w;
	int64		seen = lookup_revises(w) ? posterior_entry_length(entry) : common;
	PosteriorContextHandle *e = posterior_handle_of_entry(w->model, w->rows.n_features, w->kinds,
														  &w->labels, entry, seen);
	PosteriorCachedContext *own;
	TnpError	error;

	if (attempt_begin_private(a, e->cached, common, &own, &error) != TNP_OK)
		return posterior_handle_fail(e, &error);
	posterior_cached_free(e->cached);
	e->cached = own;
	e->entry = NULL;
	posterior_entry_unpin(entry);
	if (attempt_append_rest(a, own, posterior_cached_rows(own), &error) != TNP_OK)
		return posterior_handle_fail(e, &error);
	return e;
}

/* ---- entries --------------------------------------------------------------------------------- */

/*
 * Rows that an entry has room for: enough that appending one by one copies each row a few times in
 * all, and no more than its prefix lets come.
 */
static int64
lookup_capacity(const PosteriorLookup *w)
{
	const TnpModelInfo *info = tnp_model_info(w->model->model);
	int64		n = w->rows.n,
				more = w->grows ? n / 4 + 64 : 0;

	if (!info->appendable && info->buffer > 0 && !w->plain)
		more = Min(more, Max(w->prefix + info->buffer - 1 - n, 0));
	return n + more;
}

/*
 * Bytes of an entry that begins with these and has room for `capacity` rows, roughly and not less:
 * what there is, which need not be so much a row, and the rows that it has no room for.
 */
static Size
entry_size_estimate(const Attempt *a, const PosteriorCachedContext *b, int64 capacity)
{
	Size		cells = (a->w->rows.n_features + tnp_rows_targets(&a->w->rows)) * sizeof(double),
				row = (attempt_holding(a) != POSTERIOR_HOLDS_ENCODING ? 0
					   : tnp_model_info(a->w->model->model)->encoding_bytes_per_row) + cells;
	int64		more = Max(capacity - posterior_cached_capacity(b), 0);

	return Max(row * (Size) capacity, posterior_cached_bytes(b) + row * (Size) more)
		 + row * 64 + 65536;
}

/* A copy in shared memory, all of which is this entry's; in the reserve, if there is one. */
static TnpStatus
cached_share(const Attempt *a, PosteriorCacheEntry *entry, PosteriorCachedContext *b, int64 n,
			 int64 capacity, PosteriorCachedContext **kept, TnpError *error)
{
	TnpStatus	status;

	posterior_arena_own(&posterior_directory_part, entry, false);
	status = posterior_cached_copy(a->w->model, b, n, capacity, true, kept, error);
	posterior_arena_done();
	return status;
}

/*
 * A copy that is kept: in a stretch that is free or can be made free, or else, as a stretch has a
 * bit more than it takes, in whatever is free. TNP_NO_MEMORY where it does not fit there; then
 * others have lost nothing.
 */
static TnpStatus
cached_keep(const Attempt *a, PosteriorCacheEntry *entry, PosteriorCachedContext *b, int64 n,
			int64 capacity, PosteriorCachedContext **kept, TnpError *error)
{
	Size		bytes = entry_size_estimate(a, b, capacity);
	TnpStatus	status = TNP_NO_MEMORY;

	*kept = NULL;
	error->status = TNP_NO_MEMORY;
	if (posterior_is_shared)
	{
		(void) posterior_reserve(bytes, POSTERIOR_END_HIGH, true);
		return cached_share(a, entry, b, n, capacity, kept, error);
	}
	if (!posterior_reserve(bytes, POSTERIOR_END_HIGH, true))
		return status;
	for (int i = 0; status == TNP_NO_MEMORY; i++)
	{
		status = posterior_cached_copy(a->w->model, b, n, capacity, false, kept, error);
		if (i == POSTERIOR_EVICTIONS
			|| (status == TNP_NO_MEMORY && !posterior_evict_own(bytes << i)))
			break;
	}
	return status;
}

/*
 * Put the first rows, which have been built, into the arena, and append the rest. If they do not
 * fit there, all rows are built nevertheless, in e: TNP_NO_MEMORY, and a->full.
 */
static TnpStatus
attempt_keep(Attempt *a, PosteriorContextHandle *e, PosteriorCachedContext *built,
			 PosteriorCachedContext **kept, TnpError *error)
{
	int64		n = posterior_cached_rows(built);
	TnpStatus	status;

	status = cached_keep(a, e->entry, built, n, lookup_capacity(a->w), kept, error);
	if (status == TNP_NO_MEMORY)
	{
		a->full = true;
		status = attempt_append_rest(a, built, n, error);
		if (status == TNP_OK)
		{
			e->cached = built;
			return TNP_NO_MEMORY;
		}
		/* it has a part of the rows: where this process has no room either, it must not answer */
	}
	posterior_cached_free(built);
	return status == TNP_OK ? attempt_append_rest(a, *kept, n, error) : status;
}

/*
 * The encoding of all rows in the arena: with what can be taken over of `from`, an entry or NULL,
 * of which the first `common` rows are wanted. As attempt_keep().
 */
static TnpStatus
attempt_fill(Attempt *a, PosteriorContextHandle *e, PosteriorCacheEntry *from, int64 common,
			 PosteriorCachedContext **kept, TnpError *error)
{
	const PosteriorLookup *w = a->w;
	bool		goes_on = from != NULL && lookup_goes_on(w, common);
	PosteriorCachedContext *built = NULL;
	TnpStatus	status = TNP_OK;

	/* appending takes less where nothing but new rows has come */
	if (from != NULL && lookup_revises(w)
		&& !(goes_on && posterior_entry_length(from) == common))
		status = posterior_cached_revise(from->cached, &w->rows, w->prefix, &built, error);
	a->revised = built != NULL;
	if (status == TNP_OK && built == NULL && goes_on)
	{
		status = cached_keep(a, e->entry, from->cached, common, lookup_capacity(w), kept, error);
		return status == TNP_OK ? attempt_append_rest(a, *kept, common, error) : status;
	}
	if (status == TNP_OK && built == NULL)
		status = attempt_build_first(a, &built, error);
	return status == TNP_OK ? attempt_keep(a, e, built, kept, error) : status;
}

/*
 * A new entry with all rows: what `from`, which is claimed and pinned or NULL, has of them, in any
 * case of the first `common`, and the rest. NULL where another session builds an entry of this key,
 * where there is no room (a->full), or where it failed (a->broken). Raises nothing, since `from` is
 * claimed.
 */
static PosteriorContextHandle *
attempt_build_entry(Attempt *a, const PosteriorEntryKey *key, PosteriorCacheEntry *from,
					int64 common)
{
	const PosteriorLookup *w = a->w;
	PosteriorContextHandle *e =
		posterior_handle_make(w->model, w->rows.n_features, w->kinds, &w->labels);
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
	status = attempt_fill(a, e, from, common, &kept, &error);
	/* what is published has been encoded: readers find it on the device */
	if (status == TNP_OK)
		status = posterior_cached_settle(w->model, kept, &error);
	if (status == TNP_OK)
	{
		posterior_entry_publish(entry, kept);
		if (posterior_cached_first(w->model, kept, w->rows.n, &e->cached, &error) != TNP_OK)
			return attempt_break_off(a, e, &error);
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
	return attempt_break_off(a, e, &error);
}

/* Append to a claimed entry what it lacks, and end the claim. NULL if the device has failed. */
static PosteriorContextHandle *
attempt_append(Attempt *a, PosteriorCacheEntry *entry, int64 common)
{
	const PosteriorLookup *w = a->w;
	TnpRows		more = tnp_rows_part(&w->rows, common, w->rows.n - common);
	TnpStatus	status;

	posterior_progress(POSTERIOR_SUFFIX, common, w->rows.n);
	status = posterior_cached_append(w->model, entry->cached, &more, &a->error);
	if (status == TNP_OK)
		posterior_entry_set_length(entry, w->rows.n);
	posterior_entry_yield(entry);
	if (status != TNP_OK)
	{
		posterior_entry_unpin(entry);
		return attempt_raise_broken(a);
	}
	return posterior_handle_of_entry(w->model, w->rows.n_features, w->kinds, &w->labels, entry,
									 w->rows.n);
}

/* ---- the search ------------------------------------------------------------------------------ */

static void
attempt_make_key(const Attempt *a, PosteriorEntryKey *key)
{
	const PosteriorLookup *w = a->w;

	attempt_make_context_key(a, key);
	key->prefix = w->prefix;
	posterior_entry_key_head(key, w->kinds, &w->rows, lookup_key_rows(w));
}

/*
 * Use an entry that has the base rows, and the first `common` rows: append to it, or begin another
 * one with these. Takes over its pin. False if the search must begin anew.
 */
static bool
attempt_extend(Attempt *a, const PosteriorEntryKey *key, PosteriorCacheEntry *entry, int64 common,
			   PosteriorLookupOutcome *outcome, PosteriorContextHandle **found)
{
	const PosteriorLookup *w = a->w;
	bool		goes_on = lookup_goes_on(w, common),
				continues = goes_on && posterior_entry_length(entry) == common;
	PosteriorContextHandle *e;

	if (!posterior_entry_claim(entry))
	{
		posterior_entry_wait(entry);
		return false;
	}
	if (continues && (posterior_entry_length(entry) != common || !entry->listed))
	{
		/* another backend was faster */
		posterior_entry_yield(entry);
		posterior_entry_unpin(entry);
		return false;
	}
	*outcome = goes_on ? CACHE_LOOKUP_EXTENSION : CACHE_LOOKUP_REBUILD;
	if (continues && w->rows.n <= posterior_cached_capacity(entry->cached))
	{
		*found = attempt_append(a, entry, common);
		return true;
	}
	e = attempt_build_entry(a, key, entry, common);
	posterior_entry_yield(entry);
	if (a->full)
		*outcome = CACHE_LOOKUP_PRIVATE;
	else if (a->revised)
		*outcome = CACHE_LOOKUP_REVISION;
	if (e != NULL && continues)
		posterior_entry_unlist(entry);
	if (e == NULL && a->full)
	{
		*found = attempt_copy_private(a, entry, common);
		return true;
	}
	posterior_entry_unpin(entry);
	if (e != NULL || a->broken)
	{
		*found = e != NULL ? e : attempt_raise_broken(a);
		return true;
	}
	/* another content of this beginning is being built: then there is one more to compare with */
	pg_usleep(1000L);
	return false;
}

/* Build an entry, or where there is no room for it a private encoding. False: begin anew. */
static bool
attempt_build(Attempt *a, const PosteriorEntryKey *key, PosteriorLookupOutcome *outcome,
			  PosteriorContextHandle **found)
{
	PosteriorContextHandle *e = attempt_build_entry(a, key, NULL, 0);

	*outcome = a->full ? CACHE_LOOKUP_PRIVATE : CACHE_LOOKUP_REBUILD;
	if (e == NULL && a->broken)
		e = attempt_raise_broken(a);
	else if (e == NULL && a->full)
		e = attempt_build_private(a);
	else if (e == NULL)
		return false;
	*found = e;
	return true;
}

/* Search once. False if the search must begin anew; nothing is held then. */
static bool
attempt_search(Attempt *a, const PosteriorEntryKey *key, PosteriorLookupOutcome *outcome,
			   PosteriorContextHandle **found)
{
	const PosteriorLookup *w = a->w;
	int64		common;
	PosteriorCacheEntry *building,
			   *entry = posterior_entry_search(key, &w->rows, &common, &building);

	if (entry != NULL && common == w->rows.n)
	{
		*outcome = CACHE_LOOKUP_READ;
		*found = posterior_handle_of_entry(w->model, w->rows.n_features, w->kinds, &w->labels,
										   entry, common);
		return true;
	}
	/* base rows that differ although their hashes are equal, or are no part of the key */
	if (entry != NULL && ((!lookup_goes_on(w, common) && !lookup_revises(w))
						  || !posterior_entry_has_model(entry, w->model)))
	{
		posterior_entry_unpin(entry);
		entry = NULL;
	}
	/* an entry in shared memory cannot hold on to a model that is not there */
	if (!w->publish || (entry == NULL && w->model->weights == NULL && posterior_is_shared))
	{
		if (building != NULL)
			posterior_entry_unpin(building);
		*outcome = CACHE_LOOKUP_PRIVATE;
		*found = entry != NULL ? attempt_copy_private(a, entry, common) : attempt_build_private(a);
		return true;
	}
	if (entry != NULL)
		return attempt_extend(a, key, entry, common, outcome, found);
	if (building != NULL)
	{
		posterior_entry_wait(building);
		return false;
	}
	return attempt_build(a, key, outcome, found);
}

/* The encoding; NULL if the device has failed and the CPU may answer. */
static PosteriorContextHandle *
attempt_find(Attempt *a, PosteriorLookupOutcome *outcome)
{
	PosteriorEntryKey key;
	PosteriorContextHandle *found = NULL;

	attempt_make_key(a, &key);
	while (!attempt_search(a, &key, outcome, &found))
		CHECK_FOR_INTERRUPTS();
	return found;
}

/* Debug messages: why no kept encoding was used, why this one is not kept; else the outcome. */
static void
lookup_explain(const Attempt *a, PosteriorLookupOutcome outcome)
{
	const PosteriorLookup *w = a->w;
	const char *counted = posterior_lookup_outcomes[outcome].cache_column;

	if (outcome == CACHE_LOOKUP_REBUILD)
		ereport(DEBUG1,
				(errmsg_internal("cache lookup, %s: %lld rows are encoded because no kept encoding "
								 "begins with the same %lld%s",
								 counted, (long long) w->rows.n, (long long) lookup_base_rows(w),
								 a->went_on ? "; another one spares a part" : "")));
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
	Attempt		a = {.w = w,.device = lookup_on_device(w)};
	PosteriorContextHandle *e = attempt_find(&a, outcome);

	/* the device has failed, and the CPU answers */
	if (e == NULL)
	{
		a = (Attempt) {.w = w};
		e = attempt_find(&a, outcome);
	}
	if (e != NULL)
		e->no_room = a.full;
	lookup_explain(&a, *outcome);
	posterior_entries_note_lookup(*outcome);
	return e;
}

/* ---- context values -------------------------------------------------------------------------- */

PosteriorContextHandle *
posterior_handle_acquire(PosteriorModel *model, const PosteriorContext *context)
{
	TnpColumnKind *engine_kinds = palloc(Max(context->n_features, 1) * sizeof(TnpColumnKind));
	PosteriorLookup lookup = {.model = model,
							  .role = GetUserId(),
							  .kinds = context->kinds,
							  .labels = posterior_context_labels(context),
							  .rows = {context->n, context->n_features, engine_kinds,
									   posterior_context_x(context), posterior_context_y(context),
									   posterior_context_labels(context).n, 0,
									   tnp_model_info(model->model)->n_targets},
							  .prefix = tnp_whole_prefix(model->model, context->n),
							  .views = posterior_context_estimators(context),
							  .publish = true};
	PosteriorContextHandle *e;
	PosteriorLookupOutcome outcome;
	bool		shown;

	if (posterior_context_is_sums(context))
		return posterior_handle_of_value(model, context,
										 posterior_cache_mode != POSTERIOR_CACHE_OFF);
	posterior_check_row_limit(model, "the context", context->n, context->n_features);
	posterior_check_model_labels(model->model, model->name, posterior_context_labelled(context));
	/* how many targets rows would have that are not there is unknown */
	if (context->n > 0)
		posterior_check_model_targets(model->model, model->name,
									  posterior_context_targets(context));
	if (posterior_context_labelled(context))
		posterior_check_model_room(model->model, model->name, context->n_labels);
	for (int f = 0; f < context->n_features; f++)
		engine_kinds[f] = context->kinds[f] == POSTERIOR_CATEGORY ? TNP_CATEGORICAL : TNP_NUMERIC;
	shown = posterior_progress_begin(NULL);
	e = posterior_cache_mode == POSTERIOR_CACHE_OFF ? posterior_handle_build_uncached(&lookup)
													: posterior_handle_lookup(&lookup, &outcome);
	if (shown)
		posterior_progress_end();
	pfree(engine_kinds);
	return e;
}

PosteriorContextHandle *
posterior_handle_rebuild(const PosteriorContextHandle *e)
{
	PosteriorLookup lookup = {.model = e->model,
							  .kinds = e->kinds,
							  .labels = e->labels,
							  .rows = posterior_cached_view(e->cached),
							  .prefix = posterior_cached_prefix(e->cached),
							  .views = posterior_cached_views(e->cached)};

	return posterior_handle_build_uncached(&lookup);
}

PosteriorContextHandle *
posterior_handle_other_provider(PosteriorContextHandle *e)
{
	PosteriorLookup lookup = {.model = e->model,
							  .kinds = e->kinds,
							  .labels = e->labels,
							  .rows = posterior_cached_view(e->cached),
							  .prefix = posterior_cached_prefix(e->cached),
							  .views = posterior_cached_views(e->cached),
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
