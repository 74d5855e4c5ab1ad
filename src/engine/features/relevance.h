/*
 * relevance.h: how much each column of a table says about the targets, by itself.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_RELEVANCE_H
#define TNP_RELEVANCE_H

#include "engine/tnp.h"

/*
 * The targets of the first m rows as numbers of about unit size: standardised, or of a classifier
 * the classes themselves. Of more than TNP_MAX_TARGETS classes those that are equal modulo this
 * number count as one.
 */
typedef struct TnpRelevanceTargets
{
	int64_t		m;
	int			n;				/* D, or K classes, TNP_MAX_TARGETS at most */
	bool		classes;
	double	   *y;				/* [m, D], or [m] classes */
	double		total;			/* sum of squares about the mean, over all targets */
} TnpRelevanceTargets;

TnpStatus	tnp_relevance_begin(const TnpEnv *env, const TnpRows *rows, int64_t m,
								TnpRelevanceTargets *targets, TnpError *error);

/*
 * The share of the targets' variance that lies between the groups of rows, less what chance makes
 * of so many groups (Ezekiel's adjustment), 0 … 1. group [m] in [0, n_groups).
 */
TnpStatus	tnp_relevance_of(const TnpEnv *env, const TnpRelevanceTargets *targets,
							 const int *group, int n_groups, double *share, TnpError *error);

void		tnp_relevance_end(const TnpEnv *env, TnpRelevanceTargets *targets);

#endif							/* TNP_RELEVANCE_H */
