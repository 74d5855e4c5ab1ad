/*
 * weights.c: a model's weights in the layout of layout.h, in one block of device memory.
 *
 * The block is laid out twice by the same code: once to learn its size, once to fill it, when
 * addresses on the device are known.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "host.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"

_Static_assert(TNP_GPU_HEAD <= CUDA_MAX_HEAD, "heads that kernels have room for");
_Static_assert(TNP_MAX_CLASS_ROOM == CUDA_CLASSES, "room for all classes");
_Static_assert(TNP_GPU_GATED_HEAD <= CUDA_GATED_TILES * 8, "heads whose kernels ask a gate");
_Static_assert(TNP_GATE_NUMBERS == CUDA_GATE_NUMBERS
			   && TNP_RECORD_NUMBERS == CUDA_RECORD_NUMBERS
			   && TNP_GATE_BEHIND == CUDA_GATE_BEHIND, "what a gate reads");
_Static_assert(TNP_TARGET_LEVELS == CUDA_TARGET_LEVELS, "room for all levels of a target");
_Static_assert(TNP_PROCESS_NUMBERS == CUDA_PROCESS_NUMBERS, "what a process says");

#define NO_WEIGHT -1e30f			/* a logit of which the exponential is zero */

/* The block being laid out; host is NULL while it is only measured. */
typedef struct Block
{
	char	   *host,
			   *device;
	size_t		used;
	int			precision;
	int			head_tiles,
				head_width;
	int			operand,		/* widest operand so far, */
				first_operand;	/* and of those that are not the layers' */
	bool		plain;			/* weights lie row by row, as the library reads them */
	bool		failed;			/* memory of the host ran out */
} Block;

/* Room for bytes: where to write them (NULL while measuring), and their address on the device. */
static void *
place(Block *b, size_t bytes, const void **on_device)
{
	void	   *host = b->host != NULL ? b->host + b->used : NULL;

	*on_device = (const void *) ((uintptr_t) b->device + b->used);
	b->used += cuda_piece(bytes);
	return host;
}

static const float *
place_floats(Block *b, const float *values, size_t n)
{
	const void *address;
	void	   *to;

	if (values == NULL)
		return NULL;
	to = place(b, n * sizeof(float), &address);
	if (to != NULL)
		memcpy(to, values, n * sizeof(float));
	return address;
}

/* A float in 16 bits, to nearest even; |v| <= 65504. */
static uint16_t
half_bits(float v)
{
	uint32_t	bits;
	uint16_t	sign;

	memcpy(&bits, &v, sizeof(bits));
	sign = (uint16_t) (bits >> 16 & 0x8000);
	bits &= 0x7fffffff;
	if (bits < 0x38800000)
	{
		/* subnormal: adding a half moves the bits that count to the end of the sum, rounded */
		float		sum = fabsf(v) + 0.5f;

		memcpy(&bits, &sum, sizeof(bits));
		return sign | (uint16_t) (bits - 0x3f000000);
	}
	bits += 0xfff + (bits >> 13 & 1);
	return sign | (uint16_t) ((bits - 0x38000000) >> 13);
}

static void
widen(Block *b, int columns)
{
	if (columns > b->operand)
		b->operand = columns;
	if (columns > b->first_operand)
		b->first_operand = columns;
}

/*
 * One linear. by_head: its outputs are dealt out to heads, each padded to whole tiles. raw: it
 * reads numbers as they are given, so if they are few it is also kept in 32 bits.
 */
static CudaLinear
place_linear(Block *b, const TnpLinear *w, bool by_head, bool raw)
{
	CudaLinear	out = {NULL, NULL, NULL, w->in, w->out, 0, 0};
	const void *packed,
			   *bias = NULL,
			   *direct = NULL;
	void	   *to;
	float	   *to_bias = NULL;
	int			padded = by_head ? w->out / b->head_width * b->head_tiles * 8
		: (w->out + 7) / 8 * 8;
	size_t		bytes;

	out.n_tiles = padded / 8;
	out.k_steps = cuda_k_steps(b->precision, w->in);
	bytes = (size_t) out.n_tiles * out.k_steps * 512;
	widen(b, w->in);
	if (!by_head)
		widen(b, padded);
	to = place(b, bytes, &packed);
	if (w->bias != NULL)
		to_bias = place(b, padded * sizeof(float), &bias);
	if (to != NULL)
	{
		memset(to, 0, bytes);
		if (to_bias != NULL)
			memset(to_bias, 0, padded * sizeof(float));
		for (int o = 0; o < w->out; o++)
		{
			int			row = by_head ? o / b->head_width * b->head_tiles * 8 + o % b->head_width
				: o;

			if (to_bias != NULL)
				to_bias[row] = w->bias[o];
			for (int i = 0; i < w->in; i++)
			{
				size_t		at = b->plain ? (size_t) row * cuda_columns(b->precision, w->in) + i
					: cuda_weight_at(b->precision, out.k_steps, row, i);
				float		v = w->weight[(size_t) o * w->stride + i];

				if (b->precision == 0)
					((uint16_t *) to)[at] = half_bits(v);
				else
					((float *) to)[at] = v;
			}
		}
	}
	if (raw && w->in <= CUDA_DIRECT)
	{
		float	   *plain = place(b, (size_t) w->in * w->out * sizeof(float), &direct);

		for (int i = 0; plain != NULL && i < w->in; i++)
			for (int o = 0; o < w->out; o++)
				plain[(size_t) i * w->out + o] = w->weight[(size_t) o * w->stride + i];
	}
	out.packed = packed;
	out.bias = bias;
	out.direct = direct;
	return out;
}

static CudaNorm
place_norm(Block *b, const TnpNorm *n)
{
	return (CudaNorm) {place_floats(b, n->weight, n->width), place_floats(b, n->bias, n->width),
					   n->eps, n->kind == TNP_LAYER_NORM};
}

static CudaMlp
place_mlp(Block *b, const TnpMlp *m, bool raw)
{
	CudaMlp		out;

	memset(&out, 0, sizeof(out));
	out.n = m->n;
	out.activation = m->activation;
	for (int i = 0; i < m->n; i++)
		out.linear[i] = place_linear(b, &m->linear[i], false, raw && i == 0);
	return out;
}

static CudaEncoder
place_encoder(Block *b, const TnpEncoder *e, bool skip)
{
	CudaEncoder out;

	memset(&out, 0, sizeof(out));
	out.skip = skip;
	if (skip)
		out.first = place_linear(b, &e->first, false, true);
	out.mlp = place_mlp(b, &e->mlp, !skip);
	return out;
}

static const CudaLayer *
place_layers(Block *b, const TnpLayer *layers, int n, int heads)
{
	const void *address;
	CudaLayer  *to;
	int			first_operand = b->first_operand;

	if (layers == NULL)
		return NULL;
	to = place(b, n * sizeof(CudaLayer), &address);
	for (int l = 0; l < n; l++)
	{
		const TnpLayer *from = &layers[l];
		CudaLayer	layer;

		memset(&layer, 0, sizeof(layer));
		layer.q = place_linear(b, &from->q, true, false);
		layer.k = place_linear(b, &from->k, true, false);
		layer.v = place_linear(b, &from->v, true, false);
		layer.o = place_linear(b, &from->o, false, false);
		layer.ff0 = place_linear(b, &from->ff0, false, false);
		layer.ff1 = place_linear(b, &from->ff1, false, false);
		layer.norm1 = place_norm(b, &from->norm1);
		layer.norm2 = place_norm(b, &from->norm2);
		layer.log_scale = place_floats(b, from->log_scale, 2 * heads);
		if (to != NULL)
			to[l] = layer;
	}
	/* of a layer, x0 holds norms alone, which are as wide as the model */
	b->first_operand = first_operand;
	return address;
}

/* E_x of the row tokeniser's flat path: the slots' matrices, an activation, a linear. */
static CudaEncoder
place_slots(Block *b, const TnpModel *m)
{
	CudaEncoder out;

	memset(&out, 0, sizeof(out));
	out.mlp.n = 2;
	out.mlp.activation = m->config.embedder_activation;
	out.mlp.linear[0] = place_linear(b, &m->tokeniser.slot, false, true);
	out.mlp.linear[1] = place_linear(b, &m->tokeniser.out, false, false);
	return out;
}

/* The gate to a process's answer; NULL where there is none. */
static const float *
place_gate(Block *b, const TnpModel *m)
{
	const TnpLinear *hidden = &m->gate.linear[0],
			   *out = &m->gate.linear[1];
	int			n = m->config.gate_hidden,
				read = CUDA_GATE_NUMBERS + (m->config.gate_record ? CUDA_RECORD_NUMBERS : 0);
	const void *address;
	float	   *to;

	if (n == 0)
		return NULL;
	to = place(b, (CUDA_GATE_HEAD + (size_t) n * CUDA_GATE_ROW) * sizeof(float), &address);
	if (to == NULL)
		return address;
	to[0] = (float) n;
	to[1] = (float) m->gate.activation;
	to[2] = out->bias[0];
	to += CUDA_GATE_HEAD;
	for (int j = 0; j < n; j++, to += CUDA_GATE_ROW)
	{
		memset(to, 0, CUDA_GATE_ROW * sizeof(float));
		memcpy(to, hidden->weight + (size_t) j * hidden->stride, read * sizeof(float));
		if (m->config.gate_behind)
			to[CUDA_GATE_ROW - 3] = hidden->weight[(size_t) j * hidden->stride + read];
		to[CUDA_GATE_ROW - 2] = hidden->bias[j];
		to[CUDA_GATE_ROW - 1] = out->weight[j];
	}
	return address;
}

/*
 * The head. With a gate its last linear has an output more for each of weight, mean and deviation:
 * the place of the process, which weighs nothing before the gate is asked.
 */
static CudaMlp
place_head(Block *b, const TnpModel *m)
{
	TnpMlp		head = m->head;
	TnpLinear  *last = &head.linear[head.n - 1];
	int			n = m->config.head_outputs;
	float	   *weight,
			   *bias;
	CudaMlp		out;

	if (m->config.gate_hidden == 0)
		return place_mlp(b, &m->head, false);
	weight = calloc((size_t) 3 * (n + 1) * last->in, sizeof(float));
	bias = calloc((size_t) 3 * (n + 1), sizeof(float));
	b->failed = b->failed || weight == NULL || bias == NULL;
	for (int o = 0; !b->failed && o < 3 * n; o++)
	{
		int			to = o / n * (n + 1) + o % n;

		memcpy(weight + (size_t) to * last->in, last->weight + (size_t) o * last->stride,
			   last->in * sizeof(float));
		bias[to] = last->bias[o];
	}
	if (!b->failed)
		bias[n] = NO_WEIGHT;
	last->weight = weight;
	last->bias = bias;
	last->out = 3 * (n + 1);
	last->stride = last->in;
	if (b->failed)
		memset(&out, 0, sizeof(out));
	else
		out = place_mlp(b, &head, false);
	free(weight);
	free(bias);
	return out;
}

/* The whole model: *shape is what a launch is given, and its pointers lead into the block. */
static void
place_model(Block *b, const TnpModel *m, bool halves_on_host, CudaModel *shape)
{
	const TnpConfig *c = &m->config;
	CudaModel	s;
	TnpDistributionKind kind;
	int			n;

	b->used = 0;
	b->operand = b->first_operand = c->width;
	memset(&s, 0, sizeof(s));
	s.precision = b->precision;
	s.two_stream = strcmp(c->family->name, "two-stream") == 0;
	s.post_norm = c->post_norm;
	s.has_final_norm = c->final_norm;
	s.strict = c->strict;
	s.width = c->width;
	s.layers = c->layers;
	s.heads = c->heads;
	s.head_width = c->width / c->heads;
	s.logit_scale = (float) CUDA_LOG2E / sqrtf((float) s.head_width);
	s.head_tiles = b->head_tiles;
	s.feedforward = c->feedforward;
	s.sinks = c->sinks;
	s.activation = c->activation;
	s.concat = c->embedder == TNP_CONCAT;
	s.features = c->n_features;
	if (s.concat)
		s.mlps[CUDA_MLP_X].mlp = place_mlp(b, &m->embed_xy, true);
	else
	{
		if (c->encode_x.kind == TNP_ENCODE_ROWS)
		{
			if (!halves_on_host)
				s.mlps[CUDA_MLP_X] = place_slots(b, m);
		}
		else
			s.mlps[CUDA_MLP_X] = place_encoder(b, &m->embed_x,
											   c->encode_x.kind == TNP_ENCODE_SKIP_MLP);
		if (c->encode_y.kind == TNP_ENCODE_CLASSES)
			s.y_table = place_floats(b, m->embed_y.table, (size_t) c->head_outputs * c->width);
		else
			s.mlps[CUDA_MLP_Y] = place_encoder(b, &m->embed_y,
											   c->encode_y.kind == TNP_ENCODE_SKIP_MLP);
	}
	s.role = place_floats(b, m->role, 3 * (size_t) c->width);
	s.position = place_floats(b, m->position, (size_t) c->positions * c->width);
	s.sink = place_floats(b, m->sinks, (size_t) c->sinks * c->width);
	s.layer = place_layers(b, m->layers, c->layers, c->heads);
	s.cross = place_layers(b, m->cross, c->layers, c->heads);
	if (c->final_norm)
		s.final_norm = place_norm(b, &m->final_norm);
	s.mlps[CUDA_MLP_HEAD].mlp = place_head(b, m);
	s.outputs = s.mlps[CUDA_MLP_HEAD].mlp.linear[m->head.n - 1].out;
	s.head_kind = c->head;
	s.std_map = c->std_map;
	s.half_normal = c->half_normal_tails;
	s.std_floor = c->std_floor;
	s.borders = place_floats(b, m->borders, (size_t) c->head_outputs + 1);
	s.gate = place_gate(b, m);
	tnp_answer_shape(m, &kind, &n);
	s.components = n;
	s.params = tnp_distribution_size(kind, n);
	s.operand = b->operand;
	*shape = s;
}

static bool
linear_fits(const TnpLinear *w)
{
	for (int o = 0; o < w->out; o++)
		for (int i = 0; i < w->in; i++)
			if (fabsf(w->weight[(size_t) o * w->stride + i]) > 65504.0f)
				return false;
	return true;
}

static bool
mlp_fits(const TnpMlp *m)
{
	for (int i = 0; i < m->n; i++)
		if (!linear_fits(&m->linear[i]))
			return false;
	return true;
}

static bool
layers_fit(const TnpLayer *layers, int n)
{
	for (int l = 0; layers != NULL && l < n; l++)
		if (!linear_fits(&layers[l].q) || !linear_fits(&layers[l].k) || !linear_fits(&layers[l].v)
			|| !linear_fits(&layers[l].o) || !linear_fits(&layers[l].ff0)
			|| !linear_fits(&layers[l].ff1))
			return false;
	return true;
}

/* A copy of the layers, which the block has on the device alone. */
static CudaLayer *
keep_layers(Block *b, const CudaModel *s)
{
	size_t		at = (size_t) ((uintptr_t) s->layer - (uintptr_t) b->device);
	CudaLayer  *layers = malloc((size_t) s->layers * sizeof(CudaLayer));

	if (layers == NULL)
		b->failed = true;
	else
		memcpy(layers, b->host + at, (size_t) s->layers * sizeof(CudaLayer));
	return layers;
}

/* Whether all weights can be said in 16 bits. */
static bool
weights_fit(const TnpModel *m)
{
	const TnpConfig *c = &m->config;
	bool		fit = layers_fit(m->layers, c->layers) && layers_fit(m->cross, c->layers)
		&& mlp_fits(&m->head);

	if (c->embedder == TNP_CONCAT)
		return fit && mlp_fits(&m->embed_xy);
	if (c->encode_x.kind == TNP_ENCODE_ROWS)
		fit = fit && linear_fits(&m->tokeniser.slot) && linear_fits(&m->tokeniser.out);
	else
		fit = fit && mlp_fits(&m->embed_x.mlp)
			&& (c->encode_x.kind != TNP_ENCODE_SKIP_MLP || linear_fits(&m->embed_x.first));
	return fit && mlp_fits(&m->embed_y.mlp)
		&& (c->encode_y.kind != TNP_ENCODE_SKIP_MLP || linear_fits(&m->embed_y.first));
}

TnpStatus
cuda_load_weights(TnpDeviceModel *m, TnpPrecision precision, TnpError *error)
{
	const TnpModel *model = m->model;
	const TnpConfig *c = &model->config;
	TnpDevice  *device = m->device;
	Block		b;
	void	   *host;
	size_t		bytes;
	GpuResult	result;
	TnpStatus	status;

	if (!model->info.on_gpu)
	{
		tnp_fail(error, TNP_BAD_CONFIG,
				 "the CUDA device has no kernels for this model: its architecture is \"%s\"%s%s",
				 c->family->name, c->family->variant != NULL ? " with " : "",
				 c->family->variant != NULL ? c->family->variant : "");
		tnp_detail(error, "embedder %d, head \"%s\", %d features in %d attention heads",
				   (int) c->embedder, model->info.head, c->width, c->heads);
		return TNP_BAD_CONFIG;
	}
	memset(&b, 0, sizeof(b));
	b.head_width = c->width / c->heads;
	b.precision = precision == TNP_PRECISION_FP16 && weights_fit(model) ? 0 : 1;
	if (b.precision == 1 && precision == TNP_PRECISION_FP16)
		device->config.log(device->config.arg,
						   "a model has weights beyond the range of 16 bits "
						   "and is computed in 32 bits");
	b.head_tiles = cuda_head_tiles(b.precision, b.head_width);
	m->halves_on_host = c->embedder == TNP_ADDITIVE && c->encode_x.kind == TNP_ENCODE_ROWS
		&& c->encode_x.token_width > 0;
	place_model(&b, model, m->halves_on_host, &m->shape);
	m->first_operand = b.first_operand;
	m->layered = cuda_layers_can(&m->shape) && (cuda_force_layers || !cuda_fits(m));
	if (!m->layered && !cuda_fits(m))
	{
		tnp_fail(error, TNP_BAD_CONFIG,
				 "the CUDA device has no kernels for this model: "
				 "a row's states do not fit its shared memory");
		tnp_detail(error, "the widest layer has %d columns, a block has %d bytes", m->shape.operand,
				   device->facts.shared_bytes);
		return TNP_BAD_CONFIG;
	}
	bytes = b.used;
	host = b.failed ? NULL : malloc(bytes);
	if (host == NULL)
		return tnp_no_memory(error);
	status = cuda_take(device, bytes, &m->weights, error);
	if (status != TNP_OK)
	{
		free(host);
		return status;
	}
	m->bytes = bytes;
	memset(host, 0, bytes);
	b.host = host;
	b.device = m->weights;
	b.plain = m->layered;
	place_model(&b, model, m->halves_on_host, &m->shape);
	if (m->layered)
		m->layers = keep_layers(&b, &m->shape);
	if (b.failed)
	{
		free(host);
		return tnp_no_memory(error);
	}
	result = gpu_upload(0, m->weights, host, bytes);
	status = result == GPU_OK ? cuda_wait(device, 0, error) : cuda_failed(device, result, error);
	free(host);
	return status == TNP_OK && m->layered ? cuda_layers_check(m, error) : status;
}
