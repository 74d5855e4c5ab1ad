/*
 * scan.c: the packed stack with a kernel of the distance between rows in its logits, and with
 * widths of queries and values of their own (docs/families.md, "Attention with a kernel bias";
 * Jenson et al. 2024, eq. (4) to (8)).
 *
 * Where rows lie in the kernel's columns is known in double precision: the end of a token's state
 * is its place, and the cache has that of each slot, whatever the layer. Differences are taken
 * before anything is rounded. Attention is one pass over blocks of keys with a running maximum that
 * begins at minus infinity, so that no weight is added to by an epsilon. A row's sums are its own,
 * in the order of the slots.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/packed.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/families/stack.h"
#include "engine/features/scale.h"

#define BLOCK TNP_BLOCK
#define LOG2_E 1.44269504088896341f

typedef struct ScanLayer
{
	TnpPackedLayer base;
	const float *height,		/* [components, heads, basis] each */
			   *rate,
			   *center;
} ScanLayer;

/* ---- sizes ----------------------------------------------------------------------------------- */

/* Numbers of a place: the components' columns, and the one that is causal, if any. */
static int
scan_places_of(const TnpConfig *c)
{
	const TnpKernelConfig *k = &tnp_packed_config(c)->kernel;

	return k->basis == 0 ? 0 : k->end[k->components - 1] + (k->causal > 0 ? 1 : 0);
}

static int
scan_place_width(const TnpModel *model)
{
	return scan_places_of(&model->config) * (int) (sizeof(double) / sizeof(float));
}

static void
scan_block_sizes(const TnpModel *model, TnpBlockSizes *sizes)
{
	const TnpConfig *c = &model->config;

	*sizes = (TnpBlockSizes){c->width,
							 tnp_packed_query_width(c),
							 tnp_packed_value_width(c),
							 c->feedforward,
							 c->heads,
							 c->width + 2 * tnp_widest_hidden(&tnp_packed_config(c)->value_hidden)};
}

static void
scan_cache_shape(const TnpModel *model, TnpCacheShape *shape)
{
	const TnpConfig *c = &model->config;

	*shape = (TnpCacheShape) {c->layers, c->heads, tnp_packed_query_width(c) / c->heads,
							  tnp_packed_value_width(c) / c->heads, sizeof(float),
							  (size_t) scan_places_of(c) * sizeof(double)};
}

static size_t
scan_row_bytes(const TnpModel *model)
{
	TnpCacheShape s;

	scan_cache_shape(model, &s);
	return (size_t) s.layers * s.heads * (s.key_width + s.value_width) * s.number + s.extra;
}

static double
scan_cost(const TnpModel *model, double rows, double keys)
{
	const TnpConfig *c = &model->config;
	const TnpKernelConfig *k = &tnp_packed_config(c)->kernel;

	/* about ten multiplications make an exponential */
	return tnp_stack_cost(model, c->layers, rows, keys)
		+ rows * keys * c->layers * c->heads * 10 * (1 + k->components * k->basis);
}

/* ---- the file -------------------------------------------------------------------------------- */

static TnpStatus
scan_check(const TnpConfig *c, TnpError *error)
{
	const TnpRule rules[] = {
		{c->n_features == 0, "attention.kernel needs inputs.features", NULL, 0, NULL, 0},
	};
	TnpStatus	status = tnp_packed_check(c, error);

	return status == TNP_OK
		? tnp_check_rules(sizeof(rules) / sizeof(rules[0]), rules, error) : status;
}

static void
scan_bind_layer(TnpBinder *b, const char *name, ScanLayer *layer)
{
	int			heads = b->model->config.heads;
	const TnpKernelConfig *k = &tnp_packed_config(&b->model->config)->kernel;
	char		full[64];

	tnp_packed_bind_layer(b, name, true, &layer->base);
	if (k->basis == 0)
		return;
#define NAMED(suffix) (snprintf(full, sizeof(full), "%s" suffix, name), full)
	layer->height = tnp_bind_tensor(b, NAMED(".attn.kernel.a"), 3, k->components, heads, k->basis);
	layer->rate = tnp_bind_tensor(b, NAMED(".attn.kernel.b"), 3, k->components, heads, k->basis);
	layer->center = tnp_bind_tensor(b, NAMED(".attn.kernel.c"), 3, k->components, heads, k->basis);
#undef NAMED
}

static void
scan_bind(TnpBinder *b)
{
	int			layers = b->model->config.layers;
	ScanLayer  *layer = tnp_bind_memory(b, (size_t) layers * sizeof(ScanLayer));

	b->model->own = layer;
	for (int l = 0; layer != NULL && l < layers; l++)
	{
		char		name[32];

		snprintf(name, sizeof(name), "layer.%d", l);
		scan_bind_layer(b, name, &layer[l]);
	}
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static void
scan_place(const TnpModel *model, const struct TnpStats *stats, const double *x, float *out)
{
	const TnpKernelConfig *k = &tnp_packed_config(&model->config)->kernel;
	double		place[TNP_MAX_PLACES + 1];
	int			n = k->basis > 0 ? k->end[k->components - 1] : 0;

	for (int i = 0; i < n; i++)
		place[i] = tnp_scale_feature(model, stats, k->column[i], x[k->column[i]]);
	if (k->causal > 0)
		place[n++] = tnp_scale_feature(model, stats, k->causal - 1, x[k->causal - 1]);
	memcpy(out, place, n * sizeof(double));
}

/* ---- attention ------------------------------------------------------------------------------- */

/* What a row asks of one layer. */
typedef struct Scan
{
	const ScanLayer *layer;
	const TnpConfig *config;
	const TnpKernelConfig *kernel;
	int			heads,
				key_width,		/* of a head */
				value_width,
				places;
	const float *q;				/* [heads, key width], scaled by 1 / sqrt(key width) */
	double		place[TNP_MAX_PLACES + 1];
	float		largest[TNP_MAX_WIDTH];		/* [heads] logits so far */
	double		sum[TNP_MAX_WIDTH];			/* [heads] of weights, relative to the largest */
	double		values[TNP_MAX_WIDTH];		/* [heads, value width] weighted */
} Scan;

/* 2^x of n numbers, at most 0; to about 1e-7. Minus infinity gives 0. */
static void
scan_exponentials(int n, float *x)
{
	for (int i = 0; i < n; i++)
	{
		/* NaN is -126 here, and 0 in the end: callers look for it before */
		float		v = x[i] >= -126 ? x[i] : -126,
					whole = (v + 12582912.0f) - 12582912.0f,
					f = v - whole,
					p = 1.5403530e-4f;
		int32_t		bits = ((int32_t) whole + 127) * (1 << 23);
		float		power;

		p = p * f + 1.3333558e-3f;
		p = p * f + 9.6181291e-3f;
		p = p * f + 5.5504109e-2f;
		p = p * f + 2.4022651e-1f;
		p = p * f + 6.9314718e-1f;
		p = p * f + 1.0f;
		memcpy(&power, &bits, sizeof(power));
		x[i] = x[i] >= -126 ? p * power : 0;
	}
}

/* Distances of a component to n slots. */
static void
scan_distances(const Scan *s, int component, int n, const double *places, float *out)
{
	int			begin = component > 0 ? s->kernel->end[component - 1] : 0,
				end = s->kernel->end[component];

	for (int i = 0; i < n; i++)
	{
		double		square = 0;

		for (int c = begin; c < end; c++)
		{
			double		difference = s->place[c] - places[(size_t) i * s->places + c];

			square += difference * difference;
		}
		out[i] = (float) sqrt(square);
	}
}

/* Add a component's kernel of one head to logits [BLOCK], in units of log 2. */
static void
scan_add_kernel(const Scan *s, int component, int head, const float *distance, float *logits)
{
	int			basis = s->kernel->basis;
	size_t		at = ((size_t) component * s->heads + head) * basis;

	for (int b = 0; b < basis; b++)
	{
		float		height = s->layer->height[at + b] * LOG2_E,
					rate = -fabsf(s->layer->rate[at + b]) * LOG2_E,
					center = s->layer->center[at + b];
		float		bump[BLOCK];

		for (int i = 0; i < BLOCK; i++)
			bump[i] = rate * (distance[i] - center) * (distance[i] - center);
		scan_exponentials(BLOCK, bump);
		for (int i = 0; i < BLOCK; i++)
			logits[i] += height * bump[i];
	}
}

/* q . k of one head for the slots of a block, in units of log 2. */
static void
scan_add_products(const Scan *s, int head, const float *key, float *logits)
{
	const float *q = s->q + head * s->key_width;

	for (int p = 0; p < BLOCK; p += TNP_PANEL, key += TNP_PANEL * s->key_width)
		for (int f = 0; f < s->key_width; f++)
			for (int i = 0; i < TNP_PANEL; i++)
				logits[p + i] += q[f] * key[f * TNP_PANEL + i];
}

/* Take n slots of one head into its sums; what is not visible has a logit of minus infinity. */
static void
scan_take_slots(Scan *s, int head, int n, const float *value, float *logits)
{
	double	   *values = s->values + head * s->value_width;
	float		largest = s->largest[head];

	for (int i = 0; i < n; i++)
		if (logits[i] > largest || isnan(logits[i]))
			largest = logits[i];
	if (largest == -INFINITY)
		return;
	if (isnan(largest))
	{
		s->sum[head] = NAN;
		return;
	}
	if (largest != s->largest[head])
	{
		double		shrink = exp2((double) s->largest[head] - largest);

		s->largest[head] = largest;
		s->sum[head] *= shrink;
		for (int f = 0; f < s->value_width; f++)
			values[f] *= shrink;
	}
	for (int i = 0; i < BLOCK; i++)
		logits[i] = i < n ? logits[i] - largest : -INFINITY;
	scan_exponentials(BLOCK, logits);
	for (int i = 0; i < n; i++)
	{
		double		weight = logits[i];

		s->sum[head] += weight;
		for (int f = 0; f < s->value_width; f++)
			values[f] += weight * value[(size_t) i * s->value_width + f];
	}
}

/*
 * All heads take the first n slots, at most BLOCK, from slot number `first` on, a multiple of
 * BLOCK, or of TNP_PANEL in blocks of as many.
 */
static void
scan_slots(Scan *s, const TnpKeys *keys, int block, int64_t first, int n, const double *places)
{
	float		distance[TNP_MAX_COMPONENTS][BLOCK],
				logits[BLOCK];

	memset(distance, 0, sizeof(distance));
	for (int g = 0; g < s->kernel->components && s->kernel->basis > 0; g++)
		scan_distances(s, g, n, places + (size_t) first * s->places, distance[g]);
	for (int h = 0; h < s->heads; h++)
	{
		const float *key = (const float *) keys->k
			+ tnp_key_at(first, block, s->heads * s->key_width, h, s->key_width, 0),
				   *value = (const float *) keys->v
			+ tnp_value_at(first, block, s->heads * s->value_width, h, s->value_width);

		memset(logits, 0, sizeof(logits));
		if (block == BLOCK)
			scan_add_products(s, h, key, logits);
		else
			for (int f = 0; f < s->key_width; f++)
				for (int i = 0; i < TNP_PANEL; i++)
					logits[i] += s->q[h * s->key_width + f] * key[f * TNP_PANEL + i];
		for (int g = 0; g < s->kernel->components && s->kernel->basis > 0; g++)
			scan_add_kernel(s, g, h, distance[g], logits);
		for (int i = 0; i < n && s->kernel->causal > 0; i++)
			if (places[(size_t) (first + i + 1) * s->places - 1] > s->place[s->places - 1])
				logits[i] = -INFINITY;
		scan_take_slots(s, h, n, value, logits);
	}
}

/* All keys that a row sees: the first n of a cache. */
static void
scan_keys(Scan *s, const TnpKeys *keys, int block, const char *places)
{
	int			step = block == BLOCK ? BLOCK : TNP_PANEL;

	for (int64_t first = 0; first < keys->n; first += step)
		scan_slots(s, keys, block, first, keys->n - first < step ? (int) (keys->n - first) : step,
				   (const double *) (const void *) places);
}

/* The mean of weighted values; NaN where rounding may have made the weights (kernels.h). */
static float
scan_mean(double sum, float largest, double values)
{
	if (sum == 0)
		return 0;
	return fabsf(largest) <= TNP_LARGEST_SCORE && sum > 0 ? (float) (values / sum) : NAN;
}

static void
scan_attend(const TnpWalk *walk, const TnpToken *tokens, int n, const float *h,
			const TnpView *view, const TnpAttention *a)
{
	const TnpConfig *c = &walk->model->config;
	const TnpCacheShape *shape = &walk->context->shape;
	Scan		s = {.layer = walk->layer, .config = c,
					 .kernel = &tnp_packed_config(c)->kernel, .heads = shape->heads,
					 .key_width = shape->key_width, .value_width = shape->value_width,
					 .places = scan_places_of(c)};
	int			values = shape->heads * shape->value_width;

	for (int i = 0; i < n; i++)
	{
		TnpKeys		shared = {view->k, view->v, view->context[i]};

		memcpy(s.place, h + (size_t) i * walk->state_width + c->width, s.places * sizeof(double));
		s.q = a->q + (size_t) i * s.heads * s.key_width;
		for (int j = 0; j < s.heads; j++)
			s.largest[j] = -INFINITY;
		memset(s.sum, 0, s.heads * sizeof(double));
		memset(s.values, 0, values * sizeof(double));
		scan_keys(&s, &shared, TNP_BLOCK, walk->context->extra);
		if (tokens[i].own != NULL)
			scan_keys(&s, &view->own[i], TNP_PANEL, tokens[i].own->extra);
		for (int f = 0; f < values; f++)
		{
			int			head = f / s.value_width;

			a->out[(size_t) i * values + f] = scan_mean(s.sum[head], s.largest[head], s.values[f]);
		}
	}
}

/* ---- the layer ------------------------------------------------------------------------------- */

static void
scan_make_keys(const TnpModel *model, const void *layer, int n, const float *h, TnpBlockWork *work)
{
	const TnpPackedLayer *l = &((const ScanLayer *) layer)->base;
	const float *u = tnp_packed_input(model, l, n, h, work);

	model->kernels->linear(&l->k, n, u, TNP_IDENTITY, false, work->q);
	tnp_mlp(model, &l->v, n, u, work->more + (size_t) n * model->config.width, work->att);
}

static void
scan_query(const TnpModel *model, const void *layer, int n, const float *h, const TnpView *view,
		   TnpBlockWork *work, TnpAttention *attention)
{
	const TnpPackedLayer *l = &((const ScanLayer *) layer)->base;
	int			heads = model->config.heads,
				width = l->q.out;
	float		scale = (float) (1.44269504088896341 / sqrt((double) width / heads));

	model->kernels->linear(&l->q, n, tnp_packed_input(model, l, n, h, work), TNP_IDENTITY, false,
						   work->q);
	for (size_t i = 0; i < (size_t) n * width; i++)
		work->q[i] *= scale;
	*attention = (TnpAttention) {heads, width / heads, n, n, work->q, work->scale, view->k,
								 view->v, view->context, view->own, work->attend, work->att};
}

static void
scan_finish(const TnpModel *model, const void *layer, int n, float *h, TnpBlockWork *work)
{
	const TnpPackedLayer *l = &((const ScanLayer *) layer)->base;
	float	   *state = tnp_packed_gather(model, n, h, work->more);

	model->kernels->linear(&l->o, n, work->att, TNP_IDENTITY, true, state);
	tnp_packed_finish(model, l, n, state, h, work);
}

static TnpStatus
scan_walk(TnpWalk *w, int64_t n, int64_t n_store, TnpError *error)
{
	static const TnpBlockOps ops = {scan_make_keys, scan_query, scan_attend, scan_finish};

	w->ops = &ops;
	return tnp_stack_walk(w, w->model->own, sizeof(ScanLayer), n, n_store, error);
}

const TnpFamily tnp_scan_family = {
	.name = "packed",
	.variant = "a kernel or widths of its own",
	.embedders = 1 << TNP_CONCAT | 1 << TNP_ADDITIVE | 1 << TNP_PARTS,
	.check = scan_check,
	.several_targets = true,
	.bind = scan_bind,
	.head_width = tnp_stack_head_width,
	.appendable = tnp_stack_appendable,
	.cache_shape = scan_cache_shape,
	.slots = tnp_stack_slots,
	.row_bytes = scan_row_bytes,
	.state_width = tnp_packed_state_width,
	.block_sizes = scan_block_sizes,
	.place_width = scan_place_width,
	.place = scan_place,
	.embed = tnp_packed_embed,
	.embed_scratch = tnp_packed_embed_scratch,
	.row_token = tnp_stack_row_token,
	.encode = tnp_encode_rows,
	.walk = scan_walk,
	.cost = scan_cost,
};
