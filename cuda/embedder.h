/*
 * embedder.h: from features and targets to the tokens that enter the first layer
 * (docs/model-format.md sections 4 and 5).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef CUDA_EMBEDDER_H
#define CUDA_EMBEDDER_H

#include "linears.h"

template <class T, int R, int NV> struct EmbedderTile : LinearTile<T, R, NV>
{
	typedef LinearTile<T, R, NV> Base;
	typedef Precision<T> P;
	using Base::walk;
	using Base::model;
	using Base::lane;
	using Base::warp;
	using Base::x0;
	using Base::x1;
	using Base::h;
	using Base::input;
	using Base::rows;
	using Base::thread;

	/*
	 * Number i of what the first linear reads: 0 ... n_x - 1 features, then the target and the
	 * flag.
	 */
	DEVICE float
	number(int row, int i, int n_x) const
	{
		if ((rows.flags[row] & ROW_ACTIVE) == 0 || (rows.flags[row] & ROW_SINK) != 0)
			return 0.0f;
		if (i < n_x)
			return walk->x[(int64_t) rows.source[row] * walk->x_width + i];
		if (i == n_x)
			return (rows.flags[row] & ROW_Y) != 0 ? rows.target[row] : 0.0f;
		return (rows.flags[row] & ROW_Y) != 0 ? 0.0f : 1.0f;
	}

	/* Put n numbers of every row where linear w reads them: `input` where it says so, else x0. */
	DEVICE bool
	fill(const CudaLinear &w, int n, int n_x) const
	{
		bool		direct = w.direct != nullptr;

		for (int item = thread(); item < R * n; item += CUDA_THREADS)
		{
			int			row = item / n,
						i = item % n;

			if (direct)
				input[row * CUDA_DIRECT + i] = number(row, i, n_x);
			else
				x0[row * walk->row_x + i] = P::from(number(row, i, n_x));
		}
		/* a linear over fewer columns than it has weights for reads zeros behind them */
		for (int item = thread(); item < R * (w.in - n); item += CUDA_THREADS)
		{
			int			row = item / (w.in - n),
						i = n + item % (w.in - n);

			if (direct)
				input[row * CUDA_DIRECT + i] = 0.0f;
			else
				x0[row * walk->row_x + i] = P::from(0.0f);
		}
		sync_block();
		return direct;
	}

	/* h = what tokens are made of beside their encoders: sinks, halves, roles, positions. */
	DEVICE void
	begin_tokens(void) const
	{
		int			d = model->width;

		ROLLED
		for (int row = warp; row < R; row += CUDA_WARPS)
		{
			int			flags = rows.flags[row],
						source = rows.source[row];
			bool		made = (flags & ROW_ACTIVE) != 0 && !model->concat;

			ROLLED
			for (int i = lane; i < d; i += WARP)
			{
				float		v = 0.0f;

				if ((flags & ROW_SINK) != 0)
					v = model->sink[source * d + i];
				else if (made)
				{
					if (walk->x_is_half)
						v = walk->x[(int64_t) source * walk->x_width + i];
					if (model->role != nullptr && walk->mode != CUDA_HALVES)
						v += model->role[rows.role[row] * d + i];
					if (model->position != nullptr && rows.position[row] >= 0)
						v += model->position[rows.position[row] * d + i];
					if (model->y_table != nullptr && (flags & ROW_Y) != 0)
						v += model->y_table[(int) rows.target[row] * d + i];
				}
				h[row * walk->row_h + i] = v;
			}
		}
	}

	/*
	 * Which encoders there are: the one of everything (concat), or those of features and targets,
	 * as bits 1 and 2.
	 */
	DEVICE int
	encoders(void) const
	{
		bool		targets = walk->mode == CUDA_CHAIN || walk->mode == CUDA_APPEND
			|| walk->mode == CUDA_ENCODE;

		if (model->concat)
			return 1;
		return (walk->x_is_half ? 0 : 1) | (targets && model->y_table == nullptr ? 2 : 0);
	}
};

#endif							/* CUDA_EMBEDDER_H */
