/*
 * orient_test.c: models whose tables are turned (docs/model-format.md section 5, "Orientation")
 * answer alike, to the last bit, whatever sign columns and targets have and what categories are
 * called.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <stdlib.h>

#include "cpu/cpu.h"
#include "models.h"
#include "tap.h"

#define CONTEXT 40
#define QUERIES 8
#define ROWS (CONTEXT + QUERIES)
#define COLUMNS 4
#define LABELS 3				/* column of labels */
#define LARGEST 96

static const TnpColumnKind kinds[COLUMNS] = {TNP_NUMERIC, TNP_NUMERIC, TNP_NUMERIC,
											 TNP_CATEGORICAL};
static TnpModel *model;
static TnpDistributionKind kind;
static int	components,
			size;

typedef struct Table
{
	double		x[ROWS * COLUMNS],
				y[ROWS];
} Table;

/* A skewed target of all columns; labels 0 … 5, of which 1 to 4 have as many rows. */
static void
make_table(Table *t)
{
	unsigned	state = 7;

	for (int i = 0; i < ROWS; i++)
	{
		double	   *x = t->x + i * COLUMNS;

		for (int f = 0; f < LABELS; f++)
			x[f] = 5 * test_uniform(&state) - 2;
		x[LABELS] = i % 7 < 3 ? 0 : i % 7 - 2;
		t->y[i] = exp(0.5 * x[0] - 0.3 * x[1] + 0.4 * sin(3 * x[LABELS]) + test_uniform(&state));
	}
}

/* Answers to the last rows given the first. */
static void
ask(const Table *t, int prefix, double *params)
{
	TnpRows		rows = {.n = CONTEXT, .n_features = COLUMNS, .x = t->x, .y = t->y, .kinds = kinds,
						.n_targets = 1};
	TnpEncoding *e = NULL;
	TnpError	error = {0};

	test_must(tnp_build(model, &rows, prefix, &e, &error), &error);
	rows.n = QUERIES;
	rows.x = t->x + CONTEXT * COLUMNS;
	rows.y = NULL;
	test_must(tnp_predict(e, &rows, params, &error), &error);
	tnp_encoding_free(e);
}

static bool
same(const double *a, const double *b, size_t n)
{
	return memcmp(a, b, n * sizeof(double)) == 0;
}

static void
test_columns(const Table *t, int prefix, const char *name)
{
	double		before[QUERIES * LARGEST],
				after[QUERIES * LARGEST];
	Table		other;

	ask(t, prefix, before);
	for (int turned = 1; turned < 8; turned++)
	{
		other = *t;
		for (int i = 0; i < ROWS; i++)
			for (int f = 0; f < LABELS; f++)
				if (turned >> f & 1)
					other.x[i * COLUMNS + f] = -other.x[i * COLUMNS + f];
		ask(&other, prefix, after);
		ok(same(before, after, (size_t) QUERIES * size),
		   "%s, prefix %d: columns in their negatives, set %d", name, prefix, turned);
	}
}

static void
test_names(const Table *t, int prefix, const char *name)
{
	static const double names[][6] = {{5, 4, 3, 2, 1, 0}, {11, 2, 77, 5, 9, 40}};
	double		before[QUERIES * LARGEST],
				after[QUERIES * LARGEST];

	ask(t, prefix, before);
	for (int k = 0; k < 2; k++)
	{
		Table		other = *t;

		for (int i = 0; i < ROWS; i++)
			other.x[i * COLUMNS + LABELS] = names[k][(int) t->x[i * COLUMNS + LABELS]];
		ask(&other, prefix, after);
		ok(same(before, after, (size_t) QUERIES * size), "%s, prefix %d: categories renamed, %d",
		   name, prefix, k);
	}
}

static void
test_targets(const Table *t, int prefix, const char *name)
{
	double		before[QUERIES * LARGEST],
				after[QUERIES * LARGEST];
	Table		other = *t;
	bool		mirrored = true;

	for (int i = 0; i < ROWS; i++)
		other.y[i] = -t->y[i];
	ask(t, prefix, before);
	ask(&other, prefix, after);
	for (int i = 0; i < QUERIES; i++)
	{
		TnpDistribution a = {kind, components, before + i * size},
					b = {kind, components, after + i * size};
		double		sd = sqrt(tnp_variance(&a)),
					middle;

		mirrored = mirrored && tnp_mean(&a) == -tnp_mean(&b)
			&& tnp_variance(&a) == tnp_variance(&b)
			&& tnp_log_pdf(&a, t->y[CONTEXT + i]) == tnp_log_pdf(&b, -t->y[CONTEXT + i]);
		middle = tnp_quantile(&a, 0.2) + tnp_quantile(&b, 0.8);
		ok(fabs(middle) <= 1e-9 * sd, "%s, prefix %d: a mirrored quantile, %g", name, prefix,
		   middle);
	}
	ok(mirrored, "%s, prefix %d: means, variances and densities of mirrored targets", name, prefix);
}

int
main(void)
{
	int			n,
				tried = 0;
	TestModel  *models = test_models(&n);
	Table		t;

	make_table(&t);
	for (int i = 0; i < n; i++)
	{
		TestEnv		env;
		TnpError	error = {0};

		if (strncmp(models[i].name, "rows_orient", 11) != 0)
			continue;
		test_env_init(&env, test_kernels());
		test_must(tnp_model_open(&env.env, models[i].bytes, models[i].length, &model, &error),
				  &error);
		tried++;
		tnp_answer_shape(model, &kind, &components);
		size = (int) tnp_distribution_size(kind, components);
		for (int prefix = CONTEXT; prefix >= CONTEXT - 3; prefix -= 3)
		{
			if (prefix < CONTEXT && strstr(models[i].name, "buffer") != NULL)
				continue;
			test_columns(&t, prefix, models[i].name);
			test_targets(&t, prefix, models[i].name);
			if (strstr(models[i].name, "buffer") == NULL)
				test_names(&t, prefix, models[i].name);
		}
		tnp_model_close(model);
	}
	if (tried == 0)
		skip("the quick set has none of these models", "orientation");
	test_models_free(models, n);
	return done_testing();
}
