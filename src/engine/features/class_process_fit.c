/*
 * class_process_fit.c: the weights of the axes and the noise of the process of a classifier's
 * prefix (docs/model-format.md section 8, "Process of classes"): the best of a few starts, and from
 * there a fixed number of steps up the log posterior. All classes share the correlation, so that
 * one system is factorised however many there are.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/class_process_fit.h"

#include <math.h>
#include <string.h>

#include "engine/base/cholesky.h"
#include "engine/base/upper.h"
#include "engine/base/wide.h"
#include "engine/features/climb.h"
#include "engine/features/process_points.h"
#include "engine/features/spread.h"

#define ROWS 128
#define STEPS 48
#define NARROW_STEPS 24			/* at first, with the narrow prior */
#define RATE 0.8
#define NARROW 5.0				/* spread of the logs under their prior, and */
#define WIDE 20.0				/* later */
#define LOG_NOISE -3.0			/* mean of the noise's */
#define LEVELS 3				/* of the starts */
#define NOISES 2
#define LEAST -16.0				/* of every log, and */
#define LEAST_OF_FEW -13.0		/* with fewer rows than */
#define FEW_ROWS 32				/* these */
#define MOST 9.0
#define SMALLEST 1e-6			/* added to sums of squares */

static const double levels[LEVELS] = {-1, 0, 1.5};
static const double noises[NOISES] = {0.03, 0.3};

/* What the fit works on, and its memory. */
typedef struct Fit
{
	const TnpModel *model;
	const TnpStats *stats;
	int			n,
				axes,
				channels;
	double		freedom,		/* of the targets of a row: one less than classes */
				spread;			/* of all logs under their prior */
	TnpPoints	points;
	double	   *y;				/* [channels, n] */
	double	   *answer;			/* [channels, n] the inverse times these */
	double	   *weight;			/* [axes] */
	double	   *pull;			/* [n] of one row */
	double	   *pulled;			/* [axes, n] what pairs say of the weights, by their later row */
	double	   *slope;			/* [n, n] of the correlations, upper triangle */
	double	   *matrix;			/* [n, n] the system, then its factor */
	double	   *inverse;		/* [n, n] of the system, upper triangle */
	double	   *scratch;		/* [n, n] */
} Fit;

void
tnp_class_process_targets(const TnpClassProcess *process, int y, double *targets)
{
	int			first = process->n_classes - process->channels;

	for (int c = 0; c < process->channels; c++)
		targets[c] = (y == first + c) - exp(process->log_share[first + c]);
}

static void
fit_free(Fit *fit)
{
	tnp_points_free(&fit->model->env, &fit->points);
	tnp_free(&fit->model->env, fit->y);
	tnp_free(&fit->model->env, fit->slope);
}

/* Read the rows; false when memory ran out. */
static bool
fit_make(const TnpModel *model, const TnpRows *rows, const TnpStats *stats,
		 const TnpClassProcess *process, Fit *fit)
{
	const TnpEnv *env = &model->env;
	int64_t		chosen[ROWS];
	int			n = tnp_spread_rows(model, rows, stats, ROWS, chosen),
				axes = tnp_points_axes(stats);
	size_t		square = (size_t) n * n;

	*fit = (Fit) {.model = model, .stats = stats, .n = n, .axes = axes,
		.channels = process->channels, .freedom = process->n_classes - 1, .spread = WIDE};
	if (n < 0 || !tnp_points_make(model, stats, n, &fit->points))
		return false;
	fit->y = tnp_alloc_zero(env, (size_t) n * (2 * fit->channels + axes + 1) + axes,
							sizeof(double));
	fit->slope = tnp_alloc_zero(env, 4 * square, sizeof(double));
	if (fit->y == NULL || fit->slope == NULL)
		return false;
	fit->answer = fit->y + (size_t) n * fit->channels;
	fit->pulled = fit->answer + (size_t) n * fit->channels;
	fit->pull = fit->pulled + (size_t) n * axes;
	fit->weight = fit->pull + n;
	fit->matrix = fit->slope + square;
	fit->inverse = fit->matrix + square;
	fit->scratch = fit->inverse + square;
	for (int i = 0; i < n; i++)
	{
		double		targets[TNP_MAX_CLASS_ROOM];

		tnp_points_set(model, stats, rows->x + chosen[i] * rows->n_features, &fit->points, i);
		tnp_class_process_targets(process, (int) rows->y[chosen[i]], targets);
		for (int c = 0; c < fit->channels; c++)
			fit->y[(size_t) c * n + i] = targets[c];
	}
	return true;
}

/* ---- the log posterior ----------------------------------------------------------------------- */

/* Distance from the prior's mean in units of its spread. */
static double
prior_deviation(const Fit *fit, const double *theta, int k)
{
	return (theta[k] - (k < fit->axes ? -log(fit->axes) : LOG_NOISE)) / fit->spread;
}

/*
 * The factor of the system at theta, and the targets divided by it; false where rounding has made
 * it indefinite, which the least noise prevents.
 */
static bool
fit_factorise(Fit *fit, const double *theta)
{
	int			n = fit->n;

	for (int s = 0; s < fit->axes; s++)
		fit->weight[s] = exp(theta[s]);
	for (int i = 0; i < n; i++)
	{
		double	   *row = fit->matrix + (size_t) i * n;

		tnp_points_distances(fit->stats, &fit->points, i, &fit->points, i, fit->weight, row);
		tnp_points_correlations(i, n, row, fit->slope + (size_t) i * n);
		row[i] = 1 + exp(theta[fit->axes]);
	}
	if (!tnp_upper_factorise(fit->matrix, n))
		return false;
	memcpy(fit->answer, fit->y, (size_t) fit->channels * n * sizeof(double));
	for (int c = 0; c < fit->channels; c += TNP_UPPER_ROWS)
		tnp_upper_solve(fit->matrix, n, fit->channels - c < TNP_UPPER_ROWS ? fit->channels - c
						: TNP_UPPER_ROWS, fit->answer + (size_t) c * n);
	return true;
}

/* The variance of the process at its maximum: needs the targets divided by the factor. */
static double
fit_variance(const Fit *fit)
{
	double		square = 0;

	for (int c = 0; c < fit->channels; c++)
	{
		const double *answer = fit->answer + (size_t) c * fit->n;

		square += tnp_dot(fit->n, answer, answer);
	}
	return (square + SMALLEST) / (fit->n * fit->freedom);
}

/* The log posterior but for a constant. */
static double
fit_value(Fit *fit, const double *theta)
{
	double		determinant = 0,
				prior = 0;
	int			n = fit->n;

	if (!fit_factorise(fit, theta))
		return -INFINITY;
	for (int i = 0; i < n; i++)
		determinant += 2 * log(fit->matrix[(size_t) i * n + i]);
	for (int k = 0; k <= fit->axes; k++)
		prior += prior_deviation(fit, theta, k) * prior_deviation(fit, theta, k);
	return -0.5 * (fit->freedom * (n * log(fit_variance(fit)) + determinant) + prior);
}

/* pull[j] += by answer[j]; and pull[j] = 0.5 (pull[j] - freedom inverse[j]) slope[j]. */
TNP_WIDE_ANY
add_answer_any(double *restrict pull, const double *restrict answer, double by, int i, int n)
{
	for (int j = i; j < n; j++)
		pull[j] += by * answer[j];
}
TNP_WIDE(add_answer, (double *restrict pull, const double *restrict answer, double by, int i,
					  int n), (pull, answer, by, i, n))

TNP_WIDE_ANY
finish_pull_any(double *restrict pull, const double *restrict inverse,
				const double *restrict slope, double freedom, int i, int n)
{
	for (int j = i; j < n; j++)
		pull[j] = 0.5 * (pull[j] - freedom * inverse[j]) * slope[j];
}
TNP_WIDE(finish_pull, (double *restrict pull, const double *restrict inverse,
					   const double *restrict slope, double freedom, int i, int n),
		 (pull, inverse, slope, freedom, i, n))

/* What row i and those behind it say of the weights; returns what it says of the noise. */
static double
pull_row(Fit *fit, double variance, int i)
{
	const double *inverse = fit->inverse + (size_t) i * fit->n;
	double		own;
	int			n = fit->n;

	memset(fit->pull + i, 0, (n - i) * sizeof(double));
	for (int c = 0; c < fit->channels; c++)
	{
		const double *answer = fit->answer + (size_t) c * n;

		add_answer(fit->pull, answer, answer[i] / variance, i, n);
	}
	own = 0.5 * (fit->pull[i] - fit->freedom * inverse[i]);
	finish_pull(fit->pull, inverse, fit->slope + (size_t) i * n, fit->freedom, i, n);
	for (int s = 0; s < fit->axes; s++)
		tnp_points_pull(fit->stats, &fit->points, s, i, fit->pull, fit->pulled + (size_t) s * n);
	return own;
}

/* The gradient [axes + 1] of the log posterior. */
static bool
fit_gradient(Fit *fit, const double *theta, double *gradient)
{
	int			n = fit->n;
	double		variance;

	for (int k = 0; k <= fit->axes; k++)
		gradient[k] = -prior_deviation(fit, theta, k) / fit->spread;
	if (!fit_factorise(fit, theta))
		return false;
	variance = fit_variance(fit);
	for (int c = 0; c < fit->channels; c++)
		tnp_upper_solve_back(fit->matrix, n, fit->answer + (size_t) c * n);
	tnp_upper_invert(fit->matrix, n, fit->scratch, fit->inverse);
	memset(fit->pulled, 0, (size_t) fit->axes * n * sizeof(double));
	for (int i = 0; i < n; i++)
		gradient[fit->axes] += exp(theta[fit->axes]) * pull_row(fit, variance, i);
	for (int s = 0; s < fit->axes; s++)
	{
		double		sum = 0;

		for (int j = 0; j < n; j++)
			sum += fit->pulled[(size_t) s * n + j];
		gradient[s] += 2 * fit->weight[s] * sum;
	}
	return true;
}

/* ---- the steps ------------------------------------------------------------------------------- */

/* Of the starts that of the largest posterior; try [axes + 1] is scratch. */
static void
choose_start(Fit *fit, double *theta, double *try)
{
	double		best = -INFINITY;

	fit->spread = NARROW;
	for (int k = 0; k < LEVELS * NOISES; k++)
	{
		double		value;

		for (int s = 0; s < fit->axes; s++)
			try[s] = levels[k / NOISES] - log(fit->axes);
		try[fit->axes] = log(noises[k % NOISES]);
		value = fit_value(fit, try);
		if (k == 0 || value > best)
		{
			best = value;
			memcpy(theta, try, (fit->axes + 1) * sizeof(double));
		}
	}
}

/* work [3, axes + 1] */
static TnpStatus
climb(Fit *fit, double *theta, double *work, TnpError *error)
{
	int			n = fit->axes + 1;
	TnpClimb	climb = {.n = n, .steps = STEPS, .rate = RATE, .most = MOST,
		.least = fit->n < FEW_ROWS ? LEAST_OF_FEW : LEAST, .first = work + n,
		.second = work + 2 * n, .first_rest = 1, .second_rest = 1};

	memset(work, 0, 3 * n * sizeof(double));
	for (int step = 0; step < STEPS; step++)
	{
		if (tnp_interrupted(&fit->model->env))
			return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		fit->spread = step < NARROW_STEPS ? NARROW : WIDE;
		/* the least noise is far above rounding: there is always a factor */
		if (!fit_gradient(fit, theta, work))
			return TNP_OK;
		tnp_climb_step(&climb, work, theta);
	}
	return TNP_OK;
}

TnpStatus
tnp_class_process_climb(const TnpModel *model, const TnpRows *rows, const TnpStats *stats,
						const TnpClassProcess *process, double *theta, TnpError *error)
{
	Fit			fit;
	double	   *work = tnp_alloc_zero(&model->env, 3 * ((size_t) tnp_points_axes(stats) + 1),
									  sizeof(double));
	TnpStatus	status = TNP_OK;

	if (!fit_make(model, rows, stats, process, &fit) || work == NULL)
		status = tnp_no_memory(error);
	else
	{
		choose_start(&fit, theta, work);
		status = climb(&fit, theta, work, error);
	}
	tnp_free(&model->env, work);
	fit_free(&fit);
	return status;
}
