/*
 * weights_test.c: weights that are numbers of 16 bits are read as such where few rows wait for
 * them, and no answer changes by a bit; all others are left as they are.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"
#include "engine/file/safetensors.h"
#include "models.h"
#include "tap.h"

#define CONTEXT 70
/* 1 + 2 + … + 12: a batch for every number of rows that kernels take together */
#define QUERIES 78
#define DRAWS 5
#define MOST_NUMBERS 4096		/* of one answer of a test model */

static const TnpKernels *table;
static int	packed;				/* matrices packed as halves */

static void
count_packed(const float *weight, int out, int stride, uint16_t *halves)
{
	packed++;
	table->pack_halves(weight, out, stride, halves);
}

/* A weight of a file whose tensors are F32. */
static float
get(const unsigned char *at)
{
	float		x;

	memcpy(&x, at, sizeof(x));
	return x;
}

static void
put(unsigned char *at, float x)
{
	memcpy(at, &x, sizeof(x));
}

/*
 * Copy a model and make all its weights halves, some of them subnormal; false for a file that is in
 * halves already, or has no weights. *first is where the first weight of a matrix is.
 */
static bool
round_weights(const TestModel *model, unsigned char *bytes, unsigned char **first)
{
	TestEnv		env;
	TnpFile		file;
	TnpError	error;
	bool		done;

	memcpy(bytes, model->bytes, model->length);
	test_env_init(&env, NULL);
	test_must(tnp_file_open(&env.env, bytes, model->length, &file, &error), &error);
	done = file.n_tensors > 0;
	for (int t = 0; t < file.n_tensors; t++)
	{
		unsigned char *data = (unsigned char *) file.tensors[t].data;

		if (file.tensors[t].half)
			done = false;
		/* borders must stay distinct */
		for (int64_t i = 0; done && strcmp(file.tensors[t].name, "head.borders") != 0 &&
			 i < file.tensors[t].n_elements; i++)
		{
			float		x = get(data + 4 * i),
						unit = fabsf(x) < 0x1p-14f ? 0x1p-24f : ldexpf(1, ilogbf(x) - 10);

			put(data + 4 * i, truncf(x / unit) * unit);
			if (i % 50 == 7)
				put(data + 4 * i, x < 0 ? -0x1p-24f : 0x3ffp-24f);
		}
		if (strstr(file.tensors[t].name, "ff.0.weight") != NULL)
			*first = data;
	}
	tnp_file_close(&env.env, &file);
	return done;
}

/*
 * What a model says about QUERIES queries, all at once or one, then two, then three and so on, and
 * DRAWS draws of four of them. Returns how many numbers these are.
 */
static size_t
answer(const unsigned char *bytes, size_t length, const TnpKernels *kernels, bool at_once,
	   double *answers)
{
	TestEnv		env;
	TnpModel   *model;
	TnpEncoding *e;
	TnpError	error = {0};
	TestRows	rows;
	TnpRows		context;
	size_t		used = 0;

	test_env_init(&env, kernels);
	packed = 0;
	test_must(tnp_model_open(&env.env, bytes, length, &model, &error), &error);
	test_rows_make(&rows, tnp_model_info(model), CONTEXT + QUERIES, 5);
	context = test_slice(&rows, 0, CONTEXT);
	test_must(tnp_build(model, &context, tnp_whole_prefix(model, CONTEXT), &e, &error), &error);
	for (int i = 0, n = at_once ? QUERIES : 1; i < QUERIES; i += n++)
	{
		TnpRows		asked = test_slice(&rows, CONTEXT + i, n);

		test_must(tnp_predict(e, &asked, answers + used, &error), &error);
		used += (size_t) asked.n * tnp_answer_size(model);
	}
	context = test_slice(&rows, CONTEXT, 4);
	test_must(tnp_sample(e, &context, 3, 0, DRAWS, answers + used, &error), &error);
	used += (size_t) 4 * DRAWS * context.n_targets;
	tnp_encoding_free(e);
	test_rows_free(&rows);
	tnp_model_close(model);
	return used;
}

/*
 * The same answers whether rows come together or a few at a time, and whether these few read the
 * weights as halves.
 */
static void
test_model(const TestModel *file, const unsigned char *bytes, double *answers[2])
{
	TnpKernels	halves = *table,
				floats = *table;
	size_t		n;

	halves.pack_halves = count_packed;
	floats.pack_halves = NULL;
	n = answer(bytes, file->length, &floats, true, answers[0]);
	answer(bytes, file->length, &floats, false, answers[1]);
	ok(memcmp(answers[0], answers[1], n * sizeof(double)) == 0,
	   "%s, %s: any number of rows at once gives the same answers", file->name, table->name);
	answer(bytes, file->length, &halves, false, answers[1]);
	ok(packed > 0 && memcmp(answers[0], answers[1], n * sizeof(double)) == 0,
	   "%s, %s: weights of 16 bits give the same answers", file->name, table->name);
}

/* A matrix is packed as halves if every weight is one. */
static void
test_edges(const TestModel *file, const unsigned char *bytes, unsigned char *at, double *answers)
{
	static const float half[] = {65504, -65504, 0x1p-24f, -0x1p-14f, 0x3ffp-24f, 0x7ffp-10f, 0,
								 -0.0f},
				other[] = {65520, 0x1p-25f, 0x1.8p-24f, 0x801p-25f, 0xfffp-10f, 1 + 0x1p-11f, 65536,
						   1e-30f};
	const int	n = getenv("TNP_QUICK") != NULL ? 2 : sizeof(half) / sizeof(half[0]);
	TnpKernels	halves = *table;
	int			all,
				kept = 0,
				left = 0;

	halves.pack_halves = count_packed;
	put(at, 1);
	answer(bytes, file->length, &halves, true, answers);
	all = packed;
	for (int i = 0; i < n; i++)
	{
		put(at, half[i]);
		answer(bytes, file->length, &halves, true, answers);
		kept += packed == all;
		put(at, other[i]);
		answer(bytes, file->length, &halves, true, answers);
		left += packed == all - 1;
	}
	ok(kept == n, "%s: weights that are numbers of 16 bits are kept as such", table->name);
	ok(left == n, "%s: weights that are not are left as they are", table->name);
}

int
main(void)
{
	const TnpKernels *tables[TNP_CPU_TABLES];
	int			n_tables = tnp_cpu_all_kernels(tables, TNP_CPU_TABLES),
				n;
	TestModel  *models = test_models(&n);
	double	   *answers[2];

	for (int i = 0; i < 2; i++)
		answers[i] = malloc(QUERIES * (MOST_NUMBERS + DRAWS) * sizeof(double));
	for (int t = getenv("TNP_QUICK") != NULL ? n_tables - 1 : 0; t < n_tables; t++)
	{
		bool		edges = false;

		table = tables[t];
		for (int i = t % TEST_EVERY; table->pack_halves != NULL && i < n;
			 i += getenv("TNP_QUICK") != NULL ? 60 : TEST_EVERY)
		{
			unsigned char *bytes = malloc(models[i].length),
					   *first = NULL;

			if (round_weights(&models[i], bytes, &first))
			{
				test_model(&models[i], bytes, answers);
				if (!edges && first != NULL)
					test_edges(&models[i], bytes, first, answers[0]);
				edges = edges || first != NULL;
			}
			free(bytes);
		}
		ok(edges || table->pack_halves == NULL, "%s: a model was found to try single weights with",
		   table->name);
	}
	for (int i = 0; i < 2; i++)
		free(answers[i]);
	test_models_free(models, n);
	return done_testing();
}
