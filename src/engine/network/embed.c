/*
 * embed.c: embedders: concatenated, additive, and the row tokeniser's flat path
 * (docs/model-format.md sections 4 and 5). Path B of the tokeniser is in tokens.c.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/network/embed.h"

#include <math.h>
#include <string.h>

#include "engine/features/class_prior.h"
#include "engine/features/wanted_mean.h"
#include "engine/network/parts.h"
#include "engine/network/tokens.h"

/* y [n, d] = E(v [n, in]) for the encoders of a plain vector. */
static void
encode_vector(const TnpModel *model, const TnpEncoderConfig *config, const TnpEncoder *encoder,
			  int n, const float *v, float *scratch, float *y)
{
	int			d = model->config.width;
	float	   *rest = scratch + (size_t) n * 2 * tnp_mlp_width(&encoder->mlp);

	if (config->kind == TNP_ENCODE_CLASSES)
	{
		for (int i = 0; i < n; i++)
			memcpy(y + (size_t) i * d, encoder->table + (size_t) v[i] * d, d * sizeof(float));
		return;
	}
	if (config->kind != TNP_ENCODE_SKIP_MLP)
	{
		tnp_mlp(model, &encoder->mlp, n, v, scratch, y);
		return;
	}
	model->kernels->linear(&encoder->first, n, v, TNP_IDENTITY, false, y);
	tnp_mlp(model, &encoder->mlp, n, y, scratch, rest);
	for (size_t i = 0; i < (size_t) n * d; i++)
		y[i] += rest[i];
}

/*
 * Path A: the sum of the slots' matrices times their cells, an activation, a linear. rows [n,
 * width]: regression features, cells.
 */
static void
encode_flat(const TnpModel *model, int n, int width, const float *rows, float *scratch, float *y)
{
	const TnpConfig *c = &model->config;
	TnpLinear	slots = model->tokeniser.slot;

	slots.in = width;
	model->kernels->linear(&slots, n, rows, c->embedder_activation, false, scratch);
	model->kernels->linear(&model->tokeniser.out, n, scratch, TNP_IDENTITY, false, y);
}

/* E_x of one tile; features as tnp_scale_features wrote them. */
static void
encode_x(const TnpModel *model, const TnpStats *stats, int n, const float *features,
		 TnpScratch *work, float *y)
{
	const TnpConfig *c = &model->config;
	int			width = tnp_features_width(model, stats);

	if (c->encode_x.kind != TNP_ENCODE_ROWS)
	{
		encode_vector(model, &c->encode_x, &model->embed_x, n, features, work->scratch, y);
		return;
	}
	encode_flat(model, n, width, features, work->scratch, y);
	if (c->encode_x.token_width > 0)
		tnp_encode_tokens(model, n, stats->n_slots, features + tnp_regression_features_width(model),
						  width, &work->tokens, y);
}

/* What the family wants of rows behind their `width` numbers, which make room for it. */
static void
add_places(const TnpModel *model, const TnpStats *stats, const TnpRows *rows, int64_t first, int n,
		   int width, float *values)
{
	const TnpFamily *family = model->config.family;
	int			more = family->place_width != NULL ? family->place_width(model) : 0;

	for (int i = n - 1; more > 0 && i >= 0; i--)
	{
		float	   *to = values + (size_t) i * (width + more);

		memmove(to, values + (size_t) i * width, width * sizeof(float));
		family->place(model, stats, rows->x + (first + i) * rows->n_features, to + width);
	}
}

void
tnp_note_prior_logits(const TnpModel *model, const TnpStats *stats, const double *x,
					  const float *numbers, float *out)
{
	if (model->config.gate_hidden > 0)
	{
		memcpy(out, numbers, TNP_PROCESS_NUMBERS * sizeof(float));
		if (model->config.trees_blend_weight > 0)
			out[TNP_PROCESS_NUMBERS] = (float) tnp_wanted_mean(stats, x, numbers);
		return;
	}
	memcpy(out, numbers, tnp_prior_logits_width(model) * sizeof(float));
	if (model->config.trees_blend_weight > 0 || model->config.class_process > 0)
		tnp_prior_logits(model, stats, x, out);
}

TnpStatus
tnp_feature_embedding_tile(const TnpModel *model, const TnpStats *stats, const TnpRows *rows,
						   int64_t first, int n, bool in_context, TnpScratch *work,
			  float *values, float *prior_logits, TnpError *error)
{
	bool		concat = tnp_embeds_features(&model->config);
	int			width = tnp_features_width(model, stats),
				classes = tnp_prior_logits_width(model);
	float	   *features = concat ? values : work->features;

	tnp_scale_features(model, stats, rows, first, n, in_context, features);
	for (int i = 0; i < n; i++)
	{
		int64_t		row = first + i;
		float	   *cells = features + (size_t) i * width;

		if (!tnp_all_finite(width, cells))
			return tnp_feature_too_large(model, stats, rows, row, cells, error);
		if (prior_logits != NULL)
			tnp_note_prior_logits(model, stats, rows->x + row * rows->n_features,
								  cells + tnp_ridge_width(model), prior_logits + i * classes);
	}
	if (concat)
	{
		add_places(model, stats, rows, first, n, width, values);
		return TNP_OK;
	}
	encode_x(model, stats, n, features, work, values);
	for (int i = 0; i < n; i++)
		if (!tnp_all_finite(model->config.width, values + (size_t) i * model->config.width))
			return tnp_feature_too_large(model, stats, rows, first + i,
										 features + (size_t) i * width, error);
	add_places(model, stats, rows, first, n, model->config.width, values);
	return TNP_OK;
}

/* What the items of tnp_feature_embedding_build share. */
typedef struct HalfBuild
{
	const TnpModel *model;
	const TnpStats *stats;
	const TnpRows *rows;
	TnpFeatureEmbedding    *half;
	int			tile;
} HalfBuild;

static TnpStatus
half_item(void *state, TnpWorker *worker, int64_t item, TnpError *error)
{
	HalfBuild  *b = state;
	int64_t		first = item * b->tile;
	int			n = b->half->n - first < b->tile ? (int) (b->half->n - first) : b->tile;
	TnpStatus	status = tnp_worker_check(worker, error);

	if (status != TNP_OK)
		return status;
	return tnp_feature_embedding_tile(b->model, b->stats, b->rows, first, n, false, worker->work,
									  b->half->values + first * b->half->width,
						 (float *) tnp_feature_embedding_prior_logits(b->model, b->half, first),
						 error);
}

TnpStatus
tnp_feature_embedding_build(const TnpModel *model, const TnpStats *stats, const TnpRows *rows,
							TnpTeam *team, TnpFeatureEmbedding *half, TnpError *error)
{
	HalfBuild	build = {model, stats, rows, half, tnp_team_self(team)->work->rows};
	TnpStatus	status;

	half->n = rows->n;
	half->width = tnp_feature_embedding_width(model, stats);
	half->values = tnp_alloc(&model->env, rows->n, half->width * sizeof(float));
	half->prior_logits = tnp_prior_logits_width(model) > 0
		? tnp_alloc(&model->env, rows->n, tnp_prior_logits_width(model) * sizeof(float)) : NULL;
	if (half->values == NULL || (half->prior_logits == NULL && tnp_prior_logits_width(model) > 0))
	{
		tnp_feature_embedding_free(&model->env, half);
		return tnp_no_memory(error);
	}
	status = tnp_team_run(team, (rows->n + build.tile - 1) / build.tile, half_item, &build, error);
	if (status != TNP_OK)
		tnp_feature_embedding_free(&model->env, half);
	return status;
}

void
tnp_feature_embedding_free(const TnpEnv *env, TnpFeatureEmbedding *half)
{
	tnp_free(env, half->values);
	tnp_free(env, half->prior_logits);
	half->values = half->prior_logits = NULL;
	half->n = 0;
}

const float *
tnp_feature_embedding_prior_logits(const TnpModel *model, const TnpFeatureEmbedding *half,
								   int64_t row)
{
	return half->prior_logits == NULL ? NULL
		: half->prior_logits + row * tnp_prior_logits_width(model);
}

static void
add_row(int d, const float *row, float *token)
{
	for (int f = 0; f < d; f++)
		token[f] += row[f];
}

void
tnp_embed(const TnpModel *model, int n, const float *const *row, const float *y, TnpRole role,
		  const int *position,
		  float *scratch, float *tokens)
{
	const TnpConfig *c = &model->config;
	int			d = c->width;

	if (c->embedder == TNP_PARTS)
	{
		tnp_embed_parts(model, n, row, y, scratch, tokens);
		return;
	}
	if (c->embedder == TNP_CONCAT)
	{
		int			in = model->embed_xy.linear[0].in,
					targets = c->n_targets;

		/* [x, y, 0] with targets, [x, 0, 1] without; the flag only where configured */
		for (int i = 0; i < n; i++)
		{
			float	   *v = scratch + (size_t) i * in;

			memcpy(v, row[i], c->n_features * sizeof(float));
			for (int t = 0; t < targets; t++)
				v[c->n_features + t] = y != NULL ? y[i * targets + t] : 0;
			if (c->concat_flag)
				v[c->n_features + targets] = y != NULL ? 0 : 1;
		}
		tnp_mlp(model, &model->embed_xy, n, scratch, scratch + (size_t) n * in, tokens);
		return;
	}
	if (y != NULL)
		encode_vector(model, &c->encode_y, &model->embed_y, n, y, scratch, tokens);
	else
		memset(tokens, 0, (size_t) n * d * sizeof(float));
	for (int i = 0; i < n; i++)
	{
		add_row(d, row[i], tokens + (size_t) i * d);
		if (model->role != NULL)
			add_row(d, model->role + (size_t) role * d, tokens + (size_t) i * d);
		if (model->position != NULL && position != NULL && position[i] >= 0)
			add_row(d, model->position + (size_t) position[i] * d, tokens + (size_t) i * d);
	}
}

void
tnp_embed_targets(const TnpModel *model, int n, const float *y, float *scratch, float *out)
{
	encode_vector(model, &model->config.encode_y, &model->embed_y, n, y, scratch, out);
}
