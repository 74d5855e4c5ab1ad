/*
 * gate.c: a mixture's last component is the answer of the Gaussian process of the prefix; its
 * weight depends on how good the process is on rows left out, and on how far the two answers are
 * apart (docs/model-format.md section 8, "process").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/network/gate.h"

#include <math.h>
#include <string.h>

#include "engine/features/process_line.h"
#include "engine/network/mlp.h"

#define SMALLEST_DEVIATION 1e-3	/* added to the network's where it divides */
#define FARTHEST 4.0			/* of a log density in the network's units */

/*
 * Mean and standard deviation of n components [3, n + 1], and how much narrower than the whole
 * these are: the mean log of the ratio, large where they are peaks on the levels of a target.
 */
static void
moments(int n, const double *params, double *mean, double *sd, double *narrower)
{
	double		variance = 0,
				logs = 0;

	*mean = 0;
	for (int i = 0; i < n; i++)
		*mean += params[i] * params[n + 1 + i];
	for (int i = 0; i < n; i++)
	{
		double		from = params[n + 1 + i] - *mean,
					own = params[2 * (n + 1) + i];

		variance += params[i] * (own * own + from * from);
		logs += params[i] * log(own);
	}
	*sd = sqrt(variance);
	*narrower = log(*sd) - logs;
}

float
tnp_gate_rows(const TnpStats *stats)
{
	return (float) (log1p(fmin((double) stats->n0, TNP_GATE_ROWS)) / 8);
}

float
tnp_gate_behind(int64_t behind)
{
	return (float) (log1p(fmin((double) behind, TNP_GATE_BEHIND)) / 8);
}

double
tnp_gate_certain(const TnpStats *stats)
{
	return 1 - 1 / ((double) stats->n0 + 1);
}

void
tnp_gate_add(const TnpModel *model, const TnpStats *stats, const float *said, int64_t behind, int n,
			 double *params)
{
	const TnpConfig *c = &model->config;
	float		read[TNP_GATE_NUMBERS + TNP_RECORD_NUMBERS + 1],
				scratch[2 * TNP_MAX_GATE],
				u;
	double		mean,
				sd,
				narrower,
				apart,
				weight;

	moments(n, params, &mean, &sd, &narrower);
	apart = fabs(said[0] - mean);
	read[0] = said[3];
	read[1] = said[1];
	read[2] = said[2];
	read[3] = (float) log(sd);
	read[4] = (float) (said[1] - log(sd));
	read[5] = (float) log1p(apart / (sd + SMALLEST_DEVIATION));
	read[6] = (float) log1p(apart / exp(said[1]));
	read[7] = tnp_gate_rows(stats);
	read[8] = (float) fmin(fmax(said[3] + log(sd), -FARTHEST), FARTHEST);
	read[9] = (float) narrower;
	if (c->gate_record)
		memcpy(read + TNP_GATE_NUMBERS, stats->record, sizeof(stats->record));
	if (c->gate_behind)
		read[TNP_GATE_NUMBERS + (c->gate_record ? TNP_RECORD_NUMBERS : 0)]
			= tnp_gate_behind(behind);
	tnp_mlp(model, &model->gate, 1, read, scratch, &u);
	weight = 1 / (1 + exp(-(double) u));
	if (said[3] == TNP_LINE_SAYS_CERTAIN)
	{
		/* the network says how far one might be from it */
		weight = tnp_gate_certain(stats);
		for (int i = 0; i < n; i++)
			params[n + 1 + i] += said[0] - mean;
	}
	for (int i = 0; i < n; i++)
		params[i] *= 1 - weight;
	params[n] = weight;
	params[2 * n + 1] = said[0];
	params[3 * n + 2] = exp(said[1]);
}
