/*
 * cache.c: the session's cache of encodings, least recently used first out.
 *
 * An encoding is found by the model and by the context's bytes, all of them: a hash only shortens the search, so a hit is the encoding that would be
 * computed now. An entry is published complete or not at all: the entry is allocated before the engine runs, the engine never longjmps, and
 * nothing that can fail happens between its success and publishing.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "cache.h"

#include "bridge.h"

#include "common/hashfn.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

static PosteriorEncoding *entries = NULL;	/* most recently used first */
static struct
{
	int64		count,
				bytes,
				hits,
				misses,
				evictions;
}			stats;

static void
destroy(PosteriorEncoding *e)
{
	tnp_encoding_free(e->encoding);
	posterior_model_release(e->model);
	pfree(e);					/* the context's bytes lie in the same chunk */
}

/* Drop what nobody holds, oldest first, until the rest fits. */
static void
evict(void)
{
	int64		limit = (int64) posterior_cache_size * 1024;

	while (stats.bytes > limit)
	{
		PosteriorEncoding **oldest = NULL,
				   *victim;

		for (PosteriorEncoding **link = &entries; *link != NULL; link = &(*link)->next)
			if ((*link)->holds == 0)
				oldest = link;
		if (oldest == NULL)
			return;
		victim = *oldest;
		*oldest = victim->next;
		stats.count--;
		stats.bytes -= victim->bytes;
		stats.evictions++;
		destroy(victim);
	}
}

PosteriorEncoding *
posterior_encoding_fresh(PosteriorModel *model, const PosteriorContext *context)
{
	Size		head = MAXALIGN64(sizeof(PosteriorEncoding));
	TnpColumnKind *kinds = palloc(context->n_features * sizeof(TnpColumnKind));
	PosteriorEncoding *e = MemoryContextAllocHuge(TopMemoryContext, head + VARSIZE(context));
	TnpRows		rows = {context->n, context->n_features, kinds, posterior_context_x(context), posterior_context_y(context)};
	TnpError	error;

	memset(e, 0, sizeof(*e));
	for (int f = 0; f < context->n_features; f++)
		kinds[f] = context->classes[f] == POSTERIOR_CATEGORY ? TNP_CATEGORICAL : TNP_NUMERIC;
	if (tnp_build(model->model, &rows, tnp_whole_prefix(model->model, context->n), &e->encoding, &error) != TNP_OK)
	{
		pfree(e);
		posterior_raise(&error, model->name);
	}
	pfree(kinds);
	e->model = model;
	e->context = (PosteriorContext *) ((char *) e + head);
	memcpy(e->context, context, VARSIZE(context));
	e->n_features = e->context->n_features;
	e->classes = e->context->classes;
	e->bytes = head + VARSIZE(context) + tnp_encoding_bytes(e->encoding);
	e->holds = 1;
	posterior_model_hold(model);
	return e;
}

PosteriorEncoding *
posterior_encoding_again(const PosteriorEncoding *e)
{
	return posterior_encoding_fresh(e->model, e->context);
}

PosteriorEncoding *
posterior_encoding_hold(PosteriorModel *model, const PosteriorContext *context)
{
	uint32		hash = DatumGetUInt32(hash_any((const unsigned char *) context, VARSIZE(context)));
	PosteriorEncoding *e;

	if (posterior_cache_mode == POSTERIOR_CACHE_OFF)
		return posterior_encoding_fresh(model, context);
	for (PosteriorEncoding **link = &entries; *link != NULL; link = &(*link)->next)
	{
		e = *link;
		if (e->hash == hash && e->model == model && VARSIZE(e->context) == VARSIZE(context)
			&& memcmp(e->context, context, VARSIZE(context)) == 0)
		{
			*link = e->next;
			e->next = entries;
			entries = e;
			e->holds++;
			stats.hits++;
			return e;
		}
	}
	e = posterior_encoding_fresh(model, context);
	e->hash = hash;
	e->shared = true;
	e->next = entries;
	entries = e;
	stats.misses++;
	stats.count++;
	stats.bytes += e->bytes;
	evict();
	return e;
}

void
posterior_encoding_release(PosteriorEncoding *e)
{
	Assert(e->holds > 0);
	if (--e->holds > 0)
		return;
	if (e->shared)
		evict();
	else
		destroy(e);
}

PG_FUNCTION_INFO_V1(posterior_stat_cache);
Datum
posterior_stat_cache(PG_FUNCTION_ARGS)
{
	TupleDesc	desc;
	Datum		values[5] = {Int64GetDatum(stats.count), Int64GetDatum(stats.bytes), Int64GetDatum(stats.hits),
	Int64GetDatum(stats.misses), Int64GetDatum(stats.evictions)};
	bool		nulls[5] = {false};

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}
