/*
 * bind.c: binds tensors of a file by name and shape.
 *
 * Tensors are asked for by name and shape and counted; a file that has more tensors than were asked
 * for contains one that the configuration does not know, which is an error (section 12 of
 * docs/model-format.md).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/file/bind.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_PARAMETERS ((int64_t) 1 << 28)
#define NAME_LENGTH 128

/* A block that lives as long as the model, or NULL. */
static void *
binder_keep(TnpBinder *b, size_t size)
{
	TnpModel   *m = b->model;
	void	   *p;

	if (b->status != TNP_OK)
		return NULL;
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
	p = tnp_keep_zero(&m->env, 1, size);
	if (p == NULL)
		b->status = tnp_no_memory(b->error);
	else
		m->blocks[m->n_blocks++] = p;
	return p;
}

void *
tnp_bind_memory(TnpBinder *b, size_t size)
{
	return binder_keep(b, size);
}

float *
tnp_bind_floats(TnpBinder *b, size_t n)
{
	/* aligned to 64 bytes, so that no vector lies across two cache lines */
	float	   *p = n > SIZE_MAX / sizeof(float) - 16 ? NULL
		: binder_keep(b, (n + 16) * sizeof(float));

	if (p == NULL && b->status == TNP_OK)
		b->status = tnp_no_memory(b->error);
	return p == NULL ? NULL : p + (64 - (uintptr_t) p % 64) % 64 / sizeof(float);
}

void
tnp_bind_fail(TnpBinder *b, const char *message, const char *name)
{
	if (b->status == TNP_OK)
		b->status = tnp_fail(b->error, TNP_BAD_TENSOR, "tensor \"%s\" %s", name, message);
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
const float *
tnp_bind_tensor(TnpBinder *b, const char *name, int rank, int64_t d0, int64_t d1, int64_t d2)
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
	data = tnp_bind_floats(b, (size_t) t->n_elements);
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
void
tnp_bind_pack(TnpBinder *b, TnpLinear *w)
{
	const TnpKernels *kernels = b->model->kernels;
	size_t		n;
	float	   *packed;

	if (b->status != TNP_OK || (n = kernels->packed_floats(w->out, w->stride)) == 0)
		return;
	packed = tnp_bind_floats(b, n);
	if (packed == NULL)
		return;
	kernels->pack(w->weight, w->out, w->stride, packed);
	w->packed = packed;
	if (kernels->pack_halves != NULL && are_halves(w->weight, (size_t) w->out * w->stride))
	{
		uint16_t   *half = (uint16_t *) tnp_bind_floats(b, (n + 1) / 2);

		if (half == NULL)
			return;
		kernels->pack_halves(w->weight, w->out, w->stride, half);
		w->halves = half;
	}
}

TnpLinear
tnp_bind_linear(TnpBinder *b, const char *name, int in, int out, bool bias)
{
	TnpLinear	w = {in, out, in, NULL, NULL, NULL, NULL};
	char		full[NAME_LENGTH + 16];

	snprintf(full, sizeof(full), "%s.weight", name);
	w.weight = tnp_bind_tensor(b, full, 2, out, in, 0);
	if (bias)
	{
		snprintf(full, sizeof(full), "%s.bias", name);
		w.bias = tnp_bind_tensor(b, full, 1, out, 0, 0);
	}
	tnp_bind_pack(b, &w);
	return w;
}

TnpNorm
tnp_bind_norm(TnpBinder *b, const char *name, int width)
{
	const TnpConfig *c = &b->model->config;
	TnpNorm		norm = {c->norm, width, (float) c->norm_eps, NULL, NULL};
	char		full[NAME_LENGTH + 16];

	snprintf(full, sizeof(full), "%s.weight", name);
	norm.weight = tnp_bind_tensor(b, full, 1, width, 0, 0);
	if (c->norm == TNP_LAYER_NORM)
	{
		snprintf(full, sizeof(full), "%s.bias", name);
		norm.bias = tnp_bind_tensor(b, full, 1, width, 0, 0);
	}
	return norm;
}

TnpMlp
tnp_bind_mlp(TnpBinder *b, const char *name, int in, const TnpHidden *hidden, int out,
		 TnpActivation activation)
{
	TnpMlp		mlp = {.n = hidden->n + 1,.activation = activation};

	for (int i = 0; i < mlp.n; i++)
	{
		char		full[NAME_LENGTH];
		int			to = i < hidden->n ? hidden->size[i] : out;

		snprintf(full, sizeof(full), "%s.%d", name, i);
		mlp.linear[i] = tnp_bind_linear(b, full, in, to, true);
		in = to;
	}
	return mlp;
}

static TnpLayer
bind_layer(TnpBinder *b, const char *name, int d, int feedforward, bool log_scale)
{
	TnpBias		bias = b->model->config.bias;
	TnpLayer	layer;
	char		full[NAME_LENGTH];

	memset(&layer, 0, sizeof(layer));
#define NAMED(suffix) (snprintf(full, sizeof(full), "%s" suffix, name), full)
	layer.q = tnp_bind_linear(b, NAMED(".attn.q"), d, d, bias == TNP_BIAS_ALL);
	layer.k = tnp_bind_linear(b, NAMED(".attn.k"), d, d, bias == TNP_BIAS_ALL);
	layer.v = tnp_bind_linear(b, NAMED(".attn.v"), d, d, bias == TNP_BIAS_ALL);
	layer.o = tnp_bind_linear(b, NAMED(".attn.o"), d, d, bias != TNP_BIAS_NONE);
	if (log_scale)
		layer.log_scale = tnp_bind_tensor(b, NAMED(".attn.log_scale"), 2, b->model->config.heads, 2,
										  0);
	layer.ff0 = tnp_bind_linear(b, NAMED(".ff.0"), d, feedforward, true);
	layer.ff1 = tnp_bind_linear(b, NAMED(".ff.1"), feedforward, d, true);
	layer.norm1 = tnp_bind_norm(b, NAMED(".norm1"), d);
	layer.norm2 = tnp_bind_norm(b, NAMED(".norm2"), d);
#undef NAMED
	return layer;
}

/* Layers name.0 … name.n-1 in one array, NULL after a failure. */
TnpLayer *
tnp_bind_layers(TnpBinder *b, const char *name, int n, int d, int feedforward, bool log_scale)
{
	TnpLayer   *layers;

	layers = tnp_bind_memory(b, (size_t) (n > 0 ? n : 1) * sizeof(TnpLayer));
	if (layers == NULL)
		return NULL;
	for (int l = 0; l < n; l++)
	{
		char		full[64];

		snprintf(full, sizeof(full), "%s.%d", name, l);
		layers[l] = bind_layer(b, full, d, feedforward, log_scale);
	}
	return layers;
}
