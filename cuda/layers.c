/*
 * layers.c: models of which no tile's states fit shared memory, computed layer by layer: states lie
 * in device memory, every linear is one product of the library (gpu.h), and what lies between two
 * of them is a kernel of ours (layered.h). Marginal questions, building and appending; chains of
 * such models are the session's.
 *
 * Everything about one model goes this way, so that an encoding has the same bits however its rows
 * came. A row's bits must depend on nothing else of a call: kernels see to that, and the library is
 * asked for each shape of a model's products, when the model is loaded, whether it does.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "host.h"

#include <stdlib.h>
#include <string.h>

/*
 * Rows that take operands and outputs of products at once: so many that a product fills the device
 * (a few hundred blocks of 128 by 128 outputs), and no more, because each takes the widest layer's
 * row in 32 bits.
 */
#define LAYER_ROWS 4096

int64_t		cuda_layer_rows = 0;
bool		cuda_force_layers = false;

/* Rows of a walk that take all steps together. */
typedef struct Pass
{
	TnpDeviceModel *m;
	int			queue;
	CudaStep	step;
	void	   *work;
	TnpStatus	status;			/* of what failed first: nothing is asked after it */
	TnpError   *error;
} Pass;

static int64_t
whole_blocks(int64_t n)
{
	return (n + GPU_PRODUCT_ROWS - 1) / GPU_PRODUCT_ROWS * GPU_PRODUCT_ROWS;
}

static int
element_of(const CudaModel *s)
{
	return s->precision == 0 ? 2 : 4;
}

static int
row_wide_of(const CudaModel *s)
{
	int			keys = 3 * s->heads * s->head_tiles * 8,
				operand = (s->operand + 7) / 8 * 8;

	return keys > operand ? keys : operand;
}

static int
row_h_of(const CudaModel *s)
{
	return (s->width + 7) / 8 * 8;
}

/* ---- room ------------------------------------------------------------------------------------ */

/* Rows of a pass over a walk. */
static int64_t
rows_of_pass(const CudaWalk *walk)
{
	int64_t		most = cuda_layer_rows > 0 ? cuda_layer_rows : LAYER_ROWS,
				all = whole_blocks(walk->n);

	/* questions come in chunks that are passes already */
	return walk->mode == CUDA_QUERY || all < most ? all : whole_blocks(most);
}

int64_t
cuda_layers_chunk(void)
{
	return LAYER_ROWS;
}

bool
cuda_layers_can(const CudaModel *s)
{
	return !s->two_stream;
}

TnpStatus
cuda_layers_plan(const TnpDeviceModel *m, CudaWalk *walk, CudaPlan *plan, TnpError *error)
{
	const CudaModel *s = &m->shape;
	int64_t		all = whole_blocks(walk->n),
				rows = rows_of_pass(walk);

	memset(plan, 0, sizeof(*plan));
	if (all > INT32_MAX / 8)
		return tnp_fail(error, TNP_BAD_ARGUMENT, "the number of rows is out of range");
	walk->team = walk->copies = 1;
	walk->tiles = (int) (all / STEP_ROWS);
	walk->row_x = cuda_columns(s->precision, s->operand);
	walk->row_q = s->heads * cuda_query_columns(s->precision, s->head_tiles);
	walk->row_h = row_h_of(s);
	walk->at_rows = 0;
	walk->at_input = cuda_step_input();
	plan->state_bytes = (size_t) all * walk->row_h * sizeof(float);
	plan->query_bytes = (size_t) all * walk->row_q * element_of(s);
	plan->part_bytes = cuda_piece(GPU_PRODUCT_WORK) +
		cuda_piece((size_t) rows * walk->row_x * element_of(s)) +
		cuda_piece((size_t) rows * row_wide_of(s) * sizeof(float));
	if (walk->mode == CUDA_QUERY)
	{
		plan->raw_bytes = (size_t) all * s->outputs * sizeof(float);
		plan->params_bytes = (size_t) all * s->params * sizeof(double);
	}
	return TNP_OK;
}

/* A pass over what was planned, in the memory that was planned for it. */
static Pass
pass_of(TnpDeviceModel *m, int queue, const CudaWalk *walk, TnpError *error)
{
	Pass		p = {.m = m, .queue = queue, .status = TNP_OK, .error = error};
	int64_t		rows = rows_of_pass(walk);
	char	   *at = (char *) walk->part;

	p.step.walk = *walk;
	p.step.row_wide = row_wide_of(&m->shape);
	p.work = at;
	at += cuda_piece(GPU_PRODUCT_WORK);
	p.step.operand = at;
	at += cuda_piece((size_t) rows * walk->row_x * element_of(&m->shape));
	p.step.wide = (float *) at;
	return p;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void
take(Pass *p, StepKernel kernel, int64_t blocks)
{
	GpuResult	result;

	if (p->status != TNP_OK)
		return;
	p->step.kernel = kernel;
	p->step.blocks = (int) blocks;
	result = gpu_step(p->queue, &p->step);
	if (result != GPU_OK)
		p->status = cuda_failed(p->m->device, result, p->error);
}

static void
take_rows(Pass *p, StepOperation operation)
{
	p->step.operation = operation;
	take(p, STEP_ROW_WISE, (p->step.n + STEP_ROWS - 1) / STEP_ROWS);
}

static void
take_norm(Pass *p, const CudaNorm *norm, int keep)
{
	p->step.norm = norm != NULL ? *norm : (CudaNorm) {NULL, NULL, 0.0f, 0};
	p->step.keep = keep;
	take_rows(p, STEP_NORM);
}

/* A product of this linear, of which pointers and rows are still to be named. */
static GpuProduct
product_of(const TnpDeviceModel *m, const CudaLinear *w, bool to_state)
{
	const CudaModel *s = &m->shape;

	return (GpuProduct) {
		.w = w->packed, .bias = w->bias, .precision = s->precision,
		.in = cuda_columns(s->precision, w->in), .out = w->n_tiles * 8,
		.row_x = cuda_columns(s->precision, s->operand),
		.row_y = to_state ? row_h_of(s) : row_wide_of(s), .add = to_state
	};
}

/* Outputs of a linear, to `column` of the pass's, or, to_state, added to the states. */
static void
multiply(Pass *p, const CudaLinear *w, bool to_state, int column)
{
	const CudaWalk *walk = &p->step.walk;
	GpuProduct	product = product_of(p->m, w, to_state);
	GpuResult	result;

	if (p->status != TNP_OK)
		return;
	product.x = p->step.operand;
	product.y = to_state ? walk->state + p->step.first * walk->row_h : p->step.wide + column;
	product.work = p->work;
	product.n = p->step.n;
	result = gpu_multiply(p->queue, &product);
	if (result != GPU_OK)
		p->status = cuda_failed(p->m->device, result, p->error);
}

/* An encoder: what it makes of its rows is added to their states. */
static void
encode(Pass *p, int number, int keep)
{
	const CudaEncoder *e = &p->m->shape.mlps[number];
	int			begin = e->skip ? -1 : 0;
	CudaStep   *s = &p->step;

	s->encoder = number;
	for (int i = begin; i < e->mlp.n; i++)
	{
		bool		u = i < 0,
					last = i == e->mlp.n - 1;

		/* u of a skip-mlp is the next one's operand and added to the state */
		s->linear = u ? e->first : e->mlp.linear[i];
		s->activation = u || last ? 0 : e->mlp.activation;
		s->keep = u || last ? keep : 0;
		s->to_state = last;
		if (i == begin && s->linear.direct != NULL)
		{
			take_rows(p, STEP_DIRECT);
			continue;
		}
		if (i == begin)
			take_rows(p, STEP_NUMBERS);
		multiply(p, &s->linear, false, 0);
		take_rows(p, last ? STEP_STATE : STEP_OPERAND);
	}
}

/* Tokens, as they enter the first layer. */
static void
embed(Pass *p)
{
	const CudaModel *s = &p->m->shape;
	bool		targets = p->step.walk.mode != CUDA_QUERY;

	take_rows(p, STEP_TOKENS);
	if (s->concat)
		encode(p, CUDA_MLP_X, ROW_X | ROW_Y);
	else
	{
		if (!p->step.walk.x_is_half)
			encode(p, CUDA_MLP_X, ROW_X);
		if (targets && s->y_table == NULL)
			encode(p, CUDA_MLP_Y, ROW_Y);
	}
}

/* Queries, keys and values of layer l. */
static void
project(Pass *p, int l, bool asks, bool stores)
{
	const CudaModel *s = &p->m->shape;
	const CudaLayer *layer = &p->m->layers[l];
	int			columns = s->heads * s->head_tiles * 8;

	take_norm(p, s->post_norm ? NULL : &layer->norm1, 0);
	if (asks)
		multiply(p, &layer->q, false, 0);
	if (stores)
	{
		multiply(p, &layer->k, false, columns);
		multiply(p, &layer->v, false, 2 * columns);
	}
	p->step.at = l;
	p->step.asks = asks;
	p->step.stores = stores;
	p->step.log_scale = layer->log_scale;
	take_rows(p, STEP_KEEP);
}

/* The rest of layer l, all keys of which are there. */
static void
attend(Pass *p, int l)
{
	const CudaModel *s = &p->m->shape;
	const CudaLayer *layer = &p->m->layers[l];
	int			rows = cuda_attend_rows(s->precision, s->head_tiles);

	p->step.at = l;
	take(p, STEP_ATTENTION, (p->step.n + rows - 1) / rows * s->heads);
	multiply(p, &layer->o, true, 0);
	if (s->post_norm)
		take_norm(p, &layer->norm1, ROW_ACTIVE);
	else
		take_norm(p, &layer->norm2, 0);
	multiply(p, &layer->ff0, false, 0);
	p->step.linear = layer->ff0;
	p->step.activation = s->activation;
	p->step.keep = 0;
	take_rows(p, STEP_OPERAND);
	multiply(p, &layer->ff1, true, 0);
	if (s->post_norm)
		take_norm(p, &layer->norm2, ROW_ACTIVE);
}

TnpStatus
cuda_layers_answer(TnpDeviceModel *m, int queue, const CudaWalk *walk, TnpError *error)
{
	const CudaModel *s = &m->shape;
	const CudaMlp *head = &s->mlps[CUDA_MLP_HEAD].mlp;
	Pass		p = pass_of(m, queue, walk, error);

	p.step.n = walk->n;
	embed(&p);
	for (int l = 0; l < s->layers; l++)
	{
		project(&p, l, true, false);
		attend(&p, l);
	}
	take_norm(&p, s->has_final_norm ? &s->final_norm : NULL, 0);
	for (int i = 0; i < head->n; i++)
	{
		multiply(&p, &head->linear[i], false, 0);
		p.step.linear = head->linear[i];
		p.step.activation = head->activation;
		p.step.keep = 0;
		if (i < head->n - 1)
			take_rows(&p, STEP_OPERAND);
	}
	take(&p, STEP_ANSWERS, (walk->n + STEP_ROWS - 1) / STEP_ROWS);
	return p.status;
}

/* A layer's keys of all rows must be there before any of them attends. */
TnpStatus
cuda_layers_encode(TnpDeviceModel *m, const CudaWalk *walk, TnpError *error)
{
	Pass		p = pass_of(m, 0, walk, error);
	int64_t		rows = rows_of_pass(walk);

	for (int l = 0; l < m->shape.layers; l++)
		for (int64_t first = 0; first < walk->n; first += rows)
		{
			p.step.first = first;
			p.step.n = walk->n - first < rows ? walk->n - first : rows;
			if (l == 0)
				embed(&p);
			else
				attend(&p, l - 1);
			project(&p, l, l < m->shape.layers - 1, true);
		}
	return p.status;
}

/* ---- the library's bits ---------------------------------------------------------------------- */

#define MOST_SHAPES 64
#define CHECK_ROWS (2 * GPU_PRODUCT_ROWS)	/* two blocks of equal rows */

/* What products were looked at so far. */
typedef struct Check
{
	TnpDeviceModel *m;
	GpuProduct	seen[MOST_SHAPES];
	int			n_seen;
	void	   *x;				/* on the device: [CHECK_ROWS, row_x] */
	float	   *y;				/* [CHECK_ROWS, widest row] */
	float	   *both;			/* on the host, twice as large */
	void	   *work;
} Check;

static bool
was_seen(const Check *c, const GpuProduct *p)
{
	for (int i = 0; i < c->n_seen; i++)
	{
		const GpuProduct *old = &c->seen[i];

		if (old->in == p->in && old->out == p->out && old->row_y == p->row_y && old->add == p->add
			&& (old->bias == NULL) == (p->bias == NULL))
			return true;
	}
	return false;
}

/* The product of n equal rows, to `host`. */
static GpuResult
multiply_equal(const Check *c, GpuProduct product, int64_t n, float *host)
{
	size_t		bytes = (size_t) CHECK_ROWS * product.row_y * sizeof(float);
	GpuResult	result = gpu_clear(c->y, bytes);

	product.x = c->x;
	product.y = c->y;
	product.work = c->work;
	product.n = n;
	if (result == GPU_OK)
		result = gpu_multiply(0, &product);
	return result == GPU_OK ? gpu_download(0, host, c->y, bytes) : result;
}

/* Whether equal rows have equal outputs wherever they stand, and in calls of any length. */
static TnpStatus
check_linear(Check *c, const CudaLinear *w, bool to_state, TnpError *error)
{
	TnpDevice  *device = c->m->device;
	GpuProduct	product = product_of(c->m, w, to_state);
	float	   *few = c->both + (size_t) CHECK_ROWS * product.row_y;
	GpuResult	result;
	TnpStatus	status;

	if (was_seen(c, &product))
		return TNP_OK;
	if (c->n_seen < MOST_SHAPES)
		c->seen[c->n_seen++] = product;
	result = gpu_prepare_product(&product);
	if (result == GPU_OK)
		result = multiply_equal(c, product, CHECK_ROWS, c->both);
	if (result == GPU_OK)
		result = multiply_equal(c, product, 1, few);
	if (result != GPU_OK)
		return cuda_failed(device, result, error);
	status = cuda_wait(device, 0, error);
	for (int64_t i = 0; status == TNP_OK && i < CHECK_ROWS; i++)
		if (memcmp(c->both + i * product.row_y, few, (size_t) product.out * sizeof(float)) != 0)
		{
			tnp_fail(error, TNP_BAD_CONFIG,
					 "the CUDA device's library of matrix products cannot be used for this model");
			tnp_detail(error, "of %d by %d weights, row %lld of equal ones has other outputs",
					   product.out, product.in, (long long) i + 1);
			status = TNP_BAD_CONFIG;
		}
	return status;
}

static TnpStatus
check_encoder(Check *c, const CudaEncoder *e, TnpError *error)
{
	TnpStatus	status = e->skip && e->first.direct == NULL
		? check_linear(c, &e->first, false, error) : TNP_OK;

	for (int i = 0; status == TNP_OK && i < e->mlp.n; i++)
		if (e->mlp.linear[i].direct == NULL)
			status = check_linear(c, &e->mlp.linear[i], false, error);
	return status;
}

static TnpStatus
check_layer(Check *c, const CudaLayer *layer, TnpError *error)
{
	const CudaLinear *const wide[] = {&layer->q, &layer->k, &layer->v, &layer->ff0};
	const CudaLinear *const narrow[] = {&layer->o, &layer->ff1};
	TnpStatus	status = TNP_OK;

	for (int i = 0; status == TNP_OK && i < 4; i++)
		status = check_linear(c, wide[i], false, error);
	for (int i = 0; status == TNP_OK && i < 2; i++)
		status = check_linear(c, narrow[i], true, error);
	return status;
}

/* A row of numbers between 1/2 and 1 of either sign, as often as there are rows. */
static void
fill_equal(const CudaModel *s, int row_x, void *x)
{
	uint32_t	state = 1;

	for (int i = 0; i < row_x; i++)
	{
		state = state * 1664525u + 1013904223u;
		for (int64_t row = 0; row < CHECK_ROWS; row++)
			if (s->precision == 0)
				((uint16_t *) x)[row * row_x + i] =
					(uint16_t) ((state >> 16 & 0x8000) | 0x3800 | (state >> 8 & 0x3ff));
			else
				((uint32_t *) x)[row * row_x + i] =
					(state & 0x80000000) | 0x3f000000 | (state >> 8 & 0x7fffff);
	}
}

TnpStatus
cuda_layers_check(TnpDeviceModel *m, TnpError *error)
{
	const CudaModel *s = &m->shape;
	TnpDevice  *device = m->device;
	int			row_x = cuda_columns(s->precision, s->operand);
	size_t		x_bytes = (size_t) CHECK_ROWS * row_x * element_of(s),
				y_bytes = (size_t) CHECK_ROWS * row_wide_of(s) * sizeof(float);
	Check		c = {.m = m};
	TnpStatus	status = cuda_begin(device, 0, cuda_piece(x_bytes) + cuda_piece(y_bytes) +
									cuda_piece(GPU_PRODUCT_WORK),
									cuda_piece(x_bytes) + cuda_piece(2 * y_bytes), error);
	void	   *x;
	GpuResult	result;

	if (status != TNP_OK)
		return status;
	c.x = cuda_scratch(device, x_bytes);
	c.y = cuda_scratch(device, y_bytes);
	c.work = cuda_scratch(device, GPU_PRODUCT_WORK);
	x = cuda_staging(device, x_bytes);
	c.both = cuda_staging(device, 2 * y_bytes);
	fill_equal(s, row_x, x);
	result = gpu_upload(0, c.x, x, x_bytes);
	if (result != GPU_OK)
		return cuda_failed(device, result, error);
	for (int i = 0; status == TNP_OK && i < 3; i++)
		status = check_encoder(&c, &s->mlps[i], error);
	for (int l = 0; status == TNP_OK && l < s->layers; l++)
		status = check_layer(&c, &m->layers[l], error);
	return status;
}
