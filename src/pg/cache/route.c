/*
 * route.c: which provider answers: the CPU in this process, or the device.
 *
 * The rule (docs/device.md). Work is counted in multiply-adds, from the model's size and the
 * numbers of rows. Where a device is ready, contexts that take more than posterior.device_threshold
 * to encode are encoded there, and requests that take more are answered there. A smaller request is
 * answered in this process if the context is encoded here, because a hand-over takes longer than
 * the answer. If it is not, the device answers until such requests have cost as much as encoding
 * the context here would; then it is encoded here as well. So the cost is at most twice the offline
 * optimum (the ski-rental rule).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/cache/route.h"

#include "pg/base/bridge.h"
#include "pg/device/device_client.h"

/* Work of one token that sees n keys. */
static double
token_work(const PosteriorModel *model, double n)
{
	const TnpModelInfo *info = tnp_model_info(model->model);

	/* a key and a value are a multiply-add per number each */
	return (double) info->n_parameters
		 + n * (double) (info->encoding_bytes_per_row / sizeof(float));
}

double
posterior_build_work(const PosteriorModel *model, int64 n)
{
	return (double) n * token_work(model, (double) n);
}

double
posterior_request_work(const PosteriorModel *model, int64 n, const TnpRequest *r)
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

bool
posterior_route_to_device(PosteriorModel *model)
{
	TnpError	error;

	/*
	 * devices have no kernels for them and no views of a table, and one target per row is all that
	 * the server is told of
	 */
	if (tnp_model_info(model->model)->has_views || tnp_model_info(model->model)->n_targets > 1)
		return false;
	if (posterior_device_ready(model, &error))
	{
		TnpStatus	status = posterior_device_prepare(model, &error);

		if (status == TNP_OK)
			return true;
		/*
		 * a model that was refused once is not tried again; where the choice is automatic that is
		 * no failure
		 */
		if (status == POSTERIOR_FAULT && model->refused_by != 0
			&& posterior_device == POSTERIOR_DEVICE_AUTO)
			return false;
	}
	if (error.status != TNP_OK
		&& (error.status != POSTERIOR_FAULT || !posterior_may_fall_back(&error)))
		posterior_raise(&error, model->name);
	return false;
}

bool
posterior_build_on_device(PosteriorModel *model, int64 n)
{
	return posterior_device != POSTERIOR_DEVICE_CPU
		&& !tnp_model_info(model->model)->has_views
		&& posterior_build_work(model, n) >= posterior_device_threshold * 1e6
		&& posterior_route_to_device(model);
}

bool
posterior_executes_here(const PosteriorModel *model, int64 n, const TnpRequest *r)
{
	return !posterior_device_possible()
		|| posterior_request_work(model, n, r) < posterior_device_threshold * 1e6;
}
