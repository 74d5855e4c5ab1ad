/*
 * mean.c: the conditional neural process: a context is the mean of its rows' vectors
 * (docs/families.md, "The mean process"; Garnelo et al. 2018, eq. (2) to (4)).
 *
 * The state of a token is [d + F]: of a row its vector, of a query the mean and its features, which
 * is what the head reads. Sums are in double precision and in the order of the rows, so that they
 * do not depend on how rows were appended. The cache has one sum for every SUM_ROWS rows, slot k
 * that of the first k * SUM_ROWS, so that an encoding of the first rows is made without adding them
 * all up again. The cache of a chain has the sum after each of its rows, the context included.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/families.h"

#include <string.h>

#include "engine/file/bind.h"
#include "engine/network/encode_rows.h"
#include "engine/network/walk.h"

#define SUM_ROWS 16				/* from one sum of the cache to the next */
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

static void
mean_bind(TnpBinder *b)
{
	(void) b;
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

static void
mean_cache_shape(const TnpModel *model, TnpCacheShape *shape)
{
	*shape = (TnpCacheShape) {1, 1, model->config.width, 0, sizeof(double), 0};
}

static int64_t
mean_slots(const TnpModel *model, int64_t prefix, int64_t rows)
{
	(void) model;
	(void) prefix;
	return rows / SUM_ROWS + 1;
}

static size_t
mean_row_bytes(const TnpModel *model)
{
	return (size_t) model->config.width * sizeof(double) / SUM_ROWS;
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

/* Slot number `slot` of a cache of sums. */
static double *
mean_sum_at(const TnpKvCache *cache, int64_t slot)
{
	return (double *) cache->k[0] + slot * cache->shape.key_width;
}

static void
mean_add(int d, const float *state, double *sum)
{
	for (int f = 0; f < d; f++)
		sum[f] += state[f];
}

/* sum [d] of the first n rows: from the cache, and of the last few rows made anew. */
static TnpStatus
mean_sum(const TnpEncoding *e, TnpScratch *work, int64_t n, double *sum, TnpError *error)
{
	float		state[TNP_MAX_WIDTH + TNP_MAX_FEATURES];
	int			d = e->model->config.width;
	TnpStatus	status = TNP_OK;

	if (e->total != NULL && e->totalled == n)
	{
		memcpy(sum, e->total, d * sizeof(double));
		return TNP_OK;
	}
	memcpy(sum, mean_sum_at(&e->cache, n / SUM_ROWS), d * sizeof(double));
	for (int64_t i = n / SUM_ROWS * SUM_ROWS; status == TNP_OK && i < n; i++)
	{
		status = tnp_embed_rows(e, work, i, 1, state, error);
		mean_add(d, state, sum);
	}
	return status;
}

/* An encoding of these rows keeps their sum at hand. */
static TnpStatus
mean_settle(TnpEncoding *e, TnpError *error)
{
	const TnpModel *model = e->model;
	TnpEnv		env = e->kept ? tnp_lasting(&model->env) : model->env;
	TnpScratch	work;
	TnpStatus	status;

	if (e->total == NULL)
	{
		e->total_size = (size_t) model->config.width * sizeof(double);
		e->total = tnp_alloc(&env, 1, e->total_size);
		e->totalled = -1;
	}
	if (e->total == NULL)
		return tnp_no_memory(error);
	if (e->totalled == e->n)
		return TNP_OK;
	status = tnp_work_make(model, &e->stats, 1, &work, error);
	if (status != TNP_OK)
		return status;
	e->totalled = -1;
	status = mean_sum(e, &work, e->n, e->total, error);
	tnp_work_free(model, &work);
	if (status == TNP_OK)
		e->totalled = e->n;
	return status;
}

/* Add n rows from number `first` on, whose states are given, to sum; fill the cache's sums. */
static TnpStatus
mean_add_rows(TnpEncoding *e, int64_t first, int64_t n, const float *states, double *sum,
			  TnpError *error)
{
	int			d = e->model->config.width,
				width = mean_state_width(e->model);

	for (int64_t i = 0; i < n; i++)
	{
		if (!tnp_all_finite(d, states + i * width))
		{
			tnp_fail(error, TNP_BAD_VALUE, "the values of a row are too large for the model");
			tnp_detail(error, "row %lld", (long long) (first + i + 1));
			return TNP_BAD_VALUE;
		}
		mean_add(d, states + i * width, sum);
		if ((first + i + 1) % SUM_ROWS == 0)
			memcpy(mean_sum_at(&e->cache, (first + i + 1) / SUM_ROWS), sum, d * sizeof(double));
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
	double		sum[TNP_MAX_WIDTH];
	TnpStatus	status = states == NULL ? tnp_no_memory(error)
		: mean_sum(e, tnp_team_self(team)->work, first, sum, error);

	for (int64_t start = 0; status == TNP_OK && start < n; start += chunk)
	{
		int64_t		some = n - start < chunk ? n - start : chunk;

		status = tnp_embed_all_rows(e, team, first + start, some, states, error);
		if (status == TNP_OK)
			status = mean_add_rows(e, first + start, some, states, sum, error);
		tnp_team_next_step(team);
	}
	tnp_free(env, states);
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
	double		context[TNP_MAX_WIDTH];
	TnpStatus	status = tnp_worker_check(worker, error);

	if (status == TNP_OK)
		status = mean_sum(e, worker->work, e->n, context, error);
	for (int64_t i = 0; status == TNP_OK && i < n; i++)
	{
		const TnpToken *t = &w->tokens[i];
		int64_t		before = i < n_store ? t->slot : t->chain;
		const double *sum = before > 0 ? mean_sum_at(t->own, before - 1) : context;
		float	   *state = w->h + i * w->state_width;

		if (i < n_store)
		{
			memcpy(mean_sum_at(t->own, t->slot), sum, d * sizeof(double));
			mean_add(d, state, mean_sum_at(t->own, t->slot));
			continue;
		}
		for (int f = 0; f < d; f++)
			state[f] = e->n + before > 0 ? (float) (sum[f] / (double) (e->n + before)) : 0;
	}
	return status;
}

const TnpFamily tnp_mean_family = {
	.name = "mean",
	.keys = mean_keys,
	.check = mean_check,
	.several_targets = true,
	.bind = mean_bind,
	.head_width = mean_head_width,
	.appendable = mean_appendable,
	.cache_shape = mean_cache_shape,
	.slots = mean_slots,
	.row_bytes = mean_row_bytes,
	.settle = mean_settle,
	.state_width = mean_state_width,
	.block_sizes = mean_block_sizes,
	.embed = mean_embed,
	.embed_scratch = mean_embed_scratch,
	.encode = mean_encode,
	.walk = mean_walk,
	.cost = mean_cost,
};
