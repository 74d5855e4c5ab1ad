/*
 * trunk.c: tokens walk through the layers, a tile at a time.
 *
 * Within a layer all tokens first store the keys and values that they make of the state entering
 * the layer; then each attends. So tokens of one call can see each other (a prefix), see only
 * earlier ones (a suffix), or see a chain of their own, by counts alone. Tokens that only ask store
 * nothing, and a tile of them can walk all layers by itself.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/network/trunk.h"

#include <string.h>

#include "engine/network/block.h"

/*
 * from which on few tokens' are shared out: tens of microseconds, against one or two for handing
 * them out
 */
#define KEYS_OF_FEW 512

int
tnp_cache_layers(const TnpModel *model)
{
	return model->config.layers * (model->config.architecture == TNP_TWO_STREAM ? 2 : 1);
}

/* Tokens on their way, and what is being done to them. */
typedef struct Walk
{
	TnpTeam    *team;			/* NULL: one worker alone */
	TnpWorker  *worker;
	const TnpModel *model;
	TnpKvCache   *context;
	const TnpToken *tokens;
	float	   *h;
	int			tile;			/* tokens per item */
	int64_t		first_shared_row;	/* the tokens from this on enter the stack as the same query */

	const TnpLayer *layer;
	int			at;				/* cache layer */
	bool		entry;			/* queries have not been through a layer yet */
	int64_t		first,			/* the tokens that this step is about */
				end;

	const TnpAttention *attention;	/* of the tile whose spans are summed up */
	float	   *sums;			/* [spans]; NULL: tiles are shared out, not keys */
	size_t		sum_floats;
	int			parts;			/* of the heads, into which a span is shared out */
	bool		fine_grained;			/* a share takes microseconds */
} Walk;

/* Number of tokens of item number `item`, and the first. */
static int
tile_of(const Walk *w, int64_t item, int64_t *start)
{
	*start = w->first + item * w->tile;
	return w->end - *start < w->tile ? (int) (w->end - *start) : w->tile;
}

/* Do a step to tokens [first, end), tile by tile. */
static TnpStatus
run(Walk *w, int64_t first, int64_t end, TnpItem item, TnpError *error)
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
too_large(const Walk *w, const TnpToken *t, TnpError *error)
{
	bool		halves = w->model->kernels->narrow != NULL;

	tnp_fail(error, TNP_BAD_VALUE, "the values of a row are too large for the model%s",
			 halves ? " with keys of 16 bits" : "");
	if (t->own == NULL)
		tnp_detail(error, "row %lld", (long long) t->slot - w->model->config.sinks + 1);
	return TNP_BAD_VALUE;
}

/* A tile stores what the layer makes of its states. */
static TnpStatus
store_tile(void *state, TnpWorker *worker, int64_t item, TnpError *error)
{
	Walk	   *w = state;
	TnpBlockWork *work = &worker->work.block;
	int			d = w->model->config.width;
	int64_t		start;
	int			n = tile_of(w, item, &start);
	TnpStatus	status = tnp_worker_check(worker, error);

	if (status != TNP_OK)
		return status;
	tnp_block_keys(w->model, w->layer, w->model->config.post_norm, n, w->h + start * d, work);
	for (int i = 0; i < n; i++)
	{
		const TnpToken *t = &w->tokens[start + i];

		if (!tnp_cache_put(w->model->kernels, t->own != NULL ? t->own : w->context, w->at, t->slot,
						   work->q + (size_t) i * d, work->att + (size_t) i * d))
			return too_large(w, t, error);
	}
	return TNP_OK;
}

/* How many of the n tokens from `start` on, at their end, entered as the same query. */
static int
shared_rows_of(const Walk *w, int64_t start, int n)
{
	int64_t		first = w->first_shared_row > start ? w->first_shared_row : start;

	return first < start + n ? (int) (start + n - first) : 0;
}

/* What n tokens from `start` on see; the arrays [n] are the caller's. */
static TnpView
view_of(const Walk *w, int64_t start, int n, int64_t *visible, TnpKeys *own)
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
					  w->entry ? shared_rows_of(w, start, n) : 0};
}

/* A tile attends and goes through the rest of the block. */
static TnpStatus
attend_tile(void *state, TnpWorker *worker, int64_t item, TnpError *error)
{
	Walk	   *w = state;
	const TnpConfig *c = &w->model->config;
	int64_t		visible[TNP_TILE];
	TnpKeys		own[TNP_TILE];
	TnpView		view;
	int64_t		start;
	int			n = tile_of(w, item, &start);
	TnpStatus	status = tnp_worker_check(worker, error);

	if (status != TNP_OK)
		return status;
	view = view_of(w, start, n, visible, own);
	tnp_block(w->model, w->layer, c->heads, c->post_norm, n, w->h + start * c->width, &view,
			  &worker->work.block);
	tnp_worker_progress(worker, start + n, w->end);
	return TNP_OK;
}

static TnpStatus
sum_part(void *state, TnpWorker *worker, int64_t item, TnpError *error)
{
	Walk	   *w = state;
	int64_t		span = item / w->parts;
	int			part = (int) (item % w->parts),
				heads = w->attention->heads;
	TnpStatus	status = tnp_worker_check(worker, error);

	if (status == TNP_OK)
		w->model->kernels->attend_span(w->attention, span, part * heads / w->parts,
									   (part + 1) * heads / w->parts,
									   w->sums + span * w->sum_floats,
									   worker->work.block.attend);
	return status;
}

/* Shared keys that the token of n which sees most sees. */
static int64_t
most_keys(const TnpToken *tokens, int64_t n)
{
	int64_t		keys = 0;

	for (int64_t i = 0; i < n; i++)
		keys = tokens[i].context > keys ? tokens[i].context : keys;
	return keys;
}

static int64_t
spans_of(int64_t keys)
{
	return keys < 1 ? 1 : (keys + TNP_SPAN - 1) / TNP_SPAN;
}

/* Few tokens with many keys: the team shares out the keys. */
static TnpStatus
attend_split(Walk *w, int64_t first, int64_t end, int64_t spans, TnpError *error)
{
	const TnpConfig *c = &w->model->config;
	const TnpKernels *kernels = w->model->kernels;
	TnpBlockWork *work = &tnp_team_self(w->team)->work.block;
	TnpStatus	status = tnp_worker_check(tnp_team_self(w->team), error);

	for (int64_t start = first; status == TNP_OK && start < end; start += w->tile)
	{
		int64_t		visible[TNP_TILE];
		TnpKeys		own[TNP_TILE];
		int			n = end - start < w->tile ? (int) (end - start) : w->tile;
		TnpView		view = view_of(w, start, n, visible, own);
		TnpAttention attention;
		float	   *h = w->h + start * c->width;

		tnp_block_query(w->model, w->layer, c->heads, c->post_norm, n, h, &view, work, &attention);
		if (w->fine_grained && tnp_team_stalled(w->team))
			kernels->attend(&attention);
		else
		{
			kernels->attend_begin(&attention);
			w->attention = &attention;
			w->sum_floats = kernels->sum_floats(attention.heads, attention.head_width, n);
			status = (w->fine_grained ? tnp_team_run_fine_grained : tnp_team_run) (w->team,
				spans * w->parts, sum_part, w, error);
			if (status != TNP_OK)
				return status;
			kernels->attend_rest(&attention, spans, w->sums);
		}
		tnp_block_finish(w->model, w->layer, c->post_norm, n, h, work);
	}
	return status;
}

static TnpStatus
store(Walk *w, const TnpLayer *layer, int at, int64_t end, TnpError *error)
{
	w->layer = layer;
	w->at = at;
	return run(w, 0, end, store_tile, error);
}

static TnpStatus
attend(Walk *w, const TnpLayer *layer, int at, int64_t first, int64_t end, TnpError *error)
{
	TnpStatus	status;

	w->layer = layer;
	w->at = at;
	status = w->sums == NULL ? run(w, first, end, attend_tile, error)
		: attend_split(w, first, end, spans_of(most_keys(w->tokens + first, end - first)), error);
	if (w->team != NULL && end > first)
		tnp_team_next_step(w->team);
	return status;
}

/* One set of weights for all tokens; keys come from the state that enters the layer. */
static TnpStatus
walk_packed(Walk *w, int64_t n, int64_t n_store, TnpError *error)
{
	const TnpModel *model = w->model;
	TnpStatus	status = TNP_OK;

	for (int l = 0; status == TNP_OK && l < model->config.layers; l++)
	{
		/* after the last layer nobody reads the states of tokens that only store */
		int64_t		first = l == model->config.layers - 1 ? n_store : 0;

		w->entry = l == 0;
		if (n_store > 0)
			status = store(w, &model->layers[l], l, n_store, error);
		if (status == TNP_OK)
			status = attend(w, &model->layers[l], l, first, n, error);
	}
	return status;
}

/*
 * Separate weights for rows and queries; queries read the row states that leave the layer. Cache
 * layers: self 0 … L-1, then cross.
 */
static TnpStatus
walk_two_stream(Walk *w, int64_t n, int64_t n_store, TnpError *error)
{
	const TnpModel *model = w->model;
	int			layers = model->config.layers;
	TnpStatus	status = TNP_OK;

	for (int l = 0; status == TNP_OK && l < layers; l++)
	{
		w->entry = l == 0;
		if (n_store > 0)
		{
			status = store(w, &model->layers[l], l, n_store, error);
			if (status == TNP_OK)
				status = attend(w, &model->layers[l], l, 0, n_store, error);
			if (status == TNP_OK)
				status = store(w, &model->cross[l], layers + l, n_store, error);
		}
		if (status == TNP_OK)
			status = attend(w, &model->cross[l], layers + l, n_store, n, error);
	}
	return status;
}

static TnpStatus
walk(Walk *w, int64_t n, int64_t n_store, TnpError *error)
{
	return w->model->config.architecture == TNP_TWO_STREAM ? walk_two_stream(w, n, n_store, error)
		: walk_packed(w, n, n_store, error);
}

TnpStatus
tnp_walk(TnpWorker *worker, const TnpModel *model, TnpKvCache *context, int64_t n, int64_t n_store,
		 int64_t shared_rows, const TnpToken *tokens, float *h,
		 TnpError *error)
{
	Walk		w = {.worker = worker,.model = model,.context = context,.tokens = tokens,.h = h,
					 .tile = worker->work.rows,.first_shared_row = n - shared_rows};

	return walk(&w, n, n_store, error);
}

bool
tnp_few_share_keys(const TnpModel *model, int64_t n, int64_t keys)
{
	return n <= TNP_FEW_ROWS && keys >= KEYS_OF_FEW && model->kernels->attend_span != NULL;
}

/* Whether the team had better share out the keys of n tokens, `tile` at a time, than the tiles. */
static bool
share_keys(const TnpTeam *team, const TnpModel *model, int64_t n, int tile, int64_t keys)
{
	int			size = tnp_team_size(team);

	if (size == 1)
		return false;
	return (tnp_team_is_fine_grained(team) && tnp_few_share_keys(model, n, keys))
		|| (model->kernels->attend_span != NULL && (n + tile - 1) / tile < size
			&& keys >= 2 * size * TNP_SPAN);
}

/* As few parts of the heads as give each thread something to do. */
static int
parts_of(int heads, int64_t spans, int threads)
{
	int64_t		parts = (threads + spans - 1) / spans;

	return parts < heads ? (int) parts : heads;
}

TnpStatus
tnp_trunk(TnpTeam *team, const TnpModel *model, TnpKvCache *context, int64_t n, int64_t n_store,
		  int64_t shared_rows, const TnpToken *tokens, float *h,
		  TnpError *error)
{
	const TnpConfig *c = &model->config;
	Walk		w = {.team = team,.model = model,.context = context,.tokens = tokens,.h = h,
					 .tile = tnp_team_tile(team, n),.first_shared_row = n - shared_rows};
	int64_t		keys = most_keys(tokens, n);
	TnpStatus	status;

	if (share_keys(team, model, n, w.tile, keys))
	{
		if (n <= TNP_FEW_ROWS)
			w.tile = (int) n;
		w.fine_grained = keys < 2 * tnp_team_size(team) * TNP_SPAN;
		w.parts = parts_of(c->heads, spans_of(keys), tnp_team_size(team));
		w.sums = tnp_alloc(&model->env, spans_of(keys),
						   model->kernels->sum_floats(c->heads, c->width / c->heads,
													  w.tile) * sizeof(float));
		if (w.sums == NULL)
			return tnp_no_memory(error);
	}
	status = walk(&w, n, n_store, error);
	tnp_free(&model->env, w.sums);
	return status;
}
