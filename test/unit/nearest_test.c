/*
 * nearest_test.c: the rows nearest to a question are those of a definition written anew here, ties
 * and missing cells included; blocks are told by anchors; columns that say nothing count little;
 * any magnitude; no memory and interrupts at every place.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models.h"
#include "tap.h"

#define ROWS 300
#define COLUMNS 4

static TestEnv env;
static TnpModel *model;
static double x[ROWS * COLUMNS],
			y[ROWS];
static TnpColumnKind kinds[COLUMNS] = {TNP_NUMERIC, TNP_NUMERIC, TNP_CATEGORICAL, TNP_NUMERIC};
static TnpRows rows = {ROWS, COLUMNS, kinds, x, y, 0, 0, 1};

/* A column that says all, one that says nothing, a label, and one that is constant. */
static void
fill(void)
{
	unsigned	state = 5;

	for (int i = 0; i < ROWS; i++)
	{
		x[i * COLUMNS] = test_uniform(&state);
		x[i * COLUMNS + 1] = test_uniform(&state);
		x[i * COLUMNS + 2] = i % 3;
		x[i * COLUMNS + 3] = 7;
		y[i] = 2 * x[i * COLUMNS] + 0.3 * (i % 3 == 0);
	}
}

static TnpNearest *
made(int64_t k)
{
	TnpNearest *nearest;
	TnpError	error;

	test_must(tnp_nearest_make(model, &rows, k, &nearest, &error), &error);
	return nearest;
}

static int64_t
block_of(const TnpNearest *nearest, const double *question)
{
	int64_t		block;
	TnpError	error;

	test_must(tnp_nearest_block(nearest, question, &block, &error), &error);
	return block;
}

static void
rows_of(const TnpNearest *nearest, int64_t block, int64_t *numbers)
{
	TnpError	error;

	test_must(tnp_nearest_rows(nearest, block, numbers, &error), &error);
}

static bool
ascending(const int64_t *numbers, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		if (numbers[i] < 0 || numbers[i] >= rows.n || (i > 0 && numbers[i] <= numbers[i - 1]))
			return false;
	return true;
}

static bool
has(const int64_t *numbers, int64_t n, int64_t row)
{
	for (int64_t i = 0; i < n; i++)
		if (numbers[i] == row)
			return true;
	return false;
}

/* One column of numbers, whose weight is that of any other: nearest is nearest by it. */
static void
test_definition(void)
{
	TnpRows		one = {ROWS, 1, NULL, x, y, 0, 0, 1};
	TnpNearest *nearest;
	int64_t		numbers[48];
	TnpError	error;
	unsigned	state = 9;
	bool		right = true,
				anchors = true;

	for (int i = 0; i < ROWS; i++)
	{
		x[i] = floor(40 * test_uniform(&state)) / 40;
		y[i] = x[i] * x[i];
	}
	test_must(tnp_nearest_make(model, &one, 48, &nearest, &error), &error);
	ok(tnp_nearest_size(nearest) == 48, "a block has as many rows as are asked for");
	for (int question = 0; question < 41; question++)
	{
		double		place = question / 40.0;
		int64_t		block = block_of(nearest, &place),
					anchor = 2 * block; /* a sixteenth of 48, down to a power of two */

		for (int i = 0; i < ROWS; i += 2)
			anchors = anchors && !(fabs(x[i] - place) < fabs(x[anchor] - place) - 1e-9)
				&& !(i < anchor && x[i] == x[anchor]);
		rows_of(nearest, block, numbers);
		right = right && ascending(numbers, 48);
		for (int i = 0; i < ROWS; i++)
			for (int j = 0; j < 48 && !has(numbers, 48, i); j++)
			{
				double		in = fabs(x[numbers[j]] - x[anchor]),
							out = fabs(x[i] - x[anchor]);

				right = right && (out > in - 1e-9)
					&& (fabs(out - in) > 1e-9 || x[i] != x[numbers[j]] || i > numbers[j]);
			}
	}
	ok(anchors, "a question belongs to the nearest of every second row");
	ok(right, "the rows of a block are nearest to its anchor, the earlier ones of equal rows");
	tnp_nearest_free(nearest);
}

static void
test_weights(void)
{
	TnpNearest *nearest;
	int64_t		numbers[64];
	double		spread[2] = {0, 0};

	fill();
	nearest = made(64);
	rows_of(nearest, 10, numbers);
	for (int i = 0; i < 64; i++)
		for (int f = 0; f < 2; f++)
			spread[f] = fmax(spread[f], fabs(x[numbers[i] * COLUMNS + f] - x[40 * COLUMNS + f]));
	ok(spread[0] < spread[1] / 1.5, "a column that says nothing counts less: %.2f, %.2f",
	   spread[0], spread[1]);
	tnp_nearest_free(nearest);
	/* a question that differs in what is constant is no other question */
	{
		double		question[COLUMNS] = {0.4, 0.4, 1, 7},
					other[COLUMNS] = {0.4, 0.4, 1, -1e300};

		nearest = made(64);
		ok(block_of(nearest, question) == block_of(nearest, other),
		   "a constant column does not count");
		tnp_nearest_free(nearest);
	}
}

static void
test_missing(void)
{
	TnpNearest *nearest;
	int64_t		numbers[32];
	double		question[COLUMNS] = {NAN, NAN, NAN, NAN};
	bool		all = true;

	fill();
	for (int i = 0; i < 40; i++)
		for (int f = 0; f < COLUMNS; f++)
			x[(i * 7) * COLUMNS + f] = NAN;
	nearest = made(32);
	rows_of(nearest, block_of(nearest, question), numbers);
	for (int i = 0; i < 32; i++)
		all = all && isnan(x[numbers[i] * COLUMNS]);
	ok(all, "rows without a cell are nearest to a question without one");
	question[0] = 0.5;
	question[2] = 99;
	rows_of(nearest, block_of(nearest, question), numbers);
	ok(ascending(numbers, 32), "a question may have labels that no row has");
	tnp_nearest_free(nearest);
}

static void
test_few(void)
{
	TnpNearest *nearest;
	int64_t		numbers[ROWS];
	double		question[COLUMNS] = {0.1, 0.2, 0, 7};

	fill();
	nearest = made(ROWS);
	rows_of(nearest, block_of(nearest, question), numbers);
	ok(tnp_nearest_size(nearest) == ROWS && ascending(numbers, ROWS)
	   && block_of(nearest, question) == 0, "all rows, where no more are there");
	tnp_nearest_free(nearest);
	rows.n = 0;
	nearest = made(8);
	ok(tnp_nearest_size(nearest) == 0 && block_of(nearest, question) == 0, "no rows");
	tnp_nearest_free(nearest);
	rows.n = 1;
	nearest = made(1);
	rows_of(nearest, block_of(nearest, question), numbers);
	ok(numbers[0] == 0, "one row");
	tnp_nearest_free(nearest);
	rows.n = ROWS;
}

/* Rows by the targets' classes: the label's column says which, the others nothing. */
static void
test_classes(void)
{
	TnpNearest *nearest;
	int64_t		numbers[64];
	int			same = 0;

	fill();
	for (int i = 0; i < ROWS; i++)
		y[i] = i % 3;
	rows.n_classes = 3;
	nearest = made(64);
	rows_of(nearest, 3, numbers);
	for (int i = 0; i < 64; i++)
		same += numbers[i] % 3 == 0;
	ok(same > 60, "a label that tells the class counts most: %d of 64", same);
	tnp_nearest_free(nearest);
	rows.n_classes = 100;
	for (int i = 0; i < ROWS; i++)
		y[i] = i % 100;
	nearest = made(64);
	rows_of(nearest, 3, numbers);
	ok(ascending(numbers, 64), "many classes");
	tnp_nearest_free(nearest);
	rows.n_classes = 0;
}

/* Powers of two change no answer. */
static void
test_magnitudes(void)
{
	int64_t		plain[64],
				large[64];
	TnpNearest *nearest;

	fill();
	nearest = made(64);
	rows_of(nearest, 5, plain);
	tnp_nearest_free(nearest);
	for (int i = 0; i < ROWS; i++)
	{
		x[i * COLUMNS] = ldexp(x[i * COLUMNS], 1000);
		x[i * COLUMNS + 1] = ldexp(x[i * COLUMNS + 1], -900);
		y[i] = ldexp(y[i], 400);
	}
	nearest = made(64);
	rows_of(nearest, 5, large);
	ok(memcmp(plain, large, sizeof(plain)) == 0, "units do not matter, however large or small");
	tnp_nearest_free(nearest);
	/* rows after the first power of two may be as far from the others as numbers go */
	fill();
	x[(ROWS - 1) * COLUMNS] = 1e308;
	x[(ROWS - 2) * COLUMNS] = -1e308;
	nearest = made(64);
	rows_of(nearest, 5, plain);
	ok(ascending(plain, 64) && !has(plain, 64, ROWS - 1), "nor do numbers far outside");
	tnp_nearest_free(nearest);
}

/* All of it; stops at the first failure. */
static TnpStatus
work(TnpError *error)
{
	TnpNearest *nearest;
	int64_t		numbers[16],
				block;
	TnpStatus	status = tnp_nearest_make(model, &rows, 16, &nearest, error);

	if (status != TNP_OK)
		return status;
	status = tnp_nearest_block(nearest, x, &block, error);
	if (status == TNP_OK)
		status = tnp_nearest_rows(nearest, block, numbers, error);
	tnp_nearest_free(nearest);
	return status;
}

static void
test_faults(void)
{
	TnpError	error;
	TnpStatus	status = TNP_NO_MEMORY;
	long		live = env.live;
	bool		clean = true;
	int			n;

	fill();
	for (n = 1; status == TNP_NO_MEMORY; n++)
	{
		env.calls = 0;
		env.fail_at = n;
		status = work(&error);
		clean = clean && env.live == live;
	}
	env.fail_at = 0;
	ok(clean && status == TNP_OK && n > 8, "no memory at %d places", n - 2);
	status = TNP_INTERRUPTED;
	for (n = 1; status == TNP_INTERRUPTED; n++)
	{
		env.polls = 0;
		env.stop_at = n;
		status = work(&error);
		clean = clean && env.live == live;
	}
	env.stop_at = 0;
	ok(clean && status == TNP_OK && n > COLUMNS, "interrupts at %d places", n - 2);
}

/* Whether blocks of k rows have the far target y as `expected`, and any other one as it is. */
static bool
is_encoded_as(int64_t k, double far, double expected)
{
	TnpNearest *nearest = made(k);
	bool		as_it_is = true;
	double		as = tnp_nearest_target(nearest, far);

	for (int i = 0; i < ROWS; i++)
		as_it_is = as_it_is && (y[i] > 1e3 || tnp_nearest_target(nearest, y[i]) == y[i]);
	tnp_nearest_free(nearest);
	return as_it_is && fabs(as - expected) <= 1e-15 * expected;
}

/*
 * For a model that takes what is far from all others for missing, cells, or nearer, targets, it is
 * so for distances, too; and two of 300 targets that are far, of which two of 256 were not, are
 * nearer in every block.
 */
static void
test_far(const TestModel *file)
{
	TnpNearest *nearest;
	TnpError	error;
	int64_t		coded[64],
				missing[64],
				block[2];
	double		limit = 0,
				question[COLUMNS] = {NAN, 0.5, 1, 7};

	test_must(tnp_model_open(&env.env, file->bytes, file->length, &model, &error), &error);
	for (int k = 0; k < 2; k++)
	{
		fill();
		for (int i = 0; i < ROWS; i += 20)
			x[i * COLUMNS] = k == 0 ? -999 : NAN;
		y[5] = y[6] = 0;
		/* the largest of the others is the limit */
		for (int i = 0; i < ROWS; i++)
			limit = fmax(limit, y[i]);
		y[5] = k == 0 ? 1e9 : limit;
		y[6] = k == 0 ? 2e9 : limit;
		question[0] = k == 0 ? -999 : NAN;
		nearest = made(64);
		block[k] = block_of(nearest, question);
		rows_of(nearest, block[k], k == 0 ? coded : missing);
		tnp_nearest_free(nearest);
		if (k == 0)
			ok(is_encoded_as(64, 1e9, limit) && is_encoded_as(64, 2e9, limit)
			   && is_encoded_as(ROWS, 1e9, 1e9), "%s: far targets of blocks", file->name);
	}
	ok(is_encoded_as(64, 1e9, 1e9), "%s: where none is far each is as it is", file->name);
	ok(block[0] == block[1] && memcmp(coded, missing, sizeof(coded)) == 0,
	   "%s: what is far is missing, or nearer", file->name);
	test_faults();
	tnp_model_close(model);
}

int
main(void)
{
	int			n;
	TestModel  *models = test_models(&n);
	TnpError	error;

	test_env_init(&env, &tnp_reference_kernels);
	test_must(tnp_model_open(&env.env, models[0].bytes, models[0].length, &model, &error), &error);
	test_definition();
	test_weights();
	test_missing();
	test_few();
	test_classes();
	test_magnitudes();
	test_faults();
	y[5] = 1e9;
	ok(is_encoded_as(64, 1e9, 1e9), "a model may take targets as they are");
	tnp_model_close(model);
	for (int i = 0; i < n; i++)
		if (strcmp(models[i].name, "rows_far_targets") == 0)
			test_far(&models[i]);
	ok(env.live == 0, "all memory is freed");
	test_models_free(models, n);
	return done_testing();
}
