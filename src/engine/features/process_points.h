/*
 * process_points.h: rows as the process of the prefix sees them, and how alike two of them are
 * (docs/model-format.md section 5, "Process").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_PROCESS_POINTS_H
#define TNP_PROCESS_POINTS_H

#include "engine/features/statistics.h"

/* a weight along its axis alone, in units of that beside others */
#define TNP_ALONE 2.0

/* Slots and directions. */
int			tnp_points_axes(const TnpStats *stats);

/* False when memory ran out. */
bool		tnp_points_make(const TnpModel *model, const TnpStats *stats, int n, TnpPoints *points);
void		tnp_points_free(const TnpEnv *env, TnpPoints *points);

/* Raw cells x [F] become point i. */
void		tnp_points_set(const TnpModel *model, const TnpStats *stats, const double *x,
						   TnpPoints *points, int i);

/* Squared distance of two different labels along an axis; 0 of a direction, which has none. */
double		tnp_points_label_distance(const TnpStats *stats, int axis);

/*
 * Weighted squared distances of point i of `from` and points first … n - 1, as of different rows: a
 * point of missing cells has one from itself, too; weight [n_axes], out [n].
 */
void		tnp_points_distances(const TnpStats *stats, const TnpPoints *from, int i,
								 const TnpPoints *points, int first, const double *weight,
								 double *out);

/* Those of points first … last - 1, along as many axes as `points` has: out [last - first]. */
void		tnp_points_distances_between(const TnpStats *stats, const TnpPoints *from, int i,
										 const TnpPoints *points, int first, int last,
										 const double *weight, double *out);

/*
 * pulled[j] += pull[j] times the distance of points i and j along one axis, j = i + 1 … n - 1.
 */
void		tnp_points_pull(const TnpStats *stats, const TnpPoints *points, int axis, int i,
							const double *pull, double *pulled);

/*
 * In place of squared distances first … n - 1 the correlations, and in slope, unless NULL, the
 * derivatives of these.
 */
void		tnp_points_correlations(int first, int n, double *distance, double *slope);

/*
 * As tnp_points_distances: the means over axes of the correlations along each alone, under
 * TNP_ALONE times its weight.
 */
void		tnp_points_alone(const TnpStats *stats, const TnpPoints *from, int i,
							 const TnpPoints *points, int first, const double *weight,
							 double *out);

/* product[j] becomes (1 - share) product[j] + share alone[j], j = first … n - 1. */
void		tnp_points_mix(int first, int n, double share, const double *alone, double *product);

#endif							/* TNP_PROCESS_POINTS_H */
