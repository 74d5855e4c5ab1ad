/*
 * marks_test.c: attention without softmax reads from marks, sums of the first rows
 * (docs/families.md, "Running sums"). What an encoding answers is the same bits whatever was
 * appended when, by however many threads, and whatever else is asked; also where it has passed
 * marks, and where a reader sees rows up to one, or between two. A row takes no more than is said.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <stdlib.h>
#include <string.h>

#include "engine/file/model.h"
#include "engine/inference/encode.h"
#include "models.h"
#include "tap.h"

#define QUERIES 9
#define LARGEST 160				/* doubles of one answer */
#define MARKS 4					/* that the rows pass */
#define FIRST 5					/* rows that see each other, where some do */

static const TestModel *file;	/* under test */
static const char *kernels_name;
static TnpModel *model;
static TestRows rows;
static int	n_threads,
			total,				/* rows of a context; QUERIES more are asked about */
			apart,				/* rows from mark to mark */
			size;				/* of an answer */

static int
threads(void *arg)
{
	(void) arg;
	return -n_threads;
}

static bool
holds(bool condition, const char *what)
{
	return ok(condition, "%s, %s: %s", file->name, kernels_name, what);
}

static int64_t
prefix(void)
{
	return tnp_whole_prefix(model, FIRST);
}

static TnpEncoding *
build(int n)
{
	TnpRows		context = test_slice(&rows, 0, n);
	TnpEncoding *e;
	TnpError	error = {0};

	test_must(tnp_build(model, &context, prefix(), &e, &error), &error);
	return e;
}

static void
append(TnpEncoding *e, int first, int n)
{
	TnpRows		more = test_slice(&rows, first, n);
	TnpError	error = {0};

	test_must(tnp_append(e, &more, &error), &error);
}

static void
predict(const TnpEncoding *e, int first, int n, double *params)
{
	TnpRows		queries = test_slice(&rows, total + first, n);
	TnpError	error = {0};

	queries.y = NULL;
	test_must(tnp_predict(e, &queries, params, &error), &error);
}

/* Whether both answer alike; the second is freed. */
static bool
same(const TnpEncoding *a, TnpEncoding *b)
{
	double		params[2][QUERIES * LARGEST];

	predict(a, 0, QUERIES, params[0]);
	predict(b, 0, QUERIES, params[1]);
	tnp_encoding_free(b);
	return memcmp(params[0], params[1], (size_t) QUERIES * size * sizeof(double)) == 0;
}

/* Rows from FIRST on in steps of 1 … most. */
static TnpEncoding *
append_in_steps(int n, int most)
{
	TnpEncoding *e = build(FIRST);
	unsigned	state = (unsigned) most;

	for (int i = FIRST, some; i < n; i += some)
	{
		some = 1 + (int) (test_uniform(&state) * most);
		some = some < n - i ? some : n - i;
		append(e, i, some);
	}
	return e;
}

static void
test_steps(const TnpEncoding *e)
{
	holds(same(e, append_in_steps(total, 1)), "rows appended one by one are those built at once");
	holds(same(e, append_in_steps(total, apart)), "a few at a time, too");
	holds(same(e, append_in_steps(total, 3 * apart)), "and many at a time");
}

/* The rows up to each mark, the row before it and the row behind, and some in between. */
static void
test_first(const TnpEncoding *e)
{
	bool		views = true,
				copies = true;
	int			base = (int) tnp_encoding_base_rows(e);

	for (int n = base; n < total; n++)
	{
		int			behind = (n - (model->config.context == TNP_FULL ? FIRST : 0)) % apart;
		TnpEncoding *fresh,
				   *view,
				   *copy;
		TnpError	error = {0};

		if (behind > 1 && behind < apart - 1 && n % 7 > 0)
			continue;
		fresh = build(n);
		test_must(tnp_encoding_first(e, n, &view, &error), &error);
		views &= same(fresh, view);
		test_must(tnp_encoding_copy(e, n, total, n % 2 == 0, &copy, &error), &error);
		append(copy, n, total - n);
		copies &= same(e, copy);
		tnp_encoding_free(fresh);
	}
	holds(views, "a view of the first rows is built from them, bitwise");
	holds(copies, "a copy of the first rows grows to what was built at once, bitwise");
}

static void
test_alone(const TnpEncoding *e)
{
	double		all[QUERIES * LARGEST],
				one[LARGEST];
	bool		alike = true;

	predict(e, 0, QUERIES, all);
	for (int i = 0; i < QUERIES; i++)
	{
		predict(e, i, 1, one);
		alike &= memcmp(one, all + (size_t) i * size, size * sizeof(double)) == 0;
	}
	holds(alike, "a batch of queries is each alone, bitwise");
}

/* Rows that were forgotten leave nothing in marks. */
static void
test_forgotten(const TnpEncoding *e)
{
	TnpEncoding *b = build(total - 2 * apart);

	append(b, 0, 2 * apart);
	tnp_encoding_forget(b, total - 2 * apart);
	append(b, total - 2 * apart, 2 * apart);
	holds(same(e, b), "rows that are forgotten leave nothing");
}

static void
test_threads(const TnpEncoding *e)
{
	TnpEncoding *b;

	n_threads = 4;
	b = build(total);
	holds(same(e, b), "four threads build what one does, bitwise");
	b = append_in_steps(total, 2 * apart);
	holds(same(e, b), "and append it");
	n_threads = 1;
}

static void
test_bytes(void)
{
	TnpEncoding *few = build(total),
			   *many = NULL;
	size_t		cells = (rows.view.n_features + tnp_model_info(model)->n_targets) * sizeof(double),
				more = (size_t) TNP_BLOCK * apart / TNP_PANEL;	/* whole blocks and marks */
	TnpError	error = {0};

	test_must(tnp_encoding_copy(few, total, total + (int64_t) more, false, &many, &error), &error);
	holds(tnp_encoding_bytes(many) - tnp_encoding_bytes(few)
		  <= more * (tnp_model_info(model)->encoding_bytes_per_row + cells),
		  "a row takes no more than is said");
	tnp_encoding_free(few);
	tnp_encoding_free(many);
}

static void
test_model(const TestModel *m, const TnpKernels *kernels)
{
	TestEnv		env;
	TnpCacheShape shape;
	TnpEncoding *e;
	TnpError	error = {0};

	file = m;
	kernels_name = kernels->name;
	test_env_init(&env, kernels);
	env.env.threads = threads;
	n_threads = 1;
	test_must(tnp_model_open(&env.env, m->bytes, m->length, &model, &error), &error);
	model->config.family->cache_shape(model, &shape);
	if (shape.mark_slots > 0)
	{
		apart = shape.mark_slots;
		total = MARKS * apart + FIRST + 2;
		size = tnp_answer_size(model);
		test_rows_make(&rows, tnp_model_info(model), total + QUERIES, 3);
		e = build(total);
		test_steps(e);
		test_first(e);
		test_alone(e);
		test_forgotten(e);
		test_threads(e);
		tnp_encoding_free(e);
		test_bytes();
		test_rows_free(&rows);
	}
	tnp_model_close(model);
	holds(env.live == 0, "everything allocated is freed");
}

int
main(void)
{
	test_everywhere(test_model);
	return done_testing();
}
