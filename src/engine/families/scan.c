/*
 * scan.c: the packed stack with a kernel of the distance between rows in its logits, and with
 * widths of queries and values of their own (docs/families.md, "Attention with a kernel bias";
 * Jenson et al. 2024, eq. (4) to (8)).
 *
 * Where rows lie in the kernel's columns is known in double precision: the end of a token's state
 * is its place, and the cache has that of each slot, whatever the layer. Differences are taken
 * before anything is rounded. The kernel table adds the bumps to the scores and takes one block of
 * keys after the other (kernels.h, TnpBumps). A row's sums are its own, in the order of the slots.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/packed.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/families/stack.h"
#include "engine/features/scale.h"

#define LOG2_E 1.44269504088896341f

typedef struct ScanLayer
{
	TnpPackedLayer base;
	const float *height,		/* [components, heads, basis] each, in units of log 2 */
			   *rate,			/* at most 0 */
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
	int			more = c->width + 2 * tnp_widest_hidden(&tnp_packed_config(c)->value_hidden),
				sums = (int) model->kernels->bump_floats(c->heads,
														 tnp_packed_value_width(c) / c->heads);

	*sizes = (TnpBlockSizes){c->width,
							 tnp_packed_query_width(c),
							 tnp_packed_value_width(c),
							 c->feedforward,
							 c->heads,
							 more > sums ? more : sums, 1};
}

static void
scan_cache_shape(const TnpModel *model, TnpCacheShape *shape)
{
	const TnpConfig *c = &model->config;

	*shape = (TnpCacheShape) {c->layers, c->heads, tnp_packed_query_width(c) / c->heads,
							  tnp_packed_value_width(c) / c->heads, sizeof(float),
							  (size_t) scan_places_of(c) * sizeof(double), .planes = 1};
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

/* A tensor of the kernel in units of log 2; where `falls`, minus its size. */
static const float *
scan_bind_scaled(TnpBinder *b, const char *name, bool falls)
{
	int			heads = b->model->config.heads;
	const TnpKernelConfig *k = &tnp_packed_config(&b->model->config)->kernel;
	size_t		n = (size_t) k->components * heads * k->basis;
	const float *given = tnp_bind_tensor(b, name, 3, k->components, heads, k->basis);
	float	   *scaled = tnp_bind_memory(b, n * sizeof(float));

	for (size_t i = 0; scaled != NULL && given != NULL && i < n; i++)
		scaled[i] = falls ? -fabsf(given[i]) * LOG2_E : given[i] * LOG2_E;
	return scaled;
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
	layer->height = scan_bind_scaled(b, NAMED(".attn.kernel.a"), false);
	layer->rate = scan_bind_scaled(b, NAMED(".attn.kernel.b"), true);
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
	TnpBumps	bumps;
	const TnpKernels *kernels;
	const TnpKernelConfig *kernel;
	int			places;
	double		place[TNP_MAX_PLACES + 1];
} Scan;

/* Distances of a component to n slots. */
static void
scan_distances(const Scan *s, int component, int n, const double *places, float *out)
{
	int			begin = component > 0 ? s->kernel->end[component - 1] : 0,
				end = s->kernel->end[component];
	double		place = s->place[begin];

	/* of one column the root of a square is the size */
	for (int i = 0; end == begin + 1 && i < n; i++)
		out[i] = (float) fabs(place - places[(size_t) i * s->places + begin]);
	for (int i = 0; end > begin + 1 && i < n; i++)
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

/* All keys that a row sees: the first n of a cache, a block at a time. */
static void
scan_keys(const Scan *s, const TnpKeys *keys, int block, const char *extra)
{
	const double *places = (const double *) (const void *) extra;
	int			d_keys = s->bumps.heads * s->bumps.key_width,
				d_values = s->bumps.heads * s->bumps.value_width;
	float		distance[TNP_MAX_COMPONENTS * TNP_BLOCK] = {0};
	bool		hidden[TNP_BLOCK];

	for (int64_t first = 0; first < keys->n; first += block)
	{
		int			n = keys->n - first < block ? (int) (keys->n - first) : block;

		for (int g = 0; g < s->bumps.components; g++)
			scan_distances(s, g, n, places + (size_t) first * s->places, distance + g * TNP_BLOCK);
		for (int i = 0; i < n && s->kernel->causal > 0; i++)
			hidden[i] = places[(size_t) (first + i + 1) * s->places - 1] > s->place[s->places - 1];
		s->kernels->bump_take(&s->bumps, (const float *) keys->k + (size_t) first * d_keys,
							  (const float *) keys->v + (size_t) first * d_values, block, n,
							  distance, s->kernel->causal > 0 ? hidden : NULL);
	}
}

static void
scan_attend(const TnpWalk *walk, const TnpToken *tokens, int n, const float *h,
			const TnpView *view, const TnpAttention *a)
{
	const TnpConfig *c = &walk->model->config;
	const TnpCacheShape *shape = &walk->context->shape;
	const TnpKernelConfig *kernel = &tnp_packed_config(c)->kernel;
	const ScanLayer *layer = walk->layer;
	Scan		s = {{shape->heads, shape->key_width, shape->value_width,
					  kernel->basis > 0 ? kernel->components : 0, kernel->basis, layer->height,
					  layer->rate, layer->center, NULL, a->scratch},
					 walk->model->kernels, kernel, scan_places_of(c), {0}};

	for (int i = 0; i < n; i++)
	{
		TnpKeys		shared = {view->k, view->v, view->context[i]};

		memcpy(s.place, h + (size_t) i * walk->state_width + c->width, s.places * sizeof(double));
		s.bumps.q = a->q + (size_t) i * shape->heads * shape->key_width;
		s.kernels->bump_begin(&s.bumps);
		scan_keys(&s, &shared, TNP_BLOCK, walk->context->extra);
		if (tokens[i].own != NULL)
			scan_keys(&s, &view->own[i], TNP_PANEL, tokens[i].own->extra);
		s.kernels->bump_end(&s.bumps, a->out + (size_t) i * shape->heads * shape->value_width);
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
								 view->v, view->context, view->own, work->more, work->att, 1};
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
