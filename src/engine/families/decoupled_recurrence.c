/*
 * decoupled_recurrence.c: decoupled values behind an RNN or LSTM over the rows in their order
 * (docs/families.md, "Recurrent backbones"; Sharma et al. 2025, appendix).
 *
 * The recurrences read features alone; attention reads once, behind the last of them. The state of
 * a token is [h, e, s_0, c_0 … s_(L-1), c_(L-1)]: what the head reads, the stream through the
 * recurrences, and their states behind the token (of an RNN without the c). The cache keeps these
 * states of every row, so that a question, an appended row and a chain go on from any row.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/families/decoupled.h"

typedef struct RecurrenceLayer
{
	TnpLinear	ih,
				hh;
} RecurrenceLayer;

typedef struct RecurrenceWeights
{
	RecurrenceLayer *layers;
	TnpDecoupledAttention attn;
	TnpNorm		norm_v;
} RecurrenceWeights;

/* ---- the file -------------------------------------------------------------------------------- */

static TnpStatus
recurrence_check(const TnpConfig *c, TnpError *error)
{
	const TnpRule rules[] = {
		{c->context != TNP_CAUSAL, "a recurrent backbone.kind needs context \"causal\"", NULL, 0,
		 NULL, 0},
	};
	TnpStatus	status = tnp_decoupled_check(c, error);

	return status == TNP_OK
		? tnp_check_rules(sizeof(rules) / sizeof(rules[0]), rules, error) : status;
}

static bool
recurrence_is_lstm(const TnpConfig *c)
{
	return tnp_decoupled_config(c)->backbone == TNP_BACKBONE_LSTM;
}

static void
recurrence_bind(TnpBinder *b)
{
	const TnpConfig *c = &b->model->config;
	RecurrenceWeights *weights = tnp_bind_memory(b, sizeof(*weights));
	int			d = c->width,
				gates = recurrence_is_lstm(c) ? 4 * d : d;

	b->model->own = weights;
	if (weights == NULL)
		return;
	weights->layers = tnp_bind_memory(b, (size_t) c->layers * sizeof(RecurrenceLayer));
	for (int l = 0; weights->layers != NULL && l < c->layers; l++)
	{
		char		full[64];

#define NAMED(suffix) (snprintf(full, sizeof(full), "layer.%d" suffix, l), full)
		weights->layers[l].ih = tnp_bind_linear(b, NAMED(".rec.ih"), d, gates, true);
		weights->layers[l].hh = tnp_bind_linear(b, NAMED(".rec.hh"), d, gates, true);
#undef NAMED
	}
	weights->attn = tnp_decoupled_bind_attention(b, "read.attn");
	weights->norm_v = tnp_bind_norm(b, "read.norm_v", d);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* Numbers that a layer hands on to the next row. */
static int
recurrence_layer_width(const TnpConfig *c)
{
	return recurrence_is_lstm(c) ? 2 * c->width : c->width;
}

static size_t
recurrence_extra(const TnpConfig *c)
{
	return (size_t) c->layers * recurrence_layer_width(c) * sizeof(float);
}

static int
recurrence_state_width(const TnpModel *model)
{
	const TnpConfig *c = &model->config;

	return 2 * c->width + c->layers * recurrence_layer_width(c);
}

static void
recurrence_block_sizes(const TnpModel *model, TnpBlockSizes *sizes)
{
	const TnpConfig *c = &model->config;

	/* more: inputs and states of a layer, and its gates */
	*sizes = (TnpBlockSizes) {c->width, c->width, c->width, 0, c->heads, 6 * c->width, 1};
}

static void
recurrence_cache_shape(const TnpModel *model, TnpCacheShape *shape)
{
	tnp_stack_shape(model, 1, shape);
	shape->extra = recurrence_extra(&model->config);
}

static size_t
recurrence_row_bytes(const TnpModel *model)
{
	return tnp_stack_row_bytes(model, 1) + recurrence_extra(&model->config);
}

static double
recurrence_cost(const TnpModel *model, double rows, double keys)
{
	const TnpConfig *c = &model->config;
	double		gates = (recurrence_is_lstm(c) ? 4 : 1) * (double) c->width;

	return tnp_stack_cost(model, 1, rows, keys) + rows * c->layers * 2 * gates * c->width;
}

/* ---- the recurrences ------------------------------------------------------------------------- */

/*
 * The states behind the row that is before a token: of a row the one before its slot, of a question
 * the last one that it sees; NULL: there is none.
 */
static const float *
recurrence_before(const TnpWalk *w, const TnpToken *t)
{
	int64_t		own = t->own == NULL ? 0 : t->slot >= 0 ? t->slot : t->chain,
				shared = t->own == NULL && t->slot >= 0 ? t->slot : t->context;
	const TnpKvCache *cache = own > 0 ? t->own : w->context;
	int64_t		before = (own > 0 ? own : shared) - 1;

	if (before < 0)
		return NULL;
	return (const float *) (cache->extra + (size_t) before * cache->shape.extra);
}

/* One token's states behind a layer, from its gates, into s; and what the next layer reads. */
static void
recurrence_gate(const TnpModel *model, const float *gates, const float *before, int layer,
				float *state)
{
	int			d = model->config.width,
				own = recurrence_layer_width(&model->config);
	bool		cells = recurrence_is_lstm(&model->config);
	float	   *s = state + 2 * d + (size_t) layer * own;

	model->kernels->gate(cells, d, gates,
						 before != NULL && cells ? before + (size_t) layer * own + d : NULL, s);
	memcpy(state + d, s, d * sizeof(float));
}

/* The states of a layer behind the row before a token, into out [d]. */
static void
recurrence_take(const TnpModel *model, const float *before, int layer, float *out)
{
	int			d = model->config.width,
				own = recurrence_layer_width(&model->config);

	if (before != NULL)
		memcpy(out, before + (size_t) layer * own, d * sizeof(float));
	else
		memset(out, 0, d * sizeof(float));
}

/* n tokens from `start` on, none of which is before another, go one step through all layers. */
static void
recurrence_step(const TnpWalk *w, int64_t start, int n, TnpBlockWork *work)
{
	const TnpModel *model = w->model;
	const TnpConfig *c = &model->config;
	const RecurrenceWeights *weights = model->own;
	int			d = c->width,
				width = recurrence_is_lstm(c) ? 4 * d : d;
	float	   *inputs = work->more,
			   *states = inputs + (size_t) n * d,
			   *gates = states + (size_t) n * d,
			   *h = w->h + start * w->state_width;

	for (int l = 0; l < c->layers; l++)
	{
		tnp_decoupled_gather(n, d, w->state_width, h + d, inputs);
		for (int i = 0; i < n; i++)
			recurrence_take(model, recurrence_before(w, &w->tokens[start + i]), l,
							states + (size_t) i * d);
		model->kernels->linear(&weights->layers[l].ih, n, inputs, TNP_IDENTITY, false, gates);
		model->kernels->linear(&weights->layers[l].hh, n, states, TNP_IDENTITY, true, gates);
		for (int i = 0; i < n; i++)
			recurrence_gate(model, gates + (size_t) i * width,
							recurrence_before(w, &w->tokens[start + i]), l,
							h + (size_t) i * w->state_width);
	}
}

/*
 * n rows from `start` on, each of which may be before the next, go through all layers: what a layer
 * reads of the layer below is known of all of them at once, and only its own states go from row to
 * row.
 */
static void
recurrence_chain(const TnpWalk *w, int64_t start, int n, TnpBlockWork *work)
{
	const TnpModel *model = w->model;
	const TnpConfig *c = &model->config;
	const RecurrenceWeights *weights = model->own;
	int			d = c->width,
				own = recurrence_layer_width(c),
				width = recurrence_is_lstm(c) ? 4 * d : d;
	float	   *inputs = work->more,
			   *states = inputs + (size_t) n * d,
			   *gates = states + (size_t) n * d,
			   *h = w->h + start * w->state_width;

	for (int l = 0; l < c->layers; l++)
	{
		tnp_decoupled_gather(n, d, w->state_width, h + d, inputs);
		model->kernels->linear(&weights->layers[l].ih, n, inputs, TNP_IDENTITY, false, gates);
		for (int i = 0; i < n; i++)
		{
			const TnpToken *t = &w->tokens[start + i];
			TnpKvCache *cache = t->own != NULL ? t->own : w->context;
			const float *before = recurrence_before(w, t);
			float	   *state = h + (size_t) i * w->state_width;
			size_t		at = (size_t) l * own;

			recurrence_take(model, before, l, states);
			model->kernels->linear(&weights->layers[l].hh, 1, states, TNP_IDENTITY, true,
								   gates + (size_t) i * width);
			recurrence_gate(model, gates + (size_t) i * width, before, l, state);
			memcpy((float *) (cache->extra + (size_t) t->slot * cache->shape.extra) + at,
				   state + 2 * d + at, own * sizeof(float));
		}
	}
}

/* Rows one after the other, each leaving its states for the next. */
static TnpStatus
recurrence_rows(TnpWalk *w, int64_t n_store, TnpError *error)
{
	TnpWorker  *worker = w->team != NULL ? tnp_team_self(w->team) : w->worker;
	TnpStatus	status = TNP_OK;

	for (int64_t i = 0; status == TNP_OK && i < n_store; i += w->tile)
	{
		int			n = n_store - i < w->tile ? (int) (n_store - i) : w->tile;

		status = tnp_worker_check(worker, error);
		if (status != TNP_OK)
			break;
		recurrence_chain(w, i, n, &worker->work->block);
		tnp_worker_progress(worker, i + n, n_store);
	}
	if (w->team != NULL && n_store > 0)
		tnp_team_next_step(w->team);
	return status;
}

static TnpStatus
recurrence_query_tile(void *state, TnpWorker *worker, int64_t item, TnpError *error)
{
	TnpWalk    *w = state;
	int64_t		start;
	int			n = tnp_walk_tile(w, item, &start);
	TnpStatus	status = tnp_worker_check(worker, error);

	if (status == TNP_OK)
		recurrence_step(w, start, n, &worker->work->block);
	return status;
}

/* ---- attention ------------------------------------------------------------------------------- */

static void
recurrence_make_keys(const TnpModel *model, const void *layer, int n, const float *h,
					 TnpBlockWork *work)
{
	const RecurrenceWeights *weights = layer;
	const TnpKernels *kernels = model->kernels;
	int			d = model->config.width,
				stride = recurrence_state_width(model);

	tnp_decoupled_gather(n, d, stride, h + d, work->more);
	kernels->linear(&weights->attn.k, n, work->more, TNP_IDENTITY, false, work->q);
	tnp_decoupled_gather(n, d, stride, h, work->more);
	kernels->norm(&weights->norm_v, n, work->more, work->u);
	kernels->linear(&weights->attn.v, n, work->u, TNP_IDENTITY, false, work->att);
}

static void
recurrence_query(const TnpModel *model, const void *layer, int n, const float *h,
				 const TnpView *view, TnpBlockWork *work, TnpAttention *attention)
{
	const RecurrenceWeights *weights = layer;
	const TnpConfig *c = &model->config;

	tnp_decoupled_gather(n, c->width, recurrence_state_width(model), h + c->width, work->more);
	model->kernels->linear(&weights->attn.q, n, work->more, TNP_IDENTITY, false, work->q);
	*attention = tnp_decoupled_softmax(c, n, (float) (1 / sqrt((double) c->width / c->heads)),
									   view, work);
}

/* What is read is the answer: nothing is added to it. */
static void
recurrence_finish(const TnpModel *model, const void *layer, int n, float *h, TnpBlockWork *work)
{
	const RecurrenceWeights *weights = layer;

	model->kernels->linear(&weights->attn.o, n, work->att, TNP_IDENTITY, false, work->more);
	tnp_decoupled_scatter(n, model->config.width, recurrence_state_width(model), work->more, h);
}

static TnpStatus
recurrence_walk(TnpWalk *w, int64_t n, int64_t n_store, TnpError *error)
{
	static const TnpBlockOps ops = {recurrence_make_keys, recurrence_query, NULL,
									recurrence_finish};
	TnpStatus	status = recurrence_rows(w, n_store, error);

	w->ops = &ops;
	w->entry = false;
	if (status == TNP_OK)
		status = tnp_walk_run(w, n_store, n, recurrence_query_tile, error);
	if (status == TNP_OK && n_store > 0)
		status = tnp_walk_store(w, w->model->own, 0, n_store, error);
	return status == TNP_OK
		? tnp_walk_attend(w, w->model->own, 0, n_store, n, error) : status;
}

const TnpFamily tnp_recurrence_family = {
	.name = "decoupled",
	.variant = "a recurrence",
	.embedders = 1 << TNP_SEPARATE,
	.check = recurrence_check,
	.several_targets = true,
	.bind = recurrence_bind,
	.head_width = tnp_stack_head_width,
	.appendable = tnp_stack_appendable,
	.cache_shape = recurrence_cache_shape,
	.slots = tnp_stack_slots,
	.row_bytes = recurrence_row_bytes,
	.state_width = recurrence_state_width,
	.block_sizes = recurrence_block_sizes,
	.embed = tnp_decoupled_embed,
	.embed_scratch = tnp_decoupled_embed_scratch,
	.row_token = tnp_stack_row_token,
	.encode = tnp_encode_rows,
	.walk = recurrence_walk,
	.shares_keys = tnp_stack_shares_keys,
	.cost = recurrence_cost,
};
