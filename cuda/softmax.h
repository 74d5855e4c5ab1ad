/*
 * softmax.h: softmax attention of 16 or 32 rows of one head over chunks of keys, in registers.
 *
 * A chunk of CUDA_CHUNK keys is closed by itself: its maximum, its sum, and its weighted values;
 * chunks are then folded in their order. The same chunks are folded in the same order whether one
 * warp computes them all or each is computed elsewhere, so an answer has the same bits however the
 * work is split. The online softmax inside a chunk is that of FlashAttention (Dao et al., 2022);
 * folding is the merge of partial softmaxes.
 *
 * Queries are scaled beforehand by log2(e) times everything that multiplies q.k, so logits are
 * exponents of 2.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef CUDA_SOFTMAX_H
#define CUDA_SOFTMAX_H

#include "products.h"

/* A number of a query or key whose products have room in 32 bits, or NaN. */
DEVICE float
within_key(float v)
{
	return fabsf(v) <= CUDA_LARGEST_KEY ? v : NAN;
}

/*
 * How far logits, in powers of two, may rise above a row's base before the base follows them: that
 * is rare after the first keys, and weights stay far below what 16 bits can say.
 */
#define CUDA_HEADROOM 8.0f

/* A number below every base of which the weights can be trusted. */
#define CUDA_LOWEST_BASE (-1e30f)

/*
 * What the weighted values of a row are multiplied with: zero where it sees nothing, NaN where its
 * scores cannot be trusted. The largest of them is the base, or above it by the headroom at most.
 */
DEVICE float
closing_scale(float base, float sum, int seen)
{
	if (seen == 0)
		return 0.0f;
	return fabsf(base) <= CUDA_LARGEST_SCORE - CUDA_HEADROOM ? 1.0f / sum : NAN;
}

/* Tiles of a head whose width is NV * 8. */
template <class T, int NV> struct Head
{
	static const int key_tiles = Precision<T>::code == 0 ? (NV + 1) / 2 : NV;
	static const int pairs = (NV + 1) / 2;
	static const int key_words = key_tiles * 128;
	static const int value_words = (Precision<T>::code == 0 ? 1 : 2) * pairs * 128;
};

/* A lane's share of MT tiles of 16 rows: rows lane / 4 and lane / 4 + 8 of each. */
template <int NV, int MT> struct Softmax
{
	float		values[MT][NV][4];	/* sum of weights times values */
	float		base[MT][2];	/* weights are 2^(logit - base) */
	float		sum[MT][2];		/* of weights */

	DEVICE void
	clear(void)
	{
		UNROLL
		for (int m = 0; m < MT; m++)
		{
			UNROLL
			for (int n = 0; n < NV; n++)
				UNROLL
				for (int i = 0; i < 4; i++)
					values[m][n][i] = 0.0f;
			base[m][0] = base[m][1] = MINUS_INFINITY;
			sum[m][0] = sum[m][1] = 0.0f;
		}
	}
};

/*
 * What the values so far, whose largest logit is `before`, and those of a chunk are multiplied with
 * when the largest of both is `next`; the chunk's sum is multiplied here.
 */
DEVICE void
chunk_factors(float before, float next, float chunk_most, float *chunk_sum, float *keep, float *add)
{
	/* a chunk of NaN has no maximum either, and must not be left out */
	bool		nothing = chunk_most == MINUS_INFINITY && *chunk_sum == 0.0f;

	*keep = nothing ? 1.0f : exp2_fast(before - next);
	*add = nothing ? 0.0f : exp2_fast(chunk_most - next);
	*chunk_sum = product(*chunk_sum, *add);
}

/*
 * Add what a closed chunk found (most, sum, value) to the running state of one row: the factors of
 * both values.
 */
DEVICE void
fold_factors(float *most, float *sum, float chunk_most, float chunk_sum, float *keep, float *add)
{
	float		next = fmaxf(*most, chunk_most);

	chunk_factors(*most, next, chunk_most, &chunk_sum, keep, add);
	*sum = fused(*sum, *keep, chunk_sum);
	*most = next;
}

DEVICE float
fold_value(float value, float keep, float chunk_value, float add)
{
	return fused(value, keep, product(chunk_value, add));
}

/* Fold tile `from_tile` of a closed chunk into tile `to_tile`. */
template <int NV, int MT, int FROM> DEVICE void
fold(Softmax<NV, MT> &to, int to_tile, const Softmax<NV, FROM> &from, int from_tile)
{
	float		keep[2],
				add[2];

	fold_factors(&to.base[to_tile][0], &to.sum[to_tile][0], from.base[from_tile][0],
				 from.sum[from_tile][0], &keep[0], &add[0]);
	fold_factors(&to.base[to_tile][1], &to.sum[to_tile][1], from.base[from_tile][1],
				 from.sum[from_tile][1], &keep[1], &add[1]);
	UNROLL
	for (int n = 0; n < NV; n++)
		UNROLL
		for (int i = 0; i < 4; i++)
			to.values[to_tile][n][i] = fold_value(to.values[to_tile][n][i], keep[i / 2],
												  from.values[from_tile][n][i], add[i / 2]);
}

/* The weights of a panel's 16 keys as operands, and their products with the panel's values. */
template <int NV> DEVICE void
add_values(half16, float values[NV][4], const float even[4], const float odd[4], const Words *words)
{
	uint32_t	a[4] = {pack_weights(even[0], even[1]), pack_weights(even[2], even[3]),
						pack_weights(odd[0], odd[1]), pack_weights(odd[2], odd[3])};

	UNROLL
	for (int n = 0; n < NV; n++)
		mma_half(values[n], a, n % 2 == 0 ? words[n / 2].x : words[n / 2].z,
				 n % 2 == 0 ? words[n / 2].y : words[n / 2].w);
}

/*
 * Column t of the operand is key 2t and column t + 4 key 2t + 1, as the values lie: a sum has no
 * order of its own.
 */
template <int NV> DEVICE void
add_values(float, float values[NV][4], const float even[4], const float odd[4], const Words *words)
{
	const int	pairs = (NV + 1) / 2;
	uint32_t	a[4] = {bits_of(even[0]), bits_of(even[2]), bits_of(even[1]), bits_of(even[3])},
				b[4] = {bits_of(odd[0]), bits_of(odd[2]), bits_of(odd[1]), bits_of(odd[3])};

	UNROLL
	for (int n = 0; n < NV; n++)
	{
		const Words &first = words[n / 2],
				   &second = words[pairs + n / 2];

		Precision<float>::multiply(values[n], a, n % 2 == 0 ? first.x : first.z,
								   n % 2 == 0 ? first.y : first.w);
		Precision<float>::multiply(values[n], b, n % 2 == 0 ? second.x : second.z,
								   n % 2 == 0 ? second.y : second.w);
	}
}

/* Where the operands of the next 32 keys, and of their values, are on their way to. */
enum AheadKind
{
	AHEAD_NONE,					/* they are asked for when they are needed */
	AHEAD_REGISTERS,
	AHEAD_RING					/* shared memory: this lane's places in its warp's ring */
};

/* How a kernel numbers slots: by 64 bits where that is all that it has registers for. */
template <bool PLACES> struct SlotOf
{
	typedef int64_t type;
};

template <> struct SlotOf<true>
{
	typedef int type;
};

/*
 * k and v are where a lane's words of a block's keys and values begin. Keys and values are asked
 * for in turn, even where there is no next block, and awaited in turn.
 */
template <class T, int NV, AheadKind KIND> struct Ahead
{
	typedef Head<T, NV> H;
	static const int value_loads = H::value_words / 128;

	DEVICE void
	ask_keys(const uint32_t *, bool)
	{
	}

	DEVICE void
	ask_values(const uint32_t *, bool)
	{
	}

	DEVICE void
	await(void)
	{
	}

	DEVICE Words
	key(const uint32_t *k, int panel, int i) const
	{
		return load_words(k + (panel * H::key_tiles + i) * 128);
	}

	DEVICE Words
	value(const uint32_t *v, int panel, int i) const
	{
		return load_words(v + panel * H::value_words + i * 128);
	}
};

template <class T, int NV> struct Ahead<T, NV, AHEAD_REGISTERS>
{
	typedef Head<T, NV> H;
	static const int value_loads = H::value_words / 128;

	Words		keys[2][H::key_tiles],
				values[2][value_loads];
	bool		came_early;		/* this chunk's are in shared memory: this lane's next block at */
	const uint32_t *early;		/* `early`, its values behind its keys */

	DEVICE void
	ask_keys(const uint32_t *k, bool there)
	{
		if (!there)
			return;
		if (came_early)
			UNROLL
			for (int i = 0; i < 2 * H::key_tiles; i++)
				keys[i / H::key_tiles][i % H::key_tiles] = load_shared(early + i * 128);
		else
			UNROLL
			for (int i = 0; i < 2 * H::key_tiles; i++)
				keys[i / H::key_tiles][i % H::key_tiles] = load_words(k + i * 128);
	}

	DEVICE void
	ask_values(const uint32_t *v, bool there)
	{
		if (!there)
			return;
		if (came_early)
			UNROLL
			for (int i = 0; i < 2 * value_loads; i++)
				values[i / value_loads][i % value_loads] =
					load_shared(early + (2 * H::key_tiles + i) * 128);
		else
			UNROLL
			for (int i = 0; i < 2 * value_loads; i++)
				values[i / value_loads][i % value_loads] =
					load_words(v + i / value_loads * H::value_words + i % value_loads * 128);
		early += (2 * H::key_tiles + 2 * value_loads) * 128;
	}

	DEVICE void
	await(void)
	{
	}

	DEVICE Words
	key(const uint32_t *, int panel, int i) const
	{
		return keys[panel][i];
	}

	DEVICE Words
	value(const uint32_t *, int panel, int i) const
	{
		return values[panel][i];
	}
};

/*
 * A lane copies what it reads itself, so that no other lane waits for it. A copy comes into the
 * place of what has been read: keys have the time of a softmax and its products with values, values
 * that of a whole block.
 */
template <class T, int NV> struct Ahead<T, NV, AHEAD_RING>
{
	typedef Head<T, NV> H;
	static const int value_loads = H::value_words / 128;

	uint32_t   *ring;

	DEVICE void
	ask_keys(const uint32_t *k, bool there)
	{
		if (there)
			UNROLL
			for (int i = 0; i < 2 * H::key_tiles; i++)
				copy_ahead(ring + i * 128, k + i * 128);
		close_copies();
	}

	DEVICE void
	ask_values(const uint32_t *v, bool there)
	{
		if (there)
			UNROLL
			for (int i = 0; i < 2 * value_loads; i++)
				copy_ahead(ring + (2 * H::key_tiles + i) * 128,
						   v + i / value_loads * H::value_words + i % value_loads * 128);
		close_copies();
	}

	/* All that was asked for but the last. */
	DEVICE void
	await(void)
	{
		await_copies<1>();
	}

	DEVICE Words
	key(const uint32_t *, int panel, int i) const
	{
		return load_shared(ring + (panel * H::key_tiles + i) * 128);
	}

	DEVICE Words
	value(const uint32_t *, int panel, int i) const
	{
		return load_shared(ring + (2 * H::key_tiles + panel * value_loads + i) * 128);
	}
};

/*
 * Queries of MT tiles of 16 rows, as operands: get() has those of one tile of rows, and of the
 * columns of one product. In registers,
 */
template <class T, int NV, int MT> struct HeldQueries
{
	static const bool held = true;

	uint32_t	words[MT][Head<T, NV>::key_tiles][4];

	DEVICE void
	get(uint32_t a[4], int m, int tile) const
	{
		UNROLL
		for (int i = 0; i < 4; i++)
			a[i] = words[m][tile][i];
	}
};

/*
 * or, where values, weights and queries together have no room in registers, in shared memory, from
 * which a warp reads them anew for each block of keys: one or two instructions for each product's.
 * `row` is the first of the rows, `stride` apart.
 */
template <class T, int NV> struct ReadQueries;

template <int NV> struct ReadQueries<half16, NV>
{
	static const bool held = false;

	TilePlace	place;
	int			stride;

	DEVICE void
	find(const half16 *row, int row_stride, int lane)
	{
		place = tile_place(row, row_stride, lane);
		stride = row_stride;
	}

	DEVICE void
	get(uint32_t a[4], int m, int tile) const
	{
		load_tile(a, place, m * 16 * stride + tile * Precision<half16>::depth);
	}
};

template <int NV> struct ReadQueries<float, NV>
{
	static const bool held = false;

	const float *place;
	int			stride;

	DEVICE void
	find(const float *row, int row_stride, int lane)
	{
		place = row + lane / 4 * row_stride + lane % 4;
		stride = row_stride;
	}

	DEVICE void
	get(uint32_t a[4], int m, int tile) const
	{
		const float *at = place + m * 16 * stride + tile * Precision<float>::depth;

		a[0] = load_shared_bits(at);
		a[1] = load_shared_bits(at + 8 * stride);
		a[2] = load_shared_bits(at + 4);
		a[3] = load_shared_bits(at + 8 * stride + 4);
	}
};

template <class T, int NV, int MT, bool HELD> struct QueriesOf
{
	typedef ReadQueries<T, NV> type;
};

template <class T, int NV, int MT> struct QueriesOf<T, NV, MT, true>
{
	typedef HeldQueries<T, NV, MT> type;
};

/* Those of one of several tiles of rows. */
template <class Queries> struct OneOf
{
	static const bool held = Queries::held;

	const Queries &all;
	int			m;

	DEVICE void
	get(uint32_t a[4], int, int tile) const
	{
		all.get(a, m, tile);
	}
};

/*
 * One block of 32 keys from slot `from`, a multiple of 32. keys and values are the head's; there is
 * a block after it if `more`. visible(tile, half, at, from) says whether row lane / 4 + 8 * half of
 * the tile sees slot from + at + lane % 4 * 2; it is asked only when `masked`.
 */
template <class T, int NV, int MT, AheadKind KIND, class Queries, class Slot, class Visible>
DEVICE void
attend_block(Softmax<NV, MT> &state, const Queries &q, const uint32_t *keys,
			 const uint32_t *values, Slot from, bool masked, bool more, Ahead<T, NV, KIND> &ahead,
			 int lane, Visible visible)
{
	typedef Head<T, NV> H;
	const int	value_loads = H::value_words / 128;
	const uint32_t *k = keys + (size_t) (from / CUDA_PANEL) * H::key_words + lane * 4;
	const uint32_t *v = values + (size_t) (from / CUDA_PANEL) * H::value_words + lane * 4;
	float		s[MT][4][4],
				before[MT][2],
				sum[MT][2];
	uint32_t	a[MT][4];
	bool		moved = false;

	UNROLL
	for (int m = 0; m < MT; m++)
		UNROLL
		for (int n = 0; n < 4; n++)
			UNROLL
			for (int i = 0; i < 4; i++)
				s[m][n][i] = 0.0f;
	ahead.await();
	UNROLL
	for (int i = 0; i < 2 * H::key_tiles; i++)
	{
		/* what is read is read once for both panels */
		const int	panel = Queries::held ? i / H::key_tiles : i % 2,
					tile = Queries::held ? i % H::key_tiles : i / 2;
		Words		words = ahead.key(k, panel, tile);

		UNROLL
		for (int m = 0; m < MT; m++)
		{
			if (Queries::held || panel == 0)
				q.get(a[m], m, tile);
			Precision<T>::multiply(s[m][2 * panel], a[m], words.x, words.y);
			Precision<T>::multiply(s[m][2 * panel + 1], a[m], words.z, words.w);
		}
	}
	ahead.ask_keys(k + 2 * H::key_words, more);
	UNROLL
	for (int m = 0; m < MT; m++)
	{
		if (masked)
			UNROLL
			for (int n = 0; n < 4; n++)
				UNROLL
				for (int i = 0; i < 4; i++)
					if (!visible(m, i / 2, n * 8 + i % 2, from))
						s[m][n][i] = MINUS_INFINITY;
		UNROLL
		for (int half = 0; half < 2; half++)
		{
			float		most = MINUS_INFINITY,
						zero;

			UNROLL
			for (int n = 0; n < 4; n++)
				most = fmaxf(most, fmaxf(s[m][n][2 * half], s[m][n][2 * half + 1]));
			most = fmaxf(most, shuffle_xor(most, 1));
			most = fmaxf(most, shuffle_xor(most, 2));
			before[m][half] = state.base[m][half];
			if (most > before[m][half] + CUDA_HEADROOM)
			{
				state.base[m][half] = most;
				moved = true;
			}
			/* a row that has seen nothing yet has weights of zero, not NaN */
			zero = fmaxf(state.base[m][half], CUDA_LOWEST_BASE);
			sum[m][half] = 0.0f;
			UNROLL
			for (int n = 0; n < 4; n++)
				UNROLL
				for (int i = 0; i < 2; i++)
				{
					s[m][n][2 * half + i] = exp2_fast(s[m][n][2 * half + i] - zero);
					sum[m][half] += s[m][n][2 * half + i];
				}
		}
	}
	/* a row whose base stays is multiplied by one, whatever the others of the warp do */
	if (warp_ballot(moved) != 0)
		UNROLL
		for (int m = 0; m < MT; m++)
			UNROLL
			for (int half = 0; half < 2; half++)
			{
				float		keep = exp2_fast(before[m][half] -
											 fmaxf(state.base[m][half], CUDA_LOWEST_BASE));

				state.sum[m][half] = product(state.sum[m][half], keep);
				UNROLL
				for (int n = 0; n < NV; n++)
				{
					state.values[m][n][2 * half] = product(state.values[m][n][2 * half], keep);
					state.values[m][n][2 * half + 1] = product(state.values[m][n][2 * half + 1],
															   keep);
				}
			}
	UNROLL
	for (int m = 0; m < MT; m++)
		UNROLL
		for (int half = 0; half < 2; half++)
			state.sum[m][half] += sum[m][half];
	ahead.await();
	UNROLL
	for (int panel = 0; panel < 2; panel++)
	{
		Words		words[value_loads];

		UNROLL
		for (int i = 0; i < value_loads; i++)
			words[i] = ahead.value(v, panel, i);
		UNROLL
		for (int m = 0; m < MT; m++)
			add_values<NV>(T(), state.values[m], s[m][2 * panel], s[m][2 * panel + 1], words);
	}
	ahead.ask_values(v + 2 * H::value_words, more);
}

/*
 * A chunk: slots [from, end), both multiples of 32; state is cleared first and closed at the end.
 * Slots below `all` are seen by every row. Slots below `last` are attended to next, and are asked
 * for before; those from `from` on have been if `asked`.
 */
template <class T, int NV, int MT, AheadKind KIND, class Queries, class Slot, class Visible>
DEVICE void
attend_chunk(Softmax<NV, MT> &state, const Queries &q, const uint32_t *keys,
			 const uint32_t *values, Slot from, Slot end, Slot all, Slot last, bool asked,
			 Ahead<T, NV, KIND> &ahead, int lane, Visible visible)
{
	typedef Head<T, NV> H;

	state.clear();
	if (!asked && from < end)
	{
		ahead.ask_keys(keys + (size_t) (from / CUDA_PANEL) * H::key_words + lane * 4, true);
		ahead.ask_values(values + (size_t) (from / CUDA_PANEL) * H::value_words + lane * 4, true);
	}
	for (Slot at = from; at < end; at += CUDA_BLOCK)
		attend_block<T, NV, MT, KIND>(state, q, keys, values, at, at + CUDA_BLOCK > all,
									  at + CUDA_BLOCK < last, ahead, lane, visible);
	UNROLL
	for (int m = 0; m < MT; m++)
		UNROLL
		for (int half = 0; half < 2; half++)
		{
			state.sum[m][half] += shuffle_xor(state.sum[m][half], 1);
			state.sum[m][half] += shuffle_xor(state.sum[m][half], 2);
		}
}

#endif							/* CUDA_SOFTMAX_H */
