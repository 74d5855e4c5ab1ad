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

	/* Two numbers side by side, as they are stored. */
	typedef uint32_t Pair;

	static DEVICE Pair
	pair(float low, float high)
	{
		return pack_halves(low, high);
	}

	static DEVICE void
	store_pair(half16 *place, Pair pair)
	{
		*(uint32_t *) place = pair;
	}

	static DEVICE void
	store_four(half16 *place, const Four &v)
	{
		store_two_words((uint32_t *) place, pair(v.a, v.b), pair(v.c, v.d));
	}

	static DEVICE void
	store_pair(half16 *place, float low, float high)
	{
		store_pair(place, pair(low, high));
	}

	static DEVICE void
	push_pair(half16 *place, int rank, int team, Pair pair)
	{
		team_store((uint32_t *) place, rank, team, pair);
	}

	static DEVICE void
	ring_pair(half16 *place, Bell *bell, int rank, int team, Pair pair)
	{
		push_word((uint32_t *) place, bell, rank, team, pair);
	}

	static DEVICE void
	load(uint32_t a[4], const half16 *place, int stride, int lane)
	{
		load_tile(a, tile_place(place, stride, lane), 0);
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

	struct Pair
	{
		float		low,
					high;
	};

	static DEVICE Pair
	pair(float low, float high)
	{
		return Pair{low, high};
	}

	static DEVICE void
	store_pair(float *place, Pair pair)
	{
		place[0] = pair.low;
		place[1] = pair.high;
	}

	static DEVICE void
	store_four(float *place, const Four &v)
	{
		::store_four(place, v);
	}

	static DEVICE void
	store_pair(float *place, float low, float high)
	{
		store_pair(place, pair(low, high));
	}

	static DEVICE void
	push_pair(float *place, int rank, int team, Pair pair)
	{
		team_store_pair(place, rank, team, pair.low, pair.high);
	}

	static DEVICE void
	ring_pair(float *place, Bell *bell, int rank, int team, Pair pair)
	{
		push_two(place, bell, rank, team, pair.low, pair.high);
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

/*
 * v times the normal distribution function of v. The error function is Hastings' approximation
 * (Abramowitz and Stegun 1964, 7.1.26), wrong by 1.5e-7 at most, in half the instructions of the
 * library's, without a branch. NaN stays NaN.
 */
DEVICE float
gelu(float v)
{
	float		x = fabsf(v) * 0.70710678118654752f,
				t = reciprocal_fast(fused(0.3275911f, x, 1.0f)),
				tail = fused(1.061405429f, t, -1.453152027f);

	tail = fused(tail, t, 1.421413741f);
	tail = fused(tail, t, -0.284496736f);
	tail = fused(tail, t, 0.254829592f);
	tail = product(product(tail, t), exp2_fast(product(product(x, -(float) CUDA_LOG2E), x)));
	return fused(-0.5f * fabsf(v), tail, fmaxf(v, 0.0f));
}

/* v (1 + tanh u) / 2 is v times the logistic function of 2 u. NaN stays NaN. */
DEVICE float
gelu_tanh(float v)
{
	float		u = 0.79788456080286536f * fused(0.044715f * v * v, v, v);

	return product(v, reciprocal_fast(1.0f + exp2_fast(product(-2.0f * (float) CUDA_LOG2E, u))));
}

/* An activation of n numbers, in place. */
template <int n> DEVICE void
activate(float v[n], int activation)
{
	if (activation == 1)
	{
		/* NaN stays NaN, which fmaxf would make 0 */
		UNROLL
		for (int i = 0; i < n; i++)
			v[i] = v[i] < 0.0f ? 0.0f : v[i];
	}
	else if (activation == 2)
	{
		UNROLL
		for (int i = 0; i < n; i++)
			v[i] = gelu(v[i]);
	}
	else if (activation == 3)
	{
		UNROLL
		for (int i = 0; i < n; i++)
			v[i] = gelu_tanh(v[i]);
	}
}

/* Steps of weights that are on their way while others are multiplied. */
#define CUDA_AHEAD 4

/*
 * Two sums per output, of the even and of the odd tiles of inputs: half as many products wait for
 * each other.
 */
template <int MT> struct Sums
{
	float		even[MT][4],
				odd[MT][4];

	DEVICE void
	clear(void)
	{
		UNROLL
		for (int m = 0; m < MT; m++)
			UNROLL
			for (int i = 0; i < 4; i++)
				even[m][i] = odd[m][i] = 0.0f;
	}
};

/*
 * Products of MT * 16 rows of x with k_steps steps of weights at b, of which the first are in
 * `ahead`.
 */
template <class T, int MT> DEVICE void
add_products(Sums<MT> &sums, const T *x, int stride, const uint32_t *b, int k_steps, int lane,
			 Words *ahead)
{
	typedef Precision<T> P;

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
				P::multiply(sums.even[m], a, words.x, words.y);
				P::load(a, place + P::depth, stride, lane);
				P::multiply(sums.odd[m], a, words.z, words.w);
			}
		}
}

/* One step of MT * 16 rows, which are `offset` elements after `place`. */
template <int MT> DEVICE void
add_step(Sums<MT> &sums, TilePlace place, int stride, int offset, const Words &weights)
{
	UNROLL
	for (int m = 0; m < MT; m++)
	{
		uint32_t	a[4];

		load_tile(a, place, m * 16 * stride + offset);
		mma_half(sums.even[m], a, weights.x, weights.y);
		load_tile(a, place, m * 16 * stride + offset + Precision<half16>::depth);
		mma_half(sums.odd[m], a, weights.z, weights.w);
	}
}

/*
 * The same of 16 bits, in less than half the instructions, with registers for places: they count on
 * by whole iterations, so that within one all offsets are known, and weights come into the
 * registers of those that were used last.
 */
template <int MT> DEVICE void
add_products_at(Sums<MT> &sums, const half16 *x, int stride, const uint32_t *b, int k_steps,
				int lane, Words *ahead)
{
	const int	depth = Precision<half16>::depth;
	TilePlace	place = tile_place(x, stride, lane);
	int			left = k_steps;

	/* whole iterations that another one follows; then what is left, which is usually a whole one */
	ROLLED
	while (left >= 2 * CUDA_AHEAD)
	{
		UNROLL
		for (int i = 0; i < CUDA_AHEAD; i++)
		{
			add_step<MT>(sums, place, stride, i * 2 * depth, ahead[i]);
			ahead[i] = load_constant(b + (i + CUDA_AHEAD) * 128);
		}
		left -= CUDA_AHEAD;
		b += CUDA_AHEAD * 128;
		place = tile_forward(place, CUDA_AHEAD * 2 * depth);
	}
	if (left == CUDA_AHEAD)
		UNROLL
		for (int i = 0; i < CUDA_AHEAD; i++)
			add_step<MT>(sums, place, stride, i * 2 * depth, ahead[i]);
	else
		ROLLED
		for (; left > 0; left -= CUDA_AHEAD)
		{
			UNROLL
			for (int i = 0; i < CUDA_AHEAD; i++)
			{
				if (i >= left)
					break;
				add_step<MT>(sums, place, stride, i * 2 * depth, ahead[i]);
				if (i + CUDA_AHEAD < left)
					ahead[i] = load_constant(b + (i + CUDA_AHEAD) * 128);
			}
			b += CUDA_AHEAD * 128;
			place = tile_forward(place, CUDA_AHEAD * 2 * depth);
		}
}

/* There are no registers for places with 32-bit inputs. */
template <int MT> DEVICE void
add_products_at(Sums<MT> &sums, const float *x, int stride, const uint32_t *b, int k_steps,
				int lane, Words *ahead)
{
	add_products<float, MT>(sums, x, stride, b, k_steps, lane, ahead);
}

/* What a lane needs first of a tile of 8 outputs: its first steps of weights, and two biases. */
struct Asked
{
	Words		ahead[CUDA_AHEAD];
	float		b0,
				b1;

	DEVICE void
	ask(const CudaLinear &w, int tile, int lane)
	{
		const uint32_t *b = w.packed + lane * 4 + (size_t) tile * w.k_steps * 128;
		int			column = tile * 8 + lane % 4 * 2;

		b0 = b1 = 0.0f;
		if (w.bias != nullptr)
		{
			Two			both = load_two_constant(w.bias + column);

			b0 = both.a;
			b1 = both.b;
		}
		if (w.k_steps >= CUDA_AHEAD)
			UNROLL
			for (int i = 0; i < CUDA_AHEAD; i++)
				ahead[i] = load_constant(b + i * 128);
		else
			UNROLL
			for (int i = 0; i < CUDA_AHEAD; i++)
				ahead[i] = load_constant(b + (i < w.k_steps ? i : w.k_steps - 1) * 128);
	}
};

/*
 * Outputs of tiles [first, end) of w for MT * 16 rows of x, `stride` elements apart. put(row,
 * column, a, b) gets the outputs of columns column and column + 1, bias included. PLACES: whether
 * the kernel has registers for places; AHEAD: whether it has those for what was asked for before,
 * which `asked` is if `before`: of the warp's first tile. Outputs have been activated.
 */
template <class T, int MT, bool PLACES, bool AHEAD, class Put> DEVICE void
multiply_rows(const CudaLinear &w, const T *x, int stride, int first, int end, int warp, int lane,
			  bool before, Asked &asked, int activation, Put put)
{
	int			k_steps = w.k_steps;

	ROLLED
	for (int tile = first + warp; tile < end; tile += CUDA_WARPS)
	{
		const uint32_t *b = w.packed + lane * 4 + (size_t) tile * k_steps * 128;
		int			column = tile * 8 + lane % 4 * 2;
		Asked		now;
		Asked	   &its = AHEAD ? asked : now;
		Sums<MT>	sums;
		float		out[4 * MT];

		sums.clear();
		if (!AHEAD || !before || tile != first + warp)
			its.ask(w, tile, lane);
		if (PLACES)
			add_products_at<MT>(sums, x, stride, b, k_steps, lane, its.ahead);
		else
			add_products<T, MT>(sums, x, stride, b, k_steps, lane, its.ahead);
		UNROLL
		for (int m = 0; m < MT; m++)
			UNROLL
			for (int i = 0; i < 4; i++)
				out[m * 4 + i] = sums.even[m][i] + sums.odd[m][i] + (i % 2 == 0 ? its.b0 : its.b1);
		activate<4 * MT>(out, activation);
		UNROLL
		for (int m = 0; m < MT; m++)
			UNROLL
			for (int half = 0; half < 2; half++)
				put(m * 16 + half * 8 + lane / 4, column, out[m * 4 + 2 * half],
					out[m * 4 + 2 * half + 1]);
	}
}

#endif							/* CUDA_PRODUCTS_H */
