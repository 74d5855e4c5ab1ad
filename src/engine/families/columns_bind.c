/*
 * columns_bind.c: tensors of TabICL's package, by its names.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/families/columns.h"

#define NAME 128

/* name + "." + part, in a buffer of the caller's; a name that is too long is that of no tensor */
static const char *
part_of(char *buffer, const char *name, const char *part)
{
	if (snprintf(buffer, NAME, "%s.%s", name, part) >= NAME)
		buffer[0] = '\0';
	return buffer;
}

/* A layer norm, which may have no bias. */
static TnpNorm
bind_norm(TnpBinder *b, const char *name, int width)
{
	const ColumnsConfig *c = columns_config(b->model);
	char		full[NAME];
	TnpNorm		norm = {TNP_LAYER_NORM, width, (float) b->model->config.norm_eps, NULL, NULL};

	norm.weight = tnp_bind_tensor(b, part_of(full, name, "weight"), 1, width, 0, 0);
	norm.bias = c->plain_norms ? tnp_bind_floats(b, width)
		: tnp_bind_tensor(b, part_of(full, name, "bias"), 1, width, 0, 0);
	return norm;
}

/* Part 0, 1 or 2 of queries, keys and values that lie in one tensor. */
static TnpLinear
packed_part(TnpBinder *b, const float *weight, const float *bias, int d, int part)
{
	TnpLinear	w = {.in = d, .out = d, .stride = d};

	if (weight == NULL || bias == NULL)
		return w;
	w.weight = weight + (size_t) part * d * d;
	w.bias = bias + (size_t) part * d;
	tnp_bind_pack(b, &w);
	return w;
}

/* Two linears name.0 and name.2. */
static void
bind_mlp(TnpBinder *b, const char *name, int in, int hidden, int out, TnpLinear *linear)
{
	char		full[NAME];

	linear[0] = tnp_bind_linear(b, part_of(full, name, "0"), in, hidden, true);
	linear[1] = tnp_bind_linear(b, part_of(full, name, "2"), hidden, out, true);
}

static void
bind_scaling(TnpBinder *b, const char *name, int d, int heads, ColumnsBlock *block)
{
	bool		each = block->scaling == COLUMNS_SCALE_MLP_EACH
		|| block->scaling == COLUMNS_SCALE_AWARE_EACH,
				aware = block->scaling >= COLUMNS_SCALE_AWARE;
	char		full[NAME];

	if (block->scaling == COLUMNS_SCALE_NONE)
		return;
	if (block->scaling == COLUMNS_SCALE_HEADS)
	{
		block->factors = tnp_bind_tensor(b, part_of(full, name, "scales"), 1, heads, 0, 0);
		return;
	}
	bind_mlp(b, part_of(full, name, aware ? "base_mlp" : "mlp"), 1, COLUMNS_SCALE_HIDDEN,
			 each ? d : heads, block->base);
	if (aware)
		bind_mlp(b, part_of(full, name, "query_mlp"), d / heads, COLUMNS_SCALE_HIDDEN,
				 each ? d / heads : 1, block->aware);
}

static void
bind_block(TnpBinder *b, const char *name, int d, int heads, ColumnsScaling scaling,
		   ColumnsBlock *block)
{
	int			hidden = d * columns_config(b->model)->ff_factor;
	char		full[NAME];
	const float *weight = tnp_bind_tensor(b, part_of(full, name, "attn.in_proj_weight"), 2, 3 * d,
										  d, 0),
			   *bias = tnp_bind_tensor(b, part_of(full, name, "attn.in_proj_bias"), 1, 3 * d, 0, 0);

	block->layer.q = packed_part(b, weight, bias, d, 0);
	block->layer.k = packed_part(b, weight, bias, d, 1);
	block->layer.v = packed_part(b, weight, bias, d, 2);
	block->layer.o = tnp_bind_linear(b, part_of(full, name, "attn.out_proj"), d, d, true);
	block->layer.ff0 = tnp_bind_linear(b, part_of(full, name, "linear1"), d, hidden, true);
	block->layer.ff1 = tnp_bind_linear(b, part_of(full, name, "linear2"), hidden, d, true);
	block->layer.norm1 = bind_norm(b, part_of(full, name, "norm1"), d);
	block->layer.norm2 = bind_norm(b, part_of(full, name, "norm2"), d);
	block->scaling = scaling;
	bind_scaling(b, part_of(full, name, "attn.ssmax_layer"), d, heads, block);
}

static ColumnsBlock *
bind_blocks(TnpBinder *b, const char *name, int n, int d, int heads, ColumnsScaling scaling)
{
	ColumnsBlock *blocks = tnp_bind_memory(b, n * sizeof(ColumnsBlock));

	for (int i = 0; blocks != NULL && i < n; i++)
	{
		char		full[NAME];

		snprintf(full, sizeof(full), "%s.blocks.%d", name, i);
		bind_block(b, full, d, heads, scaling, &blocks[i]);
	}
	return blocks;
}

static ColumnsTarget
bind_target(TnpBinder *b, const char *name, int width)
{
	int			classes = columns_config(b->model)->max_classes,
				n = classes > 0 ? classes : 1;
	char		full[NAME];

	return (ColumnsTarget) {
		tnp_bind_tensor(b, part_of(full, name, "weight"), 2, width, n, 0),
		tnp_bind_tensor(b, part_of(full, name, "bias"), 1, width, 0, 0), width, n
	};
}

static void
bind_columns(TnpBinder *b, const ColumnsConfig *c, ColumnsWeights *w)
{
	w->cell = tnp_bind_linear(b, "col_embedder.in_linear", c->group_size, c->embed, true);
	w->columns = tnp_bind_memory(b, c->column_blocks * sizeof(ColumnsInduced));
	for (int i = 0; w->columns != NULL && i < c->column_blocks; i++)
	{
		char		name[NAME],
					full[NAME];

		snprintf(name, sizeof(name), "col_embedder.tf_col.blocks.%d", i);
		w->columns[i].points = tnp_bind_tensor(b, part_of(full, name, "ind_vectors"), 2,
											   c->inducing, c->embed, 0);
		bind_block(b, part_of(full, name, "multihead_attn1"), c->embed, c->column_heads,
				   c->column_scaling, &w->columns[i].read);
		bind_block(b, part_of(full, name, "multihead_attn2"), c->embed, c->column_heads,
				   COLUMNS_SCALE_NONE, &w->columns[i].write);
	}
	if (c->target_aware)
		w->column_target = bind_target(b, "col_embedder.y_encoder", c->embed);
	if (!c->affine)
		return;
	w->affine[0] = tnp_bind_linear(b, "col_embedder.out_w", c->embed, c->embed, true);
	w->affine_norm[0] = bind_norm(b, "col_embedder.ln_w", c->embed);
	w->affine[1] = tnp_bind_linear(b, "col_embedder.out_b", c->embed, c->embed, true);
	w->affine_norm[1] = bind_norm(b, "col_embedder.ln_b", c->embed);
}

/* Frequencies of the rotary positions: the file's, which are of 32 bits, or from their base. */
static const float *
bind_frequencies(TnpBinder *b, const ColumnsConfig *c)
{
	static const char name[] = "row_interactor.tf_row.rope.freqs";
	int			pairs = c->embed / c->row_heads / 2;
	float	   *made;

	if (tnp_file_find(b->file, name) != NULL)
		return tnp_bind_tensor(b, name, 1, pairs, 0, 0);
	made = tnp_bind_floats(b, pairs);
	for (int i = 0; made != NULL && i < pairs; i++)
		made[i] = (float) pow(c->rotary_base, -(double) i / pairs);
	return made;
}

void
columns_bind(TnpBinder *b)
{
	const ColumnsConfig *c = columns_config(b->model);
	ColumnsWeights *w = tnp_bind_memory(b, sizeof(ColumnsWeights));
	int			d = columns_width(c);

	if (w == NULL)
		return;
	b->model->own = w;
	bind_columns(b, c, w);
	w->cls = tnp_bind_tensor(b, "row_interactor.cls_tokens", 2, c->cls, c->embed, 0);
	w->frequencies = bind_frequencies(b, c);
	w->rows = bind_blocks(b, "row_interactor.tf_row", c->row_blocks, c->embed, c->row_heads,
						  COLUMNS_SCALE_NONE);
	w->rows_norm = bind_norm(b, "row_interactor.out_ln", c->embed);
	w->context = bind_blocks(b, "icl_predictor.tf_icl", c->context_blocks, d, c->context_heads,
							 c->context_scaling);
	w->context_norm = bind_norm(b, "icl_predictor.ln", d);
	w->context_target = bind_target(b, "icl_predictor.y_encoder", d);
	bind_mlp(b, "icl_predictor.decoder", d, 2 * d,
			 c->max_classes > 0 ? c->max_classes : c->quantiles, w->decoder);
}
