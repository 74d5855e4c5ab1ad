/*
 * packed.c: the packed stack: one set of weights for rows and queries, whose keys come from the
 * state that enters the layer (docs/model-format.md section 6).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/families.h"

#include "engine/families/stack.h"

static const TnpKey packed_keys[] = {TNP_STACK_KEYS, TNP_END};

static void
packed_bind(TnpBinder *b)
{
	TnpModel   *m = b->model;
	const TnpConfig *c = &m->config;

	if (c->sinks > 0)
		m->sinks = tnp_bind_tensor(b, "sinks", 2, c->sinks, c->width, 0);
	m->layers = tnp_bind_layers(b, "layer", c->layers, c->width, c->feedforward, c->log_scale);
}

static void
packed_cache_shape(const TnpModel *model, TnpCacheShape *shape)
{
	tnp_stack_shape(model, model->config.layers, shape);
}

static size_t
packed_row_bytes(const TnpModel *model)
{
	return tnp_stack_row_bytes(model, model->config.layers);
}

static double
packed_cost(const TnpModel *model, double rows, double keys)
{
	return tnp_stack_cost(model, model->config.layers, rows, keys);
}

static TnpStatus
packed_walk(TnpWalk *w, int64_t n, int64_t n_store, TnpError *error)
{
	return tnp_stack_walk(w, w->model->layers, sizeof(TnpLayer), n, n_store, error);
}

const TnpFamily tnp_packed_family = {
	.name = "packed",
	.keys = packed_keys,
	.check = tnp_stack_check,
	.bind = packed_bind,
	.head_width = tnp_stack_head_width,
	.appendable = tnp_stack_appendable,
	.cache_shape = packed_cache_shape,
	.slots = tnp_stack_slots,
	.row_bytes = packed_row_bytes,
	.state_width = tnp_stack_state_width,
	.block_sizes = tnp_stack_block_sizes,
	.embed = tnp_embed,
	.embed_scratch = tnp_embed_scratch,
	.row_token = tnp_stack_row_token,
	.encode = tnp_encode_rows,
	.walk = packed_walk,
	.shares_keys = tnp_stack_shares_keys,
	.cost = packed_cost,
};
