/*
 * sums_basis.c: the basis of sums: what is learnt of a sample of rows and then stays, so that sums
 * of all rows under it can be merged (docs/sums.md, "The basis").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/sums.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/cholesky.h"
#include "engine/features/column.h"
#include "engine/features/least_squares.h"
#include "engine/features/scale.h"

#define VERSION 1
#define SCREENED_ROWS 4096		/* that pairs are chosen by, at most */
#define SCREENED_WAVES 4		/* of each column, in the fit whose residuals choose */
#define SMALLEST 1e-290
#define LARGEST 1e150

/* A number that two models have in common only if their features are the same. */
static int64_t
model_number(const TnpModel *model)
{
	const SumsConfig *c = sums_config(model);
	int64_t		part[] = {VERSION, c->waves, c->pairs, c->pair_waves, c->levels, c->buckets,
		c->linear, c->inputs, c->target, SUMS_UNIT, c->directions};
	/* models without directions have the number that they had before there were any */
	size_t		parts = sizeof(part) / sizeof(part[0]) - (c->directions == 0 ? 1 : 0);
	uint64_t	hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < parts; i++)
		for (int byte = 0; byte < 8; byte++)
			hash = (hash ^ ((uint64_t) part[i] >> 8 * byte & 0xff)) * UINT64_C(0x100000001b3);
	return (int64_t) (hash >> 1);
}

/* ---- columns --------------------------------------------------------------------------------- */

/* Mean and standard deviation of n numbers, `stride` apart, that are not missing. */
static void
moments(const double *x, int64_t n, int stride, double *mean, double *sd)
{
	double		most = 0,
				sum = 0;
	int64_t		found = 0;

	for (int64_t i = 0; i < n; i++)
		if (!isnan(x[i * stride]))
		{
			most = fmax(most, fabs(x[i * stride]));
			found++;
		}
	*mean = *sd = 0;
	if (found == 0 || most == 0)
		return;
	/* in units of the largest, so that no sum overflows */
	for (int64_t i = 0; i < n; i++)
		if (!isnan(x[i * stride]))
			sum += x[i * stride] / most;
	*mean = most * (sum / (double) found);
	sum = 0;
	for (int64_t i = 0; i < n; i++)
		if (!isnan(x[i * stride]))
		{
			double		d = x[i * stride] / most - *mean / most;

			sum += d * d;
		}
	*sd = most * sqrt(sum / (double) found);
}

/* What is divided by: not so small that constants become differences. */
static double
scale_of(double mean, double sd)
{
	double		scale = fmax(sd, 1e-12 * fabs(mean));

	return scale < SMALLEST ? 1 : scale;
}

static TnpStatus
make_numeric(const TnpModel *model, const TnpRows *rows, int f, int64_t *column, TnpError *error)
{
	double		mean = 0,
				sd = 1;

	if (sums_config(model)->inputs == TNP_SCALE_PREFIX)
		moments(rows->x + f, rows->n, rows->n_features, &mean, &sd);
	else if (sums_config(model)->inputs == TNP_SCALE_FIXED)
	{
		mean = model->config.input_center[f];
		sd = model->config.input_scale[f];
	}
	if (!(fabs(mean) <= LARGEST && sd <= LARGEST))
		return tnp_fail(error, TNP_BAD_VALUE, "feature %d is too large to be scaled", f + 1);
	column[SUMS_KIND] = TNP_NUMERIC;
	column[SUMS_COLUMN_CENTER] = sums_word(mean);
	column[SUMS_COLUMN_SCALE] = sums_word(scale_of(mean, sd));
	return TNP_OK;
}

typedef struct Level
{
	double		cell;
	int64_t		count;
} Level;

static int
compare_cells(const void *a, const void *b)
{
	double		x = *(const double *) a,
				y = *(const double *) b;

	return (x > y) - (x < y);
}

/* Frequent categories first, of equally frequent ones the smaller identity. */
static int
compare_levels(const void *a, const void *b)
{
	const Level *x = a,
			   *y = b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return compare_cells(&x->cell, &y->cell);
}

/* The most frequent categories, in ascending order. */
static TnpStatus
make_categories(const TnpModel *model, const TnpRows *rows, int f, int64_t *column,
				TnpError *error)
{
	const TnpEnv *env = &model->env;
	int64_t		most = sums_config(model)->levels,
				n = 0,
				n_levels = 0;
	double	   *cells = tnp_alloc(env, rows->n + 1, sizeof(double));
	Level	   *levels = tnp_alloc(env, rows->n + 1, sizeof(Level));
	TnpStatus	status = cells == NULL || levels == NULL ? tnp_no_memory(error) : TNP_OK;

	for (int64_t i = 0; status == TNP_OK && i < rows->n; i++)
		if (!isnan(rows->x[i * rows->n_features + f]))
			cells[n++] = rows->x[i * rows->n_features + f];
	if (status == TNP_OK && n > 0)
	{
		qsort(cells, n, sizeof(double), compare_cells);
		for (int64_t i = 0; i < n; i++)
		{
			if (i == 0 || cells[i] != cells[i - 1])
				levels[n_levels++] = (Level) {cells[i], 0};
			levels[n_levels - 1].count++;
		}
		qsort(levels, n_levels, sizeof(Level), compare_levels);
		n_levels = n_levels < most ? n_levels : most;
		for (int64_t i = 0; i < n_levels; i++)
			cells[i] = levels[i].cell;
		qsort(cells, n_levels, sizeof(double), compare_cells);
		for (int64_t i = 0; i < n_levels; i++)
			column[SUMS_LEVELS + i] = sums_word(cells[i]);
	}
	column[SUMS_KIND] = TNP_CATEGORICAL;
	column[SUMS_COLUMN_CENTER] = n_levels;
	tnp_free(env, cells);
	tnp_free(env, levels);
	return status;
}

/* ---- pairs ----------------------------------------------------------------------------------- */

/* A choice of pairs: rows at even distances, their residuals, and what the columns are in pairs. */
typedef struct Screen
{
	const SumsConfig *c;
	int			n,				/* rows */
				numeric,		/* columns */
				parts;			/* numbers of a column in a pair */
	int		   *column;			/* [numeric] */
	double	   *part,			/* [numeric, parts, n] 0 where missing */
			   *rest,			/* [n] */
			   *design,			/* [n, entries] */
			   *gram;			/* [entries, entries] and as much for its factor */
} Screen;

static void
screen_free(const TnpEnv *env, Screen *s)
{
	tnp_free(env, s->column);
	tnp_free(env, s->part);
	tnp_free(env, s->rest);
	tnp_free(env, s->design);
	tnp_free(env, s->gram);
}

static int
screen_entries(const Screen *s)
{
	return 1 + s->numeric * (1 + SCREENED_WAVES);
}

static TnpStatus
screen_make(const TnpModel *model, const TnpRows *rows, Screen *s, TnpError *error)
{
	const TnpEnv *env = &model->env;
	size_t		entries;

	*s = (Screen) {.c = sums_config(model)};
	s->n = rows->n < SCREENED_ROWS ? (int) rows->n : SCREENED_ROWS;
	s->parts = s->c->pair_waves + 1;
	s->column = tnp_alloc(env, rows->n_features, sizeof(int));
	if (s->column == NULL)
		return tnp_no_memory(error);
	for (int f = 0; f < rows->n_features; f++)
		if (rows->kinds == NULL || rows->kinds[f] == TNP_NUMERIC)
			s->column[s->numeric++] = f;
	entries = screen_entries(s);
	s->part = tnp_alloc_zero(env, (size_t) s->numeric * s->parts, (s->n + 1) * sizeof(double));
	s->rest = tnp_alloc(env, s->n + 1, sizeof(double));
	s->design = tnp_alloc_zero(env, (size_t) s->n + 1, entries * sizeof(double));
	s->gram = tnp_alloc_zero(env, 2 * entries + 2, entries * sizeof(double));
	return s->part == NULL || s->rest == NULL || s->design == NULL || s->gram == NULL
		? tnp_no_memory(error) : TNP_OK;
}

static void
screen_read(Screen *s, const TnpRows *rows, const int64_t *basis)
{
	double		wave[8];

	for (int i = 0; i < s->n; i++)
	{
		int64_t		row = (int64_t) i * rows->n / s->n;
		double	   *entry = s->design + (size_t) i * screen_entries(s);

		s->rest[i] = (rows->y[row] - sums_number(basis[SUMS_CENTER]))
			/ sums_number(basis[SUMS_SCALE]);
		*entry++ = 1;
		for (int k = 0; k < s->numeric; k++, entry += 1 + SCREENED_WAVES)
		{
			const int64_t *column = sums_column(s->c, basis, s->column[k]);
			double	   *part = s->part + (size_t) k * s->parts * s->n + i,
						x = rows->x[row * rows->n_features + s->column[k]];

			if (isnan(x))
				continue;
			x = sums_squash(column, x);
			entry[0] = part[0] = x / SUMS_REACH;
			tnp_waves(x, SCREENED_WAVES, entry + 1);
			tnp_waves(x, s->c->pair_waves, wave);
			for (int w = 0; w < s->c->pair_waves; w++)
				part[(size_t) (w + 1) * s->n] = wave[w];
		}
	}
}


/* The largest squared correlation of the residuals with a product of the two columns' parts. */
static double
screen_score(const Screen *s, int i, int j)
{
	const double *x = s->part + (size_t) i * s->parts * s->n,
			   *z = s->part + (size_t) j * s->parts * s->n;
	double		best = 0,
				rest2 = tnp_dot(s->n, s->rest, s->rest);

	for (int k = 0; k < s->parts * s->parts; k++)
	{
		const double *a = x + (size_t) (k / s->parts) * s->n,
				   *b = z + (size_t) (k % s->parts) * s->n;
		double		sum = 0,
					square = 0,
					product = 0,
					rest = 0;

		for (int r = 0; r < s->n; r++)
		{
			double		p = a[r] * b[r];

			sum += p;
			square += p * p;
			product += p * s->rest[r];
			rest += s->rest[r];
		}
		product -= sum * rest / s->n;
		square -= sum * sum / s->n;
		best = fmax(best, product * product / (square * rest2 + 1e-12));
	}
	return best;
}

/* Put the best pairs into the basis, in ascending order. */
static TnpStatus
screen_choose(const TnpModel *model, const Screen *s, int64_t *basis, TnpError *error)
{
	int64_t    *pair = (int64_t *) sums_pairs(s->c, basis);
	double		score[64];
	int			n = 0;

	for (int i = 0; i < s->numeric; i++)
	{
		if (tnp_interrupted(&model->env))
			return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		for (int j = i + 1; j < s->numeric; j++)
		{
			double		value = screen_score(s, i, j);
			int			at = n;

			while (at > 0 && score[at - 1] < value)
				at--;
			if (at >= s->c->pairs)
				continue;
			n = n < s->c->pairs ? n + 1 : n;
			memmove(score + at + 1, score + at, (n - 1 - at) * sizeof(double));
			memmove(pair + at + 1, pair + at, (n - 1 - at) * sizeof(int64_t));
			score[at] = value;
			pair[at] = (int64_t) s->column[i] << 16 | s->column[j];
		}
	}
	for (int i = 1; i < n; i++)
		for (int j = i; j > 0 && pair[j - 1] > pair[j]; j--)
		{
			int64_t		swap = pair[j];

			pair[j] = pair[j - 1];
			pair[j - 1] = swap;
		}
	basis[SUMS_PAIRS] = n;
	return TNP_OK;
}

static TnpStatus
make_pairs(const TnpModel *model, const TnpRows *rows, int64_t *basis, TnpError *error)
{
	Screen		s;
	TnpStatus	status = screen_make(model, rows, &s, error);

	if (status == TNP_OK && s.numeric > 1 && s.c->pairs > 0)
	{
		screen_read(&s, rows, basis);
		/* leave of the targets what columns by themselves do not explain */
		tnp_least_squares_rest(s.n, screen_entries(&s), s.design, s.rest, s.gram);
		status = screen_choose(model, &s, basis, error);
	}
	screen_free(&model->env, &s);
	return status;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/*
 * Targets that are all equal, as the first ones of counts may be, do not say how far others lie:
 * their own size is the only one there is.
 */
static TnpStatus
make_target(const TnpModel *model, const TnpRows *rows, int64_t *basis, TnpError *error)
{
	double		mean = 0,
				sd = 1;

	if (sums_config(model)->target == TNP_SCALE_PREFIX)
	{
		moments(rows->y, rows->n, 1, &mean, &sd);
		if (tnp_all_equal(rows->y, rows->n, 1))
			sd = fabs(mean);
	}
	else if (sums_config(model)->target == TNP_SCALE_FIXED)
	{
		mean = model->config.target_center[0];
		sd = model->config.target_scale[0];
	}
	if (!(fabs(mean) <= LARGEST && sd <= LARGEST))
		return tnp_fail(error, TNP_BAD_VALUE, "the targets are too large to be scaled");
	if (sd < SMALLEST && !(mean == 0 && sd == 0))
		return tnp_fail(error, TNP_BAD_VALUE, "the targets are too small to be scaled");
	basis[SUMS_CENTER] = sums_word(mean);
	basis[SUMS_SCALE] = sums_word(scale_of(mean, sd));
	return TNP_OK;
}

static TnpStatus
check_width(const TnpModel *model, const int64_t *basis, TnpError *error)
{
	if (sums_width(sums_config(model), basis) > 0)
		return TNP_OK;
	tnp_fail(error, TNP_BAD_SHAPE, "too many columns for the model");
	tnp_detail(error, "a row would become more than %d numbers", SUMS_MOST_FEATURES);
	return TNP_BAD_SHAPE;
}

TnpStatus
sums_basis_make(const TnpModel *model, const TnpRows *rows, int64_t *basis, TnpError *error)
{
	TnpStatus	status = tnp_rows_check(model, rows, true, error);

	if (status != TNP_OK)
		return status;
	memset(basis, 0, sums_basis_words(model, rows->n_features) * sizeof(int64_t));
	basis[SUMS_VERSION] = VERSION;
	basis[SUMS_MODEL] = model_number(model);
	basis[SUMS_COLUMNS] = rows->n_features;
	basis[SUMS_ROWS] = rows->n;
	status = make_target(model, rows, basis, error);
	for (int f = 0; status == TNP_OK && f < rows->n_features; f++)
	{
		int64_t    *column = (int64_t *) sums_column(sums_config(model), basis, f);

		status = rows->kinds != NULL && rows->kinds[f] == TNP_CATEGORICAL
			? make_categories(model, rows, f, column, error)
			: make_numeric(model, rows, f, column, error);
	}
	/* before pairs are looked for, which takes memory by the number of columns */
	if (status == TNP_OK)
		status = check_width(model, basis, error);
	if (status == TNP_OK)
		status = make_pairs(model, rows, basis, error);
	if (status == TNP_OK)
		status = check_width(model, basis, error);
	return status == TNP_OK ? sums_find_directions(model, rows, basis, error) : status;
}

static bool
is_scale(int64_t center, int64_t scale)
{
	return fabs(sums_number(center)) <= LARGEST && sums_number(scale) > 0
		&& sums_number(scale) <= LARGEST;
}

static bool
is_column(const SumsConfig *c, const int64_t *column, TnpColumnKind kind)
{
	if (column[SUMS_KIND] != (int64_t) kind)
		return false;
	if (kind == TNP_NUMERIC)
		return is_scale(column[SUMS_COLUMN_CENTER], column[SUMS_COLUMN_SCALE]);
	if (column[SUMS_COLUMN_CENTER] < 0 || column[SUMS_COLUMN_CENTER] > c->levels)
		return false;
	for (int64_t i = 0; i < column[SUMS_COLUMN_CENTER]; i++)
	{
		double		level = sums_number(column[SUMS_LEVELS + i]);

		if (!(level >= 0 && level < 9007199254740992.0)
			|| (i > 0 && !(sums_number(column[SUMS_LEVELS + i - 1]) < level)))
			return false;
	}
	return true;
}

/* Whether directions are weights of numeric columns, and all that is not used is 0. */
static bool
are_directions(const SumsConfig *c, const int64_t *basis)
{
	const int64_t *number = sums_directions(c, basis);

	if (c->directions == 0)
		return true;
	if (*number < 0 || *number > c->directions)
		return false;
	for (int d = 0; d < c->directions; d++)
		for (int f = 0; f < basis[SUMS_COLUMNS]; f++)
		{
			int64_t		weight = sums_direction(c, basis, d)[f];
			bool		used = d < *number
				&& sums_column(c, basis, f)[SUMS_KIND] == TNP_NUMERIC;

			if (used ? weight < -TNP_MOST_DIRECTION_WEIGHT || weight > TNP_MOST_DIRECTION_WEIGHT
				: weight != 0)
				return false;
		}
	return true;
}

TnpStatus
sums_basis_check(const TnpModel *model, int n_features, const TnpColumnKind *kinds, size_t words,
				const int64_t *basis, TnpError *error)
{
	const SumsConfig *c = sums_config(model);
	const int64_t *pair;

	if (words < SUMS_HEAD || basis[SUMS_VERSION] != VERSION
		|| basis[SUMS_MODEL] != model_number(model))
		return tnp_fail(error, TNP_BAD_ARGUMENT, "the basis was made with another model");
	if (basis[SUMS_COLUMNS] != n_features)
		return tnp_fail(error, TNP_BAD_SHAPE, "%d feature columns given, the basis has %lld",
						n_features, (long long) basis[SUMS_COLUMNS]);
	if (words != sums_basis_words(model, n_features) || basis[SUMS_ROWS] < 0
		|| !is_scale(basis[SUMS_CENTER], basis[SUMS_SCALE])
		|| basis[SUMS_PAIRS] < 0 || basis[SUMS_PAIRS] > c->pairs)
		return tnp_fail(error, TNP_BAD_VALUE, "the basis is damaged");
	for (int f = 0; f < n_features; f++)
		if (!is_column(c, sums_column(c, basis, f), kinds != NULL ? kinds[f] : TNP_NUMERIC))
			return tnp_fail(error, TNP_BAD_VALUE, "the basis does not fit feature %d", f + 1);
	pair = sums_pairs(c, basis);
	for (int64_t p = 0; p < basis[SUMS_PAIRS]; p++)
	{
		int64_t		i = pair[p] >> 16,
					j = pair[p] & 0xffff;

		if (i < 0 || i >= j || j >= n_features || (p > 0 && pair[p] <= pair[p - 1])
			|| sums_column(c, basis, (int) i)[SUMS_KIND] != TNP_NUMERIC
			|| sums_column(c, basis, (int) j)[SUMS_KIND] != TNP_NUMERIC)
			return tnp_fail(error, TNP_BAD_VALUE, "the basis is damaged");
	}
	if (!are_directions(c, basis))
		return tnp_fail(error, TNP_BAD_VALUE, "the basis is damaged");
	return check_width(model, basis, error);
}
