/*
 * progress_test.c: while rows are encoded, the progress callback is called: with small steps, never
 * backwards, and with all rows in the end; within a prefix as well as after it, with one thread or
 * many. A question calls the other one, with steps that add up to what is asked, and one that was
 * interrupted with less.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"
#include "models.h"
#include "tap.h"

#define PREFIX 520
#define MORE 100
#define ASKED 200				/* rows of a prediction */
#define CHAINED 9				/* of a chain */
#define DRAWS 5

/* What has been told. */
static int64_t told,			/* calls */
			steps,				/* different numbers strictly between none and all */
			last,
			total,
			jump;				/* the largest, from one number to the next */
static bool forward;

static void
begin(void)
{
	told = steps = last = total = jump = 0;
	forward = true;
}

static void
progress(void *arg, int64_t done, int64_t of)
{
	(void) arg;
	forward = forward && done >= last && done <= of && (told == 0 || of == total);
	steps += done > last && done < of;
	jump = done - last > jump ? done - last : jump;
	last = done;
	total = of;
	told++;
}

/* What questions have told. */
static int64_t answers,			/* calls */
			answered;			/* rows */
static bool more;				/* in each call */

static void
more_answered(void *arg, int64_t rows)
{
	(void) arg;
	more = more && rows > 0;
	answered += rows;
	answers++;
}

static int	n_threads;

static int
threads(void *arg)
{
	(void) arg;
	return -n_threads;
}

static void
told_of(const TestModel *file, const char *what, int64_t n, int64_t least)
{
	ok(forward && last == n && total == n, "%s, %d threads, %s: forward, to %lld rows", file->name,
	   n_threads, what, (long long) n);
	if (!ok(steps >= least, "  in %lld steps or more", (long long) least))
		diag("%lld steps, told %lld times", (long long) steps, (long long) told);
}

/* A question has been asked. */
static void
answered_of(const TestModel *file, const char *what, int64_t rows, int64_t least)
{
	ok(answered == rows, "%s, %d threads, %s: %lld rows in all", file->name, n_threads, what,
	   (long long) rows);
	if (!ok(more && answers >= least, "  in %lld steps or more", (long long) least))
		diag("%lld steps", (long long) answers);
	answers = answered = 0;
	more = true;
}

static void
test_questions(const TestModel *file, const TnpModel *model, const TnpEncoding *e,
			   const TestRows *rows, TestEnv *env)
{
	const TnpModelInfo *info = tnp_model_info(model);
	TnpRows		queries = test_slice(rows, 0, ASKED),
				few = test_slice(rows, 0, CHAINED);
	bool		joint = strcmp(info->head, "joint-gaussian") == 0;
	double	   *params = malloc((size_t) ASKED * tnp_answer_size(model) * sizeof(double)),
			   *y = malloc((size_t) DRAWS * CHAINED * info->n_targets * sizeof(double)),
				density;
	TnpError	error;
	int64_t		steps = n_threads == 1 ? 2 : 1;
	TnpStatus	status;

	answers = answered = 0;
	more = true;
	queries.y = NULL;
	test_must(tnp_predict(e, &queries, params, &error), &error);
	answered_of(file, "predictions", ASKED, steps);
	test_must(tnp_score(e, &few, 0, 0, &density, NULL, &error), &error);
	answered_of(file, "a density", CHAINED, 1);
	test_must(tnp_score(e, &few, 3, 1, &density, NULL, &error), &error);
	answered_of(file, "a density of orders", 3 * CHAINED, steps);
	few.y = NULL;
	test_must(tnp_sample(e, &few, 1, 0, DRAWS, y, &error), &error);
	answered_of(file, "draws", (int64_t) DRAWS * CHAINED, steps);
	if (joint)
	{
		int			n = CHAINED * info->n_targets;
		double	   *covariance = malloc((size_t) n * n * sizeof(double));

		test_must(tnp_joint(e, &few, y, covariance, &error), &error);
		answered_of(file, "a joint distribution", CHAINED, steps);
		free(covariance);
	}
	env->polls = 0;
	env->stop_at = 2;
	status = tnp_predict(e, &queries, params, &error);
	/* with several threads the others may have answered all by the time one sees the interrupt */
	ok(status == TNP_OK ? answered == ASKED : answered < ASKED + (n_threads > 1),
	   "%s, %d threads: what is interrupted is not answered", file->name, n_threads);
	env->stop_at = 0;
	free(params);
	free(y);
}

static void
test_model(const TestModel *file, const TnpKernels *kernels)
{
	TestEnv		env;
	TnpModel   *model;
	TnpEncoding *e;
	TnpError	error = {0};
	TestRows	rows;
	TnpRows		first,
				later,
				query;
	TnpStatus	status;
	double	   *params;

	test_env_init(&env, kernels);
	env.env.threads = threads;
	env.env.progress = progress;
	env.env.answered = more_answered;
	test_must(tnp_model_open(&env.env, file->bytes, file->length, &model, &error), &error);
	test_rows_make(&rows, tnp_model_info(model), PREFIX + MORE, 5);
	first = test_slice(&rows, 0, PREFIX);
	later = test_slice(&rows, PREFIX, MORE);
	query = test_slice(&rows, 0, 1);
	begin();
	test_must(tnp_build(model, &first, tnp_whole_prefix(model, PREFIX), &e, &error), &error);
	/* a step is a tile that the calling thread has done: beside other threads it may do none */
	told_of(file, "the first rows", PREFIX, n_threads == 1 ? 4 : 0);
	/*
	 * in a single layer the rows only store: the embedding is all that is seen, and counts as half
	 */
	if (n_threads == 1)
		ok(3 * jump <= 2 * PREFIX, "%s: in all layers", file->name);
	begin();
	params = malloc((size_t) tnp_answer_size(model) * sizeof(double));
	test_must(tnp_predict(e, &query, params, &error), &error);
	ok(told == 0, "%s, %d threads: a question encodes nothing", file->name, n_threads);
	test_questions(file, model, e, &rows, &env);
	if (tnp_model_info(model)->appendable)
	{
		begin();
		test_must(tnp_append(e, &later, &error), &error);
		told_of(file, "rows after them", MORE, n_threads == 1 ? 1 : 0);
	}
	env.polls = 0;
	env.stop_at = 2;
	begin();
	tnp_encoding_free(e);
	status = tnp_build(model, &first, tnp_whole_prefix(model, PREFIX), &e, &error);
	/* only the calling thread polls: where others have taken all tiles, it may do so but once */
	ok(n_threads > 1 || env.polls >= env.stop_at, "%s, %d threads: polls twice", file->name,
	   n_threads);
	ok(env.polls >= env.stop_at ? status == TNP_INTERRUPTED && last < PREFIX :
	   status == TNP_OK && last == PREFIX,
	   "%s, %d threads: what is interrupted is not told to be done", file->name, n_threads);
	if (status == TNP_OK)
		tnp_encoding_free(e);
	free(params);
	test_rows_free(&rows);
	tnp_model_close(model);
}

int
main(void)
{
	int			n;
	TestModel  *models = test_models(&n);

	bool		quick = getenv("TNP_QUICK") != NULL || TEST_EVERY > 1;

	for (int i = 0; i < n; i++)
		for (n_threads = quick ? 4 : 1; n_threads <= 4; n_threads += 3)
			test_model(&models[i], test_kernels());
	test_models_free(models, n);
	return done_testing();
}
