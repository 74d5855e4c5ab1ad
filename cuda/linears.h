/*
 * linears.h: linears and norms of a tile, and what becomes of their outputs.
 *
 * State of the tile is kept in every block of the team: the residual stream h in 32 bits, two
 * operand buffers x0 and x1. Each linear's columns are dealt out to the blocks, which push their
 * results into all of them. Between a push and its reader lies one barrier of the team; x0 takes
 * what a block computes for itself (norms), x1 what is pushed, so that no block can overwrite what
 * a slower one still reads.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef CUDA_LINEARS_H
#define CUDA_LINEARS_H

#include "rows.h"

/* Which rows of a tile a result is kept for: those with any of these flags. */
#define KEEP_ALL ROW_ACTIVE

/* What becomes of the outputs of a linear. */
enum ResultKind
{
	RESULT_OPERAND,				/* activation, then operand `to` of all blocks */
	RESULT_STATE,				/* added to h of all blocks, for the rows of `keep` */
	RESULT_BOTH,				/* both: u of a skip-mlp */
	RESULT_QUERY,				/* scaled, this block's queries */
	RESULT_KEY,					/* the cache, for rows that store */
	RESULT_VALUE,
	RESULT_RAW					/* the head's raw outputs in memory */
};

template <class T> struct Result
{
	ResultKind	kind;
	T		   *to;
	int			activation;
	int			keep;
	/*
	 * queries, keys, values: of `own`, this block's head number local, to layer `at` of the cache
	 */
	const CudaLayer *layer;
	int			at,
				local,
				own;
	float	   *raw;
};

template <class T, int R, int NV> struct LinearTile : RowTile<T, R, NV>
{
	typedef RowTile<T, R, NV> Base;
	typedef Precision<T> P;
	using Base::walk;
	using Base::model;
	using Base::lane;
	using Base::warp;
	using Base::rank;
	using Base::team;
	using Base::x0;
	using Base::x1;
	using Base::q;
	using Base::h;
	using Base::input;
	using Base::rows;
	using Base::tiles;
	using Base::push;
	using Base::thread;

	/* Whether a result of this row is kept. */
	DEVICE bool
	keeps(int row, int keep) const
	{
		return (rows.flags[row] & keep) != 0;
	}

	/* What multiplies q.k, times log2(e). */
	DEVICE float
	logit_scale(const CudaLayer *layer, int head, int row) const
	{
		float		scale = (float) CUDA_LOG2E / sqrtf((float) model->head_width);

		if (layer->log_scale != nullptr)
			scale *= layer->log_scale[2 * head] * rows.log_keys[row] +
				layer->log_scale[2 * head + 1];
		return scale;
	}

	/*
	 * Two neighbouring outputs of a row. alone: every block computes all of them, nothing is
	 * pushed.
	 */
	DEVICE void
	put(const Result<T> &r, int row, int column, float a, float b, bool alone) const
	{
		switch (r.kind)
		{
			case RESULT_OPERAND:
			case RESULT_BOTH:
				{
					float		u = activate(a, r.activation),
								v = activate(b, r.activation);

					if (alone)
						P::store_pair(r.to + row * walk->row_x + column, u, v);
					else
						push(r.to, row, column, u, v);
				}
				if (r.kind == RESULT_BOTH)
					add_state(row, column, a, b, r.keep, alone);
				break;
			case RESULT_STATE:
				add_state(row, column, a, b, r.keep, alone);
				break;
			case RESULT_QUERY:
				{
					float		scale = logit_scale(r.layer, r.own, row);

					P::store_pair(q + row * walk->row_q + r.local * Base::head_columns + column -
								  r.own * NV * 8, within_key(a) * scale, within_key(b) * scale);
				}
				break;
			case RESULT_KEY:
			case RESULT_VALUE:
				if ((rows.flags[row] & (ROW_ACTIVE | ROW_STORES)) != (ROW_ACTIVE | ROW_STORES))
					break;
				if (r.kind == RESULT_KEY)
					this->store_key(r.at, r.own, row, column - r.own * NV * 8, within_key(a),
									within_key(b));
				else
					this->store_value(r.at, r.own, row, column - r.own * NV * 8, a, b);
				break;
			case RESULT_RAW:
				if (column < model->outputs)
					r.raw[(int64_t) row * model->outputs + column] = a;
				if (column + 1 < model->outputs)
					r.raw[(int64_t) row * model->outputs + column + 1] = b;
				break;
		}
	}

	/* Tiles [first, end) of w's outputs; own_warp says which of them are this warp's. */
	DEVICE_CALL void
	columns(const CudaLinear *w, const T *x, int first, int end, int own_warp,
			const Result<T> &r) const
	{
		multiply_rows<T, tiles>(w, x, walk->row_x, first, end, own_warp, lane,
								[&](int row, int column, float a,
									float b) { put(r, row, column, a, b, false); });
	}

	/* A linear on x, its columns dealt out to the team. Ends with the team's barrier. */
	DEVICE void
	linear(const CudaLinear *w, const T *x, const Result<T> &r) const
	{
		columns(w, x, (int) ((int64_t) w->n_tiles * rank / team),
				(int) ((int64_t) w->n_tiles * (rank + 1) / team), warp, r);
		sync_team(team);
	}

	/*
	 * The same for raw inputs, input [R, in], in 32 bits; each block computes all columns for
	 * itself.
	 */
	DEVICE_CALL void
	linear_direct(const CudaLinear *w, const Result<T> &r) const
	{
		int			pairs = w->n_tiles * 4;

		for (int item = thread(); item < R * pairs; item += CUDA_THREADS)
		{
			int			row = item / pairs,
						column = item % pairs * 2;
			float		a = w->bias != nullptr ? w->bias[column] : 0.0f,
						b = w->bias != nullptr ? w->bias[column + 1] : 0.0f;

			for (int i = 0; i < w->in; i++)
			{
				float		v = input[row * CUDA_DIRECT + i];

				a = fused(v, column < w->out ? w->direct[i * w->out + column] : 0.0f, a);
				b = fused(v, column + 1 < w->out ? w->direct[i * w->out + column + 1] : 0.0f, b);
			}
			put(r, row, column, a, b, true);
		}
		sync_team(team);
	}

	/* Add to the residual stream, in all blocks. */
	DEVICE void
	add_state(int row, int column, float a, float b, int keep, bool alone) const
	{
		float	   *place = h + row * walk->row_h + column;

		if (!keeps(row, keep))
			return;
		a += place[0];
		b += place[1];
		if (alone)
		{
			place[0] = a;
			place[1] = b;
			return;
		}
		for (int peer = 0; peer < team; peer++)
		{
			float	   *to = team_peer(place, peer, team);

			to[0] = a;
			to[1] = b;
		}
	}

	/*
	 * Warp: mean, and one over the root of the mean square, of a row in double precision: its
	 * squares have no room in 32 bits.
	 */
	DEVICE_CALL void
	large_moments(const CudaNorm *n, const float *from, double *mean, double *scale) const
	{
		int			d = model->width;
		double		sum = 0.0,
					square = 0.0;

		if (n->centred)
			for (int i = lane; i < d; i += WARP)
				sum += from[i];
		*mean = warp_sum(sum) / d;
		for (int i = lane; i < d; i += WARP)
			square += (from[i] - *mean) * (from[i] - *mean);
		*scale = 1.0 / sqrt(warp_sum(square) / d + n->eps);
	}

	/* x0 = norm(h), or h itself without a norm; the rows of `keep` get it in h as well. */
	DEVICE_CALL void
	norm(const CudaNorm *n, int keep) const
	{
		int			d = model->width;

		for (int row = warp; row < R; row += CUDA_WARPS)
		{
			float	   *from = h + row * walk->row_h;
			T		   *to = x0 + row * walk->row_x;
			float		mean = 0.0f,
						square = 0.0f,
						scale;
			double		large_mean = 0.0,
						large_scale = 0.0;
			bool		large;

			if (n == nullptr)
			{
				for (int i = lane; i < d; i += WARP)
					to[i] = P::from(from[i]);
				continue;
			}
			if (n->centred)
			{
				for (int i = lane; i < d; i += WARP)
					mean += from[i];
				mean = warp_sum(mean) / (float) d;
			}
			for (int i = lane; i < d; i += WARP)
				square = fused(from[i] - mean, from[i] - mean, square);
			square = warp_sum(square);
			scale = 1.0f / sqrtf(square / (float) d + n->eps);
			large = !(square <= 1e38f);
			if (large)
				large_moments(n, from, &large_mean, &large_scale);
			for (int i = lane; i < d; i += WARP)
			{
				float		centred = large ? (float) ((from[i] - large_mean) * large_scale)
					: product(from[i] - mean, scale),
							v = product(centred, n->weight[i]) +
								(n->bias != nullptr ? n->bias[i] : 0.0f);

				to[i] = P::from(v);
				if (keeps(row, keep))
					from[i] = v;
			}
		}
		sync_block();
	}

	/*
	 * An MLP on x, or, without x, on `input`, its first linear being direct then; `last` says what
	 * becomes of its outputs.
	 */
	DEVICE_CALL void
	mlp(const CudaMlp *m, T *x, const Result<T> &last) const
	{
		for (int i = 0; i < m->n; i++)
		{
			Result<T>	hidden = {RESULT_OPERAND, x == nullptr || x == x0 ? x1 : x0, m->activation,
								  0, nullptr, 0, 0, 0, nullptr};
			const Result<T> &r = i == m->n - 1 ? last : hidden;

			if (x == nullptr)
				linear_direct(&m->linear[i], r);
			else
				linear(&m->linear[i], x, r);
			x = hidden.to;
		}
	}
};

#endif							/* CUDA_LINEARS_H */
