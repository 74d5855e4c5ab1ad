/*
 * revise_test.c: encodings that take over rows from others are, bitwise, those built of the same
 * rows, for every test model of a family that can and every table of kernels; and they encode what
 * is new and no more. Sums do not depend on the order of rows.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <stdlib.h>

#include "cpu/cpu.h"
#include "models.h"
#include "tap.h"

#define MANY 400				/* rows of a table */
#define QUERIES 5
#define LARGEST 32				/* doubles of one answer */
#define ROUNDS (getenv("TNP_QUICK") != NULL ? 12 : 60)

static const char *title;
static TestEnv env;
static TnpModel *model;
static const TnpModelInfo *info;
static TestRows rows;			/* MANY + QUERIES rows */
static int	size;				/* of the answers to a query */

/* Kernels that count what goes through the first layer of a row's network. */
static TnpKernels counting;
static void (*linear) (const TnpLinear *layer, int n, const float *x, TnpActivation activation,
					   bool add, float *y);
static int64_t linear_rows;

static void
count_linear(const TnpLinear *layer, int n, const float *x, TnpActivation activation, bool add,
			 float *y)
{
	linear_rows += n;
	linear(layer, n, x, activation, add, y);
}

/* Rows of the table in any order, so many of them. */
typedef struct Table
{
	TnpRows		view;
	double		x[MANY * 8],
				y[MANY * 4];
	int			row[MANY];
} Table;

static Table was,
			now;

static bool
holds(bool condition, const char *what)
{
	return ok(condition, "%s: %s", title, what);
}

/* A call that must succeed. */
static void
must(TnpStatus status, const TnpError *error)
{
	if (status != TNP_OK)
	{
		holds(false, "succeeds");
		diag("%s | %s", error->message, error->detail);
		exit(1);
	}
}

static unsigned random_state = 7;

static int
below(int n)
{
	random_state = random_state * 1103515245u + 12345u;
	return (int) ((random_state >> 8) % (unsigned) n);
}

/* The cells of the rows that a table has by number. */
static void
fill(Table *t, int64_t n)
{
	int			features = info->n_features,
				targets = info->n_targets;

	t->view = test_slice(&rows, 0, 0);
	t->view.n = n;
	t->view.x = t->x;
	t->view.y = t->y;
	for (int64_t i = 0; i < n; i++)
	{
		memcpy(t->x + i * features, rows.x + t->row[i] * features, features * sizeof(double));
		memcpy(t->y + i * targets, rows.y + t->row[i] * targets, targets * sizeof(double));
	}
}

static TnpEncoding *
build(const TnpRows *view, int64_t prefix)
{
	TnpEncoding *e = NULL;
	TnpError	error;

	must(tnp_build(model, view, prefix, &e, &error), &error);
	return e;
}

static int64_t
canonical(const TnpRows *view)
{
	return tnp_canonical_prefix(model, view->n);
}

static void
predict(const TnpEncoding *e, double *params)
{
	TnpRows		queries = test_slice(&rows, MANY, QUERIES);
	TnpError	error;

	queries.y = NULL;
	must(tnp_predict(e, &queries, params, &error), &error);
}

/* Whether both answer alike: with predictions, and with a joint density. */
static bool
same_answers(TnpEncoding *a, TnpEncoding *b)
{
	double		params[2][QUERIES * LARGEST],
				density[2];
	TnpRows		asked = test_slice(&rows, MANY, QUERIES);
	TnpError	error;
	bool		same;

	predict(a, params[0]);
	predict(b, params[1]);
	must(tnp_score(a, &asked, 0, 0, &density[0], NULL, &error), &error);
	must(tnp_score(b, &asked, 0, 0, &density[1], NULL, &error), &error);
	same = memcmp(params[0], params[1], QUERIES * size * sizeof(double)) == 0;
	return same && memcmp(&density[0], &density[1], sizeof(double)) == 0;
}

/* Whether the first rows of both answer alike, few and many of them, and some appended ones. */
static bool
same_encodings(TnpEncoding *a, TnpEncoding *b)
{
	TnpRows		more = test_slice(&rows, 0, 70);
	TnpError	error;
	bool		same = same_answers(a, b);
	int64_t		n = tnp_encoding_rows(b),
				base = tnp_encoding_base_rows(b);

	for (int i = 0; i < 6 && n > base; i++)
	{
		TnpEncoding *first[2];
		int64_t		some = base + below((int) (n - base) + 1);

		must(tnp_encoding_first(a, some, &first[0], &error), &error);
		must(tnp_encoding_copy(b, some, some, false, &first[1], &error), &error);
		same = same && same_answers(first[0], first[1]);
		tnp_encoding_free(first[0]);
		tnp_encoding_free(first[1]);
	}
	must(tnp_append(a, &more, &error), &error);
	must(tnp_append(b, &more, &error), &error);
	same = same && same_answers(a, b);
	/* what was appended goes, and other rows come */
	tnp_encoding_forget(a, n + 1);
	tnp_encoding_forget(b, n + 1);
	same = same && same_answers(a, b);
	more.n = 69;
	must(tnp_append(a, &more, &error), &error);
	must(tnp_append(b, &more, &error), &error);
	return same && same_answers(a, b);
}

/* ---- edits ----------------------------------------------------------------------------------- */

static void
delete_rows(Table *t, int at, int n)
{
	memmove(t->row + at, t->row + at + n, (t->view.n - at - n) * sizeof(int));
	t->view.n -= n;
}

static void
insert_row(Table *t, int at, int row)
{
	memmove(t->row + at + 1, t->row + at, (t->view.n - at) * sizeof(int));
	t->row[at] = row;
	t->view.n++;
}

/* Change few rows of the table from number `base` on, in one of the ways that tables change. */
static void
edit(Table *t, int64_t base)
{
	int			n = (int) (t->view.n - base),
				at = (int) base + below(n);

	switch (below(5))
	{
		case 0:				/* a row is deleted */
			delete_rows(t, at, 1);
			break;
		case 1:				/* some rows that follow each other */
			delete_rows(t, at, below((int) (t->view.n - at) < n / 3 ? (int) (t->view.n - at)
									 : n / 3));
			break;
		case 2:				/* a row is changed in its place */
			t->row[at] = below(MANY);
			break;
		case 3:				/* or goes to the end */
			insert_row(t, (int) t->view.n - 1, t->row[at]);
			delete_rows(t, at, 1);
			break;
		default:
			if (t->view.n < MANY)
				insert_row(t, at, below(MANY));
	}
}

/* Tables that change again and again, each encoding being made of the one before. */
static void
test_edits(void)
{
	TnpEncoding *e;
	int64_t		n = 300,
				base = info->scales_by_prefix ? 256 : info->min_rows,
				least = info->scales_by_prefix ? 270 : 120;
	bool		same = true,
				taken = true,
				prefix_stays = true;
	TnpError	error;

	for (int i = 0; i < n; i++)
		now.row[i] = i;
	fill(&now, n);
	e = build(&now.view, canonical(&now.view));
	for (int round = 0; round < ROUNDS; round++)
	{
		TnpEncoding *next,
				   *fresh;

		for (int k = below(4); k >= 0 && now.view.n > least; k--)
			edit(&now, base);
		while (now.view.n <= least)
			insert_row(&now, (int) now.view.n, below(MANY));
		fill(&now, now.view.n);
		must(tnp_revise(e, &now.view, canonical(&now.view), &next, &error), &error);
		prefix_stays = prefix_stays && tnp_encoding_prefix(e) == canonical(&now.view);
		taken = taken && next != NULL;
		fresh = build(&now.view, canonical(&now.view));
		if (next == NULL)
			next = build(&now.view, canonical(&now.view));
		tnp_encoding_free(e);
		must(tnp_encoding_copy(next, now.view.n, now.view.n, false, &e, &error), &error);
		same = same && same_encodings(next, fresh);
		tnp_encoding_free(next);
		tnp_encoding_free(fresh);
	}
	holds(taken && prefix_stays, "rows of a table that has changed are taken over");
	holds(same, "deleted is never inserted, bitwise, and changed is always so");
	tnp_encoding_free(e);
}

/* ---- what it costs --------------------------------------------------------------------------- */

/* Rows that go through the network while an encoding is revised to the table, and that. */
static int64_t
rows_to_revise(const TnpEncoding *e, TnpEncoding **next)
{
	TnpRows		one = test_slice(&rows, 0, 1);
	TnpError	error;
	int64_t		layers;

	/* a row of its own goes through each layer once */
	linear_rows = 0;
	tnp_encoding_free(build(&one, tnp_whole_prefix(model, 1)));
	layers = linear_rows;
	linear_rows = 0;
	must(tnp_revise(e, &now.view, canonical(&now.view), next, &error), &error);
	return linear_rows / layers;
}

/* A frame that slides, and deletes at both ends and in the middle. */
static void
test_costs(void)
{
	TnpEncoding *e,
			   *next,
			   *fresh;
	int64_t		encoded;

	if (info->scales_by_prefix || info->min_rows > 1)
		return;
	for (int i = 0; i < 300; i++)
		now.row[i] = i;
	fill(&now, 300);
	e = build(&now.view, canonical(&now.view));
	delete_rows(&now, 0, 1);
	insert_row(&now, 299, 300);
	fill(&now, 300);
	encoded = rows_to_revise(e, &next);
	holds(next != NULL && encoded == 2, "a frame slides by two rows");
	tnp_encoding_free(next);

	delete_rows(&now, 100, 1);
	fill(&now, 299);
	encoded = rows_to_revise(e, &next);
	holds(next != NULL && encoded == 3, "a row is deleted by one row");
	fresh = build(&now.view, canonical(&now.view));
	holds(same_encodings(next, fresh), "and leaves nothing");
	tnp_encoding_free(next);
	tnp_encoding_free(fresh);

	for (int i = 0; i < 300; i++)
		now.row[i] = i;
	now.view.n = 300;
	delete_rows(&now, 0, 140);
	fill(&now, 160);
	encoded = rows_to_revise(e, &next);
	holds(next != NULL && encoded <= 32, "half of the rows go at the cost of a few");
	tnp_encoding_free(next);
	tnp_encoding_free(e);
}

/* ---- order and partition --------------------------------------------------------------------- */

static void
shuffle(Table *t)
{
	for (int i = (int) t->view.n - 1; i > 0; i--)
	{
		int			k = below(i + 1),
					other = t->row[k];

		t->row[k] = t->row[i];
		t->row[i] = other;
	}
}

static void
test_order(void)
{
	TnpEncoding *e,
			   *other;
	bool		same = true;

	if (info->scales_by_prefix)
		return;
	for (int i = 0; i < 200; i++)
		now.row[i] = i;
	fill(&now, 200);
	e = build(&now.view, canonical(&now.view));
	for (int round = 0; round < 8; round++)
	{
		shuffle(&now);
		fill(&now, 200);
		other = build(&now.view, canonical(&now.view));
		same = same && same_answers(e, other);
		tnp_encoding_free(other);
	}
	holds(same, "the order of rows does not matter, bitwise");
	tnp_encoding_free(e);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void
test_refusals(void)
{
	TnpEncoding *e,
			   *next;
	TnpError	error;
	double		large = 1e30;
	TnpStatus	status;

	for (int i = 0; i < 300; i++)
		now.row[i] = i;
	fill(&now, 300);
	e = build(&now.view, canonical(&now.view));

	/* every other row is another one */
	was = now;
	for (int i = 0; i < 300; i += 2)
		was.row[i] = MANY - 1 - i;
	fill(&was, 300);
	must(tnp_revise(e, &was.view, canonical(&was.view), &next, &error), &error);
	holds(next == NULL, "a table of other rows is not revised");

	was = now;
	delete_rows(&was, 1, 1);
	fill(&was, 299);
	must(tnp_revise(e, &was.view, canonical(&was.view), &next, &error), &error);
	holds((next == NULL) == info->scales_by_prefix, "rows of the statistics stay what they were");
	tnp_encoding_free(next);

	was = now;
	fill(&was, 300);
	was.y[299 * info->n_targets] = large;
	status = tnp_revise(e, &was.view, canonical(&was.view), &next, &error);
	holds(info->scales_by_prefix
		  || (status == TNP_BAD_VALUE && next == NULL && strstr(error.detail, "row 300") != NULL),
		  "a row that the sums cannot hold is refused");
	tnp_encoding_free(next);
	was.y[299 * info->n_targets] = INFINITY;
	holds(tnp_revise(e, &was.view, canonical(&was.view), &next, &error) == TNP_BAD_VALUE
		  && next == NULL, "and one that is no row");
	tnp_encoding_free(e);
}

/* Wherever memory ends, nothing is left of it. */
static void
test_memory(void)
{
	TnpEncoding *e,
			   *next;
	TnpStatus	status = TNP_NO_MEMORY;
	TnpError	error;
	bool		clean = true;
	int			live,
				stops = 0;

	for (int i = 0; i < 300; i++)
		now.row[i] = i;
	fill(&now, 300);
	e = build(&now.view, canonical(&now.view));
	delete_rows(&now, 270, 3);
	fill(&now, 297);
	live = env.live;
	for (int n = 1; status == TNP_NO_MEMORY; n++)
	{
		env.calls = 0;
		env.fail_at = n;
		status = tnp_revise(e, &now.view, canonical(&now.view), &next, &error);
		env.fail_at = 0;
		clean = clean && (status == TNP_OK) == (next != NULL);
		tnp_encoding_free(next);
		clean = clean && env.live == live;
	}
	holds(clean && status == TNP_OK, "without memory nothing is left");
	status = TNP_INTERRUPTED;
	for (int n = 1; status == TNP_INTERRUPTED; n++)
	{
		env.polls = 0;
		env.stop_at = n;
		status = tnp_revise(e, &now.view, canonical(&now.view), &next, &error);
		stops += status == TNP_INTERRUPTED;
		clean = clean && (status == TNP_OK) == (next != NULL);
		tnp_encoding_free(next);
		clean = clean && env.live == live;
	}
	env.stop_at = 0;
	holds(clean && status == TNP_OK && stops > 1, "nor after a cancel, at any poll");
	tnp_encoding_free(e);
}

/* A family that cannot says so. */
static void
test_others(void)
{
	TestRows	few;
	TnpEncoding *e,
			   *next;
	TnpError	error;
	int64_t		prefix;

	test_rows_make(&few, info, 20, 3);
	prefix = tnp_whole_prefix(model, few.view.n);
	e = build(&few.view, prefix);
	must(tnp_revise(e, &few.view, prefix, &next, &error), &error);
	holds(next == NULL && !info->revisable, "rows of others are encoded, as they say");
	tnp_encoding_free(e);
	test_rows_free(&few);
}

static void
test_model(const TestModel *m, const TnpKernels *kernels)
{
	static char name[128];
	TnpError	error;

	snprintf(name, sizeof(name), "%s, %s", m->name, kernels->name);
	title = name;
	counting = *kernels;
	linear = kernels->linear;
	counting.linear = count_linear;
	test_env_init(&env, &counting);
	must(tnp_model_open(&env.env, m->bytes, m->length, &model, &error), &error);
	info = tnp_model_info(model);
	size = tnp_answer_size(model);
	if (strcmp(info->architecture, "mean") != 0)
		test_others();
	else
	{
		test_rows_make(&rows, info, MANY + QUERIES, 11);
		/* the same edits whatever tables this machine has: some change more than is taken over */
		random_state = 7;
		holds(info->revisable, "it says what it can");
		test_edits();
		test_costs();
		test_order();
		test_refusals();
		test_memory();
		test_rows_free(&rows);
	}
	tnp_model_close(model);
	holds(env.live == 0, "everything allocated is freed");
}

int
main(void)
{
	const TnpKernels *tables[TNP_CPU_TABLES + 1];
	int			n_tables = tnp_cpu_all_kernels(tables, TNP_CPU_TABLES),
				n;
	TestModel  *models = test_models(&n);

	tables[n_tables++] = &tnp_reference_kernels;
	for (int i = 0; i < n; i++)
	{
		bool		mean = strncmp(models[i].name, "mean", 4) == 0;

		for (int t = 0; t < n_tables; t++)
			if (mean ? getenv("TNP_QUICK") == NULL || tables[t] == test_kernels()
				: t == n_tables - 1)
				test_model(&models[i], tables[t]);
	}
	test_models_free(models, n);
	return done_testing();
}
