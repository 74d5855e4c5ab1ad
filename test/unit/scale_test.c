/*
 * scale_test.c: what scan attention takes grows as it has to: memory with the rows and not with
 * their square, none of it with the queries, and while pairs of rows are computed interrupts are
 * looked for as often as there are pairs; one of them, in the middle, leaves nothing behind.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"
#include "models.h"
#include "tap.h"

#define PAIRS 65536				/* of rows, that may lie between two looks, at most */
#define HEADER 64				/* of a block of memory, which begins with its size */

static TestEnv env;
static int	few_rows = 512,
			many_rows = 2048;	/* four times as many */
static size_t held,				/* bytes, now and at most */
			most;

static void *
measured_alloc(void *arg, size_t size)
{
	char	   *block = malloc(size + HEADER);

	(void) arg;
	if (block == NULL)
		return NULL;
	memcpy(block, &size, sizeof(size));
	held += size;
	most = held > most ? held : most;
	return block + HEADER;
}

static void
measured_free(void *arg, void *pointer)
{
	size_t		size;

	(void) arg;
	memcpy(&size, (char *) pointer - HEADER, sizeof(size));
	held -= size;
	free((char *) pointer - HEADER);
}

static int
one_thread(void *arg)
{
	(void) arg;
	return 1;
}

/* What a call has taken: bytes at most beside those held before, and looks for interrupts. */
typedef struct Took
{
	size_t		bytes;
	long		polls;
	TnpStatus	status;
} Took;

/* Encode n rows, if *e is NULL, or ask it about n queries. */
static Took
take(const TnpModel *model, const TestRows *rows, int n, TnpEncoding **e, long stop_at)
{
	TnpRows		some = test_slice(rows, 0, n);
	size_t		before = held;
	double	   *params = malloc((size_t) n * tnp_answer_size(model) * sizeof(double));
	TnpError	error = {0};
	Took		took;

	most = held;
	env.polls = 0;
	env.stop_at = stop_at;
	if (*e == NULL)
		took.status = tnp_build(model, &some, tnp_whole_prefix(model, n), e, &error);
	else
		took.status = tnp_predict(*e, &some, params, &error);
	took.bytes = most - before;
	took.polls = env.polls;
	env.stop_at = 0;
	free(params);
	if (stop_at == 0)
		test_must(took.status, &error);
	return took;
}

static void
test_build(const char *name, const TnpModel *model, const TestRows *rows)
{
	TnpEncoding *e = NULL;
	Took		few = take(model, rows, few_rows, &e, 0),
				many,
				stopped;
	size_t		before;

	tnp_encoding_free(e);
	e = NULL;
	before = held;
	many = take(model, rows, many_rows, &e, 0);
	ok(many.bytes <= 4 * few.bytes, "%s: four times the rows take at most four times the memory",
	   name);
	/* a prefix reads itself, and a causal row half of it */
	ok(many.polls >= (long) many_rows * many_rows / 2 / PAIRS, "  and polls are as many as pairs");
	tnp_encoding_free(e);
	e = NULL;
	stopped = take(model, rows, many_rows, &e, many.polls / 2);
	ok(stopped.status == TNP_INTERRUPTED && e == NULL && held == before
	   && stopped.polls == many.polls / 2, "  an interrupt in the middle leaves nothing");
}

static void
test_predict(const char *name, const TnpModel *model, const TestRows *rows)
{
	TnpEncoding *small = NULL,
			   *large = NULL;
	Took		few,
				more_rows,
				more_queries,
				stopped;
	size_t		before;

	take(model, rows, few_rows, &small, 0);
	take(model, rows, many_rows, &large, 0);
	before = held;
	few = take(model, rows, few_rows, &small, 0);
	more_queries = take(model, rows, many_rows, &small, 0);
	more_rows = take(model, rows, many_rows, &large, 0);
	ok(more_queries.bytes == few.bytes && more_rows.bytes == few.bytes,
	   "%s: queries take the same memory whatever their number and that of the rows", name);
	ok(more_rows.polls >= (long) many_rows * many_rows / PAIRS, "  and polls are as many as pairs");
	stopped = take(model, rows, many_rows, &large, more_rows.polls / 2);
	ok(stopped.status == TNP_INTERRUPTED && held == before
	   && stopped.polls == more_rows.polls / 2, "  an interrupt in the middle leaves nothing");
	tnp_encoding_free(small);
	tnp_encoding_free(large);
}

static void
test_model(const TestModel *file)
{
	TnpModel   *model;
	TnpError	error = {0};
	TestRows	rows;

	test_must(tnp_model_open(&env.env, file->bytes, file->length, &model, &error), &error);
	test_rows_make(&rows, tnp_model_info(model), many_rows, 5);
	test_build(file->name, model, &rows);
	test_predict(file->name, model, &rows);
	test_rows_free(&rows);
	tnp_model_close(model);
	ok(held == 0, "  all is freed");
}

int
main(void)
{
	int			n,
				seen = 0;
	TestModel  *models = test_models(&n);

	test_env_init(&env, test_kernels());
	env.env.alloc = env.env.keep = measured_alloc;
	env.env.free = env.env.drop = measured_free;
	env.env.threads = one_thread;
	if (getenv("TNP_QUICK") != NULL || TEST_EVERY > 1)
	{
		few_rows /= 4;
		many_rows /= 4;
	}
	for (int i = 0; i < n; i++)
		if (strncmp(models[i].name, "scan", 4) == 0)
		{
			seen++;
			test_model(&models[i]);
		}
	ok(seen > 0, "there are models of scan attention");
	test_models_free(models, n);
	return done_testing();
}
