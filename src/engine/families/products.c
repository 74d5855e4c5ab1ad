/*
 * products.c: the packed stack whose attention is a product of features, without a softmax: a deep
 * kernel (docs/families.md, "Deep-kernel attention"; Jenson et al. 2024, eq. (9)) or the positive
 * random features of the softmax kernel ("Performer"; Choromanski et al. 2021, eq. (5) to (7)).
 *
 * A key is the features phi(u) of a row, and what a query reads of rows is the sum of phi v' over
 * them. Rows that all see each other are in these sums alone: they take the first slots of a cache
 * layer's values, whatever the number of rows, and one more row is encoded by reading all of them
 * again. Rows after these, and all rows of a context that is causal, are slots with features and
 * values, which a query meets one by one after the sums: a snapshot may see the first of them only.
 * Where they may be many, marks among them continue the sums (products_marks.h).
 *
 * Sums are in double precision and in the order of the rows, so that they do not depend on threads.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/packed.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/families/stack.h"
#include "engine/families/products_marks.h"
#include "engine/families/products_random.h"
#include "engine/families/products_sums.h"
#include "engine/features/scale.h"
#include "engine/network/mlp.h"

#define CHUNK_ROWS 128			/* rows whose features and values are in a cache at a time */
#define SHARE TNP_PRODUCTS_TOGETHER	/* features whose sums one item makes */
#define MOST_FEATURES 16384		/* of all heads together */
#define SMALLEST_SUM 1e-6		/* of weights, by which random features divide */

typedef struct ProductsLayer
{
	TnpPackedLayer base;
	TnpMlp		qk;				/* of a deep kernel, */
	TnpNorm		norm;
	TnpRandomFeatures random;	/* and of random features */
} ProductsLayer;

/* ---- sizes ----------------------------------------------------------------------------------- */

static bool
products_deep(const TnpConfig *c)
{
	return tnp_packed_config(c)->kind == TNP_DEEP_KERNEL;
}

static int
products_features_of(const TnpConfig *c)
{
	return tnp_packed_config(c)->features;
}

static int
products_value_width_of(const TnpConfig *c)
{
	return tnp_packed_value_width(c) / c->heads;
}

/* Numbers of the sums of one head: for each feature those of its weighted values, and its own. */
static size_t
products_sums_of(const TnpConfig *c)
{
	return (size_t) products_features_of(c) * (products_value_width_of(c) + 1);
}

/* The slots that the sums take. */
static int64_t
products_base(const TnpConfig *c)
{
	size_t		value = products_value_width_of(c) * sizeof(float),
				bytes = products_sums_of(c) * sizeof(double);

	return c->context == TNP_FULL ? tnp_blocks((int64_t) ((bytes + value - 1) / value), TNP_BLOCK)
		: 0;
}

static double
products_divide_by_rows(int64_t seen, double weights)
{
	(void) weights;
	return (double) (seen > 0 ? seen : 1);
}

static double
products_divide_by_weights(int64_t seen, double weights)
{
	(void) seen;
	return weights < SMALLEST_SUM ? SMALLEST_SUM : weights;
}

/* What heads read of a context with such a prefix. */
static TnpProducts
products_of(const TnpConfig *c, int64_t prefix)
{
	int64_t		base = products_base(c);

	return (TnpProducts) {c->heads, 1, products_features_of(c), products_value_width_of(c), base,
		base > 0 ? prefix : 0,
		products_deep(c) ? products_divide_by_rows : products_divide_by_weights};
}

/* Features of a row's place: those of its scaled columns that a deep kernel reads. */
static int
products_place_width(const TnpModel *model)
{
	const TnpConfig *c = &model->config;

	return products_deep(c) && !tnp_packed_config(c)->no_position ? c->n_features : 0;
}

static void
products_block_sizes(const TnpModel *model, TnpBlockSizes *sizes)
{
	const TnpConfig *c = &model->config;
	const TnpPackedConfig *p = tnp_packed_config(c);
	int			joined = tnp_packed_state_width(model) + 2 * tnp_widest_hidden(&p->hidden),
				values = 2 * tnp_widest_hidden(&p->value_hidden),
				more = products_deep(c) ? joined : tnp_packed_query_width(c);

	*sizes = (TnpBlockSizes) {c->width, c->heads * p->features, tnp_packed_value_width(c),
							  c->feedforward, c->heads,
							  c->width + (more > values ? more : values), 1};
}

static void
products_cache_shape(const TnpModel *model, TnpCacheShape *shape)
{
	const TnpConfig *c = &model->config;

	*shape = (TnpCacheShape) {c->layers, c->heads, products_features_of(c),
							  products_value_width_of(c), sizeof(float), .planes = 1};
	/* without a bound of the buffer rows behind the prefix are kept */
	if (c->context != TNP_FULL || c->buffer == 0)
		tnp_products_shape_marks(shape);
}

static int64_t
products_slots(const TnpModel *model, int64_t prefix, int64_t rows)
{
	const TnpConfig *c = &model->config;
	int64_t		later = rows > prefix ? rows - prefix : 0;

	if (c->context != TNP_FULL)
		return rows;
	/* more rows than a chain has room for are never behind the prefix, whatever the capacity */
	return products_base(c) + (c->buffer > 0 && later >= c->buffer ? c->buffer - 1 : later);
}

static size_t
products_row_bytes(const TnpModel *model)
{
	TnpCacheShape s;

	products_cache_shape(model, &s);
	return s.mark_slots == 0 ? 0 : tnp_products_slot_bytes(&s);
}

/* Multiplications of `rows` rows that read the sums, and `keys` rows one by one. */
static double
products_cost(const TnpModel *model, double rows, double keys)
{
	const TnpConfig *c = &model->config;
	double		features = (double) c->heads * products_features_of(c);
	TnpCacheShape s;

	products_cache_shape(model, &s);
	return tnp_stack_cost(model, c->layers, rows, 0)
		+ rows * c->layers
		* (features * (tnp_packed_query_width(c) + products_value_width_of(c))
		   + tnp_products_slots_cost(&s, keys - products_base(c)));
}

/* ---- the file -------------------------------------------------------------------------------- */

static TnpStatus
products_check(const TnpConfig *c, TnpError *error)
{
	const TnpPackedConfig *p = tnp_packed_config(c);
	bool		deep = products_deep(c);
	const TnpRule rules[] = {
		{p->kind == TNP_SOFTMAX,
		 "attention.features, hidden and position need attention.kind \"deep-kernel\" or "
		 "\"random-features\"", NULL, 0, NULL, 0},
		{p->features == 0, "this attention.kind needs attention.features", NULL, 0, NULL, 0},
		{p->kernel.basis > 0, "attention.kernel needs attention.kind \"softmax\"", NULL, 0, NULL,
		 0},
		{deep && c->heads != 1, "attention.kind \"deep-kernel\" needs heads 1", "heads", c->heads,
		 NULL, 0},
		{deep && tnp_packed_value_width(c) != c->width,
		 "attention.value_width must be width for attention.kind \"deep-kernel\"",
		 "attention.value_width", p->value_width, "width", c->width},
		{deep && p->query_width > 0, "attention.kind \"deep-kernel\" excludes "
		 "attention.query_width", NULL, 0, NULL, 0},
		{deep && !p->no_position && c->n_features == 0,
		 "attention that reads positions needs inputs.features", NULL, 0, NULL, 0},
		{!deep && (p->hidden.n > 0 || p->no_position),
		 "attention.hidden and position need attention.kind \"deep-kernel\"", NULL, 0, NULL, 0},
		{p->features > MOST_FEATURES / c->heads,
		 "heads times attention.features must be at most 16384", "heads", c->heads,
		 "attention.features", p->features},
	};
	TnpStatus	status = tnp_check_rules(sizeof(rules) / sizeof(rules[0]), rules, error);

	return status == TNP_OK ? tnp_packed_check(c, error) : status;
}

/* attn.omega, which the heads of a layer share */
static TnpRandomFeatures
products_bind_omega(TnpBinder *b, const char *name)
{
	const TnpConfig *c = &b->model->config;
	int			m = products_features_of(c),
				width = tnp_packed_query_width(c) / c->heads;
	TnpRandomFeatures random = {tnp_bind_tensor(b, name, 2, m, width, 0),
								{.in = width, .out = m, .stride = width}};
	float	   *weight = tnp_bind_floats(b, (size_t) m * width);

	if (random.omega == NULL || weight == NULL)
		return random;
	for (size_t i = 0; i < (size_t) m * width; i++)
		weight[i] = tnp_random_weight(random.omega[i], width);
	random.project.weight = weight;
	tnp_bind_pack(b, &random.project);
	return random;
}

/* attn.qk.0, attn.qk.1, …: the MLP of a place and a state */
static TnpMlp
products_bind_kernel(TnpBinder *b, const char *name)
{
	const TnpConfig *c = &b->model->config;
	const TnpHidden *hidden = &tnp_packed_config(c)->hidden;
	TnpMlp		mlp = {.n = hidden->n + 1, .activation = c->activation};
	int			in = tnp_packed_state_width(b->model);

	for (int i = 0; i < mlp.n; i++)
	{
		int			out = i < hidden->n ? hidden->size[i] : products_features_of(c);
		char		full[64];

		snprintf(full, sizeof(full), "%s.attn.qk.%d", name, i);
		mlp.linear[i] = tnp_bind_linear(b, full, in, out, c->bias == TNP_BIAS_ALL);
		in = out;
	}
	return mlp;
}

static void
products_bind_layer(TnpBinder *b, const char *name, ProductsLayer *layer)
{
	const TnpConfig *c = &b->model->config;
	char		full[64];

	tnp_packed_bind_layer(b, name, !products_deep(c), &layer->base);
	if (products_deep(c))
	{
		layer->qk = products_bind_kernel(b, name);
		snprintf(full, sizeof(full), "%s.attn.norm", name);
		layer->norm = tnp_bind_norm(b, full, c->width);
		return;
	}
	snprintf(full, sizeof(full), "%s.attn.omega", name);
	layer->random = products_bind_omega(b, full);
}

static void
products_bind(TnpBinder *b)
{
	int			layers = b->model->config.layers;
	ProductsLayer *layer = tnp_bind_memory(b, (size_t) layers * sizeof(ProductsLayer));

	b->model->own = layer;
	for (int l = 0; layer != NULL && l < layers; l++)
	{
		char		name[32];

		snprintf(name, sizeof(name), "layer.%d", l);
		products_bind_layer(b, name, &layer[l]);
	}
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static void
products_place(const TnpModel *model, const struct TnpStats *stats, const double *x, float *out)
{
	for (int f = 0; f < products_place_width(model); f++)
		out[f] = (float) tnp_scale_feature(model, stats, f, x[f]);
}

static void
products_row_token(const TnpEncoding *e, int64_t i, TnpToken *token)
{
	const TnpConfig *c = &e->model->config;
	int64_t		slot = products_base(c) + i - e->prefix;

	if (c->context == TNP_FULL)
		*token = (TnpToken) {slot + (c->strict ? 0 : 1), 0, NULL, slot};
	else
		tnp_stack_row_token(e, i, token);
}

/* ---- features -------------------------------------------------------------------------------- */

/* phi = MLP([s, u]) / d^(1/4), of n states h with inputs u, to [n, features]. */
static void
products_deep_features(const TnpModel *model, const ProductsLayer *l, int n, const float *h,
					   const float *u, float *scratch, float *to)
{
	int			d = model->config.width,
				places = products_place_width(model),
				width = d + places;
	float		root = (float) (1 / sqrt(sqrt((double) d)));
	float	   *joined = scratch;

	for (int i = 0; i < n; i++)
	{
		memcpy(joined + (size_t) i * width, h + (size_t) i * width + d, places * sizeof(float));
		memcpy(joined + (size_t) i * width + places, u + (size_t) i * d, d * sizeof(float));
	}
	tnp_mlp(model, &l->qk, n, joined, joined + (size_t) n * width, to);
	for (size_t i = 0; i < (size_t) n * products_features_of(&model->config); i++)
		to[i] *= root;
}

/* Features of n states that `projection` makes, attn.q or attn.k, to work->q. */
static void
products_features(const TnpModel *model, const ProductsLayer *l, const TnpLinear *projection,
				  int n, const float *h, const float *u, TnpBlockWork *work)
{
	const TnpConfig *c = &model->config;
	float	   *made = work->more + (size_t) n * c->width;

	if (products_deep(c))
	{
		products_deep_features(model, l, n, h, u, made, work->q);
		return;
	}
	model->kernels->linear(projection, n, u, TNP_IDENTITY, false, made);
	tnp_random_features(model->kernels, &l->random, n * c->heads, made, work->q);
}

/* ---- the layer ------------------------------------------------------------------------------- */

static void
products_make_keys(const TnpModel *model, const void *layer, int n, const float *h,
				   TnpBlockWork *work)
{
	const ProductsLayer *l = layer;
	const float *u = tnp_packed_input(model, &l->base, n, h, work);

	products_features(model, l, &l->base.k, n, h, u, work);
	tnp_mlp(model, &l->base.v, n, u, work->more + (size_t) n * model->config.width, work->att);
}

static void
products_query(const TnpModel *model, const void *layer, int n, const float *h,
			   const TnpView *view, TnpBlockWork *work, TnpAttention *attention)
{
	const ProductsLayer *l = layer;
	const TnpConfig *c = &model->config;

	products_features(model, l, &l->base.q, n, h, tnp_packed_input(model, &l->base, n, h, work),
					  work);
	*attention = (TnpAttention) {c->heads, products_features_of(c), n, n, work->q, work->scale,
								 view->k, view->v, view->context, view->own, work->attend,
								 work->att, 1};
}

static void
products_attend(const TnpWalk *walk, const TnpToken *tokens, int n, const float *h,
				const TnpView *view, const TnpAttention *a)
{
	TnpProducts p = products_of(&walk->model->config, walk->encoding->prefix);

	(void) tokens;
	(void) h;
	tnp_products_attend(walk, &p, n, view, a);
}

static TnpStatus
products_stored(TnpWalk *walk, int64_t end, TnpError *error)
{
	TnpProducts p = products_of(&walk->model->config, walk->encoding->prefix);

	return tnp_products_mark(walk, &p, end, error);
}

static void
products_finish(const TnpModel *model, const void *layer, int n, float *h, TnpBlockWork *work)
{
	const ProductsLayer *l = layer;
	int			d = model->config.width;
	float	   *state = tnp_packed_gather(model, n, h, work->more);

	if (products_deep(&model->config))
	{
		model->kernels->norm(&l->norm, n, work->att, work->u);
		for (size_t i = 0; i < (size_t) n * d; i++)
			state[i] += work->u[i];
	}
	else
		model->kernels->linear(&l->base.o, n, work->att, TNP_IDENTITY, true, state);
	tnp_packed_finish(model, &l->base, n, state, h, work);
}

static const TnpBlockOps products_ops = {products_make_keys, products_query, products_attend,
										 products_finish};

static TnpStatus
products_walk(TnpWalk *w, int64_t n, int64_t n_store, TnpError *error)
{
	w->ops = &products_ops;
	w->stored = products_stored;
	return tnp_stack_walk(w, w->model->own, sizeof(ProductsLayer), n, n_store, error);
}

/* ---- rows that all see each other ------------------------------------------------------------ */

/* What encoding the prefix needs. */
typedef struct ProductsBuild
{
	TnpEncoding *e;
	TnpTeam    *team;
	const ProductsLayer *layer;
	float	   *h;				/* [prefix, state width] */
	TnpToken   *tokens;			/* [prefix] that read the sums */
	float	   *k,				/* [chunk, heads * features] */
			   *v;				/* [chunk, value width] */
	double	   *sums;			/* [heads, features, value width + 1] in the cache */
	int64_t		first,			/* rows of the chunk */
				n;
	int			tile;
} ProductsBuild;

static void
products_build_free(const TnpEnv *env, ProductsBuild *b)
{
	tnp_free(env, b->h);
	tnp_free(env, b->tokens);
	tnp_free(env, b->k);
	tnp_free(env, b->v);
	tnp_team_free(b->team);
}

/* b is zeroed, and is freed by the caller also after a failure. */
static TnpStatus
products_build_make(TnpEncoding *e, ProductsBuild *b, TnpError *error)
{
	const TnpModel *model = e->model;
	const TnpConfig *c = &model->config;
	const TnpEnv *env = &model->env;
	int64_t		chunk = e->prefix < CHUNK_ROWS ? e->prefix : CHUNK_ROWS;

	b->e = e;
	b->h = tnp_alloc(env, e->prefix, tnp_packed_state_width(model) * sizeof(float));
	b->tokens = tnp_alloc(env, e->prefix, sizeof(TnpToken));
	b->k = tnp_alloc(env, chunk, (size_t) c->heads * products_features_of(c) * sizeof(float));
	b->v = tnp_alloc(env, chunk, tnp_packed_value_width(c) * sizeof(float));
	if (b->h == NULL || b->tokens == NULL || b->k == NULL || b->v == NULL)
		return tnp_no_memory(error);
	for (int64_t i = 0; i < e->prefix; i++)
		b->tokens[i] = (TnpToken) {products_base(c), 0, NULL, -1};
	return tnp_team_with_scratch(model, &e->stats, TNP_TILE, TNP_MAX_THREADS,
								 tnp_cost(model, (double) e->prefix, (double) products_base(c)),
								 &b->team, error);
}

/* Features and values of one tile of the chunk's rows. */
static TnpStatus
products_tile(void *state, TnpWorker *worker, int64_t item, TnpError *error)
{
	ProductsBuild *b = state;
	const TnpModel *model = b->e->model;
	const TnpConfig *c = &model->config;
	TnpBlockWork work = worker->work->block;
	int64_t		start = item * b->tile;
	int			n = b->n - start < b->tile ? (int) (b->n - start) : b->tile,
				keys = c->heads * products_features_of(c),
				values = tnp_packed_value_width(c);
	TnpStatus	status = tnp_worker_check(worker, error);

	if (status != TNP_OK)
		return status;
	work.q = b->k + start * keys;
	work.att = b->v + start * values;
	products_make_keys(model, b->layer, n,
					   b->h + (b->first + start) * tnp_packed_state_width(model), &work);
	for (int i = 0; i < n; i++)
		if (!tnp_all_finite(keys, work.q + (size_t) i * keys)
			|| !tnp_all_finite(values, work.att + (size_t) i * values))
		{
			tnp_fail(error, TNP_BAD_VALUE, "the values of a row are too large for the model");
			tnp_detail(error, "row %lld", (long long) (b->first + start + i + 1));
			return TNP_BAD_VALUE;
		}
	return TNP_OK;
}

/* The chunk's rows are added to the sums of some features of one head. */
static TnpStatus
products_add(void *state, TnpWorker *worker, int64_t item, TnpError *error)
{
	ProductsBuild *b = state;
	const TnpConfig *c = &b->e->model->config;
	int			m = products_features_of(c),
				width = products_value_width_of(c),
				shares = (m + SHARE - 1) / SHARE,
				head = (int) (item / shares),
				first = (int) (item % shares) * SHARE,
				n = m - first < SHARE ? m - first : SHARE;
	TnpProductRows rows = {b->k + (size_t) head * m + first, b->v + (size_t) head * width,
						   (size_t) c->heads * m, (size_t) c->heads * width, 0, b->n, n, width};
	TnpStatus	status = tnp_worker_check(worker, error);

	if (status == TNP_OK)
		tnp_products_add(&rows, b->sums + head * products_sums_of(c)
						 + (size_t) first * (width + 1));
	return status;
}

/* Layer number l: sums over all rows; then the rows read them, but for the last. */
static TnpStatus
products_build_layer(ProductsBuild *b, int l, TnpError *error)
{
	TnpEncoding *e = b->e;
	const TnpConfig *c = &e->model->config;
	int			shares = (products_features_of(c) + SHARE - 1) / SHARE;
	TnpWalk		read = tnp_walk_begin(b->team, e, &e->cache, e->prefix, b->tokens, b->h);
	TnpStatus	status = TNP_OK;

	b->layer = (const ProductsLayer *) e->model->own + l;
	b->sums = e->cache.v[l];
	memset(b->sums, 0, c->heads * products_sums_of(c) * sizeof(double));
	for (b->first = 0; status == TNP_OK && b->first < e->prefix; b->first += b->n)
	{
		b->n = e->prefix - b->first < CHUNK_ROWS ? e->prefix - b->first : CHUNK_ROWS;
		b->tile = tnp_team_tile(b->team, b->n);
		status = tnp_team_run(b->team, (b->n + b->tile - 1) / b->tile, products_tile, b, error);
		if (status == TNP_OK)
			status = tnp_team_run(b->team, (int64_t) c->heads * shares, products_add, b, error);
	}
	read.ops = &products_ops;
	if (status == TNP_OK && l + 1 < c->layers)
		status = tnp_walk_attend(&read, b->layer, l, 0, e->prefix, error);
	return status;
}

static TnpStatus
products_encode_prefix(TnpEncoding *e, TnpError *error)
{
	const TnpModel *model = e->model;
	ProductsBuild b = {0};
	TnpStatus	status = products_build_make(e, &b, error);

	if (status == TNP_OK)
	{
		/* embedding, and one pass of the rows through each layer but the last */
		tnp_team_watch(b.team, e->prefix, model->config.layers);
		status = tnp_embed_all_rows(e, b.team, 0, e->prefix, b.h, error);
		tnp_team_next_step(b.team);
	}
	for (int l = 0; status == TNP_OK && l < model->config.layers; l++)
		status = products_build_layer(&b, l, error);
	if (status == TNP_OK && model->env.progress != NULL)
		model->env.progress(model->env.arg, e->prefix, e->prefix);
	products_build_free(&model->env, &b);
	return status;
}

static TnpStatus
products_encode(TnpEncoding *e, int64_t first, int64_t n, bool anew, TnpError *error)
{
	int64_t		later = anew ? e->prefix : first;
	TnpStatus	status = TNP_OK;

	if (e->model->config.context != TNP_FULL)
		return tnp_encode_rows(e, first, n, anew, error);
	if (anew)
		status = products_encode_prefix(e, error);
	if (status != TNP_OK || first + n == later)
		return status;
	return tnp_encode_rows(e, later, first + n - later, false, error);
}

const TnpFamily tnp_products_family = {
	.name = "packed",
	.variant = "products of features",
	.embedders = 1 << TNP_CONCAT | 1 << TNP_ADDITIVE | 1 << TNP_PARTS,
	.check = products_check,
	.several_targets = true,
	.bind = products_bind,
	.head_width = tnp_stack_head_width,
	.appendable = tnp_stack_appendable,
	.cache_shape = products_cache_shape,
	.slots = products_slots,
	.row_bytes = products_row_bytes,
	.state_width = tnp_packed_state_width,
	.block_sizes = products_block_sizes,
	.place_width = products_place_width,
	.place = products_place,
	.embed = tnp_packed_embed,
	.embed_scratch = tnp_packed_embed_scratch,
	.row_token = products_row_token,
	.encode = products_encode,
	.walk = products_walk,
	.cost = products_cost,
};
