/*
 * scratch.c: the scratch memory of one thread.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/network/scratch.h"

#include <string.h>

#include "engine/features/scale.h"
#include "engine/network/mlp.h"
#include "engine/network/token_widths.h"

#define MAX_PARTS 7
#define SCRATCH_PARTS 6

/*
 * One allocation of n parts of these numbers of floats, each aligned to 64 bytes; NULL when memory
 * ran out.
 */
static void *
make_parts(const TnpModel *model, int n, const size_t *floats, float **const *parts)
{
	size_t		total = 0;
	void	   *memory;
	char	   *at;

	for (int i = 0; i < n; i++)
		total += (floats[i] + 15) / 16 * 16;
	memory = tnp_alloc(&model->env, total + 16, sizeof(float));
	if (memory == NULL)
		return NULL;
	at = (char *) memory;
	at += (64 - (uintptr_t) at % 64) % 64;
	for (int i = 0; i < n; i++)
	{
		*parts[i] = (float *) at;
		at += (floats[i] + 15) / 16 * 16 * sizeof(float);
	}
	return memory;
}

TnpStatus
tnp_block_work_make(const TnpModel *model, const TnpBlockSizes *sizes, int rows,
					TnpBlockWork *work, TnpError *error)
{
	size_t		n = rows,
				attend = sizes->heads > 0
		? model->kernels->attend_floats(sizes->heads, sizes->keys / sizes->heads,
										sizes->planes > 0 ? sizes->planes : 1, rows) : 0;
	size_t		floats[MAX_PARTS] = {n * sizes->width, n * sizes->keys, n * sizes->values,
									 n * sizes->feedforward, n * sizes->heads, attend,
									 n * sizes->more};
	float	  **parts[MAX_PARTS] = {&work->u, &work->q, &work->att, &work->ff, &work->scale,
									&work->attend, &work->more};

	memset(work, 0, sizeof(*work));
	work->rows = rows;
	work->memory = make_parts(model, MAX_PARTS, floats, parts);
	return work->memory == NULL ? tnp_no_memory(error) : TNP_OK;
}

void
tnp_block_work_free(const TnpModel *model, TnpBlockWork *work)
{
	tnp_free(&model->env, work->memory);
	memset(work, 0, sizeof(*work));
}

static TnpStatus
make_token_work(const TnpModel *model, int tokens, TnpTokenWork *w, TnpError *error)
{
	const TnpEncoderConfig *e = &model->config.encode_x;
	int			rows = tokens < TNP_TILE ? tokens : TNP_TILE;
	TnpBlockSizes sizes = {e->token_width, e->token_width, e->token_width, e->token_feedforward,
						   e->token_heads, 0, 1};
	TnpStatus	status = tnp_block_work_make(model, &sizes, rows, &w->block, error);

	if (status == TNP_OK)
	{
		TnpCacheShape shape = {1, e->token_heads, e->token_width / e->token_heads,
							   e->token_width / e->token_heads, model->kernels->number,
							   .planes = 1};

		status = tnp_cache_make(&model->env, &shape, TNP_BLOCK, tokens, &w->cache, error);
	}
	if (status != TNP_OK)
		return status;
	w->h = tnp_alloc(&model->env, tokens, e->token_width * sizeof(float));
	w->scratch = tnp_alloc(&model->env, rows,
						   2 * tnp_mlp_width(&model->tokeniser.cell) * sizeof(float));
	return w->h == NULL || w->scratch == NULL ? tnp_no_memory(error) : TNP_OK;
}

/* Floats per row that the head needs: an MLP's, and of a joint one the projector's numbers. */
static size_t
head_scratch(const TnpModel *model)
{
	size_t		head = 2 * (size_t) tnp_mlp_width(&model->head),
				joint;

	if (model->config.head != TNP_HEAD_JOINT)
		return head;
	joint = 2 * (size_t) tnp_mlp_width(&model->projector)
		+ (size_t) model->config.n_targets * model->config.head_rank;
	return head > joint ? head : joint;
}

/* Floats per row that some embedder or the head needs at a time. */
static size_t
scratch_floats(const TnpModel *model)
{
	size_t		head = head_scratch(model),
				token = model->config.family->embed_scratch(model),
				half = tnp_feature_embedding_scratch(model),
				most = head > token ? head : token;

	return most > half ? most : half;
}

TnpStatus
tnp_work_make(const TnpModel *model, const TnpStats *stats, int rows, TnpScratch *work,
			  TnpError *error)
{
	const TnpConfig *c = &model->config;
	size_t		n = rows;
	size_t		floats[SCRATCH_PARTS] = {n * tnp_features_width(model, stats),
										 n * tnp_feature_embedding_width(model, stats),
										 n * tnp_prior_logits_width(model),
										 n * c->family->state_width(model),
										 n * model->head.linear[model->head.n - 1].out,
										 n * scratch_floats(model)};
	float	  **parts[SCRATCH_PARTS] = {&work->features, &work->half, &work->prior_logits,
										&work->h, &work->raw, &work->scratch};
	TnpBlockSizes sizes = {0};
	TnpStatus	status = TNP_OK;

	memset(work, 0, sizeof(*work));
	work->rows = rows;
	work->memory = make_parts(model, SCRATCH_PARTS, floats, parts);
	if (work->memory == NULL)
		return tnp_no_memory(error);
	c->family->block_sizes(model, &sizes);
	if (sizes.heads > 0)
		status = tnp_block_work_make(model, &sizes, rows, &work->block, error);
	if (status == TNP_OK && c->family->token_work != NULL)
		status = c->family->token_work(model, rows, &work->tokens, error);
	if (status == TNP_OK && c->embedder == TNP_ADDITIVE && c->encode_x.kind == TNP_ENCODE_ROWS
		&& c->encode_x.token_width > 0)
		status = make_token_work(model, c->encode_x.token_readouts + stats->n_slots, &work->tokens,
								 error);
	if (status != TNP_OK)
		tnp_work_free(model, work);
	return status;
}

void
tnp_work_free(const TnpModel *model, TnpScratch *work)
{
	tnp_block_work_free(model, &work->block);
	tnp_block_work_free(model, &work->tokens.block);
	tnp_cache_free(&model->env, &work->tokens.cache);
	tnp_free(&model->env, work->tokens.h);
	tnp_free(&model->env, work->tokens.scratch);
	tnp_free(&model->env, work->memory);
	memset(work, 0, sizeof(*work));
}

static TnpStatus
scratch_make(const TnpModel *model, const struct TnpStats *stats, int rows, TnpScratch **work,
			 TnpError *error)
{
	TnpStatus	status;

	*work = tnp_alloc_zero(&model->env, 1, sizeof(TnpScratch));
	if (*work == NULL)
		return tnp_no_memory(error);
	status = tnp_work_make(model, stats, rows, *work, error);
	if (status == TNP_OK)
		return TNP_OK;
	tnp_free(&model->env, *work);
	*work = NULL;
	return status;
}

static void
scratch_free(const TnpModel *model, TnpScratch *work)
{
	tnp_work_free(model, work);
	tnp_free(&model->env, work);
}

TnpStatus
tnp_team_with_scratch(const TnpModel *model, const TnpStats *stats, int rows, int64_t most,
					  double cost, TnpTeam **team, TnpError *error)
{
	static const TnpScratchSource source = {scratch_make, scratch_free};

	return tnp_team_make(model, stats, rows, most, cost, &source, team, error);
}
