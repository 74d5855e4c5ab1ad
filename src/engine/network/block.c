/*
 * block.c: one transformer block on a tile of rows (docs/model-format.md section 6).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/network/block.h"

#include <math.h>
#include <string.h>

/* The block input as attention reads it: normed if pre-norm, else as it is. */
static const float *
attention_input(const TnpModel *model, const TnpLayer *layer, bool post_norm, int n, const float *h,
				TnpBlockWork *work)
{
	if (post_norm)
		return h;
	model->kernels->norm(&layer->norm1, n, h, work->u);
	return work->u;
}

void
tnp_block_keys(const TnpModel *model, const TnpLayer *layer, bool post_norm, int n, const float *h,
			   TnpBlockWork *work)
{
	const float *u = attention_input(model, layer, post_norm, n, h, work);

	model->kernels->linear(&layer->k, n, u, TNP_IDENTITY, false, work->q);
	model->kernels->linear(&layer->v, n, u, TNP_IDENTITY, false, work->att);
}

/*
 * Multipliers of q.k for every row and head: 1/sqrt(dh), times a ln n + b with n the visible keys.
 */
static void
fill_scale(const TnpLayer *layer, int heads, int head_width, int n, const TnpView *view,
		   float *scale)
{
	double		base = 1 / sqrt((double) head_width);

	for (int i = 0; i < n; i++)
	{
		int64_t		keys = view->context[i] + view->own[i].n;
		double		log_keys = layer->log_scale != NULL && keys > 0 ? log((double) keys) : 0;

		for (int j = 0; j < heads; j++)
			scale[i * heads + j] = (float) (layer->log_scale == NULL ? base :
											base
											* (layer->log_scale[2 * j] * log_keys
											   + layer->log_scale[2 * j + 1]));
	}
}

void
tnp_block_query(const TnpModel *model, const TnpLayer *layer, int heads, bool post_norm, int n,
				const float *h, const TnpView *view,
			  TnpBlockWork *work, TnpAttention *attention)
{
	int			d = layer->q.out,
				distinct = view->shared_rows > 1 ? n - view->shared_rows + 1 : n;
	const float *u = attention_input(model, layer, post_norm, distinct, h, work);

	model->kernels->linear(&layer->q, distinct, u, TNP_IDENTITY, false, work->q);
	for (int i = distinct; i < n; i++)
		memcpy(work->q + (size_t) i * d, work->q + (size_t) (distinct - 1) * d, d * sizeof(float));
	fill_scale(layer, heads, d / heads, n, view, work->scale);
	*attention = (TnpAttention) {heads, d / heads, n, distinct, work->q, work->scale, view->k,
								 view->v, view->context, view->own, work->attend, work->att, 1};
}

void
tnp_block_finish(const TnpModel *model, const TnpLayer *layer, bool post_norm, int n, float *h,
				 TnpBlockWork *work)
{
	tnp_block_finish_with(model, layer, post_norm, model->config.activation, n, h, work);
}

void
tnp_block_finish_with(const TnpModel *model, const TnpLayer *layer, bool post_norm,
					  TnpActivation activation, int n, float *h, TnpBlockWork *work)
{
	const TnpKernels *kernels = model->kernels;
	const float *u = h;

	kernels->linear(&layer->o, n, work->att, TNP_IDENTITY, true, h);
	if (post_norm)
		kernels->norm(&layer->norm1, n, h, h);
	else
	{
		kernels->norm(&layer->norm2, n, h, work->u);
		u = work->u;
	}
	kernels->linear(&layer->ff0, n, u, activation, false, work->ff);
	kernels->linear(&layer->ff1, n, work->ff, TNP_IDENTITY, true, h);
	if (post_norm)
		kernels->norm(&layer->norm2, n, h, h);
}

void
tnp_block(const TnpModel *model, const TnpLayer *layer, int heads, bool post_norm, int n, float *h,
		  const TnpView *view, TnpBlockWork *work)
{
	TnpAttention attention;

	tnp_block_query(model, layer, heads, post_norm, n, h, view, work, &attention);
	model->kernels->attend(&attention);
	tnp_block_finish(model, layer, post_norm, n, h, work);
}

static void
block_ops_keys(const TnpModel *model, const void *layer, int n, const float *h, TnpBlockWork *work)
{
	tnp_block_keys(model, layer, model->config.post_norm, n, h, work);
}

static void
block_ops_query(const TnpModel *model, const void *layer, int n, const float *h,
				const TnpView *view, TnpBlockWork *work, TnpAttention *attention)
{
	const TnpConfig *c = &model->config;

	tnp_block_query(model, layer, c->heads, c->post_norm, n, h, view, work, attention);
}

static void
block_ops_finish(const TnpModel *model, const void *layer, int n, float *h, TnpBlockWork *work)
{
	tnp_block_finish(model, layer, model->config.post_norm, n, h, work);
}

const TnpBlockOps tnp_block_ops = {block_ops_keys, block_ops_query, NULL, block_ops_finish};
