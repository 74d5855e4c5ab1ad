/*
 * questions.c: requests to answers: what is refused, and which file has the rest: marginals.c
 * marginal questions, variants.c those about rows that lack cells, chains.c joint ones.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "host.h"

#define MOST_QUERIES (INT32_MAX / 16)	/* steps and slots of a chain are counted in 32 bits */

/* What can be said of a request before anything is computed. */
static TnpStatus
check_request(const TnpDeviceEncoding *e, const TnpRequest *r, TnpError *error)
{
	int64_t		settled = e->prefix > e->stats.n0 ? e->prefix : e->stats.n0;
	TnpStatus	status;

	if (r->rows < settled || r->rows > e->n)
	{
		tnp_fail(error, TNP_BAD_ARGUMENT, "these rows are not an encoding of their own");
		tnp_detail(error, "first %lld of %lld rows, at least %lld needed", (long long) r->rows,
				   (long long) e->n, (long long) settled);
		return TNP_BAD_ARGUMENT;
	}
	if ((status = tnp_request_check(r, error)) != TNP_OK)
		return status;
	/* models with such a head are refused */
	if (r->kind == TNP_REQUEST_JOINT)
		return tnp_fail(error, TNP_BAD_ARGUMENT, "the model has no joint Gaussian");
	if (r->queries.n > MOST_QUERIES)
		return tnp_fail(error, TNP_BAD_ARGUMENT, "the number of rows is out of range");
	return cuda_rows_check(e, &r->queries, r->kind == TNP_REQUEST_SCORE, error);
}

/* Whether answers depend on what the model's process learns from rows of the chain. */
static bool
learns_in_chains(const TnpDeviceEncoding *e, const TnpRequest *r)
{
	return e->model->model->config.process_chain && r->queries.n > 1
		&& (r->kind == TNP_REQUEST_SAMPLE || r->orders != TNP_AS_APPENDED);
}

/* A request with an answer of its own: a joint one, or one about rows that lack cells. */
static TnpStatus
answer_alone(TnpDeviceEncoding *e, TnpRequest *r, bool variants, TnpError *error)
{
	if (cuda_is_marginal(r))
		return cuda_answer_variants(e, r, error);
	if (e->model->layered)
		return tnp_fail(error, TNP_NOT_HERE,
						"the device has no chains of models that it computes layer by layer");
	if (variants)
		return tnp_fail(error, TNP_NOT_HERE,
						"the device has no chains of rows that lack cells");
	if (learns_in_chains(e, r))
		return tnp_fail(error, TNP_NOT_HERE,
						"the device has no chains that a process learns from");
	return r->kind == TNP_REQUEST_SAMPLE ? cuda_sample(e, r, error) : cuda_score(e, r, error);
}

TnpStatus
cuda_answer(TnpDeviceEncoding *e, int n, TnpRequest *requests, TnpError *error)
{
	TnpStatus	status = TNP_OK;

	for (int i = 0; i < n; i++)
	{
		requests[i].status = check_request(e, &requests[i], &requests[i].error);
		/* no status of its own yet */
		if (requests[i].status == TNP_OK)
			requests[i].status = TNP_INTERRUPTED;
	}
	for (int i = 0; status == TNP_OK && i < n; i++)
	{
		TnpRequest *r = &requests[i];
		bool		variants;

		if (r->status != TNP_INTERRUPTED)
			continue;
		variants = cuda_wants_variants(e, r);
		if (cuda_is_marginal(r) && !variants)
			continue;
		status = answer_alone(e, r, variants, error);
		if (status == TNP_OK)
			r->status = TNP_OK;
		else if (status != TNP_INTERRUPTED && status != TNP_NO_MEMORY && !e->model->device->lost)
		{
			r->status = status;
			r->error = *error;
			status = TNP_OK;
		}
	}
	return status == TNP_OK ? cuda_answer_marginals(e, n, requests, error) : status;
}
