/*
 * class_process_test.c: the process of a classifier's prefix (docs/model-format.md section 8,
 * "Process of classes"): it takes a share where two columns tell the classes together only, and
 * none where nothing tells them; the same, up to rounding, whatever order rows come in, with a
 * prefix that later rows leave alone; and nothing left behind by a fit that fails.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"
#include "engine/features/class_process.h"
#include "engine/features/stats.h"
#include "models.h"
#include "tap.h"

#define PREFIX 256
#define ROWS (PREFIX + 40)
#define COLUMNS 5
#define LARGEST 64
#define TURN 101				/* shares no divisor with PREFIX */

static const TnpColumnKind kinds[COLUMNS] = {[2] = TNP_CATEGORICAL};
static double x[ROWS * COLUMNS],
			y[ROWS];
static int	n_classes;
static TnpModel *model;
static const char *name;

/* Classes by the signs of two columns together, and with three by the size of one, too. */
static void
make_rows(int classes)
{
	unsigned	state = 7;

	n_classes = classes;
	for (int i = 0; i < ROWS; i++)
	{
		double	   *row = x + (size_t) i * COLUMNS;

		for (int f = 0; f < COLUMNS; f++)
			row[f] = f == 2 ? floor(4 * test_uniform(&state)) : 2 * test_uniform(&state) - 1;
		y[i] = (row[0] * row[3] > 0) + (classes > 2 && row[0] > 0.5);
		if (i % 11 == 0)
			row[i % COLUMNS] = NAN;
	}
}

static TnpRows
slice(int first, int n)
{
	return (TnpRows) {.n = n, .n_features = COLUMNS, .kinds = kinds, .n_classes = n_classes,
					  .x = x + (size_t) first * COLUMNS, .y = y + first, .n_targets = 1};
}

/* How many of the rows behind the prefix have the class that the process takes for likeliest. */
static int
right(const TnpStats *stats)
{
	int			n = 0;

	for (int i = PREFIX; i < ROWS; i++)
	{
		double		logits[TNP_MAX_CLASS_ROOM],
					sum = 0;
		int			best = 0;

		tnp_class_process_logits(model, stats, x + (size_t) i * COLUMNS, logits);
		for (int c = 0; c < n_classes; c++)
		{
			sum += exp(logits[c]) / n_classes;
			if (logits[c] > logits[best])
				best = c;
		}
		if (fabs(sum - 1) > 1e-9)
			return -1;
		/* the network may see the classes in another order */
		for (int c = 0; stats->orders_classes && c < n_classes; c++)
			if (stats->class_place[c] == best)
			{
				best = c;
				break;
			}
		n += best == y[i];
	}
	return n;
}

static void
test_share(void)
{
	TnpRows		rows = slice(0, PREFIX),
				turned = rows;
	double	   *other = malloc(sizeof(double) * PREFIX * COLUMNS),
			   *classes = malloc(sizeof(double) * PREFIX),
				share,
				logits[2][TNP_MAX_CLASS_ROOM];
	TnpError	error = {0};
	TnpStats	stats,
				again;
	TnpClassProcess copy;
	unsigned	state = 3;
	bool		same;

	test_must(tnp_stats_build(model, &rows, PREFIX, &stats, &error), &error);
	share = tnp_class_process_share(model, &stats);
	ok(share > 0.3, "%s: a share of %g of %d classes that two columns tell", name, share,
	   n_classes);
	ok(right(&stats) > 0.75 * (ROWS - PREFIX), "%s: %d of %d right", name, right(&stats),
	   ROWS - PREFIX);
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
	same = fabs(stats.class_process.loss - again.class_process.loss) < 1e-6;
	for (int i = PREFIX; i < ROWS; i++)
	{
		tnp_class_process_logits(model, &stats, x + (size_t) i * COLUMNS, logits[0]);
		tnp_class_process_logits(model, &again, x + (size_t) i * COLUMNS, logits[1]);
		for (int c = 0; c < n_classes; c++)
			same = same && fabs(logits[0][c] - logits[1][c]) < 1e-5;
	}
	ok(same, "%s: rows in another order say the same", name);
	ok(tnp_class_process_copy(&model->env, &stats.class_process, &copy)
	   && tnp_class_process_bytes(&copy) == tnp_class_process_bytes(&stats.class_process)
	   && memcmp(copy.means, stats.class_process.means,
				 sizeof(double) * copy.channels * copy.points.n) == 0, "%s: a copy", name);
	tnp_class_process_free(&model->env, &copy);
	tnp_stats_free(&model->env, &again);
	tnp_stats_free(&model->env, &stats);
	for (int i = 0; i < PREFIX; i++)
		classes[i] = floor(n_classes * test_uniform(&state));
	turned.x = x;
	test_must(tnp_stats_build(model, &turned, PREFIX, &stats, &error), &error);
	ok(tnp_class_process_share(model, &stats) < 0.05, "%s: rows that say nothing: %g", name,
	   tnp_class_process_share(model, &stats));
	ok((tnp_class_process_share(model, &stats) > 0)
	   == (tnp_class_process_bytes(&stats.class_process) > 0),
	   "%s: what says nothing is not kept", name);
	tnp_stats_free(&model->env, &stats);
	memset(classes, 0, sizeof(double) * PREFIX);
	test_must(tnp_stats_build(model, &turned, PREFIX, &stats, &error), &error);
	ok(isfinite(stats.class_process.loss) && tnp_class_process_share(model, &stats) < 0.01,
	   "%s: rows of one class: %g", name, tnp_class_process_share(model, &stats));
	tnp_stats_free(&model->env, &stats);
	free(classes);
	free(other);
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

/* The fit is given up at some of its polls, and without some of its memory. */
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
	ok(polls > 48, "%s: each step polls", name);
	for (long at = 1; at <= polls; at += 7)
	{
		env.polls = 0;
		env.stop_at = at;
		clean = clean && tnp_stats_build(own, &rows, PREFIX, &stats, &error) == TNP_INTERRUPTED
			&& env.live == live;
	}
	env.stop_at = 0;
	ok(clean, "%s: an interrupt leaves nothing behind", name);
	clean = true;
	for (long at = 1; at <= calls; at += TEST_EVERY)
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

	for (int i = 0; i < n; i++)
	{
		TestEnv		env;
		TnpError	error = {0};

		name = models[i].name;
		if (strncmp(name, "classes_process", 15) != 0)
			continue;
		test_env_init(&env, test_kernels());
		test_must(tnp_model_open(&env.env, models[i].bytes, models[i].length, &model, &error),
				  &error);
		tried++;
		for (int classes = 2; classes <= 3; classes++)
		{
			make_rows(classes);
			test_share();
			test_answers();
		}
		test_failures(&models[i]);
		tnp_model_close(model);
	}
	if (tried == 0)
		skip("the quick set has none of these models", "class_process");
	test_models_free(models, n);
	return done_testing();
}
