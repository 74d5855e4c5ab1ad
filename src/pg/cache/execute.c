/*
 * execute.c: has a request answered by the provider that route.c chooses.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/cache/execute.h"

#include "pg/base/bridge.h"
#include "pg/cache/route.h"
#include "pg/device/device_client.h"
#include "pg/shmem/progress.h"

/* Whether a small request about an encoding on the device goes there; if so it is counted. */
static bool
request_small_to_device(PosteriorContextHandle *e, double work)
{
	double		so_far = e->small;

	if (e->other_provider != NULL)
		return false;
	if (e->entry != NULL)
		so_far = (double) pg_atomic_fetch_add_u64(&e->entry->small, (uint64) work);
	else
		e->small += work;
	return so_far + work < posterior_build_work(e->model, posterior_cached_rows(e->cached));
}

static bool
device_comes_first(PosteriorContextHandle *e, const TnpRequest *r)
{
	double		work;

	/* the server takes a question about no rows for an order to encode */
	if (r->queries.n == 0)
		return false;
	if (e->only != POSTERIOR_BY_RULE)
		return e->only == POSTERIOR_BY_DEVICE;
	if (posterior_device == POSTERIOR_DEVICE_CPU)
		return false;
	work = posterior_request_work(e->model, r->rows, r);
	if (work < posterior_device_threshold * 1e6
		&& (!posterior_cached_on_device(e->cached) || !request_small_to_device(e, work)))
		return false;
	return posterior_route_to_device(e->model);
}

int64
posterior_request_rows(const TnpRequest *r)
{
	return r->queries.n * (r->kind == TNP_REQUEST_SAMPLE ? r->draws
						   : r->kind == TNP_REQUEST_SCORE ? Max(r->orders, 1) : 1);
}

bool
posterior_show_question(const pg_uuid_t *context, TnpRequestKind kind, int64 total)
{
	return posterior_progress_ask(context, kind == TNP_REQUEST_SAMPLE ? POSTERIOR_DRAWING
								  : kind == TNP_REQUEST_SCORE ? POSTERIOR_SCORING
								  : POSTERIOR_ANSWERING, total);
}

void
posterior_show_asked(int64 done)
{
	posterior_progress_asked(done);
}

void
posterior_show_end(void)
{
	posterior_progress_end();
}

/* Ask the device. False if it has failed and the CPU may answer. */
static bool
execute_on_device(PosteriorContextHandle *e, TnpRequest *r)
{
	PosteriorContextHandle *d =
		posterior_cached_on_device(e->cached) ? e : posterior_handle_other_provider(e);
	TnpStatus	status;
	TnpError	error;

	if (d == NULL)
		return false;
	for (int attempt = 0;; attempt++)
	{
		status = posterior_cached_on_device_execute(e->model, d->cached, r, &error);
		if (attempt == 2 || status != POSTERIOR_FAULT || !posterior_device_evicted_model())
			break;
		if ((status = posterior_device_prepare(e->model, &error)) != TNP_OK)
			break;
	}
	if (status == TNP_OK)
	{
		posterior_progress_answered(posterior_request_rows(r));
		return true;
	}
	/* the device has told that it does not compute such a request; nothing has failed */
	if (status == TNP_NOT_HERE)
		return false;
	if (status != POSTERIOR_FAULT || !posterior_may_fall_back(&error))
		posterior_raise(&error, e->model->name);
	return false;
}

static void
execute_on_cpu(PosteriorContextHandle *e, TnpRequest *r)
{
	PosteriorContextHandle *c =
		posterior_cached_on_device(e->cached) ? posterior_handle_other_provider(e) : e;
	TnpError	error;

	if (tnp_execute(c->cached->encoding, r, &error) != TNP_OK)
		posterior_raise(&error, e->model->name);
}

void
posterior_execute(PosteriorContextHandle *e, TnpRequest *r)
{
	if (e->delegate != NULL)
	{
		e->delegate->execute(e, r);
		return;
	}
	r->rows = posterior_cached_rows(e->cached);
	if (r->queries.n == 0 && posterior_cached_on_device(e->cached))
	{
		/* nothing is asked: a density of no rows is one */
		if (r->kind == TNP_REQUEST_SCORE)
			*r->answer = 0;
		return;
	}
	e->by = device_comes_first(e, r) && execute_on_device(e, r) ? POSTERIOR_BY_DEVICE
																	 : POSTERIOR_BY_CPU;
	if (e->by == POSTERIOR_BY_CPU)
		execute_on_cpu(e, r);
}

void
posterior_execute_uncached(PosteriorContextHandle *fresh, const PosteriorContextHandle *like,
						   TnpRequest *r)
{
	PG_TRY();
	{
		fresh->only = like != NULL ? like->by : POSTERIOR_BY_RULE;
		posterior_execute(fresh, r);
	}
	PG_CATCH();
	{
		posterior_handle_release(fresh);
		PG_RE_THROW();
	}
	PG_END_TRY();
	posterior_handle_release(fresh);
}

bool
posterior_executed_exactly(const PosteriorContextHandle *e)
{
	return e->by != POSTERIOR_BY_DEVICE || posterior_device_exact();
}
