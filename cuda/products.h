/*
 * products.h: matrix products of a tile of rows in shared memory with weights that stream from the
 * L2 cache.
 *
 * Every warp owns whole columns of outputs for all rows of the tile, so a weight is read once per
 * tile, and an output is one chain of products over its inputs in order: it has the same bits
 * whatever the height of the tile and however columns are dealt out.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef CUDA_PRODUCTS_H
#define CUDA_PRODUCTS_H

#include "layout.h"
#include "portable.h"

/*
 * What the two precisions do differently. An operand is what a lane holds of a tile of 16 rows and
 * `depth` columns.
 */
template <class T> struct Precision;

template <> struct Precision<half16>
{
	static const int code = 0;
	static const int depth = 16;

	/* The largest number that a key or a value can be. */
	static DEVICE float
	largest(void)
	{
		return 65504.0f;
	}

	static DEVICE half16
	from(float v)
	{
		return to_half(v);
	}

	static DEVICE void
	store_pair(half16 *place, float low, float high)
	{
		*(uint32_t *) place = pack_halves(low, high);
	}

	static DEVICE void
	push_pair(half16 *place, int rank, int team, float low, float high)
	{
		team_store((uint32_t *) place, rank, team, pack_halves(low, high));
	}

	static DEVICE void
	load(uint32_t a[4], const half16 *place, int stride, int lane)
	{
		load_tile(a, place, stride, lane);
	}

	static DEVICE void
	multiply(float c[4], const uint32_t a[4], uint32_t b0, uint32_t b1)
	{
		mma_half(c, a, b0, b1);
	}
};

/*
 * Each number is the sum of two of tf32's; of the four products the smallest is left out. What
 * remains is exact to about 2^-21.
 */
template <> struct Precision<float>
{
	static const int code = 1;
	static const int depth = 8;

	static DEVICE float
	largest(void)
	{
		return 3.402823466e38f;
	}

	static DEVICE float
	from(float v)
	{
		return v;
	}

	static DEVICE void
	store_pair(float *place, float low, float high)
	{
		place[0] = low;
		place[1] = high;
	}

	static DEVICE void
	push_pair(float *place, int rank, int team, float low, float high)
	{
		team_store_pair(place, rank, team, low, high);
	}

	static DEVICE void
	load(uint32_t a[4], const float *place, int stride, int lane)
	{
		const float *row = place + (lane / 4) * stride + lane % 4;

		a[0] = bits_of(row[0]);
		a[1] = bits_of(row[8 * stride]);
		a[2] = bits_of(row[4]);
		a[3] = bits_of(row[8 * stride + 4]);
	}

	static DEVICE void
	split(uint32_t word, uint32_t *high, uint32_t *low)
	{
		*high = to_tf32(float_of(word));
		*low = to_tf32(float_of(word) - float_of(*high));
	}

	static DEVICE void
	multiply(float c[4], const uint32_t a[4], uint32_t b0, uint32_t b1)
	{
		uint32_t	high[4],
					low[4],
					h0,
					h1,
					l0,
					l1;

		UNROLL
		for (int i = 0; i < 4; i++)
			split(a[i], &high[i], &low[i]);
		split(b0, &h0, &l0);
		split(b1, &h1, &l1);
		mma_tf32(c, low, h0, h1);
		mma_tf32(c, high, l0, l1);
		mma_tf32(c, high, h0, h1);
	}
};

DEVICE float
activate(float v, int activation)
{
	/* NaN stays NaN, which fmaxf would make 0 */
	if (activation == 1)
		return v < 0.0f ? 0.0f : v;
	if (activation == 2)
		return 0.5f * v * (1.0f + erff(v * 0.70710678118654752f));
	if (activation == 3)
		return 0.5f * v * (1.0f + tanhf(0.79788456080286536f * (v + 0.044715f * v * v * v)));
	return v;
}

/* Steps of weights that are on their way while others are multiplied. */
#define CUDA_AHEAD 4

/*
 * Outputs of tiles [first, end) of w for MT * 16 rows of x, `stride` elements apart. put(row,
 * column, a, b) gets the outputs of columns column and column + 1, bias included. Two sums per
 * output, of the even and of the odd tiles of inputs: half as many products wait for each other.
 */
template <class T, int MT, class Put> DEVICE void
multiply_rows(const CudaLinear &w, const T *x, int stride, int first, int end, int warp, int lane,
			  Put put)
{
	typedef Precision<T> P;
	int			k_steps = w.k_steps;

	ROLLED
	for (int tile = first + warp; tile < end; tile += CUDA_WARPS)
	{
		const uint32_t *b = w.packed + lane * 4 + (size_t) tile * k_steps * 128;
		int			column = tile * 8 + lane % 4 * 2;
		float		b0 = w.bias != nullptr ? load_float(w.bias + column) : 0.0f,
					b1 = w.bias != nullptr ? load_float(w.bias + column + 1) : 0.0f;
		float		even[MT][4],
					odd[MT][4];
		Words		ahead[CUDA_AHEAD];

		UNROLL
		for (int m = 0; m < MT; m++)
			UNROLL
			for (int i = 0; i < 4; i++)
				even[m][i] = odd[m][i] = 0.0f;
		UNROLL
		for (int i = 0; i < CUDA_AHEAD; i++)
			ahead[i] = load_constant(b + (i < k_steps ? i : k_steps - 1) * 128);
		ROLLED
		for (int start = 0; start < k_steps; start += CUDA_AHEAD)
			UNROLL
			for (int i = 0; i < CUDA_AHEAD; i++)
			{
				int			k = start + i,
							next = k + CUDA_AHEAD;
				Words		words = ahead[i];

				if (k >= k_steps)
					break;
				if (next < k_steps)
					ahead[i] = load_constant(b + next * 128);
				UNROLL
				for (int m = 0; m < MT; m++)
				{
					const T    *place = x + m * 16 * stride + k * 2 * P::depth;
					uint32_t	a[4];

					P::load(a, place, stride, lane);
					P::multiply(even[m], a, words.x, words.y);
					P::load(a, place + P::depth, stride, lane);
					P::multiply(odd[m], a, words.z, words.w);
				}
			}
		UNROLL
		for (int m = 0; m < MT; m++)
			UNROLL
			for (int half = 0; half < 2; half++)
				put(m * 16 + half * 8 + lane / 4, column,
					even[m][2 * half] + odd[m][2 * half] + b0,
					even[m][2 * half + 1] + odd[m][2 * half + 1] + b1);
	}
}

#endif							/* CUDA_PRODUCTS_H */
