/*
 * process_near.h: a process of the prefix that is asked given the nearest rows alone
 * (docs/model-format.md section 5, "Nearest rows").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_PROCESS_NEAR_H
#define TNP_PROCESS_NEAR_H

#include "engine/features/statistics.h"

#define TNP_NEAR_ROWS 32		/* that tell of a row, at most */

/* What a row is told by: its mean is the sum of weight times the target of rows. */
typedef struct TnpNeighbours
{
	int			n,
				row[TNP_NEAR_ROWS];	/* of the prefix, or behind them of a chain */
	double		weight[TNP_NEAR_ROWS],
				rest;			/* the variance of what these leave, in units of the process's */
} TnpNeighbours;

/*
 * Let nearest rows stand in the place of p, which has been made, where they predict rows left out
 * better: p->nearest, and what is said of rows left out. Needs the slots of stats.
 */
TnpStatus	tnp_near_weigh(const TnpModel *model, const TnpRows *rows, const TnpStats *stats,
						   TnpProcess *p, TnpError *error);

/*
 * What tells of point i of `from`: rows of the prefix, and behind them the first n_chain points of
 * `chain`, which may be NULL. Points have the axes of the slots first.
 */
void		tnp_near_find(const TnpStats *stats, const TnpNearRows *nearest,
						  const TnpPoints *from, int i, const TnpPoints *chain, int n_chain,
						  TnpNeighbours *found);

/* The part of a mean that targets of the prefix make, not clipped. */
double		tnp_near_mean(const TnpNearRows *nearest, const TnpNeighbours *found);

/* The mean of a row of raw cells x [F] that is none of the prefix; *rest as in TnpNeighbours. */
double		tnp_near_say(const TnpModel *model, const TnpStats *stats, const double *x,
						 double *rest);

bool		tnp_near_copy(const TnpEnv *env, const TnpNearRows *from, TnpNearRows *to);
void		tnp_near_free(const TnpEnv *env, TnpNearRows *nearest);
size_t		tnp_near_bytes(const TnpNearRows *nearest);

#endif							/* TNP_PROCESS_NEAR_H */
