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
	const TnpConfig *c = &model->config;
	int			place = c->family->place_width != NULL ? c->family->place_width(model) : 0;

	return (tnp_embeds_features(c) ? tnp_features_width(model, stats) : c->width) + place;
}

int
tnp_feature_embedding_scratch(const TnpModel *model)
{
	const TnpConfig *c = &model->config;

	return tnp_embeds_features(c) ? 0 : encoder_scratch(model, &c->encode_x, &model->embed_x);
}

/* Of an embedder of parts: its input, a part before and after, and the widest MLP. */
static int
parts_scratch(const TnpModel *model)
{
	const TnpMlp *mlps[3] = {&model->embed_x.mlp, &model->embed_y.mlp, &model->embed_xy};
	int			in = model->embed_xy.linear[0].in,
				most = 0;

	for (int i = 0; i < 3; i++)
		if (mlps[i]->n > 0 && tnp_mlp_width(mlps[i]) > most)
			most = tnp_mlp_width(mlps[i]);
	return in + model->config.n_features + model->config.n_targets + in + 2 * most;
}

int
tnp_embed_scratch(const TnpModel *model)
{
	const TnpConfig *c = &model->config;

	if (c->embedder == TNP_PARTS)
		return parts_scratch(model);
	if (c->embedder == TNP_CONCAT)
		return model->embed_xy.linear[0].in + 2 * tnp_mlp_width(&model->embed_xy);
	return encoder_scratch(model, &c->encode_y, &model->embed_y);
}
