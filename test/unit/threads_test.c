/*
 * threads_test.c: answers do not depend on the number of threads, bitwise; interrupts and missing
 * memory end calls of many threads, and leave nothing behind.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cpu/cpu.h"
#include "models.h"
#include "tap.h"

#define CONTEXT 150				/* several tiles */
#define MIDDLE_CONTEXT 700		/* fewer spans than threads, which share out heads as well */
#define LONG_CONTEXT 2100		/* several spans for each of two threads */
#define MORE 31
#define QUERIES 100
#define DRAWS 29
#define STEPS 3
#define MOST_TARGETS 4
#define MOST_SHARES 5			/* of the round that a stalled call notices */
#define ORDERS 7

static int	n_threads;
static bool at_discretion;		/* of the engine, to have fewer */

static int
threads(void *arg)
{
	(void) arg;
	return at_discretion ? n_threads : -n_threads;
}

/* All that the engine can say about some rows, as doubles in one array. */
typedef struct Answers
{
	double	   *at;
	size_t		n;
} Answers;

/*
 * Ask everything, building the context from the first n rows of which all but MORE are appended
 * where the model can; the answers are the caller's.
 */
static TnpStatus
ask(const TnpModel *model, const TestRows *rows, int n, Answers *out, TnpError *error)
{
	bool		appends = tnp_model_info(model)->appendable;
	TnpRows		context = test_slice(rows, 0, appends ? n - MORE : n),
				more = test_slice(rows, n - MORE, MORE),
				queries = test_slice(rows, n, QUERIES),
				one = test_slice(rows, n, 1),
				few = test_slice(rows, n, STEPS);
	TnpEncoding *e = NULL;
	int			targets = tnp_model_info(model)->n_targets,
				size = tnp_answer_size(model);
	double	   *at;
	TnpStatus	status;

	out->n = (size_t) (QUERIES + STEPS + 2) * size + (DRAWS + 1) * STEPS * targets
		+ 2 + STEPS + STEPS * targets * (STEPS * targets + 1);
	out->at = at = calloc(out->n, sizeof(double));
	status = tnp_build(model, &context, tnp_whole_prefix(model, context.n), &e, error);
	if (status == TNP_OK && appends)
		status = tnp_append(e, &more, error);
	if (status == TNP_OK)
		status = tnp_predict(e, &queries, at, error);
	at += QUERIES * size;
	if (status == TNP_OK)
		status = tnp_predict(e, &one, at, error);
	at += size;
	if (status == TNP_OK)
		status = tnp_predict(e, &few, at, error);
	at += STEPS * size;
	if (status == TNP_OK)
		status = tnp_sample(e, &few, 3, 0, DRAWS, at, error);
	at += DRAWS * STEPS * targets;
	if (status == TNP_OK)
		status = tnp_sample(e, &few, 3, DRAWS, 1, at, error);
	at += STEPS * targets;
	if (status == TNP_OK)
		status = tnp_score(e, &few, ORDERS, 5, at, NULL, error);
	if (status == TNP_OK)
		status = tnp_score(e, &few, 0, 0, at + 1, at + 2, error);
	at += 2 + STEPS;
	if (status == TNP_OK && strcmp(tnp_model_info(model)->head, "joint-gaussian") == 0)
		status = tnp_joint(e, &few, at, at + STEPS * targets, error);
	at += STEPS * targets * (STEPS * targets + 1);
	if (status == TNP_OK && appends)
		status = tnp_append_predict(e, &few, &one, at, error);
	tnp_encoding_free(e);
	return status;
}

/* Draws of a group share what they can; a draw alone shares nothing. */
static void
test_group(const TestModel *file, const TnpKernels *kernels, const TnpModel *model,
		   const TestRows *rows, int n)
{
	TnpRows		context = test_slice(rows, 0, n),
				few = test_slice(rows, n, STEPS);
	TnpEncoding *e;
	TnpError	error = {0};
	double		group[DRAWS * STEPS * MOST_TARGETS],
				alone[STEPS * MOST_TARGETS];
	size_t		draw = (size_t) STEPS * tnp_model_info(model)->n_targets;
	bool		same = draw <= STEPS * MOST_TARGETS;

	test_must(tnp_build(model, &context, tnp_whole_prefix(model, n), &e, &error), &error);
	test_must(tnp_sample(e, &few, 3, 0, DRAWS, group, &error), &error);
	for (int b = 0; b < DRAWS; b++)
	{
		test_must(tnp_sample(e, &few, 3, b, 1, alone, &error), &error);
		same = same && memcmp(alone, group + b * draw, draw * sizeof(double)) == 0;
	}
	ok(same, "%s, %s, %d rows: draws of a group are those drawn alone", file->name, kernels->name,
	   n);
	tnp_encoding_free(e);
}

/* Calls of four threads that fail. */
static void
test_failures(const TestModel *file, const TnpKernels *kernels, TestEnv *env, const TnpModel *model,
			  const TestRows *rows, int n)
{
	TnpError	error = {0};
	long		polls = 0;

	/*
	 * stop at any of the first polls. How many there are depends on which thread does what, for
	 * only the caller's polls
	 */
	n_threads = 4;
	for (int stop = 1; stop <= 4; stop++)
	{
		Answers		answers;
		TnpStatus	status;
		long		live = env->live;

		env->polls = 0;
		env->stop_at = stop;
		status = ask(model, rows, n, &answers, &error);
		polls += status == (env->polls >= stop ? TNP_INTERRUPTED : TNP_OK) &&
			(stop > 1 || status == TNP_INTERRUPTED) && env->live == live;
		env->stop_at = 0;
		free(answers.at);
	}
	ok(polls == 4, "%s, %s, %d rows: an interrupt ends calls of four threads, nothing is left "
				   "behind", file->name, kernels->name, n);
	polls = 0;
	for (int fail = 1; fail <= 40; fail += 3)
	{
		Answers		answers;
		long		live = env->live;

		env->fail_at = env->calls + fail;
		polls += ask(model, rows, n, &answers, &error) == TNP_NO_MEMORY && env->live == live;
		env->fail_at = 0;
		free(answers.at);
	}
	ok(polls == 14, "%s, %s, %d rows: so does missing memory", file->name, kernels->name, n);
}

/*
 * quick: without the calls that fail, each of which begins with building the context, and with
 * fewer numbers of threads.
 */
static void
test_model(const TestModel *file, const TnpKernels *kernels, int n, bool quick)
{
	static const int several[] = {2, 3, 4, 7};
	TestEnv		env;
	TnpModel   *model;
	TnpError	error = {0};
	TestRows	rows;
	Answers		alone;

	test_env_init(&env, kernels);
	env.env.threads = threads;
	n_threads = 1;
	test_must(tnp_model_open(&env.env, file->bytes, file->length, &model, &error), &error);
	test_rows_make(&rows, tnp_model_info(model), n + QUERIES, 11);
	env.polls = 0;
	test_must(ask(model, &rows, n, &alone, &error), &error);
	test_group(file, kernels, model, &rows, n);
	for (size_t i = 0; i < sizeof(several) / sizeof(several[0]) / (quick ? 2 : 1); i++)
	{
		Answers		together;

		n_threads = several[i];
		test_must(ask(model, &rows, n, &together, &error), &error);
		ok(memcmp(alone.at, together.at, alone.n * sizeof(double)) == 0,
		   "%s, %s, %d rows: %d threads say what one says", file->name, kernels->name, n,
		   n_threads);
		for (size_t j = 0; j < alone.n; j++)
			if (memcmp(&alone.at[j], &together.at[j], sizeof(double)) != 0)
			{
				diag("number %zu of %zu: %.17g, %.17g", j, alone.n, alone.at[j], together.at[j]);
				break;
			}
		free(together.at);
	}

	if (!quick)
		test_failures(file, kernels, &env, model, &rows, n);
	free(alone.at);
	test_rows_free(&rows);
	tnp_model_close(model);
	ok(env.live == 0, "%s, %s: all memory is freed", file->name, kernels->name);
}

static pthread_t caller;
static const TnpKernels *true_kernels;
static atomic_int shares_of_others,
			shares_of_caller,
			polls_of_caller;
static int	patience = 1000;	/* of the calling thread, in half milliseconds */

/* The calling thread looks for interrupts, also while it waits for the others. */
static bool
count_poll(void *arg)
{
	(void) arg;
	atomic_fetch_add(&polls_of_caller, 1);
	return false;
}

/*
 * A share of the keys, for which every thread but the calling one takes so long as if others had
 * the processors: until the calling thread has looked for interrupts several times without a share
 * of its own, and so has waited for this one, whatever the machine does meanwhile.
 */
static void
slow_attend_span(const TnpAttention *a, int64_t span, int first, int end, float *sum,
				 float *scratch)
{
	true_kernels->attend_span(a, span, first, end, sum, scratch);
	if (pthread_equal(pthread_self(), caller))
	{
		/* a draw that others do not come to says nothing */
		for (; patience > 0 && atomic_load(&shares_of_others) == 0; patience--)
			nanosleep(&(struct timespec) {.tv_nsec = 500000}, NULL);
		atomic_fetch_add(&shares_of_caller, 1);
	}
	else
	{
		int			shares = -1,
					polls = 0;

		atomic_fetch_add(&shares_of_others, 1);
		while (shares != atomic_load(&shares_of_caller)
			   || atomic_load(&polls_of_caller) < polls + 3)
		{
			if (shares != atomic_load(&shares_of_caller))
			{
				shares = atomic_load(&shares_of_caller);
				polls = atomic_load(&polls_of_caller);
			}
			nanosleep(&(struct timespec) {.tv_nsec = 500000}, NULL);
		}
	}
}

/*
 * A draw whose threads stall it goes on without them, with the same answer; the next one does not
 * use them.
 */
static void
test_stalled(const TestModel *file, const TnpKernels *kernels)
{
	TnpKernels	slow = *kernels;
	const TnpKernels *both[2] = {kernels, &slow};
	double		drawn[2][QUERIES];
	int			shares[2] = {0};

	slow.attend_span = slow_attend_span;
	true_kernels = kernels;
	caller = pthread_self();
	n_threads = 4;
	for (int i = 0; i < 2; i++)
	{
		TestEnv		env;
		TnpModel   *model;
		TnpEncoding *e;
		TnpError	error = {0};
		TestRows	rows;
		TnpRows		context,
					queries;

		test_env_init(&env, both[i]);
		env.env.threads = threads;
		env.env.interrupted = count_poll;
		test_must(tnp_model_open(&env.env, file->bytes, file->length, &model, &error), &error);
		test_rows_make(&rows, tnp_model_info(model), LONG_CONTEXT + QUERIES, 11);
		context = test_slice(&rows, 0, LONG_CONTEXT);
		queries = test_slice(&rows, LONG_CONTEXT, QUERIES);
		test_must(tnp_build(model, &context, tnp_whole_prefix(model, LONG_CONTEXT), &e, &error),
				  &error);
		test_must(tnp_sample(e, &queries, 3, 0, 1, drawn[i], &error), &error);
		shares[0] = atomic_load(&shares_of_others);
		at_discretion = true;
		test_must(tnp_sample(e, &queries, 3, 0, 1, drawn[i], &error), &error);
		at_discretion = false;
		shares[1] = atomic_load(&shares_of_others) - shares[0];
		tnp_encoding_free(e);
		test_rows_free(&rows);
		tnp_model_close(model);
	}
	ok(memcmp(drawn[0], drawn[1], sizeof(drawn[0])) == 0,
	   "%s, %s: a draw that is stalled is the same", file->name, kernels->name);
	/*
	 * the round in which that shows is the last one that others have shares in, of two hundred
	 * rounds of five shares
	 */
	ok(shares[0] <= MOST_SHARES && (shares[0] == 0 || shares[1] == 0),
	   "%s, %s: and stalled once (shares of others: %d, then %d)", file->name, kernels->name,
	   shares[0],
	   shares[1]);
}

int
main(void)
{
	const TnpKernels *tables[TNP_CPU_TABLES];
	int			n_tables = tnp_cpu_all_kernels(tables, TNP_CPU_TABLES),
				n;
	TestModel  *models = test_models(&n);
	bool		quick = getenv("TNP_QUICK") != NULL;

	/* a quick run leaves out what encodes the whole context again for every row of a chain */
	for (int i = 0, turn = 0; i < n; i += quick ? 4 : TEST_EVERY, turn++)
		if (!quick || strncmp(models[i].name, "decoupled", strlen("decoupled")) != 0)
			test_model(&models[i], quick ? test_kernels() : tables[turn % n_tables], CONTEXT,
					   quick || turn % TEST_EVERY != 0);
	/*
	 * So many keys that threads share them out for a single row. Where each takes minutes, the
	 * fewest and one table are enough. A buffer of one row encodes all rows for each.
	 */
	for (int i = 0, t = 0; i < n && t < (quick ? 1 : n_tables); i++)
		if (strstr(models[i].name, "buffer") != NULL && strcmp(models[i].name, "buffer_one") != 0)
		{
			test_model(&models[i], quick ? test_kernels() : tables[t], MIDDLE_CONTEXT,
					   quick || t % TEST_EVERY != 0);
			t++;
		}
	for (int i = 0, t = 0; !quick && i < n && t * TEST_EVERY < n_tables; i++)
		if (strstr(models[i].name, "prefix") != NULL)
		{
			test_model(&models[i], tables[t], LONG_CONTEXT, t % TEST_EVERY != 0);
			t++;
		}
	for (int i = 0; !quick && i < n; i++)
		if (strcmp(models[i].name, "prefix_causal") == 0)
			test_stalled(&models[i], tables[0]);
	test_models_free(models, n);
	return done_testing();
}
