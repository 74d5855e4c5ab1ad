/*
 * class_order_test.c: the order in which a network sees classes (docs/model-format.md section 3,
 * "Order of classes"): other names of the classes change no bit of their probabilities, also where
 * two are equally frequent, rows are appended or an encoding is copied, nor do other names of
 * labels or mirrored numbers; and nothing is left behind where memory or time runs out.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>
#include <string.h>

#include "cpu/cpu.h"
#include "models.h"
#include "tap.h"

#define CONTEXT 64
#define LATER 6
#define QUERIES 5
#define ROWS (CONTEXT + LATER + QUERIES)
#define COLUMNS 3
#define CLASSES 4
#define LARGEST 64

static const TnpColumnKind kinds[COLUMNS] = {TNP_NUMERIC, TNP_CATEGORICAL, TNP_NUMERIC};
static TestEnv env;
static TnpModel *model;
static int	size;

typedef struct Table
{
	double		x[ROWS * COLUMNS],
				y[ROWS];
} Table;

typedef struct Said
{
	double		params[QUERIES * LARGEST],
				density[QUERIES];
} Said;

/* Two classes of 20 rows, one of 24; the fourth comes later. */
static void
make_table(Table *t)
{
	unsigned	state = 5;

	for (int i = 0; i < ROWS; i++)
	{
		double	   *x = t->x + i * COLUMNS;

		t->y[i] = i < 20 ? 0 : i < 40 ? 1 : i < CONTEXT ? 2 : i % CLASSES;
		x[0] = test_uniform(&state) + 0.3 * t->y[i];
		x[1] = (int) (5 * test_uniform(&state));
		x[2] = i % 13 == 4 ? NAN : test_uniform(&state);
	}
}

static TnpRows
rows_of(const Table *t, int first, int n)
{
	return (TnpRows) {.n = n, .n_features = COLUMNS, .x = t->x + first * COLUMNS,
					  .y = t->y + first, .kinds = kinds, .n_targets = 1, .n_classes = CLASSES};
}

static TnpStatus
answer(const Table *t, bool copied, Said *said, TnpError *error)
{
	TnpRows		context = rows_of(t, 0, CONTEXT),
				later = rows_of(t, CONTEXT, LATER),
				queries = rows_of(t, CONTEXT + LATER, QUERIES);
	TnpEncoding *e,
			   *other;
	double		joint;
	TnpStatus	status = tnp_build(model, &context, CONTEXT, &e, error);

	if (status != TNP_OK)
		return status;
	if (copied)
	{
		status = tnp_encoding_copy(e, CONTEXT, CONTEXT + LATER, true, &other, error);
		tnp_encoding_free(e);
		if (status != TNP_OK)
			return status;
		e = other;
	}
	status = tnp_append(e, &later, error);
	if (status == TNP_OK)
		status = tnp_score(e, &queries, 0, 0, &joint, said->density, error);
	queries.y = NULL;
	if (status == TNP_OK)
		status = tnp_predict(e, &queries, said->params, error);
	tnp_encoding_free(e);
	return status;
}

static void
ask(const Table *t, bool copied, Said *said)
{
	TnpError	error = {0};

	test_must(answer(t, copied, said, &error), &error);
}

static void
test_names(const char *name)
{
	static const int names[][CLASSES] = {{1, 0, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}};
	Table		t;
	Said		before,
				after;

	make_table(&t);
	ask(&t, false, &before);
	for (int k = 0; k < 3; k++)
	{
		Table		other = t;
		bool		same;

		for (int i = 0; i < ROWS; i++)
			other.y[i] = names[k][(int) t.y[i]];
		ask(&other, k == 2, &after);
		same = true;
		for (int q = 0; q < QUERIES; q++)
			/* a density divides by a sum of probabilities, in the caller's order */
			same = same && fabs(before.density[q] - after.density[q]) < 1e-14;
		for (int q = 0; q < QUERIES; q++)
			for (int c = 0; c < CLASSES; c++)
				same = same && before.params[q * size + c] == after.params[q * size + names[k][c]];
		ok(same, "%s: classes renamed, %d", name, k);
	}
	for (int k = 0; k < 2; k++)
	{
		Table		other = t;

		for (int i = 0; i < ROWS * COLUMNS; i++)
			if (k == 0 && kinds[i % COLUMNS] == TNP_NUMERIC)
				other.x[i] = -t.x[i];
			else if (k == 1 && kinds[i % COLUMNS] == TNP_CATEGORICAL)
				other.x[i] = fmod(7 * t.x[i] + 3, 11);
		ask(&other, false, &after);
		ok(memcmp(before.params, after.params, QUERIES * size * sizeof(double)) == 0,
		   "%s: %s", name, k == 0 ? "numbers mirrored" : "labels renamed");
	}
	ask(&t, true, &after);
	ok(memcmp(before.params, after.params, QUERIES * size * sizeof(double)) == 0
	   && memcmp(before.density, after.density, sizeof(before.density)) == 0, "%s: a copy", name);
}

static void
test_faults(const char *name, bool memory)
{
	TnpError	error = {0};
	TnpStatus	expected = memory ? TNP_NO_MEMORY : TNP_INTERRUPTED,
				status = expected;
	Table		t;
	Said		said;
	long		held = env.live,
				step = memory ? TEST_EVERY : TEST_STOPS,
				n;
	bool		clean = true;

	make_table(&t);
	for (n = 1; status == expected; n += step)
	{
		env.calls = env.polls = 0;
		env.fail_at = memory ? n : 0;
		env.stop_at = memory ? 0 : n;
		status = answer(&t, true, &said, &error);
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

	for (int i = 0; i < n; i++)
	{
		const char *name = models[i].name;
		TnpError	error = {0};

		if (strcmp(name, "classes_order") != 0)
			continue;
		test_env_init(&env, test_kernels());
		test_must(tnp_model_open(&env.env, models[i].bytes, models[i].length, &model, &error),
				  &error);
		size = tnp_model_info(model)->n_classes;
		tried++;
		test_names(name);
		test_faults(name, true);
		test_faults(name, false);
		tnp_model_close(model);
		ok(env.live == 0, "%s: everything is freed", name);
	}
	if (tried == 0)
		skip("the quick set has none of these models", "the order of classes");
	test_models_free(models, n);
	return done_testing();
}
