/*
 * smoothing.c: exponential smoothing with a damped trend and an additive season.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/smoothing.h"

#include <math.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/base/simplex.h"

#define PARAMETERS 4			/* of level, trend, season, damping, all on the real line */
#define ROUNDS 150				/* of the search */
#define POLL_PAIRS 256			/* forecasts between two looks at interrupts */
#define MOST 1e150				/* beyond it a moment has no square */

typedef struct Smoother
{
	TnpSeries	series;
	double		alpha,
				beta,
				gamma,
				phi;
	double		first_level,
				first_trend;
	double	   *first_season;	/* [season]; begins the one piece of memory */
	double	   *level;			/* [n], after each step */
	double	   *trend;			/* [n] */
	/* [season + n]: of the cycle before the first step, then of each step */
	double	   *cycle;
	double		variance;		/* of one-step errors up to `until` */
	int			errors;			/* number of these */
} Smoother;

static int
lesser(int a, int b)
{
	return a < b ? a : b;
}

/* ---- a run through the series ---------------------------------------------------------------- */

static double
squash(double x)
{
	return 1.0 / (1.0 + exp(-x));
}

static void
set_parameters(Smoother *s, const double *x)
{
	s->alpha = 0.001 + 0.998 * squash(x[0]);
	s->beta = s->alpha * squash(x[1]);
	s->gamma = s->series.season > 1 ? (1.0 - s->alpha) * squash(x[2]) : 0.0;
	s->phi = 0.8 + 0.198 * squash(x[3]);
}

/*
 * Run through the series; the mean square of the one-step errors up to `until`, of all but the
 * first cycle.
 */
static double
smoother_run(Smoother *s)
{
	const double *y = s->series.y;
	int			season = s->series.season,
				until = s->series.until,
				burn = lesser(season, until / 4);
	double		level = s->first_level,
				trend = s->first_trend,
				sum = 0.0;

	memcpy(s->cycle, s->first_season, (size_t) season * sizeof(double));
	s->errors = 0;
	for (int t = 0; t < s->series.n; t++)
	{
		double		expected = level + s->phi * trend,
					error = isnan(y[t]) ? 0.0 : y[t] - expected - s->cycle[t];

		if (t < until && t >= burn && !isnan(y[t]))
		{
			sum += error * error;
			s->errors++;
		}
		level = s->level[t] = expected + s->alpha * error;
		trend = s->trend[t] = s->phi * trend + s->beta * error;
		s->cycle[season + t] = s->cycle[t] + s->gamma * error;
	}
	s->variance = s->errors > PARAMETERS + 1 ? sum / (s->errors - PARAMETERS) : NAN;
	return isfinite(sum) && s->errors > 0 ? sum / s->errors : INFINITY;
}

static double
smoother_cost(void *smoother, const double *x)
{
	Smoother   *s = smoother;
	double		penalty = 0.0;

	set_parameters(s, x);
	for (int i = 0; i < PARAMETERS; i++)
		penalty += 1e-6 * x[i] * x[i];
	return smoother_run(s) * (1.0 + penalty);
}

/* ---- where it starts ------------------------------------------------------------------------- */

/* The mean of cycle c of the series, NaN where it has no value. */
static double
cycle_mean(const TnpSeries *series, int c)
{
	double		sum = 0.0;
	int			count = 0;

	for (int t = c * series->season; t < lesser((c + 1) * series->season, series->until); t++)
		if (!isnan(series->y[t]))
		{
			sum += series->y[t];
			count++;
		}
	return count > 0 ? sum / count : NAN;
}

/* The mean of each place of the first cycles, less these cycles' own means. */
static void
set_first_season(Smoother *s)
{
	const TnpSeries *series = &s->series;
	int			cycles = lesser(3, series->until / series->season);

	cycles = cycles > 1 ? cycles : 1;
	for (int p = 0; p < series->season; p++)
	{
		double		sum = 0.0;
		int			found = 0;

		for (int c = 0; c < cycles; c++)
		{
			int			t = c * series->season + p;

			if (series->season > 1 && t < series->until && !isnan(series->y[t]))
			{
				sum += series->y[t] - cycle_mean(series, c);
				found++;
			}
		}
		s->first_season[p] = found > 0 ? sum / found : 0.0;
	}
}

/* Level and trend by the means of two stretches, of a cycle or 4 steps each. */
static void
set_first_trend(Smoother *s)
{
	const TnpSeries *series = &s->series;
	int			width = series->season > 4 ? series->season : 4,
				count[2] = {0, 0};
	double		mean[2] = {0.0, 0.0};

	for (int t = 0; t < lesser(2 * width, series->until); t++)
		if (!isnan(series->y[t]))
		{
			mean[t / width] += series->y[t] - s->first_season[t % series->season];
			count[t / width]++;
		}
	s->first_level = count[0] > 0 ? mean[0] / count[0] : count[1] > 0 ? mean[1] / count[1] : 0.0;
	s->first_trend =
		count[0] > 0 && count[1] > 0 ? (mean[1] / count[1] - mean[0] / count[0]) / width : 0.0;
	s->first_level -= s->first_trend * width / 2;
}

/* ---- the fit --------------------------------------------------------------------------------- */

/* The simplex search for the parameters, from usual values of them. */
static TnpStatus
smoother_fit(const TnpEnv *env, Smoother *s, const TnpSeries *series, TnpError *error)
{
	static const double start[PARAMETERS] = {-0.5, -3.0, -2.0, 2.0};
	size_t		season = (size_t) series->season,
				n = (size_t) series->n;
	TnpSimplex	simplex = {.n = PARAMETERS,.cost = smoother_cost,.arg = s};

	s->series = *series;
	s->first_season = tnp_alloc(env, 2 * season + 3 * n, sizeof(double));
	if (s->first_season == NULL)
		return tnp_no_memory(error);
	s->level = s->first_season + season;
	s->trend = s->level + n;
	s->cycle = s->trend + n;
	set_first_season(s);
	set_first_trend(s);
	tnp_simplex_start(&simplex, start, 1.5);
	for (int round = 0; round < ROUNDS; round++)
	{
		if (tnp_interrupted(env))
			return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		tnp_simplex_step(&simplex);
	}
	smoother_cost(s, tnp_simplex_best(&simplex));
	return TNP_OK;
}

/*
 * Logarithms of a series [n], and their mean, which is the Jacobian of its likelihood; false where
 * they do not exist. NaN stays.
 */
static bool
series_logarithms(const TnpSeries *series, double *logs, double *jacobian)
{
	double		sum = 0.0;
	int			count = 0;

	for (int t = 0; t < series->n; t++)
	{
		if (series->y[t] <= 0.0)
			return false;
		logs[t] = log(series->y[t]);
		if (!isnan(series->y[t]))
		{
			sum += logs[t];
			count++;
		}
	}
	*jacobian = count > 0 ? sum / count : 0.0;
	return true;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Mean and variance of the value `h` steps after the first `origin` steps. */
static void
smoother_forecast(const Smoother *s, int origin, int h, double *mean, double *variance)
{
	double		damped = 0.0,
				power = 1.0,
				sum = 1.0;

	for (int j = 1; j <= h; j++)
	{
		power *= s->phi;
		damped += power;
		if (j < h)
		{
			double		weight = s->alpha + s->beta * damped
				+ (j % s->series.season == 0 ? s->gamma : 0.0);

			sum += weight * weight;
		}
	}
	*mean = s->level[origin - 1] + damped * s->trend[origin - 1]
		+ s->cycle[origin + (h - 1) % s->series.season];
	*variance = s->variance * sum;
}

/* A forecast as mean and standard deviation; of logarithms those of the log-normal. */
static void
smoother_answer(double mean, double variance, bool logs, double *params)
{
	params[0] = logs ? exp(mean + 0.5 * variance) : mean;
	params[1] = logs ? params[0] * sqrt(expm1(variance)) : sqrt(variance);
	if (!(fabs(params[0]) <= MOST && params[1] > 1.0 / MOST && params[1] < MOST))
		params[0] = params[1] = NAN;
}

/* A smoother of the series, one of its logarithms, and these. */
typedef struct Smoothers
{
	Smoother	plain,
				logarithmic;
	double	   *logs;			/* [n] */
} Smoothers;

static TnpStatus
smooth(const TnpEnv *env, Smoothers *s, const TnpSeries *series, int pairs, const int32_t *origins,
	   const int32_t *steps, double *params, TnpError *error)
{
	TnpSeries	other = *series;
	Smoother   *chosen = &s->plain;
	double		jacobian = 0.0;
	TnpStatus	status = smoother_fit(env, &s->plain, series, error);

	if (status != TNP_OK)
		return status;
	s->logs = tnp_alloc(env, (size_t) series->n, sizeof(double));
	if (s->logs == NULL)
		return tnp_no_memory(error);
	if (series_logarithms(series, s->logs, &jacobian))
	{
		other.y = s->logs;
		status = smoother_fit(env, &s->logarithmic, &other, error);
		if (status != TNP_OK)
			return status;
		if (0.5 * log(s->logarithmic.variance) + jacobian < 0.5 * log(s->plain.variance))
			chosen = &s->logarithmic;
	}
	for (int i = 0; i < pairs; i++)
	{
		double		mean,
					variance;

		if (i % POLL_PAIRS == 0 && tnp_interrupted(env))
			return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		smoother_forecast(chosen, origins[i], steps[i], &mean, &variance);
		smoother_answer(mean, variance, chosen != &s->plain, params + 2 * i);
	}
	return TNP_OK;
}

TnpStatus
tnp_smooth(const TnpEnv *env, const TnpSeries *series, int pairs, const int32_t *origins,
		   const int32_t *steps, double *params, TnpError *error)
{
	TnpSeries	given = *series;
	Smoothers	smoothers = {0};
	TnpStatus	status;

	if (given.season < 1 || given.until < 1 || given.until > given.n)
		return tnp_fail(error, TNP_BAD_ARGUMENT,
						"a series to smooth must have values and a season");
	for (int i = 0; i < pairs; i++)
		if (origins[i] < 1 || origins[i] > given.n || steps[i] < 1)
			return tnp_fail(error, TNP_BAD_ARGUMENT,
							"an origin must lie within the series, and a step after it");
	if ((given.until - 2) / 2 < given.season)
		given.season = 1;
	status = smooth(env, &smoothers, &given, pairs, origins, steps, params, error);
	tnp_free(env, smoothers.plain.first_season);
	tnp_free(env, smoothers.logarithmic.first_season);
	tnp_free(env, smoothers.logs);
	return status;
}
