/*
 * series_test.c: values of a series that are far from all others count as missing: one too large,
 * one that a trend hides, one that ends the series; and growth, levels, events and gaps do not, nor
 * does what a column foretells.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>
#include <string.h>

#include "models.h"
#include "tap.h"
#include "engine/features/series.h"

#define STEPS 600

static TestEnv env;
static TnpModel *model;
static double y[STEPS],
			x[STEPS][3],
			near[STEPS];
static TnpStepColumns columns;
static TnpError error;

/* Numbers in [-1, 1] that hang together with nothing. */
static double
scatter(int i)
{
	return 2 * fmod((i + 1) * 0.6180339887498949, 1) - 1;
}

/* How many of the first n values count as missing; -1 if another one changed. */
static int
far_of(int n)
{
	int			count = 0;

	test_must(tnp_series_near(model, y, n, &columns, near, &error), &error);
	for (int i = 0; i < n; i++)
	{
		if (isnan(near[i]) && !isnan(y[i]))
			count++;
		else if (memcmp(&near[i], &y[i], sizeof(double)) != 0)
			return -1;
	}
	return count;
}

static void
fill_level(void)
{
	for (int i = 0; i < STEPS; i++)
		y[i] = 100 + scatter(i);
}

static void
fill_trend(void)
{
	for (int i = 0; i < STEPS; i++)
		y[i] = 1000 + 5 * i + 10 * scatter(i);
}

static void
test_mistakes(void)
{
	static const int places[] = {0, 1, 60, 118, 119};

	for (int p = 0; p < 5; p++)
		for (int sign = 1; sign >= -1; sign -= 2)
		{
			int			i = places[p];

			fill_level();
			y[i] = sign * 1e6;
			ok(far_of(120) == 1 && isnan(near[i]), "%d: far from a level, %d", i, sign);
			fill_trend();
			/* four times as far from the middle as the trend goes in 120 steps */
			y[i] = 1300 + sign * 1300;
			ok(far_of(120) == 1 && isnan(near[i]), "%d: far from those around it, %d", i, sign);
		}
	fill_level();
	y[17] = y[400] = 1e6;
	ok(far_of(240) == 1 && far_of(512) == 2 && far_of(256) == 1, "one of each 256");
	y[300] = 1e6;
	ok(far_of(512) == 0, "three of 512 are a group of their own");
	fill_level();
	for (int i = 0; i < 120; i += 3)
		y[i] = NAN;
	y[61] = 1e6;
	ok(far_of(120) == 1 && isnan(near[61]), "beside gaps");
	y[61] = 1e308;
	y[62] = -1e308;
	ok(far_of(120) == 0, "two that are as far as numbers are");
}

static void
test_honest(void)
{
	fill_level();
	ok(far_of(STEPS) == 0, "a level");
	fill_trend();
	ok(far_of(STEPS) == 0, "a trend");
	for (int i = 0; i < STEPS; i++)
		y[i] = exp(i);
	ok(far_of(STEPS) == 0, "growth");
	fill_level();
	for (int i = 118; i < 120; i++)
		y[i] = 1e6 + scatter(i);
	ok(far_of(120) == 0, "a level of two values");
	fill_level();
	for (int i = STEPS - 3; i < STEPS; i++)
		y[i] = 1e6 + scatter(i);
	ok(far_of(STEPS) == 0, "three of 600 that end the series are its level");
	y[STEPS - 1] = 100;
	ok(far_of(STEPS) == 2, "two that do not are mistakes");
	fill_level();
	y[STEPS - 2] = 1e6;
	y[STEPS - 1] = -1e6;
	ok(far_of(STEPS) == 2, "nor are two on both sides");
	fill_trend();
	for (int i = STEPS - 3; i < STEPS; i++)
		y[i] -= 1e4;
	ok(far_of(STEPS) == 0, "a level that a trend hides");
	for (int i = 0; i < STEPS; i++)
		y[i] = 100 + 1000 * (i >= 300) + scatter(i);
	ok(far_of(STEPS) == 0, "two levels");
	for (int i = 0; i < 120; i++)
		y[i] = i % 40 == 7 ? 1e6 : 0;
	ok(far_of(120) == 0, "events among nothing");
	for (int i = 0; i < 120; i++)
		y[i] = NAN;
	ok(far_of(120) == 0, "nothing");
	fill_level();
	y[3] = 1e6;
	ok(far_of(0) == 0 && far_of(9) == 0 && far_of(10) == 1, "too few to tell");
}

/* A level of so many values that ends the series, every other one twice as far. */
static void
fill_volatile_level(int values)
{
	fill_level();
	for (int i = STEPS - values; i < STEPS; i++)
		y[i] = 1000 * (1 + (i - STEPS + values) % 2) + scatter(i);
}

static void
test_volatile_levels(void)
{
	int			kept = 0;

	for (int values = 2; values <= 16; values++)
	{
		fill_volatile_level(values);
		kept += far_of(STEPS) == 0;
		for (int i = 0; i < STEPS; i++)
			y[i] = -y[i];
		kept += far_of(STEPS) == 0;
	}
	ok(kept == 30, "levels that go up and down");
	fill_volatile_level(7);
	y[STEPS - 3] = 100;
	ok(far_of(STEPS) == 0, "one value in seven may be back");
	fill_level();
	y[STEPS - 1] = y[STEPS - 4] = 1e6;
	ok(far_of(STEPS) == 2, "two of the last four are mistakes");
	y[STEPS - 2] = 1e6;
	ok(far_of(STEPS) == 0, "three of the last four are a level");
}

/* Events of 80 at two places of 400, and column 1 of x, which foretells them. */
static void
fill_events(void)
{
	fill_level();
	for (int i = 0; i < STEPS; i++)
	{
		bool		event = i == 100 || i == 280;

		y[i] += 80 * event;
		x[i][0] = i;
		x[i][1] = event;
		x[i][2] = i % 7;
	}
}

static void
test_foretold(void)
{
	columns = (TnpStepColumns) {x[0], 3, 3};
	fill_events();
	ok(far_of(400) == 0, "events that a column foretells");
	for (int i = 0; i < 400; i++)
		y[i] += i;
	ok(far_of(400) == 0, "beside a trend");
	fill_events();
	y[200] = 130;
	ok(far_of(STEPS) == 1 && isnan(near[200]), "a mistake that is nearer than they");
	fill_events();
	y[399] = 1e6;
	ok(far_of(400) == 1 && isnan(near[399]), "a mistake that is farther");
	fill_events();
	y[280] = 1e6;
	ok(far_of(400) == 1 && isnan(near[280]), "a mistake where an event is foretold, beside one");
	fill_events();
	for (int i = 0; i < 400; i++)
		x[i][1] = x[i][1] == 1 ? 1 : NAN;
	ok(far_of(400) == 0, "a column that is known of events alone");
	for (int i = 0; i < 400; i++)
		x[i][1] = x[i][1] == 1 ? NAN : 0;
	ok(far_of(400) == 2, "what is not known foretells nothing");
	fill_events();
	x[50][1] = 1;
	ok(far_of(400) == 2, "nor does what a near value has, too");
	fill_events();
	columns.x++;
	ok(far_of(400) == 0, "columns after others");
	columns.x++;
	columns.n = 1;
	ok(far_of(400) == 2, "a column that foretells nothing");
	columns = (TnpStepColumns) {x[0], 1, 3};
	ok(far_of(400) == 2, "all cells are different");
	for (int i = 0; i < 400; i++)
		x[i][0] = i / 3;
	x[100][0] = x[280][0] = -1;
	ok(far_of(400) == 2, "most cells are");
	for (int i = 0; i < 400; i++)
		x[i][0] = i / 5;
	x[100][0] = x[280][0] = -1;
	ok(far_of(400) == 0, "a few are");
	columns = (TnpStepColumns) {x[0], 0, 0};
}

static void
test_no_memory(void)
{
	TnpStatus	status = TNP_NO_MEMORY;
	int			n;

	for (n = 1; status == TNP_NO_MEMORY; n++)
	{
		env.calls = 0;
		env.fail_at = n;
		status = tnp_series_near(model, y, 120, &columns, near, &error);
	}
	env.fail_at = 0;
	ok(status == TNP_OK && n == 3, "no memory at %d places", n - 2);
}

int
main(void)
{
	int			n;
	TestModel  *models = test_models(&n);

	test_env_init(&env, &tnp_reference_kernels);
	for (int i = 0; i < n; i++)
	{
		bool		knows = strcmp(models[i].name, "rows_far_targets") == 0;

		if (!knows && i > 0)
			continue;
		test_must(tnp_model_open(&env.env, models[i].bytes, models[i].length, &model, &error),
				  &error);
		if (knows)
		{
			test_mistakes();
			test_honest();
			test_volatile_levels();
			test_foretold();
			test_no_memory();
		}
		else
		{
			fill_level();
			y[7] = 1e6;
			ok(far_of(120) == 0, "a model may take values as they are");
		}
		tnp_model_close(model);
	}
	ok(env.live == 0, "all memory is freed");
	test_models_free(models, n);
	return done_testing();
}
