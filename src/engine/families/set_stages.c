/*
 * set_stages.c: the set encoder's arithmetic of tiles: the cells of a few rows read their columns'
 * inducing points, then each row's cells and read-outs attend to each other (docs/families.md, "The
 * set encoder").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/set_encoder.h"

#include <math.h>
#include <string.h>

#include "engine/network/row_stage.h"

/* ---- scratch --------------------------------------------------------------------------------- */

/* Floats that attention needs of a tile in the column and in the row stage. */
static size_t
set_attend_floats(const TnpModel *model)
{
	const TnpSetConfig *s = &model->config.set;
	size_t		columns = model->kernels->attend_floats(s->columns.heads,
														s->width / s->columns.heads, 1, TNP_TILE),
				rows = model->kernels->attend_floats(s->rows.heads, s->width / s->rows.heads, 1,
													 TNP_TILE);

	return columns > rows ? columns : rows;
}

TnpStatus
set_work_make(const TnpModel *model, int rows, TnpTokenWork *work, TnpError *error)
{
	const TnpSetConfig *s = &model->config.set;
	int			c = s->width,
				tokens = set_tokens(&model->config),
				some = rows < SET_ROWS ? rows : SET_ROWS,
				heads = s->rows.heads;
	TnpCacheShape shape = {1, heads, c / heads, c / heads, model->kernels->number, .planes = 1};
	TnpBlockSizes sizes = {c, c, c, s->columns.feedforward > s->rows.feedforward
						   ? s->columns.feedforward : s->rows.feedforward,
						   s->columns.heads > heads ? s->columns.heads : heads,
						   (int) ((set_attend_floats(model) + TNP_TILE - 1) / TNP_TILE), 1};
	TnpStatus	status = tnp_block_work_make(model, &sizes, TNP_TILE, &work->block, error);

	if (status != TNP_OK)
		return status;
	/* the heads of the stages may differ: `more` serves attention in both */
	work->block.attend = work->block.more;
	status = tnp_cache_make(&model->env, &shape, TNP_BLOCK, tokens, &work->cache, error);
	if (status != TNP_OK)
		return status;
	work->h = tnp_alloc(&model->env, (size_t) some * tokens, c * sizeof(float));
	/* states and cells of a tile of the column stage, and the features of the rows */
	work->scratch = tnp_alloc(&model->env, (size_t) TNP_TILE * (c + 1)
							  + (size_t) SET_ROWS * model->config.width, sizeof(float));
	return work->h == NULL || work->scratch == NULL ? tnp_no_memory(error) : TNP_OK;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

void
set_block(const TnpModel *model, const TnpLayer *layer, int heads, int n, float *h, const void *k,
		  const void *v, int64_t m, TnpBlockWork *work)
{
	int64_t		visible[TNP_TILE];
	TnpKeys		own[TNP_TILE];
	TnpView		view = tnp_view_of_all(n, k, v, m, visible, own);
	TnpAttention attention;

	tnp_block_query(model, layer, heads, false, n, h, &view, work, &attention);
	model->kernels->attend(&attention);
	tnp_block_finish_with(model, layer, false, model->config.embedder_activation, n, h, work);
}

/* ---- column stage ---------------------------------------------------------------------------- */

/*
 * States a [some, n, c] of n rows' cells in columns first … first + some - 1 through a layer. The
 * weights are those of all columns, which go as one tile; the points are each column's own.
 */
static void
set_read_points(const TnpEncoding *e, int layer, int first, int some, int n, float *a,
				TnpBlockWork *work)
{
	const TnpModel *model = e->model;
	const TnpSetConfig *s = &model->config.set;
	const TnpLayer *weights = &set_weights(model)->columns[layer].write;
	int64_t		visible[TNP_TILE];
	TnpKeys		own[TNP_TILE];
	TnpView		view = tnp_view_of_all(some * n, NULL, NULL, s->inducing, visible, own);
	TnpAttention all;

	tnp_block_query(model, weights, s->columns.heads, false, some * n, a, &view, work, &all);
	for (int g = 0; g < some; g++)
	{
		TnpAttention one = all;
		const char *keys = set_column_keys(e, first + g, layer);

		one.n = one.distinct = n;
		one.q += (size_t) g * n * s->width;
		one.scale += (size_t) g * n * s->columns.heads;
		one.out += (size_t) g * n * s->width;
		one.k = keys;
		one.v = keys + set_column_bytes(model);
		model->kernels->attend(&one);
	}
	tnp_block_finish_with(model, weights, false, model->config.embedder_activation, some * n, a,
						  work);
}

/* The vectors of the cells of n rows into h [n, tokens, c], behind the read-outs. */
static void
set_columns(const TnpEncoding *e, TnpTokenWork *work, int n, const float *const *cells, int tokens)
{
	const TnpModel *model = e->model;
	const TnpKernels *kernels = model->kernels;
	const TnpSetConfig *s = &model->config.set;
	const SetWeights *w = set_weights(model);
	TnpBlockWork *block = &work->block;
	int			c = s->width,
				most = TNP_TILE / n;
	float	   *a = work->scratch,
			   *z = a + (size_t) TNP_TILE * c;

	for (int first = 0; first < e->n_features; first += most)
	{
		int			some = e->n_features - first < most ? e->n_features - first : most;

		for (int i = 0; i < some * n; i++)
			z[i] = cells[i % n][first + i / n];
		kernels->linear(&w->cell, some * n, z, TNP_IDENTITY, false, a);
		for (int l = 0; l < s->columns.layers; l++)
			set_read_points(e, l, first, some, n, a, block);
		kernels->linear(&w->affine[0], some * n, a, TNP_IDENTITY, false, block->u);
		kernels->norm(&w->affine_norm[0], some * n, block->u, block->u);
		kernels->linear(&w->affine[1], some * n, a, TNP_IDENTITY, false, block->att);
		kernels->norm(&w->affine_norm[1], some * n, block->att, block->att);
		for (int i = 0; i < some * n; i++)
		{
			size_t		token = (size_t) (i % n) * tokens + s->readouts + first + i / n;
			float	   *to = work->h + token * c;

			for (int j = 0; j < c; j++)
				to[j] = z[i] * block->u[(size_t) i * c + j] + block->att[(size_t) i * c + j];
		}
	}
}

/* ---- row stage ------------------------------------------------------------------------------- */

void
set_features(const TnpEncoding *e, TnpTokenWork *work, int n, const float *const *cells, float *out)
{
	const TnpModel *model = e->model;
	const TnpSetConfig *s = &model->config.set;
	const SetWeights *w = set_weights(model);
	int			tokens = s->readouts + e->n_features,
				kept = s->take_all ? s->readouts : 1,
				d = model->config.width;
	bool		fits;
	/* after the last block nothing but the read-outs is read */
	TnpRowStage stage = {s->rows.layers, s->rows.heads, s->width, w->rows, sizeof(TnpLayer),
						 model->config.embedder_activation, kept, w->cosine, w->sine, s->halves};

	set_columns(e, work, n, cells, tokens);
	for (int i = 0; i < n; i++)
	{
		float	   *h = work->h + (size_t) i * tokens * s->width;

		memcpy(h, w->readouts, (size_t) s->readouts * s->width * sizeof(float));
		fits = tnp_row_stage(model, &stage, tokens, h, &work->cache, &work->block);
		model->kernels->norm(&w->rows_norm, kept, h, out + (size_t) i * d);
		if (!fits)
			out[(size_t) i * d] = NAN;
	}
}
