/*
 * drift_test.c: how far later rows have drifted: what has not, what has and by how much, columns
 * that say nothing, and shares of rows.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models.h"
#include "tap.h"
#include "engine/features/drift.h"
#include "engine/tnp.h"

#define ROWS 400
#define FIRST 200
#define COLUMNS 2

static double x[ROWS * COLUMNS],
			y[ROWS];
static TnpColumnKind kinds[COLUMNS] = {TNP_NUMERIC, TNP_NUMERIC};
static TnpRows rows = {ROWS, COLUMNS, kinds, x, y, 0, 0, 1};

/*
 * An even spread over [-1, 1] of the rows before `first`, and of those after it, whose standard
 * deviation is nearly 1/sqrt(3).
 */
static double
spread(int i)
{
	return ((i % FIRST) + 0.5) / FIRST * 2 - 1;
}

static void
fill(void)
{
	for (int i = 0; i < ROWS; i++)
	{
		y[i] = spread(i);
		for (int f = 0; f < COLUMNS; f++)
			x[i * COLUMNS + f] = spread(i + 7 * f);
	}
}

/* Later cells of column f, or later targets for f = -1, become factor * cell + shift. */
static double
drift_after(int f, double factor, double shift)
{
	fill();
	for (int i = FIRST; i < ROWS; i++)
	{
		double	   *cell = f < 0 ? &y[i] : &x[i * COLUMNS + f];

		*cell = factor * *cell + shift;
	}
	return tnp_drift(NULL, &rows, FIRST);
}

static bool
near(double a, double b)
{
	return fabs(a - b) < 1e-3;
}

/*
 * Cells and targets that are far among the rows before, and later ones like these, count as they do
 * for a model that knows them; for others they are all that counts.
 */
static void
test_far(const TestModel *file)
{
	TestEnv		env;
	TnpModel   *model;
	TnpError	error = {0};
	double		plain;

	test_env_init(&env, test_kernels());
	test_must(tnp_model_open(&env.env, file->bytes, file->length, &model, &error), &error);
	fill();
	for (int i = FIRST; i < ROWS; i++)
		y[i] += 2;
	plain = tnp_drift(model, &rows, FIRST);
	ok(plain > 1 && plain == tnp_drift(NULL, &rows, FIRST), "%s: drift without them", file->name);
	y[3] = 1e9;
	x[4 * COLUMNS] = x[(FIRST + 1) * COLUMNS] = -1e12;
	ok(fabs(tnp_drift(model, &rows, FIRST) - plain) < 0.1, "%s: and as much with them",
	   file->name);
	ok(tnp_drift(NULL, &rows, FIRST) > 10, "%s: which are all that counts otherwise", file->name);
	for (int i = FIRST; i < ROWS; i++)
		y[i] -= 2;
	x[(FIRST + 1) * COLUMNS] = 0;
	ok(tnp_drift(model, &rows, FIRST) == 0 && tnp_drift(NULL, &rows, FIRST) > 1,
	   "%s: rows without them are no drift", file->name);
	env.fail_at = env.calls + 1;
	ok(isnan(tnp_drift(model, &rows, FIRST)), "%s: unknown without memory", file->name);
	tnp_model_close(model);
	ok(env.live == 0, "%s: everything is freed", file->name);
}

int
main(void)
{
	int			n,
				tried = 0;
	TestModel  *models = test_models(&n);
	double		sd = sqrt((1 - 1.0 / (FIRST * FIRST)) / 3),
				mean_chance = 3 * sqrt(2.0 / FIRST),
				sd_chance = 3 * sqrt(1.0 / FIRST);

	ok(drift_after(0, 1, 0) == 0, "the same numbers again are no drift");
	ok(drift_after(0, 1, 0.2 * sd) == 0, "nor is a shift that may be chance");
	ok(near(drift_after(0, 1, 2 * sd), 2 - mean_chance),
	   "a shift counts in standard deviations, less what chance does");
	ok(near(drift_after(1, 1, -3 * sd), 3 - mean_chance), "downwards, too, and in any column");
	ok(near(drift_after(0, 4, 0), log(4) - sd_chance), "a wider spread by its logarithm");
	ok(near(drift_after(1, 0.1, 0), log(10) - sd_chance), "and a narrower one");
	ok(near(drift_after(-1, 1, 1.5 * sd), 1.5 - mean_chance), "the target counts");
	rows.n_classes = 3;
	ok(drift_after(-1, 1, 1.5 * sd) == 0, "unless it is a class");
	rows.n_classes = 0;
	kinds[1] = TNP_CATEGORICAL;
	ok(drift_after(1, 1, 2 * sd) == 0, "categories have no mean");
	kinds[1] = TNP_NUMERIC;
	ok(isinf(drift_after(0, 0, 0.5)),
	   "numbers that are constant from then on have drifted as far as can be");
	fill();
	for (int i = 0; i < FIRST; i++)
		x[i * COLUMNS] = 5;
	ok(isinf(tnp_drift(NULL, &rows, FIRST)), "and those that were until then");
	for (int i = 0; i < ROWS; i++)
		x[i * COLUMNS] = 5;
	ok(tnp_drift(NULL, &rows, FIRST) == 0, "but not those that always are");
	fill();
	for (int i = FIRST; i < ROWS; i++)
		x[i * COLUMNS] = i < ROWS - TNP_DRIFT_ROWS + 1 ? NAN : 9;
	ok(tnp_drift(NULL, &rows, FIRST) == 0, "too few numbers say nothing");
	x[FIRST * COLUMNS] = 9;
	ok(isinf(tnp_drift(NULL, &rows, FIRST)), "one more, and they do");
	rows.kinds = NULL;
	ok(near(drift_after(0, 1, 2 * sd), 2 - mean_chance), "without kinds all columns are numeric");
	ok(tnp_drift(NULL, &rows, 0) == 0 && tnp_drift(NULL, &rows, ROWS) == 0,
	   "no rows before, or after, are no drift");
	rows.n_features = 0;
	ok(near(drift_after(-1, 1, 2 * sd), 2 - mean_chance), "nor are columns needed");
	ok(tnp_share_drift(50, 100, 500, 1000) == 0, "a share that stays");
	ok(near(tnp_share_drift(0, 100, 100, 100), 1 - 3 * sqrt(0.25 / 50)),
	   "one that becomes all, less what chance does");
	ok(near(tnp_share_drift(300, 400, 0, 400), 0.75 - 3 * sqrt(0.375 * 0.625 / 200)),
	   "and one that goes");
	ok(tnp_share_drift(0, TNP_DRIFT_ROWS - 1, 400, 400) == 0, "of too few rows it says nothing");
	rows.n_features = COLUMNS;
	for (int i = 0; i < n; i++)
		if (strcmp(models[i].name, "rows_far_targets") == 0)
		{
			tried++;
			test_far(&models[i]);
		}
	if (tried == 0)
		skip("the quick set has none of these models", "far cells and targets");
	test_models_free(models, n);
	return done_testing();
}
