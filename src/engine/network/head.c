/*
 * head.c: from query states to distributions in original units (docs/model-format.md section 8).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/network/head.h"

#include <math.h>
#include <string.h>

#include "engine/features/class_order.h"
#include "engine/features/class_prior.h"
#include "engine/features/scale.h"
#include "engine/network/block.h"
#include "engine/network/gate.h"
#include "engine/network/levels_mixture.h"
#include "engine/network/mlp.h"
#include "engine/network/pull.h"
#include "engine/network/rare_mixture.h"

void
tnp_answer_shape(const TnpModel *model, TnpDistributionKind *kind, int *n)
{
	const TnpConfig *c = &model->config;

	*n = c->head_outputs + (c->gate_hidden > 0);
	if (c->head == TNP_HEAD_GAUSSIAN || c->head == TNP_HEAD_JOINT)
		*kind = TNP_GAUSSIAN;
	else if (c->head == TNP_HEAD_MIXTURE)
		*kind = TNP_MIXTURE;
	else if (c->head == TNP_HEAD_CLASSES)
		*kind = TNP_CLASSES;
	else if (c->head == TNP_HEAD_QUANTILES)
		*kind = TNP_QUANTILES;
	else
		*kind = c->half_normal_tails ? TNP_BARS_HALF_NORMAL : TNP_BARS;
}

int
tnp_answer_size(const TnpModel *model)
{
	TnpDistributionKind kind;
	int			n;

	tnp_answer_shape(model, &kind, &n);
	return model->config.n_targets * tnp_distribution_size(kind, n);
}

static double
softplus(double r)
{
	return fmax(r, 0) + log1p(exp(-fabs(r)));
}

/* Standard deviation of a raw head output. */
static double
map_std(const TnpConfig *c, double raw)
{
	switch (c->std_map)
	{
		case TNP_STD_EXP:
			return exp(raw);
		case TNP_STD_BOUNDED:
			return 0.05 + 0.95 * softplus(raw);
		case TNP_STD_SOFTPLUS:
			return c->std_floor + softplus(raw);
		case TNP_STD_SOFTPLUS_COMPLEMENT:
			return c->std_floor + (1 - c->std_floor) * softplus(raw);
		case TNP_STD_SQRT_SOFTPLUS:
			return sqrt(softplus(raw)) + c->std_floor;
	}
	return NAN;
}

/* out [n] = softmax of logits [n]. */
static void
softmax(int n, const float *logits, double *out)
{
	double		max = logits[0],
				sum = 0;

	/* a comparison: gcc 12 for arm64 fails on fmax() in a loop that it vectorises */
	for (int i = 1; i < n; i++)
		if (logits[i] > max)
			max = logits[i];
	for (int i = 0; i < n; i++)
		sum += out[i] = exp(logits[i] - max);
	for (int i = 0; i < n; i++)
		out[i] /= sum;
}

/* The logits raw [n] become a mean of the head's and of what the logistic regression says [n]. */
static void
blend(int n, double share, const float *prior_logits, float *raw)
{
	for (int i = 0; i < n; i++)
		raw[i] = (float) ((1 - share) * raw[i] + share * prior_logits[i]);
}

/*
 * A mixture with the answer of a process as its last component; said [tnp_prior_logits_width] is
 * what the process says of the query, and what trees say; `behind` as in TnpBeside.
 */
static void
answer_gated(const TnpModel *model, const TnpStats *stats, const float *said, int64_t behind,
			 const float *raw, double *params)
{
	const TnpConfig *c = &model->config;
	int			n = c->head_outputs;

	softmax(n, raw, params);
	for (int i = 0; i < n; i++)
	{
		params[n + 1 + i] = raw[n + i];
		params[2 * (n + 1) + i] = map_std(c, raw[2 * n + i]);
	}
	tnp_gate_add(model, stats, said, behind, n, params);
	tnp_mixture_levels(&stats->target_levels, c->levels, n, n + 1, params);
	tnp_mixture_rare(&stats->rare, n, n + 1, params);
	if (stats->wanted_mean.share > 0)
		tnp_mixture_pull(n + 1, stats->wanted_mean.share, said[TNP_PROCESS_NUMBERS], params);
	for (int i = 0; i <= n; i++)
	{
		params[n + 1 + i] = stats->y_center + stats->y_scale * params[n + 1 + i];
		params[2 * (n + 1) + i] *= fabs(stats->y_scale);
	}
}

/*
 * Parameters of the answer for target t from its raw outputs of the head: weights [n], `chunk`
 * further means, and as far from them deviations.
 */
static void
answer(const TnpModel *model, const TnpStats *stats, const float *raw, int chunk, int t,
	   double *params)
{
	const TnpConfig *c = &model->config;
	int			n = c->head_outputs;
	double		center = tnp_target_center(stats, t),
				scale = tnp_target_scale(stats, t);

	switch (c->head)
	{
		case TNP_HEAD_GAUSSIAN:
			params[0] = center + scale * raw[0];
			params[1] = fabs(scale) * map_std(c, raw[chunk]);
			break;
		case TNP_HEAD_MIXTURE:
			softmax(n, raw, params);
			for (int i = 0; i < n; i++)
			{
				params[n + i] = center + scale * raw[chunk + i];
				params[2 * n + i] = fabs(scale) * map_std(c, raw[2 * chunk + i]);
			}
			break;
		case TNP_HEAD_BARS:
			softmax(n, raw, params);
			for (int i = 0; i <= n; i++)
				params[n + i] = center + scale * model->borders[i];
			break;
		case TNP_HEAD_JOINT:	/* answer_alone */
			break;
		case TNP_HEAD_CLASSES:
			softmax(stats->n_classes, raw, params);
			for (int i = stats->n_classes; i < n; i++)
				params[i] = 0;
			if (stats->orders_classes)
				tnp_class_order_answer(stats, params);
			break;
		case TNP_HEAD_QUANTILES:
			/* of families that answer for themselves */
			for (int i = 0; i < n + 2; i++)
				params[i] = NAN;
			break;
	}
}

static TnpStatus
not_finite(TnpError *error)
{
	return tnp_fail(error, TNP_BAD_VALUE, "the model's prediction is not finite for these values");
}

/* What the head reads of n states, side by side at their beginning. */
static void
gather_heads(int n, int state, int wanted, float *h)
{
	for (int i = 1; i < n && wanted < state; i++)
		memmove(h + (size_t) i * wanted, h + (size_t) i * state, wanted * sizeof(float));
}

/* Length of row t of the lower triangle of W W' + jitter, W [targets, rank]. */
static double
alone_deviation(int rank, const float *w, int t, double jitter)
{
	double		last = jitter,
				square = 0;

	for (int k = 0; k <= t; k++)
	{
		double		product = 0;

		for (int r = 0; r < rank; r++)
			product += (double) w[(size_t) t * rank + r] * w[(size_t) k * rank + r];
		if (k == t)
			last += product;
		else
			square += product * product;
	}
	return square > 0 ? sqrt(square + last * last) : last;
}

/*
 * A joint head's answers to n queries, each alone: of its blocks every state sees itself only, so
 * that attention is the value. The targets of a query have one Gaussian, of which each has its
 * part. raw has the means.
 */
static void
answer_alone(const TnpModel *model, const TnpStats *stats, int n, float *state, TnpScratch *work,
			 double *params)
{
	const TnpConfig *c = &model->config;
	int			targets = c->n_targets,
				rank = c->head_rank;
	float	   *w = work->scratch + (size_t) n * 2 * tnp_mlp_width(&model->projector);

	for (int k = 0; k < c->head_blocks; k++)
	{
		tnp_block_keys(model, &model->head_blocks[k], c->post_norm, n, state, &work->block);
		tnp_block_finish(model, &model->head_blocks[k], c->post_norm, n, state, &work->block);
	}
	tnp_mlp(model, &model->projector, n, state, work->scratch, w);
	for (int i = 0; i < n; i++, w += (size_t) targets * rank)
		for (int t = 0; t < targets; t++)
		{
			double	   *to = params + 2 * ((size_t) i * targets + t),
						scale = tnp_target_scale(stats, t);

			to[0] = tnp_target_center(stats, t) + scale * work->raw[i * targets + t];
			to[1] = scale * alone_deviation(rank, w, t, c->head_jitter);
		}
}

/*
 * Answers from n states [n, head width] (overwritten) of rows of which each has `planes`, the first
 * of the first row in front; params [n, D / planes, size].
 */
static TnpStatus
answer_states(const TnpModel *model, const TnpStats *stats, int n, int first, int planes,
			  float *state, const TnpBeside *beside, TnpScratch *work, double *params,
			  TnpError *error)
{
	const TnpConfig *c = &model->config;
	int			outputs = model->head.linear[model->head.n - 1].out,
				targets = c->n_targets / planes,
				size,
				count;
	double		share = tnp_prior_share(model, stats, true),
				alone = tnp_prior_share(model, stats, false);
	TnpDistributionKind kind;

	tnp_answer_shape(model, &kind, &count);
	size = tnp_distribution_size(kind, count);
	if (c->final_norm)
		model->kernels->norm(&model->final_norm, n, state, state);
	tnp_mlp(model, &model->head, n, state, work->scratch, work->raw);
	if (c->head == TNP_HEAD_JOINT)
		answer_alone(model, stats, n, state, work, params);
	for (int i = 0; i < n; i++)
	{
		float	   *raw = work->raw + (size_t) i * outputs;
		double	   *to = params + (size_t) i * targets * size;
		int			plane = (first + i) % planes;

		if (share > 0)
		{
			const float *said = beside->prior_logits + i * beside->step;
			bool		silent = alone != share && said[tnp_classes(model)] == 0;

			blend(count, silent ? alone : share, said, raw);
		}
		if (c->gate_hidden > 0)
			answer_gated(model, stats, beside->prior_logits + i * beside->step,
						 beside->behind[i * beside->behind_step], raw, to);
		for (int t = 0; t < targets; t++)
		{
			TnpDistribution d = {kind, count, to + t * size};

			if (c->gate_hidden == 0)
				answer(model, stats, raw + t * c->head_outputs, targets * c->head_outputs,
					   plane * targets + t, to + t * size);
			if (tnp_distribution_check(&d, NULL) != TNP_OK)
				return not_finite(error);
		}
	}
	return TNP_OK;
}

TnpStatus
tnp_answers(const TnpModel *model, const TnpStats *stats, int64_t n, float *h,
			const TnpBeside *beside, TnpScratch *work, double *params, TnpError *error)
{
	const TnpConfig *c = &model->config;
	int			state_width = c->family->state_width(model),
				width = c->family->head_width(c),
				planes = tnp_target_planes(c),
				size = tnp_answer_size(model);
	TnpStatus	status = TNP_OK;

	for (int64_t start = 0; status == TNP_OK && start < n; start += work->rows)
	{
		int			tile = n - start < work->rows ? (int) (n - start) : work->rows,
					states = tile * planes;
		float	   *state = h + start * state_width;
		TnpBeside	of_tile = *beside;

		if (of_tile.prior_logits != NULL)
			of_tile.prior_logits += start * of_tile.step;
		if (of_tile.behind != NULL)
			of_tile.behind += start * of_tile.behind_step;

		gather_heads(tile, state_width, planes * width, state);
		if (!tnp_all_finite((size_t) states * width, state))
			return not_finite(error);
		for (int first = 0; status == TNP_OK && first < states; first += work->rows)
			status = answer_states(model, stats,
								   states - first < work->rows ? states - first : work->rows,
								   first, planes, state + (size_t) first * width, &of_tile, work,
								   params + start * size + (size_t) first * (size / planes),
								   error);
	}
	return status;
}
