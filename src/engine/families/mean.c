/*
 * mean.c: the conditional neural process: a context is the mean of its rows' vectors
 * (docs/families.md, "The mean process"; Garnelo et al. 2018, eq. (2) to (4)).
 *
 * The state of a token is [d + F]: of a row its vector, of a query the mean and its features, which
 * is what the head reads. Sums are exact (mean.h), so that they do not depend on how rows came in.
 * The cache has marks, sums of the first so many rows, so that an encoding of the first rows is
 * made without adding them all up again. The cache of a chain has the sum after each of its rows,
 * the context included.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/families.h"

#include <string.h>

#include "engine/families/mean.h"
#include "engine/file/bind.h"
#include "engine/network/walk.h"

#define CHUNK_ROWS 4096			/* vectors that are in memory at a time */

static const TnpKey mean_keys[] = {TNP_END};

static TnpStatus
mean_check(const TnpConfig *c, TnpError *error)
{
	const TnpRule rules[] = {
		{c->context == TNP_FULL,
		 "architecture \"mean\" needs context \"causal\" or \"prefix-causal\"", NULL, 0, NULL, 0},
		{c->embedder != TNP_CONCAT || c->concat_flag,
		 "architecture \"mean\" needs embedder.kind \"concat\" without a flag", NULL, 0, NULL, 0},
	};

	return tnp_check_rules(sizeof(rules) / sizeof(rules[0]), rules, error);
}

static int
mean_head_width(const TnpConfig *c)
{
	return c->width + c->n_features;
}

static bool
mean_appendable(const TnpConfig *c)
{
	(void) c;
	return true;
}

static int
mean_state_width(const TnpModel *model)
{
	return mean_head_width(&model->config);
}

static void
mean_block_sizes(const TnpModel *model, TnpBlockSizes *sizes)
{
	(void) model;
	*sizes = (TnpBlockSizes) {0};
}

/* A number of a slot has two words: that of the rows of a mark, and the sums. */
static void
mean_cache_shape(const TnpModel *model, TnpCacheShape *shape)
{
	*shape = (TnpCacheShape) {1, 1, 1 + model->config.width, 0, 2 * sizeof(int64_t), .planes = 1};
}

/* Two marks have more than MEAN_ROWS rows between them (mean_take_over). */
static int64_t
mean_slots(const TnpModel *model, int64_t prefix, int64_t rows)
{
	(void) model;
	(void) prefix;
	return 2 * rows / MEAN_ROWS + 2;
}

static size_t
mean_row_bytes(const TnpModel *model)
{
	return (1 + (size_t) model->config.width) * 2 * sizeof(int64_t) * 2 / MEAN_ROWS;
}

static double
mean_cost(const TnpModel *model, double rows, double keys)
{
	(void) keys;
	return rows * (double) model->info.n_parameters;
}

static int
mean_embed_scratch(const TnpModel *model)
{
	return tnp_embed_scratch(model) + model->config.width;
}

static void
mean_embed(const TnpModel *model, int n, const float *const *row, const float *y, TnpRole role,
		   const int *position, float *scratch, float *states)
{
	int			d = model->config.width,
				features = model->config.n_features;

	if (y != NULL)
		tnp_embed(model, n, row, y, role, position, scratch + (size_t) n * d, scratch);
	for (int i = 0; i < n; i++)
	{
		float	   *state = states + (size_t) i * (d + features);

		if (y != NULL)
			memcpy(state, scratch + (size_t) i * d, d * sizeof(float));
		else
			memset(state, 0, d * sizeof(float));
		memcpy(state + d, row[i], features * sizeof(float));
	}
}

/* Add n rows from number `first` on, whose states are given, to sum; set the cache's marks. */
static TnpStatus
mean_add_rows(TnpEncoding *e, int64_t first, int64_t n, const float *states, MeanMarker *marker,
			  int64_t *sum, TnpError *error)
{
	int			d = e->model->config.width,
				width = mean_state_width(e->model);

	for (int64_t i = 0; i < n; i++)
	{
		if (!mean_add(d, states + i * width, sum))
			return mean_refuse_row(first + i, error);
		mean_marker_pass(marker, first + i + 1, sum);
	}
	return TNP_OK;
}

/* Rows are embedded by all threads and added up by one. */
static TnpStatus
mean_encode_chunks(TnpEncoding *e, TnpTeam *team, int64_t first, int64_t n, TnpError *error)
{
	const TnpEnv *env = &e->model->env;
	int64_t		chunk = n < CHUNK_ROWS ? n : CHUNK_ROWS;
	float	   *states = tnp_alloc(env, chunk, mean_state_width(e->model) * sizeof(float));
	int64_t		sum[2 * TNP_MAX_WIDTH];
	MeanMarker	marker = mean_marker_at(&e->cache, first);
	TnpScratch *work = tnp_team_self(team)->work;
	TnpStatus	status = states == NULL ? tnp_no_memory(error)
		: mean_sum_of(e, work, work->rows, work->h, first, sum, error);

	for (int64_t start = 0; status == TNP_OK && start < n; start += chunk)
	{
		int64_t		some = n - start < chunk ? n - start : chunk;

		status = tnp_embed_all_rows(e, team, first + start, some, states, error);
		if (status == TNP_OK)
			status = mean_add_rows(e, first + start, some, states, &marker, sum, error);
		tnp_team_next_step(team);
	}
	tnp_free(env, states);
	if (status == TNP_OK)
		status = mean_set_total(e, first + n, sum, error);
	return status;
}

static TnpStatus
mean_encode(TnpEncoding *e, int64_t first, int64_t n, bool anew, TnpError *error)
{
	const TnpModel *model = e->model;
	TnpTeam    *team;
	TnpStatus	status;

	(void) anew;
	if (n == 0)
		return TNP_OK;
	if (n > MEAN_MOST_ROWS - first)
		return tnp_fail(error, TNP_BAD_VALUE, "too many rows for the sums of a mean");
	status = tnp_team_with_scratch(model, &e->stats, TNP_TILE, tnp_team_most(n),
								   tnp_cost(model, (double) n, 0), &team, error);
	if (status != TNP_OK)
		return status;
	tnp_team_watch(team, n, (int) ((n + CHUNK_ROWS - 1) / CHUNK_ROWS));
	status = mean_encode_chunks(e, team, first, n, error);
	if (status == TNP_OK && model->env.progress != NULL)
		model->env.progress(model->env.arg, n, n);
	tnp_team_free(team);
	return status;
}

/* A chain row adds its vector to the sum before it; a query reads the mean of what it sees. */
static TnpStatus
mean_walk(TnpWalk *w, int64_t n, int64_t n_store, TnpError *error)
{
	const TnpEncoding *e = w->encoding;
	TnpWorker  *worker = w->team != NULL ? tnp_team_self(w->team) : w->worker;
	int			d = w->model->config.width;
	int64_t		context[2 * TNP_MAX_WIDTH];
	float		mean[TNP_MAX_WIDTH],
				one[TNP_MAX_WIDTH + TNP_MAX_FEATURES];
	TnpStatus	status = tnp_worker_check(worker, error);

	if (status == TNP_OK && n_store > 0)
		status = mean_sum_of(e, worker->work, 1, one, e->n, context, error);
	if (status == TNP_OK && n > n_store)
		status = mean_of_rows(e, worker->work, one, mean, error);
	for (int64_t i = 0; status == TNP_OK && i < n; i++)
	{
		const TnpToken *t = &w->tokens[i];
		int64_t		before = i < n_store ? t->slot : t->chain;
		const int64_t *sum = before > 0 ? mean_slot(t->own, before - 1) : context;
		float	   *state = w->h + i * w->state_width;

		if (i < n_store)
		{
			memcpy(mean_slot(t->own, t->slot), sum, mean_bytes(d));
			if (!mean_add(d, state, mean_slot(t->own, t->slot)))
				status = mean_refuse_row(e->n + t->slot, error);
		}
		else if (before > 0)
			mean_divide(d, sum, e->n + before, state);
		else
			memcpy(state, mean, d * sizeof(float));
	}
	return status;
}

const TnpFamily tnp_mean_family = {
	.name = "mean",
	.keys = mean_keys,
	.check = mean_check,
	.several_targets = true,
	.bind = mean_bind_number,
	.head_width = mean_head_width,
	.appendable = mean_appendable,
	.sums = &mean_sums_ops,
	.cache_shape = mean_cache_shape,
	.slots = mean_slots,
	.row_bytes = mean_row_bytes,
	.settle = mean_settle,
	.state_width = mean_state_width,
	.block_sizes = mean_block_sizes,
	.embed = mean_embed,
	.embed_scratch = mean_embed_scratch,
	.encode = mean_encode,
	.take_over = mean_take_over,
	.walk = mean_walk,
	.cost = mean_cost,
};
