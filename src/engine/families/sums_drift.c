/*
 * sums_drift.c: how far rows have moved from those that a fit is of, told by the sums alone
 * (docs/sums.md, "Drift").
 *
 * Marks are the few sums that tell where rows lie: of the target, of an odd feature of each numeric
 * column, of missing cells and of categories that the basis does not know.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/sums.h"

#include <math.h>
#include <string.h>

#include "engine/features/drift.h"

/* Pairs of words, of the target and of its square; columns follow. */
enum { MARK_TARGET = 0, MARK_SQUARE = 2, MARK_HEAD = 4 };

/*
 * Of a column, in rows: its missing cells; of a numeric one the sums of its feature and of its
 * square, of another one the rows in buckets and 0.
 */
enum { MARK_MISSING, MARK_FIRST, MARK_SECOND, MARK_COLUMN };

size_t
sums_marks_words(int columns)
{
	return MARK_HEAD + (size_t) columns * MARK_COLUMN;
}

static int64_t
gram_at(const SumsState *s, size_t i, size_t j)
{
	return sums_gram(s)[i * (i + 1) / 2 + j];
}

/* Rows whose feature is 1, of one that is 0 or 1; the intercept is 1. */
static int64_t
rows_with(const SumsState *s, int feature)
{
	return gram_at(s, feature, 0) / (SUMS_UNIT * SUMS_UNIT);
}

/* Of the features of a numeric column the one that tells where it lies: odd in s, if one is. */
static int
telling_feature(const SumsConfig *c)
{
	return c->linear || c->waves < 2 ? 0 : 1;
}

/* The marks of a column whose first feature is `at`; its number of features. */
static int
mark_column(const SumsState *s, const int64_t *column, int at, int64_t *mark)
{
	const SumsConfig *c = &s->config;

	mark[MARK_MISSING] = rows_with(s, at);
	mark[MARK_FIRST] = mark[MARK_SECOND] = 0;
	if (column[SUMS_KIND] == TNP_CATEGORICAL)
	{
		for (int k = 0; k < c->buckets; k++)
			mark[MARK_FIRST] += rows_with(s, at + 1 + c->levels + k);
		return 1 + c->levels + c->buckets;
	}
	if (c->linear || c->waves > 0)
	{
		int			telling = at + 1 + telling_feature(c);

		mark[MARK_FIRST] = gram_at(s, telling, 0) / SUMS_UNIT;
		mark[MARK_SECOND] = gram_at(s, telling, telling);
	}
	return 1 + (c->linear ? 1 : 0) + c->waves;
}

static void
mark_target(const SumsState *s, int64_t *marks)
{
	memcpy(marks + MARK_TARGET, sums_product(s), 2 * sizeof(int64_t));
	memcpy(marks + MARK_SQUARE, sums_product(s) + 2 * s->width, 2 * sizeof(int64_t));
}

void
sums_marks(const SumsState *s, int64_t *marks)
{
	int			at = 1;

	mark_target(s, marks);
	for (int f = 0; f < s->common.columns; f++)
		at += mark_column(s, sums_column(&s->config, sums_basis(s), f), at,
						  marks + MARK_HEAD + (size_t) f * MARK_COLUMN);
}

bool
sums_marks_fit(int columns, int64_t rows, const int64_t *marks)
{
	const int64_t most = rows * SUMS_UNIT * SUMS_UNIT;
	bool		good = true;

	for (int f = 0; f < columns; f++)
	{
		const int64_t *mark = marks + MARK_HEAD + (size_t) f * MARK_COLUMN;

		good = good && mark[MARK_MISSING] >= 0 && mark[MARK_MISSING] <= rows
			&& mark[MARK_FIRST] >= -most && mark[MARK_FIRST] <= most
			&& mark[MARK_SECOND] >= 0 && mark[MARK_SECOND] <= most;
	}
	return good;
}

static TnpSpread
target_spread(int64_t rows, const int64_t *marks)
{
	const double n = (double) rows,
				unit = (double) ((int64_t) 1 << SUMS_TARGET_BITS);
	double		mean = (double) tnp_exact(marks + MARK_TARGET) / SUMS_UNIT / unit / n,
				square = (double) tnp_exact(marks + MARK_SQUARE) / unit / unit / n;

	return (TnpSpread) {rows, mean, sqrt(fmax(square - mean * mean, 0)), 0};
}

/* Exact but for the last roundings, so that what is constant has no spread. */
static TnpSpread
column_spread(int64_t rows, const int64_t *mark)
{
	int64_t		n = rows - mark[MARK_MISSING];
	double		all = (double) n;
	SumsWide	square = (SumsWide) n * mark[MARK_SECOND]
		- (SumsWide) mark[MARK_FIRST] * mark[MARK_FIRST];

	if (n <= 0)
		return (TnpSpread) {0, 0, 0, 0};
	return (TnpSpread) {n, (double) mark[MARK_FIRST] / all,
		square > 0 ? sqrt((double) square) / all : 0, 0};
}

/* Drift of a column between marks of it. */
static double
column_drift(bool numeric, int64_t before, const int64_t *old, int64_t after, const int64_t *new)
{
	double		missing = tnp_share_drift(old[MARK_MISSING], before, new[MARK_MISSING], after);

	if (!numeric)
		return fmax(missing, tnp_share_drift(old[MARK_FIRST], before, new[MARK_FIRST], after));
	return fmax(missing, tnp_spread_drift(column_spread(before, old), column_spread(after, new)));
}

double
sums_drift(const SumsState *s, int64_t rows, const int64_t *marks)
{
	const int64_t *basis = sums_basis(s);
	int64_t		now[MARK_HEAD + MARK_COLUMN];
	double		drift = 0;
	int			at = 1;

	mark_target(s, now);
	if (rows > 0 && s->common.n > 0)
		drift = tnp_spread_drift(target_spread(rows, marks), target_spread(s->common.n, now));
	for (int f = 0; f < s->common.columns; f++)
	{
		const int64_t *column = sums_column(&s->config, basis, f);

		at += mark_column(s, column, at, now + MARK_HEAD);
		drift = fmax(drift, column_drift(column[SUMS_KIND] != TNP_CATEGORICAL, rows,
										 marks + MARK_HEAD + (size_t) f * MARK_COLUMN, s->common.n,
										 now + MARK_HEAD));
	}
	return drift;
}
