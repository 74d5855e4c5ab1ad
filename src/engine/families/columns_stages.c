/*
 * columns_stages.c: the arithmetic of tiles: cells and targets become embeddings, states go through
 * blocks, the embeddings of a row become its vector.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>
#include <string.h>

#include "engine/families/columns.h"
#include "engine/network/row_stage.h"

/* ---- what a call shares ---------------------------------------------------------------------- */

/* Exact GELU in double precision, for the few numbers that depend on ln n. */
static double
gelu(double x)
{
	return 0.5 * x * (1.0 + erf(x * 0.70710678118654752440));
}

/*
 * Factors [width] of the queries of a block for n keys: per head or feature, 1 where it does not
 * scale.
 */
static void
base_factors(const ColumnsBlock *b, int heads, int width, int64_t n, float *factors)
{
	double		log_n = log(n > 1 ? (double) n : 1.0),
				hidden[COLUMNS_SCALE_HIDDEN];
	int			head_width = width / heads;

	for (int i = 0; b->base[0].weight != NULL && i < COLUMNS_SCALE_HIDDEN; i++)
		hidden[i] = gelu(b->base[0].weight[i] * log_n + b->base[0].bias[i]);
	for (int i = 0; i < width; i++)
	{
		double		factor = 1;

		if (b->scaling == COLUMNS_SCALE_HEADS)
			factor = b->factors[i / head_width] * log_n;
		else if (b->scaling != COLUMNS_SCALE_NONE)
		{
			int			out = b->base[1].out == width ? i : i / head_width;

			factor = b->base[1].bias[out];
			for (int k = 0; k < COLUMNS_SCALE_HIDDEN; k++)
				factor += b->base[1].weight[(size_t) out * b->base[1].stride + k] * hidden[k];
		}
		factors[i] = (float) factor;
	}
}

TnpStatus
columns_call_make(const TnpModel *model, int columns, int64_t n, ColumnsCall *call,
				  TnpError *error)
{
	const ColumnsConfig *c = columns_config(model);
	const ColumnsWeights *w = columns_weights(model);
	int			groups = columns_groups(c, columns),
				pairs = c->embed / c->row_heads / 2,
				width = columns_width(c);
	size_t		rotary = (size_t) (c->cls + groups) * pairs;

	*call = (ColumnsCall) {.model = model, .columns = columns, .groups = groups, .n = n};
	call->memory = tnp_alloc(&model->env, 2 * rotary + (size_t) c->column_blocks * c->embed
							 + (size_t) c->context_blocks * width, sizeof(float));
	if (call->memory == NULL)
		return tnp_no_memory(error);
	call->cosine = call->memory;
	call->sine = call->cosine + rotary;
	call->column_base = call->sine + rotary;
	call->context_base = call->column_base + c->column_blocks * c->embed;
	for (int i = 0; i < c->cls + groups; i++)
		for (int f = 0; f < pairs; f++)
		{
			double		angle = (double) i * w->frequencies[f];

			call->cosine[i * pairs + f] = (float) cos(angle);
			call->sine[i * pairs + f] = (float) sin(angle);
		}
	for (int i = 0; i < c->column_blocks; i++)
		base_factors(&w->columns[i].read, c->column_heads, c->embed, n,
					 call->column_base + i * c->embed);
	for (int i = 0; i < c->context_blocks; i++)
		base_factors(&w->context[i], c->context_heads, width, n, call->context_base + i * width);
	return TNP_OK;
}

void
columns_call_free(ColumnsCall *call)
{
	tnp_free(&call->model->env, call->memory);
}

#define PARTS 8

/* ---- scratch --------------------------------------------------------------------------------- */

/* Floats that attention needs of a tile in the column and the row stage. */
static size_t
larger_attention(const TnpModel *model, const ColumnsConfig *c, int e)
{
	size_t		columns = model->kernels->attend_floats(c->column_heads, e / c->column_heads, 1,
														TNP_TILE),
				rows = model->kernels->attend_floats(c->row_heads, e / c->row_heads, 1, TNP_TILE);

	return columns > rows ? columns : rows;
}

TnpStatus
columns_work_make(const ColumnsCall *call, int64_t rows, int tile, ColumnsWork *work,
				  TnpError *error)
{
	const TnpModel *model = call->model;
	const ColumnsConfig *c = columns_config(model);
	int			e = c->embed,
				width = columns_width(c),
				column_head = e / c->column_heads,
				wide_head = width / c->context_heads,
				heads = c->column_heads > c->row_heads ? c->column_heads : c->row_heads,
				slots = c->cls + call->groups;
	size_t		hidden = (size_t) (2 * width > COLUMNS_SCALE_HIDDEN ? 2 * width
								   : COLUMNS_SCALE_HIDDEN),
				modulation = column_head > wide_head ? column_head : wide_head,
				outputs = model->config.head_outputs;
	TnpBlockSizes narrow = {e, e, e, e * c->ff_factor, heads, 0, 1},
				wide = {width, width, width, width * c->ff_factor, c->context_heads, 0, 1};
	TnpCacheShape shape = {.layers = 1, .heads = 1, .key_width = e, .value_width = e,
						   .number = model->kernels->number};
	size_t		floats[PARTS] = {(size_t) slots * e, (size_t) rows * e,
							(size_t) TNP_TILE * (call->columns > c->group_size ? call->columns
												 : c->group_size),
							TNP_TILE * hidden, TNP_TILE * (modulation + outputs),
							(size_t) TNP_TILE * width, (size_t) tile * call->groups * e,
							(size_t) tile * call->columns},
				total = 0;
	float	  **parts[PARTS] = {&work->tokens, &work->column, &work->cells, &work->hidden,
						   &work->modulation, &work->h, &work->embedded, &work->query};
	TnpStatus	status;

	memset(work, 0, sizeof(*work));
	for (int i = 0; i < PARTS; i++)
		total += (floats[i] + 31) / 16 * 16;
	work->memory = tnp_alloc(&model->env, total + 16, sizeof(float));
	if (work->memory == NULL)
		return tnp_no_memory(error);
	for (int i = 0; i < PARTS; i++)
	{
		*parts[i] = i == 0 ? (float *) work->memory + (64 - (uintptr_t) work->memory % 64) % 64
			/ sizeof(float) : *parts[i - 1] + (floats[i - 1] + 31) / 16 * 16;
	}

	/* the heads of the column and of the row stage may differ: `more` serves attention in both */
	narrow.more = (int) ((larger_attention(model, c, e) + TNP_TILE - 1) / TNP_TILE);
	status = tnp_block_work_make(model, &narrow, TNP_TILE, &work->narrow, error);
	if (status == TNP_OK)
		work->narrow.attend = work->narrow.more;
	if (status == TNP_OK)
		status = tnp_block_work_make(model, &wide, TNP_TILE, &work->wide, error);
	if (status == TNP_OK)
		status = tnp_cache_make(&model->env, &shape, TNP_BLOCK, rows > slots ? rows : slots,
								&work->keys, error);
	if (status != TNP_OK)
		columns_work_free(model, work);
	return status;
}

void
columns_work_free(const TnpModel *model, ColumnsWork *work)
{
	tnp_block_work_free(model, &work->narrow);
	tnp_block_work_free(model, &work->wide);
	tnp_cache_free(&model->env, &work->keys);
	tnp_free(&model->env, work->memory);
	memset(work, 0, sizeof(*work));
}

/* ---- embeddings ------------------------------------------------------------------------------ */

/* The column at place i of group g, -1 for padding. */
static int
group_column(const ColumnsConfig *c, int columns, int g, int i)
{
	if (c->grouping == COLUMNS_CIRCULAR)
		return (int) (((int64_t) g + ((int64_t) 1 << i)) % columns);
	if (c->grouping == COLUMNS_PADDED)
		return g * c->group_size + i < columns ? g * c->group_size + i : -1;
	return g;
}

void
columns_embed_cells(const ColumnsCall *call, int n, const float *cells, int g, ColumnsWork *work,
					float *e)
{
	const ColumnsConfig *c = columns_config(call->model);

	for (int r = 0; r < n; r++)
		for (int i = 0; i < c->group_size; i++)
		{
			int			column = group_column(c, call->columns, g, i);

			work->cells[r * c->group_size + i] = column < 0 ? 0
				: cells[(size_t) r * call->columns + column];
		}
	call->model->kernels->linear(&columns_weights(call->model)->cell, n, work->cells, TNP_IDENTITY,
								 false, e);
}

void
columns_add_target(const ColumnsTarget *t, double y, float *state)
{
	for (int i = 0; i < t->width; i++)
		state[i] += (t->n == 1 ? t->weight[i] * (float) y : t->weight[(size_t) i * t->n + (int) y])
			+ t->bias[i];
}

void
columns_affine(const ColumnsCall *call, int n, const float *cells, int g, ColumnsWork *work,
			   float *e)
{
	const TnpKernels *kernels = call->model->kernels;
	const ColumnsConfig *c = columns_config(call->model);
	const ColumnsWeights *w = columns_weights(call->model);
	float	   *weights = work->narrow.u,
			   *biases = work->narrow.att;

	if (!c->affine)
		return;
	kernels->linear(&w->affine[0], n, e, TNP_IDENTITY, false, weights);
	kernels->norm(&w->affine_norm[0], n, weights, weights);
	kernels->linear(&w->affine[1], n, e, TNP_IDENTITY, false, biases);
	kernels->norm(&w->affine_norm[1], n, biases, biases);
	for (int r = 0; r < n; r++)
		for (int i = 0; i < c->embed; i++)
		{
			size_t		at = (size_t) r * c->embed + i;

			e[at] = cells[(size_t) r * call->columns + g] * weights[at] + biases[at];
		}
}

/* ---- blocks ---------------------------------------------------------------------------------- */

#define LARGEST_TANH 15.0f		/* beyond it 1 + tanh is 0 or 2 in float32 */
#define ROUNDER 12582912.0f		/* 1.5 * 2^23: adding it rounds to a whole number */

/*
 * x := 1 + tanh(x) = 2 e / (e + 1), e = exp(2 x) = 2^n 2^f with whole n and |f| <= 1/2, in which
 * the series of 2^f is taken to where it is exact in float32; what is not finite becomes NaN. In
 * operations that compilers turn into vectors: the C library's tanhf takes a tenth of an encoding.
 */
static void
one_plus_tanh(int n, float *x)
{
	for (int i = 0; i < n; i++)
	{
		float		kept = x[i] - x[i],
					v = x[i] > -LARGEST_TANH ? x[i] : -LARGEST_TANH,
					t = (v < LARGEST_TANH ? v : LARGEST_TANH) * 2.88539008f,
					whole = (t + ROUNDER) - ROUNDER,
					z = (t - whole) * 0.693147181f,
					series = 1 + z * (1 + z * (1 / 2.0f + z * (1 / 6.0f + z * (1 / 24.0f + z
							* (1 / 120.0f + z * (1 / 720.0f + z * (1 / 5040.0f)))))));
		uint32_t	bits = (uint32_t) ((int32_t) whole + 127) << 23;
		float		power,
					e;

		memcpy(&power, &bits, sizeof(power));
		e = power * series;
		x[i] = 2 * e / (e + 1) + kept;
	}
}

/* 1 + tanh of what the MLP makes of the queries of all heads, into q. */
static void
modulate(const TnpModel *model, const ColumnsBlock *b, int vectors, int head_width, float *q,
		 ColumnsWork *work)
{
	const TnpKernels *kernels = model->kernels;
	int			out = b->aware[1].out;

	for (int start = 0; start < vectors; start += TNP_TILE)
	{
		int			n = vectors - start < TNP_TILE ? vectors - start : TNP_TILE;
		float	   *some = q + (size_t) start * head_width;

		kernels->linear(&b->aware[0], n, some, TNP_GELU, false, work->hidden);
		kernels->linear(&b->aware[1], n, work->hidden, TNP_IDENTITY, false, work->modulation);
		one_plus_tanh(n * out, work->modulation);
		if (out > 1)
			for (int i = 0; i < n * out; i++)
				some[i] *= work->modulation[i];
		else
			for (int r = 0; r < n; r++)
				for (int f = 0; f < head_width; f++)
					some[r * head_width + f] *= work->modulation[r];
	}
}

/* Queries times what the number of keys and they themselves say of them. */
static void
scale_queries(const TnpModel *model, const ColumnsBlock *b, int heads, int n, const float *factors,
			  float *q, ColumnsWork *work)
{
	int			d = b->layer.q.out;

	if (b->scaling == COLUMNS_SCALE_NONE)
		return;
	if (b->scaling >= COLUMNS_SCALE_AWARE)
		modulate(model, b, n * heads, d / heads, q, work);
	for (int r = 0; r < n; r++)
		for (int i = 0; i < d; i++)
			q[(size_t) r * d + i] *= factors[i];
}

void
columns_block(const TnpModel *model, const ColumnsBlock *b, int heads, int n, float *h,
			  const void *k, const void *v, int64_t m, const float *factors, ColumnsWork *work,
			  TnpBlockWork *blocks)
{
	int64_t		visible[TNP_TILE];
	TnpKeys		own[TNP_TILE];
	TnpView		view = tnp_view_of_all(n, k, v, m, visible, own);
	TnpAttention attention;

	tnp_block_query(model, &b->layer, heads, false, n, h, &view, blocks, &attention);
	scale_queries(model, b, heads, n, factors, blocks->q, work);
	model->kernels->attend(&attention);
	tnp_block_finish(model, &b->layer, false, n, h, blocks);
}

bool
columns_store(const TnpModel *model, const ColumnsBlock *b, int n, const float *h,
			  TnpKvCache *cache, int64_t slot, TnpBlockWork *blocks)
{
	tnp_block_keys(model, &b->layer, false, n, h, blocks);
	return tnp_cache_put_rows(model->kernels, cache, 0, slot, n, blocks->q, blocks->att);
}

/* ---- row stage ------------------------------------------------------------------------------- */

/* A cache of one layer with its numbers by heads. */
static void
split_heads(TnpKvCache *cache, int heads, int d)
{
	cache->shape.heads = heads;
	cache->shape.key_width = cache->shape.value_width = d / heads;
}

bool
columns_row(const ColumnsCall *call, const float *embedded, ColumnsWork *work, float *r)
{
	const TnpModel *model = call->model;
	const ColumnsConfig *c = columns_config(model);
	const ColumnsWeights *w = columns_weights(model);
	int			e = c->embed,
				tokens = c->cls + call->groups;
	/* after the last block only the CLS tokens are read */
	TnpRowStage stage = {c->row_blocks, c->row_heads, e, &w->rows[0].layer, sizeof(ColumnsBlock),
						 model->config.activation, c->cls, call->cosine, call->sine,
						 !c->interleaved};

	memcpy(work->tokens, w->cls, (size_t) c->cls * e * sizeof(float));
	memcpy(work->tokens + (size_t) c->cls * e, embedded, (size_t) call->groups * e * sizeof(float));
	split_heads(&work->keys, c->row_heads, e);
	if (!tnp_row_stage(model, &stage, tokens, work->tokens, &work->keys, &work->narrow))
		return false;
	model->kernels->norm(&w->rows_norm, c->cls, work->tokens, r);
	return true;
}
