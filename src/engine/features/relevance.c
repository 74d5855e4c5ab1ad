/*
 * relevance.c: how much each column of a table says about the targets, by itself: the share of
 * their variance that lies between groups of rows.
 *
 * The statistics of an encoding have the same figure of a column (stats.c), of a model's scaling
 * and for one target. This one needs no model.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/relevance.h"

#include <math.h>
#include <string.h>

#include "engine/base/error.h"

/* Standardise target t of D in y [m, D]; what is constant becomes 0. */
static void
target_standardise(double *y, int64_t m, int t, int targets)
{
	double		unit = 0,
				mean = 0,
				square = 0,
				sd;

	for (int64_t i = 0; i < m; i++)
		unit = fmax(unit, fabs(y[i * targets + t]));
	for (int64_t i = 0; unit > 0 && i < m; i++)
		mean += y[i * targets + t] / unit;
	mean /= (double) m;
	for (int64_t i = 0; unit > 0 && i < m; i++)
	{
		double		from = y[i * targets + t] / unit - mean;

		square += from * from;
	}
	sd = sqrt(square / (double) m);
	for (int64_t i = 0; i < m; i++)
		y[i * targets + t] = sd > 0 ? (y[i * targets + t] / unit - mean) / sd : 0;
}

/* The sum of squares about the mean of standardised targets, or of the classes' indicators. */
static double
targets_total(const TnpRelevanceTargets *targets, const double *counts)
{
	double		total = 0;

	if (targets->classes)
	{
		total = (double) targets->m;
		for (int k = 0; k < targets->n; k++)
			total -= counts[k] * counts[k] / (double) targets->m;
		return total;
	}
	for (int64_t i = 0; i < targets->m * targets->n; i++)
		total += targets->y[i] * targets->y[i];
	return total;
}

TnpStatus
tnp_relevance_begin(const TnpEnv *env, const TnpRows *rows, int64_t m,
					TnpRelevanceTargets *targets, TnpError *error)
{
	double		counts[TNP_MAX_TARGETS] = {0};
	int			given = tnp_rows_targets(rows);

	*targets = (TnpRelevanceTargets) {m, given, rows->n_classes > 0, NULL, 0};
	if (targets->classes)
		targets->n = rows->n_classes < TNP_MAX_TARGETS ? rows->n_classes : TNP_MAX_TARGETS;
	targets->y = tnp_alloc(env, (size_t) (m * given), sizeof(double));
	if (targets->y == NULL)
		return tnp_no_memory(error);
	if (m > 0)
		memcpy(targets->y, rows->y, (size_t) (m * given) * sizeof(double));
	for (int t = 0; !targets->classes && m > 0 && t < given; t++)
		target_standardise(targets->y, m, t, given);
	for (int64_t i = 0; targets->classes && i < m; i++)
	{
		targets->y[i] = fmod(targets->y[i], targets->n);
		counts[(int) targets->y[i]]++;
	}
	targets->total = targets_total(targets, counts);
	return TNP_OK;
}

TnpStatus
tnp_relevance_of(const TnpEnv *env, const TnpRelevanceTargets *targets, const int *group,
				 int n_groups, double *share, TnpError *error)
{
	int			width = targets->n + 1, /* sums, and the number of rows */
				used = 0;
	double	   *sums = tnp_alloc_zero(env, (size_t) n_groups * width, sizeof(double)),
				all[TNP_MAX_TARGETS] = {0},
				between = 0;

	*share = 0;
	if (sums == NULL)
		return tnp_no_memory(error);
	for (int64_t i = 0; i < targets->m; i++)
	{
		double	   *sum = sums + (size_t) group[i] * width;

		sum[targets->n]++;
		if (targets->classes)
			sum[(int) targets->y[i]]++;
		else
			for (int t = 0; t < targets->n; t++)
				sum[t] += targets->y[i * targets->n + t];
	}
	for (int g = 0; g < n_groups; g++)
	{
		const double *sum = sums + (size_t) g * width;

		used += sum[targets->n] > 0;
		for (int t = 0; sum[targets->n] > 0 && t < targets->n; t++)
		{
			between += sum[t] * sum[t] / sum[targets->n];
			all[t] += sum[t];
		}
	}
	for (int t = 0; t < targets->n && targets->m > 0; t++)
		between -= all[t] * all[t] / (double) targets->m;
	tnp_free(env, sums);
	if (targets->m > used && targets->total > 0)
		*share = fmin(1, fmax(0, 1 - (1 - between / targets->total)
							  * (double) (targets->m - 1) / (double) (targets->m - used)));
	return TNP_OK;
}

void
tnp_relevance_end(const TnpEnv *env, TnpRelevanceTargets *targets)
{
	tnp_free(env, targets->y);
	targets->y = NULL;
}
