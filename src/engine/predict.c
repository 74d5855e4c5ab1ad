/*
 * predict.c: marginal predictive distributions of query rows.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "encode.h"

#define CHUNK (4 * TNP_TILE)	/* rows whose states are held at once */

/* Answers of queries [first, first + n), n <= CHUNK; h [CHUNK, d] and scratch are the caller's. */
static TnpStatus
predict_chunk(const TnpEncoding *e, const TnpRows *queries, int64_t first, int64_t n, float *scratch, float *h, double *params, TnpError *error)
{
	const TnpModel *model = e->model;
	TnpToken	tokens[CHUNK];
	TnpHalf		half;
	TnpStatus	status = tnp_half_build(model, &e->stats, queries, first, n, false, &half, error);

	if (status != TNP_OK)
		return status;
	for (int64_t start = 0; start < n; start += TNP_TILE)
	{
		int			tile = n - start < TNP_TILE ? (int) (n - start) : TNP_TILE;
		const float *row[TNP_TILE];

		for (int i = 0; i < tile; i++)
		{
			row[i] = half.values + (start + i) * half.width;
			tokens[start + i] = (TnpToken) {tnp_encoding_slots(e), 0, NULL, -1};
		}
		tnp_embed(model, tile, row, NULL, TNP_ROLE_QUERY, NULL, scratch, h + start * model->config.width);
	}
	tnp_half_free(&model->env, &half);
	/* queries store nothing, so the shared cache is only read */
	status = tnp_trunk(model, (TnpCache *) &e->cache, n, 0, tokens, h, error);
	return status == TNP_OK ? tnp_answers(model, &e->stats, n, h, params, error) : status;
}

TnpStatus
tnp_predict(const TnpEncoding *e, const TnpRows *queries, double *params, TnpError *error)
{
	const TnpModel *model = e->model;
	TnpDistributionKind kind;
	int			components,
				size;
	float	   *h,
			   *scratch;
	TnpStatus	status = tnp_queries_check(e, queries, false, error);

	if (status != TNP_OK)
		return status;
	tnp_answer_shape(model, &kind, &components);
	size = tnp_distribution_size(kind, components);
	h = tnp_alloc(&model->env, CHUNK, model->config.width * sizeof(float));
	scratch = tnp_alloc(&model->env, TNP_TILE, tnp_embed_scratch(model) * sizeof(float));
	if (h == NULL || scratch == NULL)
		status = tnp_no_memory(error);
	for (int64_t first = 0; status == TNP_OK && first < queries->n; first += CHUNK)
	{
		int64_t		n = queries->n - first < CHUNK ? queries->n - first : CHUNK;

		status = predict_chunk(e, queries, first, n, scratch, h, params + first * size, error);
	}
	tnp_free(&model->env, h);
	tnp_free(&model->env, scratch);
	return status;
}
