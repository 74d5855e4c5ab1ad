/*
 * rare_test.c: targets far from all others (docs/model-format.md section 8, "Rare targets"): which
 * they are, and what becomes of a mixture.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>
#include <string.h>

#include "cpu/cpu.h"
#include "engine/features/rare.h"
#include "engine/features/stats.h"
#include "engine/network/rare_mixture.h"
#include "models.h"
#include "tap.h"

#define ROWS 200
#define COLUMNS 2
#define COMPONENTS 5

static double x[ROWS * COLUMNS],
			y[ROWS];
static TestEnv env;
static TnpModel *model;

/* Targets that are all `common` but for some far above and below. */
static void
make_rows(double common, int above, int below)
{
	unsigned	state = 3;

	for (int i = 0; i < ROWS; i++)
	{
		for (int f = 0; f < COLUMNS; f++)
			x[i * COLUMNS + f] = test_uniform(&state);
		y[i] = common;
	}
	for (int i = 0; i < above; i++)
		y[7 * i + 1] = common + 90 + i;
	for (int i = 0; i < below; i++)
		y[7 * i + 3] = common - 80 - i;
}

static TnpRare
found(void)
{
	TnpRows		rows = {.n = ROWS, .n_features = COLUMNS, .x = x, .y = y, .n_targets = 1};
	TnpStats	stats;
	TnpError	error = {0};
	TnpRare		rare;

	test_must(tnp_stats_build(model, &rows, ROWS, &stats, &error), &error);
	rare = stats.rare;
	for (int k = 0; k < rare.n; k++)
	{
		/* of either sign, where targets are turned */
		rare.mean[k] = stats.y_center + stats.y_scale * rare.mean[k];
		rare.sd[k] *= fabs(stats.y_scale);
	}
	tnp_stats_free(&env.env, &stats);
	return rare;
}

static void
test_which(const char *name)
{
	TnpRare		rare;

	make_rows(5, 2, 0);
	rare = found();
	ok(rare.n == 1 && fabs(rare.weight[0] - 2.0 / (ROWS + 1)) < 1e-15
	   && fabs(rare.mean[0] - 95.5) < 1e-9, "%s: 2 of %d are rare, around %g", name, ROWS,
	   rare.mean[0]);
	/* (0.5 + 2 (90.5 / 2)^2) / 4 */
	ok(fabs(rare.sd[0] - 32.000) < 0.01, "%s: few may lie anywhere, %g", name, rare.sd[0]);
	make_rows(5, 1, 3);
	rare = found();
	ok(rare.n == 2 && fabs(rare.weight[0] + rare.weight[1] - 4.0 / (ROWS + 1)) < 1e-15
	   && fabs(rare.mean[0] + rare.mean[1] - 95 + 76) < 1e-9, "%s: on both sides", name);
	make_rows(5, 20, 0);
	ok(found().n == 0, "%s: one of ten is not rare", name);
	make_rows(5, 0, 0);
	ok(found().n == 0, "%s: none of one value", name);
	make_rows(5, 2, 0);
	for (int i = 1; i < ROWS / 2 + 2; i++)
		y[i] += y[i] < 50 ? 1e-3 * i : 0;
	ok(found().n == 0, "%s: none where no value is that of most", name);
	make_rows(5, 9, 1);
	for (int i = 0; i < ROWS; i++)
		x[i * COLUMNS] = y[i] > 50;
	rare = found();
	ok(rare.n == 1 && rare.mean[0] < 0, "%s: none that a column tells", name);
}

static void
test_mixture(void)
{
	static const double before[3 * COMPONENTS] = {0.3, 0.05, 0.4, 0.05, 0.2, 0, 1, 2, 3, 4,
												  1, 1, 1, 1, 1};
	TnpRare		rare = {2, {0.01, 0.02}, {50, -60}, {7, 8}};
	double		params[3 * COMPONENTS],
				sum = 0;

	memcpy(params, before, sizeof(before));
	tnp_mixture_rare(&rare, COMPONENTS - 1, COMPONENTS, params);
	for (int i = 0; i < COMPONENTS; i++)
		sum += params[i];
	ok(fabs(sum - 1) < 1e-12, "weights are a whole");
	ok(fabs(params[1] - 0.01 * 0.98 / (1 - 0.05 * 0.99 / 0.95)) < 1e-12
	   && params[COMPONENTS + 1] == 50 && params[2 * COMPONENTS + 1] == 7,
	   "the first of the least stands for the first, %g", params[1]);
	ok(params[3] == 0.02 && params[COMPONENTS + 3] == -60 && params[2 * COMPONENTS + 3] == 8,
	   "the next one for the second");
	ok(fabs(params[0] / params[2] - 0.75) < 1e-12 && params[COMPONENTS] == 0
	   && params[COMPONENTS + 4] == 4, "others stay as they are among themselves");
	rare.n = 0;
	memcpy(params, before, sizeof(before));
	tnp_mixture_rare(&rare, COMPONENTS - 1, COMPONENTS, params);
	ok(memcmp(params, before, sizeof(before)) == 0,
	   "without rare ones nothing changes");
}

int
main(void)
{
	int			n,
				tried = 0;
	TestModel  *models = test_models(&n);

	test_mixture();
	for (int i = 0; i < n; i++)
	{
		const char *name = models[i].name;
		TnpError	error = {0};

		if (strcmp(name, "rows_rare") != 0)
			continue;
		test_env_init(&env, test_kernels());
		test_must(tnp_model_open(&env.env, models[i].bytes, models[i].length, &model, &error),
				  &error);
		tried++;
		test_which(name);
		tnp_model_close(model);
		ok(env.live == 0, "%s: everything is freed", name);
	}
	if (tried == 0)
		skip("the quick set has none of these models", "rare targets");
	test_models_free(models, n);
	return done_testing();
}
