/*
 * model.c: opens a model file: container, configuration, and every tensor bound to the layer that
 * uses it.
 *
 * The binder asks for tensors by name and shape and counts them; a file that has more tensors than
 * were asked for contains one that the configuration does not know, which is an error (section 12
 * of docs/model-format.md).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/file/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/file/safetensors.h"

#define MAX_PARAMETERS ((int64_t) 1 << 28)
#define NAME_LENGTH 128

/* What a binding step needs; the first failure sticks and later steps do nothing. */
typedef struct Binder
{
	TnpModel   *model;
	const TnpFile *file;
	TnpError   *error;
	TnpStatus	status;
	int			bound;			/* tensors asked for so far */
} Binder;

/* Allocate floats that live as long as the model. */
static float *
keep_floats(Binder *b, size_t n)
{
	TnpModel   *m = b->model;
	float	   *p;

	if (m->n_blocks == m->max_blocks)
	{
		int			more = m->max_blocks > 0 ? 2 * m->max_blocks : 64;
		void	  **blocks = tnp_keep(&m->env, more, sizeof(void *));

		if (blocks == NULL)
		{
			b->status = tnp_no_memory(b->error);
			return NULL;
		}
		if (m->n_blocks > 0)
			memcpy(blocks, m->blocks, m->n_blocks * sizeof(void *));
		tnp_drop(&m->env, m->blocks);
		m->blocks = blocks;
		m->max_blocks = more;
	}
	/* aligned to 64 bytes, so that no vector lies across two cache lines */
	p = n > SIZE_MAX - 16 ? NULL : tnp_keep(&m->env, n + 16, sizeof(float));
	if (p == NULL)
		b->status = tnp_no_memory(b->error);
	else
	{
		m->blocks[m->n_blocks++] = p;
		p += (64 - (uintptr_t) p % 64) % 64 / sizeof(float);
	}
	return p;
}

/* Format a shape as [a, b] for messages. */
static void
format_shape(char *text, size_t size, int rank, const int64_t *shape)
{
	size_t		used = (size_t) snprintf(text, size, "[");

	for (int i = 0; i < rank && used < size; i++)
		used += (size_t) snprintf(text + used, size - used, "%s%lld", i > 0 ? ", " : "",
								  (long long) shape[i]);
	if (used < size)
		snprintf(text + used, size - used, "]");
}

/* The tensor `name` of the given shape, widened to float32, or NULL after a failure. */
static const float *
bind_tensor(Binder *b, const char *name, int rank, int64_t d0, int64_t d1, int64_t d2)
{
	int64_t		shape[3] = {d0, d1, d2};
	const TnpFileTensor *t;
	float	   *data;
	bool		same;

	if (b->status != TNP_OK)
		return NULL;
	t = tnp_file_find(b->file, name);
	if (t == NULL)
	{
		b->status = tnp_fail(b->error, TNP_BAD_TENSOR, "tensor \"%s\" is missing", name);
		return NULL;
	}
	same = t->rank == rank;
	for (int i = 0; same && i < rank; i++)
		same = t->shape[i] == shape[i];
	if (!same)
	{
		char		want[96],
					have[192];

		format_shape(want, sizeof(want), rank, shape);
		format_shape(have, sizeof(have), t->rank, t->shape);
		b->status = tnp_fail(b->error, TNP_BAD_TENSOR, "tensor \"%s\" has the wrong shape", name);
		tnp_detail(b->error, "shape is %s, the configuration needs %s", have, want);
		return NULL;
	}
	b->bound++;
	b->model->info.n_parameters += t->n_elements;
	if (b->model->info.n_parameters > MAX_PARAMETERS)
	{
		b->status = tnp_fail(b->error, TNP_BAD_TENSOR, "the model has too many parameters");
		tnp_detail(b->error, "at most %lld are read", (long long) MAX_PARAMETERS);
		return NULL;
	}
	data = keep_floats(b, (size_t) t->n_elements);
	if (data == NULL)
		return NULL;
	if (!tnp_file_widen(t, 0, t->n_elements, data))
	{
		b->status = tnp_fail(b->error, TNP_BAD_TENSOR, "tensor \"%s\" contains NaN or an infinity",
							 name);
		return NULL;
	}
	return data;
}

/*
 * Whether a number is one of binary16: ten bits after the leading one, or a multiple of the
 * smallest.
 */
static bool
is_half(float x)
{
	float		size = fabsf(x),
				steps = size * 0x1p24f;
	uint32_t	bits;

	memcpy(&bits, &x, sizeof(bits));
	return size < 0x1p-14f ? steps == floorf(steps) : size <= 65504 && (bits & 0x1fff) == 0;
}

static bool
are_halves(const float *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!is_half(x[i]))
			return false;
	return true;
}

/* Let the provider lay the weights out its way. */
static void
pack_linear(Binder *b, TnpLinear *w)
{
	const TnpKernels *kernels = b->model->kernels;
	size_t		n;
	float	   *packed;

	if (b->status != TNP_OK || (n = kernels->packed_floats(w->out, w->stride)) == 0)
		return;
	packed = keep_floats(b, n);
	if (packed == NULL)
		return;
	kernels->pack(w->weight, w->out, w->stride, packed);
	w->packed = packed;
	if (kernels->pack_halves != NULL && are_halves(w->weight, (size_t) w->out * w->stride))
	{
		uint16_t   *half = (uint16_t *) keep_floats(b, (n + 1) / 2);

		if (half == NULL)
			return;
		kernels->pack_halves(w->weight, w->out, w->stride, half);
		w->halves = half;
	}
}

static TnpLinear
bind_linear(Binder *b, const char *name, int in, int out, bool bias)
{
	TnpLinear	w = {in, out, in, NULL, NULL, NULL, NULL};
	char		full[NAME_LENGTH + 16];

	snprintf(full, sizeof(full), "%s.weight", name);
	w.weight = bind_tensor(b, full, 2, out, in, 0);
	if (bias)
	{
		snprintf(full, sizeof(full), "%s.bias", name);
		w.bias = bind_tensor(b, full, 1, out, 0, 0);
	}
	pack_linear(b, &w);
	return w;
}

static TnpNorm
bind_norm(Binder *b, const char *name, int width)
{
	const TnpConfig *c = &b->model->config;
	TnpNorm		norm = {c->norm, width, (float) c->norm_eps, NULL, NULL};
	char		full[NAME_LENGTH + 16];

	snprintf(full, sizeof(full), "%s.weight", name);
	norm.weight = bind_tensor(b, full, 1, width, 0, 0);
	if (c->norm == TNP_LAYER_NORM)
	{
		snprintf(full, sizeof(full), "%s.bias", name);
		norm.bias = bind_tensor(b, full, 1, width, 0, 0);
	}
	return norm;
}

static TnpMlp
bind_mlp(Binder *b, const char *name, int in, const TnpHidden *hidden, int out,
		 TnpActivation activation)
{
	TnpMlp		mlp = {.n = hidden->n + 1,.activation = activation};

	for (int i = 0; i < mlp.n; i++)
	{
		char		full[NAME_LENGTH];
		int			to = i < hidden->n ? hidden->size[i] : out;

		snprintf(full, sizeof(full), "%s.%d", name, i);
		mlp.linear[i] = bind_linear(b, full, in, to, true);
		in = to;
	}
	return mlp;
}

static TnpLayer
bind_layer(Binder *b, const char *name, int d, int feedforward, bool log_scale)
{
	TnpBias		bias = b->model->config.bias;
	TnpLayer	layer;
	char		full[NAME_LENGTH];

	memset(&layer, 0, sizeof(layer));
#define NAMED(suffix) (snprintf(full, sizeof(full), "%s" suffix, name), full)
	layer.q = bind_linear(b, NAMED(".attn.q"), d, d, bias == TNP_BIAS_ALL);
	layer.k = bind_linear(b, NAMED(".attn.k"), d, d, bias == TNP_BIAS_ALL);
	layer.v = bind_linear(b, NAMED(".attn.v"), d, d, bias == TNP_BIAS_ALL);
	layer.o = bind_linear(b, NAMED(".attn.o"), d, d, bias != TNP_BIAS_NONE);
	if (log_scale)
		layer.log_scale = bind_tensor(b, NAMED(".attn.log_scale"), 2, b->model->config.heads, 2, 0);
	layer.ff0 = bind_linear(b, NAMED(".ff.0"), d, feedforward, true);
	layer.ff1 = bind_linear(b, NAMED(".ff.1"), feedforward, d, true);
	layer.norm1 = bind_norm(b, NAMED(".norm1"), d);
	layer.norm2 = bind_norm(b, NAMED(".norm2"), d);
#undef NAMED
	return layer;
}

/* Layers name.0 … name.n-1 in one array, NULL after a failure. */
static TnpLayer *
bind_layers(Binder *b, const char *name, int n, int d, int feedforward, bool log_scale)
{
	TnpLayer   *layers;

	if (b->status != TNP_OK)
		return NULL;
	layers = tnp_keep_zero(&b->model->env, n, sizeof(TnpLayer));
	if (layers == NULL)
	{
		b->status = tnp_no_memory(b->error);
		return NULL;
	}
	for (int l = 0; l < n; l++)
	{
		char		full[64];

		snprintf(full, sizeof(full), "%s.%d", name, l);
		layers[l] = bind_layer(b, full, d, feedforward, log_scale);
	}
	return layers;
}

/* The weights of regressions' regression features, if there are any. */
static const float *
bind_regression_features(Binder *b, const char *name, int hidden, int width)
{
	return width > 0 ? bind_tensor(b, name, 2, hidden, width, 0) : NULL;
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
bind_slots(Binder *b, int max_features, int hidden)
{
	int			regression_features = tnp_regression_features_width(b->model),
				cell = tnp_cell_width(b->model),
				in = regression_features + cell * max_features;
	TnpLinear	w = {in, hidden, in, NULL, NULL, NULL, NULL};
	const float *slots = bind_tensor(b, "embed.x.slot.weight", 3, max_features, hidden, cell),
			   *ridge = bind_regression_features(b, "embed.x.ridge.weight", hidden,
												 tnp_ridge_width(b->model)),
			   *logistic = bind_regression_features(b, "embed.x.logistic.weight", hidden,
													tnp_logistic_width(b->model));
	float	   *weight;

	w.bias = bind_tensor(b, "embed.x.slot.bias", 1, hidden, 0, 0);
	if (b->status != TNP_OK)
		return w;
	weight = keep_floats(b, (size_t) hidden * w.stride);
	if (weight == NULL)
		return w;
	for (int f = 0; f < max_features; f++)
		for (int o = 0; o < hidden; o++)
			memcpy(weight + (size_t) o * w.stride + regression_features + f * cell,
				   slots + ((size_t) f * hidden + o) * cell, cell * sizeof(float));
	put_columns(&w, weight, 0, ridge, tnp_ridge_width(b->model));
	put_columns(&w, weight, tnp_ridge_width(b->model), logistic, tnp_logistic_width(b->model));
	w.weight = weight;
	pack_linear(b, &w);
	return w;
}

static void
bind_tokeniser(Binder *b)
{
	TnpModel   *m = b->model;
	const TnpConfig *c = &m->config;
	const TnpEncoderConfig *e = &c->encode_x;
	TnpTokeniser *t = &m->tokeniser;
	int			dc = e->token_width;
	TnpHidden	cell_hidden = {1, {2 * dc}};

	t->slot = bind_slots(b, c->max_features, e->hidden.size[0]);
	t->out = bind_linear(b, "embed.x.out", e->hidden.size[0], c->width, true);
	if (dc == 0)
		return;
	t->cell = bind_mlp(b, "embed.x.cell", tnp_cell_width(m), &cell_hidden, dc,
					   c->embedder_activation);
	t->code = bind_tensor(b, "embed.x.code", 2, c->max_features, dc, 0);
	t->readout = bind_tensor(b, "embed.x.readout", 2, e->token_readouts, dc, 0);
	t->blocks = bind_layers(b, "embed.x.block", e->token_layers, dc, e->token_feedforward, false);
	t->pool = bind_linear(b, "embed.x.pool", e->token_readouts * dc, c->width, true);
}

static TnpEncoder
bind_encoder(Binder *b, const char *name, const TnpEncoderConfig *e, int in)
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
			encoder.mlp.linear[0] = bind_linear(b, name, in, c->width, true);
			break;
		case TNP_ENCODE_MLP:
			encoder.mlp = bind_mlp(b, name, in, &e->hidden, c->width, c->embedder_activation);
			break;
		case TNP_ENCODE_SKIP_MLP:
			snprintf(full, sizeof(full), "%s.first", name);
			encoder.first = bind_linear(b, full, in, c->width, true);
			snprintf(full, sizeof(full), "%s.rest", name);
			encoder.mlp = bind_mlp(b, full, c->width, e->hidden.n > 0 ? &e->hidden : &none,
								   c->width, c->embedder_activation);
			break;
		case TNP_ENCODE_ROWS:
			bind_tokeniser(b);
			break;
		case TNP_ENCODE_CLASSES:
			snprintf(full, sizeof(full), "%s.weight", name);
			encoder.table = bind_tensor(b, full, 2, c->head_outputs, c->width, 0);
			break;
	}
	return encoder;
}

static void
bind_embedder(Binder *b)
{
	TnpModel   *m = b->model;
	const TnpConfig *c = &m->config;

	if (c->embedder == TNP_CONCAT)
	{
		m->embed_xy = bind_mlp(b, "embed.xy", c->n_features + 1 + (c->concat_flag ? 1 : 0),
							   &c->concat_hidden, c->width, c->embedder_activation);
		return;
	}
	m->embed_x = bind_encoder(b, "embed.x", &c->encode_x, c->n_features);
	m->embed_y = bind_encoder(b, "embed.y", &c->encode_y, 1);
	if (c->roles)
		m->role = bind_tensor(b, "role", 2, 3, c->width, 0);
	if (c->positions > 0)
		m->position = bind_tensor(b, "pos", 2, c->positions, c->width, 0);
}

static void
bind_head(Binder *b)
{
	TnpModel   *m = b->model;
	const TnpConfig *c = &m->config;
	int			out = c->head == TNP_HEAD_GAUSSIAN ? 2 : c->head == TNP_HEAD_MIXTURE
		? 3 * c->head_outputs : c->head_outputs;

	if (c->final_norm)
		m->final_norm = bind_norm(b, "final_norm", c->width);
	m->head = bind_mlp(b, "head", c->width, &c->head_hidden, out, c->head_activation);
	if (c->head != TNP_HEAD_BARS)
		return;
	m->borders = bind_tensor(b, "head.borders", 1, c->head_outputs + 1, 0, 0);
	for (int i = 0; b->status == TNP_OK && i < c->head_outputs; i++)
		if (!(m->borders[i] < m->borders[i + 1]))
		{
			b->status = tnp_fail(b->error, TNP_BAD_TENSOR,
								 "tensor \"head.borders\" is not strictly increasing");
			tnp_detail(b->error, "border %d is %g, border %d is %g", i, m->borders[i], i + 1,
					   m->borders[i + 1]);
		}
}

/* Bind every tensor that the configuration asks for, and refuse a file that holds others. */
static TnpStatus
bind_model(TnpModel *m, const TnpFile *file, TnpError *error)
{
	Binder		b = {m, file, error, TNP_OK, 0};
	const TnpConfig *c = &m->config;

	bind_embedder(&b);
	if (c->architecture == TNP_PACKED)
	{
		if (c->sinks > 0)
			m->sinks = bind_tensor(&b, "sinks", 2, c->sinks, c->width, 0);
		m->layers = bind_layers(&b, "layer", c->layers, c->width, c->feedforward, c->log_scale);
	}
	else
	{
		m->layers = bind_layers(&b, "self", c->layers, c->width, c->feedforward, false);
		m->cross = bind_layers(&b, "cross", c->layers, c->width, c->feedforward, false);
	}
	bind_head(&b);
	if (b.status == TNP_OK && b.bound != file->n_tensors)
	{
		b.status = tnp_fail(error, TNP_BAD_TENSOR,
							"the file holds tensors that the configuration does not use");
		tnp_detail(error, "%d tensors in the file, %d used by the configuration", file->n_tensors,
				   b.bound);
	}
	return b.status;
}

static void
fill_info(TnpModel *m)
{
	static const char *const contexts[] = {"full", "causal", "prefix-causal"};
	static const char *const heads[] = {"gaussian", "mixture", "bars", "classes"};
	const TnpConfig *c = &m->config;
	TnpModelInfo *info = &m->info;
	bool		rows = c->embedder == TNP_ADDITIVE && c->encode_x.kind == TNP_ENCODE_ROWS;

	info->architecture = c->architecture == TNP_PACKED ? "packed" : "two-stream";
	info->context = contexts[c->context];
	info->description = c->description;
	info->head = heads[c->head];
	info->n_classes = tnp_classes(m);
	info->n_features = c->n_features;
	info->max_features = c->max_features;
	info->min_rows = c->min_rows;
	info->buffer = c->buffer;
	info->row_limit = c->row_limit;
	info->appendable = c->context != TNP_FULL;
	info->takes_missing = info->takes_categories = rows;
	info->scales_by_prefix = c->input_scaling == TNP_SCALE_PREFIX
		|| c->target_scaling == TNP_SCALE_PREFIX;
	info->encoding_bytes_per_row = (size_t) c->layers * (c->architecture == TNP_PACKED ? 2 : 4) *
		c->width * m->kernels->number +
		(c->encode_x.logistic ? tnp_classes(m) * sizeof(float) : 0);
}

TnpStatus
tnp_model_open(const TnpEnv *env, const void *bytes, size_t length, TnpModel **model,
			   TnpError *error)
{
	TnpModel   *m;
	TnpFile		file;
	TnpStatus	status;

	*model = NULL;
	if (env == NULL)
		env = &tnp_default_env;
	m = tnp_keep_zero(env, 1, sizeof(TnpModel));
	if (m == NULL)
		return tnp_no_memory(error);
	m->env = *env;
	m->kernels = env->kernels != NULL ? env->kernels : &tnp_reference_kernels;
	if (m->kernels->api != TNP_KERNELS_API || m->kernels->size != sizeof(TnpKernels))
	{
		tnp_fail(error, TNP_BAD_ARGUMENT,
				 "provider \"%s\" has interface version %d, this engine needs %d", m->kernels->name,
				 m->kernels->api, TNP_KERNELS_API);
		tnp_drop(env, m);
		return TNP_BAD_ARGUMENT;
	}

	status = tnp_file_open(env, bytes, length, &file, error);
	if (status != TNP_OK)
	{
		tnp_drop(env, m);
		return status;
	}
	status = tnp_config_parse(env, file.config, file.config_length, &m->config, error);
	if (status == TNP_OK)
		status = bind_model(m, &file, error);
	tnp_file_close(env, &file);
	if (status != TNP_OK)
	{
		tnp_model_close(m);
		return status;
	}
	fill_info(m);
	*model = m;
	return TNP_OK;
}

void
tnp_model_close(TnpModel *model)
{
	TnpEnv		env;

	if (model == NULL)
		return;
	env = model->env;
	for (int i = 0; i < model->n_blocks; i++)
		tnp_drop(&env, model->blocks[i]);
	tnp_drop(&env, model->blocks);
	tnp_drop(&env, model->layers);
	tnp_drop(&env, model->cross);
	tnp_drop(&env, model->tokeniser.blocks);
	tnp_config_free(&env, &model->config);
	tnp_drop(&env, model);
}

const TnpModelInfo *
tnp_model_info(const TnpModel *model)
{
	return &model->info;
}

int
tnp_ridge_width(const TnpModel *model)
{
	int			classes = tnp_classes(model);

	return model->config.encode_x.ridge ? TNP_RIDGES * (classes > 0 ? classes + 2 : 3) : 0;
}

int
tnp_logistic_width(const TnpModel *model)
{
	return model->config.encode_x.logistic ? tnp_classes(model) + 1 : 0;
}

int
tnp_prior_logits_width(const TnpModel *model)
{
	return model->config.logistic_blend_weight > 0 ? tnp_classes(model) : 0;
}

int
tnp_regression_features_width(const TnpModel *model)
{
	return tnp_ridge_width(model) + tnp_logistic_width(model);
}
