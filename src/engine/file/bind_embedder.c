/*
 * bind_embedder.c: binds the tensors of embedders (docs/model-format.md sections 4 and 5).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/file/bind.h"

#include <stdio.h>
#include <string.h>

/* The weights of regressions' regression features, if there are any. */
static const float *
bind_regression_features(TnpBinder *b, const char *name, int hidden, int width)
{
	return width > 0 ? tnp_bind_tensor(b, name, 2, hidden, width, 0) : NULL;
}

/* Copy columns [w->out, n] into a linear's weight, the first one as column `at`. */
static void
put_columns(const TnpLinear *w, float *weight, int at, const float *columns, int n)
{
	for (int o = 0; n > 0 && o < w->out; o++)
		memcpy(weight + (size_t) o * w->stride + at, columns + (size_t) o * n, n * sizeof(float));
}

/*
 * The slot matrices [max_features, hidden, cell] become one linear [hidden, cell * max_features],
 * so that a row with fewer columns is the same linear with a shorter input. The regression
 * features' weights stand in front of them.
 */
static TnpLinear
bind_slots(TnpBinder *b, int max_features, int hidden)
{
	int			regression_features = tnp_regression_features_width(b->model),
				cell = tnp_cell_width(b->model),
				in = regression_features + cell * max_features;
	TnpLinear	w = {in, hidden, in, NULL, NULL, NULL, NULL};
	const float *slots = tnp_bind_tensor(b, "embed.x.slot.weight", 3, max_features, hidden, cell),
			   *ridge = bind_regression_features(b, "embed.x.ridge.weight", hidden,
												 tnp_ridge_width(b->model)),
			   *process = bind_regression_features(b, "embed.x.process.weight", hidden,
												   tnp_process_width(b->model)),
			   *logistic = bind_regression_features(b, "embed.x.logistic.weight", hidden,
													tnp_logistic_width(b->model));
	float	   *weight;

	w.bias = tnp_bind_tensor(b, "embed.x.slot.bias", 1, hidden, 0, 0);
	if (b->status != TNP_OK)
		return w;
	weight = tnp_bind_floats(b, (size_t) hidden * w.stride);
	if (weight == NULL)
		return w;
	for (int f = 0; f < max_features; f++)
		for (int o = 0; o < hidden; o++)
			memcpy(weight + (size_t) o * w.stride + regression_features + f * cell,
				   slots + ((size_t) f * hidden + o) * cell, cell * sizeof(float));
	put_columns(&w, weight, 0, ridge, tnp_ridge_width(b->model));
	put_columns(&w, weight, tnp_ridge_width(b->model), process, tnp_process_width(b->model));
	put_columns(&w, weight, tnp_ridge_width(b->model), logistic, tnp_logistic_width(b->model));
	w.weight = weight;
	tnp_bind_pack(b, &w);
	return w;
}

static void
bind_tokeniser(TnpBinder *b)
{
	TnpModel   *m = b->model;
	const TnpConfig *c = &m->config;
	const TnpEncoderConfig *e = &c->encode_x;
	TnpTokeniser *t = &m->tokeniser;
	int			dc = e->token_width;
	TnpHidden	cell_hidden = {1, {2 * dc}};

	t->slot = bind_slots(b, c->max_features, e->hidden.size[0]);
	t->out = tnp_bind_linear(b, "embed.x.out", e->hidden.size[0], c->width, true);
	if (dc == 0)
		return;
	t->cell = tnp_bind_mlp(b, "embed.x.cell", tnp_cell_width(m), &cell_hidden, dc,
					   c->embedder_activation);
	t->code = tnp_bind_tensor(b, "embed.x.code", 2, c->max_features, dc, 0);
	t->readout = tnp_bind_tensor(b, "embed.x.readout", 2, e->token_readouts, dc, 0);
	t->blocks = tnp_bind_layers(b, "embed.x.block", e->token_layers, dc, e->token_feedforward,
								false);
	t->pool = tnp_bind_linear(b, "embed.x.pool", e->token_readouts * dc, c->width, true);
}

static TnpEncoder
bind_encoder(TnpBinder *b, const char *name, const TnpEncoderConfig *e, int in)
{
	const TnpConfig *c = &b->model->config;
	TnpEncoder	encoder;
	TnpHidden	none = {0, {0}};
	char		full[64];

	memset(&encoder, 0, sizeof(encoder));
	switch (e->kind)
	{
		case TNP_ENCODE_LINEAR:
			/* a linear is named without an index */
			encoder.mlp.n = 1;
			encoder.mlp.activation = c->embedder_activation;
			encoder.mlp.linear[0] = tnp_bind_linear(b, name, in, c->width, true);
			break;
		case TNP_ENCODE_MLP:
			encoder.mlp = tnp_bind_mlp(b, name, in, &e->hidden, c->width, c->embedder_activation);
			break;
		case TNP_ENCODE_SKIP_MLP:
			snprintf(full, sizeof(full), "%s.first", name);
			encoder.first = tnp_bind_linear(b, full, in, c->width, true);
			snprintf(full, sizeof(full), "%s.rest", name);
			encoder.mlp = tnp_bind_mlp(b, full, c->width, e->hidden.n > 0 ? &e->hidden : &none,
								   c->width, c->embedder_activation);
			break;
		case TNP_ENCODE_ROWS:
			bind_tokeniser(b);
			break;
		case TNP_ENCODE_CLASSES:
			snprintf(full, sizeof(full), "%s.weight", name);
			encoder.table = tnp_bind_tensor(b, full, 2, c->head_outputs, c->width, 0);
			break;
		case TNP_ENCODE_NONE:
		case TNP_ENCODE_IDENTITY:
			break;				/* parts are bound apart */
	}
	return encoder;
}

/* One part of an embedder of parts; how many numbers come out of it. */
static int
bind_part(TnpBinder *b, const char *name, const TnpEncoderConfig *e, int in, TnpEncoder *encoder)
{
	if (e->kind == TNP_ENCODE_NONE || e->kind == TNP_ENCODE_IDENTITY)
		return e->kind == TNP_ENCODE_NONE ? 0 : in;
	if (e->kind == TNP_ENCODE_LINEAR)
	{
		encoder->mlp.n = 1;
		encoder->mlp.linear[0] = tnp_bind_linear(b, name, in, e->width, true);
	}
	else
		encoder->mlp = tnp_bind_mlp(b, name, in, &e->hidden, e->width,
									b->model->config.embedder_activation);
	return e->width;
}

static void
bind_parts(TnpBinder *b)
{
	TnpModel   *m = b->model;
	const TnpConfig *c = &m->config;
	int			in = c->observed;

	m->observed = tnp_bind_tensor(b, "embed.observed", 2, 2, c->observed, 0);
	in += bind_part(b, "embed.x", &c->encode_x, c->n_features, &m->embed_x);
	in += bind_part(b, "embed.y", &c->encode_y, c->n_targets, &m->embed_y);
	m->embed_xy = tnp_bind_mlp(b, "embed.xy", in, &c->concat_hidden, c->width,
							   c->embedder_activation);
	if (c->parts_norm)
		m->embed_norm = tnp_bind_norm(b, "embed.norm", c->width);
}

void
tnp_bind_embedder(TnpBinder *b)
{
	TnpModel   *m = b->model;
	const TnpConfig *c = &m->config;

	if (c->embedder == TNP_CONCAT)
	{
		m->embed_xy = tnp_bind_mlp(b, "embed.xy", c->n_features + c->n_targets
							   + (c->concat_flag ? 1 : 0),
							   &c->concat_hidden, c->width, c->embedder_activation);
		return;
	}
	if (c->embedder == TNP_PARTS)
	{
		bind_parts(b);
		return;
	}
	/* what a set encoder has of features is bound with its stack */
	if (c->embedder != TNP_SET)
		m->embed_x = bind_encoder(b, "embed.x", &c->encode_x, c->n_features);
	m->embed_y = bind_encoder(b, "embed.y", &c->encode_y, c->n_targets);
	if (c->roles)
		m->role = tnp_bind_tensor(b, "role", 2, 3, c->width, 0);
	if (c->positions > 0)
		m->position = tnp_bind_tensor(b, "pos", 2, c->positions, c->width, 0);
}
