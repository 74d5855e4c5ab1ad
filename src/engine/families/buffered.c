/*
 * buffered.c: context rows, chain rows and queries with weights of their own (docs/families.md,
 * "Separate buffer weights"; the arrangement of nanoACE).
 *
 * Cache layer l of the first L has the keys of the states that enter layer l, which chain rows
 * read; cache layer L + l those of the states that leave it, which queries read. Keys by which
 * context rows read each other are needed while they are encoded only.
 *
 * The constant on the logits of chain rows' keys is one more feature of each head: 1 in the
 * queries, and in a key the constant if it is a chain row's, else 0. The value has a 0 there, which
 * attn.o does not read. The kernels divide logits by the root of the features that they see, one
 * too many, which the queries' weights make good. So the kernels attend as they are.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/families.h"

#include <math.h>
#include <string.h>

#include "engine/families/stack.h"

/* Layers as the kernels read them, each [L]; context rows have the model's layers. */
typedef struct BufferedWeights
{
	TnpLayer   *buffer,			/* chain rows read the context and each other */
			   *cross,			/* queries read both; the source's norm and keys are in: */
			   *from_context,
			   *from_buffer;
} BufferedWeights;

static const TnpKey buffered_keys[] = {TNP_STACK_KEYS, TNP_END};

static const BufferedWeights *
buffered_weights_of(const TnpModel *model)
{
	return model->own;
}

/* Features of a head in the cache. */
static int
buffered_head_width(const TnpConfig *c)
{
	return c->width / c->heads + 1;
}

static TnpStatus
buffered_check(const TnpConfig *c, TnpError *error)
{
	const TnpRule rules[] = {
		{c->context != TNP_FULL, "architecture \"buffered\" needs context \"full\"", NULL, 0, NULL,
		 0},
		{c->buffer == 0, "architecture \"buffered\" needs a limit in chain.buffer", NULL, 0, NULL,
		 0},
		{c->post_norm, "architecture \"buffered\" needs norm.placement \"pre\"", NULL, 0, NULL, 0},
		{c->sinks > 0, "architecture \"buffered\" excludes attention.sinks", "attention.sinks",
		 c->sinks, NULL, 0},
		{c->log_scale, "architecture \"buffered\" excludes attention.log_scale", NULL, 0, NULL, 0},
	};
	TnpStatus	status = tnp_check_rules(sizeof(rules) / sizeof(rules[0]), rules, error);

	return status == TNP_OK ? tnp_stack_check(c, error) : status;
}

/*
 * w with one more output behind those of each head: `last` [heads] whatever the input, or 0 where
 * it is NULL. All other outputs are multiplied by factor.
 */
static TnpLinear
buffered_widen_outputs(TnpBinder *b, const TnpLinear *w, double factor, const double *last)
{
	int			heads = b->model->config.heads,
				from = w->out / heads,
				to = from + 1;
	TnpLinear	out = {w->in, heads * to, w->in, NULL, NULL, NULL, NULL};
	float	   *weight = tnp_bind_floats(b, (size_t) out.out * out.in),
			   *bias = tnp_bind_floats(b, out.out);

	if (b->status != TNP_OK)
		return out;
	for (int o = 0; o < out.out; o++)
	{
		int			head = o / to,
					feature = o % to,
					row = head * from + feature;

		for (int i = 0; i < w->in; i++)
			weight[(size_t) o * w->in + i] = feature == from ? 0
				: (float) (factor * w->weight[(size_t) row * w->stride + i]);
		if (feature == from)
			bias[o] = last != NULL ? (float) last[head] : 0;
		else
			bias[o] = w->bias != NULL ? (float) (factor * w->bias[row]) : 0;
	}
	out.weight = weight;
	out.bias = bias;
	tnp_bind_pack(b, &out);
	return out;
}

/* w with one more input behind those of each head, which is not read. */
static TnpLinear
buffered_widen_inputs(TnpBinder *b, const TnpLinear *w)
{
	int			heads = b->model->config.heads,
				from = w->in / heads,
				to = from + 1;
	TnpLinear	out = {heads * to, w->out, heads * to, NULL, w->bias, NULL, NULL};
	float	   *weight = tnp_bind_floats(b, (size_t) out.out * out.in);

	if (b->status != TNP_OK)
		return out;
	for (int o = 0; o < out.out; o++)
		for (int i = 0; i < out.in; i++)
			weight[(size_t) o * out.in + i] = i % to == from ? 0
				: w->weight[(size_t) o * w->stride + i / to * from + i % to];
	out.weight = weight;
	tnp_bind_pack(b, &out);
	return out;
}

/* A layer whose heads have one more feature: `ones` [heads] in the queries, 0 in keys, values. */
static void
buffered_widen(TnpBinder *b, TnpLayer *layer, const double *ones)
{
	double		width = buffered_head_width(&b->model->config),
				factor = sqrt(width / (width - 1));

	layer->q = buffered_widen_outputs(b, &layer->q, factor, ones);
	layer->k = buffered_widen_outputs(b, &layer->k, 1, NULL);
	layer->v = buffered_widen_outputs(b, &layer->v, 1, NULL);
	layer->o = buffered_widen_inputs(b, &layer->o);
}

/* What layer l makes of the states that its queries read. */
static void
buffered_bind_source(TnpBinder *b, BufferedWeights *w, int l)
{
	const TnpConfig *c = &b->model->config;
	double		ones[TNP_MAX_WIDTH],
				constants[TNP_MAX_WIDTH];
	TnpLinear	k = w->cross[l].k;
	const float *constant;
	char		name[64];

	snprintf(name, sizeof(name), "cross.%d.attn.buffer", l);
	constant = tnp_bind_tensor(b, name, 1, c->heads, 0, 0);
	if (b->status != TNP_OK)
		return;
	for (int h = 0; h < c->heads; h++)
	{
		ones[h] = 1;
		constants[h] = constant[h] * sqrt((double) buffered_head_width(c));
	}
	buffered_widen(b, &w->cross[l], ones);
	w->from_context[l] = w->cross[l];
	snprintf(name, sizeof(name), "cross.%d.norm_kv", l);
	w->from_context[l].norm1 = tnp_bind_norm(b, name, c->width);
	w->from_buffer[l] = w->from_context[l];
	w->from_buffer[l].k = buffered_widen_outputs(b, &k, 1, constants);
}

static void
buffered_bind(TnpBinder *b)
{
	TnpModel   *m = b->model;
	const TnpConfig *c = &m->config;
	BufferedWeights *w = tnp_bind_memory(b, sizeof(BufferedWeights));

	if (w == NULL)
		return;
	m->own = w;
	m->layers = tnp_bind_layers(b, "self", c->layers, c->width, c->feedforward, false);
	w->buffer = tnp_bind_layers(b, "buffer", c->layers, c->width, c->feedforward, false);
	w->cross = tnp_bind_layers(b, "cross", c->layers, c->width, c->feedforward, false);
	w->from_context = tnp_bind_memory(b, c->layers * sizeof(TnpLayer));
	w->from_buffer = tnp_bind_memory(b, c->layers * sizeof(TnpLayer));
	for (int l = 0; b->status == TNP_OK && l < c->layers; l++)
	{
		buffered_widen(b, &w->buffer[l], NULL);
		buffered_bind_source(b, w, l);
	}
}

static void
buffered_block_sizes(const TnpModel *model, TnpBlockSizes *sizes)
{
	const TnpConfig *c = &model->config;
	int			wide = c->heads * buffered_head_width(c);

	*sizes = (TnpBlockSizes) {c->width, wide, wide, c->feedforward, c->heads, 0, 1};
}

static void
buffered_cache_shape(const TnpModel *model, TnpCacheShape *shape)
{
	const TnpConfig *c = &model->config;

	*shape = (TnpCacheShape) {2 * c->layers, c->heads, buffered_head_width(c),
							  buffered_head_width(c), model->kernels->number, .planes = 1};
}

static size_t
buffered_row_bytes(const TnpModel *model)
{
	const TnpConfig *c = &model->config;

	return (size_t) 2 * c->layers * 2 * c->heads * buffered_head_width(c) * model->kernels->number;
}

static double
buffered_cost(const TnpModel *model, double rows, double keys)
{
	return tnp_stack_cost(model, 2 * model->config.layers, rows, keys);
}

/* Chain rows, then queries. */
static TnpStatus
buffered_walk(TnpWalk *w, int64_t n, int64_t n_store, TnpError *error)
{
	const BufferedWeights *weights = buffered_weights_of(w->model);
	int			layers = w->model->config.layers;
	TnpStatus	status = TNP_OK;

	for (int l = 0; status == TNP_OK && l < layers; l++)
	{
		w->entry = l == 0;
		if (n_store > 0)
		{
			status = tnp_walk_store(w, &weights->buffer[l], l, n_store, error);
			if (status == TNP_OK)
				status = tnp_walk_attend(w, &weights->buffer[l], l, 0, n_store, error);
			if (status == TNP_OK)
				status = tnp_walk_store(w, &weights->from_buffer[l], layers + l, n_store, error);
		}
		if (status == TNP_OK)
			status = tnp_walk_attend(w, &weights->cross[l], layers + l, n_store, n, error);
	}
	return status;
}

/* What encoding the prefix needs. */
typedef struct BufferedBuild
{
	TnpTeam    *team;
	float	   *h;				/* [prefix, d] */
	TnpToken   *tokens;			/* [prefix], which see each other */
	TnpKvCache	keys;			/* of one layer, for context rows alone */
} BufferedBuild;

static void
buffered_build_free(const TnpEnv *env, BufferedBuild *b)
{
	tnp_free(env, b->h);
	tnp_free(env, b->tokens);
	tnp_cache_free(env, &b->keys);
	tnp_team_free(b->team);
}

/* b is zeroed, and is freed by the caller also after a failure. */
static TnpStatus
buffered_build_make(const TnpEncoding *e, BufferedBuild *b, TnpError *error)
{
	const TnpModel *model = e->model;
	const TnpEnv *env = &model->env;
	TnpCacheShape shape;
	TnpStatus	status;

	tnp_stack_shape(model, 1, &shape);
	b->h = tnp_alloc(env, e->prefix, model->config.width * sizeof(float));
	b->tokens = tnp_alloc(env, e->prefix, sizeof(TnpToken));
	if (b->h == NULL || b->tokens == NULL)
		return tnp_no_memory(error);
	for (int64_t i = 0; i < e->prefix; i++)
		b->tokens[i] = (TnpToken) {e->prefix, 0, NULL, i};
	status = tnp_cache_make(env, &shape, TNP_BLOCK, e->prefix, &b->keys, error);
	return status == TNP_OK
		? tnp_team_with_scratch(model, &e->stats, TNP_TILE, tnp_team_most(e->prefix),
								tnp_cost(model, (double) e->prefix, (double) e->prefix), &b->team,
								error) : status;
}

/* Layer l: chain rows' keys of the rows; the rows read each other; queries' keys of them. */
static TnpStatus
buffered_build_layer(TnpEncoding *e, BufferedBuild *b, int l, TnpError *error)
{
	const TnpModel *model = e->model;
	const BufferedWeights *weights = buffered_weights_of(model);
	int64_t		n = e->prefix;
	TnpWalk		store = tnp_walk_begin(b->team, e, &e->cache, n, b->tokens, b->h),
				walk = tnp_walk_begin(b->team, e, &b->keys, n, b->tokens, b->h);
	TnpStatus	status = tnp_walk_store(&store, &weights->buffer[l], l, n, error);

	if (status == TNP_OK)
		status = tnp_walk_store(&walk, &model->layers[l], 0, n, error);
	if (status == TNP_OK)
		status = tnp_walk_attend(&walk, &model->layers[l], 0, 0, n, error);
	return status == TNP_OK
		? tnp_walk_store(&store, &weights->from_context[l], model->config.layers + l, n, error)
		: status;
}

static TnpStatus
buffered_encode_prefix(TnpEncoding *e, TnpError *error)
{
	const TnpModel *model = e->model;
	BufferedBuild b = {0};
	TnpStatus	status = buffered_build_make(e, &b, error);

	if (status == TNP_OK)
	{
		tnp_team_watch(b.team, e->prefix, model->config.layers + 1);
		status = tnp_embed_all_rows(e, b.team, 0, e->prefix, b.h, error);
		tnp_team_next_step(b.team);
	}
	for (int l = 0; status == TNP_OK && l < model->config.layers; l++)
		status = buffered_build_layer(e, &b, l, error);
	if (status == TNP_OK && model->env.progress != NULL)
		model->env.progress(model->env.arg, e->prefix, e->prefix);
	buffered_build_free(&model->env, &b);
	return status;
}

static TnpStatus
buffered_encode(TnpEncoding *e, int64_t first, int64_t n, bool anew, TnpError *error)
{
	int64_t		later = anew ? e->prefix : first;
	TnpStatus	status = anew && e->prefix > 0 ? buffered_encode_prefix(e, error) : TNP_OK;

	if (status != TNP_OK || first + n == later)
		return status;
	return tnp_encode_rows(e, later, first + n - later, false, error);
}

const TnpFamily tnp_buffered_family = {
	.name = "buffered",
	.keys = buffered_keys,
	.check = buffered_check,
	.joint_heads = true,
	.several_targets = true,
	.bind = buffered_bind,
	.head_width = tnp_stack_head_width,
	.appendable = tnp_stack_appendable,
	.cache_shape = buffered_cache_shape,
	.slots = tnp_stack_slots,
	.row_bytes = buffered_row_bytes,
	.state_width = tnp_stack_state_width,
	.block_sizes = buffered_block_sizes,
	.embed = tnp_embed,
	.embed_scratch = tnp_embed_scratch,
	.row_token = tnp_stack_row_token,
	.encode = buffered_encode,
	.walk = buffered_walk,
	.shares_keys = tnp_stack_shares_keys,
	.cost = buffered_cost,
};
