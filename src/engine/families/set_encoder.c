/*
 * set_encoder.c: a packed stack over the tokens of a set encoder (docs/families.md, "The set
 * encoder").
 *
 * On their way tokens are [h (d), scaled cells (max_features), 1 if h has the cells' features].
 * The walk makes features of the cells, which needs the context, and adds them to h; from there on
 * it is the packed stack's. The rows of a chain, which many tokens are made of, get their features
 * before (settle_rows): their halves are [scaled cells, features (d), 1 if these are there].
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/set_encoder.h"

#include <string.h>

#include "engine/families/packed.h"
#include "engine/families/stack.h"
#include "engine/features/scale.h"

#define TYPICAL_COLUMNS 16		/* of a table, where its width is not known */

/* ---- sizes ----------------------------------------------------------------------------------- */

static int
set_state_width(const TnpModel *model)
{
	return model->config.width + model->config.max_features + 1;
}

static int
set_place_width(const TnpModel *model)
{
	return model->config.width + 1;
}

static void
set_place(const TnpModel *model, const struct TnpStats *stats, const double *x, float *out)
{
	(void) stats;
	(void) x;
	memset(out, 0, set_place_width(model) * sizeof(float));
}

static void
set_cache_shape(const TnpModel *model, TnpCacheShape *shape)
{
	tnp_stack_shape(model, model->config.layers, shape);
}

static size_t
set_row_bytes(const TnpModel *model)
{
	return tnp_stack_row_bytes(model, model->config.layers);
}

static double
set_stage_cost(int c, const TnpStageConfig *stage, double keys)
{
	return stage->layers * (4.0 * c * c + 2.0 * c * stage->feedforward + 2.0 * c * keys);
}

static double
set_cost(const TnpModel *model, double rows, double keys)
{
	const TnpConfig *c = &model->config;
	const TnpSetConfig *s = &c->set;
	int			columns = c->max_features < TYPICAL_COLUMNS ? c->max_features : TYPICAL_COLUMNS,
				tokens = s->readouts + columns;

	return tnp_stack_cost(model, c->layers, rows, keys)
		+ rows * columns * set_stage_cost(s->width, &s->columns, s->inducing)
		+ rows * tokens * set_stage_cost(s->width, &s->rows, tokens);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static int
set_embed_scratch(const TnpModel *model)
{
	return tnp_embed_scratch(model) + model->config.width;
}

static void
set_add(int n, const float *row, float *to)
{
	for (int i = 0; i < n; i++)
		to[i] += row[i];
}

/* E_y, role and position, and features that are there; behind them the cells. */
static void
set_embed(const TnpModel *model, int n, const float *const *row, const float *y, TnpRole role,
		  const int *position, float *scratch, float *states)
{
	int			d = model->config.width,
				cells = model->config.max_features;

	if (y != NULL)
		tnp_embed_targets(model, n, y, scratch + (size_t) n * d, scratch);
	else
		memset(scratch, 0, (size_t) n * d * sizeof(float));
	for (int i = 0; i < n; i++)
	{
		float	   *state = states + (size_t) i * set_state_width(model);
		const float *features = row[i] + cells;

		memcpy(state, scratch + (size_t) i * d, d * sizeof(float));
		if (model->role != NULL)
			set_add(d, model->role + (size_t) role * d, state);
		if (model->position != NULL && position != NULL && position[i] >= 0)
			set_add(d, model->position + (size_t) position[i] * d, state);
		memcpy(state + d, row[i], cells * sizeof(float));
		state[d + cells] = features[d];
		if (features[d] != 0)
			set_add(d, features, state);
	}
}

/* ---- the walk -------------------------------------------------------------------------------- */

/* Features are no numbers, or too large for attention. */
static TnpStatus
set_too_large(const TnpModel *model, TnpError *error)
{
	return tnp_fail(error, TNP_BAD_VALUE, "the values of a row are too large for the model%s",
					model->kernels->narrow != NULL ? " with keys of 16 bits" : "");
}

static TnpStatus
set_token_too_large(const TnpWalk *w, const TnpToken *t, TnpError *error)
{
	set_too_large(w->model, error);
	/* a sink is no row, and the rows that it has read are many */
	if (t->own == NULL && t->slot >= w->model->config.sinks)
		tnp_detail(error, "row %lld", (long long) (t->slot - w->model->config.sinks + 1));
	return TNP_BAD_VALUE;
}

static bool
set_is_sink(const TnpWalk *w, const TnpToken *t)
{
	return t->own == NULL && t->slot >= 0 && t->slot < w->model->config.sinks;
}

/*
 * Add features to tokens [first, end) of the walk, or to the first of them, whose number is the
 * answer: those of at most SET_ROWS rows. Rows that are equal and stand together, as those of many
 * draws do, go through the stages once.
 */
static int
set_add_features(TnpWalk *w, TnpTokenWork *work, int64_t first, int64_t end, TnpError *error,
				 TnpStatus *status)
{
	const TnpConfig *c = &w->model->config;
	int			d = c->width,
				some = 0,
				n = 0;
	const float *cells[SET_ROWS];
	signed char of[TNP_TILE];
	float	   *features = work->scratch + (size_t) TNP_TILE * (c->set.width + 1);

	for (; first + n < end; n++)
	{
		const float *own = w->h + (first + n) * w->state_width + d;
		bool		again = some > 0 && memcmp(own, cells[some - 1],
											   c->max_features * sizeof(float)) == 0;

		of[n] = -1;
		if (own[c->max_features] != 0 || set_is_sink(w, &w->tokens[first + n]))
			continue;
		if (!again && some == SET_ROWS)
			break;
		if (!again)
			cells[some++] = own;
		of[n] = (signed char) (some - 1);
	}
	if (some > 0)
		set_features(w->encoding, work, some, cells, features);
	for (int i = 0; i < n; i++)
	{
		const float *mine = features + of[i] * d;

		if (of[i] < 0)
			continue;
		if (!tnp_all_finite(d, mine))
		{
			*status = set_token_too_large(w, &w->tokens[first + i], error);
			return n;
		}
		set_add(d, mine, w->h + (first + i) * w->state_width);
	}
	return n;
}

static TnpStatus
set_features_item(void *state, TnpWorker *worker, int64_t item, TnpError *error)
{
	TnpWalk    *w = state;
	int64_t		start;
	int			n = tnp_walk_tile(w, item, &start);
	TnpStatus	status = TNP_OK;

	for (int done = 0; status == TNP_OK && done < n;)
	{
		status = tnp_worker_check(worker, error);
		if (status == TNP_OK)
			done += set_add_features(w, &worker->work->tokens, start + done, start + n, error,
									 &status);
	}
	tnp_worker_progress(worker, start + n, w->end);
	return status;
}

static TnpStatus
set_walk(TnpWalk *w, int64_t n, int64_t n_store, TnpError *error)
{
	int			d = w->model->config.width,
				wide = w->state_width;
	TnpStatus	status = tnp_walk_run(w, 0, n, set_features_item, error);

	if (w->team != NULL)
		tnp_team_next_step(w->team);
	if (status != TNP_OK)
		return status;
	/* the layers see vectors side by side, the head finds queries where they were */
	for (int64_t i = 1; i < n; i++)
		memmove(w->h + i * d, w->h + i * wide, d * sizeof(float));
	w->state_width = d;
	status = tnp_stack_walk(w, w->model->layers, sizeof(TnpLayer), n, n_store, error);
	w->state_width = wide;
	for (int64_t i = n - 1; i > 0 && i >= n_store; i--)
		memmove(w->h + i * wide, w->h + i * d, d * sizeof(float));
	return status;
}

/* ---- rows of a chain ------------------------------------------------------------------------- */

typedef struct SetRows
{
	const TnpEncoding *e;
	TnpFeatureEmbedding *half;
	const int64_t *place;		/* [n] */
	int64_t		n;
} SetRows;

/* Features of SET_ROWS rows, into their halves. */
static TnpStatus
set_rows_item(void *state, TnpWorker *worker, int64_t item, TnpError *error)
{
	const SetRows *s = state;
	const TnpConfig *c = &s->e->model->config;
	TnpTokenWork *work = &worker->work->tokens;
	float	   *features = work->scratch + (size_t) TNP_TILE * (c->set.width + 1),
			   *row[SET_ROWS];
	int64_t		first = item * SET_ROWS;
	int			n = s->n - first < SET_ROWS ? (int) (s->n - first) : SET_ROWS;
	TnpStatus	status = tnp_worker_check(worker, error);

	for (int i = 0; i < n; i++)
		row[i] = s->half->values + s->place[first + i] * s->half->width;
	if (status == TNP_OK)
		set_features(s->e, work, n, (const float *const *) row, features);
	for (int i = 0; status == TNP_OK && i < n; i++)
	{
		const float *mine = features + (size_t) i * c->width;

		if (!tnp_all_finite(c->width, mine))
			return set_too_large(s->e->model, error);
		memcpy(row[i] + c->max_features, mine, c->width * sizeof(float));
		row[i][c->max_features + c->width] = 1;
	}
	return status;
}

static TnpStatus
set_settle_rows(const TnpEncoding *e, TnpTeam *team, TnpFeatureEmbedding *half,
				const int64_t *place, int64_t n, TnpError *error)
{
	SetRows		s = {e, half, place, n};

	return tnp_team_run(team, (n + SET_ROWS - 1) / SET_ROWS, set_rows_item, &s, error);
}

const TnpFamily tnp_set_family = {
	.name = "packed",
	.variant = "a set encoder",
	.embedders = 1 << TNP_SET,
	.check = set_check,
	.several_targets = true,
	.bind = set_bind,
	.head_width = tnp_stack_head_width,
	.appendable = tnp_stack_appendable,
	.cache_shape = set_cache_shape,
	.slots = tnp_stack_slots,
	.row_bytes = set_row_bytes,
	.state_width = set_state_width,
	.block_sizes = tnp_stack_block_sizes,
	.place_width = set_place_width,
	.place = set_place,
	.settle_rows = set_settle_rows,
	.embed = set_embed,
	.embed_scratch = set_embed_scratch,
	.token_work = set_work_make,
	.begin = set_begin,
	.steps = 2,
	.row_token = tnp_stack_row_token,
	.encode = tnp_encode_rows,
	.walk = set_walk,
	.shares_keys = tnp_stack_shares_keys,
	.cost = set_cost,
};
