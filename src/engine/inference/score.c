/*
 * score.c: joint log densities in one pass per block: all rows of the block enter as chain rows and
 * as queries at once, and query j sees the chain rows before it (docs/model-format.md section 9;
 * Hassan et al., algorithm 2).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>
#include <string.h>

#include "engine/features/process_chain.h"
#include "engine/inference/chain.h"
#include "engine/inference/joint.h"
#include "engine/inference/permutation.h"
#include "engine/inference/reencode.h"
#include "engine/inference/variants.h"

/* The memory of one worker. */
typedef struct Pass
{
	float	   *h;				/* [block - 1 + variants, d] */
	double	   *params,			/* [variants, D, size] */
			   *joined,			/* [D, size] */
			   *work,			/* of joining */
			   *y,				/* [block, D] */
			   *steps;			/* [n] conditional log densities by step */
	float	   *prior_logits;	/* [variants, said] what the head takes a share of (embed.h) */
	int64_t    *place,			/* [n] the order */
			   *asked,			/* [variants] of the block's rows */
			   *behind;			/* [variants] rows that they see and the process does not know */
	TnpToken   *tokens;			/* [block - 1 + variants] */
	TnpKvCache	cache;			/* keys of the block's chain rows */
	TnpProcessChain process;	/* where the question is chained, */
	TnpProcessTold told;		/* rows of the order so far */
} Pass;

/* One question: rows and their halves. */
typedef struct Score
{
	const TnpEncoding *root;
	const TnpRows *rows;
	uint64_t	seed;
	int64_t		orders;
	bool		chained;		/* the process learns from the rows before */
	double	   *joint;			/* [orders] */
	TnpFeatureEmbedding		half;			/* of all rows, as chain rows */
	TnpVariants variants;		/* of the rows as queries, */
	TnpFeatureEmbedding asked;	/* and of these; none where they are the rows */
	int64_t		block,			/* longest block */
				most_asked;		/* variants of a block at most */
	TnpTeam    *team;
	Pass	   *passes;			/* one per worker */
} Score;

static void
free_score(Score *s)
{
	const TnpEnv *env = &s->root->model->env;

	for (int w = 0; s->passes != NULL && w < tnp_team_size(s->team); w++)
	{
		Pass	   *p = &s->passes[w];

		tnp_free(env, p->h);
		tnp_free(env, p->params);
		tnp_free(env, p->joined);
		tnp_free(env, p->work);
		tnp_free(env, p->y);
		tnp_free(env, p->steps);
		tnp_free(env, p->prior_logits);
		tnp_free(env, p->place);
		tnp_free(env, p->asked);
		tnp_free(env, p->behind);
		tnp_free(env, p->tokens);
		tnp_cache_free(env, &p->cache);
		tnp_process_chain_free(&p->process);
	}
	tnp_free(env, s->passes);
	tnp_free(env, s->joint);
	tnp_feature_embedding_free(env, &s->half);
	tnp_feature_embedding_free(env, &s->asked);
	tnp_variants_free(env, &s->variants);
	tnp_team_free(s->team);
}

static TnpStatus
make_pass(const Score *s, Pass *p, TnpError *error)
{
	const TnpModel *model = s->root->model;
	const TnpEnv *env = &model->env;

	int64_t		tokens = s->block + s->most_asked;

	p->h = tnp_alloc(env, tokens, model->config.family->state_width(model) * sizeof(float));
	p->params = tnp_alloc(env, s->most_asked, tnp_answer_size(model) * sizeof(double));
	p->joined = tnp_alloc(env, 1, tnp_answer_size(model) * sizeof(double));
	p->work = tnp_alloc(env, tnp_variants_work(model, &s->variants) + 1, sizeof(double));
	p->y = tnp_alloc(env, s->block, model->config.n_targets * sizeof(double));
	p->steps = tnp_alloc(env, s->rows->n, sizeof(double));
	/* one more: never nothing */
	p->prior_logits = tnp_alloc(env, s->most_asked,
								(tnp_prior_logits_width(model) + 1) * sizeof(float));
	p->place = tnp_alloc(env, s->rows->n, sizeof(int64_t));
	p->asked = tnp_alloc(env, s->most_asked, sizeof(int64_t));
	p->behind = tnp_alloc(env, s->most_asked, sizeof(int64_t));
	p->tokens = tnp_alloc(env, tokens, sizeof(TnpToken));
	if (p->h == NULL || p->params == NULL || p->joined == NULL || p->work == NULL || p->y == NULL
		|| p->steps == NULL || p->prior_logits == NULL || p->place == NULL || p->asked == NULL
		|| p->behind == NULL || p->tokens == NULL)
		return tnp_no_memory(error);
	if (s->chained)
	{
		TnpStatus	status = tnp_process_chain_make(model, &s->root->stats, &p->process, error);

		if (status != TNP_OK)
			return status;
	}
	return tnp_chain_cache(model, s->block, &p->cache, error);
}

/* Make what a question needs; s has the question and is freed by the caller also on failure. */
static TnpStatus
make_score(Score *s, TnpError *error)
{
	const TnpEncoding *e = s->root;
	const TnpModel *model = e->model;
	int64_t		room = model->config.context == TNP_FULL
		&& model->config.buffer > 0 ? model->config.buffer : s->rows->n;
	TnpStatus	status = tnp_team_with_scratch(model, &e->stats, TNP_TILE,
									   s->orders > 1 ? s->orders : tnp_team_most(2 * s->rows->n),
									   tnp_cost(model,
												2.0 * (double) s->orders * (double) s->rows->n,
												(double) (tnp_encoding_slots(e) + s->rows->n)),
												&s->team, error);

	if (status == TNP_OK)
		status = tnp_variants_make(model, &e->stats, s->rows, &s->variants, error);
	if (status != TNP_OK)
		return status;
	s->block = s->rows->n < room ? s->rows->n : room;
	s->most_asked = s->block * s->variants.most < s->variants.rows.n
		? s->block * s->variants.most : s->variants.rows.n;
	s->joint = tnp_alloc(&model->env, s->orders, sizeof(double));
	s->passes = tnp_alloc_zero(&model->env, tnp_team_size(s->team), sizeof(Pass));
	if (s->joint == NULL || s->passes == NULL)
		return tnp_no_memory(error);
	for (int w = 0; status == TNP_OK && w < tnp_team_size(s->team); w++)
		status = make_pass(s, &s->passes[w], error);
	if (status == TNP_OK)
		status = tnp_feature_embedding_build(model, &e->stats, s->rows, s->team, &s->half, error);
	if (status == TNP_OK && s->variants.x != NULL)
		status = tnp_feature_embedding_build(model, &e->stats, &s->variants.rows, s->team,
											 &s->asked, error);
	return status;
}

/*
 * Tokens of rows place[0 … n-1] of `half` from h on: chain rows (with targets) or queries.
 */
static void
embed_rows(Score *s, const TnpEncoding *e, const TnpFeatureEmbedding *half, const int64_t *place,
		   int64_t n, bool chain, float *scratch, float *h)
{
	const TnpModel *model = e->model;
	int			targets = model->config.n_targets;

	for (int64_t start = 0; start < n; start += TNP_TILE)
	{
		int			tile = n - start < TNP_TILE ? (int) (n - start) : TNP_TILE;
		const float *row[TNP_TILE];
		float		y[TNP_TILE * TNP_MAX_TARGETS];
		int			position[TNP_TILE];

		for (int i = 0; i < tile; i++)
		{
			int64_t		r = place[start + i];

			row[i] = half->values + r * half->width;
			if (chain)
				tnp_scale_targets(model, &e->stats, s->rows->y + r * targets, y + i * targets);
			position[i] = chain ? tnp_chain_position(e, start + i) : -1;
		}
		model->config.family->embed(model, tile, row, chain ? y : NULL,
									chain ? TNP_ROLE_LATER : TNP_ROLE_QUERY,
				  position, scratch,
				  h + start * model->config.family->state_width(model));
	}
}

/*
 * Chain rows and queries of rows place[0 … n-1], the queries being variants of the rows: their
 * tokens and states, and what the head takes a share of. Returns the number of variants.
 */
static int64_t
embed_block(Score *s, Pass *p, const TnpEncoding *e, const int64_t *place, int64_t n,
			float *scratch)
{
	const TnpModel *model = e->model;
	const TnpFeatureEmbedding *half = s->variants.x != NULL ? &s->asked : &s->half;
	int			said = tnp_prior_logits_width(model);
	int64_t		asked = 0;

	/* the last row of the block need not be stored: nothing after it */
	for (int64_t j = 0; j < n - 1; j++)
		p->tokens[j] = tnp_chain_row(e, &p->cache, j);
	for (int64_t j = 0; j < n; j++)
		for (int v = 0; v < tnp_variants_count(&s->variants, place[j]); v++)
		{
			p->tokens[n - 1 + asked] = tnp_chain_query(e, &p->cache, j);
			/* of a chain the process is told */
			p->behind[asked] = (s->chained ? s->root->n : e->n + j) - e->stats.n0;
			p->asked[asked++] = tnp_variants_first(&s->variants, place[j]) + v;
		}
	embed_rows(s, e, &s->half, place, n - 1, true, scratch, p->h);
	embed_rows(s, e, half, p->asked, asked, false, scratch,
			   p->h + (n - 1) * model->config.family->state_width(model));
	for (int64_t i = 0; said > 0 && i < asked; i++)
		memcpy(p->prior_logits + i * said,
			   tnp_feature_embedding_prior_logits(model, half, p->asked[i]), said * sizeof(float));
	return asked;
}

/*
 * What the process says of the variants of rows place[0 … n-1], each given the rows before it, in
 * place of what it says of them alone.
 */
static TnpStatus
chain_process(Score *s, TnpWorker *worker, const int64_t *place, int64_t n, TnpError *error)
{
	const TnpRows *rows = s->rows,
			   *asked = &s->variants.rows;
	Pass	   *p = &s->passes[worker->number];
	TnpProcessChain *process = &p->process;
	float	   *said = p->prior_logits;
	TnpStatus	status = TNP_OK;

	for (int64_t j = 0; status == TNP_OK && j < n; j++)
	{
		for (int v = 0; v < tnp_variants_count(&s->variants, place[j]); v++)
		{
			int64_t		variant = tnp_variants_first(&s->variants, place[j]) + v;

			tnp_process_chain_ask(process, asked->x + variant * asked->n_features);
			tnp_process_chain_say(process, &p->told, said);
			said += tnp_prior_logits_width(s->root->model);
		}
		/* a row of the chain has the cells that it has */
		if (s->variants.x != NULL)
			tnp_process_chain_ask(process, rows->x + place[j] * rows->n_features);
		tnp_process_chain_take(process);
		tnp_process_chain_tell(process, rows->y[place[j]], &p->told);
		if (tnp_process_chain_forget(process))
		{
			tnp_process_told_forget(process, &p->told);
			status = tnp_worker_check(worker, error);
		}
	}
	return status;
}

/* Log density of the targets of a row under the answer params [D, size]. */
static double
log_density_of(const TnpModel *model, const double *params, const double *y)
{
	TnpDistributionKind kind;
	int			components;
	double		sum = 0;

	tnp_answer_shape(model, &kind, &components);
	for (int t = 0; t < model->config.n_targets; t++)
	{
		TnpDistribution answer = {kind, components,
								  (double *) params + t * tnp_distribution_size(kind, components)};

		sum += tnp_log_pdf(&answer, y[t]);
	}
	return sum;
}

/*
 * Conditional log densities of rows place[0 … n-1] on e, n within the room; out [n], of each row
 * the sum over its targets. By the whole team or by the one worker.
 */
static TnpStatus
score_block(Score *s, TnpWorker *worker, bool by_team, const TnpEncoding *e, const int64_t *place,
			int64_t n, double *out, TnpError *error)
{
	const TnpModel *model = e->model;
	Pass	   *p = &s->passes[worker->number];
	size_t		size = tnp_answer_size(model);
	int64_t		asked = embed_block(s, p, e, place, n, worker->work->scratch),
				at = 0;
	TnpStatus	status = s->chained ? chain_process(s, worker, place, n, error) : TNP_OK;

	if (status == TNP_OK && by_team)
	{
		tnp_team_watch_answers(s->team, n, model->config.layers + model->config.family->steps);
		status = tnp_walk_team(s->team, e, n - 1 + asked, n - 1, 0, p->tokens, p->h, error);
	}
	else if (status == TNP_OK)
		status = tnp_walk(worker, e, n - 1 + asked, n - 1, 0, p->tokens, p->h, error);
	if (status == TNP_OK)
		status = tnp_answers(model, &e->stats, asked,
							 p->h + (n - 1) * model->config.family->state_width(model),
							 &(TnpBeside) {p->prior_logits, tnp_prior_logits_width(model),
										   p->behind, 1},
							 worker->work, p->params, error);
	for (int64_t j = 0; status == TNP_OK && j < n; j++)
	{
		tnp_variants_join(model, &s->variants, place[j], p->params + at * size, size, p->work,
						  p->joined);
		out[j] = log_density_of(model, p->joined, s->rows->y + place[j] * model->config.n_targets);
		at += tnp_variants_count(&s->variants, place[j]);
	}
	if (status == TNP_OK && by_team)
		tnp_team_end_answers(s->team);
	else if (status == TNP_OK)
		tnp_worker_answered(worker, n);
	return status;
}

/*
 * Conditional log densities of all rows in the order of the calling thread's pass, into its steps;
 * blocks are merged one after the other.
 */
static TnpStatus
score_blocks(Score *s, TnpError *error)
{
	const TnpEncoding *e = s->root;
	Pass	   *p = &s->passes[0];
	int			targets = e->model->config.n_targets;
	int64_t		n = s->rows->n,
				done = 0;
	TnpStatus	status = TNP_OK;

	tnp_process_chain_reset(&p->process);
	while (status == TNP_OK && done < n)
	{
		int64_t		room = tnp_chain_room(e),
					count = n - done < room ? n - done : room;

		status = tnp_chain_settle_rows(e, s->team, &s->half, p->place + done, count, error);
		if (status == TNP_OK)
			status = score_block(s, tnp_team_self(s->team), true, e, p->place + done, count,
								 p->steps + done, error);
		if (status == TNP_OK && done + count < n)
		{
			for (int64_t j = 0; j < count; j++)
				memcpy(p->y + j * targets, s->rows->y + p->place[done + j] * targets,
					   targets * sizeof(double));
			status = tnp_chain_merge(s->root, &e, s->rows, p->place + done, p->y, count, error);
		}
		done += count;
	}
	if (e != s->root)
		tnp_encoding_free((TnpEncoding *) e);
	return status;
}

static double
sum_steps(const Score *s, const Pass *p)
{
	double		joint = 0;

	for (int64_t j = 0; j < s->rows->n; j++)
		joint += p->steps[j];
	return joint;
}

/* One order that is a single block. */
static TnpStatus
score_order(void *state, TnpWorker *worker, int64_t order, TnpError *error)
{
	Score	   *s = state;
	Pass	   *p = &s->passes[worker->number];
	TnpStatus	status;

	tnp_fill_order(s->rows->n, s->seed, order, p->place);
	tnp_process_chain_reset(&p->process);
	status = score_block(s, worker, false, s->root, p->place, s->rows->n, p->steps, error);
	if (status == TNP_OK)
		s->joint[order] = sum_steps(s, p);
	return status;
}

/* All orders, each of them a single block; what rows are on the encoding is the same in all. */
static TnpStatus
score_orders(Score *s, TnpError *error)
{
	TnpStatus	status;

	tnp_fill_order(s->rows->n, s->seed, -1, s->passes[0].place);
	status = tnp_chain_settle_rows(s->root, s->team, &s->half, s->passes[0].place, s->rows->n,
								   error);
	return status == TNP_OK ? tnp_team_run(s->team, s->orders, score_order, s, error) : status;
}

/* The question to a family that answers for itself. */
static TnpStatus
score_encodings(Score *s, int64_t orders, double *log_density, double *per_row, TnpError *error)
{
	const TnpEnv *env = &s->root->model->env;
	const TnpFamily *family = s->root->model->config.family;
	int64_t		n = s->rows->n,
			   *place = tnp_alloc(env, n, sizeof(int64_t));
	double	   *steps = tnp_alloc(env, n, sizeof(double)),
				total = -INFINITY;
	TnpStatus	status = place == NULL || steps == NULL ? tnp_no_memory(error) : TNP_OK;

	for (int64_t r = 0; status == TNP_OK && r < s->orders; r++)
	{
		double		joint = 0;

		tnp_fill_order(n, s->seed, orders > 0 ? r : -1, place);
		status = (family->score != NULL ? family->score : tnp_score_by_encoding)
			(s->root, s->rows, place, steps, error);
		for (int64_t j = 0; status == TNP_OK && j < n; j++)
			joint += steps[j];
		total = tnp_log_add(total, joint);
	}
	if (status == TNP_OK)
	{
		*log_density = orders > 0 ? total - log((double) orders) : total;
		if (per_row != NULL && orders <= 0)
			memcpy(per_row, steps, (size_t) n * sizeof(double));
	}
	tnp_free(env, place);
	tnp_free(env, steps);
	return status;
}

TnpStatus
tnp_score(const TnpEncoding *e, const TnpRows *rows, int64_t orders, uint64_t seed,
		  double *log_density, double *per_row, TnpError *error)
{
	double		total = -INFINITY;
	float		scaled[TNP_MAX_TARGETS];
	Score		s = {.root = e,.rows = rows,.seed = seed,.orders = orders > 0 ? orders : 1,
					 .chained = orders != TNP_AS_APPENDED && rows->n > 1
					 && tnp_process_chain_wanted(e->model)};
	TnpStatus	status = tnp_queries_check(e, rows, true, error);

	if (status != TNP_OK)
		return status;
	if (orders < TNP_AS_APPENDED)
		return tnp_fail(error, TNP_BAD_ARGUMENT, "the number of orders must not be negative");
	*log_density = 0;
	if (rows->n == 0)
		return TNP_OK;
	for (int64_t i = 0; i < rows->n; i++)
		if (!tnp_scale_targets(e->model, &e->stats, rows->y + i * e->model->config.n_targets,
							   scaled))
			return tnp_fail(error, TNP_BAD_VALUE, "a target is too large for the model");
	if (e->model->config.family->predict != NULL)
		return score_encodings(&s, orders, log_density, per_row, error);
	if (e->model->config.head == TNP_HEAD_JOINT)
		return tnp_joint_score(e, rows, orders, seed, log_density, per_row, error);
	status = make_score(&s, error);
	/* orders are shared out unless blocks must be merged, which allocates, or there is but one */
	if (status == TNP_OK && orders > 1 && rows->n <= tnp_chain_room(e))
		status = score_orders(&s, error);
	else
		for (int64_t r = 0; status == TNP_OK && r < s.orders; r++)
		{
			tnp_fill_order(rows->n, seed, orders > 0 ? r : -1, s.passes[0].place);
			status = score_blocks(&s, error);
			if (status == TNP_OK)
				s.joint[r] = sum_steps(&s, &s.passes[0]);
		}
	for (int64_t r = 0; status == TNP_OK && r < s.orders; r++)
		total = tnp_log_add(total, s.joint[r]);
	if (status == TNP_OK)
	{
		*log_density = orders > 0 ? total - log((double) orders) : total;
		if (per_row != NULL && orders <= 0)
			memcpy(per_row, s.passes[0].steps, (size_t) rows->n * sizeof(double));
	}
	free_score(&s);
	return status;
}

TnpStatus
tnp_evidence_begin(const TnpModel *model, const TnpRows *rows, int64_t *given, TnpError *error)
{
	TnpStatus	status = tnp_rows_check(model, rows, true, error);

	*given = model->config.min_rows;
	if (status != TNP_OK || rows->n >= *given)
		return status;
	tnp_fail(error, TNP_TOO_FEW_ROWS, "too few rows for the model");
	tnp_detail(error, "%lld row%s given, the evidence is conditional on the first %lld",
			   (long long) rows->n, rows->n == 1 ? "" : "s", (long long) *given);
	return TNP_TOO_FEW_ROWS;
}

int64_t
tnp_evidence_end(const TnpModel *model, int64_t n, int64_t end)
{
	int64_t		prefix = tnp_canonical_prefix(model, n),
				low = n,
				high = end;

	/* a joint head knows the rows of one question, and evidence is of one row after the other */
	if (model->config.head == TNP_HEAD_JOINT)
		return n + 1;
	/* the prefix never shrinks as rows are added */
	if (tnp_canonical_prefix(model, end) == prefix)
		return end;
	while (high - low > 1)
	{
		int64_t		middle = low + (high - low) / 2;

		if (tnp_canonical_prefix(model, middle) == prefix)
			low = middle;
		else
			high = middle;
	}
	return high;
}

TnpStatus
tnp_evidence(const TnpModel *model, const TnpRows *rows, double *log_evidence, int64_t *conditioned,
			 double *per_row, TnpError *error)
{
	TnpStatus	status = tnp_evidence_begin(model, rows, conditioned, error);

	*log_evidence = 0;
	for (int64_t i = 0; status == TNP_OK && per_row != NULL && i < *conditioned; i++)
		per_row[i] = NAN;

	/* while the prefix stays where it is, all conditionals come from one pass */
	for (int64_t n = *conditioned; status == TNP_OK && n < rows->n;)
	{
		int64_t		end = tnp_evidence_end(model, n, rows->n);
		TnpRows		context = tnp_rows_part(rows, 0, n),
					next = tnp_rows_part(rows, n, end - n);
		TnpEncoding *e;
		double		part = 0;

		status = tnp_build(model, &context, tnp_canonical_prefix(model, n), &e, error);
		if (status == TNP_OK)
		{
			status = tnp_score(e, &next, TNP_AS_APPENDED, 0, &part,
							   per_row != NULL ? per_row + n : NULL, error);
			tnp_encoding_free(e);
		}
		*log_evidence += part;
		n = end;
	}
	return status;
}
