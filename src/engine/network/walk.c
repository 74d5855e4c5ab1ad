/*
 * walk.c: tokens walk through the layers, a tile at a time.
 *
 * Within a layer all tokens first store the keys and values that they make of the state entering
 * the layer; then each attends. So tokens of one call can see each other (a prefix), see only
 * earlier ones (a suffix), or see a chain of their own, by counts alone. Tokens that only ask store
 * nothing, and a tile of them can walk all layers by itself.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/network/walk.h"

#include <string.h>

#include "engine/network/block.h"
#include "engine/network/scratch.h"

/*
 * from which on few tokens' are shared out: tens of microseconds, against one or two for handing
 * them out
 */
#define KEYS_OF_FEW 512
/* of tokens and keys, whose sums the kernels do not make: about a millisecond a layer */
#define PAIRS_OF_TILE 32768
/* of tokens, keys and planes, whose sums they make, and tokens of many planes: some milliseconds */
#define PAIRS_OF_PLANES 1048576
#define TILE_OF_PLANES 24

int
tnp_walk_tile(const TnpWalk *w, int64_t item, int64_t *start)
{
	*start = w->first + item * w->tile;
	return w->end - *start < w->tile ? (int) (w->end - *start) : w->tile;
}

TnpStatus
tnp_walk_run(TnpWalk *w, int64_t first, int64_t end, TnpItem item, TnpError *error)
{
	int64_t		items = (end - first + w->tile - 1) / w->tile;
	TnpStatus	status = TNP_OK;

	w->first = first;
	w->end = end;
	if (w->team != NULL)
		return tnp_team_run(w->team, items, item, w, error);
	for (int64_t i = 0; status == TNP_OK && i < items; i++)
		status = item(w, w->worker, i, error);
	return status;
}

/* A token's key or value does not fit what holds it. */
static TnpStatus
walk_too_large(const TnpWalk *w, const TnpToken *t, TnpError *error)
{
	bool		halves = w->model->kernels->narrow != NULL;

	tnp_fail(error, TNP_BAD_VALUE, "the values of a row are too large for the model%s",
			 halves ? " with keys of 16 bits" : "");
	if (w->context == &w->encoding->cache && t->own == NULL)
	{
		const TnpEncoding *e = w->encoding;
		int64_t others = e->model->config.family->slots(e->model, e->prefix, e->prefix) - e->prefix;

		/* a sink is no row, and the rows that it has read are many */
		if (t->slot >= others)
			tnp_detail(error, "row %lld", (long long) (t->slot - others + 1));
	}
	return TNP_BAD_VALUE;
}

/* How many of n tokens, from the first on, have slots of one cache one after the other. */
static int
walk_run(const TnpToken *t, int n)
{
	int			run = 1;

	while (run < n && t[run].own == t->own && t[run].slot == t->slot + run)
		run++;
	return run;
}

/* Keys k and values v of such tokens go to their slots. */
static TnpStatus
walk_put(const TnpWalk *w, const TnpToken *t, int n, const float *k, const float *v,
		 TnpError *error)
{
	const TnpKernels *kernels = w->model->kernels;
	TnpKvCache *cache = t->own != NULL ? t->own : w->context;
	const TnpCacheShape *s = &cache->shape;

	if (n > 1 && tnp_cache_put_rows(kernels, cache, w->at, t->slot, n, k, v))
		return TNP_OK;
	/* alone, or to say which one it is */
	for (int i = 0; i < n; i++)
		if (!tnp_cache_put(kernels, cache, w->at, t[i].slot,
						   k + (size_t) i * s->heads * s->key_width,
						   v + (size_t) i * tnp_value_numbers(s)))
			return walk_too_large(w, &t[i], error);
	return TNP_OK;
}

/* A tile stores what the layer makes of its states. */
static TnpStatus
walk_store_tile(void *state, TnpWorker *worker, int64_t item, TnpError *error)
{
	TnpWalk    *w = state;
	TnpBlockWork *work = &worker->work->block;
	const TnpCacheShape *s = &w->context->shape;
	int64_t		start;
	int			n = tnp_walk_tile(w, item, &start);
	TnpStatus	status = tnp_worker_check(worker, error);

	if (status != TNP_OK)
		return status;
	w->ops->keys(w->model, w->layer, n, w->h + start * w->state_width, work);
	for (int i = 0; s->extra > 0 && w->at == 0 && i < n; i++)
	{
		const TnpToken *t = &w->tokens[start + i];
		TnpKvCache *cache = t->own != NULL ? t->own : w->context;

		memcpy(cache->extra + (size_t) t->slot * s->extra,
			   (const char *) (w->h + (start + i + 1) * w->state_width) - s->extra, s->extra);
	}
	for (int i = 0, run; status == TNP_OK && i < n; i += run)
	{
		run = walk_run(w->tokens + start + i, n - i);
		status = walk_put(w, w->tokens + start + i, run,
						  work->q + (size_t) i * s->heads * s->key_width,
						  work->att + (size_t) i * tnp_value_numbers(s), error);
	}
	return status;
}

/* How many of the n tokens from `start` on, at their end, entered as the same query. */
static int
walk_shared_rows_of(const TnpWalk *w, int64_t start, int n)
{
	int64_t		first = w->first_shared_row > start ? w->first_shared_row : start;

	return first < start + n ? (int) (start + n - first) : 0;
}

/* What n tokens from `start` on see; the arrays [n] are the caller's. */
static TnpView
walk_view_of(const TnpWalk *w, int64_t start, int n, int64_t *visible, TnpKeys *own)
{
	for (int i = 0; i < n; i++)
	{
		const TnpToken *t = &w->tokens[start + i];

		visible[i] = t->context;
		if (t->own != NULL)
			own[i] = (TnpKeys) {t->own->k[w->at], t->own->v[w->at], t->chain};
		else
			own[i] = (TnpKeys) {NULL, NULL, 0};
	}
	return (TnpView) {w->context->k[w->at], w->context->v[w->at], visible, own,
					  w->entry ? walk_shared_rows_of(w, start, n) : 0};
}

/* A tile attends and goes through the rest of the block. */
static TnpStatus
walk_attend_tile(void *state, TnpWorker *worker, int64_t item, TnpError *error)
{
	TnpWalk    *w = state;
	TnpBlockWork *work = &worker->work->block;
	int64_t		visible[TNP_TILE];
	TnpKeys		own[TNP_TILE];
	TnpView		view;
	TnpAttention attention;
	int64_t		start;
	int			n = tnp_walk_tile(w, item, &start);
	float	   *h = w->h + start * w->state_width;
	TnpStatus	status = tnp_worker_check(worker, error);

	if (status != TNP_OK)
		return status;
	view = walk_view_of(w, start, n, visible, own);
	w->ops->query(w->model, w->layer, n, h, &view, work, &attention);
	if (w->ops->attend != NULL)
		w->ops->attend(w, w->tokens + start, n, h, &view, &attention);
	else
		w->model->kernels->attend(&attention);
	w->ops->finish(w->model, w->layer, n, h, work);
	tnp_worker_progress(worker, start + n, w->end);
	return TNP_OK;
}

static TnpStatus
walk_sum_part(void *state, TnpWorker *worker, int64_t item, TnpError *error)
{
	TnpWalk	   *w = state;
	int64_t		span = item / w->parts;
	int			part = (int) (item % w->parts),
				heads = w->attention->heads;
	TnpStatus	status = tnp_worker_check(worker, error);

	if (status == TNP_OK)
		w->model->kernels->attend_span(w->attention, span, part * heads / w->parts,
									   (part + 1) * heads / w->parts,
									   w->sums + span * w->sum_floats,
									   worker->work->block.attend);
	return status;
}

/* Shared keys that the token of n which sees most sees. */
static int64_t
walk_most_keys(const TnpToken *tokens, int64_t n)
{
	int64_t		keys = 0;

	for (int64_t i = 0; i < n; i++)
		keys = tokens[i].context > keys ? tokens[i].context : keys;
	return keys;
}

static int64_t
walk_spans_of(int64_t keys)
{
	return keys < 1 ? 1 : (keys + TNP_SPAN - 1) / TNP_SPAN;
}

/* Few tokens with many keys: the team shares out the keys. */
static TnpStatus
walk_attend_split(TnpWalk *w, int64_t first, int64_t end, int64_t spans, TnpError *error)
{
	const TnpKernels *kernels = w->model->kernels;
	TnpWorker  *self = tnp_team_self(w->team);
	TnpBlockWork *work = &self->work->block;
	TnpStatus	status = tnp_worker_check(self, error);

	for (int64_t start = first; status == TNP_OK && start < end; start += w->tile)
	{
		int64_t		visible[TNP_TILE];
		TnpKeys		own[TNP_TILE];
		int			n = end - start < w->tile ? (int) (end - start) : w->tile;
		TnpView		view = walk_view_of(w, start, n, visible, own);
		TnpAttention attention;
		float	   *h = w->h + start * w->state_width;

		w->ops->query(w->model, w->layer, n, h, &view, work, &attention);
		if (w->fine_grained && tnp_team_stalled(w->team))
			kernels->attend(&attention);
		else
		{
			kernels->attend_begin(&attention);
			w->attention = &attention;
			w->sum_floats = kernels->sum_floats(attention.heads, attention.head_width,
												tnp_attention_planes(&attention), n);
			status = (w->fine_grained ? tnp_team_run_fine_grained : tnp_team_run)
				(w->team, spans * w->parts, walk_sum_part, w, error);
			if (status != TNP_OK)
				return status;
			kernels->attend_rest(&attention, spans, w->sums);
		}
		w->ops->finish(w->model, w->layer, n, h, work);
	}
	return status;
}

TnpStatus
tnp_walk_store(TnpWalk *w, const void *layer, int at, int64_t end, TnpError *error)
{
	w->layer = layer;
	w->at = at;
	return tnp_walk_run(w, 0, end, walk_store_tile, error);
}

/* So many tokens of a tile that each seeing `keys` keys makes `pairs` pairs at most. */
static int
walk_few_pairs(int tile, int64_t keys, int64_t pairs)
{
	int64_t		most = keys > 0 ? pairs / keys : tile;

	return most < 1 ? 1 : most < tile ? (int) most : tile;
}

/* Tokens [first, end) of a tile: interrupts are looked for between tiles. */
static int
walk_attend_tokens(const TnpWalk *w, int64_t first, int64_t end)
{
	int			planes = tnp_value_planes(&w->context->shape);
	int64_t		keys = walk_most_keys(w->tokens + first, end - first);

	/* sums that are not the kernels' are slow; of those behind a mark no more are made */
	if (w->ops->attend != NULL && w->context->shape.mark_slots > 0
		&& keys > w->context->shape.mark_slots)
		keys = w->context->shape.mark_slots;
	if (w->ops->attend != NULL)
		return walk_few_pairs(w->tile, keys * planes, PAIRS_OF_TILE);
	if (planes > 1)
		return walk_few_pairs(w->tile < TILE_OF_PLANES ? w->tile : TILE_OF_PLANES, keys * planes,
							  PAIRS_OF_PLANES);
	return w->tile;
}

TnpStatus
tnp_walk_attend(TnpWalk *w, const void *layer, int at, int64_t first, int64_t end, TnpError *error)
{
	int			tile = w->tile;
	TnpStatus	status;

	w->layer = layer;
	w->at = at;
	w->tile = walk_attend_tokens(w, first, end);
	if (w->sums == NULL)
		status = tnp_walk_run(w, first, end, walk_attend_tile, error);
	else
		status = walk_attend_split(
			w, first, end, walk_spans_of(walk_most_keys(w->tokens + first, end - first)), error);
	w->tile = tile;
	if (w->team != NULL && end > first)
		tnp_team_next_step(w->team);
	return status;
}

TnpStatus
tnp_walk(TnpWorker *worker, const TnpEncoding *e, int64_t n, int64_t n_store, int64_t shared_rows,
		 const TnpToken *tokens, float *h, TnpError *error)
{
	const TnpFamily *family = e->model->config.family;
	TnpWalk		w = {.worker = worker, .encoding = e, .model = e->model, .ops = &tnp_block_ops,
					 .context = (TnpKvCache *) &e->cache, .tokens = tokens, .h = h,
					 .state_width = family->state_width(e->model), .tile = worker->work->rows,
					 .first_shared_row = n - shared_rows};

	return family->walk(&w, n, n_store, error);
}

static bool
walk_shares_keys(const TnpModel *model)
{
	const TnpFamily *family = model->config.family;

	return model->kernels->attend_span != NULL && family->shares_keys != NULL
		&& family->shares_keys(&model->config);
}

bool
tnp_few_share_keys(const TnpModel *model, int64_t n, int64_t keys)
{
	return walk_shares_keys(model) && n <= TNP_FEW_ROWS && keys >= KEYS_OF_FEW;
}

/* Whether the team had better share out the keys of n tokens, `tile` at a time, than the tiles. */
static bool
walk_share_keys(const TnpTeam *team, const TnpModel *model, int64_t n, int tile, int64_t keys)
{
	int			size = tnp_team_size(team);

	if (size == 1 || !walk_shares_keys(model))
		return false;
	return (tnp_team_is_fine_grained(team) && tnp_few_share_keys(model, n, keys))
		|| ((n + tile - 1) / tile < size && keys >= 2 * size * TNP_SPAN);
}

/* As few parts of the heads as give each thread something to do. */
static int
walk_parts_of(int heads, int64_t spans, int threads)
{
	int64_t		parts = (threads + spans - 1) / spans;

	return parts < heads ? (int) parts : heads;
}

TnpWalk
tnp_walk_begin(TnpTeam *team, const TnpEncoding *e, TnpKvCache *cache, int64_t n,
			   const TnpToken *tokens, float *h)
{
	return (TnpWalk) {.team = team, .encoding = e, .model = e->model, .ops = &tnp_block_ops,
		.context = cache, .tokens = tokens, .h = h,
		.state_width = e->model->config.family->state_width(e->model),
		.tile = tnp_team_tile(team, n), .first_shared_row = n};
}

TnpStatus
tnp_walk_team(TnpTeam *team, const TnpEncoding *e, int64_t n, int64_t n_store, int64_t shared_rows,
			  const TnpToken *tokens, float *h, TnpError *error)
{
	const TnpModel *model = e->model;
	const TnpCacheShape *s = &e->cache.shape;
	TnpWalk		w = tnp_walk_begin(team, e, (TnpKvCache *) &e->cache, n, tokens, h);
	int64_t		keys = walk_most_keys(tokens, n);
	TnpStatus	status;

	w.first_shared_row = n - shared_rows;
	if (walk_share_keys(team, model, n, w.tile, keys))
	{
		if (n <= TNP_FEW_ROWS)
			w.tile = (int) n;
		w.fine_grained = keys < 2 * tnp_team_size(team) * TNP_SPAN;
		w.parts = walk_parts_of(s->heads, walk_spans_of(keys), tnp_team_size(team));
		w.sums = tnp_alloc(&model->env, walk_spans_of(keys),
						   model->kernels->sum_floats(s->heads, s->key_width,
													  tnp_value_planes(s), w.tile)
						   * sizeof(float));
		if (w.sums == NULL)
			return tnp_no_memory(error);
	}
	status = model->config.family->walk(&w, n, n_store, error);
	tnp_free(&model->env, w.sums);
	return status;
}
