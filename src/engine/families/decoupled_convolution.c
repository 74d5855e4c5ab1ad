/*
 * decoupled_convolution.c: decoupled values behind a convolution over the rows in their order
 * (docs/families.md, "Convolution backbone"; Sharma et al. 2025, appendix).
 *
 * Features are convolved before targets take part, so all layers' convolutions come first, then all
 * layers' attention. The state of a token is [h, e_0 … e_(L-1), u_0 … u_(L-1)]: what the head
 * reads, the features' stream behind each layer's convolution, and as it enters that layer, normed.
 * The cache keeps the u of every row: a question, which stands alone behind the last row, is
 * convolved with those of the last two.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/families/decoupled.h"

#define REACH 2					/* rows on either side */
#define TAPS (2 * REACH + 1)

typedef struct ConvolutionLayer
{
	int			number;
	const float *weight;		/* [d, TAPS] */
	TnpDecoupledAttention attn;
	TnpNorm		norm_c,
				norm_qk,
				norm_v;
} ConvolutionLayer;

/* ---- the file -------------------------------------------------------------------------------- */

static TnpStatus
convolution_check(const TnpConfig *c, TnpError *error)
{
	const TnpRule rules[] = {
		{c->context != TNP_FULL || c->buffer != 1,
		 "backbone.kind \"convolution\" needs context \"full\" and chain.buffer 1", "chain.buffer",
		 c->buffer, NULL, 0},
	};
	TnpStatus	status = tnp_decoupled_check(c, error);

	return status == TNP_OK
		? tnp_check_rules(sizeof(rules) / sizeof(rules[0]), rules, error) : status;
}

static void
convolution_bind(TnpBinder *b)
{
	const TnpConfig *c = &b->model->config;
	ConvolutionLayer *layers = tnp_bind_memory(b, (size_t) c->layers * sizeof(*layers));

	b->model->own = layers;
	for (int l = 0; layers != NULL && l < c->layers; l++)
	{
		ConvolutionLayer *layer = &layers[l];
		char		full[64];

#define NAMED(suffix) (snprintf(full, sizeof(full), "layer.%d" suffix, l), full)
		layer->number = l;
		layer->weight = tnp_bind_tensor(b, NAMED(".conv.weight"), 2, c->width, TAPS, 0);
		layer->attn = tnp_decoupled_bind_attention(b, NAMED(".attn"));
		layer->norm_c = tnp_bind_norm(b, NAMED(".norm_c"), c->width);
		layer->norm_qk = tnp_bind_norm(b, NAMED(".norm_qk"), c->width);
		layer->norm_v = tnp_bind_norm(b, NAMED(".norm_v"), c->width);
#undef NAMED
	}
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static int
convolution_state_width(const TnpModel *model)
{
	return model->config.width * (1 + 2 * model->config.layers);
}

static void
convolution_block_sizes(const TnpModel *model, TnpBlockSizes *sizes)
{
	const TnpConfig *c = &model->config;

	*sizes = (TnpBlockSizes) {c->width, c->width, c->width, 0, c->heads, c->width, 1};
}

static void
convolution_cache_shape(const TnpModel *model, TnpCacheShape *shape)
{
	const TnpConfig *c = &model->config;

	tnp_stack_shape(model, c->layers, shape);
	shape->extra = (size_t) c->layers * c->width * sizeof(float);
}

static size_t
convolution_row_bytes(const TnpModel *model)
{
	const TnpConfig *c = &model->config;

	return tnp_stack_row_bytes(model, c->layers) + (size_t) c->layers * c->width * sizeof(float);
}

static double
convolution_cost(const TnpModel *model, double rows, double keys)
{
	return tnp_stack_cost(model, model->config.layers, rows, keys);
}

/* ---- the convolutions ------------------------------------------------------------------------ */

/* Where e_l and u_l of a state are. */
static size_t
convolution_stream(const TnpModel *model, int layer)
{
	return (size_t) (1 + layer) * model->config.width;
}

static size_t
convolution_normed(const TnpModel *model, int layer)
{
	return (size_t) (1 + model->config.layers + layer) * model->config.width;
}

/* u_l of a tile, from what enters the layer, with which e_l begins. */
static TnpStatus
convolution_norm_tile(void *state, TnpWorker *worker, int64_t item, TnpError *error)
{
	TnpWalk    *w = state;
	const ConvolutionLayer *layer = w->layer;
	TnpBlockWork *work = &worker->work->block;
	int			d = w->model->config.width;
	int64_t		start;
	int			n = tnp_walk_tile(w, item, &start);
	float	   *h = w->h + start * w->state_width,
			   *enter = h + convolution_stream(w->model, w->at > 0 ? w->at - 1 : 0);
	TnpStatus	status = tnp_worker_check(worker, error);

	if (status != TNP_OK)
		return status;
	tnp_decoupled_gather(n, d, w->state_width, enter, work->more);
	w->model->kernels->norm(&layer->norm_c, n, work->more, work->u);
	tnp_decoupled_scatter(n, d, w->state_width, work->more,
						  h + convolution_stream(w->model, w->at));
	tnp_decoupled_scatter(n, d, w->state_width, work->u, h + convolution_normed(w->model, w->at));
	return TNP_OK;
}

/*
 * u_l of the row that token i sees at a distance, or NULL beyond the ends. Rows of the context come
 * all in one walk, at their own places; another token is behind the last row that it sees.
 */
static const float *
convolution_neighbour(const TnpWalk *w, int64_t i, int distance)
{
	const TnpToken *t = &w->tokens[i];
	bool		row = t->own == NULL && t->slot >= 0;
	int64_t		at = (row ? t->slot : t->context) + distance;

	if (distance == 0)
		return w->h + i * w->state_width + convolution_normed(w->model, w->at);
	if (at < 0 || at >= t->context)
		return NULL;
	if (row)
		return w->h + (i + distance) * w->state_width + convolution_normed(w->model, w->at);
	return (const float *) (w->context->extra + (size_t) at * w->context->shape.extra)
		+ (size_t) w->at * w->model->config.width;
}

static TnpStatus
convolution_mix_tile(void *state, TnpWorker *worker, int64_t item, TnpError *error)
{
	TnpWalk    *w = state;
	const ConvolutionLayer *layer = w->layer;
	int			d = w->model->config.width;
	int64_t		start;
	int			n = tnp_walk_tile(w, item, &start);
	TnpStatus	status = tnp_worker_check(worker, error);

	for (int64_t i = start; status == TNP_OK && i < start + n; i++)
	{
		float	   *e = w->h + i * w->state_width + convolution_stream(w->model, w->at);

		for (int tap = 0; tap < TAPS; tap++)
		{
			const float *u = convolution_neighbour(w, i, tap - REACH);

			for (int f = 0; u != NULL && f < d; f++)
				e[f] += layer->weight[f * TAPS + tap] * u[f];
		}
	}
	return status;
}

/* ---- attention ------------------------------------------------------------------------------- */

/* What norm_qk makes of e_l, in work->u. */
static void
convolution_place(const TnpModel *model, const ConvolutionLayer *l, int n, const float *h,
				  TnpBlockWork *work)
{
	int			d = model->config.width;

	tnp_decoupled_gather(n, d, convolution_state_width(model),
						 h + convolution_stream(model, l->number), work->more);
	model->kernels->norm(&l->norm_qk, n, work->more, work->u);
}

static void
convolution_make_keys(const TnpModel *model, const void *layer, int n, const float *h,
					  TnpBlockWork *work)
{
	const ConvolutionLayer *l = layer;
	const TnpKernels *kernels = model->kernels;

	convolution_place(model, l, n, h, work);
	kernels->linear(&l->attn.k, n, work->u, TNP_IDENTITY, false, work->q);
	tnp_decoupled_gather(n, model->config.width, convolution_state_width(model), h, work->more);
	kernels->norm(&l->norm_v, n, work->more, work->u);
	kernels->linear(&l->attn.v, n, work->u, TNP_IDENTITY, false, work->att);
}

static void
convolution_query(const TnpModel *model, const void *layer, int n, const float *h,
				  const TnpView *view, TnpBlockWork *work, TnpAttention *attention)
{
	const ConvolutionLayer *l = layer;
	const TnpConfig *c = &model->config;

	convolution_place(model, l, n, h, work);
	model->kernels->linear(&l->attn.q, n, work->u, TNP_IDENTITY, false, work->q);
	*attention = tnp_decoupled_softmax(c, n, (float) (1 / sqrt((double) c->width / c->heads)),
									   view, work);
}

static void
convolution_finish(const TnpModel *model, const void *layer, int n, float *h, TnpBlockWork *work)
{
	const ConvolutionLayer *l = layer;
	int			d = model->config.width,
				stride = convolution_state_width(model);
	float	   *state = tnp_decoupled_gather(n, d, stride, h, work->more);

	model->kernels->linear(&l->attn.o, n, work->att, TNP_IDENTITY, true, state);
	tnp_decoupled_scatter(n, d, stride, state, h);
}

static TnpStatus
convolution_walk(TnpWalk *w, int64_t n, int64_t n_store, TnpError *error)
{
	static const TnpBlockOps ops = {convolution_make_keys, convolution_query, NULL,
									convolution_finish};
	const ConvolutionLayer *layers = w->model->own;
	TnpStatus	status = TNP_OK;

	w->ops = &ops;
	for (int l = 0; status == TNP_OK && l < w->model->config.layers; l++)
	{
		w->layer = &layers[l];
		w->at = l;
		status = tnp_walk_run(w, 0, n, convolution_norm_tile, error);
		if (status == TNP_OK)
			status = tnp_walk_run(w, 0, n, convolution_mix_tile, error);
	}
	return status == TNP_OK
		? tnp_stack_walk(w, layers, sizeof(*layers), n, n_store, error) : status;
}

const TnpFamily tnp_convolution_family = {
	.name = "decoupled",
	.variant = "a convolution",
	.embedders = 1 << TNP_SEPARATE,
	.check = convolution_check,
	.several_targets = true,
	.bind = convolution_bind,
	.head_width = tnp_stack_head_width,
	.appendable = tnp_stack_appendable,
	.cache_shape = convolution_cache_shape,
	.slots = tnp_stack_slots,
	.row_bytes = convolution_row_bytes,
	.state_width = convolution_state_width,
	.block_sizes = convolution_block_sizes,
	.embed = tnp_decoupled_embed,
	.embed_scratch = tnp_decoupled_embed_scratch,
	.row_token = tnp_stack_row_token,
	.encode = tnp_encode_rows,
	.walk = convolution_walk,
	.shares_keys = tnp_stack_shares_keys,
	.cost = convolution_cost,
};
