/*
 * joint.c: the joint Gaussian of the queries of one question.
 *
 * The states of the M queries go through blocks in which they see each other; then a projector
 * makes W [M, D, rank] of them. y [M, D] ~ N(mean, C C'), C the lower triangle of W W' with
 * `jitter` added to its diagonal, in double precision. C depends on the order of the queries, W
 * does not.
 * The variables of a question are numbered along its rows, the targets of a row side by side.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/inference/joint.h"

#include <math.h>
#include <string.h>

#include "engine/base/cholesky.h"
#include "engine/base/normal.h"
#include "engine/base/random.h"
#include "engine/inference/permutation.h"

/* What the head says of the queries, in the network's units, and what that takes. */
typedef struct Joint
{
	const TnpEncoding *e;
	int64_t		n;				/* M */
	int			targets;		/* D */
	int64_t		size;			/* M D, the variables */
	TnpTeam    *team;
	TnpFeatureEmbedding half;
	TnpKvCache	keys;			/* of the queries, in one block */
	TnpToken   *tokens;			/* [M] */
	float	   *h,				/* [M, d] */
			   *raw;			/* [M, D rank] */
	double	   *mean,			/* [size] */
			   *w;				/* [size, rank] */
	double	   *row,			/* [size] a row of C */
			   *factor,			/* [size, size] C itself, where it is wanted */
			   *white,			/* [size] */
			   *steps;			/* [M] log densities of rows, in their order */
	int64_t    *place;			/* [M] the rows in their order */
} Joint;

static Joint
joint_of(const TnpEncoding *e, int64_t rows)
{
	int			targets = e->model->config.n_targets;

	return (Joint) {.e = e, .n = rows, .targets = targets, .size = rows * targets};
}

/* Which target of the question variable i is in the order of j->place. */
static int64_t
joint_variable(const Joint *j, int64_t i)
{
	return j->place[i / j->targets] * j->targets + i % j->targets;
}

static void
joint_free(Joint *j)
{
	const TnpEnv *env = &j->e->model->env;

	tnp_feature_embedding_free(env, &j->half);
	tnp_cache_free(env, &j->keys);
	tnp_free(env, j->tokens);
	tnp_free(env, j->h);
	tnp_free(env, j->raw);
	tnp_free(env, j->mean);
	tnp_free(env, j->w);
	tnp_free(env, j->row);
	tnp_free(env, j->factor);
	tnp_free(env, j->white);
	tnp_free(env, j->steps);
	tnp_free(env, j->place);
	tnp_team_free(j->team);
}

/* j is that of joint_of, and is freed by the caller also after a failure. */
static TnpStatus
joint_alloc(Joint *j, TnpError *error)
{
	const TnpModel *model = j->e->model;
	const TnpEnv *env = &model->env;
	const TnpConfig *c = &model->config;
	TnpCacheShape shape = {1, c->heads, c->width / c->heads, c->width / c->heads,
						   model->kernels->number, .planes = 1};

	j->tokens = tnp_alloc(env, j->n, sizeof(TnpToken));
	j->h = tnp_alloc(env, j->n, c->width * sizeof(float));
	j->raw = tnp_alloc(env, j->size, c->head_rank * sizeof(float));
	j->mean = tnp_alloc(env, j->size, sizeof(double));
	j->w = tnp_alloc(env, j->size, c->head_rank * sizeof(double));
	j->row = tnp_alloc(env, j->size, sizeof(double));
	j->white = tnp_alloc(env, j->size, sizeof(double));
	j->steps = tnp_alloc(env, j->n, sizeof(double));
	j->place = tnp_alloc(env, j->n, sizeof(int64_t));
	if (j->tokens == NULL || j->h == NULL || j->raw == NULL || j->mean == NULL || j->w == NULL
		|| j->row == NULL || j->white == NULL || j->steps == NULL || j->place == NULL)
		return tnp_no_memory(error);
	return tnp_cache_make(env, &shape, TNP_BLOCK, j->n, &j->keys, error);
}

/* States of the queries after the layers of the stack. */
static TnpStatus
joint_states(Joint *j, const TnpRows *queries, TnpError *error)
{
	const TnpEncoding *e = j->e;
	const TnpModel *model = e->model;
	float	   *scratch = tnp_team_self(j->team)->work->scratch;
	TnpStatus	status = tnp_feature_embedding_build(model, &e->stats, queries, j->team, &j->half,
													 error);

	for (int64_t start = 0; status == TNP_OK && start < j->n; start += TNP_TILE)
	{
		int			tile = j->n - start < TNP_TILE ? (int) (j->n - start) : TNP_TILE;
		const float *row[TNP_TILE];

		for (int i = 0; i < tile; i++)
			row[i] = j->half.values + (start + i) * j->half.width;
		model->config.family->embed(model, tile, row, NULL, TNP_ROLE_QUERY, NULL, scratch,
									j->h + start * model->config.width);
	}
	for (int64_t i = 0; i < j->n; i++)
		j->tokens[i] = (TnpToken) {tnp_encoding_slots(e), 0, NULL, -1};
	return status == TNP_OK
		? tnp_walk_team(j->team, e, j->n, 0, 0, j->tokens, j->h, error) : status;
}

/* Numbers [M, out] of an MLP as doubles. */
static void
joint_project(Joint *j, const TnpMlp *mlp, int out, double *to)
{
	const TnpModel *model = j->e->model;
	float	   *scratch = tnp_team_self(j->team)->work->scratch;
	int			d = model->config.width;

	for (int64_t start = 0; start < j->n; start += TNP_TILE)
	{
		int			tile = j->n - start < TNP_TILE ? (int) (j->n - start) : TNP_TILE;

		tnp_mlp(model, mlp, tile, j->h + start * d, scratch, j->raw + start * out);
	}
	for (int64_t i = 0; i < j->n * out; i++)
		to[i] = j->raw[i];
}

/* Means, then the blocks in which the queries see each other, then W. */
static TnpStatus
joint_head(Joint *j, TnpError *error)
{
	const TnpModel *model = j->e->model;
	const TnpConfig *c = &model->config;
	TnpWalk		walk = tnp_walk_begin(j->team, j->e, &j->keys, j->n, j->tokens, j->h);
	TnpStatus	status = TNP_OK;

	if (!tnp_all_finite((size_t) j->n * c->width, j->h))
		return tnp_fail(error, TNP_BAD_VALUE,
						"the model's prediction is not finite for these values");
	for (int64_t start = 0; c->final_norm && start < j->n; start += TNP_TILE)
		model->kernels->norm(&model->final_norm,
							 j->n - start < TNP_TILE ? (int) (j->n - start) : TNP_TILE,
							 j->h + start * c->width, j->h + start * c->width);
	joint_project(j, &model->head, j->targets, j->mean);
	for (int64_t i = 0; i < j->n; i++)
		j->tokens[i] = (TnpToken) {j->n, 0, NULL, i};
	for (int k = 0; status == TNP_OK && k < c->head_blocks; k++)
	{
		status = tnp_walk_store(&walk, &model->head_blocks[k], 0, j->n, error);
		if (status == TNP_OK)
			status = tnp_walk_attend(&walk, &model->head_blocks[k], 0, 0, j->n, error);
	}
	if (status == TNP_OK)
		joint_project(j, &model->projector, j->targets * c->head_rank, j->w);
	return status;
}

static TnpStatus
joint_make(Joint *j, const TnpRows *queries, TnpError *error)
{
	const TnpModel *model = j->e->model;
	double		cost = tnp_cost(model, (double) j->n, (double) (tnp_encoding_slots(j->e) + j->n));
	TnpStatus	status = joint_alloc(j, error);

	if (status == TNP_OK)
		status = tnp_team_with_scratch(model, &j->e->stats, TNP_TILE, tnp_team_most(j->n), cost,
									   &j->team, error);
	if (status == TNP_OK)
		status = joint_states(j, queries, error);
	return status == TNP_OK ? joint_head(j, error) : status;
}

/* Row i of C, up to the diagonal, under the order of j->place. */
static TnpStatus
joint_row(const Joint *j, TnpWorker *worker, int64_t i, double *row, TnpError *error)
{
	const TnpConfig *c = &j->e->model->config;
	int			rank = c->head_rank;
	const double *own = j->w + joint_variable(j, i) * rank;

	for (int64_t k = 0; k <= i; k++)
		row[k] = tnp_dot(rank, own, j->w + joint_variable(j, k) * rank);
	row[i] += c->head_jitter;
	if (!(row[i] > 0 && isfinite(row[i])))
		return tnp_fail(error, TNP_BAD_VALUE, "the model's covariance is singular for these rows");
	return tnp_worker_check(worker, error);
}

/* One row of j->factor, C in original units. */
static TnpStatus
joint_factor_row(void *state, TnpWorker *worker, int64_t i, TnpError *error)
{
	const Joint *j = state;
	double	   *row = j->factor + i * j->size,
				scale = tnp_target_scale(&j->e->stats, (int) (i % j->targets));
	TnpStatus	status = joint_row(j, worker, i, row, error);

	for (int64_t k = 0; status == TNP_OK && k <= i; k++)
		row[k] *= scale;
	return status;
}

/* Where the covariances of a question go. */
typedef struct JointCovariance
{
	const Joint *j;
	double	   *covariance;		/* [size, size] */
} JointCovariance;

/* What variable i has in common with those up to it. */
static TnpStatus
joint_covariances(void *state, TnpWorker *worker, int64_t i, TnpError *error)
{
	const JointCovariance *c = state;
	const Joint *j = c->j;

	for (int64_t k = 0; k <= i; k++)
	{
		double		sum = tnp_dot((int) k + 1, j->factor + i * j->size, j->factor + k * j->size);

		if (!isfinite(sum))
			return tnp_fail(error, TNP_BAD_VALUE, "the model's covariance is not finite for these "
							"rows");
		c->covariance[i * j->size + k] = c->covariance[k * j->size + i] = sum;
	}
	if (i % j->targets == 0)
		tnp_worker_answered(worker, 1);
	return tnp_worker_check(worker, error);
}

TnpStatus
tnp_joint(const TnpEncoding *e, const TnpRows *queries, double *mean, double *covariance,
		  TnpError *error)
{
	const TnpStats *stats = &e->stats;
	Joint		j = joint_of(e, queries->n);
	TnpStatus	status = tnp_queries_check(e, queries, false, error);

	if (status != TNP_OK)
		return status;
	if (e->model->config.head != TNP_HEAD_JOINT)
		return tnp_fail(error, TNP_BAD_ARGUMENT, "the model has no joint Gaussian");
	if (j.n == 0)
		return TNP_OK;
	if (j.size > TNP_MAX_JOINT)
	{
		tnp_fail(error, TNP_BAD_ARGUMENT, "too many rows for a covariance");
		tnp_detail(error, "%lld rows, at most %d", (long long) j.n, TNP_MAX_JOINT / j.targets);
		return TNP_BAD_ARGUMENT;
	}
	status = joint_make(&j, queries, error);
	if (status == TNP_OK)
	{
		tnp_fill_order(j.n, 0, -1, j.place);
		j.factor = tnp_alloc(&e->model->env, j.size, (size_t) j.size * sizeof(double));
		if (j.factor == NULL)
			status = tnp_no_memory(error);
	}
	if (status == TNP_OK)
		status = tnp_team_run(j.team, j.size, joint_factor_row, &j, error);
	if (status == TNP_OK)
	{
		JointCovariance c = {&j, covariance};

		status = tnp_team_run(j.team, j.size, joint_covariances, &c, error);
	}
	for (int64_t i = 0; status == TNP_OK && i < j.size; i++)
	{
		int			t = (int) (i % j.targets);

		mean[i] = tnp_target_center(stats, t) + tnp_target_scale(stats, t) * j.mean[i];
		if (!isfinite(mean[i]))
			status = tnp_fail(error, TNP_BAD_VALUE,
							  "the model's prediction is not finite for these values");
	}
	joint_free(&j);
	return status;
}

/* Independent normal numbers [draws, size] for the variables of draws. */
static TnpStatus
joint_white(const Joint *j, uint64_t seed, uint64_t first_draw, int64_t draws, double *y,
			TnpError *error)
{
	TnpStatus	status = TNP_OK;

	for (int64_t b = 0; status == TNP_OK && b < draws; b++)
	{
		for (int64_t i = 0; i < j->size; i++)
		{
			double		u[2];

			tnp_random(seed, first_draw + (uint64_t) b, (uint32_t) (i / j->targets),
					   TNP_STREAM_VALUES + 2 * (uint32_t) (i % j->targets), u);
			y[b * j->size + i] = tnp_normal_quantile(u[1]);
		}
		status = tnp_worker_check(tnp_team_self(j->team), error);
	}
	return status;
}

TnpStatus
tnp_joint_sample(const TnpEncoding *e, const TnpRows *queries, uint64_t seed, uint64_t first_draw,
				 int64_t draws, double *y, TnpError *error)
{
	const TnpStats *stats = &e->stats;
	Joint		j = joint_of(e, queries->n);
	TnpStatus	status = joint_make(&j, queries, error);

	if (status == TNP_OK)
	{
		tnp_fill_order(j.n, 0, -1, j.place);
		status = joint_white(&j, seed, first_draw, draws, y, error);
	}
	/* from the last variable on, so that those before it are still the normal numbers */
	for (int64_t i = j.size - 1; status == TNP_OK && i >= 0; i--)
	{
		int			t = (int) (i % j.targets);

		status = joint_row(&j, tnp_team_self(j.team), i, j.row, error);
		for (int64_t b = 0; status == TNP_OK && b < draws; b++)
		{
			double		sum = j.mean[i];

			for (int64_t k = 0; k <= i; k++)
				sum += j.row[k] * y[b * j.size + k];
			y[b * j.size + i] = tnp_target_center(stats, t) + tnp_target_scale(stats, t) * sum;
		}
		if (status == TNP_OK && t == 0)
			tnp_worker_answered(tnp_team_self(j.team), draws);
	}
	joint_free(&j);
	return status;
}

/* Log densities of the rows in the order of j->place, each given those before it, into j->steps. */
static TnpStatus
joint_steps(Joint *j, const TnpRows *rows, double *sum, TnpError *error)
{
	const TnpStats *stats = &j->e->stats;
	TnpStatus	status = TNP_OK;

	*sum = 0;
	for (int64_t i = 0; status == TNP_OK && i < j->size; i++)
	{
		int64_t		v = joint_variable(j, i);
		int			t = (int) (i % j->targets);
		double		scale = tnp_target_scale(stats, t),
					rest = (rows->y[v] - tnp_target_center(stats, t)) / scale - j->mean[v],
					step;

		status = joint_row(j, tnp_team_self(j->team), i, j->row, error);
		if (status != TNP_OK)
			break;
		for (int64_t k = 0; k < i; k++)
			rest -= j->row[k] * j->white[k];
		j->white[i] = rest / j->row[i];
		step = tnp_normal_log_pdf(j->white[i]) - log(j->row[i]) - log(scale);
		j->steps[i / j->targets] = t > 0 ? j->steps[i / j->targets] + step : step;
		*sum += step;
		if (t == 0)
			tnp_worker_answered(tnp_team_self(j->team), 1);
	}
	return status;
}

TnpStatus
tnp_joint_score(const TnpEncoding *e, const TnpRows *rows, int64_t orders, uint64_t seed,
				double *log_density, double *per_row, TnpError *error)
{
	Joint		j = joint_of(e, rows->n);
	TnpRows		queries = *rows;
	double		total = -INFINITY;
	TnpStatus	status;

	queries.y = NULL;
	status = joint_make(&j, &queries, error);
	for (int64_t r = 0; status == TNP_OK && r < (orders > 0 ? orders : 1); r++)
	{
		double		sum;

		tnp_fill_order(j.n, seed, orders > 0 ? r : -1, j.place);
		status = joint_steps(&j, rows, &sum, error);
		total = orders > 0 && status == TNP_OK ? tnp_log_add(total, sum) : sum;
	}
	if (status == TNP_OK)
	{
		*log_density = orders > 0 ? total - log((double) orders) : total;
		if (per_row != NULL && orders <= 0)
			memcpy(per_row, j.steps, (size_t) j.n * sizeof(double));
	}
	joint_free(&j);
	return status;
}
