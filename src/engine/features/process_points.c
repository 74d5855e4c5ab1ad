/*
 * process_points.c: rows as points of the process, and their correlation.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/process_points.h"

#include <math.h>
#include <string.h>

#include "engine/base/wide.h"
#include "engine/features/column.h"

#define LABEL_OF_NUMBER 1.0		/* squared distance of a missing number from zero */
#define LABEL_OF_CATEGORY 2.0	/* that of two numbers in the mean */

int
tnp_points_axes(const TnpStats *stats)
{
	return stats->n_slots + stats->process.n_directions;
}

bool
tnp_points_make(const TnpModel *model, const TnpStats *stats, int n, TnpPoints *points)
{
	points->n = n;
	points->n_axes = tnp_points_axes(stats);
	points->value = tnp_alloc_zero(&model->env, (size_t) n * 2 * points->n_axes, sizeof(double));
	points->label = points->value == NULL ? NULL : points->value + (size_t) n * points->n_axes;
	return points->value != NULL;
}

void
tnp_points_free(const TnpEnv *env, TnpPoints *points)
{
	tnp_free(env, points->value);
	memset(points, 0, sizeof(*points));
}

void
tnp_points_set(const TnpModel *model, const TnpStats *stats, const double *x, TnpPoints *points,
			   int i)
{
	const double *direction = stats->process.direction;

	for (int s = 0; s < stats->n_slots; s++)
	{
		const TnpColumn *column = tnp_slot_column(stats, s);
		double		cell = tnp_slot_cell(stats, s, x),
					value = tnp_column_value(column, cell);
		bool		category = column->kind == TNP_CATEGORICAL;
		int			bin = category ? tnp_column_bin(column, cell) : 0;
		size_t		place = (size_t) s * points->n + i;

		points->value[place] = category || isnan(value) ? 0
			: tnp_column_scale(model, column, value);
		/* what a missing cell stands for is its row's own: NaN differs from every label */
		points->label[place] = bin == TNP_MISSING_BIN || (!category && isnan(value)) ? NAN : bin;
	}
	for (int a = stats->n_slots; a < points->n_axes; a++, direction += stats->n_slots)
	{
		double		sum = 0;

		for (int s = 0; s < stats->n_slots; s++)
			sum += direction[s] * points->value[(size_t) s * points->n + i];
		points->value[(size_t) a * points->n + i] = sum;
		points->label[(size_t) a * points->n + i] = 0;
	}
}

double
tnp_points_label_distance(const TnpStats *stats, int axis)
{
	if (axis >= stats->n_slots)
		return 0;
	return tnp_slot_column(stats, axis)->kind == TNP_CATEGORICAL ? LABEL_OF_CATEGORY
		: LABEL_OF_NUMBER;
}

/* out[j] += w (own - value[j])^2, and `apart` where the labels differ. */
TNP_WIDE_ANY
add_axis_any(double *restrict out, const double *restrict value, const double *restrict label,
			 double own_value, double own_label, double w, double apart, int first, int n)
{
	for (int j = first; j < n; j++)
	{
		double		d = own_value - value[j];

		out[j] += w * d * d + (own_label != label[j] ? apart : 0);
	}
}
TNP_WIDE(add_axis, (double *restrict out, const double *restrict value,
					const double *restrict label, double own_value, double own_label, double w,
					double apart, int first, int n),
		 (out, value, label, own_value, own_label, w, apart, first, n))

TNP_WIDE_ANY
add_pulled_any(double *restrict pulled, const double *restrict pull, const double *restrict value,
			   const double *restrict label, double apart, int i, int n)
{
	for (int j = i + 1; j < n; j++)
	{
		double		d = value[i] - value[j];

		pulled[j] += pull[j] * (d * d + (label[i] != label[j] ? apart : 0));
	}
}
TNP_WIDE(add_pulled, (double *restrict pulled, const double *restrict pull,
					  const double *restrict value, const double *restrict label, double apart,
					  int i, int n), (pulled, pull, value, label, apart, i, n))

void
tnp_points_pull(const TnpStats *stats, const TnpPoints *points, int axis, int i,
				const double *pull, double *pulled)
{
	size_t		place = (size_t) axis * points->n;

	add_pulled(pulled, pull, points->value + place, points->label + place,
			   tnp_points_label_distance(stats, axis), i, points->n);
}

void
tnp_points_distances_between(const TnpStats *stats, const TnpPoints *from, int i,
							 const TnpPoints *points, int first, int last, const double *weight,
							 double *out)
{
	for (int j = 0; j < last - first; j++)
		out[j] = 0;
	for (int s = 0; s < points->n_axes; s++)
		add_axis(out, points->value + (size_t) s * points->n + first,
				 points->label + (size_t) s * points->n + first,
				 from->value[(size_t) s * from->n + i], from->label[(size_t) s * from->n + i],
				 weight[s], weight[s] * tnp_points_label_distance(stats, s), 0, last - first);
}

void
tnp_points_distances(const TnpStats *stats, const TnpPoints *from, int i, const TnpPoints *points,
					 int first, const double *weight, double *out)
{
	tnp_points_distances_between(stats, from, i, points, first, points->n, weight, out + first);
}

/* Rational quadratic of shape 4 (Rasmussen & Williams 2006, eq. 4.19). */
TNP_WIDE_ANY
correlations_any(int first, int n, double *restrict distance, double *restrict slope)
{
	for (int j = first; j < n; j++)
	{
		double		t = 1 / (1 + distance[j] / 8),
					square = t * t;

		distance[j] = square * square;
		slope[j] = -0.5 * square * square * t;
	}
}
TNP_WIDE(correlations, (int first, int n, double *restrict distance, double *restrict slope),
		 (first, n, distance, slope))

TNP_WIDE_ANY
plain_correlations_any(int first, int n, double *distance)
{
	for (int j = first; j < n; j++)
	{
		double		t = 1 / (1 + distance[j] / 8),
					square = t * t;

		distance[j] = square * square;
	}
}
TNP_WIDE(plain_correlations, (int first, int n, double *distance), (first, n, distance))

void
tnp_points_correlations(int first, int n, double *distance, double *slope)
{
	if (slope != NULL)
		correlations(first, n, distance, slope);
	else
		plain_correlations(first, n, distance);
}

/* ---- sums over axes -------------------------------------------------------------------------- */

/* out[j] += the correlation along one axis of weight w. */
TNP_WIDE_ANY
add_alone_any(double *restrict out, const double *restrict value, const double *restrict label,
			  double own_value, double own_label, double w, double apart, int first, int n)
{
	for (int j = first; j < n; j++)
	{
		double		d = own_value - value[j],
					t = 1 / (1 + (w * d * d + (own_label != label[j] ? apart : 0)) / 8),
					square = t * t;

		out[j] += square * square;
	}
}
TNP_WIDE(add_alone, (double *restrict out, const double *restrict value,
					 const double *restrict label, double own_value, double own_label, double w,
					 double apart, int first, int n),
		 (out, value, label, own_value, own_label, w, apart, first, n))

TNP_WIDE_ANY
divide_any(double *out, double by, int first, int n)
{
	for (int j = first; j < n; j++)
		out[j] /= by;
}
TNP_WIDE(divide, (double *out, double by, int first, int n), (out, by, first, n))

void
tnp_points_alone(const TnpStats *stats, const TnpPoints *from, int i, const TnpPoints *points,
				 int first, const double *weight, double *out)
{
	for (int j = first; j < points->n; j++)
		out[j] = 0;
	for (int s = 0; s < points->n_axes; s++)
	{
		double		w = TNP_ALONE * weight[s];

		add_alone(out, points->value + (size_t) s * points->n,
				  points->label + (size_t) s * points->n, from->value[(size_t) s * from->n + i],
				  from->label[(size_t) s * from->n + i], w,
				  w * tnp_points_label_distance(stats, s), first, points->n);
	}
	divide(out, points->n_axes, first, points->n);
}

TNP_WIDE_ANY
mix_any(int first, int n, double share, const double *restrict alone, double *restrict product)
{
	for (int j = first; j < n; j++)
		product[j] = (1 - share) * product[j] + share * alone[j];
}
TNP_WIDE(mix, (int first, int n, double share, const double *restrict alone,
			   double *restrict product),
		 (first, n, share, alone, product))

void
tnp_points_mix(int first, int n, double share, const double *alone, double *product)
{
	mix(first, n, share, alone, product);
}
