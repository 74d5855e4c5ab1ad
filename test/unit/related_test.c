/*
 * related_test.c: what donors lend to a row follows from the cells that it has, where these tell of
 * the missing one (docs/model-format.md section 5, "Related cells"), and from nothing else.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>
#include <string.h>

#include "cpu/cpu.h"
#include "engine/features/donors.h"
#include "engine/features/stats.h"
#include "models.h"
#include "tap.h"

#define ROWS 200
#define COLUMNS 5
#define SUM 2					/* of twice the first column less the second */
#define LABEL 3					/* of the first column's sign */
#define ALONE 4					/* nothing tells of it */

static double x[ROWS * COLUMNS],
			y[ROWS],
			variants[TNP_MOST_VARIANTS * COLUMNS],
			weight[TNP_MOST_VARIANTS];

static void
make_rows(void)
{
	unsigned	state = 11;

	for (int i = 0; i < ROWS; i++)
	{
		double	   *row = x + (size_t) i * COLUMNS;

		for (int f = 0; f < COLUMNS; f++)
			row[f] = 4 * test_uniform(&state) - 2;
		row[SUM] = 2 * row[0] - row[1] + 0.01 * row[SUM];
		row[LABEL] = row[0] > 0 ? 7 : 3;
		y[i] = row[SUM] + row[ALONE];
	}
}

/* A row that lacks one cell; how many variants. */
static int
lend(const TnpModel *model, const TnpStats *stats, double first, double second, int lacking,
	 double *row)
{
	double		own[COLUMNS] = {first, second, 2 * first - second, first > 0 ? 7 : 3, 0.5};
	int			sample;

	memcpy(row, own, sizeof(own));
	row[lacking] = NAN;
	return tnp_donors_of(model, stats, row, variants, weight, &sample);
}

static void
test_model(const TnpModel *model, const char *name)
{
	TnpColumnKind kinds[COLUMNS] = {[LABEL] = TNP_CATEGORICAL};
	TnpRows		rows = {.n = ROWS, .n_features = COLUMNS, .x = x, .y = y, .n_targets = 1,
						.kinds = kinds};
	TnpStats	stats;
	TnpError	error = {0};
	double		row[COLUMNS],
				farthest = 0,
				sum = 0,
				here[TNP_MOST_VARIANTS];
	int			n;

	test_must(tnp_stats_build(model, &rows, ROWS, &stats, &error), &error);
	n = lend(model, &stats, 1.2, -0.3, SUM, row);
	for (int k = 0; k < n; k++)
	{
		farthest = fmax(farthest, fabs(variants[k * COLUMNS + SUM] - 2.7));
		sum += weight[k];
	}
	ok(n > 1 && farthest < 0.05, "%s: a sum is foretold up to %g", name, farthest);
	ok(fabs(sum - 1) < 1e-12, "%s: weights sum to one", name);

	n = lend(model, &stats, 1.2, -0.3, LABEL, row);
	sum = 0;
	for (int k = 0; k < n; k++)
		sum += variants[k * COLUMNS + LABEL] == 7 ? weight[k] : 0;
	ok(n > 0 && sum > 0.95, "%s: a label is, with probability %g", name, sum);

	n = lend(model, &stats, 1.2, -0.3, ALONE, row);
	for (int k = 0; k < n; k++)
		here[k] = variants[k * COLUMNS + ALONE];
	ok(n == lend(model, &stats, -1.9, 1.5, ALONE, row), "%s: as many donors", name);
	sum = 0;
	for (int k = 0; k < n; k++)
		sum += fabs(variants[k * COLUMNS + ALONE] - here[k]);
	ok(n > 1 && sum == 0, "%s: donors of a cell of which nothing tells are the same", name);
	tnp_stats_free(&model->env, &stats);
}

int
main(void)
{
	int			n,
				tried = 0;
	TestModel  *models = test_models(&n);

	make_rows();
	for (int m = 0; m < n; m++)
	{
		TestEnv		env;
		TnpModel   *model;
		TnpError	error = {0};

		if (strncmp(models[m].name, "rows_donors", 11) != 0)
			continue;
		test_env_init(&env, test_kernels());
		test_must(tnp_model_open(&env.env, models[m].bytes, models[m].length, &model, &error),
				  &error);
		tried++;
		test_model(model, models[m].name);
		tnp_model_close(model);
		ok(env.live == 0, "%s: everything is freed", models[m].name);
	}
	if (tried == 0)
		skip("the quick set has none of these models", "related cells");
	test_models_free(models, n);
	return done_testing();
}
