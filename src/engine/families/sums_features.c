/*
 * sums_features.c: from the cells of a row to its features (docs/sums.md, "Features").
 *
 * Features are integers, and the same ones on every machine (engine/kernels/moments.h). Those of a
 * query are computed by themselves, those of rows in blocks, by the provider.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/sums.h"

#include <math.h>
#include <string.h>

#define MOST_WAVES 256

double
sums_squash(const int64_t *column, double x)
{
	return tnp_squash(x, sums_number(column[SUMS_COLUMN_CENTER]),
					  sums_number(column[SUMS_COLUMN_SCALE]));
}

double
sums_wide_score(const int64_t *column, double x)
{
	return 2 * tnp_squash(x, sums_number(column[SUMS_COLUMN_CENTER]),
						  2 * sums_number(column[SUMS_COLUMN_SCALE]));
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
	int64_t		width = 1 + basis[SUMS_PAIRS] * (c->pair_waves + 1) * (c->pair_waves + 1)
		+ (int64_t) sums_n_directions(c, basis) * (1 + c->waves);

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
	for (int d = 0; d < sums_n_directions(c, basis); d++, next++)
		for (int k = 0; k <= c->waves; k++)
			PUT(next, (double) k * k);
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
		tnp_waves(z, c->waves, wave);
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
	tnp_waves(z, c->pair_waves, part + 1);
}

/* What a weight multiplies is a score by twice SUMS_REACH. */
static double
weight_of(int64_t word)
{
	return (double) word * (2.0 * SUMS_REACH / TNP_DIRECTION_UNIT);
}

/* The linear part and waves of a weighted sum of columns, added in the order of the columns. */
static void
put_direction(const SumsConfig *c, const int64_t *basis, const int64_t *weight, const double *x,
			  int16_t *phi)
{
	double		wave[MOST_WAVES],
				score = 0;

	for (int f = 0; f < basis[SUMS_COLUMNS]; f++)
		if (weight[f] != 0 && !isnan(x[f]))
			score += weight_of(weight[f])
				* (sums_wide_score(sums_column(c, basis, f), x[f]) / (2 * SUMS_REACH));
	score = tnp_squash(score, 0, 1);
	tnp_waves(score, c->waves, wave);
	*phi++ = quantise(score / SUMS_REACH);
	for (int k = 0; k < c->waves; k++)
		phi[k] = quantise(wave[k]);
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
	for (int d = 0; d < sums_n_directions(c, basis); d++, phi += 1 + c->waves)
		put_direction(c, basis, sums_direction(c, basis, d), x, phi);
}

/* ---- blocks of rows -------------------------------------------------------------------------- */

/* Waves of a column that features are made of, by itself or in pairs. */
static int
most_waves(const SumsConfig *c)
{
	return c->waves > c->pair_waves ? c->waves : c->pair_waves;
}

/* Of one column, or of a direction. */
static size_t
part_numbers(const SumsConfig *c)
{
	return (size_t) (1 + most_waves(c)) * TNP_MOMENT_ROWS;
}

/*
 * Behind the columns' parts there are what directions add up of each column, the parts of a
 * direction, and its scores.
 */
size_t
sums_part_numbers(const SumsConfig *c, int columns)
{
	return columns * part_numbers(c)
		+ (c->directions > 0 ? (columns + 1) * (size_t) TNP_MOMENT_ROWS + part_numbers(c) : 0);
}

/* Features of a column's cells; a numeric one's parts stay for the pairs. */
static int16_t *
put_column_block(const TnpMoments *moments, const SumsConfig *c, const int64_t *column,
				 const double *x, double *part, int16_t *phi)
{
	const int	rows = TNP_MOMENT_ROWS;

	if (column[SUMS_KIND] == TNP_CATEGORICAL)
	{
		int			width = column_width(c, column);

		for (int r = 0; r < rows; r++)
		{
			int16_t		one[1 + 64 + 64];

			put_column(c, column, x[r], one);
			for (int k = 0; k < width; k++)
				phi[k * rows + r] = one[k];
		}
		return phi + (size_t) width * rows;
	}
	for (int r = 0; r < rows; r++)
		phi[r] = isnan(x[r]) ? SUMS_UNIT : 0;
	phi += rows;
	moments->waves(x, sums_number(column[SUMS_COLUMN_CENTER]),
				   sums_number(column[SUMS_COLUMN_SCALE]), most_waves(c), part);
	for (int k = c->linear ? 0 : 1; k <= c->waves; k++, phi += rows)
		moments->round(part + (size_t) k * rows, NULL, phi);
	return phi;
}

/* Scores [columns, TNP_MOMENT_ROWS] by twice SUMS_REACH of the cells of numeric columns. */
static void
score_block(const TnpMoments *moments, const SumsConfig *c, const int64_t *basis, const double *x,
			size_t stride, double *score)
{
	for (int f = 0; f < basis[SUMS_COLUMNS]; f++)
	{
		const int64_t *column = sums_column(c, basis, f);

		if (column[SUMS_KIND] == TNP_NUMERIC)
			moments->waves(x + f * stride, sums_number(column[SUMS_COLUMN_CENTER]),
						   2 * sums_number(column[SUMS_COLUMN_SCALE]), 0,
						   score + (size_t) f * TNP_MOMENT_ROWS);
	}
}

/* As put_direction, of the columns' scores; own: numbers to work with. */
static int16_t *
put_direction_block(const TnpMoments *moments, const SumsConfig *c, const int64_t *basis,
					const int64_t *weight, const double *scores, double *own, int16_t *phi)
{
	const int	rows = TNP_MOMENT_ROWS;
	double	   *score = own + part_numbers(c);

	memset(score, 0, rows * sizeof(double));
	/* a categorical column, whose weight is 0, has no scores */
	for (int f = 0; f < basis[SUMS_COLUMNS]; f++)
		for (int r = 0; weight[f] != 0 && r < rows; r++)
			score[r] += weight_of(weight[f]) * scores[f * rows + r];
	moments->waves(score, 0, 1, c->waves, own);
	for (int k = 0; k <= c->waves; k++, phi += rows)
		moments->round(own + (size_t) k * rows, NULL, phi);
	return phi;
}

void
sums_features_of_block(const TnpMoments *moments, const SumsConfig *c, const int64_t *basis,
					   const double *x, size_t stride, double *part, int16_t *phi)
{
	const int64_t *pair = sums_pairs(c, basis);
	const int	rows = TNP_MOMENT_ROWS,
				n = c->pair_waves + 1;
	size_t		parts = part_numbers(c);

	for (int r = 0; r < rows; r++)
		*phi++ = SUMS_UNIT;
	for (int f = 0; f < basis[SUMS_COLUMNS]; f++)
		phi = put_column_block(moments, c, sums_column(c, basis, f), x + f * stride,
							   part + f * parts, phi);
	for (int p = 0; p < basis[SUMS_PAIRS]; p++)
	{
		const double *a = part + (size_t) (pair[p] >> 16) * parts,
				   *b = part + (size_t) (pair[p] & 0xffff) * parts;

		for (int k = 0; k < n * n; k++, phi += rows)
			moments->round(a + (size_t) (k / n) * rows, b + (size_t) (k % n) * rows, phi);
	}
	if (sums_n_directions(c, basis) > 0)
		score_block(moments, c, basis, x, stride, part + basis[SUMS_COLUMNS] * parts);
	for (int d = 0; d < sums_n_directions(c, basis); d++)
	{
		double	   *scores = part + basis[SUMS_COLUMNS] * parts;

		phi = put_direction_block(moments, c, basis, sums_direction(c, basis, d), scores,
								  scores + basis[SUMS_COLUMNS] * rows, phi);
	}
}
