/*
 * token_widths.c: sizes of what becomes of a row on its way to a token.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/network/token_widths.h"

#include "engine/features/scale.h"
#include "engine/network/mlp.h"

/* Scratch floats per row of one encoder. */
static int
encoder_scratch(const TnpModel *model, const TnpEncoderConfig *config, const TnpEncoder *encoder)
{
	if (config->kind == TNP_ENCODE_ROWS)
		return config->hidden.size[0];
	return 2 * tnp_mlp_width(&encoder->mlp) + model->config.width;
}

int
tnp_feature_embedding_width(const TnpModel *model, const TnpStats *stats)
{
	return model->config.embedder == TNP_CONCAT ? tnp_features_width(model, stats)
		: model->config.width;
}

int
tnp_feature_embedding_scratch(const TnpModel *model)
{
	const TnpConfig *c = &model->config;

	return c->embedder == TNP_CONCAT ? 0 : encoder_scratch(model, &c->encode_x, &model->embed_x);
}

int
tnp_embed_scratch(const TnpModel *model)
{
	const TnpConfig *c = &model->config;

	if (c->embedder == TNP_CONCAT)
		return model->embed_xy.linear[0].in + 2 * tnp_mlp_width(&model->embed_xy);
	return encoder_scratch(model, &c->encode_y, &model->embed_y);
}
