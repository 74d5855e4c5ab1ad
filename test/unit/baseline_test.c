/*
 * baseline_test.c: the ridge regression that predictions are compared with: a line is found and its
 * noise with it, noise is left alone, labels and missing cells count, units are of no account, and
 * what it cannot take is refused.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>
#include <stdlib.h>

#include "models.h"
#include "tap.h"
#include "engine/features/baseline.h"

#define ROWS 400
#define COLUMNS 3				/* a number, a label, a number that says nothing */

static double x[ROWS * COLUMNS],
			y[ROWS],
			answers[ROWS * 2];
static TnpColumnKind kinds[COLUMNS] = {TNP_NUMERIC, TNP_CATEGORICAL, TNP_NUMERIC};
static TnpError error;

static TnpRows
some_rows(int64_t n)
{
	return (TnpRows){.n = n,.n_features = COLUMNS,.kinds = kinds,.x = x,.y = y};
}

/* Numbers in [-1, 1] that hang together with nothing. */
static double
scatter(int i, int k)
{
	return 2 * fmod((i + 1) * (0.6180339887498949 + 0.1234567 * k), 1) - 1;
}

/* y = 5 + 3 number + 2 [label = 7] + noise, the noise evenly spread over [-size, size]. */
static void
fill(double size)
{
	for (int i = 0; i < ROWS; i++)
	{
		x[i * COLUMNS] = scatter(i, 0);
		x[i * COLUMNS + 1] = 5 + i % 3;
		x[i * COLUMNS + 2] = scatter(i, 1);
		y[i] = 5 + 3 * x[i * COLUMNS] + (i % 3 == 2 ? 2 : 0) + size * scatter(i, 2);
	}
}

static TnpStatus
ask(int64_t n)
{
	TnpRows		context = some_rows(n),
				queries = some_rows(ROWS);

	return tnp_baseline_ridge(&tnp_default_env, &context, &queries, answers, &error);
}

/* Root mean square of the difference from what the rows are made of. */
static double
miss(void)
{
	double		sum = 0;

	for (int i = 0; i < ROWS; i++)
	{
		double		made = 5 + 3 * x[i * COLUMNS] + (i % 3 == 2 ? 2 : 0);

		sum += (answers[2 * i] - made) * (answers[2 * i] - made);
	}
	return sqrt(sum / ROWS);
}

static int	polls;

static bool
stop_at_third(void *arg)
{
	(void) arg;
	return ++polls == 3;
}

int
main(void)
{
	TnpRows		context,
				queries;
	TnpEnv		env = tnp_default_env;
	double		mean,
				sd,
				spread;

	fill(0.3);
	is_int(ask(ROWS), TNP_OK, "a line and a label are fitted");
	ok(miss() < 0.05, "what the rows are made of is found");
	spread = 0;
	for (int i = 0; i < ROWS; i++)
		spread += answers[2 * i + 1] / ROWS;
	ok(fabs(spread / (0.3 / sqrt(3)) - 1) < 0.05, "the noise, too: %.4f", spread);
	mean = answers[0];
	sd = answers[1];

	for (int i = 0; i < ROWS; i++)
	{
		x[i * COLUMNS] = 1e6 + 1000 * x[i * COLUMNS];
		y[i] = -40 * y[i] + 1e5;
	}
	ask(ROWS);
	ok(fabs((answers[0] - 1e5) / -40 / mean - 1) < 1e-6 && fabs(answers[1] / 40 / sd - 1) < 1e-6,
		"units are of no account");

	fill(0.3);
	is_int(ask(8), TNP_OK, "eight rows are enough");
	spread = 0;
	for (int i = 0; i < ROWS; i++)
		spread += answers[2 * i + 1] / ROWS;
	ok(spread > 1.2 * sd, "and are surer of less: %.3f, %.3f", spread, sd);

	/* a target that hangs together with nothing */
	for (int i = 0; i < ROWS; i++)
		y[i] = scatter(i, 3);
	ask(ROWS);
	spread = 0;
	for (int i = 0; i < ROWS; i++)
		spread += answers[2 * i] * answers[2 * i] / ROWS;
	ok(sqrt(spread) < 0.1, "noise is not fitted: %.3f", sqrt(spread));
	ok(fabs(answers[1] * sqrt(3) - 1) < 0.05, "the answer is as wide as it");

	/* whether a cell is missing says all */
	for (int i = 0; i < ROWS; i++)
	{
		x[i * COLUMNS] = i % 4 == 0 ? NAN : scatter(i, 0);
		y[i] = i % 4 == 0 ? 8 : 2;
	}
	ask(ROWS);
	ok(fabs(answers[0] - 8) < 0.01 && fabs(answers[2] - 2) < 0.01, "a missing cell counts");

	for (int i = 0; i < ROWS; i++)
		y[i] = 4;
	ask(ROWS);
	ok(fabs(answers[0] - 4) < 1e-9 && answers[1] > 0 && answers[1] < 1e-6,
		"a constant target is answered");

	fill(0.3);
	is_int(ask(0), TNP_TOO_FEW_ROWS, "no rows");
	y[5] = NAN;
	is_int(ask(ROWS), TNP_BAD_VALUE, "a target that is NaN");
	y[5] = 1;
	x[7] = INFINITY;
	is_int(ask(ROWS), TNP_BAD_VALUE, "an infinite cell");
	fill(0.3);
	context = some_rows(ROWS);
	queries = some_rows(ROWS);
	queries.n_features = 2;
	is_int(tnp_baseline_ridge(&tnp_default_env, &context, &queries, answers, &error),
		TNP_BAD_SHAPE, "rows of other columns");
	queries = some_rows(ROWS);
	queries.kinds = NULL;
	is_int(tnp_baseline_ridge(&tnp_default_env, &context, &queries, answers, &error),
		TNP_BAD_SHAPE, "rows of other kinds");
	queries = some_rows(ROWS);
	env.interrupted = stop_at_third;
	is_int(tnp_baseline_ridge(&env, &context, &queries, answers, &error), TNP_INTERRUPTED,
		"it stops when it is interrupted");
	return done_testing();
}
