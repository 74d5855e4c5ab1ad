/*
 * penalty.h: the penalty of a ridge regression, chosen by the evidence, with what follows from it.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_PENALTY_H
#define TNP_PENALTY_H

#include <stdint.h>

#define TNP_SMALLEST_PENALTY -6	/* of the ridge regressions */

/* The sums of a regression over its rows, and memory for the search. */
typedef struct TnpNormalEquations
{
	int64_t		rows;
	int			n;				/* entries of the design */
	int			n_targets;
	int			smallest;		/* penalty, its log to the base 4 */
	const double *gram;			/* [n, n] U'U, lower triangle */
	const double *moment;		/* [n_targets, n] U'y */
	double		square;			/* sum of y'y over the targets */
	double	   *try_factor;		/* [n, n] of one penalty */
	double	   *try_weights;	/* [n_targets, n] */
} TnpNormalEquations;

/* Add a row u [n] of the design with target y to the sums gram [n, n] and moment [n]. */
void		tnp_equations_add(int n, const double *u, double y, double *gram, double *moment);

/*
 * The penalty of the largest evidence among 4^smallest … 4^8 (docs/model-format.md section 5,
 * "Ridge"), its weights [n_targets, n], the lower Cholesky factor [n, n] of gram + penalty * I, and
 * the variance of the noise in units of the targets, 1e-8 at least. Targets have a mean of 0 and a
 * variance of about 1; entries of the design are small enough for no element of gram to exceed the
 * largest penalty by 2^52.
 */
double		tnp_choose_penalty(const TnpNormalEquations *e, double *weights, double *factor,
							   double *noise);

#endif							/* TNP_PENALTY_H */
