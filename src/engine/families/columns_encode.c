/*
 * columns_encode.c: a context becomes keys and values: for each estimator those of the inducing
 * points of every group and block of the column stage, and those of every row in every layer of the
 * in-context stage.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <string.h>

#include "engine/families/columns.h"

/* ---- the state's layout ---------------------------------------------------------------------- */

static size_t
aligned(size_t size)
{
	return (size + 63) / 64 * 64;
}

/* Bytes of all keys and values of one estimator. */
static size_t
estimator_bytes(const ColumnsState *s, const ColumnsConfig *c)
{
	return 2 * ((size_t) s->groups * c->column_blocks * s->column_bytes
				+ (size_t) c->context_blocks * s->context_bytes);
}

char *
columns_column_keys(const ColumnsState *s, const ColumnsConfig *c, int estimator, int group,
					int block)
{
	return (char *) s + s->keys + estimator * estimator_bytes(s, c)
		+ 2 * ((size_t) group * c->column_blocks + block) * s->column_bytes;
}

char *
columns_context_keys(const ColumnsState *s, const ColumnsConfig *c, int estimator, int layer)
{
	return (char *) s + s->keys + estimator * estimator_bytes(s, c)
		+ 2 * ((size_t) s->groups * c->column_blocks * s->column_bytes
			   + (size_t) layer * s->context_bytes);
}

void
columns_cells(const ColumnsState *s, int estimator, const double *x, float *scratch, float *cells)
{
	const int  *order = columns_order(s, estimator);

	tnp_prepare_row(columns_prepared(s), s->order[estimator].normal, x, scratch);
	for (int i = 0; i < s->columns; i++)
		cells[i] = scratch[order[i]];
}

/* The state of n rows, with statistics and orders in it and keys of zero. */
static TnpStatus
make_state(TnpEncoding *e, const TnpRows *rows, TnpError *error)
{
	const TnpModel *model = e->model;
	const ColumnsConfig *c = columns_config(model);
	const TnpEnv *env = &model->env;
	int			wanted = e->estimators > 0 ? e->estimators : 1,
				width = columns_width(c);
	size_t		number = model->kernels->number;
	ColumnsState layout = {.n = rows->n};
	TnpPrepared *prepared;
	int		   *order = NULL;
	TnpStatus	status = tnp_prepare(env, rows, c->max_classes > 0, wanted > 1, &prepared, error);

	if (status != TNP_OK)
		return status;
	layout.columns = prepared->n_columns;
	layout.groups = columns_groups(c, layout.columns);
	order = tnp_alloc(env, (size_t) wanted * layout.columns, sizeof(int));
	if (order != NULL)
		layout.estimators = tnp_orders(env, layout.columns, e->stats.n_classes, wanted,
									   layout.order, order);
	if (order == NULL || layout.estimators < 0)
		status = tnp_no_memory(error);
	else
	{
		size_t		order_bytes = (size_t) layout.estimators * layout.columns * sizeof(int);

		layout.prepared = aligned(sizeof(ColumnsState));
		layout.column_order = layout.prepared + aligned(prepared->size);
		layout.keys = layout.column_order + aligned(order_bytes);
		layout.column_bytes = (size_t) tnp_blocks(c->inducing, TNP_BLOCK) * c->embed * number;
		layout.context_bytes = (size_t) tnp_blocks(rows->n, TNP_BLOCK) * width * number;
		e->own_size = layout.keys + layout.estimators * estimator_bytes(&layout, c);
		e->own = tnp_alloc(env, e->own_size + TNP_OWN_SLACK, 1);
		status = e->own == NULL ? tnp_no_memory(error)
			: tnp_clear(env, e->own, e->own_size + TNP_OWN_SLACK, error);
		if (status == TNP_OK)
		{
			char	   *own = tnp_encoding_own(e);

			memcpy(own, &layout, sizeof(layout));
			memcpy(own + layout.prepared, prepared, prepared->size);
			memcpy(own + layout.column_order, order, order_bytes);
		}
	}
	tnp_free(env, prepared);
	tnp_free(env, order);
	return status;
}

/* ---- teams ----------------------------------------------------------------------------------- */

TnpStatus
columns_team_make(const ColumnsCall *call, int64_t rows, int tile, int64_t most, double cost,
				  ColumnsTeam *team, TnpError *error)
{
	const TnpModel *model = call->model;
	TnpStatus	status;

	memset(team, 0, sizeof(*team));
	status = tnp_team_make(model, NULL, TNP_TILE, most, cost, NULL, &team->team, error);
	if (status != TNP_OK)
		return status;
	team->work = tnp_alloc_zero(&model->env, tnp_team_size(team->team), sizeof(ColumnsWork));
	team->numbers = tnp_alloc(&model->env, (size_t) tnp_team_size(team->team),
							  model->config.head_outputs * sizeof(double));
	if (team->work == NULL || team->numbers == NULL)
		status = tnp_no_memory(error);
	for (int i = 0; status == TNP_OK && i < tnp_team_size(team->team); i++)
		status = columns_work_make(call, rows, tile, &team->work[i], error);
	if (status != TNP_OK)
		columns_team_free(model, team);
	return status;
}

void
columns_team_free(const TnpModel *model, ColumnsTeam *team)
{
	for (int i = 0; team->work != NULL && i < tnp_team_size(team->team); i++)
		columns_work_free(model, &team->work[i]);
	tnp_free(&model->env, team->work);
	tnp_free(&model->env, team->numbers);
	tnp_team_free(team->team);
	memset(team, 0, sizeof(*team));
}

/* ---- the stages ------------------------------------------------------------------------------ */

typedef struct Build
{
	const TnpModel *model;
	const ColumnsConfig *c;
	const ColumnsWeights *w;
	ColumnsState *state;
	ColumnsCall call;
	ColumnsTeam team;
	const double *x,			/* [n, features] rows as they are */
			   *y;
	int			features,
				n_classes;
	int			estimator;
	float	   *cells,			/* [n, columns] of this estimator */
			   *embedded,		/* [n, groups, embed] */
			   *h;				/* [n, width] */
	double	   *target;			/* [n] scaled, or a class as this estimator sees it */
	int			layer;
} Build;

static TnpStatus
too_large(const Build *b, TnpError *error)
{
	return tnp_fail(error, TNP_BAD_VALUE, "the values of a row are too large for the model%s",
					b->model->kernels->narrow != NULL ? " with keys of 16 bits" : "");
}

static int
tile_at(int64_t n, int64_t start)
{
	return n - start < TNP_TILE ? (int) (n - start) : TNP_TILE;
}

/* A cache of one layer that lies at keys, its values `bytes` further. */
static TnpKvCache
cache_at(const TnpModel *model, int heads, int width, int64_t slots, char *keys, size_t bytes,
		 void **pointers)
{
	TnpKvCache	cache = {
		.shape = {.layers = 1, .heads = heads, .key_width = width / heads,
				  .value_width = width / heads, .number = model->kernels->number},
		.block = TNP_BLOCK, .capacity = tnp_blocks(slots, TNP_BLOCK), .k = pointers,
		.v = pointers + 1
	};

	pointers[0] = keys;
	pointers[1] = keys + bytes;
	return cache;
}

/* Cells of a tile of rows. */
static TnpStatus
cells_item(void *state, TnpWorker *worker, int64_t item, TnpError *error)
{
	Build	   *b = state;
	ColumnsWork *work = &b->team.work[worker->number];
	int64_t		start = item * TNP_TILE;
	TnpStatus	status = tnp_worker_check(worker, error);

	for (int64_t i = start; status == TNP_OK && i < start + tile_at(b->call.n, start); i++)
		columns_cells(b->state, b->estimator, b->x + i * b->features, work->cells,
					  b->cells + i * b->call.columns);
	return status;
}

/* One block of the column stage for a group: embeddings e [n, embed] in place. */
static TnpStatus
induced_block(Build *b, TnpWorker *worker, int g, int block, float *e, TnpError *error)
{
	const ColumnsInduced *induced = &b->w->columns[block];
	ColumnsWork *work = &b->team.work[worker->number];
	int			embed = b->c->embed,
				heads = b->c->column_heads;
	char	   *keys = columns_column_keys(b->state, b->c, b->estimator, g, block);
	void	   *pointers[2];
	TnpKvCache	kept = cache_at(b->model, heads, embed, b->c->inducing, keys,
								b->state->column_bytes, pointers);
	TnpStatus	status = TNP_OK;

	work->keys.shape.heads = heads;
	work->keys.shape.key_width = work->keys.shape.value_width = embed / heads;
	for (int64_t i = 0; status == TNP_OK && i < b->call.n; i += TNP_TILE)
	{
		status = tnp_worker_check(worker, error);
		if (status == TNP_OK && !columns_store(b->model, &induced->read, tile_at(b->call.n, i),
											   e + i * embed, &work->keys, i, &work->narrow))
			status = too_large(b, error);
	}
	for (int i = 0; status == TNP_OK && i < b->c->inducing; i += TNP_TILE)
	{
		int			n = tile_at(b->c->inducing, i);
		float	   *h = work->h;

		memcpy(h, induced->points + (size_t) i * embed, (size_t) n * embed * sizeof(float));
		status = tnp_worker_check(worker, error);
		if (status != TNP_OK)
			break;
		columns_block(b->model, &induced->read, heads, n, h, work->keys.k[0], work->keys.v[0],
					  b->call.n, b->call.column_base + block * embed, work, &work->narrow);
		if (!columns_store(b->model, &induced->write, n, h, &kept, i, &work->narrow))
			status = too_large(b, error);
	}
	for (int64_t i = 0; status == TNP_OK && i < b->call.n; i += TNP_TILE)
	{
		status = tnp_worker_check(worker, error);
		if (status == TNP_OK)
			columns_block(b->model, &induced->write, heads, tile_at(b->call.n, i), e + i * embed,
						  kept.k[0], kept.v[0], b->c->inducing, NULL, work, &work->narrow);
	}
	return status;
}

/* The column stage of a group. */
static TnpStatus
group_item(void *state, TnpWorker *worker, int64_t item, TnpError *error)
{
	Build	   *b = state;
	ColumnsWork *work = &b->team.work[worker->number];
	int			g = (int) item,
				embed = b->c->embed;
	float	   *e = work->column;
	TnpStatus	status = TNP_OK;

	for (int64_t i = 0; i < b->call.n; i += TNP_TILE)
		columns_embed_cells(&b->call, tile_at(b->call.n, i), b->cells + i * b->call.columns, g,
							work, e + i * embed);
	for (int64_t i = 0; b->c->target_aware && i < b->call.n; i++)
		columns_add_target(&b->w->column_target, b->target[i], e + i * embed);
	for (int l = 0; status == TNP_OK && l < b->c->column_blocks; l++)
		status = induced_block(b, worker, g, l, e, error);
	for (int64_t i = 0; status == TNP_OK && i < b->call.n; i += TNP_TILE)
	{
		int			n = tile_at(b->call.n, i);

		columns_affine(&b->call, n, b->cells + i * b->call.columns, g, work, e + i * embed);
		for (int64_t r = i; r < i + n; r++)
			memcpy(b->embedded + (r * b->call.groups + g) * embed, e + r * embed,
				   embed * sizeof(float));
	}
	tnp_worker_progress(worker, item + 1, b->call.groups);
	return status;
}

/* The row stage of a tile of rows. */
static TnpStatus
rows_item(void *state, TnpWorker *worker, int64_t item, TnpError *error)
{
	Build	   *b = state;
	int64_t		start = item * TNP_TILE;
	int			width = columns_width(b->c);

	for (int64_t i = start; i < start + tile_at(b->call.n, start); i++)
	{
		TnpStatus	status = tnp_worker_check(worker, error);

		if (status != TNP_OK)
			return status;
		if (!columns_row(&b->call, b->embedded + i * b->call.groups * b->c->embed,
						 &b->team.work[worker->number], b->h + i * width))
			return too_large(b, error);
		columns_add_target(&b->w->context_target, b->target[i], b->h + i * width);
	}
	tnp_worker_progress(worker, start, b->call.n);
	return TNP_OK;
}

/* Keys and values of a tile of rows in a layer. */
static TnpStatus
store_item(void *state, TnpWorker *worker, int64_t item, TnpError *error)
{
	Build	   *b = state;
	int64_t		start = item * TNP_TILE;
	int			width = columns_width(b->c);
	void	   *pointers[2];
	TnpKvCache	cache = cache_at(b->model, b->c->context_heads, width, b->call.n,
								 columns_context_keys(b->state, b->c, b->estimator, b->layer),
								 b->state->context_bytes, pointers);
	TnpStatus	status = tnp_worker_check(worker, error);

	if (status == TNP_OK && !columns_store(b->model, &b->w->context[b->layer],
										   tile_at(b->call.n, start), b->h + start * width, &cache,
										   start, &b->team.work[worker->number].wide))
		status = too_large(b, error);
	return status;
}

/* A tile of rows goes through a layer. */
static TnpStatus
attend_item(void *state, TnpWorker *worker, int64_t item, TnpError *error)
{
	Build	   *b = state;
	ColumnsWork *work = &b->team.work[worker->number];
	int64_t		start = item * TNP_TILE;
	int			width = columns_width(b->c);
	char	   *keys = columns_context_keys(b->state, b->c, b->estimator, b->layer);
	TnpStatus	status = tnp_worker_check(worker, error);

	if (status != TNP_OK)
		return status;
	columns_block(b->model, &b->w->context[b->layer], b->c->context_heads,
				  tile_at(b->call.n, start), b->h + start * width, keys,
				  keys + b->state->context_bytes, b->call.n,
				  b->call.context_base + b->layer * width, work, &work->wide);
	tnp_worker_progress(worker, start, b->call.n);
	return TNP_OK;
}

/* Targets as an estimator sees them. */
static void
fill_targets(Build *b)
{
	const TnpPrepared *p = columns_prepared(b->state);
	int			shift = b->state->order[b->estimator].shift;

	for (int64_t i = 0; i < b->call.n; i++)
		b->target[i] = b->c->max_classes > 0
			? ((int) b->y[i] - shift + b->n_classes) % b->n_classes
			: (b->y[i] - p->y_center) / p->y_scale;
}

static TnpStatus
build_estimator(Build *b, TnpError *error)
{
	int64_t		tiles = (b->call.n + TNP_TILE - 1) / TNP_TILE;
	TnpTeam    *team = b->team.team;
	TnpStatus	status;

	fill_targets(b);
	status = tnp_team_run(team, tiles, cells_item, b, error);
	if (status == TNP_OK)
		status = tnp_team_run(team, b->call.groups, group_item, b, error);
	tnp_team_next_step(team);
	if (status == TNP_OK)
		status = tnp_team_run(team, tiles, rows_item, b, error);
	tnp_team_next_step(team);
	for (b->layer = 0; status == TNP_OK && b->layer < b->c->context_blocks; b->layer++)
	{
		status = tnp_team_run(team, tiles, store_item, b, error);
		/* after the last layer nothing reads the rows' states */
		if (status == TNP_OK && b->layer < b->c->context_blocks - 1)
			status = tnp_team_run(team, tiles, attend_item, b, error);
		tnp_team_next_step(team);
	}
	return status;
}

TnpStatus
columns_encode(TnpEncoding *e, int64_t first, int64_t n, bool anew, TnpError *error)
{
	const TnpModel *model = e->model;
	const TnpEnv *env = &model->env;
	TnpRows		rows = {n, e->n_features, e->kinds, e->x, e->y, e->stats.n_classes, 0, 1};
	Build		b = {.model = model, .c = columns_config(model), .w = columns_weights(model),
					 .x = e->x, .y = e->y, .features = e->n_features,
					 .n_classes = e->stats.n_classes};
	TnpStatus	status;

	if (!anew || first != 0)
		return tnp_fail(error, TNP_BAD_ARGUMENT,
						"rows cannot be appended to a context of this model");
	if (e->n_features > TNP_MAX_ORDERED)
		return tnp_fail(error, TNP_BAD_SHAPE, "the model takes at most %d feature columns, not %d",
						TNP_MAX_ORDERED, e->n_features);
	if ((status = make_state(e, &rows, error)) != TNP_OK)
		return status;
	b.state = tnp_encoding_own(e);
	if ((status = columns_call_make(model, b.state->columns, n, &b.call, error)) != TNP_OK)
		return status;
	status = columns_team_make(&b.call, n, TNP_TILE, TNP_MAX_THREADS,
							   columns_cost(model, (double) n, (double) n), &b.team, error);
	b.cells = tnp_alloc(env, n, b.call.columns * sizeof(float));
	b.embedded = tnp_alloc(env, n, (size_t) b.call.groups * b.c->embed * sizeof(float));
	b.h = tnp_alloc(env, n, columns_width(b.c) * sizeof(float));
	b.target = tnp_alloc(env, n, sizeof(double));
	if (status == TNP_OK && (b.cells == NULL || b.embedded == NULL || b.h == NULL
							 || b.target == NULL))
		status = tnp_no_memory(error);
	if (status == TNP_OK)
		tnp_team_watch(b.team.team, n, b.state->estimators * (b.c->context_blocks + 2));
	for (; status == TNP_OK && b.estimator < b.state->estimators; b.estimator++)
		status = build_estimator(&b, error);
	if (status == TNP_OK && env->progress != NULL)
		env->progress(env->arg, n, n);
	tnp_free(env, b.cells);
	tnp_free(env, b.embedded);
	tnp_free(env, b.h);
	tnp_free(env, b.target);
	if (b.team.team != NULL)
		columns_team_free(model, &b.team);
	columns_call_free(&b.call);
	return status;
}
