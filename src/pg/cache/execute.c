/*
 * execute.c: who answers a question, and has it answered.
 *
 * The rule (docs/device.md). Work is counted in multiply-adds, from the model's size and the numbers of rows. Where a device is ready, contexts that take more than
 * posterior.device_threshold to encode are encoded there, and questions that take more are asked there. A smaller question is answered in this process if the context is encoded here, because a
 * hand-over takes longer than the answer; if it is not, the device answers until such questions have cost as much as encoding the context here would: then it is encoded here as well. So nobody
 * pays more than twice what he would if he knew what will be asked.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/cache/execute.h"

#include "pg/base/bridge.h"
#include "pg/device/device_client.h"

/* Work of one token that sees n keys. */
static double
token_work(const PosteriorModel *model, double n)
{
	const TnpModelInfo *info = tnp_model_info(model->model);

	/* a key and a value are a multiply-add per number each */
	return (double) info->n_parameters + n * (double) (info->encoding_bytes_per_row / sizeof(float));
}

static double
build_work(const PosteriorModel *model, int64 n)
{
	return (double) n * token_work(model, (double) n);
}

static double
request_work(const PosteriorModel *model, int64 n, const TnpRequest *r)
{
	double		m = (double) r->queries.n;

	switch (r->kind)
	{
		case TNP_REQUEST_SAMPLE:
			return 2 * m * (double) r->draws * token_work(model, (double) n + m / 2);
		case TNP_REQUEST_SCORE:
			return 2 * m * (double) Max(r->orders, 1) * token_work(model, (double) n + m / 2);
		default:
			return m * token_work(model, (double) n);
	}
}

bool
posterior_may_fall_back(const TnpError *fault)
{
	if (posterior_is_shared)
		pg_atomic_fetch_add_u64(&posterior_server->faults, 1);
	if (posterior_on_device_error != POSTERIOR_ON_ERROR_CPU)
		return false;
	if (posterior_is_shared)
		pg_atomic_fetch_add_u64(&posterior_server->fallbacks, 1);
	ereport(DEBUG1,
			(errmsg_internal("the CPU answers because %s: %s", fault->message, fault->detail)));
	return true;
}

/* Whether the device can be asked; raises when it must be and cannot. */
static bool
device_is_ready(PosteriorModel *model)
{
	TnpError	error;

	if (posterior_device_ready(model, &error))
	{
		TnpStatus	status = posterior_device_prepare(model, &error);

		if (status == TNP_OK)
			return true;
		/* what was refused once is not asked again, and nobody who left the choice to us need know */
		if (status == POSTERIOR_FAULT && model->refused_by != 0 && posterior_device == POSTERIOR_DEVICE_AUTO)
			return false;
	}
	if (error.status != TNP_OK && (error.status != POSTERIOR_FAULT || !posterior_may_fall_back(&error)))
		posterior_raise(&error, model->name);
	return false;
}

bool
posterior_build_on_device(PosteriorModel *model, int64 n)
{
	return posterior_device != POSTERIOR_DEVICE_CPU && build_work(model, n) >= posterior_device_threshold * 1e6 && device_is_ready(model);
}

/* Whether a small question about an encoding on the device goes there; if so it is counted. */
static bool
small_to_device(PosteriorContextHandle *e, double work)
{
	double		so_far = e->small;

	if (e->other_provider != NULL)
		return false;
	if (e->entry != NULL)
		so_far = (double) pg_atomic_fetch_add_u64(&e->entry->small, (uint64) work);
	else
		e->small += work;
	return so_far + work < build_work(e->model, posterior_cached_rows(e->cached));
}

bool
posterior_executes_here(const PosteriorModel *model, int64 n, const TnpRequest *r)
{
	return !posterior_device_possible() || request_work(model, n, r) < posterior_device_threshold * 1e6;
}

static bool
execute_on_device_first(PosteriorContextHandle *e, const TnpRequest *r)
{
	double		work;

	if (e->only != POSTERIOR_BY_RULE)
		return e->only == POSTERIOR_BY_DEVICE;
	if (posterior_device == POSTERIOR_DEVICE_CPU)
		return false;
	work = request_work(e->model, r->rows, r);
	if (work < posterior_device_threshold * 1e6 && (!posterior_cached_on_device(e->cached) || !small_to_device(e, work)))
		return false;
	return device_is_ready(e->model);
}

/* Ask the device. False if it has failed and the CPU may answer. */
static bool
execute_on_device(PosteriorContextHandle *e, TnpRequest *r)
{
	PosteriorContextHandle *d = posterior_cached_on_device(e->cached) ? e : posterior_handle_other_provider(e);
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
		return true;
	if (status != POSTERIOR_FAULT || !posterior_may_fall_back(&error))
		posterior_raise(&error, e->model->name);
	return false;
}

static void
execute_on_cpu(PosteriorContextHandle *e, TnpRequest *r)
{
	PosteriorContextHandle *c = posterior_cached_on_device(e->cached) ? posterior_handle_other_provider(e) : e;
	TnpError	error;

	if (tnp_execute(c->cached->encoding, r, &error) != TNP_OK)
		posterior_raise(&error, e->model->name);
}

void
posterior_execute(PosteriorContextHandle *e, TnpRequest *r)
{
	r->rows = posterior_cached_rows(e->cached);
	if (r->queries.n == 0 && posterior_cached_on_device(e->cached))
	{
		/* nothing is asked: a density of no rows is one */
		if (r->kind == TNP_REQUEST_SCORE)
			*r->answer = 0;
		return;
	}
	e->by = execute_on_device_first(e, r) && execute_on_device(e, r) ? POSTERIOR_BY_DEVICE : POSTERIOR_BY_CPU;
	if (e->by == POSTERIOR_BY_CPU)
		execute_on_cpu(e, r);
}

void
posterior_execute_uncached(PosteriorContextHandle *fresh, const PosteriorContextHandle *like, TnpRequest *r)
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
