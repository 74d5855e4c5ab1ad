/*
 * handle.c: makes and releases handles.
 *
 * A handle lies in TopMemoryContext and is released by a callback of the memory context of its call
 * site (call_site.c), at the latest at the end of the transaction. At the end of the process memory
 * contexts are not reset: an on_shmem_exit callback gives up the pins that handles still have.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/cache/handle.h"

#include "pg/base/bridge.h"
#include "pg/cache/route.h"
#include "pg/cache/solved_sums.h"

#include "storage/ipc.h"
#include "utils/memutils.h"

static dlist_head handles = DLIST_STATIC_INIT(handles);

static void
handles_give_up_pins(int code, Datum argument)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &handles)
	{
		PosteriorContextHandle *e = dlist_container(PosteriorContextHandle, node, iter.cur);

		dlist_delete(&e->node);
		if (e->entry != NULL)
			posterior_entry_unpin(e->entry);
		if (e->lender != NULL)
			posterior_entry_unpin(e->lender);
		if (e->solved != NULL)
			posterior_solved_unpin(e->solved);
	}
	posterior_models_exit();
}

PosteriorContextHandle *
posterior_handle_make(PosteriorModel *model, int n_features, const uint8 *kinds,
					  const PosteriorLabelList *labels)
{
	static bool registered = false;
	Size		head = MAXALIGN(sizeof(PosteriorContextHandle));
	PosteriorContextHandle *e;

	if (!registered && posterior_is_shared)
	{
		on_shmem_exit(handles_give_up_pins, (Datum) 0);
		registered = true;
	}
	e = MemoryContextAllocExtended(TopMemoryContext, head + n_features + labels->bytes,
								   MCXT_ALLOC_ZERO | MCXT_ALLOC_NO_OOM);
	if (e == NULL)
		return NULL;
	e->kinds = (uint8 *) e + head;
	memcpy(e->kinds, kinds, n_features);
	e->n_features = n_features;
	e->labels = (PosteriorLabelList)
	{
		labels->n, labels->bytes, (char *) e->kinds + n_features
	};
	if (labels->bytes > 0)
		memcpy((char *) e->labels.text, labels->text, labels->bytes);
	e->model = model;
	posterior_model_acquire(model);
	dlist_push_head(&handles, &e->node);
	return e;
}

PosteriorContextHandle *
posterior_handle_of_entry(PosteriorModel *model, int n_features, const uint8 *kinds,
						  const PosteriorLabelList *labels, PosteriorCacheEntry *entry, int64 n)
{
	PosteriorContextHandle *e = posterior_handle_make(model, n_features, kinds, labels);
	TnpError	error;

	if (e == NULL)
	{
		posterior_entry_unpin(entry);
		posterior_raise_no_memory();
	}
	e->entry = entry;
	if (posterior_cached_first(model, entry->cached, n, &e->cached, &error) != TNP_OK)
		return posterior_handle_fail(e, &error);
	return e;
}

void
posterior_handle_release(PosteriorContextHandle *e)
{
	PosteriorContextHandle *maker = e->maker;

	e->released = true;
	if (e->views > 0)
		return;
	if (e->other_provider != NULL)
		posterior_handle_release(e->other_provider);
	if (e->delegate != NULL)
		e->delegate->end(e->delegate);
	dlist_delete(&e->node);
	posterior_cached_free(e->cached);
	if (e->entry != NULL)
		posterior_entry_unpin(e->entry);
	if (e->lender != NULL)
		posterior_entry_unpin(e->lender);
	if (e->solved != NULL)
		posterior_solved_unpin(e->solved);
	posterior_model_release(e->model);
	pfree(e);
	if (maker != NULL && --maker->views == 0 && maker->released)
		posterior_handle_release(maker);
}

PosteriorContextHandle *
posterior_handle_fail(PosteriorContextHandle *e, const TnpError *error)
{
	char		name[NAMEDATALEN];

	/* the model may go with the handle */
	strlcpy(name, e->model->name, sizeof(name));
	posterior_handle_release(e);
	if (error->status != POSTERIOR_FAULT || !posterior_may_fall_back(error))
		posterior_raise(error, name);
	return NULL;
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

bool
posterior_handle_revise(PosteriorContextHandle *e, const TnpRows *rows, int64 prefix)
{
	PosteriorCachedContext *revised;
	TnpError	error;

	/* the other provider's would have to follow, too */
	if (e->other_provider != NULL)
		return false;
	if (posterior_cached_revise(e->cached, rows, prefix, &revised, &error) != TNP_OK)
		posterior_raise(&error, e->model->name);
	if (revised == NULL)
		return false;
	posterior_cached_free(e->cached);
	e->cached = revised;
	return true;
}
