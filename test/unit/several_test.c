/*
 * several_test.c: a model of one target that takes several (tnp_model_several) answers about each
 * as it does about that one alone, bitwise, and keeps what they share once.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <stdlib.h>

#include "cpu/cpu.h"
#include "engine/file/model.h"
#include "engine/network/kv_cache.h"
#include "models.h"
#include "tap.h"

#define CONTEXT 130				/* more than a tile */
#define MORE 5
#define QUERIES 40
#define STEPS 3
#define DRAWS 4

static const TestModel *file;	/* under test */
static const TnpKernels *kernels;
static int	n_threads;

static int
threads(void *arg)
{
	(void) arg;
	return -n_threads;
}

static bool
holds(bool condition, const char *what)
{
	return ok(condition, "%s, %s: %s", file->name, kernels->name, what);
}

/* The same rows with target t alone; y [rows] is the caller's. */
static TnpRows
one_target(const TnpRows *rows, int t, double *y)
{
	TnpRows		one = *rows;

	for (int64_t i = 0; i < rows->n; i++)
		y[i] = rows->y[i * rows->n_targets + t];
	one.y = y;
	one.n_targets = 1;
	return one;
}

/* All that is asked about a context. */
typedef struct Answers
{
	double	   *many,			/* [QUERIES, size], and of one query [size] */
			   *one,
				score,
				draws[DRAWS * STEPS * TNP_MAX_TARGETS];
	size_t		bytes;
} Answers;

static double *
numbers(size_t n)
{
	double	   *x = calloc(n, sizeof(double));

	if (x == NULL)
		exit(1);
	return x;
}

/* Rows of the context, of which the last MORE are appended if wanted; then queries. */
static void
ask(const TnpModel *model, const TnpRows *rows, bool append, Answers *a)
{
	int			size = tnp_answer_size(model);
	TnpRows		context = *rows,
				more = *rows,
				queries = *rows,
				few = *rows;
	int64_t		targets = rows->n_targets;
	TnpEncoding *e;
	TnpError	error = {0};

	context.n = append ? CONTEXT - MORE : CONTEXT;
	more.n = MORE;
	more.x += (CONTEXT - MORE) * rows->n_features;
	more.y += (CONTEXT - MORE) * targets;
	queries.n = QUERIES;
	queries.x += CONTEXT * rows->n_features;
	queries.y = NULL;
	few.n = STEPS;
	few.x += CONTEXT * rows->n_features;
	few.y += CONTEXT * targets;
	a->many = numbers((size_t) QUERIES * size);
	a->one = numbers(size);
	test_must(tnp_build(model, &context,
						tnp_whole_prefix(model, tnp_model_info(model)->appendable ? CONTEXT - MORE
										 : CONTEXT), &e, &error), &error);
	if (append)
		test_must(tnp_append(e, &more, &error), &error);
	test_must(tnp_predict(e, &queries, a->many, &error), &error);
	test_must(tnp_score(e, &few, 0, 0, &a->score, NULL, &error), &error);
	queries.n = STEPS;
	test_must(tnp_sample(e, &queries, 3, 0, DRAWS, a->draws, &error), &error);
	queries.n = 1;
	test_must(tnp_predict(e, &queries, a->one, &error), &error);
	a->bytes = tnp_encoding_bytes(e);
	tnp_encoding_free(e);
}

static void
forget(Answers *a)
{
	free(a->many);
	free(a->one);
}

/* `targets` targets at once, by a team of n threads, and each alone by one. */
static void
test_several(const TnpModel *model, int targets, int n)
{
	TnpModel   *several;
	TnpModelInfo info = *tnp_model_info(model);
	int			size = tnp_answer_size(model);
	bool		appends = info.appendable,
				many = true,
				one = true,
				draws = true;
	double		sum = 0,
				y[CONTEXT + QUERIES];
	TnpCacheShape shape;
	size_t		keys;
	TestRows	rows;
	Answers		all;
	TnpError	error = {0};

	info.n_targets = targets;
	test_rows_make(&rows, &info, CONTEXT + QUERIES, 9);
	test_must(tnp_model_several(model, targets, &several, &error), &error);
	n_threads = n;
	ask(several, &rows.view, appends, &all);
	if (appends)
	{
		Answers		fresh;

		ask(several, &rows.view, false, &fresh);
		holds(memcmp(all.many, fresh.many, (size_t) QUERIES * size * targets * sizeof(double)) == 0,
			  "appended is the same as built at once");
		forget(&fresh);
	}
	n_threads = 1;
	for (int t = 0; t < targets; t++)
	{
		TnpRows		alone = one_target(&rows.view, t, y);
		Answers		a;

		ask(model, &alone, appends, &a);
		for (int i = 0; i < QUERIES; i++)
			many = many && memcmp(all.many + ((size_t) i * targets + t) * size,
								  a.many + (size_t) i * size, size * sizeof(double)) == 0;
		one = one && memcmp(all.one + t * size, a.one, size * sizeof(double)) == 0;
		for (int i = 0; t == 0 && i < DRAWS * STEPS; i++)
			draws = draws && all.draws[i * targets] == a.draws[i];
		sum += a.score;
		forget(&a);
	}
	ok(many && one, "%s, %s: each of %d targets by %d threads is as if it were alone, bitwise",
	   file->name, kernels->name, targets, n);
	holds(draws, "draws of the first target are those of it alone");
	/* bars without tails have densities of 0 */
	ok(all.score == sum || fabs(all.score - sum) <= 1e-9 * fmax(1, fabs(sum)),
	   "%s, %s: the log density is the sum over targets", file->name, kernels->name);
	model->config.family->cache_shape(model, &shape);
	keys = (size_t) shape.layers * shape.heads * shape.key_width * shape.number;
	holds(tnp_model_info(several)->encoding_bytes_per_row
		  == keys + targets * (info.encoding_bytes_per_row - keys),
		  "a row takes its keys once, values and sums of each target");
	forget(&all);
	tnp_model_close(several);
	test_rows_free(&rows);
}

static void
test_refused(const TnpModel *model)
{
	bool		each = tnp_model_info(model)->each_target;
	TnpModel   *several = NULL;
	TnpError	error = {0};
	TnpStatus	two = tnp_model_several(model, 2, &several, &error);

	holds(each ? two == TNP_OK && several != NULL : two == TNP_BAD_ARGUMENT && several == NULL,
		  each ? "it takes several targets" : "several targets are refused");
	tnp_model_close(several);
	if (!each)
		return;
	holds(tnp_model_several(model, 0, &several, &error) == TNP_BAD_ARGUMENT && several == NULL,
		  "no targets are refused");
	holds(tnp_model_several(model, TNP_MAX_TARGETS + 1, &several, &error) == TNP_BAD_ARGUMENT
		  && several == NULL, "too many targets are refused");
}

static void
test_model(const TestModel *m, const TnpKernels *k)
{
	TestEnv		env;
	TnpModel   *model;
	TnpError	error = {0};

	file = m;
	kernels = k;
	test_env_init(&env, k);
	env.env.threads = threads;
	n_threads = 1;
	test_must(tnp_model_open(&env.env, m->bytes, m->length, &model, &error), &error);
	test_refused(model);
	if (tnp_model_info(model)->each_target)
	{
		test_several(model, 5, 3);
		test_several(model, 1, 1);
		if (k != &tnp_reference_kernels && TEST_EVERY == 1 && getenv("TNP_QUICK") == NULL)
			test_several(model, TNP_MAX_TARGETS, 2);
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
