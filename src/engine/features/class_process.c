/*
 * class_process.c: what a Gaussian process of the prefix says about a row's class, and how much of
 * a classifier's answer that is (docs/model-format.md section 8, "Process of classes").
 *
 * It is least-squares classification (Rasmussen & Williams 2006, section 6.5): a regression on
 * which row is of which class, whose answers rows left out make probabilities. A network needs many
 * rows to find that two columns tell the class together only; a process with a weight for each
 * column finds it in a few hundred.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/class_process.h"

#include <math.h>
#include <string.h>

#include "engine/base/cholesky.h"
#include "engine/base/upper.h"
#include "engine/features/class_counts.h"
#include "engine/features/class_process_fit.h"
#include "engine/features/logistic.h"
#include "engine/features/process_fit.h"
#include "engine/features/process_points.h"
#include "engine/features/spread.h"

#define TOGETHER TNP_UPPER_ROWS	/* rows that are worked on at once */
#define POLL_ROWS (16 * TOGETHER)	/* rows between two looks at interrupts */
#define JITTER 1e-8				/* added to the carriers' correlations */
#define SMALLEST_REST 1e-9		/* of one minus the share of a prefix row in its own answer */
#define SHARPNESS 4.0			/* at first */
#define SHARPEST 16.0
#define SHARPENINGS 8
#define LOSS_UNIT 1048576.0		/* 1 nat: sums of whole numbers know no order */
#define OF_WEIGHT 2.0			/* nats, of all rows, that a weight of an axis costs */
/* of the share of the others' loss that the process does away with */
#define SLOPE 2.0
#define SMALLEST_LOSS 1e-6		/* of the others, in nats */

/* ---- memory ---------------------------------------------------------------------------------- */

static size_t
points_bytes(const TnpClassProcess *p)
{
	return (size_t) p->points.n * 2 * p->points.n_axes * sizeof(double);
}

static size_t
block_bytes(const TnpClassProcess *p)
{
	return ((size_t) p->points.n_axes + (size_t) p->channels * p->points.n + p->n_classes)
		* sizeof(double);
}

void
tnp_class_process_free(const TnpEnv *env, TnpClassProcess *process)
{
	tnp_free(env, process->points.value);
	tnp_free(env, process->weight);
	memset(process, 0, sizeof(*process));
}

bool
tnp_class_process_copy(const TnpEnv *env, const TnpClassProcess *from, TnpClassProcess *to)
{
	*to = *from;
	if (from->n_classes == 0)
		return true;
	to->points.value = tnp_alloc(env, 1, points_bytes(from));
	to->weight = tnp_alloc(env, 1, block_bytes(from));
	if (to->points.value == NULL || to->weight == NULL)
		return false;
	memcpy(to->points.value, from->points.value, points_bytes(from));
	memcpy(to->weight, from->weight, block_bytes(from));
	to->points.label = to->points.value + (from->points.label - from->points.value);
	to->means = to->weight + (from->means - from->weight);
	to->log_share = to->weight + (from->log_share - from->weight);
	return true;
}

size_t
tnp_class_process_bytes(const TnpClassProcess *process)
{
	return process->n_classes == 0 ? 0 : points_bytes(process) + block_bytes(process);
}

/* ---- the process ----------------------------------------------------------------------------- */

/* What is known while it is built: of n carriers. */
typedef struct Sums
{
	double	   *factor;			/* [n, n] of the carriers' correlations */
	double	   *outer;			/* [n, n] of the sum of the features' products */
	double	   *coefficients;	/* [channels, n] */
	double	   *phi;			/* [TOGETHER, n] */
	double	   *score;			/* [n0, channels] of rows left out */
	double		noise;
} Sums;

/* Correlations of a row x and the carriers: out [n]. */
static void
see_row(const TnpModel *model, const TnpStats *stats, const TnpClassProcess *p, const double *x,
		double *out)
{
	double		value[TNP_MOST_SLOTS + TNP_MOST_DIRECTIONS],
				label[TNP_MOST_SLOTS + TNP_MOST_DIRECTIONS];
	TnpPoints	one = {1, p->points.n_axes, value, label};

	tnp_points_set(model, stats, x, &one, 0);
	tnp_points_distances(stats, &one, 0, &p->points, 0, p->weight, out);
	tnp_points_correlations(0, p->points.n, out, NULL);
}

/*
 * Features of up to TOGETHER rows from `first` on, into sums->phi, and in own [TOGETHER] the
 * variance of what they do not reach and the noise; returns how many rows.
 */
static int
features_of(const TnpModel *model, const TnpStats *stats, const TnpRows *rows,
			const TnpClassProcess *p, const Sums *sums, int64_t first, double *own)
{
	int			n = p->points.n,
				some = stats->n0 - first < TOGETHER ? (int) (stats->n0 - first) : TOGETHER;

	for (int r = 0; r < some; r++)
		see_row(model, stats, p, rows->x + (first + r) * rows->n_features,
				sums->phi + (size_t) r * n);
	tnp_upper_solve(sums->factor, n, some, sums->phi);
	for (int r = 0; r < some; r++)
	{
		const double *phi = sums->phi + (size_t) r * n;

		own[r] = fmax(1 - tnp_dot(n, phi, phi), 0) + sums->noise;
	}
	return some;
}

static TnpStatus
factorise_carriers(const TnpStats *stats, const TnpClassProcess *p, double *factor,
				   TnpError *error)
{
	int			n = p->points.n;

	for (int i = 0; i < n; i++)
	{
		double	   *row = factor + (size_t) i * n;

		tnp_points_distances(stats, &p->points, i, &p->points, i, p->weight, row);
		tnp_points_correlations(i, n, row, NULL);
		row[i] = 1 + JITTER;
	}
	/* what is added to the diagonal keeps it definite */
	return tnp_upper_factorise(factor, n) ? TNP_OK
		: tnp_fail(error, TNP_BAD_VALUE, "the rows are too large for the model");
}

/* The sums over the prefix, and the coefficients that follow. */
static TnpStatus
sum_rows(const TnpModel *model, const TnpStats *stats, const TnpRows *rows,
		 const TnpClassProcess *p, Sums *sums, TnpError *error)
{
	int			n = p->points.n;

	for (int i = 0; i < n; i++)
		sums->outer[(size_t) i * n + i] = 1;
	for (int64_t first = 0; first < stats->n0; first += TOGETHER)
	{
		double		weight[TOGETHER] = {0},
					own[TOGETHER];
		int			some;

		if (first % POLL_ROWS == 0 && tnp_interrupted(&model->env))
			return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		some = features_of(model, stats, rows, p, sums, first, own);
		for (int r = 0; r < some; r++)
		{
			const double *phi = sums->phi + (size_t) r * n;
			double		targets[TNP_MAX_CLASS_ROOM];

			weight[r] = 1 / own[r];
			tnp_class_process_targets(p, (int) rows->y[first + r], targets);
			for (int c = 0; c < p->channels; c++)
				for (int j = 0; j < n; j++)
					sums->coefficients[(size_t) c * n + j] += weight[r] * targets[c] * phi[j];
		}
		tnp_upper_add(sums->outer, n, sums->phi, weight);
	}
	/* the identity beneath it keeps it definite */
	if (!tnp_upper_factorise(sums->outer, n))
		return tnp_fail(error, TNP_BAD_VALUE, "the rows are too large for the model");
	for (int c = 0; c < p->channels; c++)
	{
		tnp_upper_solve(sums->outer, n, 1, sums->coefficients + (size_t) c * n);
		tnp_upper_solve_back(sums->outer, n, sums->coefficients + (size_t) c * n);
	}
	return TNP_OK;
}

/* The scores of the prefix rows, each without its own class. */
static TnpStatus
leave_out(const TnpModel *model, const TnpStats *stats, const TnpRows *rows,
		  const TnpClassProcess *p, Sums *sums, TnpError *error)
{
	int			n = p->points.n;

	for (int64_t first = 0; first < stats->n0; first += TOGETHER)
	{
		double		own[TOGETHER],
					mean[TOGETHER][TNP_MAX_CLASS_ROOM];
		int			some;

		if (first % POLL_ROWS == 0 && tnp_interrupted(&model->env))
			return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		some = features_of(model, stats, rows, p, sums, first, own);
		for (int r = 0; r < some; r++)
			for (int c = 0; c < p->channels; c++)
				mean[r][c] = tnp_dot(n, sums->phi + (size_t) r * n,
									 sums->coefficients + (size_t) c * n);
		tnp_upper_solve(sums->outer, n, some, sums->phi);
		for (int r = 0; r < some; r++)
		{
			const double *phi = sums->phi + (size_t) r * n;
			double		rest = fmax(1 - tnp_dot(n, phi, phi) / own[r], SMALLEST_REST),
						targets[TNP_MAX_CLASS_ROOM];

			tnp_class_process_targets(p, (int) rows->y[first + r], targets);
			for (int c = 0; c < p->channels; c++)
				sums->score[(first + r) * p->channels + c]
					= targets[c] - (targets[c] - mean[r][c]) / rest;
		}
	}
	return TNP_OK;
}

/* ---- scores and probabilities ---------------------------------------------------------------- */

/* Scores [K] from means [channels]: that a row is of a class is no more than certain. */
static void
scores_of(const TnpClassProcess *p, const double *mean, double *score)
{
	int			first = p->n_classes - p->channels;

	for (int c = 0; c < p->channels; c++)
		score[first + c] = fmin(fmax(mean[c], -1), 1);
	if (first == 1)
		score[0] = -score[1];
}

/* Logs [K] of the probabilities of these scores, up to a constant, whose logarithm is returned. */
static double
sharpen(const TnpClassProcess *p, double sharpness, const double *score, double *out)
{
	for (int c = 0; c < p->n_classes; c++)
		out[c] = p->log_share[c] + sharpness * score[c];
	return tnp_log_sum(p->n_classes, out);
}

/*
 * Slope and curvature of the rows' log probabilities in the sharpness, and what they lose, in units
 * of 1 / LOSS_UNIT.
 */
static void
measure(const TnpClassProcess *p, const TnpRows *rows, int64_t n0, const double *left,
		int64_t *slope, int64_t *curve, int64_t *loss)
{
	*slope = *curve = *loss = 0;
	for (int64_t i = 0; i < n0; i++)
	{
		double		score[TNP_MAX_CLASS_ROOM],
					sharp[TNP_MAX_CLASS_ROOM],
					total,
					mean = 0,
					square = 0;
		int			y = (int) rows->y[i];

		scores_of(p, left + i * p->channels, score);
		total = sharpen(p, p->sharpness, score, sharp);
		for (int c = 0; c < p->n_classes; c++)
		{
			double		share = exp(sharp[c] - total);

			mean += share * score[c];
			square += share * score[c] * score[c];
		}
		*slope += llrint((score[y] - mean) * LOSS_UNIT);
		*curve += llrint(fmax(square - mean * mean, 0) * LOSS_UNIT);
		*loss += llrint((total - sharp[y]) * LOSS_UNIT);
	}
}

/* Newton's steps to what the scores of rows left out are best multiplied by, and what they lose. */
static void
judge(const TnpRows *rows, int64_t n0, const double *left, TnpClassProcess *p)
{
	int64_t		slope,
				curve,
				loss;

	p->sharpness = SHARPNESS;
	for (int step = 0; step < SHARPENINGS; step++)
	{
		measure(p, rows, n0, left, &slope, &curve, &loss);
		if (curve > 0)
			p->sharpness = fmin(fmax(p->sharpness + (double) slope / (double) curve,
									 1 / SHARPEST), SHARPEST);
	}
	measure(p, rows, n0, left, &slope, &curve, &loss);
	p->loss = (loss / LOSS_UNIT + OF_WEIGHT * (p->points.n_axes + 1)) / (double) n0;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Choose the rows that carry the process, and make its room. */
static TnpStatus
make_room(const TnpModel *model, const TnpRows *rows, const TnpStats *stats, TnpClassProcess *p,
		  TnpError *error)
{
	int64_t		chosen[TNP_PROCESS_ROWS];
	int			n = tnp_spread_rows(model, rows, stats, TNP_PROCESS_ROWS, chosen);

	p->n_classes = stats->n_classes;
	p->channels = p->n_classes == 2 ? 1 : p->n_classes;
	if (n < 0 || !tnp_points_make(model, stats, n, &p->points))
		return tnp_no_memory(error);
	p->weight = tnp_alloc_zero(&model->env, 1, block_bytes(p));
	if (p->weight == NULL)
		return tnp_no_memory(error);
	p->means = p->weight + p->points.n_axes;
	p->log_share = p->means + (size_t) p->channels * n;
	tnp_class_log_shares(stats, p->log_share);
	for (int i = 0; i < n; i++)
		tnp_points_set(model, stats, rows->x + chosen[i] * rows->n_features, &p->points, i);
	return TNP_OK;
}

/* What follows from the weights and the noise. */
static TnpStatus
take_in(const TnpModel *model, const TnpRows *rows, const TnpStats *stats, double noise,
		TnpClassProcess *p, TnpError *error)
{
	size_t		n = p->points.n,
				square = n * n;
	double	   *room = tnp_alloc_zero(&model->env, 2 * square + n * (p->channels + TOGETHER)
									  + stats->n0 * p->channels, sizeof(double));
	Sums		sums = {room, room + square, room + 2 * square,
		room + 2 * square + n * p->channels,
		room + 2 * square + n * (p->channels + TOGETHER), noise};
	TnpStatus	status = room == NULL ? tnp_no_memory(error)
		: factorise_carriers(stats, p, sums.factor, error);

	if (status == TNP_OK)
		status = sum_rows(model, stats, rows, p, &sums, error);
	if (status == TNP_OK)
		status = leave_out(model, stats, rows, p, &sums, error);
	if (status == TNP_OK)
	{
		judge(rows, stats->n0, sums.score, p);
		memcpy(p->means, sums.coefficients, n * p->channels * sizeof(double));
		for (int c = 0; c < p->channels; c++)
			tnp_upper_solve_back(sums.factor, (int) n, p->means + c * n);
	}
	tnp_free(&model->env, room);
	return status;
}

TnpStatus
tnp_class_process_build(const TnpModel *model, const TnpRows *rows, const TnpStats *stats,
						TnpClassProcess *process, TnpError *error)
{
	double	   *theta;
	TnpStatus	status;

	if (stats->n_classes < 2 || stats->n_slots == 0 || stats->n0 < 1)
		return TNP_OK;
	theta = tnp_alloc_zero(&model->env, (size_t) tnp_points_axes(stats) + 1, sizeof(double));
	status = theta == NULL ? tnp_no_memory(error)
		: make_room(model, rows, stats, process, error);
	if (status == TNP_OK)
		status = tnp_class_process_climb(model, rows, stats, process, theta, error);
	if (status == TNP_OK)
	{
		for (int a = 0; a < process->points.n_axes; a++)
			process->weight[a] = exp(theta[a]);
		status = take_in(model, rows, stats, exp(theta[process->points.n_axes]), process, error);
	}
	tnp_free(&model->env, theta);
	return status;
}

double
tnp_class_process_share(const TnpModel *model, const TnpStats *stats)
{
	double		loss;

	if (stats->class_process.n_classes < 2)
		return 0;
	loss = tnp_regressions_loss(model, stats);
	if (stats->trees.n_classes > 1)
		loss = fmin(loss, stats->trees.loss);
	return fmin(fmax(SLOPE * (1 - stats->class_process.loss / fmax(loss, SMALLEST_LOSS)), 0),
				model->config.class_process);
}

void
tnp_class_process_logits(const TnpModel *model, const TnpStats *stats, const double *x,
						 double *logits)
{
	const TnpClassProcess *p = &stats->class_process;
	double		seen[TNP_PROCESS_ROWS],
				mean[TNP_MAX_CLASS_ROOM],
				score[TNP_MAX_CLASS_ROOM],
				total;

	see_row(model, stats, p, x, seen);
	for (int c = 0; c < p->channels; c++)
		mean[c] = tnp_dot(p->points.n, seen, p->means + (size_t) c * p->points.n);
	scores_of(p, mean, score);
	total = sharpen(p, p->sharpness, score, logits);
	for (int c = 0; c < p->n_classes; c++)
		logits[c] += log(p->n_classes) - total;
}
