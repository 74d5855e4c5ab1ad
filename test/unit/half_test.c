/*
 * half_test.c: keys and values of 16 bits give nearly the answers that those of 32 bits give, take
 * half their memory, and may be as large as they like.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"
#include "models.h"
#include "tap.h"

#define CONTEXT 300
#define QUERIES 200

/*
 * Of the differences between means, relative to the standard deviation, the 99th percentile is at
 * most this: the accuracy that the default promises.
 */
#define MOST 0.01

/*
 * Means and standard deviations [QUERIES] of predictions by these kernels, and the bytes of the
 * encoding.
 */
static size_t
predict(const TestModel *file, const TnpKernels *kernels, double *mean, double *sd)
{
	TestEnv		env;
	TnpModel   *model;
	TnpEncoding *e;
	TnpError	error = {0};
	TestRows	rows;
	TnpRows		context,
				queries;
	TnpDistribution d;
	double	   *params;
	size_t		bytes;
	int			size;

	test_env_init(&env, kernels);
	test_must(tnp_model_open(&env.env, file->bytes, file->length, &model, &error), &error);
	test_rows_make(&rows, tnp_model_info(model), CONTEXT + QUERIES, 3);
	context = test_slice(&rows, 0, CONTEXT);
	queries = test_slice(&rows, CONTEXT, QUERIES);
	tnp_answer_shape(model, &d.kind, &d.n);
	size = tnp_distribution_size(d.kind, d.n);
	params = malloc((size_t) QUERIES * tnp_answer_size(model) * sizeof(double));
	test_must(tnp_build(model, &context, tnp_whole_prefix(model, CONTEXT), &e, &error), &error);
	test_must(tnp_predict(e, &queries, params, &error), &error);
	for (int i = 0; i < QUERIES; i++)
	{
		/* of several targets the first */
		d.params = params + (size_t) i * size * tnp_model_info(model)->n_targets;
		/* of classes the probability of the first */
		mean[i] = d.kind == TNP_CLASSES ? d.params[0] : tnp_mean(&d);
		sd[i] = d.kind == TNP_CLASSES ? 1 : sqrt(tnp_variance(&d));
	}
	bytes = tnp_encoding_bytes(e);
	tnp_encoding_free(e);
	free(params);
	test_rows_free(&rows);
	tnp_model_close(model);
	ok(env.live == 0, "%s, %s: all memory is freed", file->name, kernels->name);
	return bytes;
}

static int
ascending(const void *a, const void *b)
{
	double		x = *(const double *) a,
				y = *(const double *) b;

	return (x > y) - (x < y);
}

/*
 * Whether a family keeps numbers of 32 or 64 bits, whatever the kernels: it does not attend by
 * them.
 */
static bool
keeps_whole_numbers(const TestModel *file)
{
	return strncmp(file->name, "mean", 4) == 0 || strncmp(file->name, "scan", 4) == 0
		|| strncmp(file->name, "sums", 4) == 0 || strncmp(file->name, "deep", 4) == 0
		|| strncmp(file->name, "random", 6) == 0 || strcmp(file->name, "decoupled_linear") == 0;
}

static void
test_model(const TestModel *file, const TnpKernels *half)
{
	double		mean[2][QUERIES],
				sd[2][QUERIES],
				error[QUERIES];
	size_t		whole_bytes = predict(file, tnp_cpu_kernels(), mean[0], sd[0]),
				half_bytes = predict(file, half, mean[1], sd[1]);

	for (int i = 0; i < QUERIES; i++)
		error[i] = fabs(mean[1][i] - mean[0][i]) / sd[0][i];
	qsort(error, QUERIES, sizeof(double), ascending);
	if (!ok(error[QUERIES * 99 / 100] <= MOST, "%s, %s: means are as near as is promised",
			file->name, half->name))
		diag("99th percentile %g, largest %g", error[QUERIES * 99 / 100], error[QUERIES - 1]);
	ok(keeps_whole_numbers(file) ? half_bytes == whole_bytes : half_bytes < whole_bytes,
	   "%s, %s: %s memory", file->name, half->name, keeps_whole_numbers(file) ? "as much" : "less");
}

/* Numbers beyond the largest half become the largest: no infinity gets into an encoding. */
static void
test_range(const TnpKernels *half)
{
	const float x[5] = {1e6f, -1e6f, 65504, 1, 3e-8f};
	const uint16_t want[5] = {0x7bff, 0xfbff, 0x7bff, 0x3c00, 1};
	uint16_t	got[5];

	half->narrow(5, x, got);
	ok(memcmp(got, want, sizeof(want)) == 0, "%s: numbers are rounded and bounded", half->name);
}

int
main(void)
{
	const TnpKernels *tables[TNP_CPU_TABLES];
	int			n_tables = tnp_cpu_all_kernels(tables, TNP_CPU_TABLES),
				n,
				halves = 0;
	TestModel  *models = test_models(&n);

	for (int t = 0; t < n_tables; t++)
		if (tables[t]->number == sizeof(uint16_t))
		{
			halves++;
			test_range(tables[t]);
			for (int i = t % TEST_EVERY; i < n; i += getenv("TNP_QUICK") != NULL ? 30 : TEST_EVERY)
				test_model(&models[i], tables[t]);
		}
	ok((tnp_cpu_half_kernels()->number == sizeof(uint16_t)) == (halves > 0),
	   "the best table with halves is one if there is any");
	test_models_free(models, n);
	return done_testing();
}
