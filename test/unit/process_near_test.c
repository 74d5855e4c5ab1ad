/*
 * process_near_test.c: what the nearest rows tell is what all distances, sorted, and elimination
 * say; rows left out do not know themselves; rows of a chain are rows like the others, and those
 * that are forgotten no longer are; a wave too fine for the process is known, a line and few rows
 * leave it in its place; equal rows; copies; no memory and interrupts at every place.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/features/column.h"
#include "engine/features/process.h"
#include "engine/features/process_chain.h"
#include "engine/features/process_near.h"
#include "engine/features/process_points.h"
#include "engine/features/stats.h"
#include "models.h"
#include "tap.h"

#define CONTEXT 500
#define CHAIN 140				/* more than a chain remembers */
#define ROWS (CONTEXT + CHAIN)

static TestEnv env;
static double x[ROWS],
			y[ROWS];

/* Forty waves in 500 rows, which come in no order; the chain lies behind them. */
static void
fill_wave(double noise)
{
	unsigned	state = 7;

	for (int i = 0; i < ROWS; i++)
	{
		x[i] = i < CONTEXT ? i * 187 % CONTEXT : i;
		y[i] = sin(x[i] * 40 * 6.283185307179586 / CONTEXT) + noise * (test_uniform(&state) - 0.5);
	}
}

/* Every time twice, so that four rows are as near as the last neighbour. */
static void
fill_ties(void)
{
	unsigned	state = 3;

	for (int i = 0; i < ROWS; i++)
	{
		x[i] = i / 2;
		y[i] = sin(x[i] * 40 * 6.283185307179586 / (CONTEXT / 2))
			+ 0.2 * (test_uniform(&state) - 0.5);
	}
}

static TnpRows
some(int first, int n)
{
	return (TnpRows) {n, 1, NULL, x + first, y + first, 0, 0, 1};
}

typedef struct Candidate
{
	float		distance;
	int			place;			/* among the points and, behind them, the chain */
	double		value,
				target;
} Candidate;

static int
compare(const void *a, const void *b)
{
	const Candidate *l = a,
			   *r = b;

	if (l->distance != r->distance)
		return l->distance > r->distance ? 1 : -1;
	return (l->place > r->place) - (l->place < r->place);
}

static double
alike(const TnpNearRows *near, double a, double b)
{
	double		d = near->weight[0] * (a - b) * (a - b);

	return near->is_rough ? exp(-sqrt(d)) : pow(1 + d / 8, -4);
}

/* Mean and log deviation of a value, by the nearest candidates and elimination. */
static void
by_elimination(const TnpNearRows *near, double value, Candidate *all, int n, double *mean,
			   double *log_deviation)
{
	enum {MOST = TNP_NEAR_ROWS};
	double		c[MOST + 1][MOST + 1],
				away[MOST + 1];
	int			k;

	for (int i = 0; i < n; i++)
		all[i].distance = (float) (near->weight[0] * (value - all[i].value)
								   * (value - all[i].value));
	qsort(all, n, sizeof(Candidate), compare);
	k = n < MOST ? n : MOST;
	for (int i = 0; i <= k; i++)
	{
		double		own = i < k ? all[i].value : value;

		for (int j = 0; j < i; j++)
			c[i][j] = c[j][i] = alike(near, own, all[j].value);
		c[i][i] = 1 + near->noise;
		away[i] = i < k ? all[i].target : 0;
	}
	for (int s = 0; s < k; s++)
		for (int i = s + 1; i <= k; i++)
		{
			double		factor = c[i][s] / c[s][s];

			away[i] -= factor * away[s];
			for (int j = s; j <= k; j++)
				c[i][j] -= factor * c[s][j];
		}
	*mean = -away[k];
	*log_deviation = 0.5 * log(near->variance * c[k][k]);
}

/* All rows of the prefix but for point `own`, and n_chain rows behind row `first`. */
static int
candidates(const TnpModel *model, const TnpStats *stats, int own, int first, int n_chain,
		   Candidate *all)
{
	const TnpNearRows *near = &stats->process.nearest;
	TnpPoints	one;
	int			n = 0;

	for (int i = 0; i < near->points.n; i++)
		if (i != own)
			all[n++] = (Candidate) {0, i, near->points.value[i], near->target[i]};
	tnp_points_make(model, stats, 1, &one);
	for (int i = 0; i < n_chain; i++)
	{
		tnp_points_set(model, stats, x + first + i, &one, 0);
		all[n++] = (Candidate) {0, near->points.n + i, one.value[0],
			tnp_clipped_target(model, stats, y[first + i])};
	}
	tnp_points_free(&env.env, &one);
	return n;
}

static double
value_of(const TnpModel *model, const TnpStats *stats, int row)
{
	TnpPoints	one;
	double		value;

	tnp_points_make(model, stats, 1, &one);
	tnp_points_set(model, stats, x + row, &one, 0);
	value = one.value[0];
	tnp_points_free(&env.env, &one);
	return value;
}

/* How far what is said of a row is from elimination's. */
static double
apart(const TnpModel *model, const TnpStats *stats, const float *said, int row, int own, int first,
	  int n_chain)
{
	static Candidate all[ROWS];
	int			n = candidates(model, stats, own, first, n_chain, all);
	double		mean,
				log_deviation;

	by_elimination(&stats->process.nearest, value_of(model, stats, row), all, n, &mean,
				   &log_deviation);
	mean = tnp_soft_clip(mean, model->config.target_clip);
	return fmax(fabs(said[0] - mean), fabs(said[1] - log_deviation));
}

/* Which point a row of the prefix is. */
static int
point_of(const TnpModel *model, const TnpStats *stats, int row)
{
	const TnpNearRows *near = &stats->process.nearest;
	double		value = value_of(model, stats, row),
				target = tnp_clipped_target(model, stats, y[row]);

	for (int i = 0; i < near->points.n; i++)
		if (near->points.value[i] == value && near->target[i] == target)
			return i;
	return -1;
}

static void
test_answers(const TnpModel *model, const char *what)
{
	TnpRows		rows = some(0, CONTEXT),
				next = some(CONTEXT, CHAIN);
	TnpStats	stats;
	TnpError	error;
	double		most = 0,
				most_own = 0;
	float		said[TNP_PROCESS_NUMBERS];

	test_must(tnp_stats_build(model, &rows, CONTEXT, &stats, &error), &error);
	ok(stats.process.nearest.points.n == CONTEXT, "%s: nearest rows tell", what);
	for (int i = 0; i < CONTEXT; i += 7)
	{
		tnp_process_features(model, &stats, &rows, i, 1, true, said, 0);
		most_own = fmax(most_own, apart(model, &stats, said, i, point_of(model, &stats, i), 0, 0));
		tnp_process_features(model, &stats, &rows, i, 1, false, said, 0);
		most = fmax(most, apart(model, &stats, said, i, -1, 0, 0));
	}
	for (int i = 0; i < CHAIN; i += 20)
	{
		tnp_process_features(model, &stats, &next, i, 1, false, said, 0);
		most = fmax(most, apart(model, &stats, said, CONTEXT + i, -1, 0, 0));
	}
	ok(most < 1e-5, "what they tell is what elimination says: %.1e", most);
	ok(most_own < 1e-5, "and of rows of the context without themselves: %.1e", most_own);
	ok(said[2] == (float) (0.5 * log(stats.process.nearest.variance * stats.process.nearest.noise)),
	   "the noise is theirs");
	tnp_stats_free(&env.env, &stats);
}

static void
test_chain(const TnpModel *model)
{
	TnpRows		rows = some(0, CONTEXT);
	TnpStats	stats;
	TnpProcessChain chain;
	TnpProcessTold told;
	TnpError	error;
	double		most = 0;
	bool		remembers = true;

	test_must(tnp_stats_build(model, &rows, CONTEXT, &stats, &error), &error);
	test_must(tnp_process_chain_make(model, &stats, &chain, &error), &error);
	for (int j = 0; j < CHAIN; j++)
	{
		int			first = (int) tnp_process_chain_first(j);
		float		said[2];

		remembers &= chain.n == j - first;
		tnp_process_chain_ask(&chain, x + CONTEXT + j);
		tnp_process_chain_say(&chain, &told, said);
		most = fmax(most, apart(model, &stats, said, CONTEXT + j, -1, CONTEXT + first, j - first));
		tnp_process_chain_take(&chain);
		tnp_process_chain_tell(&chain, y[CONTEXT + j], &told);
		if (tnp_process_chain_forget(&chain))
			tnp_process_told_forget(&chain, &told);
	}
	ok(remembers, "a chain remembers as many rows as it should");
	ok(most < 1e-5, "its rows are rows like the others: %.1e", most);
	tnp_process_chain_free(&chain);
	tnp_stats_free(&env.env, &stats);
}

/* Whether nearest rows stand in the place of the process of the first n rows. */
static bool
stand(const TnpModel *model, int n)
{
	TnpRows		rows = some(0, n);
	TnpStats	stats;
	TnpError	error;
	bool		found;

	test_must(tnp_stats_build(model, &rows, n, &stats, &error), &error);
	found = stats.process.nearest.points.n > 0;
	tnp_stats_free(&env.env, &stats);
	return found;
}

static void
test_where(const TnpModel *model)
{
	fill_wave(0.1);
	ok(!stand(model, 31), "31 rows are too few");
	for (int i = 0; i < ROWS; i++)
		y[i] = 3 * x[i];
	ok(!stand(model, CONTEXT), "a line needs none");
	for (int i = 0; i < ROWS; i++)
		y[i] = 1;
	ok(!stand(model, CONTEXT), "nor do equal targets");
}

/* A wave of 500 rows is too fine for the 256 that carry a process. */
static void
test_knows(const TnpModel *model)
{
	TnpRows		context,
				next;
	TnpStats	stats;
	TnpError	error;
	double		square = 0;

	fill_wave(0);
	for (int i = 0; i < 20; i++)
	{
		x[CONTEXT + i] = 100.5 + 11 * i;
		y[CONTEXT + i] = sin(x[CONTEXT + i] * 40 * 6.283185307179586 / CONTEXT);
	}
	context = some(0, CONTEXT);
	next = some(CONTEXT, 20);
	test_must(tnp_stats_build(model, &context, CONTEXT, &stats, &error), &error);
	for (int i = 0; i < 20; i++)
	{
		float		said[TNP_PROCESS_NUMBERS];
		double		away;

		tnp_process_features(model, &stats, &next, i, 1, false, said, 0);
		away = said[0] - tnp_clipped_target(model, &stats, y[CONTEXT + i]);
		square += away * away / 20;
	}
	ok(square < 1e-4, "a fine wave is known between its rows: %.1e", square);
	tnp_stats_free(&env.env, &stats);
}

static void
test_copy(const TnpModel *model)
{
	TnpRows		rows = some(0, CONTEXT);
	TnpStats	stats;
	TnpProcess	copy,
				own;
	TnpError	error;
	float		said[2][TNP_PROCESS_NUMBERS];

	test_must(tnp_stats_build(model, &rows, CONTEXT, &stats, &error), &error);
	ok(tnp_process_copy(&env.env, &stats.process, &copy), "it can be copied");
	ok(tnp_process_bytes(&copy) == tnp_process_bytes(&stats.process)
	   && tnp_process_bytes(&copy) > CONTEXT * 3 * sizeof(double), "with as many bytes");
	tnp_process_features(model, &stats, &rows, 3, 1, false, said[0], 0);
	own = stats.process;
	stats.process = copy;
	tnp_process_features(model, &stats, &rows, 3, 1, false, said[1], 0);
	ok(memcmp(said[0], said[1], sizeof(said[0])) == 0, "and says the same");
	tnp_process_free(&env.env, &own);
	tnp_stats_free(&env.env, &stats);
}

/* Statistics with no memory, or interrupted, anywhere. */
static void
test_failures(const TnpModel *model)
{
	TnpRows		rows = some(0, 100);
	TnpStats	stats;
	TnpError	error;
	long		live = env.live;
	bool		ended = false;

	for (env.fail_at = 1; !ended && env.fail_at < 10000; env.fail_at++)
	{
		env.calls = 0;
		ended = tnp_stats_build(model, &rows, 100, &stats, &error) == TNP_OK;
		if (ended)
			tnp_stats_free(&env.env, &stats);
		if (env.live != live || (!ended && error.status != TNP_NO_MEMORY))
			break;
	}
	ok(ended && env.fail_at > 10, "no memory: an error, and nothing is lost");
	env.fail_at = 0;
	ended = false;
	for (env.stop_at = 1; !ended && env.stop_at < 10000; env.stop_at += TEST_STOPS)
	{
		env.polls = 0;
		ended = tnp_stats_build(model, &rows, 100, &stats, &error) == TNP_OK;
		if (ended)
			tnp_stats_free(&env.env, &stats);
		if (env.live != live || (!ended && error.status != TNP_INTERRUPTED))
			break;
	}
	ok(ended && env.stop_at > 20, "it can be interrupted");
	env.stop_at = 0;
}

int
main(void)
{
	int			n;
	TestModel  *models = test_models(&n);
	bool		found = false;

	test_env_init(&env, test_kernels());
	for (int i = 0; i < n; i++)
		if (strcmp(models[i].name, "rows_nearest") == 0)
		{
			TnpModel   *model;
			TnpError	error;

			found = true;
			test_must(tnp_model_open(&env.env, models[i].bytes, models[i].length, &model, &error),
					  &error);
			fill_wave(0.1);
			test_answers(model, "a wave");
			test_chain(model);
			test_copy(model);
			test_failures(model);
			fill_ties();
			test_answers(model, "equal times");
			test_where(model);
			test_knows(model);
			tnp_model_close(model);
			ok(env.live == 0, "everything allocated is freed");
		}
	if (found || getenv("TNP_QUICK") == NULL)
		ok(found, "there is a model that asks the nearest rows");
	else
		skip("few models", "nearest rows");
	test_models_free(models, n);
	return done_testing();
}
