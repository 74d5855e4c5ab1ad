/*
 * tokens.c: path B of the row tokeniser: the cells of a row become tokens that attend to each
 * other; a few learned read-out tokens collect what the row says (docs/model-format.md section 5).
 *
 * One row at a time: its tokens are one or two tiles, and rows never see each other here.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/network/tokens.h"

#include <math.h>
#include <string.h>

#include "engine/network/block.h"
#include "engine/network/kv_cache.h"
#include "engine/network/mlp.h"

/* Tokens of one row entering the first block: read-outs, then cells with their slot's code. */
static void
embed_cells(const TnpModel *model, int n_slots, const float *cells, TnpTokenWork *w)
{
	const TnpEncoderConfig *e = &model->config.encode_x;
	int			dc = e->token_width;
	float	   *h = w->h + (size_t) e->token_readouts * dc;

	memcpy(w->h, model->tokeniser.readout, (size_t) e->token_readouts * dc * sizeof(float));
	for (int start = 0; start < n_slots; start += TNP_TILE)
	{
		int			tile = n_slots - start < TNP_TILE ? n_slots - start : TNP_TILE;

		tnp_mlp(model, &model->tokeniser.cell, tile, cells + start * tnp_cell_width(model),
				w->scratch, h + (size_t) start * dc);
	}
	for (size_t i = 0; i < (size_t) n_slots * dc; i++)
		h[i] += model->tokeniser.code[i];
}

/*
 * One block with full attention among the first `tokens` states; only the first `wanted` are
 * updated.
 */
static void
mix_tokens(const TnpModel *model, const TnpLayer *layer, int tokens, int wanted, TnpTokenWork *w)
{
	const TnpEncoderConfig *e = &model->config.encode_x;
	int			dc = e->token_width;
	int64_t		visible[TNP_TILE];
	TnpKeys		none[TNP_TILE];
	TnpView		view = {w->cache.k[0], w->cache.v[0], visible, none, 0};
	bool		fits = true;

	for (int start = 0; start < tokens; start += TNP_TILE)
	{
		int			tile = tokens - start < TNP_TILE ? tokens - start : TNP_TILE;

		tnp_block_keys(model, layer, false, tile, w->h + (size_t) start * dc, &w->block);
		fits &= tnp_cache_put_rows(model->kernels, &w->cache, 0, start, tile, w->block.q,
								   w->block.att);
	}
	/* it stays in the read-out, and the row is refused */
	if (!fits)
		w->h[0] = NAN;
	for (int i = 0; i < TNP_TILE; i++)
	{
		visible[i] = tokens;
		none[i] = (TnpKeys) {NULL, NULL, 0};
	}
	for (int start = 0; start < wanted; start += TNP_TILE)
	{
		int			tile = wanted - start < TNP_TILE ? wanted - start : TNP_TILE;

		tnp_block(model, layer, e->token_heads, false, tile, w->h + (size_t) start * dc, &view,
				  &w->block);
	}
}

void
tnp_encode_tokens(const TnpModel *model, int n, int n_slots, const float *cells, int stride,
				  TnpTokenWork *work, float *y)
{
	const TnpEncoderConfig *e = &model->config.encode_x;
	int			tokens = e->token_readouts + n_slots;

	for (int i = 0; i < n; i++)
	{
		embed_cells(model, n_slots, cells + (size_t) i * stride, work);
		for (int l = 0; l < e->token_layers; l++)
			mix_tokens(model, &model->tokeniser.blocks[l], tokens,
					   l == e->token_layers - 1 ? e->token_readouts : tokens, work);
		/* the read-out states are already side by side */
		model->kernels->linear(&model->tokeniser.pool, 1, work->h, TNP_IDENTITY, true,
							   y + (size_t) i * model->config.width);
	}
}
