/*
 * sums_test.c: sums of rows are exact (docs/sums.md): merged = at once, deleted = never inserted,
 * bitwise; words that are no sums are refused; an encoding of sums answers as one of rows.
 * All of it under a basis with directions, too.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <stdlib.h>

#include "cpu/cpu.h"
#include "models.h"
#include "tap.h"

#include "engine/base/cholesky.h"
#include "engine/families/sums.h"
#include "engine/features/drift.h"

#define ROWS 200
#define QUERIES 5
#define PARTS 64
#define LARGEST 96				/* doubles of one answer */

static TnpModel *model;
static const char *name;
static TestRows rows;
static int64_t *basis;
static size_t words;			/* of sums */

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

/* The words of sums, which are freed. */
static int64_t *
write_out(TnpSums *s)
{
	int64_t    *out = malloc(words * sizeof(int64_t));

	tnp_sums_write(model, s, out);
	free(s);
	return out;
}

static bool
same(int64_t *a, int64_t *b)
{
	bool		equal = memcmp(a, b, words * sizeof(int64_t)) == 0;

	free(a);
	free(b);
	return equal;
}

static int64_t *
at_once(int n)
{
	TnpSums    *s = begin();

	add(s, 0, n, 1);
	return write_out(s);
}

/* Any partition, parts filled row by row in a random order and merged in another. */
static void
check_merge(void)
{
	for (int parts = 1; parts <= PARTS; parts *= 4)
	{
		TnpSums    *part[PARTS];
		unsigned	seed = (unsigned) parts;
		TnpError	error;

		for (int p = 0; p < parts; p++)
			part[p] = begin();
		for (int i = 0; i < ROWS; i++)
			add(part[(int) (test_uniform(&seed) * parts)], (i * 77 + 13) % ROWS, 1, 1);
		for (int left = parts; left > 1; left--)
		{
			int			into = (int) (test_uniform(&seed) * (left - 1));

			test_must(tnp_sums_merge(model, part[into], part[left - 1], 1, &error), &error);
			free(part[left - 1]);
		}
		ok(same(write_out(part[0]), at_once(ROWS)), "%s: %d parts merged = at once", name, parts);
	}
}

static void
check_delete(void)
{
	TnpSums    *s = begin(),
			   *more = begin();
	unsigned	seed = 5;
	long		turns = getenv("TNP_QUICK") != NULL ? 1000 : 100000 / TEST_EVERY;
	TnpRows		one = test_slice(&rows, 0, 1);
	TnpError	error;

	add(s, 0, ROWS, 1);
	add(s, 100, ROWS - 100, -1);
	ok(same(write_out(s), at_once(100)), "%s: inserted and deleted = never inserted", name);

	s = begin();
	add(s, 0, 100, 1);
	for (long t = 0; t < turns; t++)
	{
		int			i = 100 + (int) (test_uniform(&seed) * (ROWS - 100));

		add(s, i, 1, 1);
		add(s, i, 1, -1);
	}
	ok(same(write_out(s), at_once(100)), "%s: as after %ld insertions and deletions", name, turns);

	s = begin();
	add(s, 0, ROWS, 1);
	add(more, 100, ROWS - 100, 1);
	test_must(tnp_sums_merge(model, s, more, -1, &error), &error);
	free(more);
	ok(same(write_out(s), at_once(100)), "%s: subtracted = never inserted", name);

	s = begin();
	ok(tnp_sums_add(model, s, &one, -1, &error) == TNP_BAD_VALUE && tnp_sums_rows(s) == 0,
	   "%s: no row is taken from none", name);
	free(s);
}

/* A billion rows: doubled over and over, without overflow, until there are too many. */
static void
check_room(void)
{
	TnpSums    *s = begin();
	int64_t    *out;
	TnpError	error;
	int			status = TNP_OK;
	int64_t		n = 128;

	add(s, 0, 128, 1);
	while (status == TNP_OK && n < (int64_t) 1 << 40)
	{
		TnpSums    *twin = malloc(tnp_sums_bytes(model, basis));

		memcpy(twin, s, tnp_sums_bytes(model, basis));
		status = tnp_sums_merge(model, s, twin, 1, &error);
		n = status == TNP_OK ? 2 * n : n;
		free(twin);
	}
	ok(status == TNP_BAD_VALUE, "%s: too many rows are refused", name);
	ok(n == (int64_t) 1 << 32 && tnp_sums_rows(s) == n, "%s: four billion are not", name);
	out = write_out(s);
	s = begin();
	ok(tnp_sums_read(model, s, out, &error) == TNP_OK, "%s: and can be read", name);
	free(s);
	free(out);
}

static void
check_words(void)
{
	int64_t    *out = at_once(ROWS);
	TnpSums    *s = begin();
	TnpError	error;
	int			refused = 0;

	test_must(tnp_sums_read(model, s, out, &error), &error);
	ok(same(write_out(s), at_once(ROWS)), "%s: read = written", name);
	for (size_t i = 0; i < words; i++)
	{
		int64_t		kept = out[i];

		s = begin();
		/* the low word of a wide sum is anything */
		out[i] = INT64_MIN;
		refused += tnp_sums_read(model, s, out, &error) != TNP_OK;
		out[i] = kept;
		free(s);
	}
	ok(refused > (int) words * 3 / 4, "%s: %d of %d words changed are refused", name, refused,
	   (int) words);
	free(out);
}

static void
check_basis(void)
{
	size_t		n = tnp_basis_words(model, rows.view.n_features);
	TnpError	error;
	int			refused = 0;

	ok(tnp_basis_check(model, rows.view.n_features, rows.view.kinds, n, basis, &error) == TNP_OK,
	   "%s: a basis is one", name);
	ok(tnp_basis_check(model, rows.view.n_features, rows.view.kinds, n - 1, basis, &error) != TNP_OK
	   && tnp_basis_check(model, rows.view.n_features + 1, NULL, n, basis, &error) != TNP_OK,
	   "%s: words are missing, columns are", name);
	for (int i = 0; i < 3; i++)
	{
		int64_t		kept = basis[i];

		basis[i] ^= (int64_t) 1 << 62;
		refused += tnp_basis_check(model, rows.view.n_features, rows.view.kinds, n, basis, &error)
			!= TNP_OK;
		basis[i] = kept;
	}
	ok(refused == 3, "%s: what it says first cannot be changed", name);
}

/* Targets along a direction of numeric columns. */
static void
turn_rows(void)
{
	int			n = rows.view.n_features;

	for (int i = 0; i < ROWS; i++)
	{
		double		score = 0;

		for (int f = 0; f < n; f++)
			if (rows.kinds[f] == TNP_NUMERIC && !isnan(rows.x[i * n + f]))
				score += (f % 2 == 0 ? 1.3 : -0.9) * rows.x[i * n + f];
		rows.y[i] = sin(score) + 0.1 * rows.y[i];
	}
}

/* A search that runs out of memory or is interrupted, wherever that is, leaves nothing behind. */
static void
check_faults(const TestModel *file)
{
	const char *const what[] = {"out of memory", "interrupted"};
	const TnpStatus wanted[] = {TNP_NO_MEMORY, TNP_INTERRUPTED};
	int64_t    *again = malloc(tnp_basis_words(model, rows.view.n_features) * sizeof(int64_t));
	TnpModel   *watched;
	TnpError	error;
	TestEnv		env;

	test_env_init(&env, test_kernels());
	test_must(tnp_model_open(&env.env, file->bytes, file->length, &watched, &error), &error);
	for (int k = 0; k < 2; k++)
	{
		long		held = env.live,
					turns = 0;
		bool		clean = true;
		TnpStatus	status = wanted[k];

		while (status == wanted[k] && clean)
		{
			turns++;
			env.calls = env.polls = 0;
			env.fail_at = k == 0 ? turns : 0;
			env.stop_at = k == 1 ? turns : 0;
			status = tnp_basis_make(watched, &rows.view, again, &error);
			clean = env.live == held;
		}
		ok(clean && status == TNP_OK && turns > 10, "%s: %s %ld times", name, what[k], turns - 1);
	}
	ok(memcmp(again, basis, tnp_basis_words(model, rows.view.n_features) * sizeof(int64_t)) == 0,
	   "%s: the same basis afterwards", name);
	tnp_model_close(watched);
	ok(env.live == 0, "%s: everything is freed", name);
	free(again);
}

/* What another hand may have written where the directions are. */
static void
check_directions(void)
{
	const SumsConfig *c = sums_config(model);
	int			n_features = rows.view.n_features,
				found = sums_n_directions(c, basis);
	size_t		n = tnp_basis_words(model, n_features),
				at = (size_t) (sums_directions(c, basis) - basis),
				free_word = at + 1 + (size_t) found * n_features;
	struct
	{
		size_t		word;
		int64_t		value;
	}			bad[] = {
		{at, -1}, {at, c->directions + 1}, {at, INT64_MAX}, {at, found - 1},
		{at + 1, TNP_MOST_DIRECTION_WEIGHT + 1}, {at + 1, INT64_MIN},
		{at + 2, 5},			/* of a categorical column */
		{free_word, 1},			/* of no direction */
	};
	TnpError	error;

	ok(found > 0 && found < c->directions, "%s: %d directions are found", name, found);
	ok(n == at + 1 + (size_t) c->directions * n_features && rows.kinds[1] == TNP_CATEGORICAL
	   && basis[at + 1] != 0 && basis[at + 2] == 0, "%s: they are a basis' last words", name);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
	{
		int64_t		kept = basis[bad[i].word];

		basis[bad[i].word] = bad[i].value;
		ok(tnp_basis_check(model, n_features, rows.view.kinds, n, basis, &error) == TNP_BAD_VALUE,
		   "%s: damaged directions are refused, %d", name, (int) i);
		basis[bad[i].word] = kept;
	}
	ok(tnp_basis_check(model, n_features, rows.view.kinds, at, basis, &error) == TNP_BAD_VALUE,
	   "%s: a basis without them is, too", name);
}

static void
check_answers(void)
{
	TnpRows		all = test_slice(&rows, 0, ROWS),
				queries = test_slice(&rows, 10, QUERIES);
	TnpEncoding *built,
			   *summed;
	TnpSums    *s = begin();
	double		a[QUERIES * LARGEST],
				b[QUERIES * LARGEST],
				density[2];
	TnpDistributionKind kind;
	TnpError	error;
	int			n;

	add(s, 0, ROWS, 1);
	queries.y = NULL;
	test_must(tnp_build(model, &all, ROWS, &built, &error), &error);
	test_must(tnp_sums_encode(model, rows.view.kinds, s, &summed, &error), &error);
	free(s);
	test_must(tnp_predict(built, &queries, a, &error), &error);
	test_must(tnp_predict(summed, &queries, b, &error), &error);
	tnp_answer_shape(model, &kind, &n);
	ok(memcmp(a, b, (size_t) QUERIES * tnp_distribution_size(kind, n) * sizeof(double)) == 0,
	   "%s: answers of sums = answers of rows", name);
	test_must(tnp_sample(built, &queries, 3, 0, 4, a, &error), &error);
	test_must(tnp_sample(summed, &queries, 3, 0, 4, b, &error), &error);
	ok(memcmp(a, b, 4 * QUERIES * sizeof(double)) == 0, "%s: draws, too", name);
	/* more rows than covariances are held of at a time: in one piece as in two */
	test_must(tnp_score(summed, &all, 0, 0, density, NULL, &error), &error);
	test_must(tnp_score(built, &all, 0, 0, density + 1, NULL, &error), &error);
	ok(density[0] == density[1], "%s: densities, too", name);
	tnp_encoding_free(built);
	tnp_encoding_free(summed);
}

/* Sums of rows some of which were forgotten are never asked, and are right with the next rows. */
static void
check_forget(void)
{
	TnpRows		first = test_slice(&rows, 0, ROWS / 2),
				later = test_slice(&rows, ROWS / 2, ROWS - ROWS / 2),
				last = test_slice(&rows, ROWS - 3, 3),
				queries = test_slice(&rows, 10, QUERIES);
	TnpEncoding *e;
	double		a[QUERIES * LARGEST] = {0},
				b[QUERIES * LARGEST] = {0};
	TnpError	error;

	test_must(tnp_build(model, &first, ROWS / 2, &e, &error), &error);
	test_must(tnp_append(e, &later, &error), &error);
	test_must(tnp_predict(e, &queries, a, &error), &error);
	tnp_encoding_forget(e, ROWS - 3);
	ok(tnp_predict(e, &queries, b, &error) == TNP_BAD_ARGUMENT
	   && tnp_sample(e, &queries, 1, 0, 1, b, &error) == TNP_BAD_ARGUMENT
	   && tnp_score(e, &queries, 1, 1, b, NULL, &error) == TNP_BAD_ARGUMENT,
	   "%s: sums of rows that were forgotten are not asked", name);
	test_must(tnp_append(e, &last, &error), &error);
	test_must(tnp_predict(e, &queries, b, &error), &error);
	ok(memcmp(a, b, sizeof(a)) == 0, "%s: rows that come back leave what was", name);
	tnp_encoding_free(e);
}

/* A fit of some rows, and the sums of others: as rows that were appended, and back again. */
static void
check_fit(void)
{
	TnpRows		first = test_slice(&rows, 0, ROWS / 2),
				later = test_slice(&rows, ROWS / 2, ROWS - ROWS / 2),
				queries = test_slice(&rows, 10, QUERIES);
	TnpEncoding *built,
			   *half,
			   *fitted = NULL;
	TnpSums    *s;
	size_t		n_fit;
	int64_t    *fit;
	double		a[QUERIES * LARGEST],
				b[QUERIES * LARGEST];
	TnpDistributionKind kind;
	TnpError	error;
	int			n;
	size_t		bytes;
	bool		same = true;
	int64_t    *all_basis = basis;

	/* a build has the basis of its prefix */
	basis = malloc(tnp_basis_words(model, rows.view.n_features) * sizeof(int64_t));
	test_must(tnp_basis_make(model, &first, basis, &error), &error);
	n_fit = tnp_fit_words(model, basis);
	fit = malloc(n_fit * sizeof(int64_t));
	s = begin();
	queries.y = NULL;
	tnp_answer_shape(model, &kind, &n);
	bytes = (size_t) QUERIES * tnp_distribution_size(kind, n) * sizeof(double);
	test_must(tnp_build(model, &first, ROWS / 2, &built, &error), &error);
	test_must(tnp_append(built, &later, &error), &error);
	test_must(tnp_predict(built, &queries, a, &error), &error);
	add(s, 0, ROWS / 2, 1);
	test_must(tnp_sums_encode(model, rows.view.kinds, s, &half, &error), &error);
	tnp_fit_write(half, fit);
	add(s, ROWS / 2, ROWS - ROWS / 2, 1);
	test_must(tnp_sums_encode_fitted(model, rows.view.kinds, s, n_fit, fit, false, &fitted, &error),
			  &error);
	test_must(tnp_predict(fitted, &queries, b, &error), &error);
	ok(memcmp(a, b, bytes) == 0, "%s: a fit with later rows = rows appended", name);
	tnp_fit_write(fitted, fit);
	tnp_encoding_free(fitted);
	add(s, ROWS / 2, ROWS - ROWS / 2, -1);
	test_must(tnp_sums_encode_fitted(model, rows.view.kinds, s, n_fit, fit, false, &fitted, &error),
			  &error);
	test_must(tnp_predict(half, &queries, a, &error), &error);
	test_must(tnp_predict(fitted, &queries, b, &error), &error);
	for (size_t i = 0; i < bytes / sizeof(double); i++)
		same = same && fabs(a[i] - b[i]) < 1e-12;
	ok(same, "%s: without them it is the fit of its rows", name);
	tnp_encoding_free(fitted);
	fitted = NULL;
	ok(tnp_sums_encode_fitted(model, rows.view.kinds, s, n_fit - 1, fit, false, &fitted, &error)
	   == TNP_BAD_VALUE && fitted == NULL, "%s: a fit with too few words is refused", name);
	fit[n_fit - 1] = INT64_MIN;
	ok(tnp_sums_encode_fitted(model, rows.view.kinds, s, n_fit, fit, false, &fitted, &error)
	   == TNP_BAD_VALUE, "%s: so is a negative precision", name);
	tnp_encoding_free(built);
	tnp_encoding_free(half);
	free(fit);
	free(s);
	free(basis);
	basis = all_basis;
}

/* What has happened to rows since a fit of the same number. */
typedef enum Change { NOTHING, TARGETS_MOVE, CELLS_MOVE, CELLS_MISSING, NEW_CATEGORIES } Change;

#define FITTED 100
#define TARGETS_BY 3			/* units of the basis */

/* Change column f of the first rows, if it is of the kind that can, and their targets. */
static void
change_rows(Change change, int f, double *x, double *y)
{
	for (int i = 0; i < FITTED; i++)
	{
		double	   *cell = &x[i * rows.view.n_features + f];

		if (change == TARGETS_MOVE)
			y[i] += TARGETS_BY * sums_number(basis[SUMS_SCALE]);
		if (change == CELLS_MISSING)
			*cell = NAN;
		if (change == CELLS_MOVE)
			*cell += 3 * sums_number(sums_column(sums_config(model), basis, f)[SUMS_COLUMN_SCALE]);
		if (change == NEW_CATEGORIES)
			*cell = 1e9 + i;
	}
}

/* The drift of rows that are changed since the fit; *plain: that of tnp_drift, of the rows. */
static double
drift_after(Change change, int f, double *plain)
{
	int			d = rows.view.n_features;
	double	   *x = malloc(2 * FITTED * d * sizeof(double)),
			   *y = malloc(2 * FITTED * sizeof(double)),
				drift;
	int64_t    *fit = malloc(tnp_fit_words(model, basis) * sizeof(int64_t));
	TnpRows		both = {2 * FITTED, d, rows.view.kinds, x, y, 0, 0, 1},
				later = {FITTED, d, rows.view.kinds, x + FITTED * d, y + FITTED, 0, 0, 1};
	TnpSums    *s = begin(),
			   *now = begin();
	TnpEncoding *e;
	TnpError	error;

	for (int part = 0; part < 2; part++)
	{
		memcpy(x + part * FITTED * d, rows.view.x, FITTED * d * sizeof(double));
		memcpy(y + part * FITTED, rows.view.y, FITTED * sizeof(double));
	}
	change_rows(change, f, x + FITTED * d, y + FITTED);
	add(s, 0, FITTED, 1);
	test_must(tnp_sums_encode(model, rows.view.kinds, s, &e, &error), &error);
	tnp_fit_write(e, fit);
	tnp_encoding_free(e);
	test_must(tnp_sums_add(model, now, &later, 1, &error), &error);
	test_must(tnp_sums_encode_fitted(model, rows.view.kinds, now, tnp_fit_words(model, basis), fit,
									 false, &e, &error), &error);
	drift = tnp_sums_drift(e);
	*plain = tnp_drift(NULL, &both, FITTED);
	tnp_encoding_free(e);
	free(s);
	free(now);
	free(fit);
	free(x);
	free(y);
	return drift;
}

/* Of the first rows, those whose cell of column f is missing, or a category that is not known. */
static int
count_unknown(int f, bool missing)
{
	const int64_t *column = sums_column(sums_config(model), basis, f);
	int			n = 0;

	for (int i = 0; i < FITTED; i++)
	{
		double		cell = rows.view.x[i * rows.view.n_features + f];
		bool		known = isnan(cell);

		for (int64_t k = 0; k < column[SUMS_COLUMN_CENTER] && !missing; k++)
			known = known || sums_number(column[SUMS_LEVELS + k]) == cell;
		n += missing ? isnan(cell) : !known;
	}
	return n;
}

static void
check_drift(void)
{
	double		plain,
				drift = drift_after(TARGETS_MOVE, 0, &plain);

	is_near(drift, plain, 1e-6, "a target drifts as it does among rows");
	ok(drift_after(NOTHING, 0, &plain) == 0, "%s: the same rows have not drifted", name);
	for (int f = 0; f < rows.view.n_features; f++)
	{
		bool		numeric = rows.view.kinds == NULL || rows.view.kinds[f] == TNP_NUMERIC;
		double		missing = tnp_share_drift(count_unknown(f, true), FITTED, FITTED, FITTED);

		is_near(drift_after(CELLS_MISSING, f, &plain), missing, 1e-12,
				"cells that are missing count by their share");
		if (numeric)
			ok(drift_after(CELLS_MOVE, f, &plain) > 1, "%s: column %d: numbers that move", name, f);
		else
			is_near(drift_after(NEW_CATEGORIES, f, &plain),
					tnp_share_drift(count_unknown(f, false), FITTED, FITTED, FITTED), 1e-12,
					"unknown categories by their share");
	}
}

/* The joint density of more rows than covariances are held of, as the sum of its halves. */
static void
check_long_score(void)
{
	TestRows	many;
	TnpEncoding *e,
			   *longer;
	TnpRows		context,
				all,
				first,
				rest;
	TnpEncoding *view,
			   *copy;
	TnpDistributionKind kind;
	int			n;
	double		whole,
				part_params[3][3 * LARGEST],
				part[2];
	TnpError	error;

	test_rows_make(&many, tnp_model_info(model), 700, 11);
	context = test_slice(&many, 0, 100);
	all = test_slice(&many, 100, 600);
	first = test_slice(&many, 100, 250);
	rest = test_slice(&many, 350, 350);
	test_must(tnp_build(model, &context, 100, &e, &error), &error);
	test_must(tnp_build(model, &context, 100, &longer, &error), &error);
	test_must(tnp_append(longer, &first, &error), &error);
	test_must(tnp_score(e, &all, 0, 0, &whole, NULL, &error), &error);
	test_must(tnp_score(e, &first, 0, 0, &part[0], NULL, &error), &error);
	test_must(tnp_score(longer, &rest, 0, 0, &part[1], NULL, &error), &error);
	ok(fabs(part[0] + part[1] - whole) < 1e-6, "%s: a long density in two parts", name);
	/* a view and a copy of fewer rows than the sums are of */
	rest.y = NULL;
	rest.n = 3;
	test_must(tnp_predict(longer, &rest, part_params[0], &error), &error);
	test_must(tnp_append(longer, &first, &error), &error);
	test_must(tnp_encoding_first(longer, 350, &view, &error), &error);
	test_must(tnp_encoding_copy(longer, 350, 400, false, &copy, &error), &error);
	test_must(tnp_predict(view, &rest, part_params[1], &error), &error);
	test_must(tnp_predict(copy, &rest, part_params[2], &error), &error);
	tnp_answer_shape(model, &kind, &n);
	n = 3 * tnp_distribution_size(kind, n);
	ok(memcmp(part_params[0], part_params[1], n * sizeof(double)) == 0
	   && memcmp(part_params[0], part_params[2], n * sizeof(double)) == 0,
	   "%s: a view and a copy of the first rows", name);
	tnp_encoding_free(view);
	tnp_encoding_free(copy);
	tnp_encoding_free(e);
	tnp_encoding_free(longer);
	test_rows_free(&many);
}

/*
 * The evidence against the density of the targets, a multivariate t distribution, by the matrix of
 * rows: K = I + phi Lambda^-1 phi', whose factor takes no sums.
 */
static void
check_evidence(void)
{
	enum { N = 20 };
	const SumsConfig *c = sums_config(model);
	TnpSums    *s = begin();
	TnpEncoding *e;
	const SumsFacts *f;
	double		want = 0,
				unit = sums_number(basis[SUMS_SCALE]);
	TnpError	error;

	add(s, 0, N, 1);
	test_must(tnp_sums_encode(model, rows.view.kinds, s, &e, &error), &error);
	free(s);
	f = sums_facts(e);
	for (int k = 0; k < f->settings; k++)
	{
		double		gram[N * N],
					factor[N * N],
					u[N],
					shape = c->noise_shape + N / 2.0,
					sum = lgamma(shape) - lgamma(c->noise_shape)
			- N / 2.0 * log(2 * 3.14159265358979323846 * c->noise_rate);

		for (int i = 0; i < N; i++)
		{
			int16_t		a[SUMS_MOST_FEATURES],
						b[SUMS_MOST_FEATURES];

			sums_features(c, basis, rows.view.x + i * rows.view.n_features, a);
			for (int j = 0; j <= i; j++)
			{
				sums_features(c, basis, rows.view.x + j * rows.view.n_features, b);
				gram[i * N + j] = 0;
				for (int m = 0; m < f->width; m++)
					gram[i * N + j] += (double) a[m] * b[m] / ((double) SUMS_UNIT * SUMS_UNIT)
						/ sums_precision(f, k)[m];
			}
			u[i] = (rows.view.y[i] - sums_number(basis[SUMS_CENTER])) / unit;
		}
		if (!tnp_factorise(gram, N, 1, factor))
			exit(1);
		tnp_solve_lower(factor, N, u);
		for (int i = 0; i < N; i++)
			sum -= log(factor[i * N + i]);
		sum -= shape * log(1 + tnp_dot(N, u, u) / (2 * c->noise_rate));
		want += exp(sum) / f->settings;
	}
	is_near(tnp_sums_log_evidence(e), log(want) - N * log(unit), 1e-6,
			"the evidence of sums is the density of their rows");
	tnp_encoding_free(e);
}

int
main(void)
{
	int			n,
				found = 0,
				turned = 0;
	TestModel  *models = test_models(&n);

	for (int i = 0; i < n; i++)
	{
		TnpError	error;
		TnpRows		sample;

		test_must(tnp_model_open(NULL, models[i].bytes, models[i].length, &model, &error), &error);
		if (tnp_prefers_sums(model))
		{
			found++;
			name = models[i].name;
			test_rows_make(&rows, tnp_model_info(model), ROWS, 7);
			basis = malloc(tnp_basis_words(model, rows.view.n_features) * sizeof(int64_t));
			if (sums_config(model)->directions > 0)
				turn_rows();
			sample = test_slice(&rows, 0, ROWS);
			test_must(tnp_basis_make(model, &sample, basis, &error), &error);
			words = tnp_sums_words(model, basis);
			check_merge();
			check_delete();
			check_room();
			check_words();
			check_basis();
			if (sums_config(model)->directions > 0)
			{
				turned++;
				check_directions();
				check_faults(&models[i]);
			}
			check_answers();
			check_forget();
			check_fit();
			check_drift();
			check_long_score();
			check_evidence();
			free(basis);
			test_rows_free(&rows);
		}
		tnp_model_close(model);
	}
	ok(found > turned && (turned >= 1 || getenv("TNP_QUICK") != NULL),
	   "%d models keep sums, %d with directions", found, turned);
	test_models_free(models, n);
	return done_testing();
}
