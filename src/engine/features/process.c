/*
 * process.c: a sparse Gaussian process of the prefix, whose answers the row tokeniser sees as
 * further numbers of a row (docs/model-format.md section 5, "Process"). Some rows carry it; all
 * rows of the prefix are its data (Snelson & Ghahramani 2006), so that what they say is a sum. The
 * weights of the slots and the noise are found in process_fit.c.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/process.h"

#include <math.h>
#include <string.h>

#include "engine/base/cholesky.h"
#include "engine/base/upper.h"
#include "engine/features/column.h"
#include "engine/features/process_fit.h"
#include "engine/features/process_points.h"

#define POLL_ROWS 64			/* rows between two looks at interrupts */
#define TOGETHER 4				/* rows whose products are summed at once */
#define JITTER 1e-6				/* added to the carriers' correlations */
#define SMALLEST 1e-6			/* added to sums of squares */
#define SMALLEST_REST 1e-9		/* of one minus the share of a prefix row in its own answer */
#define LOG_TWO_PI 1.8378770664093453
#define MOST_SLOTS 256			/* of inputs.max_features */

/*
 * The features phi [n] of a row x [F]; returns the variance of what they do not reach and the
 * noise, in units of the process's variance.
 */
static double
features_of(const TnpModel *model, const TnpStats *stats, const TnpProcess *p, const double *x,
			double *phi)
{
	double		value[MOST_SLOTS],
				label[MOST_SLOTS];
	TnpPoints	one = {1, p->points.n_slots, value, label};
	int			n = p->points.n;

	tnp_points_set(model, stats, x, &one, 0);
	tnp_points_distances(stats, &one, 0, &p->points, 0, p->weight, phi);
	for (int j = 0; j < n; j++)
		phi[j] = tnp_correlation(phi[j]);
	tnp_upper_solve(p->factor, n, 0, phi);
	return fmax(1 - tnp_dot(n, phi, phi), 0) + p->noise;
}

/* ---- the fit --------------------------------------------------------------------------------- */

/* Choose the rows that carry the process; all of its memory. */
static TnpStatus
choose_carriers(const TnpModel *model, const TnpRows *rows, const TnpStats *stats, TnpProcess *p,
				TnpError *error)
{
	int64_t		chosen[TNP_PROCESS_ROWS];
	int			n = tnp_process_choose(model, rows, stats, TNP_PROCESS_ROWS, chosen);
	size_t		square = (size_t) n * n;

	if (n < 0 || !tnp_points_make(model, stats, n, &p->points))
		return tnp_no_memory(error);
	p->n0 = stats->n0;
	p->weight = tnp_alloc_zero(&model->env, 2 * square + n + stats->n_slots + 1, sizeof(double));
	p->left_out = tnp_alloc(&model->env, stats->n0, 2 * sizeof(float));
	if (p->weight == NULL || p->left_out == NULL)
		return tnp_no_memory(error);
	p->coefficients = p->weight + stats->n_slots + 1;
	p->factor = p->coefficients + n;
	p->outer = p->factor + square;
	for (int i = 0; i < n; i++)
		tnp_points_set(model, stats, rows->x + chosen[i] * rows->n_features, &p->points, i);
	return TNP_OK;
}

static bool
factorise_carriers(const TnpStats *stats, TnpProcess *p)
{
	int			n = p->points.n;

	for (int i = 0; i < n; i++)
	{
		double	   *row = p->factor + (size_t) i * n;

		tnp_points_distances(stats, &p->points, i, &p->points, i, p->weight, row);
		for (int j = i; j < n; j++)
			row[j] = tnp_correlation(row[j]);
		row[i] += JITTER;
	}
	return tnp_upper_factorise(p->factor, n);
}

/* The sums over the prefix, and what follows from them; phi [TOGETHER, n] is scratch. */
static TnpStatus
sum_rows(const TnpModel *model, const TnpRows *rows, const TnpStats *stats, TnpProcess *p,
		 double *phi, TnpError *error)
{
	int			n = p->points.n;
	double		square = 0;

	for (int i = 0; i < n; i++)
		p->outer[(size_t) i * n + i] = 1;
	for (int64_t r = 0; r < stats->n0; r += TOGETHER)
	{
		double		weight[TOGETHER] = {0};

		if (r % POLL_ROWS == 0 && tnp_interrupted(&model->env))
			return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		for (int k = 0; k < TOGETHER && r + k < stats->n0; k++)
		{
			double	   *own = phi + (size_t) k * n,
						y = tnp_clipped_target(model, stats, rows->y[r + k]);

			weight[k] = 1 / features_of(model, stats, p, rows->x + (r + k) * rows->n_features, own);
			square += weight[k] * y * y;
			for (int j = 0; j < n; j++)
				p->coefficients[j] += weight[k] * y * own[j];
		}
		tnp_upper_add(p->outer, n, phi, weight);
	}
	/* the identity beneath it keeps it definite */
	if (!tnp_upper_factorise(p->outer, n))
		return tnp_fail(error, TNP_BAD_VALUE, "the rows are too large for the model");
	tnp_upper_solve(p->outer, n, 0, p->coefficients);
	square -= tnp_dot(n, p->coefficients, p->coefficients);
	tnp_upper_solve_back(p->outer, n, p->coefficients);
	p->variance = (fmax(square, 0) + SMALLEST) / stats->n0;
	return TNP_OK;
}

/*
 * Mean of a row's features phi [n], which are lost, and in *share how much of `own` the process
 * leaves of what they reach.
 */
static double
answer(const TnpProcess *p, double *phi, double *share)
{
	double		mean = tnp_dot(p->points.n, phi, p->coefficients);

	tnp_upper_solve(p->outer, p->points.n, 0, phi);
	*share = tnp_dot(p->points.n, phi, phi);
	return mean;
}

/* What the process says of the prefix rows without their own target. */
static TnpStatus
leave_out(const TnpModel *model, const TnpRows *rows, const TnpStats *stats, TnpProcess *p,
		  double *phi, TnpError *error)
{
	double		density = 0;

	for (int64_t r = 0; r < stats->n0; r++)
	{
		double		y = tnp_clipped_target(model, stats, rows->y[r]),
					own,
					mean,
					share,
					rest,
					spread;

		if (r % POLL_ROWS == 0 && tnp_interrupted(&model->env))
			return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		own = features_of(model, stats, p, rows->x + r * rows->n_features, phi);
		mean = answer(p, phi, &share);
		rest = fmax(1 - share / own, SMALLEST_REST);
		mean = y - (y - mean) / rest;
		spread = p->variance * own / rest;
		density -= 0.5 * (LOG_TWO_PI + log(spread) + (mean - y) * (mean - y) / spread);
		p->left_out[2 * r] = (float) tnp_soft_clip(mean, model->config.target_clip);
		p->left_out[2 * r + 1] = (float) (0.5 * log(spread));
	}
	p->quality = tnp_soft_clip(density / stats->n0, model->config.target_clip);
	return TNP_OK;
}

TnpStatus
tnp_process_build(const TnpModel *model, const TnpRows *rows, TnpStats *stats, TnpError *error)
{
	TnpProcess *p = &stats->process;
	TnpStatus	status = choose_carriers(model, rows, stats, p, error);
	double	   *phi = NULL;

	if (status == TNP_OK)
		status = tnp_process_climb(model, rows, stats, p->weight, error);
	if (status != TNP_OK)
		return status;
	for (int s = 0; s < stats->n_slots; s++)
		p->weight[s] = exp(p->weight[s]);
	p->noise = exp(p->weight[stats->n_slots]);
	phi = tnp_alloc_zero(&model->env, (size_t) TOGETHER * p->points.n, sizeof(double));
	if (phi == NULL)
		status = tnp_no_memory(error);
	/* what is added to the diagonal keeps it definite */
	else if (!factorise_carriers(stats, p))
		status = tnp_fail(error, TNP_BAD_VALUE, "the rows are too large for the model");
	else
		status = sum_rows(model, rows, stats, p, phi, error);
	if (status == TNP_OK)
		status = leave_out(model, rows, stats, p, phi, error);
	tnp_free(&model->env, phi);
	return status;
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* Bytes of the points, of the block that begins with the weights, and of left_out. */
static size_t
points_bytes(const TnpProcess *p)
{
	return (size_t) p->points.n * 2 * p->points.n_slots * sizeof(double);
}

static size_t
block_bytes(const TnpProcess *p)
{
	size_t		n = p->points.n;

	return (2 * n * n + n + p->points.n_slots + 1) * sizeof(double);
}

static size_t
left_out_bytes(const TnpProcess *p)
{
	return (size_t) p->n0 * 2 * sizeof(float);
}

bool
tnp_process_copy(const TnpEnv *env, const TnpProcess *from, TnpProcess *to)
{
	memset(to, 0, sizeof(*to));
	if (from->points.n == 0)
		return true;
	*to = *from;
	to->points.value = tnp_alloc(env, 1, points_bytes(from));
	to->weight = tnp_alloc(env, 1, block_bytes(from));
	to->left_out = tnp_alloc(env, 1, left_out_bytes(from));
	if (to->points.value == NULL || to->weight == NULL || to->left_out == NULL)
		return false;
	memcpy(to->points.value, from->points.value, points_bytes(from));
	memcpy(to->weight, from->weight, block_bytes(from));
	memcpy(to->left_out, from->left_out, left_out_bytes(from));
	to->points.label = to->points.value + (from->points.label - from->points.value);
	to->coefficients = to->weight + (from->coefficients - from->weight);
	to->factor = to->weight + (from->factor - from->weight);
	to->outer = to->weight + (from->outer - from->weight);
	return true;
}

void
tnp_process_free(const TnpEnv *env, TnpProcess *process)
{
	tnp_free(env, process->points.value);
	tnp_free(env, process->weight);
	tnp_free(env, process->left_out);
	memset(process, 0, sizeof(*process));
}

size_t
tnp_process_bytes(const TnpProcess *process)
{
	return process->points.n == 0 ? 0 : points_bytes(process) + block_bytes(process)
		+ left_out_bytes(process);
}

/* ---- answers --------------------------------------------------------------------------------- */

void
tnp_process_features(const TnpModel *model, const TnpStats *stats, const double *x, int64_t row,
					 float *out)
{
	const TnpProcess *p = &stats->process;

	if (row >= 0)
	{
		out[0] = p->left_out[2 * row];
		out[1] = p->left_out[2 * row + 1];
	}
	else
	{
		double		phi[TNP_PROCESS_ROWS],
					own = features_of(model, stats, p, x, phi),
					share,
					mean = answer(p, phi, &share);

		out[0] = (float) tnp_soft_clip(mean, model->config.target_clip);
		out[1] = (float) (0.5 * log(p->variance * (own + share)));
	}
	out[2] = (float) (0.5 * log(p->variance * p->noise));
	out[3] = (float) p->quality;
}
