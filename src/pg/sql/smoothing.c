/*
 * smoothing.c: exponential smoothing of a series with a damped trend and an additive season, one
 * member of the pool that posterior.forecast answers with.
 *
 * The model is ETS(A, Ad, A) of Hyndman, Koehler, Ord and Snyder, "Forecasting with Exponential
 * Smoothing" (2008), in its error-correction form; the variances of its forecasts are those of
 * table 6.2 there. Parameters minimise the squared one-step errors up to a step (Nelder and Mead,
 * 1965). A positive series is smoothed in logarithms where those have the higher likelihood.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/types/distribution_value.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/lsyscache.h"

#define PARAMETERS 4			/* of level, trend, season, damping, all on the real line */
#define ROUNDS 150				/* of the search */

typedef struct Smoother
{
	int			n;				/* steps of y */
	int			season;			/* steps of a cycle; 1: none */
	int			until;			/* parameters are chosen by errors up to this step */
	const double *y;			/* [n], NaN where there is none */
	double		alpha,
				beta,
				gamma,
				phi;
	double		first_level,
				first_trend;
	double	   *first_season;	/* [season] */
	double	   *level;			/* [n], after each step */
	double	   *trend;			/* [n] */
	/* [season + n]: of the cycle before the first step, then of each step */
	double	   *cycle;
	double		variance;		/* of one-step errors up to `until` */
	int			errors;			/* number of these */
} Smoother;

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
	s->gamma = s->season > 1 ? (1.0 - s->alpha) * squash(x[2]) : 0.0;
	s->phi = 0.8 + 0.198 * squash(x[3]);
}

/*
 * Run through the series; the mean square of the one-step errors up to `until`, of all but the
 * first cycle.
 */
static double
smoother_run(Smoother *s)
{
	double		level = s->first_level,
				trend = s->first_trend,
				sum = 0.0;
	int			burn = Min(s->season, s->until / 4);

	memcpy(s->cycle, s->first_season, s->season * sizeof(double));
	s->errors = 0;
	for (int t = 0; t < s->n; t++)
	{
		double		expected = level + s->phi * trend,
					error = isnan(s->y[t]) ? 0.0 : s->y[t] - expected - s->cycle[t];

		if (t < s->until && t >= burn && !isnan(s->y[t]))
		{
			sum += error * error;
			s->errors++;
		}
		level = s->level[t] = expected + s->alpha * error;
		trend = s->trend[t] = s->phi * trend + s->beta * error;
		s->cycle[s->season + t] = s->cycle[t] + s->gamma * error;
	}
	s->variance = s->errors > PARAMETERS + 1 ? sum / (s->errors - PARAMETERS) : NAN;
	return isfinite(sum) && s->errors > 0 ? sum / s->errors : INFINITY;
}

static double
smoother_cost(Smoother *s, const double *x)
{
	double		penalty = 0.0;

	set_parameters(s, x);
	for (int i = 0; i < PARAMETERS; i++)
		penalty += 1e-6 * x[i] * x[i];
	return smoother_run(s) * (1.0 + penalty);
}

/* The mean of cycle c of the series, NaN where it has no value. */
static double
cycle_mean(const Smoother *s, int c)
{
	double		sum = 0.0;
	int			count = 0;

	for (int t = c * s->season; t < Min((c + 1) * s->season, s->until); t++)
		if (!isnan(s->y[t]))
		{
			sum += s->y[t];
			count++;
		}
	return count > 0 ? sum / count : NAN;
}

/* Starting states: the mean of each place of the first cycles, less these cycles' own means. */
static void
set_start(Smoother *s)
{
	int			cycles = Max(1, Min(3, s->until / s->season)),
				width = Max(s->season, 4),
				count[2] = {0, 0};
	double		mean[2] = {0.0, 0.0};

	for (int p = 0; p < s->season; p++)
	{
		double		sum = 0.0;
		int			found = 0;

		for (int c = 0; c < cycles; c++)
		{
			int			t = c * s->season + p;

			if (s->season > 1 && t < s->until && !isnan(s->y[t]))
			{
				sum += s->y[t] - cycle_mean(s, c);
				found++;
			}
		}
		s->first_season[p] = found > 0 ? sum / found : 0.0;
	}
	for (int t = 0; t < Min(2 * width, s->until); t++)
		if (!isnan(s->y[t]))
		{
			mean[t / width] += s->y[t] - s->first_season[t % s->season];
			count[t / width]++;
		}
	s->first_level = count[0] > 0 ? mean[0] / count[0] : count[1] > 0 ? mean[1] / count[1] : 0.0;
	s->first_trend =
		count[0] > 0 && count[1] > 0 ? (mean[1] / count[1] - mean[0] / count[0]) / width : 0.0;
	s->first_level -= s->first_trend * width / 2;
}

/* Corners of the search and their costs. */
typedef struct Simplex
{
	double		point[PARAMETERS + 1][PARAMETERS],
				value[PARAMETERS + 1];
	int			best,
				worst,
				second;			/* the second worst */
} Simplex;

static void
simplex_rank(Simplex *x)
{
	x->best = x->worst = 0;
	x->second = -1;
	for (int i = 1; i <= PARAMETERS; i++)
	{
		x->best = x->value[i] < x->value[x->best] ? i : x->best;
		x->worst = x->value[i] >= x->value[x->worst] ? i : x->worst;
	}
	for (int i = 0; i <= PARAMETERS; i++)
		if (i != x->worst && (x->second < 0 || x->value[i] > x->value[x->second]))
			x->second = i;
}

static void
simplex_replace_worst(Simplex *x, const double *point, double value)
{
	memcpy(x->point[x->worst], point, PARAMETERS * sizeof(double));
	x->value[x->worst] = value;
}

/* One step of Nelder and Mead: reflect the worst corner, or expand, contract, shrink. */
static void
simplex_step(Simplex *x, Smoother *s)
{
	double		middle[PARAMETERS] = {0.0},
				trial[PARAMETERS],
				further[PARAMETERS],
				found;
	const double *worst = x->point[x->worst];

	for (int i = 0; i <= PARAMETERS; i++)
		for (int k = 0; k < PARAMETERS; k++)
			middle[k] += i == x->worst ? 0.0 : x->point[i][k] / PARAMETERS;
	for (int k = 0; k < PARAMETERS; k++)
	{
		trial[k] = 2.0 * middle[k] - worst[k];
		further[k] = 3.0 * middle[k] - 2.0 * worst[k];
	}
	found = smoother_cost(s, trial);
	if (found < x->value[x->best])
	{
		double		beyond = smoother_cost(s, further);

		simplex_replace_worst(x, beyond < found ? further : trial, fmin(beyond, found));
		return;
	}
	if (found < x->value[x->second])
	{
		simplex_replace_worst(x, trial, found);
		return;
	}
	for (int k = 0; k < PARAMETERS; k++)
		trial[k] = 0.5 * (middle[k] + worst[k]);
	found = smoother_cost(s, trial);
	if (found < x->value[x->worst])
	{
		simplex_replace_worst(x, trial, found);
		return;
	}
	for (int i = 0; i <= PARAMETERS; i++)
	{
		for (int k = 0; i != x->best && k < PARAMETERS; k++)
			x->point[i][k] = 0.5 * (x->point[i][k] + x->point[x->best][k]);
		x->value[i] = i == x->best ? x->value[i] : smoother_cost(s, x->point[i]);
	}
}

/* The simplex search of Nelder and Mead, from usual values of the parameters. */
static void
parameters_search(Smoother *s)
{
	static const double start[PARAMETERS] = {-0.5, -3.0, -2.0, 2.0};
	Simplex		x;

	for (int i = 0; i <= PARAMETERS; i++)
	{
		memcpy(x.point[i], start, sizeof(start));
		if (i > 0)
			x.point[i][i - 1] += 1.5;
		x.value[i] = smoother_cost(s, x.point[i]);
	}
	for (int round = 0; round < ROUNDS; round++)
	{
		CHECK_FOR_INTERRUPTS();
		simplex_rank(&x);
		simplex_step(&x, s);
	}
	simplex_rank(&x);
	smoother_cost(s, x.point[x.best]);
}

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
			double weight = s->alpha + s->beta * damped + (j % s->season == 0 ? s->gamma : 0.0);

			sum += weight * weight;
		}
	}
	*mean = s->level[origin - 1] + damped * s->trend[origin - 1]
		  + s->cycle[origin + (h - 1) % s->season];
	*variance = s->variance * sum;
}

static Smoother *
smoother_fit(const double *y, int n, int season, int until)
{
	Smoother   *s = palloc0(sizeof(*s));

	s->n = n;
	s->season = season;
	s->until = until;
	s->y = y;
	s->first_season = palloc0(season * sizeof(double));
	s->level = palloc(n * sizeof(double));
	s->trend = palloc(n * sizeof(double));
	s->cycle = palloc((season + n) * sizeof(double));
	set_start(s);
	parameters_search(s);
	return s;
}

/*
 * Whether logarithms have the higher likelihood: the Jacobian is the mean logarithm. NULL: they do
 * not exist.
 */
static double *
series_logarithms(const double *y, int n, double *jacobian)
{
	double	   *logs = palloc(n * sizeof(double)),
				sum = 0.0;
	int			count = 0;

	for (int t = 0; t < n; t++)
	{
		if (y[t] <= 0.0)
			return NULL;
		logs[t] = log(y[t]);	/* NaN stays */
		if (!isnan(y[t]))
		{
			sum += logs[t];
			count++;
		}
	}
	*jacobian = count > 0 ? sum / count : 0.0;
	return logs;
}

/*
 * A normal distribution; of logarithms that with the moments of the log-normal. NULL where there is
 * none.
 */
static Datum
smoother_answer(double mean, double variance, bool logs, bool *isnull)
{
	double		params[2] = {mean, sqrt(variance)};

	if (logs)
	{
		params[0] = exp(mean + 0.5 * variance);
		params[1] = params[0] * sqrt(expm1(variance));
	}
	*isnull = !isfinite(params[0]) || fabs(params[0]) > 1e150
		   || !(params[1] > 1e-150 && params[1] < 1e150);
	return *isnull ? (Datum) 0
				   : PointerGetDatum(posterior_make_distribution(TNP_GAUSSIAN, 1, params, NULL, 0));
}

/*
 * smooth(y float8[], season, until, origins integer[], steps integer[]) returns
 * posterior.distribution[]: for each pair the value `steps` after the first `origins` values, with
 * parameters chosen by the first `until` values. NULL where the series tells nothing.
 */
PG_FUNCTION_INFO_V1(posterior_smooth);
Datum
posterior_smooth(PG_FUNCTION_ARGS)
{
	ArrayType  *values = PG_GETARG_ARRAYTYPE_P(0),
			   *origins = PG_GETARG_ARRAYTYPE_P(3),
			   *steps = PG_GETARG_ARRAYTYPE_P(4);
	int			n = ArrayGetNItems(ARR_NDIM(values), ARR_DIMS(values)),
				pairs = ArrayGetNItems(ARR_NDIM(origins), ARR_DIMS(origins)),
				season = PG_GETARG_INT32(1),
				until = PG_GETARG_INT32(2),
				dimension[1] = {pairs},
				bound[1] = {1};
	double	   *y = (double *) ARR_DATA_PTR(values),
				jacobian = 0.0,
			   *logs;
	Smoother   *smoother,
			   *other;
	bool		in_logs = false,
			   *nulls = palloc(Max(pairs, 1) * sizeof(bool));
	Datum	   *answers = palloc(Max(pairs, 1) * sizeof(Datum));
	Oid			element = get_element_type(get_fn_expr_rettype(fcinfo->flinfo));

	if (array_contains_nulls(values) || array_contains_nulls(origins) || array_contains_nulls(steps)
		|| ArrayGetNItems(ARR_NDIM(steps), ARR_DIMS(steps)) != pairs || season < 1 || until < 1
		|| until > n)
		ereport(
			ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg(
				 "a series to smooth must have values, a season, and pairs of origins and steps")));
	/* a cycle that is not there twice is none */
	if (until < 2 * season + 2)
		season = 1;
	smoother = smoother_fit(y, n, season, until);
	logs = series_logarithms(y, n, &jacobian);
	if (logs != NULL)
	{
		other = smoother_fit(logs, n, season, until);
		if (0.5 * log(other->variance) + jacobian < 0.5 * log(smoother->variance))
		{
			smoother = other;
			in_logs = true;
		}
	}
	for (int i = 0; i < pairs; i++)
	{
		int			origin = ((int32 *) ARR_DATA_PTR(origins))[i],
					h = ((int32 *) ARR_DATA_PTR(steps))[i];
		double		mean,
					variance;

		CHECK_FOR_INTERRUPTS();
		if (origin < 1 || origin > n || h < 1)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("an origin must lie within the series, and a step after it")));
		smoother_forecast(smoother, origin, h, &mean, &variance);
		answers[i] = smoother_answer(mean, variance, in_logs, &nulls[i]);
	}
	PG_RETURN_ARRAYTYPE_P(construct_md_array(answers, nulls, 1, dimension, bound, element, -1,
											 false, TYPALIGN_DOUBLE));
}
