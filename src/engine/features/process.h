/*
 * process.h: what a Gaussian process of the prefix says about a row (docs/model-format.md section
 * 5, "Process").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_PROCESS_H
#define TNP_PROCESS_H

#include "engine/features/statistics.h"

/*
 * Fit it; needs the slots and columns of stats. On failure what was made is freed with stats.
 */
TnpStatus	tnp_process_build(const TnpModel *model, const TnpRows *rows, TnpStats *stats,
							  TnpError *error);

/* A copy that shares nothing; false when memory ran out: `to` can be freed. */
bool		tnp_process_copy(const TnpEnv *env, const TnpProcess *from, TnpProcess *to);
void		tnp_process_free(const TnpEnv *env, TnpProcess *process);
size_t		tnp_process_bytes(const TnpProcess *process);

/*
 * The TNP_PROCESS_NUMBERS numbers of rows first … first + n - 1, `step` apart in out. What is said
 * of a row of the context (in_context) that is one of the n0 is said without it.
 */
void		tnp_process_features(const TnpModel *model, const TnpStats *stats, const TnpRows *rows,
								 int64_t first, int n, bool in_context, float *out, size_t step);

/*
 * Of a process that is no line: correlations of point i of `from` and points first … n - 1, at most
 * TNP_PROCESS_ROWS, as of different rows: out [n].
 */
void		tnp_process_correlate(const TnpStats *stats, const TnpPoints *from, int i,
								  const TnpPoints *points, int first, double *out);

/*
 * A raw target as the process reads it; and a mean as it says that of a row that is none of the n0.
 */
double		tnp_process_target(const TnpModel *model, const TnpStats *stats, const TnpProcess *p,
							   double y);
double		tnp_process_mean(const TnpModel *model, const TnpProcess *p, double mean);

/*
 * The features [n_features] of a row x [F] that is none of the n0 rows, as the process has them and
 * with what it does not know of them, its mean, and in units of the process's variance how sure
 * that is.
 */
double		tnp_process_reach(const TnpModel *model, const TnpStats *stats, const double *x,
							  double *reached, double *unknown, double *mean);

/* What makes means of what the process sees of rows: means [n_features]. */
void		tnp_process_means(const TnpProcess *p, double *means);

/*
 * tnp_process_reach() of a row that is one of n_rows, x `width` apart, with these weights, which
 * sum to one; each [n_rows] receives their own means. At most TNP_MOST_DONORS + 1.
 */
double		tnp_process_mix(const TnpModel *model, const TnpStats *stats,
							const double *means, const double *x, int width, int n_rows,
							const double *weight, double *reached, double *unknown, double *mean,
							double *each);

#endif							/* TNP_PROCESS_H */
