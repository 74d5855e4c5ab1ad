/*
 * sums_state.c: the sums of rows: added, subtracted, merged, written and read (docs/sums.md,
 * "Exactness").
 *
 * All sums are integers that cannot overflow, so that they depend on which rows are in them and on
 * nothing else: neither on the order of rows, nor on what was added and subtracted in between.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/sums.h"

#include <math.h>
#include <string.h>

/* ---- the layout ------------------------------------------------------------------------------ */

static int64_t *
memory_of(const SumsState *s)
{
	return (int64_t *) (s + 1);
}

const int64_t *
sums_basis(const SumsState *s)
{
	return memory_of(s);
}

static size_t
gram_words(int width)
{
	return (size_t) width * (width + 1) / 2;
}

int64_t *
sums_gram(const SumsState *s)
{
	return memory_of(s) + s->common.basis_words;
}

int64_t *
sums_product(const SumsState *s)
{
	return sums_gram(s) + gram_words(s->width);
}

/* Targets [SUMS_WAITING] of waiting rows, their cells [columns, SUMS_WAITING], ... */
static int64_t *
waiting_targets(const SumsState *s)
{
	return sums_product(s) + 2 * (s->width + 1);
}

static double *
waiting_cells(const SumsState *s)
{
	return (double *) (waiting_targets(s) + SUMS_WAITING);
}

#define BLOCKS TNP_MOMENT_BLOCKS

/* ... and what adding them takes: the provider's parts, ... */
static double *
scratch_parts(const SumsState *s)
{
	return waiting_cells(s) + (size_t) s->common.columns * SUMS_WAITING;
}

/* ... sums of products with the target [width] of a block, its features ... */
static int64_t *
scratch_product(const SumsState *s)
{
	return (int64_t *) (scratch_parts(s) + sums_part_numbers(&s->config, s->common.columns));
}

static int16_t *
scratch_features(const SumsState *s)
{
	return (int16_t *) (scratch_product(s) + s->width);
}

/* and features of all blocks as they are laid out, and their norms. */
static int32_t *
scratch_panels(const SumsState *s)
{
	return (int32_t *) (void *) (scratch_features(s) + (size_t) s->width * TNP_MOMENT_ROWS);
}

static uint16_t *
scratch_norms(const SumsState *s)
{
	return (uint16_t *) (scratch_panels(s) + BLOCKS * tnp_panel_words(s->width));
}

/* Words of all this. */
static size_t
waiting_words(const SumsConfig *c, int columns, int width)
{
	return SUMS_WAITING * (1 + (size_t) columns) + sums_part_numbers(c, columns) + width
		+ (size_t) width * TNP_MOMENT_ROWS / 4 + BLOCKS * tnp_panel_words(width) / 2
		+ BLOCKS * TNP_MOMENT_NORMS / 4;
}

/* Words of sums beside the number of rows. */
static size_t
sum_words(int width)
{
	return gram_words(width) + 2 * ((size_t) width + 1);
}

size_t
sums_basis_words(const TnpModel *model, int n_features)
{
	const SumsConfig *c = sums_config(model);

	return SUMS_HEAD + (size_t) n_features * (SUMS_LEVELS + c->levels) + c->pairs
		+ (c->directions > 0 ? 1 + (size_t) c->directions * n_features : 0);
}

size_t
sums_state_words(const TnpModel *model, const int64_t *basis)
{
	return 1 + sum_words(sums_width(sums_config(model), basis));
}

size_t
sums_state_bytes(const TnpModel *model, const int64_t *basis)
{
	int			width = sums_width(sums_config(model), basis),
				columns = (int) basis[SUMS_COLUMNS];

	return sizeof(SumsState)
		+ (sums_basis_words(model, columns) + sum_words(width)
		   + waiting_words(sums_config(model), columns, width)) * sizeof(int64_t);
}

void
sums_begin(const TnpModel *model, const int64_t *basis, TnpSums *sums)
{
	SumsState  *s = (SumsState *) sums;
	size_t		words = sums_basis_words(model, (int) basis[SUMS_COLUMNS]);

	memset(s, 0, sums_state_bytes(model, basis));
	s->config = *sums_config(model);
	s->common.columns = (int) basis[SUMS_COLUMNS];
	s->common.basis_words = (int) words;
	s->width = sums_width(&s->config, basis);
	memcpy(memory_of(s), basis, words * sizeof(int64_t));
}

#define FEW 8					/* rows whose features are computed one by one */

/* ---- rows ------------------------------------------------------------------------------------ */

bool
sums_target(const int64_t *basis, double y, int64_t *fixed)
{
	double		u = (y - sums_number(basis[SUMS_CENTER])) / sums_number(basis[SUMS_SCALE]);

	if (!(fabs(u) <= SUMS_TARGET_MOST))
		return false;
	*fixed = (int64_t) nearbyint(u * ((int64_t) 1 << SUMS_TARGET_BITS));
	return true;
}

/* Any cells have features. */
bool
sums_takes(const TnpModel *model, TnpSums *sums, const double *x, const double *y)
{
	int64_t		fixed;

	(void) model;
	(void) x;
	return sums_target(sums_basis((SumsState *) sums), *y, &fixed);
}

/* Features of `rows` waiting rows from the first on; those of the others of the block are 0. */
static void
fill_features(const TnpMoments *moments, SumsState *s, int first, int rows)
{
	const double *x = waiting_cells(s) + first;
	int16_t    *phi = scratch_features(s);

	if (rows >= FEW)
		sums_features_of_block(moments, &s->config, sums_basis(s), x, SUMS_WAITING,
							   scratch_parts(s), phi);
	for (int r = rows; r < TNP_MOMENT_ROWS; r++)
		for (int i = 0; i < s->width; i++)
			phi[(size_t) i * TNP_MOMENT_ROWS + r] = 0;
	for (int r = 0; r < rows && rows < FEW; r++)
	{
		int16_t		one[SUMS_MOST_FEATURES];
		double	   *cells = scratch_parts(s);	/* has room for them */

		for (int f = 0; f < s->common.columns; f++)
			cells[f] = x[(size_t) f * SUMS_WAITING + r];
		sums_features(&s->config, sums_basis(s), cells, one);
		for (int i = 0; i < s->width; i++)
			phi[(size_t) i * TNP_MOMENT_ROWS + r] = one[i];
	}
}

/* Add `sign` times the waiting rows; afterwards none wait. */
static void
add_waiting(const TnpModel *model, SumsState *s, int sign)
{
	const TnpMoments *moments = model->kernels->moments();
	int64_t    *y = waiting_targets(s),
			   *product = sums_product(s);
	SumsWide	square = 0;
	int			blocks = (s->waiting + TNP_MOMENT_ROWS - 1) / TNP_MOMENT_ROWS,
				pairs = blocks > 1 ? TNP_MOMENT_ROWS / 2 : (s->waiting + 1) / 2;

	for (int k = s->waiting; k < SUMS_WAITING; k++)
	{
		y[k] = 0;
		for (int f = 0; f < s->common.columns; f++)
			waiting_cells(s)[(size_t) f * SUMS_WAITING + k] = 0;
	}
	for (int b = 0; b < blocks; b++)
	{
		int			first = b * TNP_MOMENT_ROWS,
					rows = s->waiting - first < TNP_MOMENT_ROWS ? s->waiting - first
			: TNP_MOMENT_ROWS;
		int32_t    *panels = scratch_panels(s) + b * tnp_panel_words(s->width);

		fill_features(moments, s, first, rows);
		moments->lay_out(s->width, pairs, scratch_features(s), panels,
						 scratch_norms(s) + b * TNP_MOMENT_NORMS);
		moments->product(s->width, pairs, panels, y + first, scratch_product(s));
		for (int i = 0; i < s->width; i++)
			tnp_exact_add(product + 2 * i, (SumsWide) sign * scratch_product(s)[i]);
	}
	moments->add(s->width, blocks, pairs, sign, scratch_panels(s), scratch_norms(s), sums_gram(s));
	for (int k = 0; k < s->waiting; k++)
		square += (SumsWide) y[k] * y[k];
	tnp_exact_add(product + 2 * s->width, sign * square);
	s->waiting = 0;
}

void
sums_flush(const TnpModel *model, SumsState *s)
{
	if (s->waiting > 0)
		add_waiting(model, s, 1);
}

static TnpStatus
refuse_target(const SumsState *s, const TnpRows *rows, int64_t i, TnpError *error)
{
	const int64_t *basis = sums_basis(s);

	tnp_fail(error, TNP_BAD_VALUE, "a target is too far from those that the basis was made of");
	tnp_detail(error, "row %lld has %g, the basis has mean %g and standard deviation %g",
			   (long long) (rows->before + i + 1), rows->y[i], sums_number(basis[SUMS_CENTER]),
			   sums_number(basis[SUMS_SCALE]));
	return TNP_BAD_VALUE;
}

TnpStatus
sums_add(const TnpModel *model, TnpSums *sums, const TnpRows *rows, int sign, TnpError *error)
{
	SumsState  *s = (SumsState *) sums;
	TnpStatus	status;

	if (rows->n_features != s->common.columns)
		return tnp_fail(error, TNP_BAD_SHAPE, "%d feature columns given, the basis has %d",
						rows->n_features, s->common.columns);
	status = tnp_sums_check_change(sums, rows->n, sign, SUMS_MOST_ROWS, error);
	if (status != TNP_OK)
		return status;
	if (sign < 0)
		sums_flush(model, s);
	for (int64_t i = 0; i < rows->n; i++)
	{
		int64_t		y;

		/* rows before this one are in: callers give rows one by one, or throw the sums away */
		if (!sums_target(sums_basis(s), rows->y[i], &y))
			return refuse_target(s, rows, i, error);
		for (int f = 0; f < s->common.columns; f++)
			waiting_cells(s)[(size_t) f * SUMS_WAITING + s->waiting] =
				rows->x[i * s->common.columns + f];
		waiting_targets(s)[s->waiting] = y;
		s->common.n += sign;
		if (++s->waiting == SUMS_WAITING || (sign < 0 && i == rows->n - 1))
			add_waiting(model, s, sign);
	}
	return TNP_OK;
}

TnpStatus
sums_merge(const TnpModel *model, TnpSums *into_sums, TnpSums *from_sums, int sign,
		   TnpError *error)
{
	SumsState  *into = (SumsState *) into_sums,
			   *from = (SumsState *) from_sums;
	TnpStatus	status;
	int64_t    *to,
			   *more;

	if (into_sums->basis_words != from_sums->basis_words
		|| memcmp(sums_basis(into), sums_basis(from),
				  into_sums->basis_words * sizeof(int64_t)) != 0)
		return tnp_fail(error, TNP_BAD_ARGUMENT, "sums of different bases cannot be merged");
	status = tnp_sums_check_change(into_sums, from_sums->n, sign, SUMS_MOST_ROWS, error);
	if (status != TNP_OK)
		return status;
	sums_flush(model, into);
	sums_flush(model, from);
	to = sums_gram(into);
	more = sums_gram(from);
	for (size_t i = 0; i < gram_words(into->width); i++)
		to[i] += sign * more[i];
	to = sums_product(into);
	more = sums_product(from);
	for (int i = 0; i <= into->width; i++)
		tnp_exact_add(to + 2 * i, sign * tnp_exact(more + 2 * i));
	into_sums->n += sign * from_sums->n;
	return TNP_OK;
}

/* ---- words ----------------------------------------------------------------------------------- */

void
sums_write(const TnpModel *model, TnpSums *sums, int64_t *words)
{
	SumsState  *s = (SumsState *) sums;

	sums_flush(model, s);
	words[0] = s->common.n;
	memcpy(words + 1, sums_gram(s), sum_words(s->width) * sizeof(int64_t));
}

static TnpStatus
refuse_words(TnpError *error, const char *what)
{
	return tnp_fail(error, TNP_BAD_VALUE, "the sums are of no rows: %s", what);
}

/* Whether a sum of products is more than two sums of squares allow, beyond rounding. */
static bool
too_far(double sum, double squares, double others)
{
	return sum * sum > squares * others * (1 + 1e-9);
}

/* Whether moments of n rows can be these: what follows must not overflow, nor be nonsense. */
static TnpStatus
check_words(const SumsState *s, TnpError *error)
{
	const int64_t *gram = sums_gram(s),
			   *product = sums_product(s),
			   *rows = gram;
	const SumsWide unit = (SumsWide) SUMS_UNIT * SUMS_UNIT,
				most_y = (SumsWide) SUMS_TARGET_MOST << SUMS_TARGET_BITS;
	SumsWide	square = tnp_exact(product + 2 * s->width);

	if (s->common.n < 0 || s->common.n > SUMS_MOST_ROWS)
		return refuse_words(error, "their number is out of range");
	if (gram[0] != s->common.n * SUMS_UNIT * SUMS_UNIT)
		return refuse_words(error, "their number does not fit the sums");
	if (square < 0 || square > most_y * most_y * s->common.n)
		return refuse_words(error, "a sum of squares is out of range");
	for (int i = 0; i < s->width; i++)
	{
		SumsWide	sum = tnp_exact(product + 2 * i);

		if (sum > most_y * SUMS_UNIT * s->common.n || sum < -most_y * SUMS_UNIT * s->common.n)
			return refuse_words(error, "a sum of products is out of range");
		for (int j = 0; j <= i; j++, gram++)
			if (*gram > unit * s->common.n || *gram < (i == j ? 0 : -unit * s->common.n))
				return refuse_words(error, "a sum of products is out of range");
		/* what a row too many was taken away from is often told by one of its features */
		if (too_far((double) sum, (double) gram[-1], (double) square))
			return refuse_words(error, "a sum of products is more than its squares allow");
		for (int j = 0; j < i; j++)
			if (too_far((double) gram[j - i - 1], (double) gram[-1],
						(double) rows[(size_t) j * (j + 3) / 2]))
				return refuse_words(error, "a sum of products is more than its squares allow");
	}
	return TNP_OK;
}

TnpStatus
sums_read(const TnpModel *model, TnpSums *sums, const int64_t *words, TnpError *error)
{
	SumsState  *s = (SumsState *) sums;

	(void) model;
	s->common.n = words[0];
	s->waiting = 0;
	memcpy(sums_gram(s), words + 1, sum_words(s->width) * sizeof(int64_t));
	return check_words(s, error);
}
