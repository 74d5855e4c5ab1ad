/*
 * two_stream.c: separate weights for rows and queries; queries read the row states that leave a
 * layer (docs/model-format.md section 7).
 *
 * Cache layers: keys and values of self-attention 0 … L-1, then those that queries read.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/families.h"

#include "engine/families/stack.h"

static const TnpKey two_stream_keys[] = {TNP_STACK_KEYS, TNP_END};

static TnpStatus
two_stream_check(const TnpConfig *c, TnpError *error)
{
	const TnpRule rules[] = {
		{c->context == TNP_PREFIX_CAUSAL,
		 "two-stream models exclude context \"prefix-causal\"", NULL, 0, NULL, 0},
		{c->sinks > 0, "two-stream models exclude attention.sinks", "attention.sinks", c->sinks,
		 NULL, 0},
		{c->log_scale, "two-stream models exclude attention.log_scale", NULL, 0, NULL, 0},
		{c->positions > 0, "two-stream models exclude embedder.positions",
		 "embedder.positions", c->positions, NULL, 0},
	};
	TnpStatus	status = tnp_check_rules(sizeof(rules) / sizeof(rules[0]), rules, error);

	return status == TNP_OK ? tnp_stack_check(c, error) : status;
}

static void
two_stream_bind(TnpBinder *b)
{
	TnpModel   *m = b->model;
	const TnpConfig *c = &m->config;

	m->layers = tnp_bind_layers(b, "self", c->layers, c->width, c->feedforward, false);
	m->cross = tnp_bind_layers(b, "cross", c->layers, c->width, c->feedforward, false);
}

static void
two_stream_cache_shape(const TnpModel *model, TnpCacheShape *shape)
{
	tnp_stack_shape(model, 2 * model->config.layers, shape);
}

static size_t
two_stream_row_bytes(const TnpModel *model)
{
	return tnp_stack_row_bytes(model, 2 * model->config.layers);
}

static double
two_stream_cost(const TnpModel *model, double rows, double keys)
{
	return tnp_stack_cost(model, 2 * model->config.layers, rows, keys);
}

static TnpStatus
two_stream_walk(TnpWalk *w, int64_t n, int64_t n_store, TnpError *error)
{
	const TnpModel *model = w->model;
	int			layers = model->config.layers;
	TnpStatus	status = TNP_OK;

	for (int l = 0; status == TNP_OK && l < layers; l++)
	{
		w->entry = l == 0;
		if (n_store > 0)
		{
			status = tnp_walk_store(w, &model->layers[l], l, n_store, error);
			if (status == TNP_OK)
				status = tnp_walk_attend(w, &model->layers[l], l, 0, n_store, error);
			if (status == TNP_OK)
				status = tnp_walk_store(w, &model->cross[l], layers + l, n_store, error);
		}
		if (status == TNP_OK)
			status = tnp_walk_attend(w, &model->cross[l], layers + l, n_store, n, error);
	}
	return status;
}

const TnpFamily tnp_two_stream_family = {
	.name = "two-stream",
	.keys = two_stream_keys,
	.check = two_stream_check,
	.joint_heads = true,
	.several_targets = true,
	.bind = two_stream_bind,
	.head_width = tnp_stack_head_width,
	.appendable = tnp_stack_appendable,
	.on_gpu = true,
	.cache_shape = two_stream_cache_shape,
	.slots = tnp_stack_slots,
	.row_bytes = two_stream_row_bytes,
	.state_width = tnp_stack_state_width,
	.block_sizes = tnp_stack_block_sizes,
	.embed = tnp_embed,
	.embed_scratch = tnp_embed_scratch,
	.row_token = tnp_stack_row_token,
	.encode = tnp_encode_rows,
	.walk = two_stream_walk,
	.shares_keys = tnp_stack_shares_keys,
	.cost = two_stream_cost,
};
