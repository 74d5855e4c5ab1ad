/*
 * wanted_mean_test.c: what the mean of a mixture moves to where targets have few values
 * (docs/model-format.md section 8, "Few values"): which prefixes that is for, weights that are
 * shares, and nothing left behind where memory or time runs out.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>
#include <stdlib.h>

#include "cpu/cpu.h"
#include "engine/features/stats.h"
#include "engine/features/trees.h"
#include "engine/features/wanted_mean.h"
#include "models.h"
#include "tap.h"

#define ROWS 520				/* enough for trees */
#define FEW 256					/* the fewest */
#define COLUMNS 3

static double x[ROWS * COLUMNS],
			y[ROWS];
static TestEnv env;
static TnpModel *model;

/* Targets of steps of two columns, a line and noise, rounded down to multiples of `unit`. */
static void
make_rows(double unit)
{
	unsigned	state = 9;

	for (int i = 0; i < ROWS; i++)
	{
		double	   *row = x + (size_t) i * COLUMNS;

		for (int f = 0; f < COLUMNS; f++)
			row[f] = 4 * test_uniform(&state) - 2;
		y[i] = 2 * ((row[0] > 0) != (row[1] > 0)) + 0.5 * row[2] + test_uniform(&state);
		y[i] = unit * floor(y[i] / unit);
	}
}

static TnpStatus
build(int n, TnpStats *stats, TnpError *error)
{
	TnpRows		rows = {.n = n, .n_features = COLUMNS, .x = x, .y = y, .n_targets = 1};

	return tnp_stats_build(model, &rows, n, stats, error);
}

/* Targets of few values, with trees and without. */
static void
test_few(const char *name)
{
	static const int sizes[] = {FEW, ROWS};

	make_rows(0.5);
	for (int k = 0; k < 2; k++)
	{
		TnpStats	stats;
		TnpError	error = {0};
		TnpWantedMean *w = &stats.wanted_mean;
		float		numbers[4] = {1, 1, 1, 1};
		double		trees,
					said;

		test_must(build(sizes[k], &stats, &error), &error);
		trees = stats.trees.share;
		ok(fabs(w->share - (1 - (1 - trees) * (1 - model->config.few_values))) < 1e-12,
		   "%s, %d rows: a share of %g", name, sizes[k], w->share);
		ok(w->process > 0 && w->ridge >= 0 && w->trees >= 0
		   && w->process + w->ridge + w->trees <= 1 + 1e-12 && (w->trees > 0) == (trees > 0),
		   "%s, %d rows: weights %g of trees, %g of the process, %g of the regression", name,
		   sizes[k], w->trees, w->process, w->ridge);
		/* numbers before the process's are those of a regression */
		said = tnp_wanted_mean(&stats, x, numbers + 3);
		ok(fabs(said - (w->trees > 0 ? w->trees * tnp_trees_number(&stats, x) : 0)
				- w->process - w->ridge) < 1e-12, "%s, %d rows: their sum, %g", name, sizes[k],
		   said);
		tnp_stats_free(&env.env, &stats);
	}
}

/* Where nothing moves but what trees move. */
static void
test_others(const char *name)
{
	for (int k = 0; k < 3; k++)
	{
		int			n = k == 0 ? FEW - 1 : FEW;
		TnpStats	stats;
		TnpError	error = {0};

		make_rows(k == 1 ? 1e-3 : 0.5);
		if (k == 2)
			for (int i = 0; i < n; i++)
				y[i] = 7;
		test_must(build(n, &stats, &error), &error);
		ok(stats.wanted_mean.share == 0, "%s: none of %s", name, k == 0 ? "few rows"
		   : k == 1 ? "many values" : "one value");
		tnp_stats_free(&env.env, &stats);
	}
}

static void
test_faults(const char *name, bool memory)
{
	TnpStats	stats;
	TnpError	error = {0};
	TnpStatus	expected = memory ? TNP_NO_MEMORY : TNP_INTERRUPTED,
				status = expected;
	long		held = env.live,
				step = memory ? TEST_EVERY : TEST_STOPS * TEST_EVERY * 3,
				n;
	bool		clean = true;

	make_rows(0.5);
	for (n = 1; status == expected; n += step)
	{
		env.calls = env.polls = 0;
		env.fail_at = memory ? n : 0;
		env.stop_at = memory ? 0 : n;
		status = build(FEW, &stats, &error);
		if (status == TNP_OK)
			tnp_stats_free(&env.env, &stats);
		clean = clean && env.live == held && (status == TNP_OK || error.status == expected);
	}
	env.fail_at = env.stop_at = 0;
	ok(clean && status == TNP_OK && n > 2 * step, "%s: %s at any of %ld places", name,
	   memory ? "the lack of memory" : "an interrupt", n - step);
}

int
main(void)
{
	int			n,
				tried = 0;
	TestModel  *models = test_models(&n);

	for (int i = 0; i < n; i++)
	{
		const char *name = models[i].name;
		TnpError	error = {0};

		if (strcmp(name, "rows_few_values") != 0)
			continue;
		test_env_init(&env, test_kernels());
		test_must(tnp_model_open(&env.env, models[i].bytes, models[i].length, &model, &error),
				  &error);
		tried++;
		test_few(name);
		test_others(name);
		test_faults(name, true);
		test_faults(name, false);
		tnp_model_close(model);
		ok(env.live == 0, "%s: everything is freed", name);
	}
	if (tried == 0)
		skip("the quick set has none of these models", "few values");
	test_models_free(models, n);
	return done_testing();
}
