/*
 * tokens.c: path B of the row tokeniser: the cells of a row become tokens that attend to each other; a few learned
 * read-out tokens collect what the row says (docs/model-format.md section 5).
 *
 * One row at a time: its tokens are one or two tiles, and rows never see each other here.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "tokens.h"

#include <string.h>

#include "block.h"
#include "cache.h"
#include "embed.h"

/* Memory for the tokens of one row. */
typedef struct TokenWork
{
	TnpWork		block;
	TnpCache	cache;			/* one layer, reused */
	float	   *h;				/* [readouts + slots, dc] */
	float	   *scratch;		/* the cell MLP's */
} TokenWork;

static void
free_work(const TnpModel *model, TokenWork *w)
{
	tnp_work_free(model, &w->block);
	tnp_cache_free(&model->env, &w->cache);
	tnp_free(&model->env, w->h);
	tnp_free(&model->env, w->scratch);
}

static TnpStatus
make_work(const TnpModel *model, int tokens, TokenWork *w, TnpError *error)
{
	const TnpEncoderConfig *e = &model->config.encode_x;
	TnpStatus	status;

	memset(w, 0, sizeof(*w));
	status = tnp_work_make(model, e->token_width, e->token_heads, e->token_feedforward, tokens, &w->block, error);
	if (status == TNP_OK)
		status = tnp_cache_make(&model->env, 1, e->token_width, tokens, &w->cache, error);
	if (status == TNP_OK)
	{
		w->h = tnp_alloc(&model->env, tokens, e->token_width * sizeof(float));
		w->scratch = tnp_alloc(&model->env, TNP_TILE, 2 * tnp_mlp_width(&model->tokeniser.cell) * sizeof(float));
		if (w->h == NULL || w->scratch == NULL)
			status = tnp_no_memory(error);
	}
	if (status != TNP_OK)
		free_work(model, w);
	return status;
}

/* Tokens of one row entering the first block: read-outs, then cells with their slot's code. */
static void
embed_cells(const TnpModel *model, int n_slots, const float *cells, TokenWork *w)
{
	const TnpEncoderConfig *e = &model->config.encode_x;
	int			dc = e->token_width;
	float	   *h = w->h + (size_t) e->token_readouts * dc;

	memcpy(w->h, model->tokeniser.readout, (size_t) e->token_readouts * dc * sizeof(float));
	for (int start = 0; start < n_slots; start += TNP_TILE)
	{
		int			tile = n_slots - start < TNP_TILE ? n_slots - start : TNP_TILE;

		tnp_mlp(model, &model->tokeniser.cell, tile, cells + start * tnp_cell_width(model), w->scratch, h + (size_t) start * dc);
	}
	for (size_t i = 0; i < (size_t) n_slots * dc; i++)
		h[i] += model->tokeniser.code[i];
}

/* One block with full attention among the first `tokens` states; only the first `wanted` are updated. */
static void
mix_tokens(const TnpModel *model, const TnpLayer *layer, int tokens, int wanted, TokenWork *w)
{
	const TnpEncoderConfig *e = &model->config.encode_x;
	int			dc = e->token_width;
	int64_t		visible[TNP_TILE];
	TnpKeys		none[TNP_TILE];
	TnpView		view = {w->cache.k[0], w->cache.v[0], visible, none};

	for (int start = 0; start < tokens; start += TNP_TILE)
	{
		int			tile = tokens - start < TNP_TILE ? tokens - start : TNP_TILE;

		tnp_block_keys(model, layer, false, tile, w->h + (size_t) start * dc, &w->block);
		for (int i = 0; i < tile; i++)
			tnp_cache_put(&w->cache, 0, start + i, w->block.q + (size_t) i * dc, w->block.att + (size_t) i * dc);
	}
	for (int i = 0; i < TNP_TILE; i++)
	{
		visible[i] = tokens;
		none[i] = (TnpKeys) {NULL, NULL, 0};
	}
	for (int start = 0; start < wanted; start += TNP_TILE)
	{
		int			tile = wanted - start < TNP_TILE ? wanted - start : TNP_TILE;

		tnp_block(model, layer, e->token_heads, false, tile, w->h + (size_t) start * dc, &view, &w->block);
	}
}

TnpStatus
tnp_encode_tokens(const TnpModel *model, int n, int n_slots, const float *cells, int stride, float *y, TnpError *error)
{
	const TnpEncoderConfig *e = &model->config.encode_x;
	int			tokens = e->token_readouts + n_slots;
	TokenWork	w;
	TnpStatus	status = make_work(model, tokens, &w, error);

	if (status != TNP_OK)
		return status;
	for (int i = 0; i < n; i++)
	{
		embed_cells(model, n_slots, cells + (size_t) i * stride, &w);
		for (int l = 0; l < e->token_layers; l++)
			mix_tokens(model, &model->tokeniser.blocks[l], tokens, l == e->token_layers - 1 ? e->token_readouts : tokens, &w);
		/* the read-out states are already side by side */
		model->kernels->linear(&model->tokeniser.pool, 1, w.h, TNP_IDENTITY, true, y + (size_t) i * model->config.width);
	}
	free_work(model, &w);
	return TNP_OK;
}
