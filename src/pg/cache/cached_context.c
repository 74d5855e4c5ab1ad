/*
 * cached_context.c: encodings of the engine and rows for a device, behind one set of functions.
 * Nothing here raises: callers may have claimed an entry.
 *
 * The server knows rows by a serial number, and assumes that rows under a number stay, and more may
 * follow. So a number must never stand for two contents: whenever an append may have reached the
 * server and is not going to be published, the cached context gets another number.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/cache/cached_context.h"

#include "pg/base/bridge.h"
#include "pg/device/device_client.h"
#include "pg/models/engine_env.h"
#include "pg/shmem/arena.h"
#include "pg/shmem/shared.h"

static void *
memory_get(bool keep, Size size)
{
	return keep ? posterior_arena_alloc(Max(size, 1)) : posterior_scratch_alloc(Max(size, 1));
}

static void
memory_drop(bool kept, void *pointer)
{
	if (pointer == NULL)
		return;
	if (kept)
		posterior_arena_free(pointer);
	else
		pfree(pointer);
}

/* An empty cached context; NULL without memory. */
static PosteriorCachedContext *
cached_make(bool keep)
{
	PosteriorCachedContext *b = memory_get(keep, sizeof(PosteriorCachedContext));

	if (b == NULL)
		return NULL;
	memset(b, 0, sizeof(*b));
	b->kept = keep;
	return b;
}

void
posterior_cached_free(PosteriorCachedContext *b)
{
	if (b == NULL)
		return;
	tnp_encoding_free(b->encoding);
	if (!b->borrowed)
	{
		/* rows that this session alone knows; those of entries are the server's to forget */
		if (b->encoding == NULL && !b->kept && b->mirrored > 0)
			posterior_device_forget(b->serial);
		memory_drop(b->kept, b->kinds);
		memory_drop(b->kept, b->x);
		memory_drop(b->kept, b->y);
	}
	memory_drop(b->kept, b);
}

int64
posterior_cached_rows(const PosteriorCachedContext *b)
{
	return b->encoding != NULL ? tnp_encoding_rows(b->encoding) : b->n;
}

int64
posterior_cached_prefix(const PosteriorCachedContext *b)
{
	return b->encoding != NULL ? tnp_encoding_prefix(b->encoding) : b->prefix;
}

int
posterior_cached_views(const PosteriorCachedContext *b)
{
	return b->encoding != NULL ? tnp_encoding_views(b->encoding) : 0;
}

int64
posterior_cached_capacity(const PosteriorCachedContext *b)
{
	return b->encoding != NULL ? tnp_encoding_capacity(b->encoding) : b->capacity;
}

size_t
posterior_cached_bytes(const PosteriorCachedContext *b)
{
	return b->encoding != NULL ? tnp_encoding_bytes(b->encoding)
							   : sizeof(PosteriorCachedContext)
									 + (Size) b->capacity * (b->n_features + b->n_targets)
									 * sizeof(double);
}

TnpRows
posterior_cached_view(const PosteriorCachedContext *b)
{
	return b->encoding != NULL
			 ? tnp_encoding_view(b->encoding)
			 : (TnpRows){b->n, b->n_features, b->kinds, b->x, b->y, b->n_classes, 0,
						b->n_targets};
}

/* ---- rows alone ------------------------------------------------------------------------------ */

/* Memory for `capacity` rows like these in an empty cached context. */
static bool
cached_make_room(PosteriorCachedContext *b, const TnpRows *rows, int64 capacity)
{
	int			n_features = rows->n_features;
	const TnpColumnKind *kinds = rows->kinds;

	b->n_features = n_features;
	b->n_classes = rows->n_classes;
	b->n_targets = tnp_rows_targets(rows);
	b->capacity = Max(capacity, 1);
	b->kinds = memory_get(b->kept, n_features * sizeof(TnpColumnKind));
	b->x = memory_get(b->kept, (Size) b->capacity * n_features * sizeof(double));
	b->y = memory_get(b->kept, (Size) b->capacity * b->n_targets * sizeof(double));
	if (b->kinds == NULL || b->x == NULL || b->y == NULL)
		return false;
	if (kinds != NULL)
		memcpy(b->kinds, kinds, n_features * sizeof(TnpColumnKind));
	else
		memset(b->kinds, 0, n_features * sizeof(TnpColumnKind));
	return true;
}

/* Copy rows behind those that are there, without counting them. */
static void
cached_put_rows(PosteriorCachedContext *b, const TnpRows *rows)
{
	if (rows->n == 0)
		return;
	memcpy(b->x + b->n * b->n_features, rows->x, (Size) rows->n * b->n_features * sizeof(double));
	memcpy(b->y + b->n * b->n_targets, rows->y, (Size) rows->n * b->n_targets * sizeof(double));
}

/* More room for a cached context of the session's own. */
static bool
cached_grow_room(PosteriorCachedContext *b, int64 capacity)
{
	double	   *x,
			   *y;

	if (capacity <= b->capacity)
		return true;
	capacity = Max(capacity, 2 * b->capacity);
	x = memory_get(false, (Size) capacity * b->n_features * sizeof(double));
	y = memory_get(false, (Size) capacity * b->n_targets * sizeof(double));
	if (x == NULL || y == NULL)
	{
		memory_drop(false, x);
		memory_drop(false, y);
		return false;
	}
	memcpy(x, b->x, (Size) b->n * b->n_features * sizeof(double));
	memcpy(y, b->y, (Size) b->n * b->n_targets * sizeof(double));
	memory_drop(false, b->x);
	memory_drop(false, b->y);
	b->x = x;
	b->y = y;
	b->capacity = capacity;
	return true;
}

/* What the server has under the old number stays there, unused, until it is evicted. */
static void
cached_renumber(PosteriorCachedContext *b)
{
	if (!b->kept && b->mirrored > 0)
		posterior_device_forget(b->serial);
	b->mirrored = 0;
	pg_write_barrier();
	b->serial = posterior_tick();
}

TnpStatus
posterior_cached_on_device_execute(PosteriorModel *model, PosteriorCachedContext *b,
								   TnpRequest *request, TnpError *error)
{
	PosteriorDeviceRows rows = {.serial = b->serial,.mirrored = b->mirrored,
		.rows = posterior_cached_view(b),.prefix = b->prefix,.capacity = b->capacity,
		.own = !b->kept && !b->borrowed
	};
	TnpStatus	status = posterior_device_execute(model, &rows, request, error);

	b->mirrored = rows.mirrored;
	return status;
}

TnpStatus
posterior_cached_settle(PosteriorModel *model, PosteriorCachedContext *b, TnpError *error)
{
	TnpRequest request = {.kind = TNP_REQUEST_PREDICT,
						  .rows = b->n,
						  .queries = {0, b->n_features, b->kinds, NULL, NULL, 0}};
	TnpStatus	status;

	if (b->encoding != NULL || b->plain)
		return TNP_OK;
	status = posterior_cached_on_device_execute(model, b, &request, error);
	if (status != TNP_OK)
		cached_renumber(b);
	return status;
}

/* ---- both ------------------------------------------------------------------------------------ */

TnpStatus
posterior_cached_build(PosteriorModel *model, PosteriorHolding holds, const TnpRows *rows,
					   int64 prefix, int views, PosteriorCachedContext **cached, TnpError *error)
{
	PosteriorCachedContext *b = cached_make(false);
	TnpStatus	status = TNP_OK;

	*cached = NULL;
	if (b == NULL)
		return posterior_no_memory(error);
	if (holds == POSTERIOR_HOLDS_ENCODING)
	{
		posterior_encode_event_begin();
		status = tnp_build_views(model->model, rows, prefix, views, &b->encoding, error);
		posterior_encode_event_end();
	}
	else if (cached_make_room(b, rows, rows->n))
	{
		b->plain = holds == POSTERIOR_HOLDS_PLAIN_ROWS;
		b->prefix = prefix;
		b->serial = posterior_tick();
		cached_put_rows(b, rows);
		b->n = rows->n;
	}
	else
		status = posterior_no_memory(error);
	if (status != TNP_OK)
		posterior_cached_free(b);
	else
		*cached = b;
	return status;
}

TnpStatus
posterior_cached_of_sums(PosteriorModel *model, const TnpColumnKind *kinds, TnpSums *sums,
						 Size words, const int64 *fit, bool keep,
						 PosteriorCachedContext **cached, TnpError *error)
{
	PosteriorCachedContext *b = cached_make(keep);
	TnpStatus	status;

	*cached = NULL;
	if (b == NULL)
		return posterior_no_memory(error);
	status = tnp_sums_encode_fitted(model->model, kinds, sums, words, fit, keep, &b->encoding,
									error);
	if (status != TNP_OK)
		posterior_cached_free(b);
	else
		*cached = b;
	return status;
}

TnpStatus
posterior_cached_append(PosteriorModel *model, PosteriorCachedContext *b, const TnpRows *rows,
						TnpError *error)
{
	int64		before = b->n;
	TnpStatus	status;

	if (b->encoding != NULL)
	{
		posterior_encode_event_begin();
		status = tnp_append(b->encoding, rows, error);
		posterior_encode_event_end();
		return status;
	}
	if (b->kept ? b->n + rows->n > b->capacity : !cached_grow_room(b, b->n + rows->n))
		return posterior_no_memory(error);
	cached_put_rows(b, rows);
	b->n += rows->n;
	if (!b->kept)
		return TNP_OK;
	status = posterior_cached_settle(model, b, error);
	if (status != TNP_OK)
		b->n = before;
	return status;
}

TnpStatus
posterior_cached_grow(PosteriorModel *model, PosteriorCachedContext *b, const TnpRows *rows,
					  TnpError *error)
{
	int64		prefix;
	TnpStatus	status;

	if (b->encoding != NULL)
	{
		posterior_encode_event_begin();
		status = tnp_grow(b->encoding, rows, error);
		posterior_encode_event_end();
		return status;
	}
	prefix = tnp_canonical_prefix(model->model, b->n + rows->n);
	status = posterior_cached_append(model, b, rows, error);
	if (status == TNP_OK && prefix != b->prefix)
	{
		cached_renumber(b);
		b->prefix = prefix;
	}
	return status;
}

TnpStatus
posterior_cached_revise(const PosteriorCachedContext *from, const TnpRows *rows, int64 prefix,
						PosteriorCachedContext **revised, TnpError *error)
{
	PosteriorCachedContext *b;
	TnpStatus	status;

	*revised = NULL;
	if (from->encoding == NULL)
		return TNP_OK;
	b = cached_make(false);
	if (b == NULL)
		return posterior_no_memory(error);
	posterior_encode_event_begin();
	status = tnp_revise(from->encoding, rows, prefix, &b->encoding, error);
	posterior_encode_event_end();
	if (b->encoding != NULL)
		*revised = b;
	else
		posterior_cached_free(b);
	return status;
}

TnpStatus
posterior_cached_copy(PosteriorModel *model, PosteriorCachedContext *from, int64 n, int64 capacity,
					  bool keep, PosteriorCachedContext **copy, TnpError *error)
{
	PosteriorCachedContext *b = cached_make(keep);
	TnpRows		rows = posterior_cached_view(from);
	TnpStatus	status = TNP_OK;

	*copy = NULL;
	if (b == NULL)
		return posterior_no_memory(error);
	rows.n = n;
	if (from->encoding != NULL)
		status = tnp_encoding_copy(from->encoding, n, capacity, keep, &b->encoding, error);
	else if (cached_make_room(b, &rows, Max(capacity, n)))
	{
		cached_put_rows(b, &rows);
		b->plain = from->plain;
		b->n = n;
		b->prefix = from->prefix;
		b->serial = posterior_tick();
		/* readers that have the number of `from` ask about rows that the copy has as well */
		if (n == from->n && !from->borrowed && keep)
		{
			uint64		fresh = b->serial;

			b->serial = from->serial;
			b->mirrored = from->mirrored;
			from->mirrored = 0;
			pg_write_barrier();
			from->serial = fresh;
		}
	}
	else
		status = posterior_no_memory(error);
	if (status != TNP_OK)
		posterior_cached_free(b);
	else
		*copy = b;
	return status;
}

TnpStatus
posterior_cached_first(PosteriorModel *model, const PosteriorCachedContext *from, int64 n,
					   PosteriorCachedContext **view, TnpError *error)
{
	PosteriorCachedContext *b = cached_make(false);
	TnpStatus	status = TNP_OK;

	*view = NULL;
	if (b == NULL)
		return posterior_no_memory(error);
	if (from->encoding != NULL)
		status = tnp_encoding_first(from->encoding, n, &b->encoding, error);
	else
	{
		*b = *from;
		b->kept = false;
		b->borrowed = true;
		b->n = n;
		b->mirrored = Min(from->mirrored, n);
	}
	if (status != TNP_OK)
		posterior_cached_free(b);
	else
		*view = b;
	return status;
}
