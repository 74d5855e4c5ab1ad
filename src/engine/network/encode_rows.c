/*
 * encode_rows.c: rows of a context become tokens, which the family's walk stores.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/network/encode_rows.h"

#include <math.h>
#include <string.h>

#include "engine/network/walk.h"

/* What the items of embedding share: rows [first, first + n) of a context. */
typedef struct Embed
{
	TnpEncoding *e;
	int64_t		first,
				n;
	int			tile;
	float	   *h;				/* [n, state width] */
	int			width;			/* of a state */
} Embed;

TnpStatus
tnp_embed_rows(const TnpEncoding *e, TnpScratch *work, int64_t start, int n, float *h,
			   TnpError *error)
{
	const TnpModel *model = e->model;
	const TnpFamily *family = model->config.family;
	int64_t		end = start + n;
	TnpRows		view = {end, e->n_features, e->kinds, e->x, e->y, e->stats.n_classes, 0,
						model->config.n_targets};
	int			width = tnp_feature_embedding_width(model, &e->stats),
				targets = model->config.n_targets;
	TnpStatus	status = tnp_feature_embedding_tile(model, &e->stats, &view, start, n, true, work,
													work->half, NULL, error);

	for (int64_t i = start; status == TNP_OK && i < end;)
	{
		const float *row[TNP_TILE];
		float		y[TNP_TILE * TNP_MAX_TARGETS];
		int			position[TNP_TILE],
					some = 0;
		int64_t		begin = i;
		bool		later = i >= e->prefix;

		/* one call, one role */
		for (; i < end && (i >= e->prefix) == later; i++, some++)
		{
			row[some] = work->half + (i - start) * width;
			if (!tnp_scale_targets(model, &e->stats, e->y + i * targets, y + some * targets))
				return tnp_fail(error, TNP_BAD_VALUE, "a target is too large for the model");
			position[some] = later ? (int) (i - e->prefix) : -1;
		}
		family->embed(model, some, row, y, later ? TNP_ROLE_LATER : TNP_ROLE_PREFIX, position,
					  work->scratch, h + (begin - start) * family->state_width(model));
	}
	return status;
}

/* Tokens of one tile of rows. */
static TnpStatus
embed_tile(void *state, TnpWorker *worker, int64_t item, TnpError *error)
{
	Embed	   *b = state;
	int64_t		start = b->first + item * b->tile,
				end = b->first + b->n < start + b->tile ? b->first + b->n : start + b->tile;
	TnpStatus	status = tnp_worker_check(worker, error);

	if (status != TNP_OK)
		return status;
	tnp_worker_progress(worker, start - b->first, b->n);
	return tnp_embed_rows(b->e, worker->work, start, (int) (end - start),
						  b->h + (start - b->first) * b->width, error);
}

TnpStatus
tnp_embed_all_rows(TnpEncoding *e, TnpTeam *team, int64_t first, int64_t n, float *h,
				   TnpError *error)
{
	Embed		embed = {.e = e, .first = first, .n = n, .tile = tnp_team_tile(team, n), .h = h,
						 .width = e->model->config.family->state_width(e->model)};

	return tnp_team_run(team, (n + embed.tile - 1) / embed.tile, embed_tile, &embed, error);
}

/* Tokens of sinks and rows, which see what the family says. */
static void
fill_tokens(const TnpEncoding *e, int64_t first, int64_t n, int64_t sinks, TnpToken *tokens)
{
	for (int64_t s = 0; s < sinks; s++)
		tokens[s] = (TnpToken) {sinks + e->prefix, 0, NULL, s};
	for (int64_t i = 0; i < n; i++)
		e->model->config.family->row_token(e, first + i, &tokens[sinks + i]);
}

TnpStatus
tnp_encode_rows(TnpEncoding *e, int64_t first, int64_t n, bool anew, TnpError *error)
{
	const TnpModel *model = e->model;
	int			width = model->config.family->state_width(model);
	int64_t		sinks = anew ? model->config.sinks : 0,
				total = sinks + n;
	TnpTeam    *team;
	TnpToken   *tokens;
	float	   *h;
	TnpStatus	status;

	if (total == 0)
		return TNP_OK;
	status = tnp_team_with_scratch(model, &e->stats, total < TNP_TILE ? (int) total : TNP_TILE,
								   TNP_MAX_THREADS,
								   tnp_cost(model, (double) total,
											model->config.sinks + (double) (first + n)),
								   &team, error);
	if (status != TNP_OK)
		return status;
	h = tnp_alloc(&model->env, total, width * sizeof(float));
	tokens = tnp_alloc(&model->env, total, sizeof(TnpToken));
	status = h == NULL || tokens == NULL ? tnp_no_memory(error) : TNP_OK;
	/* embedding and layers; in the last layer of a packed model rows only store: little work */
	tnp_team_watch(team, n, model->config.layers + 1 + model->config.family->steps);
	if (status == TNP_OK && anew && model->config.family->begin != NULL)
	{
		status = model->config.family->begin(e, team, error);
		tnp_team_next_step(team);
	}
	if (status == TNP_OK)
	{
		if (sinks > 0)
			memcpy(h, model->sinks, (size_t) sinks * width * sizeof(float));
		status = tnp_embed_all_rows(e, team, first, n, h + sinks * width, error);
		tnp_team_next_step(team);
	}
	if (status == TNP_OK)
	{
		fill_tokens(e, first, n, sinks, tokens);
		status = tnp_walk_team(team, e, total, total, 0, tokens, h, error);
	}
	if (status == TNP_OK && n > 0 && model->env.progress != NULL)
		model->env.progress(model->env.arg, n, n);
	tnp_free(&model->env, h);
	tnp_free(&model->env, tokens);
	tnp_team_free(team);
	return status;
}
