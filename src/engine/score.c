/*
 * score.c: joint log densities in one pass per block: all rows of the block enter as chain rows and as queries at
 * once, and query j sees the chain rows before it (docs/model-format.md section 9; Hassan et al., algorithm 2).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>
#include <string.h>

#include "chain.h"
#include "random.h"

/* One question: rows, their halves, and memory for one block. */
typedef struct Score
{
	const TnpEncoding *root;
	const TnpRows *rows;
	TnpHalf		half;			/* of all rows */
	int64_t		block;			/* longest block */
	float	   *h;				/* [2 * block - 1, d] */
	float	   *scratch;
	double	   *params;			/* [block, size] */
	TnpToken   *tokens;			/* [2 * block - 1] */
	double	   *y;				/* [block] */
	TnpCache	cache;			/* keys of the block's chain rows */
} Score;

static void
free_score(Score *s)
{
	const TnpEnv *env = &s->root->model->env;

	tnp_half_free(env, &s->half);
	tnp_free(env, s->h);
	tnp_free(env, s->scratch);
	tnp_free(env, s->params);
	tnp_free(env, s->tokens);
	tnp_free(env, s->y);
	tnp_cache_free(env, &s->cache);
}

static TnpStatus
make_score(const TnpEncoding *e, const TnpRows *rows, Score *s, TnpError *error)
{
	const TnpModel *model = e->model;
	const TnpEnv *env = &model->env;
	int64_t		room = model->config.context == TNP_FULL && model->config.buffer > 0 ? model->config.buffer : rows->n;
	TnpDistributionKind kind;
	int			components;
	TnpStatus	status;

	memset(s, 0, sizeof(*s));
	s->root = e;
	s->rows = rows;
	s->block = rows->n < room ? rows->n : room;
	tnp_answer_shape(model, &kind, &components);
	s->h = tnp_alloc(env, 2 * s->block, model->config.width * sizeof(float));
	s->scratch = tnp_alloc(env, TNP_TILE, tnp_embed_scratch(model) * sizeof(float));
	s->params = tnp_alloc(env, s->block, tnp_distribution_size(kind, components) * sizeof(double));
	s->tokens = tnp_alloc(env, 2 * s->block, sizeof(TnpToken));
	s->y = tnp_alloc(env, s->block, sizeof(double));
	if (s->h == NULL || s->scratch == NULL || s->params == NULL || s->tokens == NULL || s->y == NULL)
		status = tnp_no_memory(error);
	else
		status = tnp_cache_make(env, tnp_cache_layers(model), model->config.width, s->block, &s->cache, error);
	if (status == TNP_OK)
		status = tnp_half_build(model, &e->stats, rows, 0, rows->n, false, &s->half, error);
	if (status != TNP_OK)
		free_score(s);
	return status;
}

/* Tokens of n rows place[…] from h on: chain rows (with targets) or queries. */
static void
embed_rows(Score *s, const TnpEncoding *e, const int64_t *place, int64_t n, bool chain, float *h)
{
	const TnpModel *model = e->model;

	for (int64_t start = 0; start < n; start += TNP_TILE)
	{
		int			tile = n - start < TNP_TILE ? (int) (n - start) : TNP_TILE;
		const float *row[TNP_TILE];
		float		y[TNP_TILE];
		int			position[TNP_TILE];

		for (int i = 0; i < tile; i++)
		{
			int64_t		r = place[start + i];

			row[i] = s->half.values + r * s->half.width;
			y[i] = chain ? tnp_scale_target(model, &e->stats, s->rows->y[r]) : 0;
			position[i] = chain ? tnp_chain_position(e, start + i) : -1;
		}
		tnp_embed(model, tile, row, chain ? y : NULL, chain ? TNP_ROLE_LATER : TNP_ROLE_QUERY, position, s->scratch,
				  h + start * model->config.width);
	}
}

/* Conditional log densities of rows place[0 … n-1] on e, n within the room; out [n]. */
static TnpStatus
score_block(Score *s, const TnpEncoding *e, const int64_t *place, int64_t n, double *out, TnpError *error)
{
	const TnpModel *model = e->model;
	int			d = model->config.width,
				components,
				size;
	TnpDistributionKind kind;
	TnpStatus	status;

	/* the last row of the block need not be stored: nothing after it */
	embed_rows(s, e, place, n - 1, true, s->h);
	embed_rows(s, e, place, n, false, s->h + (n - 1) * d);
	for (int64_t j = 0; j < n - 1; j++)
		s->tokens[j] = tnp_chain_row(e, &s->cache, j);
	for (int64_t j = 0; j < n; j++)
		s->tokens[n - 1 + j] = tnp_chain_query(e, &s->cache, j);
	status = tnp_trunk(model, (TnpCache *) &e->cache, 2 * n - 1, n - 1, s->tokens, s->h, error);
	if (status == TNP_OK)
		status = tnp_answers(model, &e->stats, n, s->h + (n - 1) * d, s->params, error);
	if (status != TNP_OK)
		return status;
	tnp_answer_shape(model, &kind, &components);
	size = tnp_distribution_size(kind, components);
	for (int64_t j = 0; j < n; j++)
	{
		TnpDistribution answer = {kind, components, s->params + j * size};

		out[j] = tnp_log_pdf(&answer, s->rows->y[place[j]]);
	}
	return TNP_OK;
}

/* Conditional log densities of all rows in the order place; out [n] by step. */
static TnpStatus
score_order(Score *s, const int64_t *place, double *out, TnpError *error)
{
	const TnpEncoding *e = s->root;
	int64_t		n = s->rows->n,
				done = 0;
	TnpStatus	status = TNP_OK;

	while (status == TNP_OK && done < n)
	{
		int64_t		room = tnp_chain_room(e),
					count = n - done < room ? n - done : room;

		status = score_block(s, e, place + done, count, out + done, error);
		if (status == TNP_OK && done + count < n)
		{
			for (int64_t j = 0; j < count; j++)
				s->y[j] = s->rows->y[place[done + j]];
			status = tnp_chain_merge(s->root, &e, s->rows, place + done, s->y, count, error);
		}
		done += count;
	}
	if (e != s->root)
		tnp_encoding_free((TnpEncoding *) e);
	return status;
}

/* The order number `order`: the given one for -1, else a random permutation (section 11). */
static void
fill_order(int64_t n, uint64_t seed, int64_t order, int64_t *place)
{
	for (int64_t i = 0; i < n; i++)
		place[i] = i;
	for (int64_t i = n - 1; order >= 0 && i > 0; i--)
	{
		double		u[2];
		int64_t		other,
					keep = place[i];

		tnp_random(seed, (uint64_t) order, (uint32_t) i, 1, u);
		other = (int64_t) floor(u[0] * (double) (i + 1));
		place[i] = place[other];
		place[other] = keep;
	}
}

/* ln(exp(a) + exp(b)) */
static double
log_add(double a, double b)
{
	double		max = fmax(a, b);

	return isinf(max) ? max : max + log(exp(a - max) + exp(b - max));
}

TnpStatus
tnp_score(const TnpEncoding *e, const TnpRows *rows, int64_t orders, uint64_t seed, double *log_density, double *per_row, TnpError *error)
{
	const TnpEnv *env = &e->model->env;
	int64_t	   *place;
	double	   *steps,
				total = -INFINITY;
	Score		s;
	TnpStatus	status = tnp_queries_check(e, rows, true, error);

	if (status != TNP_OK)
		return status;
	if (orders < 0)
		return tnp_fail(error, TNP_BAD_ARGUMENT, "the number of orders must not be negative");
	*log_density = 0;
	if (rows->n == 0)
		return TNP_OK;
	for (int64_t i = 0; i < rows->n; i++)
		if (!isfinite(tnp_scale_target(e->model, &e->stats, rows->y[i])))
			return tnp_fail(error, TNP_BAD_VALUE, "a target is too large for the model");
	if ((status = make_score(e, rows, &s, error)) != TNP_OK)
		return status;
	place = tnp_alloc(env, rows->n, sizeof(int64_t));
	steps = tnp_alloc(env, rows->n, sizeof(double));
	if (place == NULL || steps == NULL)
		status = tnp_no_memory(error);
	for (int64_t r = 0; status == TNP_OK && r < (orders > 0 ? orders : 1); r++)
	{
		double		joint = 0;

		fill_order(rows->n, seed, orders > 0 ? r : -1, place);
		status = score_order(&s, place, steps, error);
		for (int64_t j = 0; status == TNP_OK && j < rows->n; j++)
			joint += steps[j];
		total = log_add(total, joint);
	}
	if (status == TNP_OK)
	{
		*log_density = orders > 0 ? total - log((double) orders) : total;
		if (per_row != NULL && orders == 0)
			memcpy(per_row, steps, (size_t) rows->n * sizeof(double));
	}
	tnp_free(env, place);
	tnp_free(env, steps);
	free_score(&s);
	return status;
}

/* Rows [0, n) of rows, and the rows from n on. */
static TnpRows
head_rows(const TnpRows *rows, int64_t n)
{
	return (TnpRows) {n, rows->n_features, rows->kinds, rows->x, rows->y, rows->n_classes};
}

static TnpRows
slice_rows(const TnpRows *rows, int64_t first, int64_t end)
{
	return (TnpRows) {end - first, rows->n_features, rows->kinds, rows->x + first * rows->n_features, rows->y + first, rows->n_classes};
}

/* The first number of rows above n at which the canonical prefix moves, at most `end`. */
static int64_t
prefix_end(const TnpModel *model, int64_t n, int64_t end)
{
	int64_t		prefix = tnp_canonical_prefix(model, n),
				low = n,
				high = end;

	/* the prefix never shrinks as rows are added */
	if (tnp_canonical_prefix(model, end) == prefix)
		return end;
	while (high - low > 1)
	{
		int64_t		middle = low + (high - low) / 2;

		if (tnp_canonical_prefix(model, middle) == prefix)
			low = middle;
		else
			high = middle;
	}
	return high;
}

TnpStatus
tnp_evidence(const TnpModel *model, const TnpRows *rows, double *log_evidence, int64_t *conditioned, double *per_row, TnpError *error)
{
	int64_t		given = model->config.min_rows;
	TnpStatus	status = tnp_rows_check(model, rows, true, error);

	if (status != TNP_OK)
		return status;
	*conditioned = given;
	*log_evidence = 0;
	if (rows->n < given)
	{
		tnp_fail(error, TNP_TOO_FEW_ROWS, "too few rows for the model");
		tnp_detail(error, "%lld row%s given, the evidence is conditional on the first %lld",
				   (long long) rows->n, rows->n == 1 ? "" : "s", (long long) given);
		return TNP_TOO_FEW_ROWS;
	}
	for (int64_t i = 0; per_row != NULL && i < given; i++)
		per_row[i] = NAN;

	/* while the prefix stays where it is, all conditionals come from one pass */
	for (int64_t n = given; status == TNP_OK && n < rows->n;)
	{
		int64_t		end = prefix_end(model, n, rows->n);
		TnpRows		context = head_rows(rows, n),
					next = slice_rows(rows, n, end);
		TnpEncoding *e;
		double		part = 0;

		status = tnp_build(model, &context, tnp_canonical_prefix(model, n), &e, error);
		if (status == TNP_OK)
		{
			status = tnp_score(e, &next, 0, 0, &part, per_row != NULL ? per_row + n : NULL, error);
			tnp_encoding_free(e);
		}
		*log_evidence += part;
		n = end;
	}
	return status;
}
