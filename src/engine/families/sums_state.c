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
memory_of(const TnpSums *s)
{
	return (int64_t *) (s + 1);
}

const int64_t *
sums_basis(const TnpSums *s)
{
	return memory_of(s);
}

static size_t
gram_words(int width)
{
	return (size_t) width * (width + 1) / 2;
}

int64_t *
sums_gram(const TnpSums *s)
{
	return memory_of(s) + s->basis_words;
}

int64_t *
sums_product(const TnpSums *s)
{
	return sums_gram(s) + gram_words(s->width);
}

/* Targets [SUMS_BLOCK] of waiting rows, and their features [width, SUMS_BLOCK]. */
static int64_t *
waiting_targets(const TnpSums *s)
{
	return sums_product(s) + 2 * (s->width + 1);
}

static int16_t *
waiting_features(const TnpSums *s)
{
	return (int16_t *) (waiting_targets(s) + SUMS_BLOCK);
}

/* Words of sums beside the number of rows. */
static size_t
sum_words(int width)
{
	return gram_words(width) + 2 * ((size_t) width + 1);
}

SumsWide
sums_wide(const int64_t *pair)
{
	return (SumsWide) pair[1] * ((SumsWide) 1 << 64) + (uint64_t) pair[0];
}

static void
add_wide(int64_t *pair, SumsWide more)
{
	SumsWide	sum = sums_wide(pair) + more;

	pair[0] = (int64_t) (uint64_t) sum;
	pair[1] = (int64_t) (sum >> 64);
}

size_t
tnp_basis_words(const TnpModel *model, int n_features)
{
	const SumsConfig *c = sums_config(model);

	return SUMS_HEAD + (size_t) n_features * (SUMS_LEVELS + c->levels) + c->pairs;
}

size_t
tnp_sums_words(const TnpModel *model, const int64_t *basis)
{
	return 1 + sum_words(sums_width(sums_config(model), basis));
}

size_t
tnp_sums_bytes(const TnpModel *model, const int64_t *basis)
{
	int			width = sums_width(sums_config(model), basis);

	return sizeof(TnpSums)
		+ (tnp_basis_words(model, (int) basis[SUMS_COLUMNS]) + sum_words(width) + SUMS_BLOCK)
		* sizeof(int64_t)
		+ ((size_t) width * SUMS_BLOCK + 3) / 4 * 4 * sizeof(int16_t);
}

void
tnp_sums_begin(const TnpModel *model, const int64_t *basis, TnpSums *s)
{
	size_t		words = tnp_basis_words(model, (int) basis[SUMS_COLUMNS]);

	memset(s, 0, tnp_sums_bytes(model, basis));
	s->config = *sums_config(model);
	s->columns = (int) basis[SUMS_COLUMNS];
	s->basis_words = (int) words;
	s->width = sums_width(&s->config, basis);
	memcpy(memory_of(s), basis, words * sizeof(int64_t));
}

int64_t
tnp_sums_rows(const TnpSums *s)
{
	return s->n;
}

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

/* Add `sign` times the waiting rows, n of them. */
static void
add_waiting(TnpSums *s, int n, int sign)
{
	int64_t    *gram = sums_gram(s),
			   *product = sums_product(s);
	const int64_t *y = waiting_targets(s);
	const int16_t *phi = waiting_features(s);
	SumsWide	square = 0;

	for (int i = 0; i < s->width; i++, phi += SUMS_BLOCK)
	{
		const int16_t *other = waiting_features(s);
		SumsWide	sum = 0;
		bool		any = false;

		for (int k = 0; k < n; k++)
		{
			any |= phi[k] != 0;
			sum += (SumsWide) ((int64_t) phi[k] * y[k]);
		}
		/* indicators and missing cells: most of their rows are zeros */
		if (!any)
		{
			gram += i + 1;
			continue;
		}
		add_wide(product + 2 * i, sign * sum);
		for (int j = 0; j <= i; j++, other += SUMS_BLOCK)
		{
			int32_t		dot = 0;

			for (int k = 0; k < SUMS_BLOCK; k++)
				dot += (int32_t) phi[k] * other[k];
			*gram++ += sign * (int64_t) dot;
		}
	}
	for (int k = 0; k < n; k++)
		square += (SumsWide) y[k] * y[k];
	add_wide(product + 2 * s->width, sign * square);
	memset(waiting_features(s), 0, (size_t) s->width * SUMS_BLOCK * sizeof(int16_t));
}

void
sums_flush(TnpSums *s)
{
	if (s->waiting > 0)
		add_waiting(s, s->waiting, 1);
	s->waiting = 0;
}

static TnpStatus
refuse_target(const TnpSums *s, const TnpRows *rows, int64_t i, TnpError *error)
{
	const int64_t *basis = sums_basis(s);

	tnp_fail(error, TNP_BAD_VALUE, "a target is too far from those that the basis was made of");
	tnp_detail(error, "row %lld has %g, the basis has mean %g and standard deviation %g",
			   (long long) (rows->before + i + 1), rows->y[i], sums_number(basis[SUMS_CENTER]),
			   sums_number(basis[SUMS_SCALE]));
	return TNP_BAD_VALUE;
}

TnpStatus
tnp_sums_add(TnpSums *s, const TnpRows *rows, int sign, TnpError *error)
{
	int16_t		phi[SUMS_MOST_FEATURES];

	if (rows->n_features != s->columns)
		return tnp_fail(error, TNP_BAD_SHAPE, "%d feature columns given, the basis has %d",
						rows->n_features, s->columns);
	if (sign < 0 ? s->n < rows->n : rows->n > SUMS_MOST_ROWS - s->n)
		return tnp_fail(error, TNP_BAD_VALUE, sign < 0
						? "more rows are taken away than there are"
						: "too many rows for sums");
	if (sign < 0)
		sums_flush(s);
	for (int64_t i = 0; i < rows->n; i++)
	{
		int64_t		y;

		/* rows before this one are in: callers give rows one by one, or throw the sums away */
		if (!sums_target(sums_basis(s), rows->y[i], &y))
			return refuse_target(s, rows, i, error);
		sums_features(&s->config, sums_basis(s), rows->x + i * rows->n_features, phi);
		for (int k = 0; k < s->width; k++)
			waiting_features(s)[k * SUMS_BLOCK + s->waiting] = phi[k];
		waiting_targets(s)[s->waiting] = y;
		s->n += sign;
		if (sign < 0)
			add_waiting(s, 1, -1);
		else if (++s->waiting == SUMS_BLOCK)
			sums_flush(s);
	}
	return TNP_OK;
}

TnpStatus
tnp_sums_merge(TnpSums *into, TnpSums *from, int sign, TnpError *error)
{
	int64_t    *to,
			   *more;

	if (into->basis_words != from->basis_words
		|| memcmp(sums_basis(into), sums_basis(from), into->basis_words * sizeof(int64_t)) != 0)
		return tnp_fail(error, TNP_BAD_ARGUMENT, "sums of different bases cannot be merged");
	if (sign < 0 ? into->n < from->n : from->n > SUMS_MOST_ROWS - into->n)
		return tnp_fail(error, TNP_BAD_VALUE, sign < 0
						? "more rows are taken away than there are"
						: "too many rows for sums");
	sums_flush(into);
	sums_flush(from);
	to = sums_gram(into);
	more = sums_gram(from);
	for (size_t i = 0; i < gram_words(into->width); i++)
		to[i] += sign * more[i];
	to = sums_product(into);
	more = sums_product(from);
	for (int i = 0; i <= into->width; i++)
		add_wide(to + 2 * i, sign * sums_wide(more + 2 * i));
	into->n += sign * from->n;
	return TNP_OK;
}

/* ---- words ----------------------------------------------------------------------------------- */

void
tnp_sums_write(TnpSums *s, int64_t *words)
{
	sums_flush(s);
	words[0] = s->n;
	memcpy(words + 1, sums_gram(s), sum_words(s->width) * sizeof(int64_t));
}

static TnpStatus
refuse_words(TnpError *error, const char *what)
{
	return tnp_fail(error, TNP_BAD_VALUE, "the sums are of no rows: %s", what);
}

/* Whether moments of n rows can be these: what follows must not overflow, nor be nonsense. */
static TnpStatus
check_words(const TnpSums *s, TnpError *error)
{
	const int64_t *gram = sums_gram(s),
			   *product = sums_product(s);
	const SumsWide unit = (SumsWide) SUMS_UNIT * SUMS_UNIT,
				most_y = (SumsWide) SUMS_TARGET_MOST << SUMS_TARGET_BITS;
	SumsWide	square = sums_wide(product + 2 * s->width);

	if (s->n < 0 || s->n > SUMS_MOST_ROWS)
		return refuse_words(error, "their number is out of range");
	if (gram[0] != s->n * SUMS_UNIT * SUMS_UNIT)
		return refuse_words(error, "their number does not fit the sums");
	if (square < 0 || square > most_y * most_y * s->n)
		return refuse_words(error, "a sum of squares is out of range");
	for (int i = 0; i < s->width; i++)
	{
		SumsWide	sum = sums_wide(product + 2 * i);

		if (sum > most_y * SUMS_UNIT * s->n || sum < -most_y * SUMS_UNIT * s->n)
			return refuse_words(error, "a sum of products is out of range");
		for (int j = 0; j <= i; j++, gram++)
			if (*gram > unit * s->n || *gram < (i == j ? 0 : -unit * s->n))
				return refuse_words(error, "a sum of products is out of range");
	}
	return TNP_OK;
}

TnpStatus
tnp_sums_read(TnpSums *s, const int64_t *words, TnpError *error)
{
	s->n = words[0];
	s->waiting = 0;
	memcpy(sums_gram(s), words + 1, sum_words(s->width) * sizeof(int64_t));
	return check_words(s, error);
}
