/*
 * trees_test.c: boosted trees of the prefix, of classes and of numbers (docs/model-format.md
 * section 8, "Trees"): the same to the last bit whatever order rows come in and whatever kernels
 * there are, with a prefix that later rows leave alone; surer where rows left out allow; none of
 * few rows, and silent about rows of groups that they have not seen; and nothing left behind by a
 * growth that fails.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>
#include <stdlib.h>

#include "cpu/cpu.h"
#include "engine/features/class_prior.h"
#include "engine/features/stats.h"
#include "engine/features/trees.h"
#include "models.h"
#include "tap.h"

#define PREFIX 512				/* the fewest that trees are grown on */
#define ROWS (PREFIX + 40)
#define COLUMNS 15				/* more than a tree may split at */
#define LARGEST 64
#define TURN 211				/* shares no divisor with PREFIX */

static const TnpColumnKind kinds[COLUMNS] = {[2] = TNP_CATEGORICAL};
static double x[ROWS * COLUMNS],
			y[ROWS];
static TnpModel *model;
static const char *name;
static bool numbers;			/* the model's targets are no classes */

/* Classes by steps of two columns, some of them wrong, and labels; cells are missing. */
static void
make_rows(void)
{
	unsigned	state = 5;

	for (int i = 0; i < ROWS; i++)
	{
		double	   *row = x + (size_t) i * COLUMNS;

		for (int f = 0; f < COLUMNS; f++)
			row[f] = f == 2 ? floor(5 * test_uniform(&state)) : test_uniform(&state);
		y[i] = row[0] > 0.5 ? row[1] > 0.4 : 2 * (row[3] > 0.6);
		if (test_uniform(&state) < 0.1)
			y[i] = floor(3 * test_uniform(&state));
		if (i % 9 == 0)
			row[i % COLUMNS] = NAN;
	}
}

static TnpRows
slice(int first, int n)
{
	return (TnpRows) {.n = n, .n_features = COLUMNS, .kinds = kinds,
					  .n_classes = numbers ? 0 : 3,
					  .x = x + (size_t) first * COLUMNS, .y = y + first, .n_targets = 1};
}

static double
share_of(const TnpStats *stats)
{
	return numbers ? stats->trees.share : tnp_trees_blend_weight(model, stats);
}

static bool
same_trees(const TnpTrees *a, const TnpTrees *b)
{
	size_t		trees = (size_t) TNP_TREE_FOLDS * a->rounds;

	return a->n_classes == b->n_classes && a->rounds == b->rounds && a->loss == b->loss
		&& a->sharpness == b->sharpness && a->share == b->share
		&& memcmp(a->start, b->start, sizeof(double) * TNP_TREE_FOLDS * a->channels) == 0
		&& memcmp(a->value, b->value, sizeof(float) * trees * TNP_TREE_LEAVES * a->channels) == 0
		&& memcmp(a->split, b->split, sizeof(TnpTreeSplit) * trees * TNP_TREE_SPLITS) == 0
		&& memcmp(a->edges, b->edges, sizeof(double) * a->n_slots * TNP_TREE_EDGES) == 0;
}

static void
test_growth(const TestModel *file)
{
	TnpRows		rows = slice(0, PREFIX),
				turned = rows;
	double	   *other = malloc(sizeof(double) * PREFIX * COLUMNS),
			   *classes = malloc(sizeof(double) * PREFIX);
	TestEnv		env;
	TnpError	error = {0};
	TnpStats	stats,
				again;
	TnpTrees	copy;
	TnpModel   *plain;

	test_must(tnp_stats_build(model, &rows, PREFIX, &stats, &error), &error);
	ok(stats.trees.n_classes == (numbers ? 1 : 3) && stats.trees.rounds > 1
	   && share_of(&stats) > 0.1,
	   "%s: trees find steps that regressions do not: %d rounds, a share of %g", name,
	   stats.trees.rounds, share_of(&stats));

	for (int i = 0; i < PREFIX; i++)
	{
		int			from = i * TURN % PREFIX;

		memcpy(other + (size_t) i * COLUMNS, x + (size_t) from * COLUMNS,
			   sizeof(double) * COLUMNS);
		classes[i] = y[from];
	}
	turned.x = other;
	turned.y = classes;
	test_must(tnp_stats_build(model, &turned, PREFIX, &again, &error), &error);
	ok(same_trees(&stats.trees, &again.trees), "%s: rows in another order, the same trees", name);
	tnp_stats_free(&model->env, &again);

	ok(tnp_trees_copy(&model->env, &stats.trees, &copy) && same_trees(&stats.trees, &copy),
	   "%s: a copy is the same", name);
	tnp_trees_free(&model->env, &copy);

	test_env_init(&env, &tnp_reference_kernels);
	test_must(tnp_model_open(&env.env, file->bytes, file->length, &plain, &error), &error);
	test_must(tnp_stats_build(plain, &rows, PREFIX, &again, &error), &error);
	ok(same_trees(&stats.trees, &again.trees), "%s: other kernels, the same trees", name);
	tnp_stats_free(&plain->env, &again);
	tnp_model_close(plain);

	test_must(tnp_stats_build(model, &rows, PREFIX - 1, &again, &error), &error);
	ok(again.trees.n_classes == 0 && share_of(&again) == 0
	   && tnp_trees_bytes(&again.trees) == 0, "%s: a row fewer, no trees", name);
	tnp_stats_free(&model->env, &again);
	tnp_stats_free(&model->env, &stats);
	free(other);
	free(classes);
}

/* What scores are multiplied by follows from how often trees are right about rows left out. */
static void
test_sharpness(void)
{
	TnpRows		rows = slice(0, PREFIX);
	double	   *board = malloc(sizeof(double) * PREFIX);
	TnpError	error = {0};
	TnpStats	stats;
	double		noisy;

	test_must(tnp_stats_build(model, &rows, PREFIX, &stats, &error), &error);
	noisy = stats.trees.sharpness;
	tnp_stats_free(&model->env, &stats);
	for (int i = 0; i < PREFIX; i++)
		board[i] = (x[(size_t) i * COLUMNS] > 0.5) != (x[(size_t) i * COLUMNS + 1] > 0.4);
	rows.y = board;
	test_must(tnp_stats_build(model, &rows, PREFIX, &stats, &error), &error);
	ok(stats.trees.sharpness > noisy + 0.05 && stats.trees.sharpness <= 4 && noisy >= 0.25,
	   "%s: scores count more where classes have no exception: %g, %g", name,
	   stats.trees.sharpness, noisy);
	tnp_stats_free(&model->env, &stats);
	free(board);
}

/* One class only, and columns of nothing but equal cells or none. */
static void
test_nothing(void)
{
	double	   *own = calloc(PREFIX * COLUMNS, sizeof(double));
	TnpRows		rows = slice(0, PREFIX);
	TnpError	error = {0};
	TnpStats	stats;

	rows.x = own;
	for (int i = 0; i < PREFIX; i++)
		own[(size_t) i * COLUMNS + 1] = NAN;
	test_must(tnp_stats_build(model, &rows, PREFIX, &stats, &error), &error);
	/* trees of numbers and the process say the same then, so that no share of them is wrong */
	ok(isfinite(stats.trees.loss) && isfinite(share_of(&stats))
	   && (numbers ? fabs(tnp_trees_number(&stats, own)) < 0.1
		   : stats.trees.n_classes == 3 && share_of(&stats) < 0.01),
	   "%s: rows that say nothing: %g", name, share_of(&stats));
	tnp_stats_free(&model->env, &stats);
	free(own);
}

/* Whether trees speak of a row, as the head sees it. */
static bool
speaks(const TnpStats *stats, const double *row)
{
	float		said[TNP_MAX_CLASS_ROOM + 1] = {0};

	if (numbers)
		return isfinite(tnp_trees_number(stats, row));
	tnp_prior_logits(model, stats, row, said);
	return said[tnp_classes(model)] == 1;
}

/* Trees are silent about a row with a new cell in a column of few values, not of a single one. */
static void
test_known(void)
{
	double	   *own = malloc(sizeof(double) * ROWS * COLUMNS);
	TnpRows		rows = slice(0, PREFIX);
	TnpError	error = {0};
	TnpStats	stats;
	int			spoken = 0,
				silent = 0;

	memcpy(own, x, sizeof(double) * ROWS * COLUMNS);
	for (int i = 0; i < ROWS; i++)
	{
		own[(size_t) i * COLUMNS] = floor(8 * own[(size_t) i * COLUMNS]);
		own[(size_t) i * COLUMNS + 2] = i < PREFIX ? 2024 : 2025;
	}
	rows.x = own;
	test_must(tnp_stats_build(model, &rows, PREFIX, &stats, &error), &error);
	for (int i = PREFIX; i < ROWS; i++)
	{
		double	   *row = own + (size_t) i * COLUMNS;

		spoken += speaks(&stats, row);
		row[0] = 8;
		silent += !speaks(&stats, row);
	}
	ok(spoken == ROWS - PREFIX, "%s: trees speak of rows whose cells the prefix has", name);
	ok(silent == ROWS - PREFIX, "%s: and are silent about others", name);
	tnp_stats_free(&model->env, &stats);
	free(own);
}

static void
answer(const TnpEncoding *e, int first, int n, double *params)
{
	TnpRows		asked = slice(first, n);
	TnpError	error = {0};

	asked.y = NULL;
	test_must(tnp_predict(e, &asked, params, &error), &error);
}

static void
test_answers(void)
{
	enum {QUERIES = 10, MORE = ROWS - PREFIX - QUERIES};
	TnpRows		all = slice(0, PREFIX + MORE),
				few = slice(0, PREFIX),
				more = slice(PREFIX, MORE);
	TnpEncoding *once = NULL,
			   *grown = NULL,
			   *copy = NULL;
	TnpError	error = {0};
	TnpDistributionKind kind;
	int			components,
				size;
	double		a[QUERIES * LARGEST],
				b[QUERIES * LARGEST];

	tnp_answer_shape(model, &kind, &components);
	size = (int) tnp_distribution_size(kind, components);
	test_must(tnp_build(model, &all, PREFIX, &once, &error), &error);
	test_must(tnp_build(model, &few, PREFIX, &grown, &error), &error);
	test_must(tnp_append(grown, &more, &error), &error);
	answer(once, ROWS - QUERIES, QUERIES, a);
	answer(grown, ROWS - QUERIES, QUERIES, b);
	ok(memcmp(a, b, sizeof(double) * QUERIES * size) == 0, "%s: appended is built at once", name);
	for (int i = 0; i < QUERIES; i++)
		answer(once, ROWS - QUERIES + i, 1, b + i * size);
	ok(memcmp(a, b, sizeof(double) * QUERIES * size) == 0, "%s: a batch is each alone", name);
	test_must(tnp_encoding_copy(once, PREFIX + MORE, PREFIX + MORE, true, &copy, &error), &error);
	tnp_encoding_free(once);
	answer(copy, ROWS - QUERIES, QUERIES, b);
	ok(memcmp(a, b, sizeof(double) * QUERIES * size) == 0, "%s: a copy answers alike", name);
	tnp_encoding_free(copy);
	tnp_encoding_free(grown);
}

/* Growing is given up at some of its polls, and without some of its memory. */
static void
test_failures(const TestModel *file)
{
	TnpRows		rows = slice(0, PREFIX);
	TnpError	error = {0};
	TestEnv		env;
	TnpModel   *own;
	TnpStats	stats;
	long		live,
				polls,
				calls;
	bool		clean = true;

	test_env_init(&env, test_kernels());
	test_must(tnp_model_open(&env.env, file->bytes, file->length, &own, &error), &error);
	live = env.live;
	env.polls = env.calls = 0;
	test_must(tnp_stats_build(own, &rows, PREFIX, &stats, &error), &error);
	tnp_stats_free(&own->env, &stats);
	polls = env.polls;
	calls = env.calls;
	ok(polls > 3 * 40, "%s: each tree polls", name);
	/* the first of these is among the slots' cells: three times 41 for trees come later, and 6 */
	for (long at = polls - (numbers ? 125 : 131); at <= polls; at += 33)
	{
		env.polls = 0;
		env.stop_at = at;
		clean = clean && tnp_stats_build(own, &rows, PREFIX, &stats, &error) == TNP_INTERRUPTED
			&& env.live == live;
	}
	env.stop_at = 0;
	ok(clean, "%s: an interrupt leaves nothing behind", name);
	clean = true;
	/* that of trees comes last; with numbers a process is fitted before */
	for (long at = numbers ? calls - 16 : 1; at <= calls; at += TEST_EVERY)
	{
		env.calls = 0;
		env.fail_at = at;
		clean = clean && tnp_stats_build(own, &rows, PREFIX, &stats, &error) == TNP_NO_MEMORY
			&& env.live == live;
	}
	ok(clean, "%s: nor does a want of memory", name);
	env.fail_at = 0;
	tnp_model_close(own);
}

int
main(void)
{
	int			n,
				tried = 0;
	TestModel  *models = test_models(&n);

	make_rows();
	for (int i = 0; i < n; i++)
	{
		TestEnv		env;
		TnpError	error = {0};

		name = models[i].name;
		numbers = strncmp(name, "rows_trees", 10) == 0;
		if (!numbers && strncmp(name, "classes_trees", 13) != 0)
			continue;
		test_env_init(&env, test_kernels());
		test_must(tnp_model_open(&env.env, models[i].bytes, models[i].length, &model, &error),
				  &error);
		tried++;
		test_growth(&models[i]);
		if (!numbers)
			test_sharpness();
		test_nothing();
		test_known();
		test_answers();
		test_failures(&models[i]);
		tnp_model_close(model);
	}
	if (tried == 0)
		skip("the quick set has none of these models", "trees");
	test_models_free(models, n);
	return done_testing();
}
