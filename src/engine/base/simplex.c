/*
 * simplex.c: the simplex search of Nelder and Mead.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/base/simplex.h"

#include <math.h>
#include <string.h>

static void
simplex_rank(TnpSimplex *x)
{
	x->best = x->worst = 0;
	x->second = -1;
	for (int i = 1; i <= x->n; i++)
	{
		x->best = x->value[i] < x->value[x->best] ? i : x->best;
		x->worst = x->value[i] >= x->value[x->worst] ? i : x->worst;
	}
	for (int i = 0; i <= x->n; i++)
		if (i != x->worst && (x->second < 0 || x->value[i] > x->value[x->second]))
			x->second = i;
}

static void
simplex_replace_worst(TnpSimplex *x, const double *point, double value)
{
	memcpy(x->point[x->worst], point, (size_t) x->n * sizeof(double));
	x->value[x->worst] = value;
}

/* All corners but the best go half the way to it. */
static void
simplex_shrink(TnpSimplex *x)
{
	for (int i = 0; i <= x->n; i++)
	{
		if (i == x->best)
			continue;
		for (int k = 0; k < x->n; k++)
			x->point[i][k] = 0.5 * (x->point[i][k] + x->point[x->best][k]);
		x->value[i] = x->cost(x->arg, x->point[i]);
	}
}

void
tnp_simplex_start(TnpSimplex *x, const double *start, double step)
{
	for (int i = 0; i <= x->n; i++)
	{
		memcpy(x->point[i], start, (size_t) x->n * sizeof(double));
		if (i > 0)
			x->point[i][i - 1] += step;
		x->value[i] = x->cost(x->arg, x->point[i]);
	}
}

void
tnp_simplex_step(TnpSimplex *x)
{
	double		middle[TNP_SIMPLEX_MOST] = {0},
				trial[TNP_SIMPLEX_MOST],
				further[TNP_SIMPLEX_MOST],
				found;
	const double *worst;

	simplex_rank(x);
	worst = x->point[x->worst];
	for (int i = 0; i <= x->n; i++)
		for (int k = 0; k < x->n; k++)
			middle[k] += i == x->worst ? 0.0 : x->point[i][k] / x->n;
	for (int k = 0; k < x->n; k++)
	{
		trial[k] = 2.0 * middle[k] - worst[k];
		further[k] = 3.0 * middle[k] - 2.0 * worst[k];
	}
	found = x->cost(x->arg, trial);
	if (found < x->value[x->best])
	{
		double		beyond = x->cost(x->arg, further);

		simplex_replace_worst(x, beyond < found ? further : trial, fmin(beyond, found));
		return;
	}
	if (found < x->value[x->second])
	{
		simplex_replace_worst(x, trial, found);
		return;
	}
	for (int k = 0; k < x->n; k++)
		trial[k] = 0.5 * (middle[k] + worst[k]);
	found = x->cost(x->arg, trial);
	if (found < x->value[x->worst])
		simplex_replace_worst(x, trial, found);
	else
		simplex_shrink(x);
}

const double *
tnp_simplex_best(TnpSimplex *x)
{
	simplex_rank(x);
	return x->point[x->best];
}
