/*
 * encoding.c: encodings in device memory: built, appended to, merged, and read back.
 *
 * Statistics and scaled features come from the engine, on the host. Up to 16 rows walk all layers
 * in one launch; more take one launch per layer. Everything that can fail happens before the row
 * count moves.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/class_counts.h"
#include "host.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FEW_ROWS 16

/* ---- rows ------------------------------------------------------------------------------------ */

/* Scaled targets of rows [first, first + n). */
static TnpStatus
fill_targets(const TnpDeviceEncoding *e, const TnpRows *rows, int64_t first, int64_t n, float *y,
			 TnpError *error)
{
	for (int64_t i = 0; i < n; i++)
	{
		y[i] = tnp_scale_target(e->model->model, &e->stats, rows->y[first + i]);
		if (!isfinite(y[i]))
			return tnp_fail(error, TNP_BAD_VALUE, "a target is too large for the model");
	}
	return TNP_OK;
}

TnpStatus
cuda_rows_check(const TnpDeviceEncoding *e, const TnpRows *rows, bool need_y, TnpError *error)
{
	int			classes = e->stats.n_classes;
	TnpStatus	status;

	if (rows->n_features != e->n_features)
		return tnp_fail(error, TNP_BAD_SHAPE, "%d feature columns given, the context has %d",
						rows->n_features, e->n_features);
	for (int f = 0; f < e->n_features; f++)
		if ((rows->kinds != NULL ? rows->kinds[f] : TNP_NUMERIC) != e->kinds[f])
			return tnp_fail(error, TNP_BAD_VALUE, "feature %d is %s, in the context it is %s",
							f + 1, e->kinds[f] == TNP_NUMERIC ? "categorical" : "numeric",
							e->kinds[f] == TNP_NUMERIC ? "numeric" : "categorical");
	status = tnp_rows_check(e->model->model, rows, need_y, error);
	if (status != TNP_OK || !need_y || classes == 0)
		return status;
	if (rows->n_classes != 0 && rows->n_classes != classes)
		return tnp_fail(error, TNP_BAD_VALUE, "%d classes given, the context has %d",
						rows->n_classes, classes);
	for (int64_t i = 0; status == TNP_OK && i < rows->n; i++)
		status = tnp_class_check(rows->y[i], classes, i, error);
	return status;
}

/*
 * Whether `later` rows after the prefix fit the chain buffer of a model whose rows otherwise all
 * belong to the prefix.
 */
static TnpStatus
check_buffer(const TnpModel *model, int64_t later, TnpError *error)
{
	const TnpConfig *c = &model->config;

	if (c->context != TNP_FULL || c->buffer == 0 || later < c->buffer)
		return TNP_OK;
	tnp_fail(error, TNP_BAD_ARGUMENT, "more rows after the prefix than the model's buffer stores");
	tnp_detail(error, "%lld rows, the buffer stores %d", (long long) later, c->buffer - 1);
	return TNP_BAD_ARGUMENT;
}

/* ---- keys and values in device memory -------------------------------------------------------- */

static int64_t
cache_heads(const TnpDeviceModel *m)
{
	return (int64_t) m->shape.layers * (m->shape.two_stream ? 2 : 1) * m->shape.heads;
}

static size_t
cache_bytes(const TnpDeviceModel *m, int64_t panels)
{
	return (size_t) (cache_heads(m) * panels) * 4 *
		(cuda_key_words(m->shape.precision, m->shape.head_tiles) +
		 cuda_value_words(m->shape.precision, m->shape.head_tiles));
}

/* A zeroed cache for `slots` slots; one piece of memory, of which k is the beginning. */
static TnpStatus
make_cache(const TnpDeviceModel *m, int64_t slots, CudaCache *cache, size_t *bytes, TnpError *error)
{
	TnpDevice  *device = m->device;
	int64_t		panels = (slots + CUDA_BLOCK - 1) / CUDA_BLOCK * (CUDA_BLOCK / CUDA_PANEL);
	void	   *memory;
	GpuResult	result;
	TnpStatus	status;

	if (panels == 0)
		panels = CUDA_BLOCK / CUDA_PANEL;
	if (panels > INT32_MAX / CUDA_PANEL)
		return tnp_no_memory(error);
	*bytes = cache_bytes(m, panels);
	status = cuda_take(device, *bytes, &memory, error);
	if (status != TNP_OK)
		return status;
	result = gpu_clear(memory, *bytes);
	if (result != GPU_OK)
	{
		cuda_give(device, memory, *bytes);
		return cuda_failed(device, result, error);
	}
	cache->k = memory;
	cache->v = cache->k + cache_heads(m) * panels * cuda_key_words(m->shape.precision,
																   m->shape.head_tiles);
	cache->panels = panels;
	return TNP_OK;
}

/* Room for `slots` slots, keeping what is there. */
static TnpStatus
reserve_cache(TnpDeviceEncoding *e, int64_t slots, TnpError *error)
{
	const TnpDeviceModel *m = e->model;
	int			key_words = cuda_key_words(m->shape.precision, m->shape.head_tiles),
				value_words = cuda_value_words(m->shape.precision, m->shape.head_tiles);
	CudaCache	larger;
	size_t		bytes;
	GpuResult	result = GPU_OK;
	TnpStatus	status;

	if (slots <= e->cache.panels * CUDA_PANEL)
		return TNP_OK;
	status = make_cache(m, slots > 2 * e->cache.panels * CUDA_PANEL ? slots
						: 2 * e->cache.panels * CUDA_PANEL, &larger, &bytes, error);
	if (status == TNP_NO_MEMORY)
		status = make_cache(m, slots, &larger, &bytes, error);
	if (status != TNP_OK)
		return status;
	for (int64_t h = 0; result == GPU_OK && h < cache_heads(m); h++)
	{
		result = gpu_copy(larger.k + h * larger.panels * key_words, e->cache.k + h *
						  e->cache.panels * key_words, (size_t) e->cache.panels * key_words * 4);
		if (result == GPU_OK)
			result = gpu_copy(larger.v + h * larger.panels * value_words,
							  e->cache.v + h * e->cache.panels * value_words,
							  (size_t) e->cache.panels * value_words * 4);
	}
	/* the old memory is given back below */
	if (result == GPU_OK)
		result = cuda_drain(m->device);
	if (result != GPU_OK)
	{
		cuda_give(m->device, larger.k, bytes);
		return cuda_failed(m->device, result, error);
	}
	cuda_give(m->device, e->cache.k, e->bytes);
	e->cache = larger;
	e->bytes = bytes;
	return TNP_OK;
}

/* ---- encoding rows --------------------------------------------------------------------------- */

/* Launch what encodes rows and, before the first of them, the sinks. x and y are on the device. */
static TnpStatus
launch_rows(TnpDeviceEncoding *e, CudaWalk *walk, const CudaPlan *plan, TnpError *error)
{
	const TnpDeviceModel *m = e->model;
	TnpDevice  *device = m->device;
	int			launches = walk->mode == CUDA_APPEND ? 1
		: m->shape.layers + (m->shape.two_stream ? 1 : 0);
	int		   *flag = cuda_staging(device, sizeof(int));
	size_t		flags_bytes = (size_t) (1 + plan->arrived) * sizeof(int);
	GpuResult	result;
	TnpStatus	status = TNP_OK;

	walk->flags = cuda_scratch(device, flags_bytes);
	walk->arrived = (unsigned *) walk->flags + 1;
	result = gpu_clear(walk->flags, flags_bytes);
	if (result != GPU_OK)
		return cuda_failed(device, result, error);
	if (m->layered)
		status = cuda_layers_encode(e->model, walk, error);
	for (int l = 0; !m->layered && status == TNP_OK && l < launches; l++)
	{
		walk->layer = l;
		status = cuda_launch(device, 0, plan, walk, error);
	}
	if (status != TNP_OK)
		return status;
	result = gpu_download(0, flag, walk->flags, sizeof(int));
	status = result == GPU_OK ? cuda_wait(device, 0, error) : cuda_failed(device, result, error);
	if (status == TNP_OK && *flag != 0)
		return tnp_fail(error, TNP_BAD_VALUE, "the values of a row are too large for the model%s",
						m->shape.precision == 0 ? " with keys of 16 bits" : "");
	return status;
}

/* encode_rows() once. */
static TnpStatus
try_rows(TnpDeviceEncoding *e, const TnpRows *rows, int64_t first, int64_t n, int64_t at,
			bool in_context, TnpError *error)
{
	TnpDeviceModel *m = e->model;
	TnpDevice  *device = m->device;
	int			sinks = m->shape.sinks,
				width = cuda_x_width(m, &e->stats);
	int64_t		own_sinks = at == 0 ? sinks : 0,
				total = own_sinks + n;
	size_t		x_bytes = (size_t) n * width * sizeof(float),
				y_bytes = (size_t) n * sizeof(float);
	CudaWalk	walk = cuda_walk_of(e, e->prefix, CUDA_ENCODE);
	CudaPlan	plan;
	TnpTeam    *team;
	float	   *x,
			   *y,
			   *device_x,
			   *device_y;
	GpuResult	result;
	TnpStatus	status;

	if (total == 0)
		return TNP_OK;
	walk.mode = total <= FEW_ROWS ? CUDA_APPEND : CUDA_ENCODE;
	walk.n = total;
	walk.first_slot = at == 0 ? 0 : sinks + at;
	walk.with_sinks = at == 0;
	walk.prefix_slots = sinks + e->prefix;
	walk.position = m->model->config.positions > 0 ? 0 : -1;
	walk.x_is_half = m->halves_on_host;
	walk.x_width = width;
	status = cuda_plan(m, walk.first_slot + total, 0, &walk, &plan, error);
	if (status == TNP_OK)
		status = cuda_begin(device, 0, cuda_piece(x_bytes) +
							cuda_piece(y_bytes) + cuda_piece(plan.part_bytes) +
							cuda_piece((size_t) (1 + plan.arrived) * sizeof(int)) +
							cuda_piece(plan.state_bytes) + cuda_piece(plan.query_bytes),
							cuda_piece(x_bytes) + cuda_piece(y_bytes) + cuda_piece(sizeof(int)),
							error);
	if (status != TNP_OK)
		return status;
	x = cuda_staging(device, x_bytes);
	y = cuda_staging(device, y_bytes);
	device_x = cuda_scratch(device, x_bytes);
	device_y = cuda_scratch(device, y_bytes);
	walk.part = cuda_scratch(device, plan.part_bytes);
	walk.state = cuda_scratch(device, plan.state_bytes);
	walk.query = cuda_scratch(device, plan.query_bytes);
	walk.x = device_x;
	walk.target = device_y;
	team = cuda_fill_team(m, &e->stats, first, n, in_context);
	status = cuda_fill_x(m, &e->stats, rows, first, n, in_context, team, x, NULL, error);
	tnp_team_free(team);
	if (status == TNP_OK)
		status = fill_targets(e, rows, first, n, y, error);
	if (status != TNP_OK)
		return status;
	result = gpu_upload(0, device_x, x, x_bytes);
	if (result == GPU_OK)
		result = gpu_upload(0, device_y, y, y_bytes);
	return result == GPU_OK ? launch_rows(e, &walk, &plan, error)
		: cuda_failed(device, result, error);
}

/*
 * Compute keys and values of rows [first, first + n) of `rows`, which are rows at + ... of the
 * encoding, and of the sinks before the first rows. The cache has room. Rows whose keys or values
 * the cache cannot hold fail with TNP_BAD_VALUE; zeros are stored for them, because slots that are
 * not seen are multiplied, too.
 */
static TnpStatus
encode_rows(TnpDeviceEncoding *e, const TnpRows *rows, int64_t first, int64_t n, int64_t at,
			bool in_context, TnpError *error)
{
	TnpStatus	status;

	do
		status = try_rows(e, rows, first, n, at, in_context, error);
	while (cuda_again(e->model->device));
	return status;
}

/* Keep raw rows where they may be encoded again. */
static TnpStatus
keep_rows(TnpDeviceEncoding *e, const TnpRows *rows, TnpError *error)
{
	const TnpConfig *c = &e->model->model->config;
	int64_t		n = e->n + rows->n;
	double	   *x,
			   *y;

	if (c->context != TNP_FULL || c->buffer == 0)
		return TNP_OK;
	x = realloc(e->x, ((size_t) n * e->n_features + 1) * sizeof(double));
	if (x != NULL)
		e->x = x;
	y = realloc(e->y, ((size_t) n + 1) * sizeof(double));
	if (y != NULL)
		e->y = y;
	if (x == NULL || y == NULL)
		return tnp_no_memory(error);
	if (rows->n > 0)
	{
		memcpy(e->x + e->n * e->n_features, rows->x,
			   (size_t) rows->n * e->n_features * sizeof(double));
		memcpy(e->y + e->n, rows->y, (size_t) rows->n * sizeof(double));
	}
	return TNP_OK;
}

void
cuda_encoding_free(TnpDeviceEncoding *e)
{
	if (e == NULL)
		return;
	cuda_give(e->model->device, e->cache.k, e->bytes);
	if (!e->borrowed_stats)
		tnp_stats_free(&e->model->model->env, &e->stats);
	free(e->kinds);
	free(e->x);
	free(e->y);
	free(e);
}

/* An encoding without rows, with room for `slots` slots. */
static TnpStatus
make_encoding(TnpDeviceModel *m, int n_features, const TnpColumnKind *kinds, int64_t slots,
			  TnpDeviceEncoding **out, TnpError *error)
{
	TnpDeviceEncoding *e = calloc(1, sizeof(TnpDeviceEncoding));
	TnpStatus	status;

	*out = NULL;
	if (e == NULL)
		return tnp_no_memory(error);
	e->model = m;
	e->n_features = n_features;
	e->kinds = calloc(n_features, sizeof(TnpColumnKind));
	status = e->kinds == NULL ? tnp_no_memory(error)
		: make_cache(m, slots, &e->cache, &e->bytes, error);
	if (status != TNP_OK)
	{
		cuda_encoding_free(e);
		return status;
	}
	if (kinds != NULL)
		memcpy(e->kinds, kinds, n_features * sizeof(TnpColumnKind));
	*out = e;
	return TNP_OK;
}

TnpStatus
cuda_encoding_build(TnpDeviceModel *m, const TnpRows *rows, int64_t prefix, int64_t capacity,
					TnpDeviceEncoding **encoding, TnpError *error)
{
	const TnpModel *model = m->model;
	const TnpConfig *c = &model->config;
	TnpDeviceEncoding *e;
	TnpStatus	status;

	*encoding = NULL;
	if ((status = tnp_rows_check(model, rows, true, error)) != TNP_OK)
		return status;
	if (rows->n < c->min_rows)
	{
		tnp_fail(error, TNP_TOO_FEW_ROWS, "the context has too few rows for the model");
		tnp_detail(error, "%lld row%s given, at least %d needed", (long long) rows->n,
				   rows->n == 1 ? "" : "s", c->min_rows);
		return TNP_TOO_FEW_ROWS;
	}
	if (prefix < 0 || prefix > rows->n || (c->context == TNP_CAUSAL && prefix > 0))
		return tnp_fail(error, TNP_BAD_ARGUMENT, "a prefix of %lld rows is not possible here",
						(long long) prefix);
	if ((status = check_buffer(model, rows->n - prefix, error)) != TNP_OK)
		return status;
	status = make_encoding(m, rows->n_features, rows->kinds,
						   c->sinks + (capacity > rows->n ? capacity : rows->n), &e, error);
	if (status == TNP_NO_MEMORY && capacity > rows->n)
		status = make_encoding(m, rows->n_features, rows->kinds, c->sinks + rows->n, &e, error);
	if (status != TNP_OK)
		return status;
	e->prefix = prefix;
	status = tnp_stats_build(model, rows, prefix > c->min_rows ? prefix : c->min_rows, &e->stats,
							 error);
	if (status == TNP_OK)
		status = keep_rows(e, rows, error);
	if (status == TNP_OK)
		status = encode_rows(e, rows, 0, rows->n, 0, true, error);
	if (status != TNP_OK)
	{
		cuda_encoding_free(e);
		return status;
	}
	e->n = rows->n;
	*encoding = e;
	return TNP_OK;
}

TnpStatus
cuda_encoding_append(TnpDeviceEncoding *e, const TnpRows *rows, TnpError *error)
{
	TnpStatus	status = cuda_rows_check(e, rows, true, error);

	if (status == TNP_OK)
		status = check_buffer(e->model->model, e->n + rows->n - e->prefix, error);
	if (status != TNP_OK || rows->n == 0)
		return status;
	status = reserve_cache(e, e->model->shape.sinks + e->n + rows->n, error);
	if (status == TNP_OK)
		status = keep_rows(e, rows, error);
	/* rows of the statistics are all there already: none is left out of its own target mean */
	if (status == TNP_OK)
		status = encode_rows(e, rows, 0, rows->n, e->n, false, error);
	if (status == TNP_OK)
		e->n += rows->n;
	return status;
}

TnpStatus
cuda_encoding_merge(const TnpDeviceEncoding *e, int64_t rows, const TnpRows *more,
					TnpDeviceEncoding **merged, TnpError *error)
{
	TnpDeviceEncoding *m;
	TnpRows		old = {rows, e->n_features, e->kinds, e->x, e->y, e->stats.n_classes, 0, 1},
				all;
	TnpStatus	status = make_encoding(e->model, e->n_features, e->kinds,
									   e->model->shape.sinks + rows + more->n, &m, error);

	*merged = NULL;
	if (status != TNP_OK)
		return status;
	m->stats = e->stats;
	m->borrowed_stats = true;
	m->prefix = rows + more->n;
	status = keep_rows(m, &old, error);
	m->n = rows;
	if (status == TNP_OK)
		status = keep_rows(m, more, error);
	all = (TnpRows) {rows + more->n, e->n_features, e->kinds, m->x, m->y, e->stats.n_classes, 0, 1};
	if (status == TNP_OK)
		status = encode_rows(m, &all, 0, all.n, 0, true, error);
	if (status != TNP_OK)
	{
		cuda_encoding_free(m);
		return status;
	}
	m->n = all.n;
	*merged = m;
	return TNP_OK;
}

/* ---- reading back ---------------------------------------------------------------------------- */

/* A number of 16 bits. */
static float
from_half(uint16_t bits)
{
	int			exponent = bits >> 10 & 31;
	float		v = exponent == 0 ? ldexpf((float) (bits & 1023), -24)
		: ldexpf((float) ((bits & 1023) + 1024), exponent - 25);

	return (bits & 0x8000) != 0 ? -v : v;
}

static float
element(const CudaModel *s, const void *memory, size_t at)
{
	return s->precision == 0 ? from_half(((const uint16_t *) memory)[at])
		: ((const float *) memory)[at];
}

TnpStatus
cuda_encoding_export(const TnpDeviceEncoding *e, int layer, int64_t first, int64_t n, float *k,
					 float *v, TnpError *error)
{
	const CudaModel *s = &e->model->shape;
	TnpDevice  *device = e->model->device;
	int			key_words = cuda_key_words(s->precision, s->head_tiles),
				value_words = cuda_value_words(s->precision, s->head_tiles);
	size_t		k_bytes = (size_t) e->cache.panels * key_words * 4,
				v_bytes = (size_t) e->cache.panels * value_words * 4;
	void	   *keys,
			   *values;
	TnpStatus	status;

	if (layer < 0 || layer >= s->layers * (s->two_stream ? 2 : 1) || first < 0 || n < 0
		|| first + n > e->n)
		return tnp_fail(error, TNP_BAD_ARGUMENT, "no such rows or layer");
	status = cuda_begin(device, 0, 0, cuda_piece(k_bytes) + cuda_piece(v_bytes), error);
	if (status != TNP_OK)
		return status;
	keys = cuda_staging(device, k_bytes);
	values = cuda_staging(device, v_bytes);
	for (int head = 0; head < s->heads; head++)
	{
		int64_t		place = ((int64_t) layer * s->heads + head) * e->cache.panels;
		GpuResult	result = gpu_download(0, keys, e->cache.k + place * key_words, k_bytes);

		if (result == GPU_OK)
			result = gpu_download(0, values, e->cache.v + place * value_words, v_bytes);
		if (result != GPU_OK)
			return cuda_failed(device, result, error);
		if ((status = cuda_wait(device, 0, error)) != TNP_OK)
			return status;
		for (int64_t i = 0; i < n; i++)
			for (int f = 0; f < s->head_width; f++)
			{
				int64_t		slot = s->sinks + first + i;
				size_t		to = (size_t) i * s->width + head * s->head_width + f;

				k[to] = element(s, keys, cuda_key_at(s->precision, s->head_tiles, slot, f));
				v[to] = element(s, values, cuda_value_at(s->precision, s->head_tiles, slot, f));
			}
	}
	return TNP_OK;
}
