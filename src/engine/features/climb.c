/*
 * climb.c: steps up a gradient, whose length falls to zero.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/climb.h"

#include <math.h>

#define FIRST_DECAY 0.9
#define SECOND_DECAY 0.98
#define EPSILON 1e-8

void
tnp_climb_step(TnpClimb *climb, const double *gradient, double *theta)
{
	double		length = climb->rate * sqrt((double) (climb->steps - climb->step) / climb->steps);

	climb->step++;
	climb->first_rest *= FIRST_DECAY;
	climb->second_rest *= SECOND_DECAY;
	for (int k = 0; k < climb->n; k++)
	{
		double		g = gradient[k];

		climb->first[k] = FIRST_DECAY * climb->first[k] + (1 - FIRST_DECAY) * g;
		climb->second[k] = SECOND_DECAY * climb->second[k] + (1 - SECOND_DECAY) * g * g;
		theta[k] += length * (climb->first[k] / (1 - climb->first_rest))
			/ (sqrt(climb->second[k] / (1 - climb->second_rest)) + EPSILON);
		theta[k] = fmin(fmax(theta[k], climb->least), climb->most);
	}
}
