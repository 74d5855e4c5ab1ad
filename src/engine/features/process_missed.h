/*
 * process_missed.h: whether a missing cell shifts the target of its row, by what the process does
 * not explain of the rows of the prefix that lack it (docs/model-format.md section 5, "Shift").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_PROCESS_MISSED_H
#define TNP_PROCESS_MISSED_H

#include "engine/features/statistics.h"

/* Sums over the rows that lack the cell of a slot. */
typedef struct TnpMissed
{
	int			n_slots,
				n;				/* features */
	double	   *features;		/* [n_slots, n] weighted; NULL: no sums are wanted */
	double	   *sums;			/* [n_slots, 2] of weights, and of weighted targets; behind them */
	/* [n_slots, 4] of rows left out: count, weights, weighted mean, squares about it */
	double	   *apart;
	bool		wanted[TNP_MOST_SLOTS]; /* few rows of the prefix lack the cell, but some do */
} TnpMissed;

/* Sums of none; false when memory ran out. */
bool		tnp_missed_begin(const TnpEnv *env, const TnpStats *stats, const TnpProcess *p,
							 TnpMissed *missed);

/* Add a row x [F] of these features [n], with target y and the weight of both. */
void		tnp_missed_add(TnpMissed *missed, const TnpStats *stats, const double *x,
						   const double *features, double weight, double y);

/* What follows, to p->missed; the features are lost. */
void		tnp_missed_end(TnpMissed *missed, TnpProcess *p);

/*
 * Add how far the target of a row x [F] is from what the process says without it, with the inverse
 * of the variance that this has by the process.
 */
void		tnp_missed_differ(TnpMissed *missed, const TnpStats *stats, const double *x,
							  double difference, double weight);

/* Correct what has been put to p->missed by how far the rows without a cell really are apart. */
void		tnp_missed_correct(const TnpMissed *missed, TnpProcess *p);
void		tnp_missed_free(const TnpEnv *env, TnpMissed *missed);

#endif							/* TNP_PROCESS_MISSED_H */
