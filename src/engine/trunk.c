/*
 * trunk.c: tokens walk through the layers, a tile at a time.
 *
 * Within a layer all tokens first store the keys and values that they make of the state entering the layer; then each attends. So tokens
 * of one call can see each other (a prefix), see only earlier ones (a suffix), or see a chain of their own, by counts alone. Tokens that only ask
 * store nothing, and a tile of them can walk all layers by itself.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "trunk.h"

#include <string.h>

#include "block.h"

int
tnp_cache_layers(const TnpModel *model)
{
	return model->config.layers * (model->config.architecture == TNP_TWO_STREAM ? 2 : 1);
}

/* Number of tokens of the tile that starts at `start`. */
static int
tile_size(int64_t start, int64_t end)
{
	return end - start < TNP_TILE ? (int) (end - start) : TNP_TILE;
}

static TnpStatus
check_interrupt(const TnpModel *model, TnpError *error)
{
	return tnp_interrupted(&model->env) ? tnp_fail(error, TNP_INTERRUPTED, "interrupted") : TNP_OK;
}

/* Store what `layer` makes of the states of tokens [0, n) into cache layer `at`. */
static TnpStatus
store_keys(const TnpModel *model, const TnpLayer *layer, int at, TnpCache *context, int64_t n, const TnpToken *tokens, const float *h,
		   TnpWork *work, TnpError *error)
{
	int			d = model->config.width;

	for (int64_t start = 0; start < n; start += TNP_TILE)
	{
		int			tile = tile_size(start, n);
		TnpStatus	status = check_interrupt(model, error);

		if (status != TNP_OK)
			return status;
		tnp_block_keys(model, layer, model->config.post_norm, tile, h + start * d, work);
		for (int i = 0; i < tile; i++)
		{
			const TnpToken *t = &tokens[start + i];

			tnp_cache_put(t->own != NULL ? t->own : context, at, t->slot, work->q + (size_t) i * d, work->att + (size_t) i * d);
		}
	}
	return TNP_OK;
}

/* Tokens [first, end) attend to cache layer `at` and go through the rest of the block. */
static TnpStatus
attend(const TnpModel *model, const TnpLayer *layer, int at, const TnpCache *context, int64_t first, int64_t end, const TnpToken *tokens,
	   float *h, TnpWork *work, TnpError *error)
{
	int			d = model->config.width;
	int64_t		visible[TNP_TILE];
	TnpKeys		own[TNP_TILE];
	TnpView		view = {context->k[at], context->v[at], visible, own};

	for (int64_t start = first; start < end; start += TNP_TILE)
	{
		int			tile = tile_size(start, end);
		TnpStatus	status = check_interrupt(model, error);

		if (status != TNP_OK)
			return status;
		for (int i = 0; i < tile; i++)
		{
			const TnpToken *t = &tokens[start + i];

			visible[i] = t->context;
			if (t->own != NULL)
				own[i] = (TnpKeys) {t->own->k[at], t->own->v[at], t->chain};
			else
				own[i] = (TnpKeys) {NULL, NULL, 0};
		}
		tnp_block(model, layer, model->config.heads, model->config.post_norm, tile, h + start * d, &view, work);
	}
	return TNP_OK;
}

/* One set of weights for all tokens; keys come from the state that enters the layer. */
static TnpStatus
walk_packed(const TnpModel *model, TnpCache *context, int64_t n, int64_t n_store, const TnpToken *tokens, float *h, TnpWork *work, TnpError *error)
{
	TnpStatus	status = TNP_OK;

	for (int l = 0; status == TNP_OK && l < model->config.layers; l++)
	{
		/* after the last layer nobody reads the states of tokens that only store */
		int64_t		first = l == model->config.layers - 1 ? n_store : 0;

		status = store_keys(model, &model->layers[l], l, context, n_store, tokens, h, work, error);
		if (status == TNP_OK)
			status = attend(model, &model->layers[l], l, context, first, n, tokens, h, work, error);
	}
	return status;
}

/*
 * Separate weights for rows and queries; queries read the row states that leave the layer. Cache layers: self 0 … L-1, then cross.
 */
static TnpStatus
walk_two_stream(const TnpModel *model, TnpCache *context, int64_t n, int64_t n_store, const TnpToken *tokens, float *h, TnpWork *work,
				TnpError *error)
{
	int			layers = model->config.layers;
	TnpStatus	status = TNP_OK;

	for (int l = 0; status == TNP_OK && l < layers; l++)
	{
		if (n_store > 0)
		{
			status = store_keys(model, &model->layers[l], l, context, n_store, tokens, h, work, error);
			if (status == TNP_OK)
				status = attend(model, &model->layers[l], l, context, 0, n_store, tokens, h, work, error);
			if (status == TNP_OK)
				status = store_keys(model, &model->cross[l], layers + l, context, n_store, tokens, h, work, error);
		}
		if (status == TNP_OK)
			status = attend(model, &model->cross[l], layers + l, context, n_store, n, tokens, h, work, error);
	}
	return status;
}

TnpStatus
tnp_trunk(const TnpModel *model, TnpCache *context, int64_t n, int64_t n_store, const TnpToken *tokens, float *h, TnpError *error)
{
	const TnpConfig *c = &model->config;
	int64_t		keys = 0;
	TnpWork		work;
	TnpStatus	status;

	for (int64_t i = 0; i < n; i++)
		if (tokens[i].context + tokens[i].chain > keys)
			keys = tokens[i].context + tokens[i].chain;
	status = tnp_work_make(model, c->width, c->heads, c->feedforward, keys, &work, error);
	if (status != TNP_OK)
		return status;
	if (c->architecture == TNP_TWO_STREAM)
		status = walk_two_stream(model, context, n, n_store, tokens, h, &work, error);
	else if (n_store > 0)
		status = walk_packed(model, context, n, n_store, tokens, h, &work, error);
	else
		/* queries only: a tile walks all layers while it is warm */
		for (int64_t start = 0; status == TNP_OK && start < n; start += TNP_TILE)
			status = walk_packed(model, context, tile_size(start, n), 0, tokens + start, h + start * c->width, &work, error);
	tnp_work_free(model, &work);
	return status;
}
