/*
 * gate.h: a mixture's last component is what the Gaussian process of the prefix says; how much it
 * weighs is computed as in the engine (engine/network/gate.c), in 32 bits.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef CUDA_GATE_H
#define CUDA_GATE_H

#include "layout.h"
#include "portable.h"
#include "products.h"

#define GATE_SMALLEST_DEVIATION 1e-3f	/* added to the network's where it divides */
#define GATE_FARTHEST 4.0f		/* of a log density in the network's units */
#define GATE_CERTAIN 8.0f		/* a line that is certain says this for its log density */

/* How much a process weighs, and how far it moves what else is said. */
typedef struct GateShare
{
	float		share,
				away;
} GateShare;

/*
 * Warp: how much the process weighs, the last of n components of params [3, n] in original units,
 * which until then weighs nothing. raw [3, n] are the outputs of the head, said [4] is what the
 * process says of the row; the walk has what is read of the prefix, behind which the row sees `own`
 * rows more than all do. A lane has its components and its hidden units; sums over lanes are always
 * in one order. It is a call, and in 32 bits, so that it takes few of the registers that attention
 * needs.
 */
DEVICE_CALL GateShare
gate_share(const float *gate, const CudaWalk *walk, const float *said, const float *raw,
		   const double *params, int n, int own, int lane)
{
	const float scale = fabsf((float) load_parameter(&walk->y_scale));
	float		mean = 0.0f,
				variance = 0.0f,
				logs = 0.0f,
				u = 0.0f;

	raw = in_device_memory(raw);
	params = in_device_memory(params);
	ROLLED
	for (int i = lane; i < n; i += WARP)
		mean = fused((float) params[i], raw[n + i], mean);
	mean = warp_sum(mean);
	ROLLED
	for (int i = lane; i < n; i += WARP)
	{
		float		weight = (float) params[i],
					own = (float) params[2 * n + i] / scale,
					from = raw[n + i] - mean;

		variance = fused(weight, fused(own, own, product(from, from)), variance);
		logs = fused(weight, logf(own), logs);
	}

	float		sd = sqrtf(warp_sum(variance)),
				log_sd = logf(sd),
				narrower = log_sd - warp_sum(logs),
				apart = fabsf(load_float(said) - mean),
				spread = load_float(said + 1),
				quality = load_float(said + 3),
				behind = log1pf(fminf((float) (load_parameter(&walk->behind) + own),
									  CUDA_GATE_BEHIND)) / 8.0f;
	float		read[CUDA_GATE_NUMBERS] = {
		quality, spread, load_float(said + 2), log_sd, spread - log_sd,
		log1pf(apart / (sd + GATE_SMALLEST_DEVIATION)), log1pf(apart / expf(spread)),
		load_parameter(&walk->gate_rows),
		fminf(fmaxf(quality + log_sd, -GATE_FARTHEST), GATE_FARTHEST), narrower
	};
	int			hidden = (int) load_float(gate),
				activation = (int) load_float(gate + 1);

	ROLLED
	for (int j = lane; j < hidden; j += WARP)
	{
		const float *w = gate + CUDA_GATE_HEAD + j * CUDA_GATE_ROW;
		float		sum[1] = {load_float(w + CUDA_GATE_ROW - 2)};

		UNROLL
		for (int i = 0; i < CUDA_GATE_NUMBERS; i++)
			sum[0] = fused(load_float(w + i), read[i], sum[0]);
		ROLLED
		for (int i = 0; i < CUDA_RECORD_NUMBERS; i++)
			sum[0] = fused(load_float(w + CUDA_GATE_NUMBERS + i), load_parameter(walk->record + i),
						   sum[0]);
		sum[0] = fused(load_float(w + CUDA_GATE_ROW - 3), behind, sum[0]);
		activate<1>(sum, activation);
		u = fused(sum[0], load_float(w + CUDA_GATE_ROW - 1), u);
	}
	u = warp_sum(u) + load_float(gate + 2);
	if (quality == GATE_CERTAIN)
		return {load_parameter(&walk->certain), load_float(said) - mean};
	return {1.0f / (1.0f + expf(-u)), 0.0f};
}

#endif							/* CUDA_GATE_H */
