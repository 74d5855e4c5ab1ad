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
	using Base::team;
	using Base::x0;
	using Base::x1;
	using Base::h;
	using Base::input;
	using Base::rows;
	using Base::thread;
	using Base::linear;
	using Base::linear_direct;
	using Base::mlp;

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

	/* Put n numbers of every row where linear w reads them: returns x0, or NULL for `input`. */
	DEVICE T *
	fill(const CudaLinear *w, int n, int n_x) const
	{
		bool		direct = w->direct != nullptr;

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
		for (int item = thread(); item < R * (w->in - n); item += CUDA_THREADS)
		{
			int			row = item / (w->in - n),
						i = n + item % (w->in - n);

			if (direct)
				input[row * CUDA_DIRECT + i] = 0.0f;
			else
				x0[row * walk->row_x + i] = P::from(0.0f);
		}
		sync_block();
		return direct ? nullptr : x0;
	}

	/* h += E(the n numbers), for the rows of `keep`. */
	DEVICE_CALL void
	encode(const CudaEncoder *e, int n, int n_x, int keep) const
	{
		const CudaLinear *first = e->skip ? &e->first : &e->mlp.linear[0];
		T		   *x = fill(first, n, n_x);
		Result<T>	both = {RESULT_BOTH, x1, 0, keep, nullptr, 0, 0, 0, nullptr},
					state = {RESULT_STATE, nullptr, 0, keep, nullptr, 0, 0, 0, nullptr};

		if (e->skip)
		{
			if (x == nullptr)
				linear_direct(first, both);
			else
				linear(first, x, both);
			x = x1;
		}
		mlp(&e->mlp, x, state);
	}

	/* h = tokens of the rows. */
	DEVICE_CALL void
	embed(void) const
	{
		int			d = model->width;
		bool		targets = walk->mode == CUDA_CHAIN || walk->mode == CUDA_APPEND
			|| walk->mode == CUDA_ENCODE;

		for (int item = thread(); item < R * d; item += CUDA_THREADS)
		{
			int			row = item / d,
						i = item % d,
						flags = rows.flags[row];
			float		v = 0.0f;

			if ((flags & ROW_SINK) != 0)
				v = model->sink[rows.source[row] * d + i];
			else if ((flags & ROW_ACTIVE) != 0 && !model->concat)
			{
				if (walk->x_is_half)
					v = walk->x[(int64_t) rows.source[row] * walk->x_width + i];
				if (model->role != nullptr && walk->mode != CUDA_HALVES)
					v += model->role[rows.role[row] * d + i];
				if (model->position != nullptr && rows.position[row] >= 0)
					v += model->position[rows.position[row] * d + i];
				if (model->y_table != nullptr && (flags & ROW_Y) != 0)
					v += model->y_table[(int) rows.target[row] * d + i];
			}
			h[row * walk->row_h + i] = v;
		}
		sync_team(team);
		if (model->concat)
		{
			encode(&model->x, model->x.mlp.linear[0].in, model->features, ROW_X | ROW_Y);
			return;
		}
		if (!walk->x_is_half)
			encode(&model->x, walk->x_width, walk->x_width, ROW_X);
		if (targets && model->y_table == nullptr)
			encode(&model->y, 1, 0, ROW_Y);
	}
};

#endif							/* CUDA_EMBEDDER_H */
