/*
 * mean_merge_test.c: contexts of a mean process that are sums (docs/families.md): merged = at once,
 * deleted = never inserted, bitwise, and answers are those of the rows; for every such test model
 * and every table of kernels. Words that are no sums, rows that no model takes and a failing
 * allocator are refused, and leave nothing behind.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <stdlib.h>

#include "cpu/cpu.h"
#include "models.h"
#include "tap.h"

#include "engine/families/mean_merge.h"

#define ROWS 200
#define QUERIES 5
#define PARTS 7
#define LARGEST 96				/* doubles of one answer */

static const char *title;
static TestEnv env;
static TnpModel *model;
static TestRows rows;
static int64_t *basis;
static size_t words;			/* of sums */
static int	targets;

static bool
holds(bool condition, const char *what)
{
	return ok(condition, "%s: %s", title, what);
}

static TnpSums *
begin(void)
{
	TnpSums    *s = malloc(tnp_sums_bytes(model, basis));

	tnp_sums_begin(model, basis, s);
	return s;
}

static void
add(TnpSums *s, int first, int n, int sign)
{
	TnpRows		some = test_slice(&rows, first, n);
	TnpError	error;

	test_must(tnp_sums_add(model, s, &some, sign, &error), &error);
}

static bool
same(TnpSums *a, TnpSums *b)
{
	int64_t    *x = malloc(words * sizeof(int64_t)),
			   *y = malloc(words * sizeof(int64_t));
	bool		equal;

	tnp_sums_write(model, a, x);
	tnp_sums_write(model, b, y);
	equal = memcmp(x, y, words * sizeof(int64_t)) == 0;
	free(x);
	free(y);
	return equal;
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* Rows one by one into any of some parts, which are merged; and parts taken away again. */
static void
test_merging(void)
{
	TnpSums    *part[PARTS],
			   *whole = begin(),
			   *most = begin(),
			   *none = begin();
	unsigned	random = 3;
	TnpError	error;

	add(whole, 0, ROWS, 1);
	for (int p = 0; p < PARTS; p++)
		part[p] = begin();
	for (int i = ROWS - 1; i >= 0; i--)
		add(part[(int) (test_uniform(&random) * PARTS)], i, 1, 1);
	for (int p = 1; p < PARTS; p++)
		test_must(tnp_sums_merge(model, most, part[p], 1, &error), &error);
	test_must(tnp_sums_merge(model, part[0], most, 1, &error), &error);
	holds(tnp_sums_rows(part[0]) == ROWS && same(part[0], whole), "merged = at once");
	for (int p = 1; p < PARTS; p++)
		test_must(tnp_sums_merge(model, part[0], part[p], -1, &error), &error);
	test_must(tnp_sums_merge(model, whole, most, -1, &error), &error);
	holds(same(part[0], whole), "what was merged is taken away, in any order");
	add(most, ROWS / 2, 1, 1);
	add(most, ROWS / 2, 1, -1);
	test_must(tnp_sums_merge(model, whole, most, 1, &error), &error);
	add(whole, 10, ROWS - 10, -1);
	add(none, 0, 10, 1);
	holds(same(whole, none), "deleted = never inserted");
	holds(tnp_sums_merge(model, none, most, -1, &error) == TNP_BAD_VALUE
		  && same(whole, none), "no more rows are taken away than there are");
	for (int p = 0; p < PARTS; p++)
		free(part[p]);
	free(whole);
	free(most);
	free(none);
}

static void
test_words(void)
{
	int64_t    *out = malloc(words * sizeof(int64_t));
	TnpSums    *s = begin(),
			   *again = begin();
	TnpError	error;
	size_t		refused = 0,
				narrow = 1 + 2 * ((size_t) targets + rows.view.n_features);

	add(s, 0, ROWS, 1);
	tnp_sums_write(model, s, out);
	test_must(tnp_sums_read(model, again, out, &error), &error);
	holds(same(s, again), "read = written");
	for (size_t i = 0; i < words; i++)
	{
		int64_t		kept = out[i];

		/* the low word of a wide sum is anything */
		out[i] = INT64_MIN;
		refused += tnp_sums_read(model, again, out, &error) == TNP_BAD_VALUE;
		out[i] = kept;
	}
	ok(refused == narrow + (words - narrow) / 2,
	   "%s: all words but the low ones are checked", title);
	free(out);
	free(s);
	free(again);
}

static void
test_basis(void)
{
	size_t		n = tnp_basis_words(model, rows.view.n_features);
	TnpColumnKind labels[8] = {TNP_CATEGORICAL};
	TnpRows		few = test_slice(&rows, 0, 1);
	int64_t    *other = malloc(n * sizeof(int64_t));
	TnpError	error;
	bool		refused = true;

	holds(tnp_basis_check(model, rows.view.n_features, NULL, n, basis, &error) == TNP_OK,
		  "a basis is taken");
	/* what is stored of one target stays readable */
	holds(n == 4 + 2 * (size_t) targets + 3 * (size_t) rows.view.n_features && basis[0] == 1,
		  "its layout is that of version 1");
	holds(tnp_basis_check(model, rows.view.n_features, NULL, n - 1, basis, &error) != TNP_OK
		  && tnp_basis_check(model, rows.view.n_features + 1, NULL, n, basis, &error) != TNP_OK
		  && tnp_basis_check(model, rows.view.n_features, labels, n, basis, &error) != TNP_OK,
		  "of other columns it is not");
	for (size_t i = 0; i < n; i++)
	{
		int64_t		kept = basis[i];

		/* any number of rows may have made it */
		basis[i] = i == MEAN_BASIS_ROWS ? -1 : sums_word(NAN);
		refused = refused
			&& tnp_basis_check(model, rows.view.n_features, NULL, n, basis, &error) != TNP_OK;
		basis[i] = kept;
	}
	holds(refused, "nor with a word that is none");
	if (tnp_model_info(model)->scales_by_prefix)
		holds(tnp_basis_make(model, &few, other, &error) == TNP_TOO_FEW_ROWS,
			  "one row has no scale");
	free(other);
}

/* ---- rows that no model takes ---------------------------------------------------------------- */

static void
test_strange_rows(void)
{
	double		x[8] = {0},
				y[TNP_MAX_TARGETS] = {0};
	TnpRows		row = {1, rows.view.n_features, NULL, x, y, 0, 0, targets};
	TnpSums    *s = begin(),
			   *before = begin();
	TnpError	error;
	const double strange[] = {NAN, INFINITY, -INFINITY, 1e300};

	add(s, 0, 3, 1);
	add(before, 0, 3, 1);
	holds(tnp_sums_takes(model, s, x, y), "an ordinary row is taken");
	row.n_targets = targets + 1;
	holds(tnp_sums_add(model, s, &row, 1, &error) == TNP_BAD_SHAPE && same(s, before),
		  "one with a target too many is not");
	row.n_targets = targets;
	for (int i = 0; i < 4; i++)
		for (int t = -1; t < targets; t++)
		{
			double	   *cell = t >= 0 ? &y[t] : &x[rows.view.n_features - 1];

			*cell = strange[i];
			/* an input that is clipped has no bounds, unless it has no digits left */
			if (i == 3 && tnp_sums_takes(model, s, x, y))
				ok(tnp_sums_add(model, s, &row, 1, &error) == TNP_OK
				   && tnp_sums_add(model, s, &row, -1, &error) == TNP_OK && same(s, before),
				   "%s: a large one comes and goes", title);
			else
				ok(!tnp_sums_takes(model, s, x, y)
				   && tnp_sums_add(model, s, &row, 1, &error) == TNP_BAD_VALUE && same(s, before),
				   "%s: %g is not taken, and nothing is added", title, strange[i]);
			*cell = 0;
		}
	free(s);
	free(before);
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Whether two encodings give the same bits. */
static void
test_equal(const TnpEncoding *a, const TnpEncoding *b, const char *what)
{
	TnpRows		queries = test_slice(&rows, 10, QUERIES),
				scored = test_slice(&rows, 20, 9);
	double		x[QUERIES * LARGEST],
				y[QUERIES * LARGEST],
				density[2];
	TnpError	error;

	queries.y = NULL;
	test_must(tnp_predict(a, &queries, x, &error), &error);
	test_must(tnp_predict(b, &queries, y, &error), &error);
	ok(memcmp(x, y, (size_t) QUERIES * tnp_answer_size(model) * sizeof(double)) == 0,
	   "%s: answers of %s", title, what);
	test_must(tnp_sample(a, &queries, 3, 0, 4, x, &error), &error);
	test_must(tnp_sample(b, &queries, 3, 0, 4, y, &error), &error);
	ok(memcmp(x, y, 4 * QUERIES * targets * sizeof(double)) == 0, "%s: draws of %s", title, what);
	test_must(tnp_score(a, &scored, 3, 7, density, NULL, &error), &error);
	test_must(tnp_score(b, &scored, 3, 7, density + 1, NULL, &error), &error);
	ok(density[0] == density[1], "%s: joint densities of %s", title, what);
}

/*
 * Sums of all rows, and an encoding of them whose first n are the prefix, under a basis of the rows
 * that statistics are of there.
 */
static void
test_answers(int n)
{
	bool		causal = strcmp(tnp_model_info(model)->context, "causal") == 0;
	TnpRows		first = test_slice(&rows, 0, n),
				later = test_slice(&rows, n, ROWS - n),
				told = causal ? test_slice(&rows, 0, tnp_model_info(model)->min_rows) : first;
	int64_t    *whole = basis;
	TnpEncoding *built,
			   *summed,
			   *view;
	TnpSums    *s;
	TnpError	error;

	basis = malloc(tnp_basis_words(model, rows.view.n_features) * sizeof(int64_t));
	test_must(tnp_basis_make(model, &told, basis, &error), &error);
	s = begin();
	add(s, 0, ROWS, 1);
	test_must(tnp_build(model, &first, causal ? 0 : n, &built, &error), &error);
	if (later.n > 0)
		test_must(tnp_append(built, &later, &error), &error);
	test_must(tnp_sums_encode(model, NULL, s, &summed, &error), &error);
	free(s);
	test_equal(built, summed, "sums are those of rows");
	test_must(tnp_encoding_first(summed, ROWS, &view, &error), &error);
	test_equal(built, view, "a view of sums are the same");
	tnp_encoding_free(view);
	tnp_encoding_free(built);
	tnp_encoding_free(summed);
	free(basis);
	basis = whole;
}

/* ---- fits ------------------------------------------------------------------------------------ */

/* One target moves, and the others stay. */
static void
test_fits(int target)
{
	size_t		n = tnp_fit_words(model, basis);
	int64_t    *fit = malloc(n * sizeof(int64_t)),
			   *again = malloc(n * sizeof(int64_t));
	double	   *moved = malloc(ROWS * targets * sizeof(double));
	TnpRows		later = test_slice(&rows, 0, ROWS);
	TnpSums    *s = begin();
	TnpEncoding *e;
	TnpError	error;

	memcpy(moved, rows.view.y, ROWS * targets * sizeof(double));
	for (int i = 0; i < ROWS; i++)
		moved[i * targets + target] += 4 * sums_number(mean_target(basis, target)[MEAN_SCALE]);
	later.y = moved;
	add(s, 0, ROWS, 1);
	test_must(tnp_sums_encode(model, NULL, s, &e, &error), &error);
	holds(tnp_sums_fit_rows(e) == ROWS && tnp_sums_drift(e) == 0, "a fit of its own rows");
	tnp_fit_write(e, fit);
	tnp_encoding_free(e);
	add(s, 0, ROWS, -1);
	test_must(tnp_sums_add(model, s, &later, 1, &error), &error);
	test_must(tnp_sums_encode_fitted(model, NULL, s, n, fit, false, &e, &error), &error);
	ok(tnp_sums_drift(e) > 1, "%s: target %d that has moved is told", title, target);
	tnp_fit_write(e, again);
	holds(memcmp(fit, again, n * sizeof(int64_t)) == 0, "a fit stays what it was");
	tnp_encoding_free(e);
	holds(tnp_sums_encode_fitted(model, NULL, s, n - 1, fit, false, &e, &error) == TNP_BAD_VALUE
		  && e == NULL, "one with too few words is refused");
	fit[n - 1] = -1;
	holds(tnp_sums_encode_fitted(model, NULL, s, n, fit, false, &e, &error) == TNP_BAD_VALUE
		  && e == NULL, "and one of which a square is negative");
	free(fit);
	free(again);
	free(moved);
	free(s);
}

static void
test_memory(void)
{
	TnpSums    *s = begin();
	long		live = env.live;
	TnpStatus	status = TNP_NO_MEMORY;
	TnpEncoding *e;
	TnpError	error;

	add(s, 0, ROWS, 1);
	for (int k = 1; status == TNP_NO_MEMORY; k++)
	{
		env.fail_at = env.calls + k;
		status = tnp_sums_encode(model, NULL, s, &e, &error);
		if (status != TNP_OK && (e != NULL || env.live != live))
			break;
	}
	env.fail_at = 0;
	if (holds(status == TNP_OK, "without memory nothing is left"))
		tnp_encoding_free(e);
	if (tnp_model_info(model)->min_rows > 0)
	{
		TnpSums    *none = begin();

		holds(tnp_sums_encode(model, NULL, none, &e, &error) == TNP_TOO_FEW_ROWS && e == NULL,
			  "sums of too few rows are not asked");
		free(none);
	}
	free(s);
}

/* The basis of the model before this one, of other weights and perhaps other targets. */
static struct
{
	int64_t    *basis;
	size_t		words;
	int			n_features;
	const char *model;
} last;

static void
test_other_model(const TestModel *m)
{
	size_t		n = tnp_basis_words(model, rows.view.n_features);
	TnpError	error;

	if (last.basis != NULL && last.model != m->name && last.n_features == rows.view.n_features)
		holds(tnp_basis_check(model, last.n_features, NULL, last.words, last.basis, &error)
			  == TNP_BAD_ARGUMENT, "the basis of another model is refused");
	last.basis = realloc(last.basis, n * sizeof(int64_t));
	memcpy(last.basis, basis, n * sizeof(int64_t));
	last.words = n;
	last.n_features = rows.view.n_features;
	last.model = m->name;
}

/* Models that differ in one weight do not take each other's sums. */
static void
test_other_weights(const TestModel *m)
{
	unsigned char *bytes = malloc(m->length);
	TnpModel   *other;
	int			refused = 0,
				tried = 0;
	TnpError	error;

	for (size_t back = 1; back < m->length; back += m->length / 300)
	{
		memcpy(bytes, m->bytes, m->length);
		bytes[m->length - back] ^= 1;
		if (tnp_model_open(NULL, bytes, m->length, &other, &error) != TNP_OK)
			continue;
		tried++;
		refused += tnp_basis_check(other, rows.view.n_features, NULL,
								   tnp_basis_words(model, rows.view.n_features), basis, &error)
			== TNP_BAD_ARGUMENT;
		tnp_model_close(other);
	}
	/* those of the head do not matter to sums */
	ok(refused > 0 && refused < tried, "%s: %d of %d changed weights are noticed", title, refused,
	   tried);
	free(bytes);
}

static int	found,
			found_several;

static void
test_model(const TestModel *m, const TnpKernels *kernels)
{
	char		name[256];
	TnpRows		sample;
	TnpError	error;

	if (strncmp(m->name, "mean", 4) != 0)
		return;
	snprintf(name, sizeof(name), "%s, %s", m->name, kernels->name);
	title = name;
	test_env_init(&env, kernels);
	test_must(tnp_model_open(&env.env, m->bytes, m->length, &model, &error), &error);
	targets = tnp_model_info(model)->n_targets;
	if (holds(tnp_keeps_sums(model) && !tnp_prefers_sums(model), "it says what it can"))
	{
		found++;
		found_several += targets > 1;
		test_rows_make(&rows, tnp_model_info(model), ROWS, 7);
		basis = malloc(tnp_basis_words(model, rows.view.n_features) * sizeof(int64_t));
		sample = test_slice(&rows, 0, ROWS);
		test_must(tnp_basis_make(model, &sample, basis, &error), &error);
		words = tnp_sums_words(model, basis);
		test_merging();
		test_words();
		test_basis();
		test_strange_rows();
		test_answers(ROWS);
		test_answers(ROWS / 4);
		for (int t = 0; t < targets; t++)
			test_fits(t);
		test_memory();
		test_other_weights(m);
		test_other_model(m);
		free(basis);
		test_rows_free(&rows);
	}
	tnp_model_close(model);
	holds(env.live == 0, "everything allocated is freed");
}

int
main(void)
{
	test_everywhere(test_model);
	free(last.basis);
	ok((found > 0 && found_several > 0) || getenv("TNP_QUICK") != NULL,
	   "%d models keep sums of vectors, %d of them of several targets", found, found_several);
	return done_testing();
}
