/*
 * pull.c: the mean of a mixture moved (docs/model-format.md section 8, "Trees of numbers").
 *
 * The weights are tilted: times exp(eta x mean of the component), which of all weights with that
 * mean are the nearest to those before (in Kullback and Leibler's sense). So peaks on the levels of
 * a target stay where they are.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/network/pull.h"

#include <math.h>

#include "engine/file/config.h"

#define FARTHEST 3.0			/* eta, in units of the mixture's inverse deviation */
#define STEPS 40				/* at most; a handful as a rule */
#define NEAR 1e-12				/* to the mean that is wanted, in deviations */

/* Weights [n] of a tilt, their mean, from the mean before, and its derivative. */
static double
tilt(int n, double eta, const double *params, double mean, double *weight, double *slope)
{
	double		largest = -INFINITY,
				all = 0,
				sum = 0,
				square = 0;

	for (int i = 0; i < n; i++)
		if (params[i] > 0)
			largest = fmax(largest, eta * (params[n + i] - mean));
	for (int i = 0; i < n; i++)
	{
		double		from = params[n + i] - mean;

		weight[i] = params[i] > 0 ? params[i] * exp(eta * from - largest) : 0;
		all += weight[i];
		sum += weight[i] * from;
		square += weight[i] * from * from;
	}
	for (int i = 0; i < n; i++)
		weight[i] /= all;
	*slope = square / all - sum / all * (sum / all);
	return sum / all;
}

void
tnp_mixture_pull(int n, double share, double wanted, double *params)
{
	double		mean = 0,
				variance = 0,
				low,
				high,
				eta = 0,
				weight[TNP_MOST_COMPONENTS];

	if (isnan(wanted))
		return;
	for (int i = 0; i < n; i++)
		mean += params[i] * params[n + i];
	for (int i = 0; i < n; i++)
	{
		double		from = params[n + i] - mean,
					own = params[2 * n + i];

		variance += params[i] * (own * own + from * from);
	}
	wanted = share * (wanted - mean);
	high = FARTHEST / sqrt(variance);
	low = -high;
	/* Newton's steps, which bisection replaces where they leave the bracket */
	for (int k = 0; k < STEPS; k++)
	{
		double		slope,
					off = tilt(n, eta, params, mean, weight, &slope) - wanted,
					next;

		if (fabs(off) <= NEAR * sqrt(variance))
			break;
		if (off < 0)
			low = eta;
		else
			high = eta;
		next = eta - off / slope;
		eta = next > low && next < high ? next : 0.5 * (low + high);
	}
	for (int i = 0; i < n; i++)
		params[i] = weight[i];
}
