/*
 * row_stage.c: blocks in which the tokens of one row attend to each other, at rotary positions.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/network/row_stage.h"

/* Rotate the vectors [heads, head width] of n tokens, the first of which is at a position. */
static void
row_rotate(const TnpRowStage *s, int position, int n, float *x)
{
	int			width = s->width / s->heads,
				pairs = width / 2;

	for (int i = 0; i < n; i++)
	{
		const float *cosine = s->cosine + (size_t) (position + i) * pairs,
				   *sine = s->sine + (size_t) (position + i) * pairs;

		for (int h = 0; h < s->heads; h++)
		{
			float	   *head = x + (size_t) i * s->width + h * width;

			for (int p = 0; p < pairs; p++)
			{
				float	   *a = head + (s->halves ? p : 2 * p),
						   *b = s->halves ? a + pairs : a + 1,
							first = *a,
							second = *b;

				*a = first * cosine[p] - second * sine[p];
				*b = first * sine[p] + second * cosine[p];
			}
		}
	}
}

static int
row_tile(int n, int start)
{
	return n - start < TNP_TILE ? n - start : TNP_TILE;
}

/* One block, of which the first `wanted` tokens are updated. */
static bool
row_block(const TnpModel *model, const TnpRowStage *s, const TnpLayer *layer, int tokens,
		  int wanted, float *h, TnpKvCache *cache, TnpBlockWork *work)
{
	int64_t		visible[TNP_TILE];
	TnpKeys		own[TNP_TILE];

	for (int start = 0; start < tokens; start += TNP_TILE)
	{
		int			n = row_tile(tokens, start);

		tnp_block_keys(model, layer, false, n, h + (size_t) start * s->width, work);
		row_rotate(s, start, n, work->q);
		if (!tnp_cache_put_rows(model->kernels, cache, 0, start, n, work->q, work->att))
			return false;
	}
	for (int start = 0; start < wanted; start += TNP_TILE)
	{
		int			n = row_tile(wanted, start);
		float	   *some = h + (size_t) start * s->width;
		TnpView		view = tnp_view_of_all(n, cache->k[0], cache->v[0], tokens, visible, own);
		TnpAttention attention;

		tnp_block_query(model, layer, s->heads, false, n, some, &view, work, &attention);
		row_rotate(s, start, n, work->q);
		model->kernels->attend(&attention);
		tnp_block_finish_with(model, layer, false, s->activation, n, some, work);
	}
	return true;
}

bool
tnp_row_stage(const TnpModel *model, const TnpRowStage *s, int tokens, float *h, TnpKvCache *cache,
			  TnpBlockWork *work)
{
	bool		fits = true;

	for (int l = 0; fits && l < s->layers; l++)
	{
		const TnpLayer *layer = (const TnpLayer *) (const void *)
			((const char *) s->layer + l * s->stride);

		fits = row_block(model, s, layer, tokens, l < s->layers - 1 ? tokens : s->kept, h, cache,
						 work);
	}
	return fits;
}
