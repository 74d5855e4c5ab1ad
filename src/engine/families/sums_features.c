/*
 * sums_features.c: from the cells of a row to its features (docs/sums.md, "Features").
 *
 * Features are integers, and the same ones on every machine: nothing but additions,
 * multiplications, divisions and one rounding of doubles, in a fixed order, without the
 * mathematical library, whose last digit differs from one version to the next.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/sums.h"

#include <math.h>
#include <string.h>

#define MOST_WAVES 256
#define PI 3.14159265358979323846

double
sums_number(int64_t word)
{
	double		number;

	memcpy(&number, &word, sizeof(number));
	return number;
}

int64_t
sums_word(double number)
{
	int64_t		word;

	memcpy(&word, &number, sizeof(word));
	return word;
}

double
sums_squash(const int64_t *column, double x)
{
	double		z = (x - sums_number(column[SUMS_COLUMN_CENTER]))
		/ sums_number(column[SUMS_COLUMN_SCALE]);
	double		size = fabs(z);

	if (size <= 2)
		return z;
	size = SUMS_REACH - 4 / size;
	return z < 0 ? -size : size;
}

/* Series of sine and cosine, for t within half a turn: the error is below 1e-13. */
static double
series(double first, double t2, int from)
{
	double		sum = 0;

	/* Horner, from the last of eleven terms */
	for (int k = from + 20; k > from; k -= 2)
		sum = (1 + sum) * (-t2 / ((double) k * (k - 1)));
	return first * (1 + sum);
}

void
sums_waves(double z, int n, double *out)
{
	double		t = PI * z / (2 * SUMS_REACH),
				sine = series(1, t * t, 0),
				twice = -2 * series(t, t * t, 1),	/* the angle is a quarter turn more than t */
				before = 0;

	for (int k = 0; k < n; k++)
	{
		double		next = twice * sine - before;

		out[k] = sine;
		before = sine;
		sine = next;
	}
}

static int16_t
quantise(double value)
{
	double		q = nearbyint(value * SUMS_UNIT);

	return (int16_t) (q > SUMS_UNIT ? SUMS_UNIT : q < -SUMS_UNIT ? -SUMS_UNIT : q);
}

static int
column_width(const SumsConfig *c, const int64_t *column)
{
	if (column[SUMS_KIND] == TNP_CATEGORICAL)
		return 1 + c->levels + c->buckets;
	return 1 + (c->linear ? 1 : 0) + c->waves;
}

int
sums_width(const SumsConfig *c, const int64_t *basis)
{
	int64_t		width = 1 + basis[SUMS_PAIRS] * (c->pair_waves + 1) * (c->pair_waves + 1);

	for (int f = 0; f < basis[SUMS_COLUMNS]; f++)
		width += column_width(c, sums_column(c, basis, f));
	return width > SUMS_MOST_FEATURES ? -1 : (int) width;
}

int
sums_groups(const SumsConfig *c, const int64_t *basis, int *group, double *frequency2)
{
	int			at = 0,
				next = 3;		/* after intercept, linear parts, missing cells */

#define PUT(number, square) (group[at] = (number), frequency2[at++] = (square))
	PUT(0, 0);
	for (int f = 0; f < basis[SUMS_COLUMNS]; f++)
	{
		const int64_t *column = sums_column(c, basis, f);

		PUT(2, 0);
		if (column[SUMS_KIND] == TNP_CATEGORICAL)
			for (int k = 0; k < c->levels + c->buckets; k++)
				PUT(next, 0);
		else
		{
			if (c->linear)
				PUT(1, 0);
			for (int k = 1; k <= c->waves; k++)
				PUT(next, (double) k * k);
		}
		next++;
	}
	for (int p = 0; p < basis[SUMS_PAIRS]; p++, next++)
		for (int a = 0; a <= c->pair_waves; a++)
			for (int b = 0; b <= c->pair_waves; b++)
				PUT(next, (double) (a * a + b * b));
#undef PUT
	return next;
}

/* An indicator for a known category, or for the bucket that a category falls into. */
static void
put_category(const SumsConfig *c, const int64_t *column, double cell, int16_t *phi)
{
	int64_t		low = 0,
				high = column[SUMS_COLUMN_CENTER];
	uint64_t	hash = (uint64_t) cell * UINT64_C(0x9e3779b97f4a7c15);

	memset(phi, 0, (c->levels + c->buckets) * sizeof(int16_t));
	while (low < high)
	{
		int64_t		middle = (low + high) / 2;

		if (sums_number(column[SUMS_LEVELS + middle]) < cell)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < column[SUMS_COLUMN_CENTER] && sums_number(column[SUMS_LEVELS + low]) == cell)
		phi[low] = SUMS_UNIT;
	else
		phi[c->levels + (int) ((hash >> 32) % (uint64_t) c->buckets)] = SUMS_UNIT;
}

static int16_t *
put_column(const SumsConfig *c, const int64_t *column, double cell, int16_t *phi)
{
	double		wave[MOST_WAVES],
				z;
	int			width = column_width(c, column);

	phi[0] = isnan(cell) ? SUMS_UNIT : 0;
	if (isnan(cell))
		memset(phi + 1, 0, (width - 1) * sizeof(int16_t));
	else if (column[SUMS_KIND] == TNP_CATEGORICAL)
		put_category(c, column, cell, phi + 1);
	else
	{
		int16_t    *out = phi + 1;

		z = sums_squash(column, cell);
		if (c->linear)
			*out++ = quantise(z / SUMS_REACH);
		sums_waves(z, c->waves, wave);
		for (int k = 0; k < c->waves; k++)
			out[k] = quantise(wave[k]);
	}
	return phi + width;
}

/* What a column is in a pair: its linear part, then waves. */
static void
pair_part(const SumsConfig *c, const int64_t *column, double cell, double *part)
{
	double		z = sums_squash(column, cell);

	part[0] = z / SUMS_REACH;
	sums_waves(z, c->pair_waves, part + 1);
}

void
sums_features(const SumsConfig *c, const int64_t *basis, const double *x, int16_t *phi)
{
	const int64_t *pair = sums_pairs(c, basis);
	int			n = c->pair_waves + 1;

	*phi++ = SUMS_UNIT;
	for (int f = 0; f < basis[SUMS_COLUMNS]; f++)
		phi = put_column(c, sums_column(c, basis, f), x[f], phi);
	for (int p = 0; p < basis[SUMS_PAIRS]; p++, phi += n * n)
	{
		int			i = (int) (pair[p] >> 16),
					j = (int) (pair[p] & 0xffff);
		double		a[16],
					b[16];

		if (isnan(x[i]) || isnan(x[j]))
		{
			memset(phi, 0, n * n * sizeof(int16_t));
			continue;
		}
		pair_part(c, sums_column(c, basis, i), x[i], a);
		pair_part(c, sums_column(c, basis, j), x[j], b);
		for (int k = 0; k < n * n; k++)
			phi[k] = quantise(a[k / n] * b[k % n]);
	}
}
