/*
 * parts.c: the embedder of parts: what tells rows from queries, a part of the features and a part
 * of the target, through an MLP (docs/families.md; Jenson et al. 2024, eq. (2)).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/network/parts.h"

#include <string.h>

#include "engine/network/mlp.h"

/* Copy numbers [n, width] into columns of the input [n, in], from column `at` on. */
static void
parts_put(int n, int width, const float *numbers, int in, int at, float *input)
{
	for (int i = 0; i < n; i++)
		memcpy(input + (size_t) i * in + at, numbers + (size_t) i * width, width * sizeof(float));
}

/* One part of numbers [n, width] into the input; returns how many columns it has. */
static int
parts_add(const TnpModel *model, const TnpEncoderConfig *e, const TnpEncoder *encoder, int n,
		  int width, const float *numbers, int in, int at, float *input, float *scratch)
{
	if (e->kind == TNP_ENCODE_NONE)
		return 0;
	if (e->kind == TNP_ENCODE_IDENTITY)
	{
		parts_put(n, width, numbers, in, at, input);
		return width;
	}
	tnp_mlp(model, &encoder->mlp, n, numbers, scratch + (size_t) n * in, scratch);
	parts_put(n, e->width, scratch, in, at, input);
	return e->width;
}

void
tnp_embed_parts(const TnpModel *model, int n, const float *const *row, const float *y,
				float *scratch, float *tokens)
{
	const TnpConfig *c = &model->config;
	int			in = model->embed_xy.linear[0].in,
				features = c->n_features,
				targets = c->n_targets,
				at = c->observed;
	float	   *input = scratch,
			   *numbers = input + (size_t) n * in,
			   *rest = numbers + (size_t) n * (features > targets ? features : targets);

	for (int i = 0; i < n; i++)
	{
		memcpy(input + (size_t) i * in, model->observed + (y != NULL ? c->observed : 0),
			   c->observed * sizeof(float));
		memcpy(numbers + (size_t) i * features, row[i], features * sizeof(float));
	}
	at += parts_add(model, &c->encode_x, &model->embed_x, n, features, numbers, in, at, input,
					rest);
	for (int i = 0; i < n * targets; i++)
		numbers[i] = y != NULL ? y[i] : 0;
	parts_add(model, &c->encode_y, &model->embed_y, n, targets, numbers, in, at, input, rest);
	tnp_mlp(model, &model->embed_xy, n, input, numbers, tokens);
	if (c->parts_norm)
		model->kernels->norm(&model->embed_norm, n, tokens, tokens);
}
