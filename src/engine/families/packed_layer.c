/*
 * packed_layer.c: what the packed stack's variants share: widths, weights of a layer, states with a
 * place, and all of a block but its attention (docs/families.md, "Widths and values of attention").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/packed.h"

#include <stdio.h>
#include <string.h>

/* ---- sizes ----------------------------------------------------------------------------------- */

int
tnp_packed_query_width(const TnpConfig *c)
{
	int			width = tnp_packed_config(c)->query_width;

	return width > 0 ? width : c->width;
}

int
tnp_packed_value_width(const TnpConfig *c)
{
	int			width = tnp_packed_config(c)->value_width;

	return width > 0 ? width : c->width;
}

int
tnp_widest_hidden(const TnpHidden *hidden)
{
	int			most = 1;

	for (int i = 0; i < hidden->n; i++)
		most = hidden->size[i] > most ? hidden->size[i] : most;
	return most;
}

TnpStatus
tnp_packed_check(const TnpConfig *c, TnpError *error)
{
	int			queries = tnp_packed_query_width(c),
				values = tnp_packed_value_width(c);
	const TnpRule rules[] = {
		{c->sinks > 0,
		 "attention of another kind, of widths of its own, or with a kernel, excludes "
		 "attention.sinks", "attention.sinks", c->sinks, NULL, 0},
		{c->log_scale,
		 "attention of another kind, of widths of its own, or with a kernel, excludes "
		 "attention.log_scale", NULL, 0, NULL, 0},
		{queries % c->heads != 0, "heads must divide attention.query_width", "heads", c->heads,
		 "attention.query_width", queries},
		{values % c->heads != 0, "heads must divide attention.value_width", "heads", c->heads,
		 "attention.value_width", values},
		{c->min_rows < 1, "min_rows must be at least 1 in a model without attention.sinks",
		 "min_rows", c->min_rows, NULL, 0},
	};

	return tnp_check_rules(sizeof(rules) / sizeof(rules[0]), rules, error);
}

/* ---- weights --------------------------------------------------------------------------------- */

/* attn.v, or the MLP attn.v.0, attn.v.1, … */
static TnpMlp
packed_bind_values(TnpBinder *b, const char *name)
{
	const TnpConfig *c = &b->model->config;
	const TnpPackedConfig *p = tnp_packed_config(c);
	bool		bias = c->bias == TNP_BIAS_ALL;
	TnpMlp		mlp = {.n = p->value_hidden.n + 1, .activation = p->value_activation
					   != TNP_IDENTITY ? (TnpActivation) p->value_activation : c->activation};
	int			in = c->width;

	for (int i = 0; i < mlp.n; i++)
	{
		int			out = i < p->value_hidden.n ? p->value_hidden.size[i]
			: tnp_packed_value_width(c);
		char		full[64];

		if (mlp.n > 1)
			snprintf(full, sizeof(full), "%s.attn.v.%d", name, i);
		else
			snprintf(full, sizeof(full), "%s.attn.v", name);
		mlp.linear[i] = tnp_bind_linear(b, full, in, out, bias);
		in = out;
	}
	return mlp;
}

void
tnp_packed_bind_layer(TnpBinder *b, const char *name, bool projected, TnpPackedLayer *layer)
{
	const TnpConfig *c = &b->model->config;
	bool		bias = c->bias == TNP_BIAS_ALL;
	char		full[64];
	int			d = c->width,
				queries = tnp_packed_query_width(c);

#define NAMED(suffix) (snprintf(full, sizeof(full), "%s" suffix, name), full)
	if (projected)
	{
		layer->q = tnp_bind_linear(b, NAMED(".attn.q"), d, queries, bias);
		layer->k = tnp_bind_linear(b, NAMED(".attn.k"), d, queries, bias);
		layer->o = tnp_bind_linear(b, NAMED(".attn.o"), tnp_packed_value_width(c), d,
								   c->bias != TNP_BIAS_NONE);
	}
	layer->v = packed_bind_values(b, name);
	layer->ff0 = tnp_bind_linear(b, NAMED(".ff.0"), d, c->feedforward, true);
	layer->ff1 = tnp_bind_linear(b, NAMED(".ff.1"), c->feedforward, d, true);
	layer->norm1 = tnp_bind_norm(b, NAMED(".norm1"), d);
	layer->norm2 = tnp_bind_norm(b, NAMED(".norm2"), d);
#undef NAMED
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static int
packed_place_width(const TnpModel *model)
{
	const TnpFamily *family = model->config.family;

	return family->place_width != NULL ? family->place_width(model) : 0;
}

int
tnp_packed_state_width(const TnpModel *model)
{
	return model->config.width + packed_place_width(model);
}

int
tnp_packed_embed_scratch(const TnpModel *model)
{
	return tnp_embed_scratch(model) + model->config.width;
}

void
tnp_packed_embed(const TnpModel *model, int n, const float *const *row, const float *y,
				 TnpRole role, const int *position, float *scratch, float *states)
{
	const TnpConfig *c = &model->config;
	int			d = c->width,
				place = packed_place_width(model),
				known = tnp_embeds_features(c) ? c->n_features : d;

	tnp_embed(model, n, row, y, role, position, scratch + (size_t) n * d, scratch);
	for (int i = 0; i < n; i++)
	{
		float	   *state = states + (size_t) i * (d + place);

		memcpy(state, scratch + (size_t) i * d, d * sizeof(float));
		if (place > 0)
			memcpy(state + d, row[i] + known, place * sizeof(float));
	}
}

/* ---- the layer ------------------------------------------------------------------------------- */

float *
tnp_packed_gather(const TnpModel *model, int n, const float *h, float *to)
{
	int			d = model->config.width,
				width = tnp_packed_state_width(model);

	for (int i = 0; i < n; i++)
		memcpy(to + (size_t) i * d, h + (size_t) i * width, d * sizeof(float));
	return to;
}

const float *
tnp_packed_input(const TnpModel *model, const TnpPackedLayer *l, int n, const float *h,
				 TnpBlockWork *work)
{
	const float *state = tnp_packed_gather(model, n, h, work->more);

	if (model->config.post_norm)
		return state;
	model->kernels->norm(&l->norm1, n, state, work->u);
	return work->u;
}

void
tnp_packed_finish(const TnpModel *model, const TnpPackedLayer *l, int n, float *state, float *h,
				  TnpBlockWork *work)
{
	const TnpConfig *c = &model->config;
	const TnpKernels *kernels = model->kernels;
	int			width = tnp_packed_state_width(model);
	const float *u = state;

	if (c->post_norm)
		kernels->norm(&l->norm1, n, state, state);
	else
	{
		kernels->norm(&l->norm2, n, state, work->u);
		u = work->u;
	}
	kernels->linear(&l->ff0, n, u, c->activation, false, work->ff);
	kernels->linear(&l->ff1, n, work->ff, TNP_IDENTITY, true, state);
	if (c->post_norm)
		kernels->norm(&l->norm2, n, state, state);
	for (int i = 0; i < n; i++)
		memcpy(h + (size_t) i * width, state + (size_t) i * c->width, c->width * sizeof(float));
}
