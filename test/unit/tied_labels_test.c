/*
 * tied_labels_test.c: labels that have as many rows and the same sum of targets
 * (docs/model-format.md section 5, "Digests"): what stands beside them orders them, so that other
 * names, or another order of the columns, change no bit of an answer, nor do numbers counted the
 * other way round.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <stdlib.h>

#include "cpu/cpu.h"
#include "models.h"
#include "tap.h"

#define CONTEXT 30
#define QUERIES 8
#define ROWS (CONTEXT + QUERIES)
#define COLUMNS 4				/* two of labels, two of numbers */
#define LABELS 14
#define LARGEST 96
#define LEAST_TIES 2			/* of a column: labels that others are equal to */

static const TnpColumnKind kinds[COLUMNS] = {TNP_CATEGORICAL, TNP_NUMERIC, TNP_CATEGORICAL,
											 TNP_NUMERIC};
static TnpModel *model;
static bool classes;
static int	size;

typedef struct Table
{
	TnpColumnKind kinds[COLUMNS];
	double		x[ROWS * COLUMNS],
				y[ROWS];
} Table;

/* Targets have three values, which two classes share; some cells are missing. */
static void
make_table(unsigned state, Table *t)
{
	memcpy(t->kinds, kinds, sizeof(kinds));
	for (int i = 0; i < ROWS; i++)
	{
		double	   *x = t->x + i * COLUMNS;

		for (int f = 0; f < COLUMNS; f++)
			x[f] = kinds[f] == TNP_NUMERIC ? 4 * test_uniform(&state) - 2
				: (int) (LABELS * test_uniform(&state));
		t->y[i] = (int) (2 * test_uniform(&state) * test_uniform(&state) + 0.7);
		if (classes)
			t->y[i] = i < 2 ? i : t->y[i] > 0;
		if (i % 11 == 5)
			x[i % COLUMNS] = NAN;
	}
}

/* How many labels of the column have as many rows, and the same sum of targets, as another one. */
static int
count_ties(const Table *t, int f)
{
	double		count[LABELS] = {0},
				sum[LABELS] = {0};
	int			ties = 0;

	for (int i = 0; i < CONTEXT; i++)
		if (!isnan(t->x[i * COLUMNS + f]))
		{
			count[(int) t->x[i * COLUMNS + f]]++;
			sum[(int) t->x[i * COLUMNS + f]] += t->y[i];
		}
	for (int a = 0; a < LABELS; a++)
		for (int b = 0; b < LABELS; b++)
			if (a != b && count[a] > 0 && count[a] == count[b] && sum[a] == sum[b])
			{
				ties++;
				break;
			}
	return ties;
}

/* Answers to the last rows given the first. */
static void
ask(const Table *t, double *params)
{
	TnpRows		rows = {.n = CONTEXT, .n_features = COLUMNS, .x = t->x, .y = t->y,
						.kinds = t->kinds, .n_targets = 1, .n_classes = classes ? 2 : 0};
	TnpEncoding *e = NULL;
	TnpError	error = {0};

	test_must(tnp_build(model, &rows, CONTEXT, &e, &error), &error);
	rows.n = QUERIES;
	rows.x = t->x + CONTEXT * COLUMNS;
	rows.y = NULL;
	test_must(tnp_predict(e, &rows, params, &error), &error);
	tnp_encoding_free(e);
}

static void
compare(const Table *t, const Table *other, const char *name, const char *what, int k)
{
	double		before[QUERIES * LARGEST],
				after[QUERIES * LARGEST];

	ask(t, before);
	ask(other, after);
	ok(memcmp(before, after, (size_t) QUERIES * size * sizeof(double)) == 0, "%s: %s, %d", name,
	   what, k);
}

static void
test_names(const Table *t, const char *name, int table)
{
	for (int k = 1; k <= 3; k++)
	{
		Table		other = *t;

		for (int i = 0; i < ROWS * COLUMNS; i++)
			if (kinds[i % COLUMNS] == TNP_CATEGORICAL)
				other.x[i] = fmod((1 + 2 * k) * t->x[i] + k, 17);
		compare(t, &other, name, "labels renamed", 10 * table + k);
	}
}

static void
test_columns(const Table *t, const char *name, int table)
{
	Table		other = *t;

	for (int f = 0; f < COLUMNS; f++)
		other.kinds[f] = t->kinds[COLUMNS - 1 - f];
	for (int i = 0; i < ROWS; i++)
		for (int f = 0; f < COLUMNS; f++)
			other.x[i * COLUMNS + f] = t->x[i * COLUMNS + COLUMNS - 1 - f];
	compare(t, &other, name, "columns in another order", table);
}

static void
test_signs(const Table *t, const char *name, int table)
{
	Table		other = *t;

	for (int i = 0; i < ROWS * COLUMNS; i++)
		if (kinds[i % COLUMNS] == TNP_NUMERIC)
			other.x[i] = -t->x[i];
	compare(t, &other, name, "numbers in their negatives", table);
}

int
main(void)
{
	static const char *const tried[] = {"classes_order", "rows_orient"};
	int			n,
				found = 0;
	TestModel  *models = test_models(&n);

	for (int i = 0; i < 2 * n; i++)
	{
		const TestModel *one = &models[i / 2];
		TestEnv		env;
		TnpDistributionKind kind;
		int			components;
		TnpError	error = {0};

		if (strcmp(one->name, tried[i % 2]) != 0)
			continue;
		test_env_init(&env, test_kernels());
		test_must(tnp_model_open(&env.env, one->bytes, one->length, &model, &error), &error);
		tnp_answer_shape(model, &kind, &components);
		size = (int) tnp_distribution_size(kind, components);
		classes = tnp_model_info(model)->n_classes > 0;
		found++;
		for (int table = 0; table < 4; table++)
		{
			Table		t;

			make_table(100 + table, &t);
			ok(count_ties(&t, 0) >= LEAST_TIES && count_ties(&t, 2) >= LEAST_TIES,
			   "%s: labels that are equal, %d", one->name, table);
			test_names(&t, one->name, table);
			test_columns(&t, one->name, table);
			test_signs(&t, one->name, table);
		}
		tnp_model_close(model);
		ok(env.live == 0, "%s: everything is freed", one->name);
	}
	if (found == 0)
		skip("the quick set has none of these models", "equal labels");
	test_models_free(models, n);
	return done_testing();
}
