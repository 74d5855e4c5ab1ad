/*
 * sums_answer.c: predictions, joint draws and joint densities, all in closed form (docs/sums.md,
 * "Answers"): under each setting and noise the targets of any rows have a normal distribution.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/sums.h"

#include <math.h>
#include <string.h>

#include "engine/base/cholesky.h"
#include "engine/base/normal.h"
#include "engine/base/random.h"
#include "engine/families/sums_factor.h"

#define STREAM_WEIGHTS 2		/* random numbers of the weights, ... */
#define STREAM_SETTING 3		/* ... and of the choice of setting and noise */
#define POLL_ROWS 16

static double
scale_of(const SumsState *s)
{
	return sums_number(sums_basis(s)[SUMS_SCALE]);
}

static double
center_of(const SumsState *s)
{
	return sums_number(sums_basis(s)[SUMS_CENTER]);
}

/* Features [width] of a row, as numbers. */
static void
features_of(const SumsState *s, const double *x, double *phi)
{
	int16_t		fixed[SUMS_MOST_FEATURES];

	sums_features(&s->config, sums_basis(s), x, fixed);
	for (int i = 0; i < s->width; i++)
		phi[i] = (double) fixed[i] / SUMS_UNIT;
}

static TnpStatus
not_finite(TnpError *error)
{
	return tnp_fail(error, TNP_BAD_VALUE, "the model's prediction is not finite for these values");
}

static TnpStatus
poll(const TnpEncoding *e, int64_t row, TnpError *error)
{
	if (row % POLL_ROWS == 0 && tnp_interrupted(&e->model->env))
		return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
	return TNP_OK;
}

TnpStatus
sums_predict(const TnpEncoding *e, const TnpRows *queries, double *params, TnpError *error)
{
	const SumsFacts *f = sums_facts(e);
	const SumsState *s = sums_now(e);
	const SumsSolution *solution = sums_solution_now(e);
	int			n = f->settings * f->points;
	TnpStatus	status = sums_check_settled(e, error);

	for (int64_t i = 0; status == TNP_OK && i < queries->n; i++, params += 3 * n)
	{
		double		phi[SUMS_MOST_FEATURES],
					white[SUMS_MOST_FEATURES];

		status = poll(e, i, error);
		features_of(s, queries->x + i * queries->n_features, phi);
		memcpy(params, solution->weight, n * sizeof(double));
		for (int k = 0; k < f->settings; k++)
		{
			double		mean = tnp_dot(f->width, phi, sums_mean(f, solution, k)),
						spread;

			memcpy(white, phi, f->width * sizeof(double));
			sums_solve_lower(sums_factor(f, solution, k), f->width, white);
			spread = sqrt(1 + tnp_dot(f->width, white, white)) * scale_of(s);
			for (int q = 0; q < f->points; q++)
			{
				params[n + k * f->points + q] = center_of(s) + scale_of(s) * mean;
				params[2 * n + k * f->points + q] = spread
					* sums_noise(f)[k * f->points + q];
			}
		}
		for (int k = n; k < 3 * n; k++)
			if (!isfinite(params[k]))
				return not_finite(error);
		if (status == TNP_OK)
			tnp_answered(&e->model->env, 1);
	}
	return status;
}

/* The setting and noise of a draw. */
static int
draw_setting(const SumsFacts *f, const SumsSolution *solution, uint64_t seed, uint64_t draw)
{
	double		u[2],
				sum = 0;
	int			n = f->settings * f->points;

	tnp_random(seed, draw, 0, STREAM_SETTING, u);
	for (int i = 0; i < n; i++)
		if ((sum += solution->weight[i]) > u[0])
			return i;
	return n - 1;
}

TnpStatus
sums_sample(const TnpEncoding *e, const TnpRows *queries, uint64_t seed, uint64_t first_draw,
			int64_t draws, double *y, TnpError *error)
{
	const SumsFacts *f = sums_facts(e);
	const SumsState *s = sums_now(e);
	const SumsSolution *solution = sums_solution_now(e);
	double	   *phi = tnp_alloc(&e->model->env, queries->n, f->width * sizeof(double));
	TnpStatus	status = phi == NULL ? tnp_no_memory(error) : sums_check_settled(e, error);

	for (int64_t i = 0; status == TNP_OK && i < queries->n; i++)
		features_of(s, queries->x + i * queries->n_features, phi + i * f->width);
	for (int64_t b = 0; status == TNP_OK && b < draws; b++)
	{
		uint64_t	draw = first_draw + (uint64_t) b;
		int			choice = draw_setting(f, solution, seed, draw),
					k = choice / f->points;
		double		weights[SUMS_MOST_FEATURES],
					u[2],
					noise = sums_noise(f)[choice];

		status = poll(e, b, error);
		for (int i = 0; i < f->width; i++)
		{
			tnp_random(seed, draw, (uint32_t) i, STREAM_WEIGHTS, u);
			weights[i] = tnp_normal_quantile(u[1]);
		}
		sums_solve_upper(sums_factor(f, solution, k), f->width, weights);
		for (int i = 0; i < f->width; i++)
			weights[i] = sums_mean(f, solution, k)[i] + noise * weights[i];
		for (int64_t i = 0; status == TNP_OK && i < queries->n; i++)
		{
			double		value;

			tnp_random(seed, draw, (uint32_t) i, TNP_STREAM_VALUES, u);
			value = tnp_dot(f->width, phi + i * f->width, weights)
				+ noise * tnp_normal_quantile(u[1]);
			y[b * queries->n + i] = center_of(s) + scale_of(s) * value;
			if (!isfinite(y[b * queries->n + i]))
				status = not_finite(error);
		}
		if (status == TNP_OK)
			tnp_answered(&e->model->env, queries->n);
	}
	tnp_free(&e->model->env, phi);
	return status;
}

/* A joint density in the making: rows whitened under each setting. */
typedef struct Score
{
	const SumsFacts *f;
	const SumsState *s;
	double	   *white,			/* [settings, n, width] L^-1 phi */
			   *factor,			/* [settings, n, n] lower factor of I + white white' */
			   *rest;			/* [settings, n] whitened residuals */
	int64_t		n;
} Score;

/* Row i under setting k: a row of the factor, and the whitened residual. */
static void
score_row(Score *c, const SumsSolution *solution, int k, int64_t i, const double *phi, double y)
{
	double	   *row = c->factor + ((size_t) k * c->n + i) * c->n,
			   *white = c->white + ((size_t) k * c->n + i) * c->f->width,
			   *rest = c->rest + (size_t) k * c->n;
	int			width = c->f->width;

	memcpy(white, phi, width * sizeof(double));
	sums_solve_lower(sums_factor(c->f, solution, k), width, white);
	for (int64_t j = 0; j < i; j++)
	{
		const double *before = c->factor + ((size_t) k * c->n + j) * c->n;

		row[j] = (tnp_dot(width, white, c->white + ((size_t) k * c->n + j) * width)
				  - tnp_dot((int) j, row, before)) / before[j];
	}
	/* not below the noise alone, whatever rounding says */
	row[i] = sqrt(fmax(1 + tnp_dot(width, white, white) - tnp_dot((int) i, row, row), 1));
	rest[i] = (y - tnp_dot(width, phi, sums_mean(c->f, solution, k)) - tnp_dot((int) i, row, rest))
		/ row[i];
}

static double
log_add(double a, double b)
{
	double		most = fmax(a, b);

	return most == -INFINITY ? most : most + log(exp(a - most) + exp(b - most));
}

/*
 * Log densities of rows place[0 … c->n - 1], each given those before it, into steps; log weights
 * [settings, points] become those after these rows.
 */
static TnpStatus
score_block(Score *c, const TnpEncoding *e, const SumsSolution *solution, const TnpRows *rows,
			const int64_t *place, double *log_weight, double *steps, TnpError *error)
{
	int			n = c->f->settings * c->f->points;
	double		before = 0;
	TnpStatus	status = TNP_OK;

	for (int64_t i = 0; status == TNP_OK && i < c->n; i++)
	{
		double		phi[SUMS_MOST_FEATURES],
					after = -INFINITY,
					y = (rows->y[place[i]] - center_of(c->s)) / scale_of(c->s);

		status = poll(e, i, error);
		features_of(c->s, rows->x + place[i] * rows->n_features, phi);
		for (int k = 0; k < c->f->settings; k++)
			score_row(c, solution, k, i, phi, y);
		for (int k = 0; k < n; k++)
		{
			int			setting = k / c->f->points;
			double		noise = sums_noise(c->f)[k],
						deviation = c->rest[(size_t) setting * c->n + i] / noise,
						root = c->factor[((size_t) setting * c->n + i) * c->n + i];

			log_weight[k] += tnp_normal_log_pdf(deviation) - log(noise * root);
			after = log_add(after, log_weight[k]);
		}
		steps[i] = after - before - log(scale_of(c->s));
		before = after;
	}
	for (int k = 0; k < n; k++)
		log_weight[k] -= before;
	return status;
}

static TnpStatus
score_alloc(const TnpEncoding *e, Score *c, TnpError *error)
{
	const TnpEnv *env = &e->model->env;
	size_t		rows = (size_t) c->f->settings * c->n;

	c->white = tnp_alloc(env, rows, c->f->width * sizeof(double));
	c->factor = tnp_alloc(env, rows, c->n * sizeof(double));
	c->rest = tnp_alloc(env, rows, sizeof(double));
	return c->white == NULL || c->factor == NULL || c->rest == NULL ? tnp_no_memory(error) : TNP_OK;
}

static void
score_free(const TnpEnv *env, Score *c)
{
	tnp_free(env, c->white);
	tnp_free(env, c->factor);
	tnp_free(env, c->rest);
}

#define SCORE_ROWS 256			/* whose covariances are in memory at a time */

/* More rows than that: those that are done become rows of the sums. */
typedef struct Progress
{
	SumsState    *sums;
	SumsSolution *solution;
} Progress;

static TnpStatus
take_rows(const TnpEncoding *e, const SumsFacts *f, const TnpRows *rows, const int64_t *place,
		  int64_t n, Progress *p, TnpError *error)
{
	const TnpEnv *env = &e->model->env;
	TnpStatus	status = TNP_OK;

	if (p->sums == NULL)
	{
		p->sums = tnp_alloc(env, 1, f->sums_bytes);
		p->solution = tnp_alloc(env, 1, f->solution_bytes);
		if (p->sums == NULL || p->solution == NULL)
			return tnp_no_memory(error);
		memcpy(p->sums, sums_now(e), f->sums_bytes);
	}
	for (int64_t i = 0; status == TNP_OK && i < n; i++)
	{
		TnpRows		one = {1, rows->n_features, rows->kinds,
			rows->x + place[i] * rows->n_features, rows->y + place[i], 0, place[i], 1};

		status = sums_add(e->model, &p->sums->common, &one, 1, error);
	}
	if (status != TNP_OK)
		return status;
	sums_flush(e->model, p->sums);
	return sums_solve(e->model, f, p->sums, p->solution, error);
}

TnpStatus
sums_score(const TnpEncoding *e, const TnpRows *rows, const int64_t *place, double *steps,
		   TnpError *error)
{
	const TnpEnv *env = &e->model->env;
	const SumsFacts *f = sums_facts(e);
	Progress	progress = {NULL, NULL};
	double		log_weight[SUMS_MOST_LENGTHS * SUMS_MOST_POINTS];
	TnpStatus	status = sums_check_settled(e, error);

	for (int k = 0; status == TNP_OK && k < f->settings * f->points; k++)
		log_weight[k] = log(sums_solution_now(e)->weight[k]);
	for (int64_t done = 0; status == TNP_OK && done < rows->n; done += SCORE_ROWS)
	{
		Score		c = {.f = f, .s = sums_now(e)};
		const SumsSolution *solution = progress.solution != NULL ? progress.solution
			: sums_solution_now(e);

		c.n = rows->n - done < SCORE_ROWS ? rows->n - done : SCORE_ROWS;
		status = score_alloc(e, &c, error);
		if (status == TNP_OK)
			status = score_block(&c, e, solution, rows, place + done, log_weight, steps + done,
								 error);
		score_free(env, &c);
		if (status == TNP_OK && done + SCORE_ROWS < rows->n)
			status = take_rows(e, f, rows, place + done, SCORE_ROWS, &progress, error);
		if (status == TNP_OK)
			tnp_answered(env, rows->n - done < SCORE_ROWS ? rows->n - done : SCORE_ROWS);
	}
	tnp_free(env, progress.sums);
	tnp_free(env, progress.solution);
	return status;
}
