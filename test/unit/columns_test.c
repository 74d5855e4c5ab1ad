/*
 * columns_test.c: models that read columns: an answer is its row's own, copies are as good, joint
 * questions encode again, and files that say too little or the wrong thing are refused. Comparisons
 * with the package's answers are test/reference/check_columns.py.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"
#include "engine/tnp.h"
#include "models.h"
#include "tap.h"

#define ROWS 23
#define QUERIES 7

typedef struct Bytes
{
	char	   *bytes;
	size_t		length;
} Bytes;

static Bytes
read_file(const char *name)
{
	const char *folder = getenv("POSTERIOR_TEST_MODELS");
	char		path[1024];
	Bytes		b = {NULL, 0};
	FILE	   *file;

	snprintf(path, sizeof(path), "%s/columns/%s.safetensors",
			 folder != NULL ? folder : "build/models", name);
	file = fopen(path, "rb");
	if (file == NULL)
	{
		printf("Bail out! there is no %s\n", path);
		exit(1);
	}
	fseek(file, 0, SEEK_END);
	b.length = (size_t) ftell(file);
	rewind(file);
	b.bytes = malloc(b.length);
	if (fread(b.bytes, 1, b.length, file) != b.length)
		exit(1);
	fclose(file);
	return b;
}

static int
views(void *arg)
{
	return *(int *) arg;
}

/* A model with so many estimators. */
static TnpModel *
open_model(const Bytes *file, const TnpKernels *kernels, int *estimators, TestEnv *env)
{
	TnpModel   *model;
	TnpError	error;

	test_env_init(env, kernels);
	if (*estimators > 1)
	{
		env->env = tnp_default_env;
		env->env.kernels = kernels;
		env->env.arg = estimators;
		env->env.estimators = views;
	}
	test_must(tnp_model_open(&env->env, file->bytes, file->length, &model, &error), &error);
	return model;
}

static int
answer_size(const TnpModel *model)
{
	TnpDistributionKind kind;
	int			n;

	tnp_answer_shape(model, &kind, &n);
	return tnp_distribution_size(kind, n);
}

static void
test_answers(const char *name, int estimators, const TnpKernels *kernels)
{
	Bytes		file = read_file(name);
	TestEnv		env;
	TnpModel   *model = open_model(&file, kernels, &estimators, &env);
	TestRows	rows;
	TnpRows		context,
				queries;
	TnpEncoding *e,
			   *copy,
			   *view;
	TnpError	error;
	int			size = answer_size(model);
	double	   *together = calloc(QUERIES, size * sizeof(double)),
			   *alone = calloc(QUERIES, size * sizeof(double));
	bool		same = true;

	test_rows_make(&rows, tnp_model_info(model), ROWS + QUERIES, 7);
	context = test_slice(&rows, 0, ROWS);
	queries = test_slice(&rows, ROWS, QUERIES);
	test_must(tnp_build(model, &context, ROWS, &e, &error), &error);
	test_must(tnp_predict(e, &queries, together, &error), &error);
	for (int i = 0; i < QUERIES; i++)
	{
		TnpRows		one = test_slice(&rows, ROWS + i, 1);

		test_must(tnp_predict(e, &one, alone + (size_t) i * size, &error), &error);
	}
	same = memcmp(together, alone, QUERIES * size * sizeof(double)) == 0;
	ok(same, "%s, %d estimators, %s: alone = in a batch", name, estimators, kernels->name);

	test_must(tnp_encoding_copy(e, ROWS, ROWS, true, &copy, &error), &error);
	ok(tnp_encoding_bytes(copy) >= tnp_encoding_bytes(e), "%s: a copy has its bytes", name);
	tnp_encoding_free(e);
	test_must(tnp_encoding_first(copy, ROWS, &view, &error), &error);
	memset(alone, 0, QUERIES * size * sizeof(double));
	test_must(tnp_predict(view, &queries, alone, &error), &error);
	ok(memcmp(together, alone, QUERIES * size * sizeof(double)) == 0,
	   "%s: a view of a kept copy answers the same", name);
	ok(tnp_append(view, &queries, &error) == TNP_BAD_ARGUMENT, "%s: rows cannot be appended", name);
	tnp_encoding_free(view);
	tnp_encoding_free(copy);
	test_rows_free(&rows);
	tnp_model_close(model);
	ok(estimators > 1 || env.live == 0, "%s: everything is freed", name);
	free(together);
	free(alone);
	free(file.bytes);
}

/* Joint questions are the chain rule over encodings with one row more each. */
static void
test_joint(const char *name)
{
	Bytes		file = read_file(name);
	int			one = 1;
	TestEnv		env;
	TnpModel   *model = open_model(&file, &tnp_reference_kernels, &one, &env);
	TestRows	rows;
	TnpRows		context,
				next,
				last;
	TnpEncoding *e,
			   *longer;
	TnpError	error;
	TnpDistribution d;
	double	   *params = calloc(1, answer_size(model) * sizeof(double)),
				joint,
				steps[2],
				drawn[4],
				again[2];

	test_rows_make(&rows, tnp_model_info(model), 12, 3);
	context = test_slice(&rows, 0, 10);
	next = test_slice(&rows, 10, 2);
	last = test_slice(&rows, 11, 1);
	test_must(tnp_build(model, &context, 10, &e, &error), &error);
	test_must(tnp_score(e, &next, 0, 0, &joint, steps, &error), &error);
	context.n = 11;
	test_must(tnp_build(model, &context, 11, &longer, &error), &error);
	test_must(tnp_predict(longer, &last, params, &error), &error);
	tnp_answer_shape(model, &d.kind, &d.n);
	d.params = params;
	ok(steps[1] == tnp_log_pdf(&d, rows.y[11]) && joint == steps[0] + steps[1],
	   "%s: a joint density is a product of conditional ones", name);
	test_must(tnp_sample(e, &next, 5, 0, 2, drawn, &error), &error);
	test_must(tnp_sample(e, &next, 5, 1, 1, again, &error), &error);
	ok(memcmp(drawn + 2, again, sizeof(again)) == 0 && isfinite(drawn[0]),
	   "%s: a draw depends on its number only", name);
	tnp_encoding_free(longer);
	tnp_encoding_free(e);
	test_rows_free(&rows);
	tnp_model_close(model);
	ok(env.live == 0, "%s: everything is freed", name);
	free(params);
	free(file.bytes);
}

/* The file with `from` overwritten by `to` of the same length. */
static void
refused(const char *name, const char *from, const char *to, const char *message)
{
	Bytes		file = read_file(name);
	TnpModel   *model;
	TnpError	error = {0};
	char	   *at = NULL;

	for (size_t i = 0; i + strlen(from) < file.length && at == NULL; i++)
		if (memcmp(file.bytes + i, from, strlen(from)) == 0)
			at = file.bytes + i;
	if (at == NULL || strlen(from) != strlen(to))
		exit(2);
	memcpy(at, to, strlen(to));
	ok(tnp_model_open(NULL, file.bytes, file.length, &model, &error) != TNP_OK
	   && strstr(error.message, message) != NULL, "refused: %s (%s)", message, error.message);
	free(file.bytes);
}

static void
test_refusals(void)
{
	refused("columns", "row_nhead\\\": 2", "row_nhead\\\": 3", "row_nhead does not divide");
	refused("columns", "col_nhead\\\": 4", "col_nhead\\\": 5", "col_nhead does not divide");
	/* a wrong number of heads that divides shows in the MLPs of queries */
	refused("columns", "col_nhead\\\": 4", "col_nhead\\\": 8", "has the wrong shape");
	refused("columns", "icl_nhead\\\": 4", "icl_nhead\\\": 2", "has the wrong shape");
	refused("columns", "row_nhead\\\": 2", "row_nhead\\\": 4", "has the wrong shape");
	refused("columns", "icl_nhead", "icl_heads", "icl_heads");
	refused("columns", "dropout", "dropped", "unknown configuration key \"dropped\"");
	refused("columns", "\\\"gelu\\\"", "\\\"silu\\\"", "unknown activation");
	refused("columns", "norm_first\\\": true", "norm_first\\\":false", "norm_first = false");
	refused("columns", "row_rope_interleaved\\\": false", "row_rope_interleaved\\\": 12345",
			"row_rope_interleaved");
	refused("columns", "max_classes\\\": 0", "max_classes\\\": 1", "max_classes");
}

/* A context with three views of its table and what is asked of it; frees what it makes. */
static TnpStatus
work(const TnpModel *model, const TestRows *rows, double *params, TnpError *error)
{
	TnpRows		context = test_slice(rows, 0, ROWS),
				asked = test_slice(rows, ROWS, 2);
	TnpEncoding *e;
	double		density;
	TnpStatus	status = tnp_build_views(model, &context, ROWS, 3, &e, error);

	if (status != TNP_OK)
		return status;
	status = tnp_predict(e, &asked, params, error);
	if (status == TNP_OK)
		status = tnp_score(e, &asked, 0, 0, &density, NULL, error);
	if (status == TNP_OK && tnp_encoding_views(e) != 3)
		status = TNP_BAD_ARGUMENT;
	tnp_encoding_free(e);
	return status;
}

static int	wanted_threads;

static int
threads(void *arg)
{
	(void) arg;
	return wanted_threads;
}

/*
 * Answers do not depend on the number of threads; and whatever allocation fails, and at whatever
 * poll a call is interrupted, it says so and frees all it has.
 */
static void
test_faults(const char *name)
{
	Bytes		file = read_file(name);
	TestEnv		env;
	TestRows	rows;
	TnpModel   *model;
	TnpError	error;
	int			one = 1,
				size;
	double	   *params,
			   *shared;
	long		held,
				step;
	bool		quick = getenv("TNP_QUICK") != NULL;

	model = open_model(&file, test_kernels(), &one, &env);
	tnp_model_close(model);
	env.env.threads = threads;
	wanted_threads = 1;
	test_must(tnp_model_open(&env.env, file.bytes, file.length, &model, &error), &error);
	test_rows_make(&rows, tnp_model_info(model), ROWS + QUERIES, 7);
	size = answer_size(model);
	params = calloc(2, size * sizeof(double));
	shared = calloc(2, size * sizeof(double));
	test_must(work(model, &rows, params, &error), &error);
	wanted_threads = -3;
	test_must(work(model, &rows, shared, &error), &error);
	ok(memcmp(params, shared, 2 * size * sizeof(double)) == 0, "%s: one thread = three", name);
	wanted_threads = 1;
	held = env.live;
	for (int memory = 0; memory < 2; memory++)
	{
		TnpStatus	expected = memory ? TNP_NO_MEMORY : TNP_INTERRUPTED,
					status = expected;
		bool		clean = true;
		long		n;

		/* polls are five times as many as allocations */
		step = !quick ? (TEST_EVERY > 1 ? 15 : 3) : memory ? 40 : 240;
		for (n = 1; status == expected; n += step)
		{
			env.calls = env.polls = 0;
			env.fail_at = memory ? n : 0;
			env.stop_at = memory ? 0 : n;
			status = work(model, &rows, shared, &error);
			clean = clean && env.live == held;
		}
		env.fail_at = env.stop_at = 0;
		ok(clean && status == TNP_OK && n > 3 * step, "%s: survives %s at any of %ld places", name,
		   memory ? "the lack of memory" : "an interrupt", n - step);
	}
	test_must(work(model, &rows, shared, &error), &error);
	ok(memcmp(params, shared, 2 * size * sizeof(double)) == 0, "%s: and works afterwards", name);
	tnp_model_close(model);
	test_rows_free(&rows);
	free(params);
	free(shared);
	free(file.bytes);
}

int
main(void)
{
	const TnpKernels *tables[TNP_CPU_TABLES];
	int			n = tnp_cpu_all_kernels(tables, TNP_CPU_TABLES);
	bool		quick = getenv("TNP_QUICK") != NULL;

	for (int i = -1; i < (quick ? 0 : n); i++)
	{
		const TnpKernels *kernels = quick ? test_kernels()
			: i < 0 ? &tnp_reference_kernels : tables[i];

		test_answers("columns", 1, kernels);
		test_answers("columns_classes", 5, kernels);
		test_answers("columns_first", 1, kernels);
	}
	test_joint("columns");
	test_joint("columns_classes");
	test_faults("columns");
	test_faults("columns_classes");
	test_refusals();
	done_testing();
}
