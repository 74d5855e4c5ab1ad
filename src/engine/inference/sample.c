/*
 * sample.c: joint draws. All draws of a group walk the chain together: at step m every draw sends
 * two tokens through the layers, the row it has just drawn and the next query; the context is read,
 * never copied, and each draw has a small private cache (docs/model-format.md section 9; Hassan et
 * al., algorithm 1).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <string.h>

#include "engine/distribution/distribution.h"
#include "engine/features/process_chain.h"
#include "engine/inference/chain.h"
#include "engine/inference/joint.h"
#include "engine/inference/reencode.h"
#include "engine/inference/variants.h"

#define GROUP_DRAWS (TNP_TILE / 2)	/* draws of one walk: a tile of their rows and queries */

/* The memory of one worker's group of draws. */
typedef struct Group
{
	TnpKvCache   *caches;			/* [draws] */
	float	   *h;				/* [(1 + variants) * draws, d] */
	double	   *params,			/* [variants, draws, D, size] */
			   *joined,			/* [D, size] */
			   *work;			/* of joining */
	TnpToken   *tokens;			/* [(1 + variants) * draws] */
	/* where the process learns from the rows before: */
	TnpProcessChain process;
	TnpProcessTold *told;		/* [draws] */
	float	   *said;			/* [variants, draws, tnp_prior_logits_width] */
} Group;

/* One question. */
typedef struct Sample
{
	const TnpEncoding *root;
	const TnpRows *queries;
	uint64_t	seed,
				first_draw;
	int64_t		draws,
				first;			/* steps before the first block must be merged */
	double	   *y;				/* [draws, M, D] */
	TnpFeatureEmbedding		half;			/* of all queries, as chain rows */
	TnpVariants variants;		/* of the queries, */
	TnpFeatureEmbedding asked;	/* and of these; none where they are the queries */
	int			group;			/* draws at once */
	/* the threads share out the keys of a draw that is walked alone */
	bool		fine_grained;
	TnpTeam    *team;
	Group	   *groups;			/* one per worker */
	int64_t    *place;			/* [M]: 0, 1, 2, … for merging */
} Sample;

static void
free_sample(Sample *s)
{
	const TnpEnv *env = &s->root->model->env;

	for (int w = 0; s->groups != NULL && w < tnp_team_size(s->team); w++)
	{
		Group	   *g = &s->groups[w];

		for (int b = 0; g->caches != NULL && b < s->group; b++)
			tnp_cache_free(env, &g->caches[b]);
		tnp_free(env, g->caches);
		tnp_free(env, g->h);
		tnp_free(env, g->params);
		tnp_free(env, g->joined);
		tnp_free(env, g->work);
		tnp_free(env, g->tokens);
		tnp_process_chain_free(&g->process);
		tnp_free(env, g->told);
		tnp_free(env, g->said);
	}
	tnp_free(env, s->groups);
	tnp_feature_embedding_free(env, &s->half);
	tnp_feature_embedding_free(env, &s->asked);
	tnp_variants_free(env, &s->variants);
	tnp_free(env, s->place);
	tnp_team_free(s->team);
}

static TnpStatus
make_group(Sample *s, int64_t block, Group *g, TnpError *error)
{
	const TnpModel *model = s->root->model;
	const TnpEnv *env = &model->env;
	size_t		tokens = (1 + (size_t) s->variants.most) * s->group;
	TnpStatus	status = TNP_OK;

	g->caches = tnp_alloc_zero(env, s->group, sizeof(TnpKvCache));
	g->h = tnp_alloc(env, tokens, model->config.family->state_width(model) * sizeof(float));
	g->params = tnp_alloc(env, tokens - s->group, tnp_answer_size(model) * sizeof(double));
	g->joined = tnp_alloc(env, 1, tnp_answer_size(model) * sizeof(double));
	g->work = tnp_alloc(env, tnp_variants_work(model, &s->variants) + 1, sizeof(double));
	g->tokens = tnp_alloc(env, tokens, sizeof(TnpToken));
	if (g->caches == NULL || g->h == NULL || g->params == NULL || g->joined == NULL
		|| g->work == NULL || g->tokens == NULL)
		return tnp_no_memory(error);
	/* a row by itself has what the process says of it alone */
	if (s->queries->n > 1 && tnp_process_chain_wanted(model))
	{
		g->told = tnp_alloc(env, s->group, sizeof(TnpProcessTold));
		g->said = tnp_alloc(env, tokens - s->group,
							tnp_prior_logits_width(model) * sizeof(float));
		status = g->told == NULL || g->said == NULL ? tnp_no_memory(error)
			: tnp_process_chain_make(model, &s->root->stats, &g->process, error);
	}
	for (int b = 0; status == TNP_OK && b < s->group; b++)
		status = tnp_chain_cache(model, block, &g->caches[b], error);
	return status;
}

/* Make what a question needs; s has the question and is freed by the caller also on failure. */
static TnpStatus
make_sample(Sample *s, TnpError *error)
{
	const TnpEncoding *e = s->root;
	const TnpModel *model = e->model;
	const TnpEnv *env = &model->env;
	int64_t		m = s->queries->n,
				slots = tnp_encoding_slots(e),
				share,
				rounds;
	bool		fine_grained = (s->draws == 1 || tnp_chain_room(e) < m)
		&& tnp_few_share_keys(model, 2, slots) && tnp_team_try_fine_grained(model),
				alone = fine_grained && s->draws == 1;
	TnpStatus	status = tnp_team_with_scratch(model, &e->stats, TNP_TILE,
									   alone ? TNP_MAX_THREADS : s->draws,
									   tnp_cost(model, 2.0 * (double) s->draws * (double) m,
												(double) (slots + m)), &s->team, error);

	if (status == TNP_OK)
		status = tnp_variants_make(model, &e->stats, s->queries, &s->variants, error);
	if (status != TNP_OK)
		return status;
	s->first = m < tnp_chain_room(e) ? m : tnp_chain_room(e);
	s->fine_grained = fine_grained && tnp_team_size(s->team) > 1;
	if (s->fine_grained)
		tnp_team_begin_fine_grained(s->team);
	share = (s->draws + tnp_team_size(s->team) - 1) / tnp_team_size(s->team);
	rounds = (share + GROUP_DRAWS - 1) / GROUP_DRAWS;
	s->group = (int) ((share + rounds - 1) / rounds);
	s->groups = tnp_alloc_zero(env, tnp_team_size(s->team), sizeof(Group));
	s->place = tnp_alloc(env, m, sizeof(int64_t));
	if (s->groups == NULL || s->place == NULL)
		return tnp_no_memory(error);
	for (int64_t i = 0; i < m; i++)
		s->place[i] = i;
	for (int w = 0; status == TNP_OK && w < tnp_team_size(s->team); w++)
		status = make_group(s, model->config.context == TNP_FULL && model->config.buffer > 0
							&& model->config.buffer < m ? model->config.buffer : m,
							&s->groups[w], error);
	if (status == TNP_OK)
		status = tnp_feature_embedding_build(model, &e->stats, s->queries, s->team, &s->half,
											 error);
	if (status == TNP_OK && s->variants.x != NULL)
		status = tnp_feature_embedding_build(model, &e->stats, &s->variants.rows, s->team,
											 &s->asked, error);
	return status == TNP_OK ? tnp_chain_settle_rows(e, s->team, &s->half, s->place, s->first,
													error) : status;
}

/*
 * The chain rows that `draws` draws have made of query `row`: tokens h [draws, d]; their targets
 * [D] are at y + b * stride.
 */
static void
embed_drawn(Sample *s, const TnpEncoding *e, int64_t row, int64_t j, int draws, const double *y,
			int64_t stride, float *scratch, float *h)
{
	const TnpModel *model = e->model;

	for (int start = 0; start < draws; start += TNP_TILE)
	{
		int			tile = draws - start < TNP_TILE ? draws - start : TNP_TILE;
		const float *half[TNP_TILE];
		float		target[TNP_TILE * TNP_MAX_TARGETS];
		int			position[TNP_TILE];

		for (int i = 0; i < tile; i++)
		{
			half[i] = s->half.values + row * s->half.width;
			tnp_scale_targets(model, &e->stats, y + (start + i) * stride,
							  target + i * model->config.n_targets);
			position[i] = tnp_chain_position(e, j);
		}
		model->config.family->embed(model, tile, half, target, TNP_ROLE_LATER, position, scratch,
				  h + (size_t) start * model->config.family->state_width(model));
	}
}

/*
 * Tokens of `asked` equal queries for each variant of query `row`, one variant after the other, h
 * [variants, asked, d]; returns how many variants there are.
 */
static int
embed_asked(const Sample *s, int64_t row, int asked, float *scratch, float *h)
{
	const TnpFamily *family = s->root->model->config.family;
	const TnpFeatureEmbedding *half = s->variants.x != NULL ? &s->asked : &s->half;
	size_t		d = family->state_width(s->root->model);
	int			variants = tnp_variants_count(&s->variants, row);

	for (int v = 0; v < variants; v++)
	{
		const float *values = half->values
			+ (tnp_variants_first(&s->variants, row) + v) * half->width;
		float	   *query = h + (size_t) v * asked * d;

		family->embed(s->root->model, 1, &values, NULL, TNP_ROLE_QUERY, NULL, scratch, query);
		for (int b = 1; b < asked; b++)
			memcpy(query + b * d, query, d * sizeof(float));
	}
	return variants;
}

/* The group's chain takes in the row that was asked about, of these targets y + b * stride. */
static void
take_in(Group *g, int draws, const double *y, int64_t stride)
{
	tnp_process_chain_take(&g->process);
	for (int b = 0; b < draws; b++)
		tnp_process_chain_tell(&g->process, y[b * stride], &g->told[b]);
	if (tnp_process_chain_forget(&g->process))
		for (int b = 0; b < draws; b++)
			tnp_process_told_forget(&g->process, &g->told[b]);
}

/* The group's chain begins at query `first`; what it would remember there, it takes in anew. */
static void
begin_process(const Sample *s, Group *g, int64_t first, int draws, const double *y, int64_t stride)
{
	tnp_process_chain_reset(&g->process);
	for (int64_t j = tnp_process_chain_first(first); j < first; j++)
	{
		tnp_process_chain_ask(&g->process, s->queries->x + j * s->queries->n_features);
		take_in(g, draws, y + j, stride);
	}
}

/*
 * What the process says of the variants of query `row` to each of `asked` draws, and has the query
 * itself asked about last.
 */
static void
ask_process(const Sample *s, Group *g, int64_t row, int asked)
{
	const TnpFeatureEmbedding *half = s->variants.x != NULL ? &s->asked : &s->half;
	const TnpRows *variants = &s->variants.rows;
	float	   *said = g->said;
	int			width = tnp_prior_logits_width(s->root->model);

	for (int v = 0; v < tnp_variants_count(&s->variants, row); v++)
	{
		int64_t		variant = tnp_variants_first(&s->variants, row) + v;

		tnp_process_chain_ask(&g->process, variants->x + variant * variants->n_features);
		for (int b = 0; b < asked; b++, said += width)
		{
			memcpy(said, tnp_feature_embedding_prior_logits(s->root->model, half, variant),
				   width * sizeof(float));
			tnp_process_chain_say(&g->process, &g->told[b], said);
		}
	}
	if (s->variants.x != NULL)
		tnp_process_chain_ask(&g->process, s->queries->x + row * s->queries->n_features);
}

/*
 * Answers [variants, asked, D, size] to those tokens after the walk, queries `step` steps behind e.
 */
static TnpStatus
answer_asked(const Sample *s, const TnpEncoding *e, TnpWorker *worker, int64_t row, int64_t step,
			 int asked, float *h, double *params, TnpError *error)
{
	const TnpModel *model = e->model;
	const TnpFeatureEmbedding *half = s->variants.x != NULL ? &s->asked : &s->half;
	size_t		d = model->config.family->state_width(model);
	const float *chained = s->groups[worker->number].said;
	/* of a chain the process is told */
	int64_t		behind = (chained != NULL ? s->root->n : e->n + step) - e->stats.n0;
	TnpStatus	status = TNP_OK;

	for (int v = 0; status == TNP_OK && v < tnp_variants_count(&s->variants, row); v++)
	{
		int64_t		variant = tnp_variants_first(&s->variants, row) + v;
		TnpBeside	beside = {
			chained != NULL ? chained + (size_t) v * asked * tnp_prior_logits_width(model)
			: tnp_feature_embedding_prior_logits(model, half, variant),
			chained != NULL ? tnp_prior_logits_width(model) : 0, &behind, 0
		};

		status = tnp_answers(model, &e->stats, asked, h + (size_t) v * asked * d, &beside,
							 worker->work, params + (size_t) v * asked * tnp_answer_size(model),
							 error);
	}
	return status;
}

/* Draw the targets [D] of draw number `draw` from its answer params [D, size]. */
static void
draw_targets(const Sample *s, const double *params, uint64_t draw, int64_t row, double *y)
{
	const TnpModel *model = s->root->model;
	TnpDistributionKind kind;
	int			components;

	tnp_answer_shape(model, &kind, &components);
	for (int t = 0; t < model->config.n_targets; t++)
	{
		TnpDistribution answer = {kind, components,
								  params + t * tnp_distribution_size(kind, components)};

		y[t] = tnp_draw_target(&answer, s->seed, draw, (uint32_t) row, t);
	}
}

/*
 * Steps first … first + n - 1 of `draws` draws (at most s->group) on e, by the whole team or by the
 * one worker; n is within the room. y points to the first draw's first value of the whole answer,
 * rows of stride M * D.
 */
static TnpStatus
sample_block(Sample *s, TnpWorker *worker, bool by_team, const TnpEncoding *e, int64_t first,
			 int64_t n, uint64_t first_draw, int draws, double *y,
			 TnpError *error)
{
	const TnpModel *model = e->model;
	Group	   *g = &s->groups[worker->number];
	float	   *scratch = worker->work->scratch;
	int			d = model->config.family->state_width(model),
				targets = model->config.n_targets,
				size = tnp_answer_size(model);
	int64_t		stride = s->queries->n * targets;
	TnpStatus	status = TNP_OK;

	if (g->said != NULL)
		begin_process(s, g, first, draws, y, stride);
	for (int64_t j = 0; status == TNP_OK && j < n; j++)
	{
		/* before anything is drawn, all draws ask the same question */
		int			stored = j > 0 ? draws : 0,
					asked = j > 0 ? draws : 1,
					variants,
					same;
		float	   *query = g->h + (size_t) stored * d;

		if (stored > 0)
			embed_drawn(s, e, first + j - 1, j - 1, draws, y + (first + j - 1) * targets, stride,
						scratch, g->h);
		variants = embed_asked(s, first + j, asked, scratch, query);
		same = variants == 1 ? asked : 0;
		for (int b = 0; b < stored; b++)
			g->tokens[b] = tnp_chain_row(e, &g->caches[b], j - 1);
		for (int b = 0; b < asked * variants; b++)
			g->tokens[stored + b] = tnp_chain_query(e, &g->caches[b % asked], j);

		if (by_team)
			status = tnp_walk_team(s->team, e, stored + asked * variants, stored, same, g->tokens,
								   g->h, error);
		else
			status = tnp_walk(worker, e, stored + asked * variants, stored, same, g->tokens, g->h,
							  error);
		if (status == TNP_OK && g->said != NULL)
			ask_process(s, g, first + j, asked);
		if (status == TNP_OK)
			status = answer_asked(s, e, worker, first + j, j, asked, query, g->params, error);
		for (int b = 0; status == TNP_OK && b < draws; b++)
		{
			tnp_variants_join(model, &s->variants, first + j,
							  g->params + (size_t) (asked > 1 ? b : 0) * size,
							  (size_t) asked * size, g->work, g->joined);
			draw_targets(s, g->joined, first_draw + (uint64_t) b, first + j,
						 y + b * stride + (first + j) * targets);
		}
		if (status == TNP_OK && g->said != NULL)
			take_in(g, draws, y + first + j, stride);
		if (status == TNP_OK)
			tnp_worker_answered(worker, draws);
	}
	return status;
}

/* The steps of one draw after its first block: merge, encode again, go on. y is the draw's row. */
static TnpStatus
continue_draw(Sample *s, uint64_t draw, double *y, TnpError *error)
{
	const TnpEncoding *e = s->root;
	int64_t		m = s->queries->n,
				targets = e->model->config.n_targets,
				done = s->first,
				merged = 0;
	TnpStatus	status = TNP_OK;

	while (status == TNP_OK && done < m)
	{
		int64_t		count;

		status = tnp_chain_merge(s->root, &e, s->queries, s->place + merged,
								 y + merged * targets, done - merged, error);
		if (status != TNP_OK)
			break;
		merged = done;
		count = m - done < tnp_chain_room(e) ? m - done : tnp_chain_room(e);
		status = tnp_chain_settle_rows(e, s->team, &s->half, s->place + done, count, error);
		if (status == TNP_OK)
			status = sample_block(s, tnp_team_self(s->team), s->fine_grained, e, done, count,
								  draw, 1, y, error);
		done += count;
	}
	if (e != s->root)
		tnp_encoding_free((TnpEncoding *) e);
	return status;
}

/* The first block of one group of draws. */
static TnpStatus
sample_group(void *state, TnpWorker *worker, int64_t item, TnpError *error)
{
	Sample	   *s = state;
	int64_t		done = item * s->group;
	int			draws = s->draws - done < s->group ? (int) (s->draws - done) : s->group;

	return sample_block(s, worker, s->fine_grained && s->draws == 1, s->root, 0, s->first,
						s->first_draw + (uint64_t) done, draws,
						s->y + done * s->queries->n * s->root->model->config.n_targets, error);
}

TnpStatus
tnp_sample(const TnpEncoding *e, const TnpRows *queries, uint64_t seed, uint64_t first_draw,
		   int64_t draws, double *y, TnpError *error)
{
	Sample		s = {.root = e,.queries = queries,.seed = seed,.first_draw = first_draw,
					 .draws = draws,.y = y};
	TnpStatus	status = tnp_queries_check(e, queries, false, error);

	if (status != TNP_OK)
		return status;
	if (draws < 1)
		return tnp_fail(error, TNP_BAD_ARGUMENT, "the number of draws must be positive");
	if (queries->n == 0)
		return TNP_OK;
	if (e->model->config.family->sample != NULL)
		return e->model->config.family->sample(e, queries, seed, first_draw, draws, y, error);
	if (e->model->config.family->predict != NULL)
		return tnp_sample_by_encoding(e, queries, seed, first_draw, draws, y, error);
	if (e->model->config.head == TNP_HEAD_JOINT)
		return tnp_joint_sample(e, queries, seed, first_draw, draws, y, error);
	status = make_sample(&s, error);
	if (status == TNP_OK)
		status = tnp_team_run(s.team, (draws + s.group - 1) / s.group, sample_group, &s, error);
	/*
	 * merging allocates, which is the calling thread's alone; encoding the merged rows has a team
	 * of its own
	 */
	for (int64_t b = 0; status == TNP_OK && s.first < queries->n && b < draws; b++)
		status = continue_draw(&s, first_draw + (uint64_t) b,
							   y + b * queries->n * e->model->config.n_targets, error);
	free_sample(&s);
	return status;
}
