/*
 * smoothing_test.c: exponential smoothing: a line goes on, a season comes again, growth is smoothed
 * in logarithms, the variance is that of the errors and grows with the step, nothing after `until`
 * is read for the parameters, gaps are no values, units are of no account; states of maximal
 * likelihood find what the means of the first cycles miss, and a random walk with drift is the last
 * value and the mean change; and the search below it finds a minimum.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>
#include <stdlib.h>

#include "models.h"
#include "tap.h"
#include "engine/base/simplex.h"
#include "engine/features/smoothing.h"

#define STEPS 120
#define AHEAD 8

static double y[STEPS],
			answers[AHEAD * 2];
static TnpError error;
static TestEnv env;
static TnpSmoothForm form = TNP_SMOOTH_USUAL;

/* Numbers in [-1, 1] that hang together with nothing. */
static double
scatter(int i)
{
	return 2 * fmod((i + 1) * 0.6180339887498949, 1) - 1;
}

/* Smooth y [n] and ask about 1 … AHEAD steps after `origin`. */
static TnpStatus
ask(int n, int season, int until, int origin)
{
	int32_t		origins[AHEAD],
				steps[AHEAD];

	for (int i = 0; i < AHEAD; i++)
	{
		origins[i] = origin;
		steps[i] = i + 1;
	}
	return tnp_smooth(&env.env, &(TnpSeries) {y, n, season, until}, form, AHEAD, origins, steps,
					  answers, &error);
}

/* Largest difference of the means from what the series is made of, after n steps. */
static double
miss(int n, double (*made) (int))
{
	double		most = 0;

	for (int i = 0; i < AHEAD; i++)
		most = fmax(most, fabs(answers[2 * i] - made(n + i)));
	return most;
}

static double
line(int i)
{
	return 40 + 0.5 * i;
}

static double
season(int i)
{
	return 10 * (i % 4 == 0) - 5 * (i % 4 == 2);
}

static double
growth(int i)
{
	return 100 * exp(0.02 * i);
}

static double
rosenbrock(void *calls, const double *x)
{
	++*(int *) calls;
	return 100 * pow(x[1] - x[0] * x[0], 2) + pow(1 - x[0], 2);
}

static void
test_simplex(void)
{
	int			calls = 0;
	TnpSimplex	simplex = {.n = 2,.cost = rosenbrock,.arg = &calls};
	const double *best;

	tnp_simplex_start(&simplex, (const double[]) {-1.2, 1}, 0.5);
	for (int round = 0; round < 200; round++)
		tnp_simplex_step(&simplex);
	best = tnp_simplex_best(&simplex);
	ok(fabs(best[0] - 1) < 1e-4 && fabs(best[1] - 1) < 1e-4, "the valley's minimum: %g, %g",
	   best[0], best[1]);
	ok(calls > 200 && calls < 1000, "in few calls: %d", calls);
}

static void
test_series(void)
{
	double		first,
				scaled[AHEAD * 2];

	for (int i = 0; i < STEPS; i++)
		y[i] = line(i) + 0.3 * scatter(i);
	is_int(ask(STEPS, 1, STEPS, STEPS), TNP_OK, "a line is smoothed");
	ok(miss(STEPS, line) < 1, "it goes on: %.3f", miss(STEPS, line));
	ok(fabs(answers[1] / (0.3 / sqrt(3)) - 1) < 0.3, "the noise is found: %.3f", answers[1]);
	for (int i = 0; i < AHEAD; i++)
		scaled[i] = answers[2 * i];
	first = answers[1];
	for (int i = 0; i < STEPS; i++)
		y[i] = 7 * y[i] - 1000;
	ask(STEPS, 1, STEPS, STEPS);
	ok(fabs(answers[14] - (7 * scaled[7] - 1000)) < 0.1 && fabs(answers[1] / 7 / first - 1) < 0.05,
	   "units are of no account");

	for (int i = 0; i < STEPS; i++)
		y[i] = -500 + season(i) + 0.1 * scatter(i);
	ask(STEPS, 4, STEPS, STEPS);
	first = answers[0] - answers[4];
	ok(fabs(first - 15) < 0.5, "a season comes again: %.3f", first);
	ask(STEPS, 1, STEPS, STEPS);
	ok(fabs(answers[0] - answers[4]) < 3, "none where none is asked for");
	ask(9, 4, 9, 9);
	ok(fabs(answers[0] - answers[4]) < 3, "nor where it was there only twice");

	for (int i = 0; i < STEPS; i++)
		y[i] = (i > 0 ? y[i - 1] : 50) + scatter(i * i + 3 * i);
	ask(STEPS, 1, STEPS, STEPS);
	ok(answers[15] > 1.5 * answers[1], "a walk is wider far ahead: %.3f, %.3f", answers[1],
	   answers[15]);

	for (int i = 0; i < STEPS; i++)
		y[i] = growth(i) * (1 + 0.02 * scatter(i));
	ask(STEPS, 1, STEPS, STEPS);
	ok(miss(STEPS, growth) < 0.1 * growth(STEPS), "growth goes on: %.3f", miss(STEPS, growth));
	ok(answers[15] / answers[14] < 0.1, "in logarithms: the spread is a share, %.4f",
	   answers[15] / answers[14]);
}

/* A line that begins with an outlier, and a season whose first cycle is bare noise. */
static void
test_likely(void)
{
	double		usual;

	for (int i = 0; i < STEPS; i++)
		y[i] = line(i) + season(i) + 0.1 * scatter(i);
	form = TNP_SMOOTH_USUAL;
	ask(24, 4, 24, 24);
	usual = answers[1];
	form = TNP_SMOOTH_LIKELY;
	is_int(ask(24, 4, 24, 24), TNP_OK, "states are fitted");
	ok(answers[1] < 0.7 * usual, "and explain a short series better: %.3f, %.3f", answers[1],
	   usual);
	for (int i = 0; i < AHEAD; i++)
		usual = fmax(i == 0 ? 0 : usual, fabs(answers[2 * i] - line(24 + i) - season(24 + i)));
	ok(usual < 0.5, "line and season go on: %.3f", usual);

	for (int i = 0; i < STEPS; i++)
		y[i] = growth(i) * (1 + 0.02 * scatter(i));
	ask(STEPS, 1, STEPS, STEPS);
	ok(answers[15] / answers[1] < 3, "values are smoothed as they are, the spread hardly grows: "
	   "%.3f",
	   answers[15] / answers[1]);

	form = TNP_SMOOTH_LEVEL;
	for (int i = 0; i < STEPS; i++)
		y[i] = -500 + season(i) + 0.1 * scatter(i) + 0.5 * (i >= 60 ? 60 : i);
	ask(STEPS, 4, STEPS, STEPS);
	ok(fabs(answers[0] - answers[8]) < 1e-9, "a level without a trend stays");
	ok(fabs(answers[0] - answers[4] - 15) < 0.5, "with its season: %.3f", answers[0] - answers[4]);
	form = TNP_SMOOTH_USUAL;
}

/* Changes 1, 3, 1, 3 …: mean 2, sample variance a little over 1. */
static void
test_walk(void)
{
	double		drift,
				variance,
				changes = STEPS - 1;

	for (int i = 0; i < STEPS; i++)
		y[i] = i == 0 ? 10 : y[i - 1] + (i % 2 ? 1 : 3);
	form = TNP_SMOOTH_DRIFT;
	is_int(ask(STEPS, 4, STEPS, STEPS), TNP_OK, "a random walk with drift");
	/* 60 changes of 1 and 59 of 3 */
	drift = (60 + 59 * 3) / changes;
	variance = (60 * pow(1 - drift, 2) + 59 * pow(3 - drift, 2)) / changes;

	double		shrunk = drift * (1 - variance / (changes - 1) / (drift * drift));

	variance += pow(drift - shrunk, 2);
	ok(fabs(answers[0] - y[STEPS - 1] - shrunk) < 1e-9, "goes on by its mean change: %.6f",
	   answers[0] - y[STEPS - 1]);
	ok(fabs(answers[14] - y[STEPS - 1] - 8 * shrunk) < 1e-9, "at every step");
	ok(fabs(answers[15] - sqrt(variance * 8 * (1 + 8 / changes))) < 1e-9,
	   "its variance grows with the step, and by what the drift is not known: %.6f", answers[15]);

	for (int i = 0; i < STEPS; i++)
		y[i] = season(i) + (i % 8 < 4 ? 1 : -1);
	form = TNP_SMOOTH_CYCLES;
	ask(STEPS, 4, STEPS, STEPS);
	ok(fabs(answers[0] - y[STEPS - 4]) < 1e-9 && fabs(answers[10] - y[STEPS - 3]) < 1e-9,
	   "the last season again, where what changes is chance");
	ok(fabs(answers[1] - 2) < 1e-9 && fabs(answers[9] - 2 * sqrt(2)) < 1e-9,
	   "as wide as seasons differ: %.6f, %.6f", answers[1], answers[9]);
	y[STEPS - 4] = NAN;
	ask(STEPS, 4, STEPS, STEPS);
	ok(fabs(answers[0] - y[STEPS - 5]) < 1e-9, "a gap has the value before it");
	form = TNP_SMOOTH_USUAL;
}

/* Parameters depend on what is before `until` alone, and an answer on what is before its origin. */
static void
test_until(void)
{
	double		before[AHEAD * 2];
	bool		same = true;

	for (int i = 0; i < STEPS; i++)
		y[i] = line(i) + 2 * scatter(i) + season(i);
	ask(STEPS, 4, 60, 60);
	memcpy(before, answers, sizeof(answers));
	for (int i = 60; i < STEPS; i++)
		y[i] = 2000 + 50 * scatter(3 * i);
	ask(STEPS, 4, 60, 60);
	for (int i = 0; i < AHEAD * 2; i++)
		same = same && before[i] == answers[i];
	ok(same, "the future cannot be seen");
	ask(STEPS, 4, 60, STEPS);
	ok(answers[0] > before[0] + 100, "a later origin has later values");
}

static void
test_gaps(void)
{
	for (int i = 0; i < STEPS; i++)
		y[i] = i % 3 == 1 ? NAN : line(i) + 0.3 * scatter(i);
	is_int(ask(STEPS, 1, STEPS, STEPS), TNP_OK, "a series with gaps");
	/* without a trend a line of 0.5 a step stays behind by 4 in 8 steps */
	ok(miss(STEPS, line) < (form == TNP_SMOOTH_LEVEL ? 5 : 1), "goes on as well: %.3f",
	   miss(STEPS, line));
	for (int i = 0; i < STEPS; i++)
		y[i] = 5;
	is_int(ask(STEPS, 1, STEPS, STEPS), TNP_OK, "a constant");
	ok(isnan(answers[0]) && isnan(answers[1]), "tells no spread");
	for (int i = 0; i < STEPS; i++)
		y[i] = NAN;
	is_int(ask(STEPS, 1, STEPS, STEPS), TNP_OK, "no values");
	ok(isnan(answers[0]), "tell nothing");
	for (int i = 0; i < STEPS; i++)
		y[i] = 1e300 * scatter(i);
	is_int(ask(STEPS, 1, STEPS, STEPS), TNP_OK, "values whose squares are infinite");
	ok(isnan(answers[0]), "tell nothing");
}

static void
test_mistakes(void)
{
	long		polls;
	bool		walk = form >= TNP_SMOOTH_DRIFT;
	bool		clean = true;

	is_int(tnp_smooth(&env.env, &(TnpSeries) {y, STEPS, 1, STEPS}, TNP_SMOOTH_FORMS, 0, NULL, NULL,
					  answers, &error), TNP_BAD_ARGUMENT, "no form");
	is_int(ask(STEPS, 0, STEPS, STEPS), TNP_BAD_ARGUMENT, "no season");
	is_int(ask(STEPS, 1, 0, STEPS), TNP_BAD_ARGUMENT, "parameters by nothing");
	is_int(ask(STEPS, 1, STEPS + 1, STEPS), TNP_BAD_ARGUMENT, "parameters by what is not there");
	is_int(ask(0, 1, 0, 0), TNP_BAD_ARGUMENT, "no series");
	is_int(ask(STEPS, 1, STEPS, 0), TNP_BAD_ARGUMENT, "an origin before the series");
	is_int(ask(STEPS, 1, STEPS, STEPS + 1), TNP_BAD_ARGUMENT, "an origin after it");
	for (int i = 0; i < STEPS; i++)
		y[i] = growth(i) * (1 + 0.02 * scatter(i));
	env.polls = 0;
	ask(STEPS, 1, STEPS, STEPS);
	polls = env.polls;
	ok(polls > (walk ? 0 : 150), "it looks for interrupts: %ld", polls);
	for (env.stop_at = 1; env.stop_at <= polls; env.stop_at += 50)
	{
		env.polls = 0;
		clean = clean && ask(STEPS, 1, STEPS, STEPS) == TNP_INTERRUPTED && env.live == 0;
	}
	env.stop_at = 0;
	ok(clean && env.live == 0, "an interrupt leaves nothing behind");
	for (int k = 1; k <= (walk ? 1 : 3); k++)
	{
		env.calls = 0;
		env.fail_at = k;
		clean = clean && ask(STEPS, 1, STEPS, STEPS) == TNP_NO_MEMORY && env.live == 0;
	}
	env.fail_at = 0;
	ok(clean, "nor does memory that runs out");
}

int
main(void)
{
	test_env_init(&env, NULL);
	test_simplex();
	test_series();
	test_likely();
	test_walk();
	for (form = TNP_SMOOTH_USUAL; form < TNP_SMOOTH_FORMS; form++)
	{
		test_until();
		test_gaps();
		test_mistakes();
	}
	return done_testing();
}
