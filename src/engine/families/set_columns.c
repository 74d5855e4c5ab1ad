/*
 * set_columns.c: the column stage of a context's prefix, which leaves keys and values of the
 * inducing points of every column and layer (docs/families.md, "The set encoder").
 *
 * One column after the other, shared out to threads: the states of a column's cells are scratch,
 * and every row makes its own again from what is kept, as queries do. So memory for them is that of
 * a column per thread, not that of a table.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/set_encoder.h"

#include <string.h>

#include "engine/features/scale.h"

size_t
set_column_bytes(const TnpModel *model)
{
	const TnpSetConfig *s = &model->config.set;

	return (size_t) tnp_blocks(s->inducing, TNP_BLOCK) * s->width * model->kernels->number;
}

char *
set_column_keys(const TnpEncoding *e, int column, int layer)
{
	size_t		layers = e->model->config.set.columns.layers;

	return (char *) tnp_encoding_own(e)
		+ (column * layers + layer) * 2 * set_column_bytes(e->model);
}

typedef struct SetBuild
{
	TnpEncoding *e;
	int			tile;
	float	   *cells,			/* [prefix, max_features] scaled */
			   *states;			/* [workers, prefix, c] of one column */
	TnpKvCache *keys;			/* [workers] of one layer, prefix slots */
} SetBuild;

static TnpStatus
set_too_large(const TnpModel *model, TnpError *error)
{
	return tnp_fail(error, TNP_BAD_VALUE, "the values of a column are too large for the model%s",
					model->kernels->narrow != NULL ? " with keys of 16 bits" : "");
}

/* Cells of a tile of rows. */
static TnpStatus
set_cells_item(void *state, TnpWorker *worker, int64_t item, TnpError *error)
{
	SetBuild   *b = state;
	const TnpEncoding *e = b->e;
	const TnpModel *model = e->model;
	int			width = model->config.max_features;
	TnpRows		rows = {e->prefix, e->n_features, e->kinds, e->x, e->y, e->stats.n_classes, 0,
						model->config.n_targets};
	int64_t		first = item * b->tile,
				end = e->prefix - first < b->tile ? e->prefix : first + b->tile;
	TnpStatus	status = tnp_worker_check(worker, error);

	for (int64_t i = first; status == TNP_OK && i < end; i++)
	{
		float	   *cells = b->cells + i * width;

		tnp_scale_features(model, &e->stats, &rows, i, 1, true, cells);
		if (!tnp_all_finite(width, cells))
			status = tnp_feature_too_large(model, &e->stats, &rows, i, cells, error);
	}
	return status;
}

static int
set_tile_at(int64_t n, int64_t start)
{
	return n - start < TNP_TILE ? (int) (n - start) : TNP_TILE;
}

/* The points of a layer read the states a [prefix, c] of a column; their keys are kept. */
static TnpStatus
set_read_column(SetBuild *b, TnpWorker *worker, int column, int layer, const float *a,
				TnpError *error)
{
	const TnpEncoding *e = b->e;
	const TnpModel *model = e->model;
	const TnpSetConfig *s = &model->config.set;
	const SetInduced *induced = &set_weights(model)->columns[layer];
	TnpTokenWork *work = &worker->work->tokens;
	TnpKvCache *keys = &b->keys[worker->number];
	char	   *kept = set_column_keys(e, column, layer);
	void	   *pointers[2] = {kept, kept + set_column_bytes(model)};
	TnpKvCache	points = {.shape = keys->shape, .block = TNP_BLOCK,
						  .capacity = tnp_blocks(s->inducing, TNP_BLOCK), .k = pointers,
						  .v = pointers + 1};
	TnpStatus	status = TNP_OK;

	for (int64_t i = 0; status == TNP_OK && i < e->prefix; i += TNP_TILE)
	{
		int			n = set_tile_at(e->prefix, i);

		status = tnp_worker_check(worker, error);
		tnp_block_keys(model, &induced->read, false, n, a + i * s->width, &work->block);
		if (status == TNP_OK && !tnp_cache_put_rows(model->kernels, keys, 0, i, n, work->block.q,
													work->block.att))
			status = set_too_large(model, error);
	}
	for (int i = 0; status == TNP_OK && i < s->inducing; i += TNP_TILE)
	{
		int			n = set_tile_at(s->inducing, i);
		float	   *h = work->scratch;

		status = tnp_worker_check(worker, error);
		memcpy(h, induced->points + (size_t) i * s->width, (size_t) n * s->width * sizeof(float));
		set_block(model, &induced->read, s->columns.heads, n, h, keys->k[0], keys->v[0],
				  e->prefix, &work->block);
		tnp_block_keys(model, &induced->write, false, n, h, &work->block);
		if (status == TNP_OK && !tnp_cache_put_rows(model->kernels, &points, 0, i, n,
													work->block.q, work->block.att))
			status = set_too_large(model, error);
	}
	return status;
}

/* The column stage of the prefix for a column; of the last layer the points alone are wanted. */
static TnpStatus
set_column_item(void *state, TnpWorker *worker, int64_t item, TnpError *error)
{
	SetBuild   *b = state;
	const TnpEncoding *e = b->e;
	const TnpModel *model = e->model;
	const TnpSetConfig *s = &model->config.set;
	const SetWeights *w = set_weights(model);
	TnpTokenWork *work = &worker->work->tokens;
	float	   *a = b->states + (size_t) worker->number * e->prefix * s->width,
			   *z = work->scratch;
	TnpStatus	status = tnp_worker_check(worker, error);

	for (int64_t i = 0; status == TNP_OK && i < e->prefix; i += TNP_TILE)
	{
		int			n = set_tile_at(e->prefix, i);

		for (int r = 0; r < n; r++)
			z[r] = b->cells[(i + r) * model->config.max_features + item];
		model->kernels->linear(&w->cell, n, z, TNP_IDENTITY, false, a + i * s->width);
	}
	for (int l = 0; status == TNP_OK && l < s->columns.layers; l++)
	{
		const char *keys = set_column_keys(e, (int) item, l);

		status = set_read_column(b, worker, (int) item, l, a, error);
		for (int64_t i = 0; status == TNP_OK && l < s->columns.layers - 1 && i < e->prefix;
			 i += TNP_TILE)
		{
			status = tnp_worker_check(worker, error);
			set_block(model, &w->columns[l].write, s->columns.heads, set_tile_at(e->prefix, i),
					  a + i * s->width, keys, keys + set_column_bytes(model), s->inducing,
					  &work->block);
		}
	}
	tnp_worker_progress(worker, item + 1, e->n_features);
	return status;
}

/* Memory of the build, and of what is kept. */
static TnpStatus
set_build_make(SetBuild *b, int workers, TnpError *error)
{
	TnpEncoding *e = b->e;
	const TnpModel *model = e->model;
	const TnpSetConfig *s = &model->config.set;
	const TnpEnv *env = &model->env;
	int			heads = s->columns.heads;
	TnpCacheShape shape = {1, heads, s->width / heads, s->width / heads, model->kernels->number,
						   .planes = 1};
	int64_t		rows = e->prefix;
	TnpStatus	status;

	e->own_size = (size_t) e->n_features * s->columns.layers * 2 * set_column_bytes(model);
	e->own = tnp_alloc(env, e->own_size + TNP_OWN_SLACK, 1);
	status = e->own == NULL ? tnp_no_memory(error)
		: tnp_clear(env, e->own, e->own_size + TNP_OWN_SLACK, error);
	b->cells = tnp_alloc(env, rows, model->config.max_features * sizeof(float));
	b->states = tnp_alloc(env, (size_t) workers * rows, s->width * sizeof(float));
	b->keys = tnp_alloc_zero(env, workers, sizeof(TnpKvCache));
	if (status == TNP_OK && (b->cells == NULL || b->states == NULL || b->keys == NULL))
		status = tnp_no_memory(error);
	for (int i = 0; status == TNP_OK && i < workers; i++)
		status = tnp_cache_make(env, &shape, TNP_BLOCK, rows, &b->keys[i], error);
	return status;
}

static void
set_build_free(SetBuild *b, int workers)
{
	const TnpEnv *env = &b->e->model->env;

	for (int i = 0; b->keys != NULL && i < workers; i++)
		tnp_cache_free(env, &b->keys[i]);
	tnp_free(env, b->keys);
	tnp_free(env, b->states);
	tnp_free(env, b->cells);
}

TnpStatus
set_begin(TnpEncoding *e, TnpTeam *team, TnpError *error)
{
	SetBuild	b = {.e = e, .tile = tnp_team_tile(team, e->prefix)};
	int			workers = tnp_team_size(team);
	TnpStatus	status;

	if (e->prefix == 0)
		return tnp_fail(error, TNP_BAD_ARGUMENT, "a set encoder needs a prefix that has rows");
	status = set_build_make(&b, workers, error);
	if (status == TNP_OK)
		status = tnp_team_run(team, (e->prefix + b.tile - 1) / b.tile, set_cells_item, &b, error);
	if (status == TNP_OK)
		status = tnp_team_run(team, e->n_features, set_column_item, &b, error);
	set_build_free(&b, workers);
	return status;
}
