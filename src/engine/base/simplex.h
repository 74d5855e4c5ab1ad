/*
 * simplex.h: the least value of a function of a few numbers, without derivatives.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_SIMPLEX_H
#define TNP_SIMPLEX_H

#include <stdbool.h>

#define TNP_SIMPLEX_MOST 8		/* numbers that a search may be over */

/* The function: its value at x [n]; not NaN, and infinite where x is no choice. */
typedef double (*TnpCost) (void *arg, const double *x);

/* Corners of the search and their costs. */
typedef struct TnpSimplex
{
	int			n;				/* numbers of a corner, TNP_SIMPLEX_MOST at most */
	TnpCost		cost;
	void	   *arg;
	double		point[TNP_SIMPLEX_MOST + 1][TNP_SIMPLEX_MOST],
				value[TNP_SIMPLEX_MOST + 1];
	int			best,
				worst,
				second;			/* the second worst */
} TnpSimplex;

/* Corners at `start` [n] and `step` from it along each axis; the caller has set n, cost and arg. */
void		tnp_simplex_start(TnpSimplex *simplex, const double *start, double step);

/*
 * One round of the search of Nelder and Mead, "A simplex method for function minimization" (1965):
 * the worst corner is reflected, or what follows from that is expanded or contracted, or all
 * corners shrink towards the best one.
 */
void		tnp_simplex_step(TnpSimplex *simplex);

/* The best corner [n]. */
const double *tnp_simplex_best(TnpSimplex *simplex);

#endif							/* TNP_SIMPLEX_H */
