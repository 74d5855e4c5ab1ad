/*
 * chain.c: the chain rule over one shared encoding: what each step sees, and the merging of
 * finished blocks (docs/model-format.md section 9; Hassan et al., algorithms 1 and 2).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/inference/chain.h"

#include <string.h>

int64_t
tnp_chain_room(const TnpEncoding *e)
{
	const TnpConfig *c = &e->model->config;

	if (c->context != TNP_FULL || c->buffer == 0)
		return INT64_MAX;
	return c->buffer - (e->n - e->prefix);
}

int
tnp_chain_position(const TnpEncoding *e, int64_t j)
{
	return e->model->config.positions > 0 ? (int) (e->n - e->prefix + j) : -1;
}

TnpStatus
tnp_chain_cache(const TnpModel *model, int64_t slots, TnpKvCache *cache, TnpError *error)
{
	TnpCacheShape shape;

	model->config.family->cache_shape(model, &shape);
	return tnp_cache_make(&model->env, &shape, TNP_PANEL, slots, cache, error);
}

TnpToken
tnp_chain_row(const TnpEncoding *e, TnpKvCache *own, int64_t j)
{
	return (TnpToken) {tnp_encoding_slots(e), e->model->config.strict ? j : j + 1, own, j};
}

TnpToken
tnp_chain_query(const TnpEncoding *e, TnpKvCache *own, int64_t j)
{
	return (TnpToken) {tnp_encoding_slots(e), j, own, -1};
}

TnpStatus
tnp_chain_settle_rows(const TnpEncoding *e, TnpTeam *team, TnpFeatureEmbedding *half,
					  const int64_t *place, int64_t n, TnpError *error)
{
	const TnpFamily *family = e->model->config.family;

	return family->settle_rows == NULL ? TNP_OK
		: family->settle_rows(e, team, half, place, n, error);
}

TnpStatus
tnp_chain_merge(const TnpEncoding *root, const TnpEncoding **e, const TnpRows *rows,
				const int64_t *place, const double *y, int64_t n,
				TnpError *error)
{
	const TnpEnv *env = &root->model->env;
	int			features = rows->n_features;
	double	   *x = tnp_alloc(env, n, features * sizeof(double));
	TnpRows		more = {n, features, rows->kinds, x, y, 0, 0, root->model->config.n_targets};
	TnpEncoding *merged;
	TnpStatus	status;

	if (x == NULL)
		return tnp_no_memory(error);
	for (int64_t i = 0; i < n; i++)
		memcpy(x + i * features, rows->x + place[i] * features, features * sizeof(double));
	status = tnp_merge(*e, &more, &merged, error);
	tnp_free(env, x);
	if (status != TNP_OK)
		return status;
	if (*e != root)
		tnp_encoding_free((TnpEncoding *) *e);
	*e = merged;
	return TNP_OK;
}
