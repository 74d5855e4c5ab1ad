/*
 * process_chain_test.c: what the process says along a chain is a Gaussian's conditional, computed
 * here by elimination from all pairs of the rows that are remembered; before the first row it is
 * what a prediction has, bitwise; rows asked about at once have the bits of each alone; a walk that
 * goes on behind its context is followed; no memory and interrupts at every place.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>
#include <stdlib.h>

#include "engine/features/column.h"
#include "engine/features/process.h"
#include "engine/features/process_chain.h"
#include "engine/features/process_points.h"
#include "engine/features/stats.h"
#include "models.h"
#include "tap.h"

#define CONTEXT 100
#define CHAIN 150				/* more than a chain remembers */
#define ROWS (CONTEXT + CHAIN)
#define COLUMNS 2
#define CARRIERS 256			/* at most */

static TestEnv env;
static double x[ROWS * COLUMNS],
			y[ROWS];

/* Time, and a number that means nothing; a slow walk and a little noise. */
static void
fill(void)
{
	unsigned	state = 5;
	double		level = 0;

	for (int i = 0; i < ROWS; i++)
	{
		x[i * COLUMNS] = i;
		x[i * COLUMNS + 1] = test_uniform(&state);
		level = 0.97 * level + test_uniform(&state) - 0.5;
		y[i] = level + 0.05 * (test_uniform(&state) - 0.5);
	}
}

static TnpRows
some(int first, int n)
{
	return (TnpRows) {n, COLUMNS, NULL, x + first * COLUMNS, y + first, 0, 0, 1};
}

/* The covariance of rows i and j in units of the process's variance, i and j not the same. */
static double
covariance(const TnpModel *model, const TnpStats *stats, int i, int j)
{
	double		reached[2][CARRIERS],
				unknown[2][CARRIERS],
				mean,
				alike;
	TnpPoints	points;

	tnp_points_make(model, stats, 2, &points);
	tnp_points_set(model, stats, x + i * COLUMNS, &points, 0);
	tnp_points_set(model, stats, x + j * COLUMNS, &points, 1);
	{
		double		both[2];

		tnp_process_correlate(stats, &points, 0, &points, 0, both);
		alike = both[1];
	}
	tnp_points_free(&env.env, &points);
	tnp_process_reach(model, stats, x + i * COLUMNS, reached[0], unknown[0], &mean);
	tnp_process_reach(model, stats, x + j * COLUMNS, reached[1], unknown[1], &mean);
	for (int k = 0; k < stats->process.n_features; k++)
		alike += unknown[0][k] * unknown[1][k] - reached[0][k] * reached[1][k];
	return alike;
}

/* Mean and variance of row `asked`, given rows first … asked - 1, by elimination. */
static void
conditional(const TnpModel *model, const TnpStats *stats, int first, int asked, double *mean,
			double *variance)
{
	enum {MOST = TNP_CHAIN_ROWS};
	static double c[MOST][MOST];
	int			n = asked - first + 1;
	double		away[MOST],
				alone[MOST],
				reached[CARRIERS],
				unknown[CARRIERS];

	for (int i = 0; i < n; i++)
	{
		c[i][i] = tnp_process_reach(model, stats, x + (first + i) * COLUMNS, reached, unknown,
									&alone[i]);
		away[i] = tnp_clipped_target(model, stats, y[first + i]) - alone[i];
		for (int j = 0; j < i; j++)
			c[i][j] = c[j][i] = covariance(model, stats, first + i, first + j);
	}
	away[n - 1] = 0;
	/* what the rows before say of the last one is taken from it, one after the other */
	for (int k = 0; k < n - 1; k++)
		for (int i = k + 1; i < n; i++)
		{
			double		factor = c[i][k] / c[k][k];

			away[i] -= factor * away[k];
			for (int j = k; j < n; j++)
				c[i][j] -= factor * c[k][j];
		}
	*mean = alone[n - 1] - away[n - 1];
	*variance = stats->process.variance * c[n - 1][n - 1];
}

static void
test_conditionals(const TnpModel *model)
{
	static const int steps[] = {1, 2, 30, 127, 128, 149};
	TnpRows		rows = some(0, CONTEXT);
	TnpStats	stats;
	TnpProcessChain chain;
	TnpProcessTold told;
	TnpError	error;
	float		said[2],
				alone[TNP_PROCESS_NUMBERS];
	size_t		next = 0;

	test_must(tnp_stats_build(model, &rows, CONTEXT, &stats, &error), &error);
	test_must(tnp_process_chain_make(model, &stats, &chain, &error), &error);
	tnp_process_chain_ask(&chain, x + CONTEXT * COLUMNS);
	tnp_process_chain_say(&chain, &told, said);
	rows = some(CONTEXT, 1);
	tnp_process_features(model, &stats, &rows, 0, 1, false, alone, 0);
	ok(memcmp(said, alone, sizeof(said)) == 0, "before the first row it is as alone, bitwise");
	for (int j = 0; j < CHAIN; j++)
	{
		int			first = (int) tnp_process_chain_first(j);

		if (j - first != chain.n)
			ok(false, "row %d remembers %d rows instead of %d", j, chain.n, j - first);
		tnp_process_chain_ask(&chain, x + (CONTEXT + j) * COLUMNS);
		tnp_process_chain_say(&chain, &told, said);
		if (next < sizeof(steps) / sizeof(int) && j == steps[next])
		{
			double		mean,
						variance;

			conditional(model, &stats, CONTEXT + first, CONTEXT + j, &mean, &variance);
			mean = tnp_soft_clip(mean, model->config.target_clip);
			ok(fabs(said[0] - mean) < 1e-5 && fabs(said[1] - 0.5 * log(variance)) < 1e-5,
			   "row %d: %.6f ± %.6f, %.6f ± %.6f", j, said[0], exp(said[1]), mean, sqrt(variance));
			next++;
		}
		tnp_process_chain_take(&chain);
		tnp_process_chain_tell(&chain, y[CONTEXT + j], &told);
		if (tnp_process_chain_forget(&chain))
			tnp_process_told_forget(&chain, &told);
	}
	tnp_process_chain_free(&chain);
	tnp_stats_free(&env.env, &stats);
}

/* Whether n rows from `first` on, asked about at once, have the bits of each alone. */
static bool
each_alone(const TnpModel *model, const TnpStats *stats, int first, int n)
{
	enum {STEP = TNP_PROCESS_NUMBERS + 3};
	TnpRows		rows = some(0, ROWS);
	float		together[ROWS * STEP],
				alone[TNP_PROCESS_NUMBERS];
	bool		same = true;

	tnp_process_features(model, stats, &rows, first, n, true, together, STEP);
	for (int r = 0; r < n; r++)
	{
		tnp_process_features(model, stats, &rows, first + r, 1, true, alone, 0);
		same &= memcmp(alone, together + r * STEP, sizeof(alone)) == 0;
	}
	return same;
}

static void
test_together(const TnpModel *model)
{
	TnpRows		rows = some(0, CONTEXT);
	TnpStats	stats;
	TnpError	error;
	bool		same = true;

	test_must(tnp_stats_build(model, &rows, CONTEXT, &stats, &error), &error);
	for (int n = 1; n <= 40; n++)
		same &= each_alone(model, &stats, CONTEXT, n);
	ok(same, "1 to 40 rows at once are each as alone, bitwise");
	ok(each_alone(model, &stats, CONTEXT - 21, 21), "rows of the context, too");
	ok(each_alone(model, &stats, CONTEXT - 21, 40), "and rows some of which are of the context");
	tnp_stats_free(&env.env, &stats);
}

/* A model's density of a walk: what the rows of a chain tell, and what they tell once appended. */
static void
test_learns(const TnpModel *model)
{
	TnpRows		context = some(0, CONTEXT),
				next = some(CONTEXT, 24);
	TnpEncoding *e;
	TnpError	error;
	double		chained,
				appended;

	test_must(tnp_build(model, &context, CONTEXT, &e, &error), &error);
	test_must(tnp_score(e, &next, 0, 0, &chained, NULL, &error), &error);
	test_must(tnp_score(e, &next, TNP_AS_APPENDED, 0, &appended, NULL, &error), &error);
	/* a tenth of a nat for each row, of a model that has learnt nothing */
	ok(chained > appended + 2.4, "a walk goes on where it is: %.2f, %.2f", chained, appended);
	tnp_encoding_free(e);
}

/* Draws and densities with no memory, or interrupted, anywhere. */
static void
test_failures(const TnpModel *model)
{
	TnpRows		context = some(0, CONTEXT),
				next = some(CONTEXT, CHAIN);
	TnpEncoding *e;
	TnpError	error;
	double		drawn[2 * CHAIN],
				density;
	long		live;

	test_must(tnp_build(model, &context, CONTEXT, &e, &error), &error);
	live = env.live;
	for (int draws = 0; draws < 2; draws++)
	{
		bool		ended = false;

		for (env.fail_at = 1; !ended && env.fail_at < 10000; env.fail_at++)
		{
			env.calls = 0;
			ended = (draws ? tnp_sample(e, &next, 1, 0, 2, drawn, &error)
					 : tnp_score(e, &next, 0, 0, &density, NULL, &error)) == TNP_OK;
			if (env.live != live || (!ended && error.status != TNP_NO_MEMORY))
				break;
		}
		ok(ended && env.fail_at > 10, "no memory for %s: an error, and nothing is lost",
		   draws ? "draws" : "a density");
		env.fail_at = 0;
		ended = false;
		for (env.stop_at = 1; !ended && env.stop_at < 10000; env.stop_at += TEST_STOPS)
		{
			env.polls = 0;
			ended = (draws ? tnp_sample(e, &next, 1, 0, 2, drawn, &error)
					 : tnp_score(e, &next, 0, 0, &density, NULL, &error)) == TNP_OK;
			if (env.live != live || (!ended && error.status != TNP_INTERRUPTED))
				break;
		}
		ok(ended && env.stop_at > 2, "%s can be interrupted", draws ? "draws" : "a density");
		env.stop_at = 0;
	}
	tnp_encoding_free(e);
}

int
main(void)
{
	int			n;
	TestModel  *models = test_models(&n);
	bool		found = false;

	test_env_init(&env, test_kernels());
	fill();
	for (int i = 0; i < n; i++)
		if (strcmp(models[i].name, "rows_chained") == 0)
		{
			TnpModel   *model;
			TnpError	error;

			found = true;
			test_must(tnp_model_open(&env.env, models[i].bytes, models[i].length, &model, &error),
					  &error);
			test_conditionals(model);
			test_together(model);
			test_learns(model);
			test_failures(model);
			tnp_model_close(model);
			ok(env.live == 0, "everything allocated is freed");
		}
	if (found || getenv("TNP_QUICK") == NULL)
		ok(found, "there is a model whose process learns in chains");
	else
		skip("few models", "chains that a process learns from");
	test_models_free(models, n);
	return done_testing();
}
