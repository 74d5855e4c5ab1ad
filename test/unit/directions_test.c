/*
 * directions_test.c: the search finds a direction that is there, in any order of its rows the same,
 * and none in noise, in one column or of few rows; a process that has one predicts along it, and
 * one may be a sum over columns; its copies and views answer alike, and rows that are appended are
 * those of one built at once; no memory and interrupts at every place.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>
#include <stdlib.h>

#include "engine/features/directions.h"
#include "engine/features/process.h"
#include "engine/features/stats.h"
#include "models.h"
#include "tap.h"

#define ROWS 150
#define COLUMNS 4
#define QUERIES 8
#define FEW 90					/* rows, too few for directions */
#define MOST 3
#define LARGEST 64				/* doubles of an answer */

static const double along[COLUMNS] = {0.9, -1.1, 0.7, 0};
static TestEnv env;
static double z[(ROWS + QUERIES) * COLUMNS],
			y[ROWS + QUERIES];

/* Numbers with mean 0 and standard deviation 1. */
static void
fill(unsigned state)
{
	for (int i = 0; i < (ROWS + QUERIES) * COLUMNS; i++)
	{
		z[i] = 0;
		for (int k = 0; k < 12; k++)
			z[i] += test_uniform(&state) - 0.5;
	}
}

static double
score(int row)
{
	double		sum = 0;

	for (int f = 0; f < COLUMNS; f++)
		sum += along[f] * z[row * COLUMNS + f];
	return sum;
}

/* How many are found; targets are lost. */
static int
search(int n, const double *targets, int64_t *weight, TnpStatus *status)
{
	double		rest[ROWS];
	int			found;
	TnpError	error;

	memcpy(rest, targets, n * sizeof(double));
	*status = tnp_directions_find(&env.env, n, COLUMNS, z, rest, MOST, MOST, weight, &found,
								  &error);
	return found;
}

static void
test_search(void)
{
	int64_t		weight[MOST * COLUMNS],
				other[MOST * COLUMNS];
	double		wave[ROWS],
				one[ROWS],
				noise[ROWS],
				product = 0,
				square = 0,
				wanted = 0;
	unsigned	state = 77;
	TnpStatus	status;
	int			found;

	fill(3);
	for (int i = 0; i < ROWS; i++)
	{
		wave[i] = sin(score(i)) + 0.05 * (test_uniform(&state) - 0.5);
		one[i] = cos(z[i * COLUMNS + 2]) + 0.2 * (test_uniform(&state) - 0.5);
		noise[i] = test_uniform(&state) - 0.5;
	}
	found = search(ROWS, wave, weight, &status);
	for (int f = 0; f < COLUMNS; f++)
	{
		product += (double) weight[f] * along[f];
		square += (double) weight[f] * (double) weight[f];
		wanted += along[f] * along[f];
	}
	ok(status == TNP_OK && found >= 1 && fabs(product) > 0.998 * sqrt(square * wanted),
	   "a wave along a direction is found");
	ok(search(ROWS, noise, weight, &status) == 0 && status == TNP_OK, "noise has no direction");
	ok(search(ROWS, one, weight, &status) == 0 && status == TNP_OK, "one column is no direction");
	ok(search(16 * (COLUMNS + 2) - 1, wave, weight, &status) == 0 && status == TNP_OK,
	   "few rows have none");
	found = search(ROWS, wave, weight, &status);
	for (int i = 0; i < ROWS / 2; i++)
		for (int f = -1; f < COLUMNS; f++)
		{
			double	   *a = f < 0 ? &wave[i] : &z[i * COLUMNS + f],
					   *b = f < 0 ? &wave[ROWS - 1 - i] : &z[(ROWS - 1 - i) * COLUMNS + f],
						swap = *a;

			*a = *b;
			*b = swap;
		}
	ok(search(ROWS, wave, other, &status) == found
	   && memcmp(weight, other, found * COLUMNS * sizeof(int64_t)) == 0,
	   "rows in another order have the same directions");
}

/* A model's rows: what a direction says, and nothing else. */
static TnpRows
some(int first, int n)
{
	return (TnpRows) {n, COLUMNS, NULL, z + first * COLUMNS, y + first, 0, 0, 1};
}

/* A sum of functions of single columns. */
static double
sum_of_columns(const double *x)
{
	return sin(2 * x[0]) + fabs(x[1]) + cos(3 * x[2]) + 0.5 * x[3];
}

static double
product_of_columns(const double *x)
{
	return x[0] * x[1];
}

/* The process's share of means over axes, and in error its root mean square error on queries. */
static double
share_of(const TestModel *file, double (*function) (const double *x), int n, double *error)
{
	TnpModel   *model;
	TnpRows		rows = some(0, n),
				all = some(0, ROWS + QUERIES);
	TnpStats	stats;
	TnpError	failure;
	double		share,
				mean = 0,
				square = 0;

	test_must(tnp_model_open(&env.env, file->bytes, file->length, &model, &failure), &failure);
	fill(7);
	for (int i = 0; i < ROWS + QUERIES; i++)
		y[i] = function(z + i * COLUMNS);
	for (int i = 0; i < n; i++)
		mean += y[i] / n;
	for (int i = 0; i < n; i++)
		square += (y[i] - mean) * (y[i] - mean) / n;
	test_must(tnp_stats_build(model, &rows, n, &stats, &failure), &failure);
	*error = 0;
	for (int i = ROWS; i < ROWS + QUERIES; i++)
	{
		float		said[4];
		double		off;

		tnp_process_features(model, &stats, &all, i, 1, false, said, 0);
		off = said[0] - (y[i] - mean) / sqrt(square);
		*error += off * off / QUERIES;
	}
	*error = sqrt(*error);
	share = stats.process.share;
	tnp_stats_free(&env.env, &stats);
	tnp_model_close(model);
	return share;
}

static void
test_share(const TestModel *file, const TestModel *without)
{
	double		error,
				error_without;

	for (int n = FEW; n <= ROWS; n += ROWS - FEW)
		ok(share_of(file, sum_of_columns, n, &error) > 0.5
		   && share_of(without, sum_of_columns, n, &error_without) == 0
		   && error < 0.7 * error_without, "%d rows: a sum of columns is learnt as one", n);
	ok(share_of(file, product_of_columns, FEW, &error) == 0
	   && share_of(without, product_of_columns, FEW, &error_without) == 0
	   && error == error_without, "a product stays as it is, bitwise");
}

static void
test_process(const TestModel *file, bool sum)
{
	const int	tail = 10;
	TnpModel   *model;
	TnpEncoding *e,
			   *copy,
			   *other;
	TnpRows		rows = some(0, ROWS),
				queries = some(ROWS, QUERIES),
				more = some(ROWS - tail, tail),
				fewer = some(0, ROWS - tail);
	double		params[QUERIES * LARGEST],
				again[QUERIES * LARGEST];
	TnpError	error;
	size_t		size;
	bool		ended = false;

	test_must(tnp_model_open(&env.env, file->bytes, file->length, &model, &error), &error);
	size = QUERIES * tnp_answer_size(model) * sizeof(double);
	if (size > sizeof(params))
		exit(2);
	fill(5);
	for (int i = 0; i < ROWS + QUERIES; i++)
		y[i] = sum ? sum_of_columns(z + i * COLUMNS) : sin(score(i));
	test_must(tnp_build(model, &rows, ROWS, &e, &error), &error);
	queries.y = NULL;
	test_must(tnp_predict(e, &queries, params, &error), &error);
	test_must(tnp_encoding_copy(e, ROWS, ROWS, false, &copy, &error), &error);
	ok(tnp_encoding_bytes(copy) == tnp_encoding_bytes(e), "a copy has its bytes");
	tnp_encoding_free(e);
	test_must(tnp_predict(copy, &queries, again, &error), &error);
	ok(memcmp(params, again, size) == 0, "a copy answers the same, after the other has gone");
	tnp_encoding_free(copy);

	/* directions are of the prefix: the rest may come later */
	test_must(tnp_build(model, &rows, ROWS - tail, &e, &error), &error);
	test_must(tnp_predict(e, &queries, params, &error), &error);
	tnp_encoding_free(e);
	test_must(tnp_build(model, &fewer, ROWS - tail, &other, &error), &error);
	test_must(tnp_append(other, &more, &error), &error);
	test_must(tnp_predict(other, &queries, again, &error), &error);
	ok(memcmp(params, again, size) == 0, "appended = built at once, bitwise");
	tnp_encoding_free(other);

	for (env.fail_at = 1; !ended && env.fail_at < 10000; env.fail_at += TEST_EVERY)
	{
		long		live = env.live;

		env.calls = 0;
		ended = tnp_build(model, &rows, ROWS, &e, &error) == TNP_OK;
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
		ended = tnp_build(model, &rows, ROWS, &e, &error) == TNP_OK;
		if (ended)
			tnp_encoding_free(e);
		if (env.live != live || (!ended && error.status != TNP_INTERRUPTED))
			break;
	}
	ok(ended && env.stop_at > 8 * 4, "an interrupt at any poll: an error, and nothing is lost");
	env.stop_at = 0;
	tnp_model_close(model);
	ok(env.live == 0, "everything allocated is freed");
}

int
main(void)
{
	int			n;
	TestModel  *models = test_models(&n);
	const TestModel *directed = NULL,
			   *additive = NULL;

	test_env_init(&env, test_kernels());
	test_search();
	for (int i = 0; i < n; i++)
		if (strcmp(models[i].name, "rows_directions") == 0)
			directed = &models[i];
		else if (strcmp(models[i].name, "rows_additive") == 0)
			additive = &models[i];
	if (directed != NULL)
		test_process(directed, false);
	if (additive != NULL && directed != NULL)
	{
		test_process(additive, true);
		test_share(additive, directed);
	}
	if (getenv("TNP_QUICK") == NULL)
		ok(directed != NULL && additive != NULL, "there are models with directions and sums");
	test_models_free(models, n);
	return done_testing();
}
