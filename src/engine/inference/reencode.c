/*
 * reencode.c: joint questions by encoding again after each row.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/inference/reencode.h"

#include "engine/inference/chain.h"

/* The distribution of one row, into params. */
static TnpStatus
predict_one(const TnpEncoding *e, const TnpRows *rows, int64_t row, double *params,
			TnpDistribution *answer, TnpError *error)
{
	TnpRows		one = {1, rows->n_features, rows->kinds, rows->x + row * rows->n_features, NULL,
					   rows->n_classes, rows->before + row, 1};

	tnp_answer_shape(e->model, &answer->kind, &answer->n);
	answer->params = params;
	return tnp_predict(e, &one, params, error);
}

/* The next step's encoding: with one row more. */
static TnpStatus
take_in(const TnpEncoding *root, const TnpEncoding **e, const TnpRows *rows, int64_t row, double y,
		TnpError *error)
{
	return tnp_chain_merge(root, e, rows, &row, &y, 1, error);
}

static double *
make_params(const TnpEncoding *e)
{
	TnpDistributionKind kind;
	int			n;

	tnp_answer_shape(e->model, &kind, &n);
	return tnp_alloc(&e->model->env, tnp_distribution_size(kind, n), sizeof(double));
}

TnpStatus
tnp_sample_by_encoding(const TnpEncoding *root, const TnpRows *queries, uint64_t seed,
					   uint64_t first_draw, int64_t draws, double *y, TnpError *error)
{
	const TnpEnv *env = &root->model->env;
	double	   *first = make_params(root),
			   *params = make_params(root);
	TnpDistribution answer;
	TnpStatus	status = first == NULL || params == NULL ? tnp_no_memory(error)
		: predict_one(root, queries, 0, first, &answer, error);

	for (int64_t b = 0; status == TNP_OK && b < draws; b++)
	{
		const TnpEncoding *e = root;
		double	   *drawn = y + b * queries->n;

		/* before anything is drawn, all draws ask the same question */
		answer.params = first;
		for (int64_t j = 0; status == TNP_OK && j < queries->n; j++)
		{
			if (j > 0)
				status = take_in(root, &e, queries, j - 1, drawn[j - 1], error);
			if (status == TNP_OK && j > 0)
				status = predict_one(e, queries, j, params, &answer, error);
			if (status == TNP_OK)
				drawn[j] = tnp_draw(&answer, seed, first_draw + (uint64_t) b, (uint32_t) j);
			/* the question that is the same of all draws has been told of once */
			if (status == TNP_OK && j == 0 && b > 0)
				tnp_answered(env, 1);
		}
		if (e != root)
			tnp_encoding_free((TnpEncoding *) e);
	}
	tnp_free(env, first);
	tnp_free(env, params);
	return status;
}

TnpStatus
tnp_score_by_encoding(const TnpEncoding *root, const TnpRows *rows, const int64_t *place,
					  double *steps, TnpError *error)
{
	const TnpEncoding *e = root;
	double	   *params = make_params(root);
	TnpStatus	status = params == NULL ? tnp_no_memory(error) : TNP_OK;

	for (int64_t j = 0; status == TNP_OK && j < rows->n; j++)
	{
		TnpDistribution answer;

		if (j > 0)
			status = take_in(root, &e, rows, place[j - 1], rows->y[place[j - 1]], error);
		if (status == TNP_OK)
			status = predict_one(e, rows, place[j], params, &answer, error);
		if (status == TNP_OK)
			steps[j] = tnp_log_pdf(&answer, rows->y[place[j]]);
	}
	if (e != root)
		tnp_encoding_free((TnpEncoding *) e);
	tnp_free(&root->model->env, params);
	return status;
}
