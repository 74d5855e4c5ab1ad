/*
 * process_pairs.c: pairs of axes along which alike rows have alike targets. The product of one wave
 * along each of two axes is noise along either alone and among many others: no slope of the log
 * posterior leads there. Kernels are compared by their alignment (Cristianini et al. 2001), which
 * takes no factor of a matrix, so that all pairs can be.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/process_pairs.h"

#include <math.h>

#include "engine/base/wide.h"

#define ROWS 64					/* looked at, of whatever number */
#define LANES 16				/* of sums */
#define SCORE_STEPS 1048576.0	/* what is equal up to rounding is equal */
#define LEAST_SPREAD 1e-6		/* of correlations, as a share of their square */

/* Some rows, and all pairs of these. */
typedef struct Apart
{
	int			rows,
				row[ROWS],
				n,				/* pairs */
				room;			/* a multiple of LANES */
	double	   *alike;			/* [axes, room] their correlations along each axis, of weight 8 */
	double	   *product;		/* [TNP_PAIR_TARGETS, room] of both targets about the mean */
	double		total[TNP_PAIR_TARGETS],	/* of the products, and */
				square[TNP_PAIR_TARGETS];	/* of their squares */
} Apart;

static void
see_targets(const double *y, int t, Apart *apart)
{
	double		mean = 0;
	int			k = 0;

	for (int i = 0; i < apart->rows; i++)
		mean += y[apart->row[i]] / apart->rows;
	for (int i = 0; i < apart->rows; i++)
		for (int j = i + 1; j < apart->rows; j++, k++)
		{
			double		both = (y[apart->row[i]] - mean) * (y[apart->row[j]] - mean);

			apart->product[t * apart->room + k] = both;
			apart->total[t] += both;
			apart->square[t] += both * both;
		}
}

static void
see_axis(const TnpStats *stats, const TnpPoints *points, int axis, Apart *apart)
{
	const double *value = points->value + (size_t) axis * points->n,
			   *label = points->label + (size_t) axis * points->n;
	double	   *alike = apart->alike + (size_t) axis * apart->room,
				unlike = tnp_points_label_distance(stats, axis);
	int			k = 0;

	for (int i = 0; i < apart->rows; i++)
		for (int j = i + 1; j < apart->rows; j++, k++)
		{
			int			a = apart->row[i],
						b = apart->row[j];
			double		d = value[a] - value[b],
						t = 1 / (1 + d * d + (label[a] != label[b] ? unlike : 0)),
						square = t * t;

			alike[k] = square * square;
		}
}

/* Sums, by lanes, of the product of both correlations, of its square and its products. */
TNP_WIDE_ANY
sum_alike_any(int n, const double *restrict a, const double *restrict b,
			  const double *restrict product, double *restrict sum)
{
	for (int i = 0; i < n; i += LANES)
		for (int k = 0; k < LANES; k++)
		{
			double		alike = a[i + k] * b[i + k];

			sum[k] += alike;
			sum[LANES + k] += alike * alike;
			for (int t = 0; t < TNP_PAIR_TARGETS; t++)
				sum[(2 + t) * LANES + k] += alike * product[t * n + i + k];
		}
}
TNP_WIDE(sum_alike, (int n, const double *restrict a, const double *restrict b,
					 const double *restrict product, double *restrict sum),
		 (n, a, b, product, sum))

static double
total_of(const double *lane)
{
	double		total = 0;

	for (int k = 0; k < LANES; k++)
		total += lane[k];
	return total;
}

static void
score(const Apart *apart, int a, int b, double scores[TNP_PAIR_TARGETS])
{
	double		sum[(2 + TNP_PAIR_TARGETS) * LANES] = {0},
				total,
				square,
				spread;

	sum_alike(apart->room, apart->alike + (size_t) a * apart->room,
			  apart->alike + (size_t) b * apart->room, apart->product, sum);
	total = total_of(sum);
	square = total_of(sum + LANES);
	spread = square - total * total / apart->n;
	for (int t = 0; t < TNP_PAIR_TARGETS; t++)
	{
		double		with = total_of(sum + (2 + t) * LANES) - total * apart->total[t] / apart->n;

		scores[t] = spread > LEAST_SPREAD * square && apart->square[t] > 0
			? rint(SCORE_STEPS * with / sqrt(spread * apart->square[t])) / SCORE_STEPS : 0;
	}
}

/* Have a pair among the n best, behind those of its score. */
static void
rank(TnpAxisPair pair, TnpAxisPair found[TNP_PAIRS], int n)
{
	int			place = n < TNP_PAIRS ? n : TNP_PAIRS;

	while (place > 0 && pair.score > found[place - 1].score)
		place--;
	for (int i = n < TNP_PAIRS ? n : TNP_PAIRS - 1; i > place; i--)
		found[i] = found[i - 1];
	if (place < TNP_PAIRS)
		found[place] = pair;
}

int
tnp_pairs_find(const TnpModel *model, const TnpStats *stats, const TnpPoints *points,
			   const double *const y[TNP_PAIR_TARGETS],
			   TnpAxisPair found[TNP_PAIR_TARGETS][TNP_PAIRS])
{
	Apart		apart = {.rows = points->n < ROWS ? points->n : ROWS};
	int			n = 0;

	for (int i = 0; i < apart.rows; i++)
		apart.row[i] = (2 * i + 1) * points->n / (2 * apart.rows);
	apart.n = apart.rows * (apart.rows - 1) / 2;
	apart.room = (apart.n + LANES - 1) / LANES * LANES;
	apart.product = tnp_alloc_zero(&model->env, ((size_t) points->n_axes + TNP_PAIR_TARGETS)
								   * apart.room, sizeof(double));
	if (apart.product == NULL)
		return -1;
	apart.alike = apart.product + TNP_PAIR_TARGETS * apart.room;
	for (int t = 0; t < TNP_PAIR_TARGETS; t++)
		see_targets(y[t], t, &apart);
	for (int a = 0; a < points->n_axes; a++)
		see_axis(stats, points, a, &apart);
	for (int a = 0; a < points->n_axes; a++)
		for (int b = a + 1; b < points->n_axes; b++, n++)
		{
			double		scores[TNP_PAIR_TARGETS];

			score(&apart, a, b, scores);
			for (int t = 0; t < TNP_PAIR_TARGETS; t++)
				rank((TnpAxisPair) {{a, b}, scores[t]}, found[t], n);
		}
	tnp_free(&model->env, apart.product);
	return n < TNP_PAIRS ? n : TNP_PAIRS;
}
