/*
 * sample.c: joint draws. All draws of a group walk the chain together: at step m every draw sends two tokens through
 * the layers, the row it has just drawn and the next query; the context is read, never copied, and each draw has a small
 * private cache (docs/model-format.md section 9; Hassan et al., algorithm 1).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <string.h>

#include "chain.h"

#define GROUP_BYTES ((size_t) 16 << 20)	/* private caches of one group */
#define GROUP_DRAWS 256

/* One question and the memory of one group of draws. */
typedef struct Sample
{
	const TnpEncoding *root;
	const TnpRows *queries;
	uint64_t	seed;
	TnpHalf		half;			/* of all queries */
	int			group;			/* draws at once */
	TnpCache   *caches;			/* [group] */
	float	   *h;				/* [2 * group, d] */
	float	   *scratch;
	double	   *params;			/* [group, size] */
	TnpToken   *tokens;			/* [2 * group] */
	int64_t    *place;			/* [M]: 0, 1, 2, … for merging */
} Sample;

static void
free_sample(Sample *s)
{
	const TnpEnv *env = &s->root->model->env;

	for (int b = 0; s->caches != NULL && b < s->group; b++)
		tnp_cache_free(env, &s->caches[b]);
	tnp_free(env, s->caches);
	tnp_half_free(env, &s->half);
	tnp_free(env, s->h);
	tnp_free(env, s->scratch);
	tnp_free(env, s->params);
	tnp_free(env, s->tokens);
	tnp_free(env, s->place);
}

static TnpStatus
make_sample(const TnpEncoding *e, const TnpRows *queries, uint64_t seed, int64_t draws, Sample *s, TnpError *error)
{
	const TnpModel *model = e->model;
	const TnpEnv *env = &model->env;
	int64_t		m = queries->n,
				block = model->config.context == TNP_FULL && model->config.buffer > 0 && model->config.buffer < m ? model->config.buffer : m;
	size_t		per_draw = 2 * (size_t) tnp_cache_layers(model) * (size_t) tnp_panels(block) * model->config.width * sizeof(float);
	TnpDistributionKind kind;
	int			components;
	TnpStatus	status = TNP_OK;

	memset(s, 0, sizeof(*s));
	s->root = e;
	s->queries = queries;
	s->seed = seed;
	s->group = GROUP_BYTES / per_draw < GROUP_DRAWS ? (int) (GROUP_BYTES / per_draw) : GROUP_DRAWS;
	if (s->group < 1)
		s->group = 1;
	if (s->group > draws)
		s->group = (int) draws;
	tnp_answer_shape(model, &kind, &components);
	s->caches = tnp_alloc_zero(env, s->group, sizeof(TnpCache));
	s->h = tnp_alloc(env, 2 * (size_t) s->group, model->config.width * sizeof(float));
	s->scratch = tnp_alloc(env, TNP_TILE, tnp_embed_scratch(model) * sizeof(float));
	s->params = tnp_alloc(env, s->group, tnp_distribution_size(kind, components) * sizeof(double));
	s->tokens = tnp_alloc(env, 2 * (size_t) s->group, sizeof(TnpToken));
	s->place = tnp_alloc(env, m, sizeof(int64_t));
	if (s->caches == NULL || s->h == NULL || s->scratch == NULL || s->params == NULL || s->tokens == NULL || s->place == NULL)
		status = tnp_no_memory(error);
	for (int b = 0; status == TNP_OK && b < s->group; b++)
		status = tnp_cache_make(env, tnp_cache_layers(model), model->config.width, block, &s->caches[b], error);
	for (int64_t i = 0; status == TNP_OK && i < m; i++)
		s->place[i] = i;
	if (status == TNP_OK)
		status = tnp_half_build(model, &e->stats, queries, 0, m, false, &s->half, error);
	if (status != TNP_OK)
		free_sample(s);
	return status;
}

/* The chain rows that `draws` draws have made of query `row`: tokens h [draws, d]; their targets are y[b * stride]. */
static void
embed_drawn(Sample *s, const TnpEncoding *e, int64_t row, int64_t j, int draws, const double *y, int64_t stride, float *h)
{
	const TnpModel *model = e->model;

	for (int start = 0; start < draws; start += TNP_TILE)
	{
		int			tile = draws - start < TNP_TILE ? draws - start : TNP_TILE;
		const float *half[TNP_TILE];
		float		target[TNP_TILE];
		int			position[TNP_TILE];

		for (int i = 0; i < tile; i++)
		{
			half[i] = s->half.values + row * s->half.width;
			target[i] = tnp_scale_target(model, &e->stats, y[(start + i) * stride]);
			position[i] = tnp_chain_position(e, j);
		}
		tnp_embed(model, tile, half, target, TNP_ROLE_LATER, position, s->scratch, h + (size_t) start * model->config.width);
	}
}

/*
 * Steps first … first + n - 1 of `draws` draws (at most s->group) on e; n is within the room. y points to the first draw's first value of the whole
 * answer, rows of stride M.
 */
static TnpStatus
sample_block(Sample *s, const TnpEncoding *e, int64_t first, int64_t n, uint64_t first_draw, int draws, double *y, TnpError *error)
{
	const TnpModel *model = e->model;
	int			d = model->config.width,
				components,
				size;
	int64_t		stride = s->queries->n;
	TnpDistributionKind kind;
	TnpStatus	status = TNP_OK;

	tnp_answer_shape(model, &kind, &components);
	size = tnp_distribution_size(kind, components);
	for (int64_t j = 0; status == TNP_OK && j < n; j++)
	{
		/* before anything is drawn, all draws ask the same question */
		int			stored = j > 0 ? draws : 0,
					asked = j > 0 ? draws : 1;
		const float *row = s->half.values + (first + j) * s->half.width;
		float	   *query = s->h + (size_t) stored * d;

		if (stored > 0)
			embed_drawn(s, e, first + j - 1, j - 1, draws, y + first + j - 1, stride, s->h);
		tnp_embed(model, 1, &row, NULL, TNP_ROLE_QUERY, NULL, s->scratch, query);
		for (int b = 1; b < asked; b++)
			memcpy(query + (size_t) b * d, query, d * sizeof(float));
		for (int b = 0; b < stored; b++)
			s->tokens[b] = tnp_chain_row(e, &s->caches[b], j - 1);
		for (int b = 0; b < asked; b++)
			s->tokens[stored + b] = tnp_chain_query(e, &s->caches[b], j);

		status = tnp_trunk(model, (TnpCache *) &e->cache, stored + asked, stored, s->tokens, s->h, error);
		if (status == TNP_OK)
			status = tnp_answers(model, &e->stats, asked, query, s->params, error);
		for (int b = 0; status == TNP_OK && b < draws; b++)
		{
			TnpDistribution answer = {kind, components, s->params + (asked > 1 ? b : 0) * size};

			y[b * stride + first + j] = tnp_draw(&answer, s->seed, first_draw + b, (uint32_t) (first + j));
		}
	}
	return status;
}

/* The steps of one draw after its first block: merge, encode again, go on. y is the draw's row. */
static TnpStatus
continue_draw(Sample *s, int64_t done, uint64_t draw, double *y, TnpError *error)
{
	const TnpEncoding *e = s->root;
	int64_t		m = s->queries->n,
				merged = 0;
	TnpStatus	status = TNP_OK;

	while (status == TNP_OK && done < m)
	{
		int64_t		count;

		status = tnp_chain_merge(s->root, &e, s->queries, s->place + merged, y + merged, done - merged, error);
		if (status != TNP_OK)
			break;
		merged = done;
		count = m - done < tnp_chain_room(e) ? m - done : tnp_chain_room(e);
		status = sample_block(s, e, done, count, draw, 1, y, error);
		done += count;
	}
	if (e != s->root)
		tnp_encoding_free((TnpEncoding *) e);
	return status;
}

TnpStatus
tnp_sample(const TnpEncoding *e, const TnpRows *queries, uint64_t seed, uint64_t first_draw, int64_t draws, double *y, TnpError *error)
{
	int64_t		m = queries->n,
				first;
	Sample		s;
	TnpStatus	status = tnp_queries_check(e, queries, false, error);

	if (status != TNP_OK)
		return status;
	if (draws < 1)
		return tnp_fail(error, TNP_BAD_ARGUMENT, "the number of draws must be positive");
	if (m == 0)
		return TNP_OK;
	if ((status = make_sample(e, queries, seed, draws, &s, error)) != TNP_OK)
		return status;
	first = m < tnp_chain_room(e) ? m : tnp_chain_room(e);
	for (int64_t done = 0; status == TNP_OK && done < draws; done += s.group)
	{
		int			group = draws - done < s.group ? (int) (draws - done) : s.group;

		status = sample_block(&s, e, 0, first, first_draw + (uint64_t) done, group, y + done * m, error);
		for (int b = 0; status == TNP_OK && first < m && b < group; b++)
			status = continue_draw(&s, first, first_draw + (uint64_t) (done + b), y + (done + b) * m, error);
	}
	free_sample(&s);
	return status;
}
