/*
 * set_bind.c: what a configuration with the set encoder may say, and its tensors.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/set_encoder.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

TnpStatus
set_check(const TnpConfig *c, TnpError *error)
{
	const TnpSetConfig *s = &c->set;
	int			wide = s->take_all ? s->readouts * s->width : s->width;
	const TnpRule rules[] = {
		{c->context != TNP_FULL, "the embedder \"set\" needs context \"full\"", NULL, 0, NULL, 0},
		{c->max_features == 0 || c->n_features != 0,
		 "the embedder \"set\" needs inputs.max_features", NULL, 0, NULL, 0},
		{!tnp_scales_inputs(c),
		 "the embedder \"set\" needs inputs.scaling \"prefix\" or \"power\"", NULL, 0, NULL, 0},
		{s->width % s->columns.heads != 0,
		 "embedder.columns.heads must divide embedder.columns.width", "heads", s->columns.heads,
		 "width", s->width},
		{s->width % (2 * s->rows.heads) != 0,
		 "embedder.columns.width must be a multiple of twice embedder.rows.heads", "width",
		 s->width, "heads", s->rows.heads},
		{c->width != wide, "width must be that of the read-outs that embedder.rows.take names",
		 "width", c->width, "read-outs", wide},
	};
	TnpStatus	status = tnp_stack_check(c, error);

	return status == TNP_OK
		? tnp_check_rules(sizeof(rules) / sizeof(rules[0]), rules, error) : status;
}

/* A layer norm, whatever the trunk's norms are. */
static TnpNorm
set_bind_norm(TnpBinder *b, const char *name)
{
	int			width = b->model->config.set.width;
	TnpNorm		norm = {TNP_LAYER_NORM, width, (float) b->model->config.norm_eps, NULL, NULL};
	char		full[96];

	snprintf(full, sizeof(full), "%s.weight", name);
	norm.weight = tnp_bind_tensor(b, full, 1, width, 0, 0);
	snprintf(full, sizeof(full), "%s.bias", name);
	norm.bias = tnp_bind_tensor(b, full, 1, width, 0, 0);
	return norm;
}

static TnpLayer
set_bind_layer(TnpBinder *b, const char *name, int feedforward)
{
	int			c = b->model->config.set.width;
	TnpLayer	layer = {0};
	char		full[96];

#define NAMED(suffix) (snprintf(full, sizeof(full), "%s" suffix, name), full)
	layer.q = tnp_bind_linear(b, NAMED(".attn.q"), c, c, true);
	layer.k = tnp_bind_linear(b, NAMED(".attn.k"), c, c, true);
	layer.v = tnp_bind_linear(b, NAMED(".attn.v"), c, c, true);
	layer.o = tnp_bind_linear(b, NAMED(".attn.o"), c, c, true);
	layer.ff0 = tnp_bind_linear(b, NAMED(".ff.0"), c, feedforward, true);
	layer.ff1 = tnp_bind_linear(b, NAMED(".ff.1"), feedforward, c, true);
	layer.norm1 = set_bind_norm(b, NAMED(".norm1"));
	layer.norm2 = set_bind_norm(b, NAMED(".norm2"));
#undef NAMED
	return layer;
}

static void
set_bind_columns(TnpBinder *b, SetWeights *w)
{
	const TnpSetConfig *s = &b->model->config.set;

	w->cell = tnp_bind_linear(b, "embed.column.in", 1, s->width, true);
	w->columns = tnp_bind_memory(b, (size_t) s->columns.layers * sizeof(SetInduced));
	for (int l = 0; w->columns != NULL && l < s->columns.layers; l++)
	{
		char		name[64];

		snprintf(name, sizeof(name), "embed.column.%d.inducing", l);
		w->columns[l].points = tnp_bind_tensor(b, name, 2, s->inducing, s->width, 0);
		snprintf(name, sizeof(name), "embed.column.%d.a", l);
		w->columns[l].read = set_bind_layer(b, name, s->columns.feedforward);
		snprintf(name, sizeof(name), "embed.column.%d.b", l);
		w->columns[l].write = set_bind_layer(b, name, s->columns.feedforward);
	}
	w->affine[0] = tnp_bind_linear(b, "embed.column.scale", s->width, s->width, true);
	w->affine_norm[0] = set_bind_norm(b, "embed.column.scale_norm");
	w->affine[1] = tnp_bind_linear(b, "embed.column.shift", s->width, s->width, true);
	w->affine_norm[1] = set_bind_norm(b, "embed.column.shift_norm");
}

/* Cosines and sines of rotary positions. */
static void
set_bind_angles(TnpBinder *b, SetWeights *w)
{
	const TnpConfig *c = &b->model->config;
	int			width = c->set.width / c->set.rows.heads,
				pairs = width / 2,
				places = set_tokens(c);

	w->cosine = tnp_bind_floats(b, (size_t) places * pairs);
	w->sine = tnp_bind_floats(b, (size_t) places * pairs);
	for (int i = 0; w->sine != NULL && w->cosine != NULL && i < places * pairs; i++)
	{
		double		angle = i / pairs * pow(c->set.rotary, -2.0 * (i % pairs) / width);

		w->cosine[i] = (float) cos(angle);
		w->sine[i] = (float) sin(angle);
	}
}

static void
set_bind_rows(TnpBinder *b, SetWeights *w)
{
	const TnpSetConfig *s = &b->model->config.set;

	w->readouts = tnp_bind_tensor(b, "embed.row.readout", 2, s->readouts, s->width, 0);
	w->rows = tnp_bind_memory(b, (size_t) s->rows.layers * sizeof(TnpLayer));
	for (int l = 0; w->rows != NULL && l < s->rows.layers; l++)
	{
		char		name[64];

		snprintf(name, sizeof(name), "embed.row.%d", l);
		w->rows[l] = set_bind_layer(b, name, s->rows.feedforward);
	}
	w->rows_norm = set_bind_norm(b, "embed.row.norm");
	set_bind_angles(b, w);
}

/* Sinks as states, which have no cells. */
static const float *
set_bind_sinks(TnpBinder *b)
{
	const TnpConfig *c = &b->model->config;
	int			wide = c->family->state_width(b->model);
	const float *given = tnp_bind_tensor(b, "sinks", 2, c->sinks, c->width, 0);
	float	   *states = tnp_bind_floats(b, (size_t) c->sinks * wide);

	for (int i = 0; given != NULL && states != NULL && i < c->sinks; i++)
		memcpy(states + (size_t) i * wide, given + (size_t) i * c->width,
			   c->width * sizeof(float));
	return states;
}

void
set_bind(TnpBinder *b)
{
	TnpModel   *m = b->model;
	const TnpConfig *c = &m->config;
	SetWeights *w = tnp_bind_memory(b, sizeof(SetWeights));

	m->own = w;
	if (w == NULL)
		return;
	set_bind_columns(b, w);
	set_bind_rows(b, w);
	if (c->sinks > 0)
		m->sinks = set_bind_sinks(b);
	m->layers = tnp_bind_layers(b, "layer", c->layers, c->width, c->feedforward, c->log_scale);
}
