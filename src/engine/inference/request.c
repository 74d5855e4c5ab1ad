/*
 * request.c: answers requests, and reduces distributions to what is wanted of them: means, standard
 * deviations, quantiles, log densities.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/inference/request.h"

#include <math.h>

#include "engine/inference/encode.h"

/* Queries of a reduction whose whole distributions are in memory at a time. */
#define REDUCE_BLOCK 4096

TnpStatus
tnp_request_check(const TnpRequest *r, TnpError *error)
{
	bool		reduced = r->kind == TNP_REQUEST_REDUCE;

	if (r->kind == TNP_REQUEST_SAMPLE && r->draws < 1)
		return tnp_fail(error, TNP_BAD_ARGUMENT, "the number of draws must be positive");
	if (r->kind == TNP_REQUEST_SCORE && r->orders < TNP_AS_APPENDED)
		return tnp_fail(error, TNP_BAD_ARGUMENT, "the number of orders must not be negative");
	if (reduced && (r->reductions & TNP_REDUCE_LOG_DENSITY) != 0 && r->queries.y == NULL
		&& r->queries.n > 0)
		return tnp_fail(error, TNP_BAD_ARGUMENT, "log densities need targets");
	return TNP_OK;
}

void
tnp_request_reduce(const TnpRequest *r, const TnpDistribution *d, double y, double *to)
{
	if ((r->reductions & TNP_REDUCE_MEAN) != 0)
		*to++ = tnp_mean(d);
	if ((r->reductions & TNP_REDUCE_SD) != 0)
		*to++ = sqrt(tnp_variance(d));
	if ((r->reductions & TNP_REDUCE_QUANTILES) != 0)
		for (int l = 0; l < r->n_levels; l++)
			*to++ = tnp_quantile(d, r->levels[l]);
	if ((r->reductions & TNP_REDUCE_LOG_DENSITY) != 0)
		*to = tnp_log_pdf(d, y);
}

/* Reduced answers [n, D, width], a block of queries at a time. */
static TnpStatus
request_reduce(const TnpEncoding *e, const TnpRequest *r, TnpError *error)
{
	const TnpEnv *env = &e->model->env;
	int			components,
				size,
				targets = e->model->config.n_targets,
				width = tnp_reduction_width(r);
	TnpDistributionKind kind;
	TnpStatus	status = TNP_OK;
	double	   *params;

	tnp_answer_shape(e->model, &kind, &components);
	size = tnp_distribution_size(kind, components);
	params = tnp_alloc(env, r->queries.n < REDUCE_BLOCK ? r->queries.n + 1 : REDUCE_BLOCK,
					   (size_t) targets * size * sizeof(double));
	if (params == NULL)
		return tnp_no_memory(error);
	for (int64_t start = 0; status == TNP_OK && start < r->queries.n; start += REDUCE_BLOCK)
	{
		int64_t		n = r->queries.n - start < REDUCE_BLOCK ? r->queries.n - start : REDUCE_BLOCK;
		TnpRows		queries = tnp_rows_part(&r->queries, start, n);

		queries.y = NULL;
		status = tnp_predict(e, &queries, params, error);
		for (int64_t i = 0; status == TNP_OK && i < queries.n * targets; i++)
		{
			TnpDistribution d = {kind, components, params + i * size};
			int64_t		at = start * targets + i;

			tnp_request_reduce(r, &d, r->queries.y != NULL ? r->queries.y[at] : NAN,
							   r->answer + at * width);
		}
	}
	tnp_free(env, params);
	return status;
}

/* The request about all rows of the encoding. */
static TnpStatus
request_answer(const TnpEncoding *e, const TnpRequest *r, TnpError *error)
{
	switch (r->kind)
	{
		case TNP_REQUEST_PREDICT:
			return tnp_predict(e, &r->queries, r->answer, error);
		case TNP_REQUEST_REDUCE:
			return request_reduce(e, r, error);
		case TNP_REQUEST_SAMPLE:
			return tnp_sample(e, &r->queries, r->seed, r->first_draw, r->draws, r->answer, error);
		case TNP_REQUEST_SCORE:
			return tnp_score(e, &r->queries, r->orders, r->seed, r->answer, NULL, error);
		case TNP_REQUEST_JOINT:
			return tnp_joint(e, &r->queries, r->answer,
							 r->answer + r->queries.n * e->model->config.n_targets, error);
	}
	return tnp_fail(error, TNP_BAD_ARGUMENT, "unknown kind of request");
}

TnpStatus
tnp_execute(const TnpEncoding *e, const TnpRequest *r, TnpError *error)
{
	TnpStatus	status = tnp_request_check(r, error);
	TnpEncoding *view;

	if (status != TNP_OK || r->rows == e->n)
		return status == TNP_OK ? request_answer(e, r, error) : status;
	status = tnp_encoding_first(e, r->rows, &view, error);
	if (status != TNP_OK)
		return status;
	status = request_answer(view, r, error);
	tnp_encoding_free(view);
	return status;
}
