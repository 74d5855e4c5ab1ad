/*
 * split_test.c: features of many labels, which a model splits into several columns
 * (docs/model-format.md section 5, "Splitting"): what labels are called changes no bit, copies are
 * whole, and memory that runs out or an interrupt at any place frees all. That the right features
 * are split is held by test/reference/check_parity.py.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <stdlib.h>

#include "cpu/cpu.h"
#include "models.h"
#include "tap.h"

#define CONTEXT 120
#define QUERIES 10
#define ROWS (CONTEXT + QUERIES)
#define COLUMNS 3
#define SPEAKING 0				/* column of labels that matter */
#define SILENT 2				/* column of labels that say nothing */
#define LABELS 40
#define LARGEST 96

static const TnpColumnKind kinds[COLUMNS] = {TNP_CATEGORICAL, TNP_NUMERIC, TNP_CATEGORICAL};
static TestEnv env;
static TnpModel *model;
static bool classes;
static int	size;

typedef struct Table
{
	double		x[ROWS * COLUMNS],
				y[ROWS];
} Table;

/* Some labels are there more often, some are missing, and the last query has one of its own. */
static void
make_table(Table *t)
{
	unsigned	state = 11;

	for (int i = 0; i < ROWS; i++)
	{
		double	   *x = t->x + i * COLUMNS;
		int			label = (int) (LABELS * test_uniform(&state) * test_uniform(&state));

		x[SPEAKING] = label;
		x[1] = 2 * test_uniform(&state) - 1;
		x[SILENT] = (int) (LABELS * test_uniform(&state));
		t->y[i] = 2 * sin(5.0 * label) + 0.4 * x[1] + 0.2 * test_uniform(&state);
		if (classes)
			t->y[i] = t->y[i] > 0;
		if (i % 17 == 3)
			x[SPEAKING] = NAN;
	}
	t->x[(ROWS - 1) * COLUMNS + SPEAKING] = LABELS;
}

static TnpStatus
answer(const Table *t, bool copied, double *params, TnpError *error)
{
	TnpRows		rows = {.n = CONTEXT, .n_features = COLUMNS, .x = t->x, .y = t->y, .kinds = kinds,
						.n_targets = 1, .n_classes = classes ? 2 : 0};
	TnpEncoding *e,
			   *other;
	TnpStatus	status = tnp_build(model, &rows, CONTEXT, &e, error);

	if (status != TNP_OK)
		return status;
	if (copied)
	{
		status = tnp_encoding_copy(e, CONTEXT, CONTEXT, true, &other, error);
		tnp_encoding_free(e);
		if (status != TNP_OK)
			return status;
		e = other;
	}
	rows.n = QUERIES;
	rows.x = t->x + CONTEXT * COLUMNS;
	rows.y = NULL;
	status = tnp_predict(e, &rows, params, error);
	tnp_encoding_free(e);
	return status;
}

static void
ask(const Table *t, double *params)
{
	TnpError	error = {0};

	test_must(answer(t, false, params, &error), &error);
}

static bool
same(const double *a, const double *b)
{
	return memcmp(a, b, (size_t) QUERIES * size * sizeof(double)) == 0;
}

/* What differs most between answers. */
static double
largest_difference(const double *a, const double *b)
{
	double		most = 0;

	for (int i = 0; i < QUERIES * size; i++)
		most = fmax(most, fabs(a[i] - b[i]));
	return most;
}

/* Labels renamed: by a permutation, and away from each other. */
static void
test_names(const Table *t, const char *name)
{
	double		before[QUERIES * LARGEST],
				after[QUERIES * LARGEST];

	ask(t, before);
	for (int k = 1; k <= 2; k++)
	{
		Table		other = *t;

		for (int i = 0; i < ROWS * COLUMNS; i++)
			if (kinds[i % COLUMNS] == TNP_CATEGORICAL)
				other.x[i] = k == 1 ? fmod(17 * t->x[i], LABELS + 1)
					: fmod(1e6 * (7 + t->x[i]), 1000003);
		ask(&other, after);
		ok(same(before, after), "%s: labels renamed, %d", name, k);
	}
}

/* Without a split the model does not tell labels from the 16th on apart. */
static void
test_apart(const Table *t, const char *name)
{
	double		whole[QUERIES * LARGEST],
				merged[QUERIES * LARGEST];
	Table		other = *t;

	for (int i = 0; i < ROWS; i++)
		if (other.x[i * COLUMNS + SPEAKING] >= 15)
			other.x[i * COLUMNS + SPEAKING] = 15;
	ask(t, whole);
	ask(&other, merged);
	ok(largest_difference(whole, merged) > 1e-3, "%s: labels that matter are told apart, by %g",
	   name, largest_difference(whole, merged));
}

static void
test_copy(const Table *t, const char *name)
{
	double		before[QUERIES * LARGEST],
				after[QUERIES * LARGEST];
	TnpError	error = {0};
	long		held = env.live;

	ask(t, before);
	test_must(answer(t, true, after, &error), &error);
	ok(same(before, after), "%s: a copy answers alike", name);
	ok(env.live == held, "%s: and nothing is left", name);
}

/* The n-th allocation fails, or the n-th poll interrupts, for n = 1, 1 + step, … */
static void
test_faults(const Table *t, bool memory, const char *name)
{
	double		params[QUERIES * LARGEST];
	TnpError	error = {0};
	TnpStatus	expected = memory ? TNP_NO_MEMORY : TNP_INTERRUPTED,
				status = expected;
	long		held = env.live,
				step = memory ? TEST_EVERY : TEST_STOPS * TEST_EVERY * 3,
				n;
	bool		clean = true;

	for (n = 1; status == expected; n += step)
	{
		env.calls = env.polls = 0;
		env.fail_at = memory ? n : 0;
		env.stop_at = memory ? 0 : n;
		status = answer(t, true, params, &error);
		clean = clean && env.live == held && (status == TNP_OK || error.status == expected);
	}
	env.fail_at = env.stop_at = 0;
	ok(clean && status == TNP_OK && n > 2 * step, "%s: %s at any of %ld places", name,
	   memory ? "the lack of memory" : "an interrupt", n - step);
}

int
main(void)
{
	int			n,
				tried = 0;
	TestModel  *models = test_models(&n);
	TnpDistributionKind kind;
	int			components;
	Table		t;

	for (int i = 0; i < n; i++)
	{
		const char *name = models[i].name;
		TnpError	error = {0};

		if (strstr(name, "_split") == NULL)
			continue;
		test_env_init(&env, test_kernels());
		test_must(tnp_model_open(&env.env, models[i].bytes, models[i].length, &model, &error),
				  &error);
		tried++;
		tnp_answer_shape(model, &kind, &components);
		size = (int) tnp_distribution_size(kind, components);
		classes = tnp_model_info(model)->n_classes > 0;
		make_table(&t);
		if (strcmp(name, "rows_split") == 0)
			test_names(&t, name);
		test_apart(&t, name);
		test_copy(&t, name);
		test_faults(&t, true, name);
		test_faults(&t, false, name);
		tnp_model_close(model);
		ok(env.live == 0, "%s: everything is freed", name);
	}
	if (tried == 0)
		skip("the quick set has none of these models", "splitting");
	test_models_free(models, n);
	return done_testing();
}
