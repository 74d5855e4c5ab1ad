/*
 * smoothing.c: exponential smoothing with or without a damped trend, and an additive season.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/smoothing.h"

#include <math.h>
#include <string.h>

#include "engine/base/cholesky.h"
#include "engine/base/error.h"
#include "engine/base/simplex.h"
#include "engine/features/random_walk.h"

#define PARAMETERS 4			/* of level, trend, season, damping, all on the real line */
#define ROUNDS 150				/* of the search from usual states */
#define STAGES 3				/* of a search between which states are found */
#define SEASON_FITTED 64		/* a longer season begins as the means of its cycles tell */
#define STATES_MOST (SEASON_FITTED + 2)
#define POLL_PAIRS 256			/* forecasts between two looks at interrupts */
#define POLL_STEPS 4096
#define MOST 1e150				/* beyond it a moment has no square */

typedef struct Smoother
{
	TnpSeries	series;
	bool		likely,			/* first states are of maximal likelihood */
				trending;
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
	s->beta = s->trending ? s->alpha * squash(x[1]) : 0.0;
	s->gamma = s->series.season > 1 ? (1.0 - s->alpha) * squash(x[2]) : 0.0;
	s->phi = s->trending ? 0.8 + 0.198 * squash(x[3]) : 1.0;
}

/*
 * What the fit takes from the errors: the parameters, and where states are fitted half of those, as
 * what they say fades along the series.
 */
static double
fitted_numbers(const Smoother *s)
{
	int			seasonal = s->series.season > 1;

	if (!s->likely)
		return PARAMETERS;
	return 1 + 2 * s->trending + seasonal +
		0.5 * (1 + s->trending + (seasonal ? s->series.season - 1 : 0));
}

/*
 * Run through the series; the mean square of the one-step errors up to `until`, of all but the
 * first cycle where its states are usual ones.
 */
static double
smoother_run(Smoother *s)
{
	const double *y = s->series.y;
	int			season = s->series.season,
				until = s->series.until,
				burn = s->likely ? 0 : lesser(season, until / 4);
	double		level = s->first_level,
				trend = s->first_trend,
				taken = fitted_numbers(s),
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
	s->variance = s->errors > taken + 1 ? sum / (s->errors - taken) : NAN;
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
	if (s->trending)
		s->first_level -= s->first_trend * width / 2;
	else
		s->first_trend = 0.0;
}

/* ---- likelier states ------------------------------------------------------------------------- */

/* Runs of series that are 0 from first states of which one is 1, and the series' own at [count]. */
typedef struct Runs
{
	int			count;			/* level, trend, places of the season */
	double		level[STATES_MOST + 1],
				trend[STATES_MOST + 1],
				expected[STATES_MOST + 1],
				gram[STATES_MOST * STATES_MOST],
				factor[STATES_MOST * STATES_MOST],
				change[STATES_MOST],
				cycle[(STATES_MOST + 1) * SEASON_FITTED];
} Runs;

static void
runs_start(Runs *runs, const Smoother *s)
{
	int			season = s->series.season,
				others = 1 + s->trending;

	memset(runs, 0, sizeof(*runs));
	runs->count = others + (season > 1 ? season : 0);
	runs->level[0] = 1.0;
	if (s->trending)
		runs->trend[1] = 1.0;
	for (int p = 0; p < runs->count - others; p++)
	{
		runs->cycle[(others + p) * season + p] = 1.0;
		/* places of a season add up to nothing, or a level could move into them */
		for (int q = 0; q <= p; q++)
			runs->gram[(others + p) * runs->count + others + q] = 1.0;
	}
	runs->level[runs->count] = s->first_level;
	runs->trend[runs->count] = s->first_trend;
	memcpy(runs->cycle + runs->count * season, s->first_season, (size_t) season * sizeof(double));
}

/* One step of all runs: what they expect at it goes into the normal equations. */
static void
runs_step(Runs *runs, const Smoother *s, double y, int place)
{
	int			season = s->series.season;
	double		error = 0.0;

	for (int i = runs->count; i >= 0; i--)
	{
		double	   *cycle = &runs->cycle[i * season + place],
					expected = runs->level[i] + s->phi * runs->trend[i];

		runs->expected[i] = isnan(y) ? 0.0 : expected + *cycle;
		if (i == runs->count && !isnan(y))
			error = y - runs->expected[i];

		double		own = isnan(y) ? 0.0 : i == runs->count ? error : -runs->expected[i];

		runs->level[i] = expected + s->alpha * own;
		runs->trend[i] = s->phi * runs->trend[i] + s->beta * own;
		*cycle += s->gamma * own;
	}
	for (int i = 0; i < runs->count; i++)
	{
		for (int j = 0; j <= i; j++)
			runs->gram[i * runs->count + j] += runs->expected[i] * runs->expected[j];
		runs->change[i] += runs->expected[i] * error;
	}
}

/*
 * With the parameters as they are, move the first states to where the squared errors are least; a
 * season that is too long, or equations that rounding has spoilt, leave them.
 */
static TnpStatus
fit_states(const TnpEnv *env, Smoother *s, Runs *runs, TnpError *error)
{
	int			season = s->series.season,
				others = 1 + s->trending;
	bool		finite = true;

	if (season > SEASON_FITTED)
		return TNP_OK;
	runs_start(runs, s);
	for (int t = 0; t < s->series.until; t++)
	{
		if (t % POLL_STEPS == 0 && tnp_interrupted(env))
			return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		runs_step(runs, s, s->series.y[t], t % season);
	}
	for (int i = 0; i < runs->count; i++)
		runs->gram[i * runs->count + i] *= 1.0 + 1e-9;
	if (!tnp_factorise(runs->gram, runs->count, 1e-12, runs->factor))
		return TNP_OK;
	tnp_solve_lower(runs->factor, runs->count, runs->change);
	tnp_solve_upper(runs->factor, runs->count, runs->change);
	for (int i = 0; i < runs->count; i++)
		finite = finite && isfinite(runs->change[i]);
	if (!finite)
		return TNP_OK;
	s->first_level += runs->change[0];
	if (s->trending)
		s->first_trend += runs->change[1];
	for (int p = 0; p < runs->count - others; p++)
		s->first_season[p] += runs->change[others + p];
	return TNP_OK;
}

/* ---- the fit --------------------------------------------------------------------------------- */

/* Rounds of the search for the parameters, from x [PARAMETERS] and back into it. */
static TnpStatus
search(const TnpEnv *env, Smoother *s, int rounds, double step, double *x, TnpError *error)
{
	TnpSimplex	simplex = {.n = PARAMETERS,.cost = smoother_cost,.arg = s};

	tnp_simplex_start(&simplex, x, step);
	for (int round = 0; round < rounds; round++)
	{
		if (tnp_interrupted(env))
			return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		tnp_simplex_step(&simplex);
	}
	memcpy(x, tnp_simplex_best(&simplex), PARAMETERS * sizeof(double));
	smoother_cost(s, x);
	return TNP_OK;
}

/* Searches for the parameters, and the states that are likeliest with them, in turn. */
static TnpStatus
search_likely(const TnpEnv *env, Smoother *s, double *x, TnpError *error)
{
	Runs	   *runs = tnp_alloc(env, 1, sizeof(Runs));
	TnpStatus	status = runs != NULL ? TNP_OK : tnp_no_memory(error);

	for (int stage = 0; stage < STAGES && status == TNP_OK; stage++)
	{
		status = search(env, s, stage == 0 ? 70 : 50, stage == 0 ? 1.5 : 0.8, x, error);
		if (status == TNP_OK)
			status = fit_states(env, s, runs, error);
	}
	tnp_free(env, runs);
	if (status == TNP_OK)
		smoother_cost(s, x);
	return status;
}

/* Parameters and first states of a series, from usual values of them. */
static TnpStatus
smoother_fit(const TnpEnv *env, Smoother *s, const TnpSeries *series, TnpSmoothForm form,
			 TnpError *error)
{
	double		x[PARAMETERS] = {-0.5, -3.0, -2.0, 2.0};
	size_t		season = (size_t) series->season,
				n = (size_t) series->n;

	s->series = *series;
	s->likely = form != TNP_SMOOTH_USUAL;
	s->trending = form != TNP_SMOOTH_LEVEL;
	s->first_season = tnp_alloc(env, 2 * season + 3 * n, sizeof(double));
	if (s->first_season == NULL)
		return tnp_no_memory(error);
	s->level = s->first_season + season;
	s->trend = s->level + n;
	s->cycle = s->trend + n;
	set_first_season(s);
	set_first_trend(s);
	return s->likely ? search_likely(env, s, x, error) : search(env, s, ROUNDS, 1.5, x, error);
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
smooth(const TnpEnv *env, Smoothers *s, const TnpSeries *series, TnpSmoothForm form, int pairs,
	   const int32_t *origins, const int32_t *steps, double *params, TnpError *error)
{
	TnpSeries	other = *series;
	Smoother   *chosen = &s->plain;
	double		jacobian = 0.0;
	TnpStatus	status = smoother_fit(env, &s->plain, series, form, error);

	if (status != TNP_OK)
		return status;
	s->logs = tnp_alloc(env, (size_t) series->n, sizeof(double));
	if (s->logs == NULL)
		return tnp_no_memory(error);
	if (form != TNP_SMOOTH_LIKELY && series_logarithms(series, s->logs, &jacobian))
	{
		other.y = s->logs;
		status = smoother_fit(env, &s->logarithmic, &other, form, error);
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
tnp_smooth(const TnpEnv *env, const TnpSeries *series, TnpSmoothForm form, int pairs,
		   const int32_t *origins, const int32_t *steps, double *params, TnpError *error)
{
	TnpSeries	given = *series;
	Smoothers	smoothers = {0};
	TnpStatus	status;

	if ((unsigned) form >= TNP_SMOOTH_FORMS)
		return tnp_fail(error, TNP_BAD_ARGUMENT, "no form of smoothing has this number");
	if (given.season < 1 || given.until < 1 || given.until > given.n)
		return tnp_fail(error, TNP_BAD_ARGUMENT,
						"a series to smooth must have values and a season");
	for (int i = 0; i < pairs; i++)
		if (origins[i] < 1 || origins[i] > given.n || steps[i] < 1)
			return tnp_fail(error, TNP_BAD_ARGUMENT,
							"an origin must lie within the series, and a step after it");
	if ((given.until - 2) / 2 < given.season)
		given.season = 1;
	if (form == TNP_SMOOTH_DRIFT || form == TNP_SMOOTH_CYCLES)
		return tnp_random_walk(env, &given, form == TNP_SMOOTH_DRIFT ? 1 : given.season, pairs,
							   origins, steps, params, error);
	status = smooth(env, &smoothers, &given, form, pairs, origins, steps, params, error);
	tnp_free(env, smoothers.plain.first_season);
	tnp_free(env, smoothers.logarithmic.first_season);
	tnp_free(env, smoothers.logs);
	return status;
}
