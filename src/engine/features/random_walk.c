/*
 * random_walk.c: a random walk with drift, of steps or of cycles.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/random_walk.h"

#include <math.h>

#include "engine/base/error.h"

#define MOST 1e150				/* beyond it a moment has no square */
#define POLL_PAIRS 4096			/* forecasts between two looks at interrupts */

/* What changes from cycle to cycle tell. */
typedef struct Changes
{
	double		drift,
				variance,
				cycles;			/* that these are learned from */
} Changes;

static Changes
learn(const double *y, int until, int cycle)
{
	Changes		changes = {0.0, NAN, 1.0};
	double		sum = 0.0,
				squares = 0.0;
	int			count = 0;

	for (int t = cycle; t < until; t++)
		if (!isnan(y[t] - y[t - cycle]))
		{
			sum += y[t] - y[t - cycle];
			count++;
		}
	if (count < 2)
		return changes;

	double		mean = sum / count;

	for (int t = cycle; t < until; t++)
		if (!isnan(y[t] - y[t - cycle]))
			squares += (y[t] - y[t - cycle] - mean) * (y[t] - y[t - cycle] - mean);
	changes.cycles = fmax((double) count / cycle, 1.0);

	double		chance = squares / (count - 1) / changes.cycles;

	changes.drift = mean * mean > chance ? mean * (1.0 - chance / (mean * mean)) : 0.0;
	changes.variance =
		squares / count + (mean - changes.drift) * (mean - changes.drift);
	return changes;
}

TnpStatus
tnp_random_walk(const TnpEnv *env, const TnpSeries *series, int cycle, int pairs,
				const int32_t *origins, const int32_t *steps, double *params, TnpError *error)
{
	double	   *y = tnp_alloc(env, (size_t) series->n, sizeof(double));
	Changes		changes;

	if (y == NULL)
		return tnp_no_memory(error);
	for (int t = 0; t < series->n; t++)
		y[t] = isnan(series->y[t]) && t > 0 ? y[t - 1] : series->y[t];
	changes = learn(y, series->until, cycle);
	for (int i = 0; i < pairs; i++)
	{
		int			cycles = (steps[i] - 1) / cycle + 1;
		int64_t		from = (int64_t) origins[i] - 1 + steps[i] - (int64_t) cycle * cycles;
		double		grown = changes.drift != 0.0 ? 1.0 + cycles / changes.cycles : 1.0;

		if (i % POLL_PAIRS == 0 && tnp_interrupted(env))
		{
			tnp_free(env, y);
			return tnp_fail(error, TNP_INTERRUPTED, "interrupted");
		}
		params[2 * i] = from >= 0 ? y[from] + cycles * changes.drift : NAN;
		params[2 * i + 1] = sqrt(changes.variance * cycles * grown);
		if (!(fabs(params[2 * i]) <= MOST && params[2 * i + 1] > 1.0 / MOST
			  && params[2 * i + 1] < MOST))
			params[2 * i] = params[2 * i + 1] = NAN;
	}
	tnp_free(env, y);
	return TNP_OK;
}
