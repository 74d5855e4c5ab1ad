/*
 * climb.h: steps up a gradient (Adam, Kingma & Ba 2015), whose length falls to zero.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_CLIMB_H
#define TNP_CLIMB_H

/* A climb on its way. */
typedef struct TnpClimb
{
	int			n,				/* parameters */
				steps,			/* of the climb, and */
				step;			/* those that are made */
	double		rate,
				least,			/* of every parameter, and */
				most;
	double	   *first,			/* [n] means of gradients, and */
			   *second;			/* [n] of their squares; both 0 at first */
	double		first_rest,		/* 1 at first */
				second_rest;
} TnpClimb;

/* One step of theta [n] along the gradient [n]. */
void		tnp_climb_step(TnpClimb *climb, const double *gradient, double *theta);

#endif							/* TNP_CLIMB_H */
