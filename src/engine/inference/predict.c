/*
 * predict.c: marginal predictive distributions of query rows. A tile of rows goes from its cells to
 * its answers by itself; rows that are appended for a question can be of its tile.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/inference/encode.h"
#include "engine/inference/variants.h"

#define VARIANTS_BLOCK 1024		/* queries whose variants are in memory at a time */

/* What the items of a prediction share. */
typedef struct Predict
{
	const TnpEncoding *e;
	const TnpRows *queries;
	int			tile,
				size;			/* of the answers to a query */
	int64_t		asked;			/* questions that the queries are variants of */
	double	   *params;
} Predict;

/*
 * Embed queries [first, first + n), n within the worker's rows, into states h [n, d], and say that
 * they see `slots` slots.
 */
static TnpStatus
embed_queries(const TnpEncoding *e, const TnpRows *queries, int64_t first, int n, int64_t slots,
			  TnpScratch *work, TnpToken *tokens, float *h, TnpError *error)
{
	const TnpModel *model = e->model;
	const float *row[TNP_TILE];
	int			width = tnp_feature_embedding_width(model, &e->stats);
	TnpStatus	status = tnp_feature_embedding_tile(model, &e->stats, queries, first, n, false,
													work, work->half, work->prior_logits, error);

	for (int i = 0; i < n; i++)
	{
		row[i] = work->half + (size_t) i * width;
		tokens[i] = (TnpToken) {slots, 0, NULL, -1};
	}
	if (status == TNP_OK)
		model->config.family->embed(model, n, row, NULL, TNP_ROLE_QUERY, NULL, work->scratch, h);
	return status;
}

/*
 * Answers of the queries that were embedded last, from their states h [n, d] after all layers; they
 * see `rows` rows.
 */
static TnpStatus
answer_queries(const TnpEncoding *e, int64_t rows, int n, float *h, TnpScratch *work,
			   double *params, TnpError *error)
{
	int64_t		behind = rows - e->stats.n0;
	TnpBeside	beside = {work->prior_logits, tnp_prior_logits_width(e->model), &behind, 0};

	return tnp_answers(e->model, &e->stats, n, h, &beside, work, params, error);
}

static TnpStatus
predict_tile(void *state, TnpWorker *worker, int64_t item, TnpError *error)
{
	Predict    *p = state;
	const TnpEncoding *e = p->e;
	TnpScratch    *work = worker->work;
	TnpToken	tokens[TNP_TILE];
	int64_t		first = item * p->tile;
	int			n = p->queries->n - first < p->tile ? (int) (p->queries->n - first) : p->tile;
	TnpStatus	status = tnp_worker_check(worker, error);

	if (status == TNP_OK)
		status = embed_queries(e, p->queries, first, n, tnp_encoding_slots(e), work, tokens,
							   work->h, error);
	/* queries store nothing, so the shared cache is only read */
	if (status == TNP_OK)
		status = tnp_walk(worker, e, n, 0, 0, tokens, work->h,
						  error);
	if (status == TNP_OK)
		status = answer_queries(e, e->n, n, work->h, work, p->params + first * p->size, error);
	/* what the tiles tell adds up to the questions */
	if (status == TNP_OK)
		tnp_worker_answered(worker, p->asked * (first + n) / p->queries->n
							- p->asked * first / p->queries->n);
	return status;
}

/* Few queries on a long context: all threads work on the same rows. */
static TnpStatus
predict_few(TnpTeam *team, const TnpEncoding *e, const TnpRows *queries, double *params,
			TnpError *error)
{
	TnpScratch    *work = tnp_team_self(team)->work;
	TnpToken	tokens[TNP_TILE];
	int			n = (int) queries->n;
	TnpStatus	status = embed_queries(e, queries, 0, n, tnp_encoding_slots(e), work, tokens,
									   work->h, error);

	if (status == TNP_OK)
		status = tnp_walk_team(team, e, n, 0, 0, tokens, work->h,
						   error);
	return status == TNP_OK ? answer_queries(e, e->n, n, work->h, work, params, error) : status;
}

/* Answers to queries that were checked, each as it is; they are variants of `asked` questions. */
static TnpStatus
predict_rows(const TnpEncoding *e, const TnpRows *queries, int64_t asked, double *params,
			 TnpError *error)
{
	const TnpModel *model = e->model;
	Predict		p = {e, queries, 0, 0, asked, params};
	TnpTeam    *team;
	TnpStatus	status;

	p.size = tnp_answer_size(model);
	status = tnp_team_with_scratch(model, &e->stats,
								   queries->n < TNP_TILE ? (int) queries->n : TNP_TILE,
						   queries->n <= TNP_FEW_ROWS ? TNP_MAX_THREADS : tnp_team_most(queries->n),
						   tnp_cost(model, (double) queries->n, (double) tnp_encoding_slots(e)),
						   &team, error);
	if (status != TNP_OK)
		return status;
	p.tile = tnp_team_tile(team, queries->n);
	if (queries->n <= TNP_FEW_ROWS && tnp_team_size(team) > 1)
	{
		status = predict_few(team, e, queries, params, error);
		if (status == TNP_OK)
			tnp_worker_answered(tnp_team_self(team), asked);
	}
	else
		status = tnp_team_run(team, (queries->n + p.tile - 1) / p.tile, predict_tile, &p, error);
	tnp_team_free(team);
	return status;
}

/* Answers to queries of which some lack cells that donors lend. */
static TnpStatus
predict_variants(const TnpEncoding *e, const TnpRows *queries, double *params, TnpError *error)
{
	const TnpModel *model = e->model;
	const TnpEnv *env = &model->env;
	size_t		size = tnp_answer_size(model);
	TnpVariants v;
	double	   *each = NULL,
			   *work = NULL;
	TnpStatus	status = tnp_variants_make(model, &e->stats, queries, &v, error);

	if (status == TNP_OK)
	{
		each = tnp_alloc(env, v.rows.n, size * sizeof(double));
		work = tnp_alloc(env, tnp_variants_work(model, &v) + 1, sizeof(double));
		status = each == NULL || work == NULL ? tnp_no_memory(error)
			: predict_rows(e, &v.rows, queries->n, each, error);
	}
	for (int64_t i = 0; status == TNP_OK && i < queries->n; i++)
		tnp_variants_join(model, &v, i, each + tnp_variants_first(&v, i) * size, size, work,
						  params + i * size);
	tnp_free(env, each);
	tnp_free(env, work);
	tnp_variants_free(env, &v);
	return status;
}

TnpStatus
tnp_predict(const TnpEncoding *e, const TnpRows *queries, double *params, TnpError *error)
{
	const TnpModel *model = e->model;
	TnpStatus	status = tnp_queries_check(e, queries, false, error);

	if (status != TNP_OK || queries->n == 0)
		return status;
	if (model->config.family->predict != NULL)
		return model->config.family->predict(e, queries, params, error);
	if (!tnp_variants_wanted(&e->stats, queries))
		return predict_rows(e, queries, queries->n, params, error);
	for (int64_t first = 0; status == TNP_OK && first < queries->n; first += VARIANTS_BLOCK)
	{
		int64_t		n = queries->n - first < VARIANTS_BLOCK ? queries->n - first : VARIANTS_BLOCK;
		TnpRows		block = tnp_rows_part(queries, first, n);

		block.y = NULL;
		status = predict_variants(e, &block, params + first * tnp_answer_size(model), error);
	}
	return status;
}

TnpStatus
tnp_append_predict(TnpEncoding *e, const TnpRows *rows, const TnpRows *queries, double *params,
				   TnpError *error)
{
	const TnpModel *model = e->model;
	const TnpFamily *family = model->config.family;
	int			n = (int) rows->n,
				m = (int) queries->n;
	int64_t		slots = family->slots(model, e->prefix, e->n + rows->n),
				total = rows->n + queries->n;
	TnpToken	tokens[TNP_TILE];
	TnpTeam    *team;
	TnpStatus	status = tnp_queries_check(e, queries, false, error);

	if (status == TNP_OK && (n == 0 || m == 0 || total > TNP_TILE || family->row_token == NULL
							 || tnp_variants_wanted(&e->stats, queries)))
	{
		status = tnp_append(e, rows, error);
		if (status == TNP_OK && (status = tnp_predict(e, queries, params, error)) != TNP_OK)
			tnp_encoding_forget(e, e->n - rows->n);
		return status;
	}
	if (status == TNP_OK)
		status = tnp_append_begin(e, rows, error);
	if (status == TNP_OK)
		status = tnp_team_with_scratch(model, &e->stats, (int) total, TNP_MAX_THREADS,
							   tnp_cost(model, (double) total, (double) slots), &team, error);
	if (status != TNP_OK)
		return status;
	{
		TnpScratch    *work = tnp_team_self(team)->work;
		float	   *asked = work->h + (size_t) n * family->state_width(model);

		status = tnp_embed_rows(e, work, e->n, n, work->h, error);
		for (int i = 0; i < n; i++)
			family->row_token(e, e->n + i, &tokens[i]);
		if (status == TNP_OK)
			status = embed_queries(e, queries, 0, m, slots, work, tokens + n, asked, error);
		if (status == TNP_OK)
			status = tnp_walk_team(team, e, total, n, 0, tokens, work->h, error);
		if (status == TNP_OK)
			status = answer_queries(e, e->n + n, m, asked, work, params, error);
		if (status == TNP_OK)
			tnp_answered(&model->env, m);
	}
	tnp_team_free(team);
	if (status == TNP_OK)
		e->n += n;
	return status;
}
