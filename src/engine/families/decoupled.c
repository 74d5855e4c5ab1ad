/*
 * decoupled.c: decoupled-value attention: weights come from features alone, values from targets
 * alone (docs/families.md, "Decoupled values"; Sharma et al. 2025, eq. (2) to (7)).
 *
 * The state of a token is [h, e]: what layers update and the head reads, which begins as the
 * target's encoding, and the encoding of the features, which stays. Keys are made of e, values of
 * h. Of several targets, each by itself (tnp_model_several), there are as many h and planes of
 * values; keys, queries and weights are common to them. The weights exp(-tau |q - k|^2) of kind
 * "distance" are those of the product of [2 tau q, -tau] with [k, |k|^2], up to a factor that they
 * share; values get a zero to be as wide.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/decoupled.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/families/families.h"
#include "engine/families/products_marks.h"

typedef struct DecoupledLayer
{
	TnpDecoupledAttention attn;
	TnpLinear	ff0,
				ff1;
	TnpNorm		norm_q,
				norm_k,
				norm_v,
				norm_ff;
	float		tau;
} DecoupledLayer;

static const TnpChoice kinds[] = {
	{"softmax", TNP_DECOUPLED_SOFTMAX}, {"distance", TNP_DECOUPLED_DISTANCE},
	{"linear", TNP_DECOUPLED_LINEAR}, {0}
};
static const TnpChoice backbones[] = {
	{"attention", TNP_BACKBONE_ATTENTION}, {"convolution", TNP_BACKBONE_CONVOLUTION},
	{"rnn", TNP_BACKBONE_RNN}, {"lstm", TNP_BACKBONE_LSTM}, {0}
};

static const TnpKey attention_keys[] = {
	TNP_CHOICE("bias", TnpConfig, bias, tnp_bias_choices),
	TNP_OWN_CHOICE_OPTIONAL("kind", TnpDecoupledConfig, kind, kinds),
	TNP_OWN_BOOLEAN_OPTIONAL("tied", TnpDecoupledConfig, tied),
	TNP_END
};
static const TnpKey backbone_keys[] = {
	TNP_OWN_CHOICE_OPTIONAL("kind", TnpDecoupledConfig, backbone, backbones),
	TNP_END
};
static const TnpKey decoupled_keys[] = {
	TNP_INTEGER("layers", TnpConfig, layers, 1, TNP_MAX_LAYERS),
	TNP_INTEGER("heads", TnpConfig, heads, 1, TNP_MAX_WIDTH),
	TNP_INTEGER_OPTIONAL("feedforward", TnpConfig, feedforward, 1, TNP_MAX_FEEDFORWARD),
	TNP_OBJECT("norm", tnp_norm_keys),
	TNP_OBJECT("attention", attention_keys),
	TNP_OBJECT_OPTIONAL("backbone", backbone_keys),
	TNP_END
};

static const TnpFamily *
decoupled_refine(const TnpConfig *c)
{
	switch (tnp_decoupled_config(c)->backbone)
	{
		case TNP_BACKBONE_CONVOLUTION:
			return &tnp_convolution_family;
		case TNP_BACKBONE_RNN:
		case TNP_BACKBONE_LSTM:
			return &tnp_recurrence_family;
		default:
			return c->family;
	}
}

TnpStatus
tnp_decoupled_check(const TnpConfig *c, TnpError *error)
{
	const TnpDecoupledConfig *own = tnp_decoupled_config(c);
	const bool	attention = own->backbone == TNP_BACKBONE_ATTENTION;
	const TnpRule rules[] = {
		{c->post_norm, "architecture \"decoupled\" needs norm.placement \"pre\"", NULL, 0, NULL, 0},
		{attention && c->feedforward == 0, "backbone.kind \"attention\" needs feedforward", NULL, 0,
		 NULL, 0},
		{!attention && c->feedforward > 0,
		 "feedforward belongs to backbone.kind \"attention\" alone", "feedforward", c->feedforward,
		 NULL, 0},
		{!attention && own->kind != TNP_DECOUPLED_SOFTMAX,
		 "a backbone.kind other than \"attention\" needs attention.kind \"softmax\"", NULL, 0, NULL,
		 0},
	};
	TnpStatus	status = tnp_check_rules(sizeof(rules) / sizeof(rules[0]), rules, error);

	return status == TNP_OK ? tnp_stack_check(c, error) : status;
}

/* ---- weights --------------------------------------------------------------------------------- */

TnpDecoupledAttention
tnp_decoupled_bind_attention(TnpBinder *b, const char *name)
{
	const TnpConfig *c = &b->model->config;
	bool		bias = c->bias == TNP_BIAS_ALL;
	TnpDecoupledAttention attn;
	char		full[64];
	int			d = c->width;

#define NAMED(suffix) (snprintf(full, sizeof(full), "%s" suffix, name), full)
	attn.q = tnp_bind_linear(b, NAMED(".q"), d, d, bias);
	attn.k = tnp_decoupled_config(c)->tied ? attn.q
		: tnp_bind_linear(b, NAMED(".k"), d, d, bias);
	attn.v = tnp_bind_linear(b, NAMED(".v"), d, d, bias);
	attn.o = tnp_bind_linear(b, NAMED(".o"), d, d, c->bias != TNP_BIAS_NONE);
	return attn;
}

static void
decoupled_bind_layer(TnpBinder *b, const char *name, DecoupledLayer *layer)
{
	const TnpConfig *c = &b->model->config;
	const float *tau;
	char		full[64];

	layer->attn = tnp_decoupled_bind_attention(b, NAMED(".attn"));
	layer->norm_q = tnp_bind_norm(b, NAMED(".norm_q"), c->width);
	layer->norm_k = tnp_bind_norm(b, NAMED(".norm_k"), c->width);
	layer->norm_v = tnp_bind_norm(b, NAMED(".norm_v"), c->width);
	tau = tnp_bind_tensor(b, NAMED(".tau"), 1, 1, 0, 0);
	layer->tau = tau != NULL ? tau[0] : 0;
	layer->norm_ff = tnp_bind_norm(b, NAMED(".norm_ff"), c->width);
	layer->ff0 = tnp_bind_linear(b, NAMED(".ff.0"), c->width, c->feedforward, true);
	layer->ff1 = tnp_bind_linear(b, NAMED(".ff.1"), c->feedforward, c->width, true);
#undef NAMED
}

static void
decoupled_bind(TnpBinder *b)
{
	int			layers = b->model->config.layers;
	DecoupledLayer *layer = tnp_bind_memory(b, (size_t) layers * sizeof(DecoupledLayer));

	b->model->own = layer;
	for (int l = 0; layer != NULL && l < layers; l++)
	{
		char		name[32];

		snprintf(name, sizeof(name), "layer.%d", l);
		decoupled_bind_layer(b, name, &layer[l]);
	}
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* Width of a head's queries, keys and values as attention sees them. */
static int
decoupled_head_width_of(const TnpConfig *c)
{
	return c->width / c->heads + (tnp_decoupled_config(c)->kind == TNP_DECOUPLED_DISTANCE ? 1 : 0);
}

static int
decoupled_state_width(const TnpModel *model)
{
	return (tnp_target_planes(&model->config) + 1) * model->config.width;
}

static void
decoupled_block_sizes(const TnpModel *model, TnpBlockSizes *sizes)
{
	const TnpConfig *c = &model->config;
	int			heads = c->heads * decoupled_head_width_of(c),
				planes = tnp_target_planes(c);

	*sizes = (TnpBlockSizes) {c->width, heads, planes * heads, c->feedforward, c->heads,
							  3 * c->width, planes};
}

static void
decoupled_cache_shape(const TnpModel *model, TnpCacheShape *shape)
{
	const TnpConfig *c = &model->config;
	int			width = decoupled_head_width_of(c);
	bool		linear = tnp_decoupled_config(c)->kind == TNP_DECOUPLED_LINEAR;

	*shape = (TnpCacheShape) {c->layers, c->heads, width, width,
							  linear ? sizeof(float) : model->kernels->number,
							  .planes = tnp_target_planes(c)};
	if (linear)
		tnp_products_shape_marks(shape);
}

static size_t
decoupled_row_bytes(const TnpModel *model)
{
	TnpCacheShape s;

	decoupled_cache_shape(model, &s);
	return tnp_products_slot_bytes(&s);
}

static bool
decoupled_shares_keys(const TnpConfig *c)
{
	return tnp_decoupled_config(c)->kind != TNP_DECOUPLED_LINEAR;
}

static double
decoupled_cost(const TnpModel *model, double rows, double keys)
{
	const TnpConfig *c = &model->config;
	double		d = c->width;
	TnpCacheShape s;

	decoupled_cache_shape(model, &s);
	if (s.mark_slots > 0 && keys > s.mark_slots)
		keys = s.mark_slots + d / c->heads;
	/* keys, queries and weights are those of one target */
	return tnp_stack_cost(model, c->layers, rows, keys)
		+ (tnp_target_planes(c) - 1) * rows * c->layers * (2 * d * d + 2 * d * c->feedforward
														   + d * keys);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

int
tnp_decoupled_embed_scratch(const TnpModel *model)
{
	return tnp_target_planes(&model->config) * (tnp_embed_scratch(model) + model->config.width);
}

void
tnp_decoupled_embed(const TnpModel *model, int n, const float *const *row, const float *y,
					TnpRole role, const int *position, float *scratch, float *states)
{
	int			d = model->config.width,
				planes = tnp_target_planes(&model->config),
				all = planes * d,
				stride = model->config.family->state_width(model);

	(void) role;
	(void) position;
	if (y != NULL)
		tnp_embed_targets(model, n * planes, y, scratch + (size_t) n * all, scratch);
	for (int i = 0; i < n; i++)
	{
		float	   *state = states + (size_t) i * stride;

		if (y != NULL)
			memcpy(state, scratch + (size_t) i * all, all * sizeof(float));
		else
			memset(state, 0, all * sizeof(float));
		memcpy(state + all, row[i], d * sizeof(float));
	}
}

float *
tnp_decoupled_gather(int n, int d, int stride, const float *states, float *to)
{
	for (int i = 0; i < n; i++)
		memcpy(to + (size_t) i * d, states + (size_t) i * stride, d * sizeof(float));
	return to;
}

void
tnp_decoupled_scatter(int n, int d, int stride, const float *from, float *states)
{
	for (int i = 0; i < n; i++)
		memcpy(states + (size_t) i * stride, from + (size_t) i * d, d * sizeof(float));
}

TnpAttention
tnp_decoupled_softmax(const TnpConfig *c, int n, float scale, const TnpView *view,
					  TnpBlockWork *work)
{
	for (int i = 0; i < n * c->heads; i++)
		work->scale[i] = scale;
	return (TnpAttention) {c->heads, c->width / c->heads, n, n, work->q, work->scale, view->k,
		view->v, view->context, view->own, work->attend, work->att, 1};
}

/* f(u) = elu(u) + 1 */
static void
decoupled_make_positive(size_t n, float *u)
{
	for (size_t i = 0; i < n; i++)
		u[i] = u[i] > 0 ? u[i] + 1 : expf(u[i]);
}

/* Heads [n, heads, dh] of `from` become [n, heads, dh + 1], the last number by `last`. */
static void
decoupled_widen_heads(const TnpConfig *c, int n, const float *from, float scale, float *to,
					  float (*last) (int dh, const float *head))
{
	int			dh = c->width / c->heads;

	for (int i = 0; i < n * c->heads; i++, from += dh, to += dh + 1)
	{
		for (int f = 0; f < dh; f++)
			to[f] = scale * from[f];
		to[dh] = last(dh, from);
	}
}

static float
decoupled_last_square(int dh, const float *head)
{
	double		sum = 0;

	for (int f = 0; f < dh; f++)
		sum += (double) head[f] * head[f];
	return (float) sum;
}

static float
decoupled_last_zero(int dh, const float *head)
{
	(void) dh;
	(void) head;
	return 0;
}

static float
decoupled_last_minus(int dh, const float *head)
{
	(void) dh;
	(void) head;
	return -1;
}

/* ---- the layer ------------------------------------------------------------------------------- */

static void
decoupled_make_keys(const TnpModel *model, const void *layer, int n, const float *h,
					TnpBlockWork *work)
{
	const DecoupledLayer *l = layer;
	const TnpConfig *c = &model->config;
	const TnpKernels *kernels = model->kernels;
	int			d = c->width,
				planes = tnp_target_planes(c),
				stride = (planes + 1) * d,
				values = c->heads * decoupled_head_width_of(c);
	bool		distance = tnp_decoupled_config(c)->kind == TNP_DECOUPLED_DISTANCE;
	float	   *part = work->more,
			   *made = work->more + (size_t) n * d;

	kernels->norm(&l->norm_k, n, tnp_decoupled_gather(n, d, stride, h + planes * d, part), work->u);
	kernels->linear(&l->attn.k, n, work->u, TNP_IDENTITY, false, distance ? made : work->q);
	if (distance)
		decoupled_widen_heads(c, n, made, 1, work->q, decoupled_last_square);
	if (tnp_decoupled_config(c)->kind == TNP_DECOUPLED_LINEAR)
		decoupled_make_positive((size_t) n * d, work->q);
	for (int p = 0; p < planes; p++)
	{
		float	   *to = work->att + (size_t) p * values;

		kernels->norm(&l->norm_v, n, tnp_decoupled_gather(n, d, stride, h + p * d, part), work->u);
		kernels->linear(&l->attn.v, n, work->u, TNP_IDENTITY, false, made);
		if (!distance)
			tnp_decoupled_scatter(n, d, planes * values, made, to);
		for (int i = 0; distance && i < n; i++)
			decoupled_widen_heads(c, 1, made + (size_t) i * d, 1, to + (size_t) i * planes * values,
								  decoupled_last_zero);
	}
}

static void
decoupled_query(const TnpModel *model, const void *layer, int n, const float *h,
				const TnpView *view, TnpBlockWork *work, TnpAttention *attention)
{
	const DecoupledLayer *l = layer;
	const TnpConfig *c = &model->config;
	const TnpKernels *kernels = model->kernels;
	int			d = c->width,
				planes = tnp_target_planes(c),
				kind = tnp_decoupled_config(c)->kind,
				dh = d / c->heads;
	float	   *made = work->more + (size_t) n * d;
	float		scale = kind == TNP_DECOUPLED_SOFTMAX ? (float) (l->tau / sqrt((double) dh))
		: kind == TNP_DECOUPLED_DISTANCE ? l->tau : 1;

	kernels->norm(&l->norm_q, n,
				  tnp_decoupled_gather(n, d, (planes + 1) * d, h + planes * d, work->more),
				  work->u);
	kernels->linear(&l->attn.q, n, work->u, TNP_IDENTITY, false,
					kind == TNP_DECOUPLED_DISTANCE ? made : work->q);
	if (kind == TNP_DECOUPLED_DISTANCE)
		decoupled_widen_heads(c, n, made, 2, work->q, decoupled_last_minus);
	if (kind == TNP_DECOUPLED_LINEAR)
	{
		for (size_t i = 0; i < (size_t) n * d; i++)
			work->q[i] *= l->tau;
		decoupled_make_positive((size_t) n * d, work->q);
	}
	*attention = tnp_decoupled_softmax(c, n, scale, view, work);
	attention->head_width = decoupled_head_width_of(c);
	attention->planes = planes;
}

static double
decoupled_divide(int64_t seen, double weights)
{
	(void) seen;
	return weights > 0 ? weights : weights == 0 ? 1 : NAN;
}

static TnpProducts
decoupled_products(const TnpConfig *c)
{
	int			width = decoupled_head_width_of(c);

	return (TnpProducts) {c->heads, tnp_target_planes(c), width, width, 0, 0, decoupled_divide};
}

/* Linear attention: weights f(tau q) . f(k), in double precision. */
static void
decoupled_attend_linear(const TnpWalk *walk, const TnpToken *tokens, int n, const float *h,
						const TnpView *view, const TnpAttention *a)
{
	TnpProducts p = decoupled_products(&walk->model->config);

	(void) tokens;
	(void) h;
	tnp_products_attend(walk, &p, n, view, a);
}

static TnpStatus
decoupled_stored(TnpWalk *walk, int64_t end, TnpError *error)
{
	TnpProducts p = decoupled_products(&walk->model->config);

	return tnp_products_mark(walk, &p, end, error);
}

static void
decoupled_finish(const TnpModel *model, const void *layer, int n, float *h, TnpBlockWork *work)
{
	const DecoupledLayer *l = layer;
	const TnpConfig *c = &model->config;
	const TnpKernels *kernels = model->kernels;
	int			d = c->width,
				dh = d / c->heads,
				planes = tnp_target_planes(c),
				stride = (planes + 1) * d,
				wide = decoupled_head_width_of(c);

	for (int p = 0; p < planes; p++)
	{
		float	   *state = tnp_decoupled_gather(n, d, stride, h + p * d, work->more),
				   *att = work->more + (size_t) n * d;

		for (int i = 0; i < n; i++)
		{
			const float *from = work->att + (size_t) (i * planes + p) * c->heads * wide;

			/* without the zeros that values of kind "distance" had */
			for (int j = 0; j < c->heads; j++)
				memcpy(att + (size_t) i * d + j * dh, from + j * wide, dh * sizeof(float));
		}
		kernels->linear(&l->attn.o, n, att, TNP_IDENTITY, true, state);
		kernels->norm(&l->norm_ff, n, state, work->u);
		kernels->linear(&l->ff0, n, work->u, c->activation, false, work->ff);
		kernels->linear(&l->ff1, n, work->ff, TNP_IDENTITY, true, state);
		tnp_decoupled_scatter(n, d, stride, state, h + p * d);
	}
}

static TnpStatus
decoupled_walk(TnpWalk *w, int64_t n, int64_t n_store, TnpError *error)
{
	static const TnpBlockOps softmax = {decoupled_make_keys, decoupled_query, NULL,
										decoupled_finish};
	static const TnpBlockOps linear = {decoupled_make_keys, decoupled_query,
									   decoupled_attend_linear, decoupled_finish};
	const TnpConfig *c = &w->model->config;
	const DecoupledLayer *layers = w->model->own;

	w->ops = tnp_decoupled_config(c)->kind == TNP_DECOUPLED_LINEAR ? &linear : &softmax;
	w->stored = tnp_decoupled_config(c)->kind == TNP_DECOUPLED_LINEAR ? decoupled_stored : NULL;
	return tnp_stack_walk(w, layers, sizeof(*layers), n, n_store, error);
}

/* Keys come from features, and the values of the first layer from targets as they enter it. */
static bool
decoupled_lone_rows(const TnpConfig *config)
{
	return config->layers == 1;
}

const TnpFamily tnp_decoupled_family = {
	.name = "decoupled",
	.refine = decoupled_refine,
	.keys = decoupled_keys,
	.embedders = 1 << TNP_SEPARATE,
	.check = tnp_decoupled_check,
	.several_targets = true,
	.each_target = true,
	.bind = decoupled_bind,
	.head_width = tnp_stack_head_width,
	.appendable = tnp_stack_appendable,
	.lone_rows = decoupled_lone_rows,
	.cache_shape = decoupled_cache_shape,
	.slots = tnp_stack_slots,
	.row_bytes = decoupled_row_bytes,
	.state_width = decoupled_state_width,
	.block_sizes = decoupled_block_sizes,
	.embed = tnp_decoupled_embed,
	.embed_scratch = tnp_decoupled_embed_scratch,
	.row_token = tnp_stack_row_token,
	.encode = tnp_encode_rows,
	.walk = decoupled_walk,
	.shares_keys = decoupled_shares_keys,
	.cost = decoupled_cost,
};
