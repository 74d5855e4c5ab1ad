/*
 * variants.c: marginal questions about rows that lack cells, with the cells of their donors: the
 * device answers all variants, the host joins the answers and reduces them. Joint questions about
 * such rows are the session's (TNP_NOT_HERE): the kernel of chains asks about every row once.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "host.h"

#include <math.h>
#include <stdlib.h>

#include "engine/inference/variants.h"

/* Answers to queries that lack nothing that is borrowed, or are variants: params [n, size]. */
static TnpStatus
answer_each(TnpDeviceEncoding *e, const TnpRequest *r, const TnpRows *queries, double *params,
			TnpError *error)
{
	TnpRequest	each = {.kind = TNP_REQUEST_PREDICT, .rows = r->rows, .queries = *queries,
						.answer = params, .status = TNP_INTERRUPTED};
	TnpStatus	status = cuda_answer_marginals(e, 1, &each, error);

	if (status == TNP_OK && each.status != TNP_OK)
		*error = each.error;
	return status == TNP_OK ? each.status : status;
}

bool
cuda_wants_variants(const TnpDeviceEncoding *e, const TnpRequest *r)
{
	return tnp_variants_wanted(&e->stats, &r->queries);
}

/* What is wanted of query i, whose distribution has these parameters. */
static void
write_answer(const TnpDeviceModel *m, const TnpRequest *r, int64_t i, double *params)
{
	TnpDistribution d = {.params = params};

	tnp_answer_shape(m->model, &d.kind, &d.n);
	tnp_request_reduce(r, &d, r->queries.y != NULL ? r->queries.y[i] : NAN,
					   r->answer + i * tnp_reduction_width(r));
}

TnpStatus
cuda_answer_variants(TnpDeviceEncoding *e, const TnpRequest *r, TnpError *error)
{
	const TnpDeviceModel *m = e->model;
	size_t		size = m->shape.params;
	bool		reduced = r->kind == TNP_REQUEST_REDUCE;
	TnpVariants v;
	double	   *each = NULL,
			   *work = NULL,
			   *joined = NULL;
	TnpStatus	status = tnp_variants_make(m->model, &e->stats, &r->queries, &v, error);

	if (status == TNP_OK)
	{
		each = malloc((size_t) v.rows.n * size * sizeof(double));
		work = malloc((tnp_variants_work(m->model, &v) + 1) * sizeof(double));
		joined = malloc(size * sizeof(double));
		status = each == NULL || work == NULL || joined == NULL ? tnp_no_memory(error)
			: answer_each(e, r, &v.rows, each, error);
	}
	for (int64_t i = 0; status == TNP_OK && i < r->queries.n; i++)
	{
		double	   *to = reduced ? joined : r->answer + i * (int64_t) size;

		tnp_variants_join(m->model, &v, i, each + tnp_variants_first(&v, i) * (int64_t) size, size,
						  work, to);
		if (reduced)
			write_answer(m, r, i, to);
	}
	free(each);
	free(work);
	free(joined);
	tnp_variants_free(&m->model->env, &v);
	return status;
}
