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

/* What receive() waits for: nothing, results that were stored, or one of the four of a layer. */
#define RESULT_OF_NOTHING (-1)
#define RESULT_OF_BARRIER 4

/* What becomes of the outputs of a linear. */
enum ResultKind
{
	RESULT_OPERAND,				/* activation, then operand `to` of all blocks */
	RESULT_STATE,				/* added to h of all blocks, for the rows of `keep` */
	RESULT_QUERY,				/* scaled, this block's queries */
	RESULT_KEY,					/* the cache, for rows that store */
	RESULT_VALUE,
	RESULT_RAW					/* the head's raw outputs in memory */
};

template <class T> struct Result
{
	T		   *to;				/* OPERAND */
	int			activation;
	int			keep;			/* STATE; and OPERAND, where the numbers are added to h as well */
	/*
	 * queries, keys, values: of `own`, this block's head number local, to layer `at` of the cache
	 */
	int			at,
				local,
				own;
	const float *log_scale;		/* of the layer, or NULL */
	float	   *raw;			/* RAW */
	bool		rings;			/* OPERAND, STATE: pushed to bells, of rows that are there */
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
	logit_scale(const float *log_scale, int head, int row) const
	{
		float		scale = model->logit_scale;

		if (log_scale != nullptr)
			scale *= load_float(log_scale + 2 * head) * rows.log_keys[row] +
				load_float(log_scale + 2 * head + 1);
		return scale;
	}

	/*
	 * Two neighbouring outputs of a row, activated. alone: every block computes all of them,
	 * nothing is pushed.
	 */
	template <ResultKind kind> DEVICE void
	put(const Result<T> &r, int row, int column, float a, float b, bool alone) const
	{
		if (Base::copied && (kind == RESULT_OPERAND || kind == RESULT_STATE) && r.rings
			&& (rows.flags[row] & ROW_ACTIVE) == 0)
			return;
		if (kind == RESULT_OPERAND)
		{
			if (alone)
				P::store_pair(r.to + row * walk->row_x + column, a, b);
			else
				push(r.to, row, column, a, b, r.rings);
			if (r.keep != 0)
				add_state(row, column, a, b, r.keep, alone, false);
		}
		else if (kind == RESULT_STATE)
			add_state(row, column, a, b, r.keep, alone, r.rings);
		else if (kind == RESULT_QUERY)
		{
			float		scale = logit_scale(r.log_scale, r.own, row);

			P::store_pair(q + row * walk->row_q + r.local * Base::head_columns + column -
						  r.own * NV * 8, within_key(a) * scale, within_key(b) * scale);
		}
		else if (kind == RESULT_KEY || kind == RESULT_VALUE)
		{
			if ((rows.flags[row] & (ROW_ACTIVE | ROW_STORES)) != (ROW_ACTIVE | ROW_STORES))
				return;
			if (kind == RESULT_KEY)
			{
				a = within_key(a);
				b = within_key(b);
			}
			/* a slot that is not seen is multiplied as well: by zero, which NaN would survive */
			if (!(fabsf(a) <= P::largest()) || !(fabsf(b) <= P::largest()))
			{
				atomic_or(walk->flags, 1);
				a = b = 0.0f;
			}
			if (kind == RESULT_KEY)
				this->store_key(r.at, r.own, row, column - r.own * NV * 8, a, b);
			else
				this->store_value(r.at, r.own, row, column - r.own * NV * 8, a, b);
		}
		else
		{
			if (column < model->outputs)
				r.raw[(int64_t) row * model->outputs + column] = a;
			if (column + 1 < model->outputs)
				r.raw[(int64_t) row * model->outputs + column + 1] = b;
		}
	}

	/*
	 * Tiles [first, end) of w's outputs; own_warp says which of them are this warp's, and before
	 * whether the first of these has been asked for.
	 */
	template <ResultKind kind> DEVICE void
	columns(const CudaLinear &w, const T *x, int first, int end, int own_warp, bool before,
			Asked &asked, const Result<T> &r) const
	{
		auto		keep = [&](int row, int column, float a, float b)
			{ put<kind>(r, row, column, a, b, false); };

		multiply_rows<T, tiles, Base::places, Base::copied>(w, x, walk->row_x, first, end, own_warp,
															this->own_lane(), before, asked,
															kind == RESULT_OPERAND ? r.activation
															: 0, keep);
	}

	/*
	 * The first tile of w whose columns a block of the team computes, or the next block's. The
	 * team's size is a shift: a division takes as long as the first weights.
	 */
	DEVICE int
	first_tile(const CudaLinear &w, int block) const
	{
		return w.n_tiles * block >> walk->team_bits;
	}

	/* Ask for what this warp needs first of w; queries: of this block's first head. */
	DEVICE void
	ask_first(const CudaLinear &w, bool queries, Asked &asked) const
	{
		int			first = queries ? this->head(0) * NV : first_tile(w, rank);

		if (first + warp < (queries ? first + NV : first_tile(w, rank + 1)))
			asked.ask(w, first + warp, lane);
	}

	/*
	 * A linear on x, its columns dealt out to the team; before: this warp's first tile of it has
	 * been asked for. carry() has the barriers behind it, at few places, because each of them drops
	 * the first-level cache.
	 */
	template <ResultKind kind> DEVICE void
	linear(const CudaLinear &w, const T *x, bool before, Asked &asked, const Result<T> &r) const
	{
		columns<kind>(w, x, first_tile(w, rank), first_tile(w, rank + 1), warp, before, asked, r);
	}

	/* The same of an encoder or the head, whose linears have results of three kinds. */
	DEVICE void
	linear_of_mlp(ResultKind kind, const CudaLinear &w, const T *x, Asked &asked,
				  const Result<T> &r) const
	{
		int			first = first_tile(w, rank),
					end = first_tile(w, rank + 1);

		if (kind == RESULT_OPERAND)
			columns<RESULT_OPERAND>(w, x, first, end, warp, false, asked, r);
		else if (kind == RESULT_STATE)
			columns<RESULT_STATE>(w, x, first, end, warp, false, asked, r);
		else
			columns<RESULT_RAW>(w, x, first, end, warp, false, asked, r);
	}

	/* Two outputs that every block computes for itself, not yet activated. */
	DEVICE void
	put_direct(ResultKind kind, const Result<T> &r, int row, int column, float a, float b) const
	{
		float		pair[2] = {a, b};

		if (kind == RESULT_STATE)
			put<RESULT_STATE>(r, row, column, a, b, true);
		else
		{
			activate<2>(pair, r.activation);
			put<RESULT_OPERAND>(r, row, column, pair[0], pair[1], true);
		}
	}

	/*
	 * The same for raw inputs, input [R, in], in 32 bits; each block computes all columns for
	 * itself.
	 */
	DEVICE void
	linear_direct(ResultKind kind, const CudaLinear &w, const Result<T> &r) const
	{
		int			columns = w.n_tiles * 8;

		ROLLED
		for (int row = warp; row < R; row += CUDA_WARPS)
			ROLLED
			for (int column = 2 * lane; column < columns; column += 2 * WARP)
			{
				float		a = w.bias != nullptr ? load_float(w.bias + column) : 0.0f,
							b = w.bias != nullptr ? load_float(w.bias + column + 1) : 0.0f;

				for (int i = 0; i < w.in; i++)
				{
					float		v = input[row * CUDA_DIRECT + i];
					const float *at = w.direct + i * w.out + column;

					a = fused(v, column < w.out ? load_float(at) : 0.0f, a);
					b = fused(v, column + 1 < w.out ? load_float(at + 1) : 0.0f, b);
				}
				put_direct(kind, r, row, column, a, b);
			}
	}

	/* Add to the residual stream, in all blocks; rings: pushed to their bells. */
	DEVICE void
	add_state(int row, int column, float a, float b, int keep, bool alone, bool rings) const
	{
		float	   *place = h + row * walk->row_h + column;

		if (!keeps(row, keep))
			return;

		Two			before = load_two(place);

		a += before.a;
		b += before.b;
		if (alone || team == 1)
			store_two(place, a, b);
		else if (Base::copied && rings)
			ROLLED
			for (int peer = 0; peer < team; peer++)
				push_two(place, this->bell(1), peer, team, a, b);
		else
			ROLLED
			for (int peer = 0; peer < team; peer++)
				team_store_pair(place, peer, team, a, b);
	}

	/*
	 * Wait for results of the team: a barrier, or, of results that were pushed, this block's bell.
	 * Each of the two has two rounds in a layer, so that their parities are known: results 0 to 3
	 * of a layer ring bells 0, 1, 0, 1 in rounds 0, 0, 1, 1. bytes: of a row.
	 */
	DEVICE void
	receive(int result, int bytes) const
	{
		if (result == RESULT_OF_BARRIER)
			sync_team(team);
		else
			receive_pushes(result, bytes);
	}

	DEVICE void
	receive_pushes(int result, int bytes) const
	{
		if (thread() == 0)
			expect_pushes(this->bell(result & 1), bytes * rows.active[0]);
		await_pushes(this->bell(result & 1), result >> 1);
	}

	/*
	 * Columns of a norm: a lane has four side by side of every 128. All norms add up a row's
	 * numbers in this order.
	 */
	static const int norm_step = 4 * WARP;

	DEVICE int
	norm_column(void) const
	{
		return 4 * lane;
	}

	static DEVICE float
	sum_four(const Four &v)
	{
		return v.a + v.b + v.c + v.d;
	}

	static DEVICE float
	squares_of_four(const Four &v)
	{
		return fused(v.d, v.d, fused(v.c, v.c, fused(v.b, v.b, product(v.a, v.a))));
	}

	/* Numbers of a row of d, as offsets from its mean; those behind the last are zeros. */
	static DEVICE Four
	offsets(const float *from, int column, int d, float mean)
	{
		return Four{column < d ? from[column] - mean : 0.0f,
					column + 1 < d ? from[column + 1] - mean : 0.0f,
					column + 2 < d ? from[column + 2] - mean : 0.0f,
					column + 3 < d ? from[column + 3] - mean : 0.0f};
	}

	/*
	 * Warp: x0 = norm(h) of a row of any length; the rows of `keep` get it in h as well.
	 */
	DEVICE void
	norm_row(const CudaNorm &n, int keep, int row) const
	{
		int			d = model->width;
		float	   *from = h + row * walk->row_h;
		T		   *to = x0 + row * walk->row_x;
		bool		kept = (rows.flags[row] & keep) != 0;
		float		mean = 0.0f,
					square = 0.0f,
					scale;

		if (n.centred)
		{
			ROLLED
			for (int i = norm_column(); i < d; i += norm_step)
				mean += sum_four(offsets(from, i, d, 0.0f));
			mean = warp_sum(mean) / (float) d;
		}
		ROLLED
		for (int i = norm_column(); i < d; i += norm_step)
			square += squares_of_four(offsets(from, i, d, mean));
		square = warp_sum(square);
		scale = 1.0f / sqrtf(square / (float) d + n.eps);
		if (!(square <= 1e38f))
		{
			norm_large(n, kept, from, to);
			return;
		}
		ROLLED
		for (int i = lane; i < d; i += WARP)
			put_norm(n, kept, i, product(from[i] - mean, scale), from, to);
	}

	/* Number i of a norm's row, centred and scaled: weight and bias, then x0, and h if `kept`. */
	DEVICE void
	put_norm(const CudaNorm &n, bool kept, int i, float centred, float *from, T *to) const
	{
		float		v = product(centred, load_float(n.weight + i)) +
			(n.bias != nullptr ? load_float(n.bias + i) : 0.0f);

		to[i] = P::from(v);
		if (kept)
			from[i] = v;
	}

	/* The same of four side by side, whose offsets from the mean these are. */
	static DEVICE void
	put_four(const Four &weight, const Four &bias, bool kept, const Four &offset, float scale,
			 float *from, T *to)
	{
		Four		v = {product(product(offset.a, scale), weight.a) + bias.a,
						 product(product(offset.b, scale), weight.b) + bias.b,
						 product(product(offset.c, scale), weight.c) + bias.c,
						 product(product(offset.d, scale), weight.d) + bias.d};

		P::store_four(to, v);
		if (kept)
			store_four(from, v);
	}

	/*
	 * Warp: the same of a row whose squares have no room in 32 bits: mean, and one over the root of
	 * the mean square, in double precision.
	 */
	DEVICE void
	norm_large(const CudaNorm &n, bool kept, float *from, T *to) const
	{
		int			d = model->width;
		double		sum = 0.0,
					square = 0.0,
					mean,
					scale;

		if (n.centred)
			ROLLED
			for (int i = lane; i < d; i += WARP)
				sum += from[i];
		mean = warp_sum(sum) / d;
		ROLLED
		for (int i = lane; i < d; i += WARP)
			square += (from[i] - mean) * (from[i] - mean);
		scale = 1.0 / sqrt(warp_sum(square) / d + n.eps);
		ROLLED
		for (int i = lane; i < d; i += WARP)
			put_norm(n, kept, i, (float) ((from[i] - mean) * scale), from, to);
	}

	/*
	 * Warp: norm_row() of the ROWS rows first, first + CUDA_WARPS, ... side by side, of a width
	 * that is a multiple of four: their sums take shuffles together, each lane finds the scale of
	 * one row, and weights come while sums are formed. Of the first 128 columns all is read once.
	 * Rows that are not there are left alone.
	 */
	template <int ROWS> DEVICE void
	norm_rows(const CudaNorm &n, int keep, int first) const
	{
		const Four	zeros = {0.0f, 0.0f, 0.0f, 0.0f};
		int			d = model->width,
					stride = CUDA_WARPS * walk->row_h,
					column = norm_column();
		bool		there = column < d,
					longer = d > norm_step;
		float	   *from = h + first * walk->row_h;
		T		   *to = x0 + first * walk->row_x;
		Four		weight = there ? load_four_constant(n.weight + column) : zeros,
					bias = there && n.bias != nullptr ? load_four_constant(n.bias + column)
					: zeros,
					value[ROWS];
		float		mean[ROWS],
					sum[ROWS],
					scale;
		unsigned	large;

		UNROLL
		for (int j = 0; j < ROWS; j++)
		{
			value[j] = there ? load_four(from + j * stride + column) : zeros;
			mean[j] = 0.0f;
		}
		if (n.centred)
		{
			float		own;

			UNROLL
			for (int j = 0; j < ROWS; j++)
				sum[j] = sum_four(value[j]);
			if (longer)
				ROLLED
				for (int i = column + norm_step; i < d; i += norm_step)
					UNROLL
					for (int j = 0; j < ROWS; j++)
						sum[j] += sum_four(load_four(from + j * stride + i));
			own = warp_sums<ROWS>(sum, lane) / (float) d;
			UNROLL
			for (int j = 0; j < ROWS; j++)
				mean[j] = of_warp_sums<ROWS>(own, j);
		}
		UNROLL
		for (int j = 0; j < ROWS; j++)
		{
			value[j] = minus(value[j], mean[j]);
			/* columns that are not there stay zero */
			sum[j] = there ? squares_of_four(value[j]) : 0.0f;
		}
		if (longer)
			ROLLED
			for (int i = column + norm_step; i < d; i += norm_step)
				UNROLL
				for (int j = 0; j < ROWS; j++)
					sum[j] += squares_of_four(minus(load_four(from + j * stride + i), mean[j]));
		scale = warp_sums<ROWS>(sum, lane);
		large = warp_ballot(!(scale <= 1e38f));
		scale = 1.0f / sqrtf(scale / (float) d + n.eps);
		UNROLL
		for (int j = 0; j < ROWS; j++)
		{
			int			flags = rows.flags[first + j * CUDA_WARPS];
			bool		kept = (flags & keep) != 0;
			float		s = of_warp_sums<ROWS>(scale, j);
			float	   *row = from + j * stride;
			T		   *out = to + j * CUDA_WARPS * walk->row_x;

			if ((flags & ROW_ACTIVE) == 0 || (large >> j * (WARP / ROWS) & 1) != 0)
				continue;
			if (there)
				put_four(weight, bias, kept, value[j], s, row + column, out + column);
			if (longer)
				ROLLED
				for (int i = column + norm_step; i < d; i += norm_step)
					put_four(load_four_constant(n.weight + i),
							 n.bias != nullptr ? load_four_constant(n.bias + i) : zeros, kept,
							 minus(load_four(row + i), mean[j]), s, row + i, out + i);
		}
		ROLLED
		for (int row = first; large != 0; row += CUDA_WARPS)
		{
			if ((large & 1) != 0 && (rows.flags[row] & ROW_ACTIVE) != 0)
				norm_large(n, (rows.flags[row] & keep) != 0, h + row * walk->row_h,
						   x0 + row * walk->row_x);
			large = large >> (WARP / ROWS - 1) >> 1;
		}
	}

	static DEVICE Four
	minus(const Four &v, float mean)
	{
		return Four{v.a - mean, v.b - mean, v.c - mean, v.d - mean};
	}

	/* Whether this warp has rows that are there. */
	DEVICE bool
	has_rows(void) const
	{
		int			any = 0;

		UNROLL
		for (int row = warp; row < R; row += CUDA_WARPS)
			any |= rows.flags[row];
		return (any & ROW_ACTIVE) != 0;
	}

	/*
	 * x0 = norm(h), or h itself without weights; the rows of `keep` get it in h as well. Rows that
	 * are not there keep what they have, which is never read.
	 */
	DEVICE void
	norm(const CudaNorm &n, int keep) const
	{
		if (Base::norms > 1 && n.weight != nullptr && model->width % 4 == 0)
		{
			if (has_rows())
				norm_rows<Base::norms>(n, keep, warp);
		}
		else
		{
			ROLLED
			for (int row = warp; row < R; row += CUDA_WARPS)
			{
				if ((rows.flags[row] & ROW_ACTIVE) == 0)
					continue;
				if (Base::norms == 1 && n.weight != nullptr && model->width % 4 == 0)
					norm_rows<1>(n, keep, row);
				else if (n.weight != nullptr)
					norm_row(n, keep, row);
				else
					ROLLED
					for (int i = lane; i < model->width; i += WARP)
						x0[row * walk->row_x + i] = P::from(h[row * walk->row_h + i]);
			}
		}
		sync_block();
	}
};

#endif							/* CUDA_LINEARS_H */
