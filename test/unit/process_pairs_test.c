/*
 * process_pairs_test.c: two columns that only together say something are the first pair of all,
 * beside missing cells, too; equal columns make equal pairs, equal targets say nothing of any; the
 * process begins along the pair and knows rows that it has not seen; no memory and interrupts at
 * every place.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>
#include <stdlib.h>

#include "engine/features/process.h"
#include "engine/features/process_pairs.h"
#include "engine/features/stats.h"
#include "models.h"
#include "tap.h"

#define ROWS 100
#define QUERIES 60
#define COLUMNS 5

static TestEnv env;
static double x[(ROWS + QUERIES) * COLUMNS],
			y[ROWS + QUERIES];

/* Numbers with mean 0 and standard deviation 1, targets of one wave along each of two columns. */
static void
fill(unsigned state, double wave, int a, int b)
{
	for (int i = 0; i < (ROWS + QUERIES) * COLUMNS; i++)
	{
		x[i] = 0;
		for (int k = 0; k < 12; k++)
			x[i] += test_uniform(&state) - 0.5;
	}
	for (int i = 0; i < ROWS + QUERIES; i++)
		y[i] = sin(wave * x[i * COLUMNS + a]) * sin(wave * x[i * COLUMNS + b])
			+ 0.05 * (test_uniform(&state) - 0.5);
}

static TnpRows
some(int first, int n)
{
	return (TnpRows) {n, COLUMNS, NULL, x + first * COLUMNS, y + first, 0, 0, 1};
}

/*
 * The pairs of n rows, best first, of slots that name their columns; how many. Of other targets,
 * as they are but for their scale, they are the same.
 */
static int
find(const TnpModel *model, int n, TnpAxisPair found[TNP_PAIRS])
{
	double		other[ROWS];
	TnpAxisPair both[TNP_PAIR_TARGETS][TNP_PAIRS];
	TnpRows		rows = some(0, n);
	TnpStats	stats;
	TnpError	error;
	TnpPoints	points;
	int			pairs;

	test_must(tnp_stats_build(model, &rows, n, &stats, &error), &error);
	if (!tnp_points_make(model, &stats, n, &points))
		exit(2);
	for (int i = 0; i < n; i++)
		tnp_points_set(model, &stats, x + i * COLUMNS, &points, i);
	for (int i = 0; i < n; i++)
		other[i] = 4 * y[i];
	pairs = tnp_pairs_find(model, &stats, &points, (const double *const[]) {y, other}, both);
	if (memcmp(both[0], both[1], sizeof(both[0])) != 0)
		pairs = 0;
	memcpy(found, both[0], sizeof(both[0]));
	for (int i = 0; i < pairs; i++)
		for (int k = 0; k < 2; k++)
			found[i].axis[k] = tnp_slot_column(&stats, found[i].axis[k])->feature;
	tnp_points_free(&env.env, &points);
	tnp_stats_free(&env.env, &stats);
	return pairs;
}

static bool
is_of(const TnpAxisPair *pair, int a, int b)
{
	return (pair->axis[0] == a && pair->axis[1] == b) || (pair->axis[0] == b && pair->axis[1] == a);
}

static bool
is_first(int pairs, const TnpAxisPair *found, int a, int b)
{
	return pairs == TNP_PAIRS && is_of(found, a, b) && found[0].score > 0.1
		&& found[0].score > found[1].score;
}

static void
test_pairs(const TnpModel *model)
{
	TnpAxisPair found[TNP_PAIRS];
	int			pairs;

	for (int a = 0; a < COLUMNS; a++)
	{
		int			b = (a + 2) % COLUMNS;

		fill(11 + a, 2, a, b);
		pairs = find(model, ROWS, found);
		ok(is_first(pairs, found, a, b), "columns %d and %d", a, b);
	}
	for (int i = 0; i < ROWS; i += 7)
		x[i * COLUMNS + 2] = NAN;
	pairs = find(model, ROWS, found);
	ok(is_first(pairs, found, 4, 1), "beside missing cells");
	for (int i = 0; i < ROWS; i++)
		x[i * COLUMNS + 3] = x[i * COLUMNS + 4];
	pairs = find(model, ROWS, found);
	ok(pairs == TNP_PAIRS && found[0].score == found[1].score
	   && ((is_of(found, 1, 3) && is_of(found + 1, 1, 4))
		   || (is_of(found, 1, 4) && is_of(found + 1, 1, 3))), "equal columns make equal pairs");
	for (int i = 0; i < ROWS; i++)
		y[i] = 5;
	pairs = find(model, ROWS, found);
	ok(pairs == TNP_PAIRS && found[0].score == 0 && found[TNP_PAIRS - 1].score == 0,
	   "equal targets say nothing of any");
}

/* The root mean square error of queries, in deviations of the targets. */
static double
error_of(const TnpModel *model, int n)
{
	TnpRows		rows = some(0, n),
				all = some(0, ROWS + QUERIES);
	TnpStats	stats;
	TnpError	error;
	double		mean = 0,
				square = 0,
				off = 0;

	test_must(tnp_stats_build(model, &rows, n, &stats, &error), &error);
	for (int i = 0; i < n; i++)
		mean += y[i] / n;
	for (int i = 0; i < n; i++)
		square += (y[i] - mean) * (y[i] - mean) / n;
	for (int i = ROWS; i < ROWS + QUERIES; i++)
	{
		float		said[4];

		tnp_process_features(model, &stats, &all, i, 1, false, said, 0);
		off += pow(said[0] - (y[i] - mean) / sqrt(square), 2) / QUERIES;
	}
	tnp_stats_free(&env.env, &stats);
	return sqrt(off);
}

static void
test_process(const TnpModel *model)
{
	double		worst = 0;
	bool		ended = false;
	TnpRows		rows = some(0, 64);
	TnpEncoding *e;
	TnpError	error;

	for (int seed = 1; seed <= 8; seed++)
	{
		fill(seed, 3, 0, 3);
		worst = fmax(worst, error_of(model, ROWS));
	}
	ok(worst < 0.7, "rows that the process has not seen are known: %.3f at worst", worst);
	for (env.fail_at = 1; !ended && env.fail_at < 10000; env.fail_at += TEST_EVERY)
	{
		long		live = env.live;

		env.calls = 0;
		ended = tnp_build(model, &rows, rows.n, &e, &error) == TNP_OK;
		if (ended)
			tnp_encoding_free(e);
		if (env.live != live || (!ended && error.status != TNP_NO_MEMORY))
			break;
	}
	ok(ended, "no memory anywhere: an error, and nothing is lost");
	env.fail_at = 0;
	ended = false;
	for (env.stop_at = 1; !ended && env.stop_at < 10000; env.stop_at += TEST_STOPS)
	{
		long		live = env.live;

		env.polls = 0;
		ended = tnp_build(model, &rows, rows.n, &e, &error) == TNP_OK;
		if (ended)
			tnp_encoding_free(e);
		if (env.live != live || (!ended && error.status != TNP_INTERRUPTED))
			break;
	}
	ok(ended, "an interrupt at any poll: an error, and nothing is lost");
	env.stop_at = 0;
}

int
main(void)
{
	int			n;
	TestModel  *models = test_models(&n);
	const TestModel *file = NULL;
	TnpModel   *model;
	TnpError	error;

	test_env_init(&env, test_kernels());
	for (int i = 0; i < n; i++)
		if (strcmp(models[i].name, "rows_gated") == 0)
			file = &models[i];
	if (file != NULL)
	{
		test_must(tnp_model_open(&env.env, file->bytes, file->length, &model, &error), &error);
		test_pairs(model);
		test_process(model);
		tnp_model_close(model);
		ok(env.live == 0, "everything allocated is freed");
	}
	else if (getenv("TNP_QUICK") == NULL)
		ok(false, "there is a model with a process");
	else
		skip("the quick set has no model with a process", "process_pairs");
	test_models_free(models, n);
	return done_testing();
}
