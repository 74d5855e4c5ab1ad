/*
 * latent.c: latent bottlenecks (LBANP): a fixed number of latents reads all rows, and queries read
 * the latents (docs/families.md, "Latent bottlenecks"; Feng et al. 2023, in the arrangement of
 * Mortimer et al. 2026, eq. (10)).
 *
 * Cache layer l has in its first slots the latents' keys and values for the cross layer l, then
 * those of the rows after the prefix, which are chain rows. So queries and chain rows walk the
 * cross layers as a packed stack does. Rows of the prefix are in the latents alone: one more is
 * encoded by reading all of them again, but for the first layer, where the latents are the file's
 * and the sums over rows go on (latent_sums.h).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/families.h"

#include <string.h>

#include "engine/families/latent_sums.h"
#include "engine/families/stack.h"

/* The family's own key and weights; the cross layers are the model's layers. */
typedef struct LatentConfig
{
	int			latents;
} LatentConfig;

typedef struct LatentWeights
{
	const float *latents;		/* [P, d] */
	TnpLayer   *read,
			   *self;
} LatentWeights;

static const TnpKey latent_keys[] = {
	TNP_STACK_KEYS,
	TNP_OWN_INTEGER("latents", LatentConfig, latents, 1, TNP_MAX_WIDTH),
	TNP_END
};

static int
latent_count(const TnpConfig *c)
{
	return TNP_OWN(c, LatentConfig)->latents;
}

static const LatentWeights *
latent_weights_of(const TnpModel *model)
{
	return model->own;
}

static TnpStatus
latent_check(const TnpConfig *c, TnpError *error)
{
	const TnpRule rules[] = {
		{c->context != TNP_FULL, "architecture \"latent\" needs context \"full\"", NULL, 0, NULL,
		 0},
		{c->sinks > 0, "architecture \"latent\" excludes attention.sinks", "attention.sinks",
		 c->sinks, NULL, 0},
		{c->log_scale, "architecture \"latent\" excludes attention.log_scale", NULL, 0, NULL, 0},
	};
	TnpStatus	status = tnp_check_rules(sizeof(rules) / sizeof(rules[0]), rules, error);

	return status == TNP_OK ? tnp_stack_check(c, error) : status;
}

static void
latent_bind(TnpBinder *b)
{
	TnpModel   *m = b->model;
	const TnpConfig *c = &m->config;
	LatentWeights *w = tnp_bind_memory(b, sizeof(LatentWeights));

	if (w == NULL)
		return;
	m->own = w;
	w->latents = tnp_bind_tensor(b, "latents", 2, latent_count(c), c->width, 0);
	w->read = tnp_bind_layers(b, "read", c->layers, c->width, c->feedforward, false);
	w->self = tnp_bind_layers(b, "self", c->layers, c->width, c->feedforward, false);
	m->layers = tnp_bind_layers(b, "cross", c->layers, c->width, c->feedforward, false);
}

static void
latent_cache_shape(const TnpModel *model, TnpCacheShape *shape)
{
	tnp_stack_shape(model, model->config.layers, shape);
}

static int64_t
latent_slots(const TnpModel *model, int64_t prefix, int64_t rows)
{
	const TnpConfig *c = &model->config;
	int64_t		later = rows > prefix ? rows - prefix : 0;

	/* more rows than a chain has room for are never behind the prefix, whatever the capacity */
	return latent_count(c) + (c->buffer > 0 && later >= c->buffer ? c->buffer - 1 : later);
}

static size_t
latent_row_bytes(const TnpModel *model)
{
	/* without a bound of the buffer rows behind the prefix are kept */
	return model->config.buffer > 0 ? 0 : tnp_stack_row_bytes(model, model->config.layers);
}

static void
latent_row_token(const TnpEncoding *e, int64_t i, TnpToken *token)
{
	const TnpConfig *c = &e->model->config;
	int64_t		slot = latent_count(c) + i - e->prefix;

	*token = (TnpToken) {slot + (c->strict ? 0 : 1), 0, NULL, slot};
}

static double
latent_cost(const TnpModel *model, double rows, double keys)
{
	return tnp_stack_cost(model, model->config.layers, rows, keys);
}

/* A row of the prefix makes a key and a value in each layer, which all latents read. */
static double
latent_encoding_cost(const TnpModel *model, int64_t rows)
{
	const TnpConfig *c = &model->config;
	double		d = c->width,
				latents = latent_count(c);

	return c->layers * (2 * d * ((double) rows + latents) * (d + latents))
		+ 3 * tnp_stack_cost(model, c->layers, latents, latents);
}

static TnpStatus
latent_walk(TnpWalk *w, int64_t n, int64_t n_store, TnpError *error)
{
	return tnp_stack_walk(w, w->model->layers, sizeof(TnpLayer), n, n_store, error);
}

#define MOST_ROWS (32 * TNP_SPAN)	/* that are embedded at once */

/* What encoding the prefix needs. */
typedef struct LatentBuild
{
	TnpTeam    *team;
	int64_t		room;			/* rows that are there at once: all of few */
	float	   *rows,			/* [room, d] embedded, never updated */
			   *latents;		/* [P, d] */
	TnpToken   *row_tokens,		/* [room] */
			   *readers,		/* [P] that see all rows, */
			   *mixers;			/* and all latents */
	TnpKvCache	row_keys,		/* of one layer */
				latent_keys;
	LatentSums	from,			/* of the first layer, taken over */
				to;				/* and kept */
	float	   *sums;			/* latent_sums_floats, while a layer reads part by part */
} LatentBuild;

static void
latent_build_free(const TnpEnv *env, LatentBuild *b)
{
	tnp_free(env, b->rows);
	tnp_free(env, b->latents);
	tnp_free(env, b->row_tokens);
	tnp_free(env, b->readers);
	tnp_free(env, b->mixers);
	tnp_free(env, b->sums);
	tnp_cache_free(env, &b->row_keys);
	tnp_cache_free(env, &b->latent_keys);
	tnp_team_free(b->team);
}

/* The sums that the first layer goes on with, of `common` rows at most, and those that it keeps. */
static TnpStatus
latent_build_sums(TnpEncoding *e, const TnpEncoding *from, int64_t common, LatentBuild *b,
				  TnpError *error)
{
	int			latents = latent_count(&e->model->config);
	TnpStatus	status = latent_sums_make(e, latents, error);

	if (status != TNP_OK || (e->own == NULL && b->room == e->prefix))
		return status;
	b->to = latent_sums_of(e, latents);
	if (e->own != NULL)
		b->from = latent_sums_of(from, latents);
	if (b->from.rows > common || b->from.rows > e->prefix)
		b->from = (LatentSums) {0, NULL, NULL};
	b->sums = tnp_alloc(&e->model->env, latent_sums_floats(e->model, latents), sizeof(float));
	return b->sums == NULL ? tnp_no_memory(error) : TNP_OK;
}

/* b is zeroed, and is freed by the caller also after a failure. */
static TnpStatus
latent_build_make(const TnpEncoding *e, LatentBuild *b, TnpError *error)
{
	const TnpModel *model = e->model;
	const TnpEnv *env = &model->env;
	int64_t		latents = latent_count(&model->config);
	size_t		state = model->config.width * sizeof(float);
	TnpCacheShape shape;
	TnpStatus	status;

	tnp_stack_shape(model, 1, &shape);
	b->room = e->prefix > MOST_ROWS && model->kernels->attend_span != NULL ? MOST_ROWS : e->prefix;
	b->rows = tnp_alloc(env, b->room, state);
	b->latents = tnp_alloc(env, latents, state);
	b->row_tokens = tnp_alloc(env, b->room, sizeof(TnpToken));
	b->readers = tnp_alloc(env, latents, sizeof(TnpToken));
	b->mixers = tnp_alloc(env, latents, sizeof(TnpToken));
	if (b->rows == NULL || b->latents == NULL || b->row_tokens == NULL || b->readers == NULL
		|| b->mixers == NULL)
		return tnp_no_memory(error);
	for (int64_t i = 0; i < b->room; i++)
		b->row_tokens[i] = (TnpToken) {0, 0, NULL, i};
	for (int64_t i = 0; i < latents; i++)
	{
		b->readers[i] = (TnpToken) {e->prefix, 0, NULL, i};
		b->mixers[i] = (TnpToken) {latents, 0, NULL, i};
	}
	memcpy(b->latents, latent_weights_of(model)->latents, latents * state);
	status = tnp_cache_make(env, &shape, TNP_BLOCK, b->room, &b->row_keys, error);
	if (status == TNP_OK)
		status = tnp_cache_make(env, &shape, TNP_BLOCK, latents, &b->latent_keys, error);
	if (status == TNP_OK)
		status = tnp_team_with_scratch(model, &e->stats, TNP_TILE, TNP_MAX_THREADS,
									   latent_encoding_cost(model, e->prefix), &b->team, error);
	return status;
}

/* What the items of reading some rows share. */
typedef struct PartRead
{
	const TnpEncoding *e;
	LatentBuild *b;
	const TnpLayer *layer;
	LatentRows	part;
	LatentSums	from,
				to;
	int			tile;
} PartRead;

static TnpStatus
latent_part_tile(void *state, TnpWorker *worker, int64_t item, TnpError *error)
{
	const PartRead *p = state;
	const TnpModel *model = p->e->model;
	LatentBuild *b = p->b;
	TnpBlockWork *work = &worker->work->block;
	int64_t		visible[TNP_TILE],
				start = item * p->tile,
				left = latent_count(&model->config) - start;
	TnpKeys		own[TNP_TILE];
	int			n = left < p->tile ? (int) left : p->tile;
	float	   *h = b->latents + start * model->config.width;
	TnpView		view = tnp_view_of_all(n, b->row_keys.k[0], b->row_keys.v[0],
									   p->part.end - p->part.base, visible, own);
	TnpAttention attention;
	TnpStatus	status = tnp_worker_check(worker, error);

	if (status != TNP_OK)
		return status;
	tnp_block_ops.query(model, p->layer, n, h, &view, work, &attention);
	latent_sums_attend(model, &attention, visible, start, &p->part, &p->from, &p->to, b->sums);
	if (p->part.end == p->part.rows)
		tnp_block_ops.finish(model, p->layer, n, h, work);
	tnp_worker_progress(worker, start + n, start + left);
	return TNP_OK;
}

/* The latents read rows first … end - 1, whose keys are there from `base` on. */
static TnpStatus
latent_read_part(TnpEncoding *e, LatentBuild *b, int l, const LatentRows *part, TnpError *error)
{
	int64_t		latents = latent_count(&e->model->config);
	PartRead	read = {.e = e, .b = b, .layer = &latent_weights_of(e->model)->read[l],
		.part = *part, .tile = tnp_team_tile(b->team, latents)};
	TnpStatus	status;

	if (l == 0 && e->own != NULL)
	{
		read.from = b->from;
		read.to = b->to;
	}
	status = tnp_team_run(b->team, (latents + read.tile - 1) / read.tile, latent_part_tile, &read,
						  error);
	tnp_team_next_step(b->team);
	return status;
}

/* Keys and values of rows first … end - 1, which are embedded, in slots from `base` on. */
static TnpStatus
latent_store_part(TnpEncoding *e, LatentBuild *b, int l, const LatentRows *part,
				  const float *embedded, TnpError *error)
{
	int64_t		n = part->end - part->first;
	TnpWalk		rows = tnp_walk_begin(b->team, e, &b->row_keys, n,
									  b->row_tokens + (part->first - part->base),
									  (float *) embedded);

	return tnp_walk_store(&rows, &latent_weights_of(e->model)->read[l], 0, n, error);
}

/* The latents go through layer l, reading all rows, which are embedded. */
static TnpStatus
latent_read_all(TnpEncoding *e, LatentBuild *b, int l, TnpError *error)
{
	int64_t		latents = latent_count(&e->model->config),
				taken = l == 0 ? b->from.rows : 0;	/* rows whose sums are there */
	LatentRows	all = {0, taken, e->prefix, e->prefix};
	TnpWalk		read = tnp_walk_begin(b->team, e, &b->row_keys, latents, b->readers, b->latents);
	TnpStatus	status = latent_store_part(e, b, l, &all, b->rows + taken * e->model->config.width,
										   error);

	if (status != TNP_OK)
		return status;
	if (l == 0 && b->sums != NULL)
		return latent_read_part(e, b, l, &all, error);
	return tnp_walk_attend(&read, &latent_weights_of(e->model)->read[l], 0, 0, latents, error);
}

/*
 * The same of more rows than there is room for, which are embedded part by part in each layer: what
 * is there at once does not grow with them. Bitwise the same.
 */
static TnpStatus
latent_read_parts(TnpEncoding *e, LatentBuild *b, int l, TnpError *error)
{
	int64_t		taken = l == 0 && e->own != NULL ? b->from.rows : 0;
	LatentRows	part = {taken / TNP_SPAN * TNP_SPAN, taken, 0, e->prefix};
	TnpStatus	status = TNP_OK;

	do
	{
		int64_t		n;

		part.end = e->prefix - part.base < b->room ? e->prefix : part.base + b->room;
		n = part.end - part.first;
		if (n > 0)
			status = tnp_embed_all_rows(e, b->team, part.first, n, b->rows, error);
		tnp_team_next_step(b->team);
		if (status == TNP_OK && n > 0)
			status = latent_store_part(e, b, l, &part, b->rows, error);
		if (status == TNP_OK)
			status = latent_read_part(e, b, l, &part, error);
		part.base = part.first = part.end;
	} while (status == TNP_OK && part.base < e->prefix);
	return status;
}

/* Layer l: latents read rows, then each other, and store what queries read. */
static TnpStatus
latent_build_layer(TnpEncoding *e, LatentBuild *b, int l, TnpError *error)
{
	const LatentWeights *weights = latent_weights_of(e->model);
	int64_t		latents = latent_count(&e->model->config);
	TnpWalk		mix = tnp_walk_begin(b->team, e, &b->latent_keys, latents, b->mixers, b->latents),
				store = tnp_walk_begin(b->team, e, &e->cache, latents, b->mixers, b->latents);
	TnpStatus	status = b->room < e->prefix ? latent_read_parts(e, b, l, error)
		: latent_read_all(e, b, l, error);

	if (status == TNP_OK)
		status = tnp_walk_store(&mix, &weights->self[l], 0, latents, error);
	if (status == TNP_OK)
		status = tnp_walk_attend(&mix, &weights->self[l], 0, 0, latents, error);
	return status == TNP_OK
		? tnp_walk_store(&store, &e->model->layers[l], l, latents, error) : status;
}

/* from: an encoding that begins with the same `common` rows, or NULL. */
static TnpStatus
latent_encode_prefix(TnpEncoding *e, const TnpEncoding *from, int64_t common, TnpError *error)
{
	const TnpModel *model = e->model;
	LatentBuild b = {0};
	TnpStatus	status = latent_build_make(e, &b, error);

	if (status == TNP_OK)
		status = latent_build_sums(e, from, common, &b, error);

	if (status == TNP_OK)
	{
		int			layers = model->config.layers;
		int64_t		parts = (e->prefix + b.room - 1) / (b.room > 0 ? b.room : 1);

		/* embedding, and two passes of the latents through each layer */
		if (parts <= 1)
		{
			tnp_team_watch(b.team, e->prefix, 2 * layers + 1);
			status = tnp_embed_all_rows(e, b.team, 0, e->prefix, b.rows, error);
			tnp_team_next_step(b.team);
		}
		else
			tnp_team_watch(b.team, e->prefix, (int) (layers * (2 * parts + 1)));
	}
	for (int l = 0; status == TNP_OK && l < model->config.layers; l++)
		status = latent_build_layer(e, &b, l, error);
	if (status == TNP_OK && model->env.progress != NULL)
		model->env.progress(model->env.arg, e->prefix, e->prefix);
	latent_build_free(&model->env, &b);
	return status;
}

/* Rows behind the prefix, from number `first` on. */
static TnpStatus
latent_encode_later(TnpEncoding *e, int64_t first, int64_t end, TnpError *error)
{
	return end == first ? TNP_OK : tnp_encode_rows(e, first, end - first, false, error);
}

static TnpStatus
latent_encode(TnpEncoding *e, int64_t first, int64_t n, bool anew, TnpError *error)
{
	TnpStatus	status = anew ? latent_encode_prefix(e, NULL, 0, error) : TNP_OK;

	return status == TNP_OK ? latent_encode_later(e, anew ? e->prefix : first, first + n, error)
		: status;
}

static int64_t
latent_kept_rows(const TnpEncoding *e)
{
	return latent_sums_of(e, latent_count(&e->model->config)).rows;
}

static TnpStatus
latent_go_on(TnpEncoding *e, int64_t n, const TnpEncoding *from, int64_t common, TnpError *error)
{
	TnpStatus	status = latent_encode_prefix(e, from, common, error);

	return status == TNP_OK ? latent_encode_later(e, e->prefix, n, error) : status;
}

const TnpFamily tnp_latent_family = {
	.name = "latent",
	.keys = latent_keys,
	.check = latent_check,
	.joint_heads = true,
	.several_targets = true,
	.bind = latent_bind,
	.head_width = tnp_stack_head_width,
	.appendable = tnp_stack_appendable,
	.cache_shape = latent_cache_shape,
	.slots = latent_slots,
	.row_bytes = latent_row_bytes,
	.state_width = tnp_stack_state_width,
	.block_sizes = tnp_stack_block_sizes,
	.embed = tnp_embed,
	.embed_scratch = tnp_embed_scratch,
	.row_token = latent_row_token,
	.encode = latent_encode,
	.kept_rows = latent_kept_rows,
	.go_on = latent_go_on,
	.walk = latent_walk,
	.shares_keys = tnp_stack_shares_keys,
	.cost = latent_cost,
	.encoding_cost = latent_encoding_cost,
};
