/*
 * attention.h: attention of a tile of rows to the shared keys of the context and to the private
 * keys of its chains.
 *
 * Context keys are read where they lie, once for all rows of a tile, never copied per stream. The
 * private keys of the 8 / G pairs per stream of a tile of 16 rows are stored step after step, G
 * streams side by side, and multiplied as one block in which every row sees its own stream's
 * columns only: eight times the products of a loop over single rows, on units that have thirty
 * times its rate.
 *
 * A block's warps own whole heads, or, when there are too few of them, chunks of keys whose partial
 * results are folded afterwards.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef CUDA_ATTENTION_H
#define CUDA_ATTENTION_H

#include "tile.h"

/* Attention, with what all functions of a tile share. */
template <class T, int R, int NV> struct Tile : TileBase<T, R, NV>
{
	typedef TileBase<T, R, NV> Base;
	typedef typename Base::P P;
	typedef typename Base::H H;
	typedef typename Base::Slot Slot;
	typedef typename Base::Next Next;
	typedef typename Base::Queries Queries;
	using Base::tiles;
	using Base::together;
	using Base::ring_words;
	using Base::ahead_kind;
	using Base::head_columns;
	using Base::part_width;
	using Base::places;
	using Base::copied;
	using Base::walk;
	using Base::model;
	using Base::lane;
	using Base::warp;
	using Base::team;
	using Base::copy;
	using Base::x1;
	using Base::q;
	using Base::part_here;
	using Base::part_there;
	using Base::parts_here;
	using Base::rows;
	using Base::n_heads;
	using Base::share;
	using Base::slice;
	using Base::early;
	using Base::own_lane;
	using Base::head;
	using Base::keys;
	using Base::values;
	using Base::own_cache;
	using Base::pushes;
	using Base::push;
	using Base::push_one;

	/* Queries of `local`'s head, tiles first ... */
	DEVICE void
	find_queries(HeldQueries<T, NV, together> &to, int local, int first) const
	{
		UNROLL
		for (int m = 0; m < together; m++)
			UNROLL
			for (int i = 0; i < H::key_tiles; i++)
				P::load(to.words[m][i], q + (first + m < tiles ? first + m : first) * 16 *
						walk->row_q + local * head_columns + i * P::depth, walk->row_q, lane);
	}

	DEVICE void
	find_queries(ReadQueries<T, NV> &to, int local, int first) const
	{
		to.find(q + first * 16 * walk->row_q + local * head_columns, walk->row_q, lane);
	}

	/* The ring, if there is one, of this lane. */
	DEVICE void
	find_ring(Ahead<T, NV, AHEAD_RING> &ahead) const
	{
		ahead.ring = (uint32_t *) (shared_memory() + walk->at_ring) + warp * ring_words + lane * 4;
	}

	template <AheadKind KIND> DEVICE void
	find_ring(Ahead<T, NV, KIND> &) const
	{
	}

	/* Where what this warp asked for early comes to, of this lane. */
	DEVICE uint32_t *
	early_place(void) const
	{
		return (uint32_t *) (shared_memory() + walk->at_early) + warp * CUDA_EARLY_WORDS(NV) +
			lane * 4;
	}

	/* A task begins; came_early: its chunk was asked for. */
	DEVICE void
	find_early(Ahead<T, NV, AHEAD_REGISTERS> &ahead, bool came_early) const
	{
		ahead.came_early = came_early;
		if (came_early)
			await_copies<0>();
		ahead.early = early_place();
	}

	template <AheadKind KIND> DEVICE void
	find_early(Ahead<T, NV, KIND> &, bool) const
	{
	}

	/*
	 * The chunk of shared keys that this warp attends to first in every layer, if it comes early;
	 * or -1. What this launch stores is in none of these.
	 */
	DEVICE int
	early_chunk(void) const
	{
		int64_t		settled = walk->mode == CUDA_APPEND
			? walk->first_slot / CUDA_CHUNK * CUDA_CHUNK : walk->shared;
		int			chunk;

		if (!copied || walk->at_early < 0 || n_heads == 0)
			return -1;
		chunk = slice + share * copy + warp / n_heads * (share * copies());
		return (int64_t) chunk * CUDA_CHUNK < settled ? chunk : -1;
	}

	/*
	 * Ask for blocks first ... end - 1 of this warp's early chunk, for the attention of `layer`. A
	 * lane copies what it reads itself; what it copies over it has read before.
	 */
	DEVICE void
	ask_early(int layer, int first, int end) const
	{
		const int	words = 2 * (H::key_words + H::value_words);
		int			slot = early * CUDA_CHUNK + first * CUDA_BLOCK,
					h;

		if (early < 0)
			return;
		/* there are heads */
		h = head(n_heads == 1 ? 0 : (int) ((unsigned) warp % (unsigned) n_heads));
		/* not those behind the last that is seen */
		if (walk->mode != CUDA_APPEND)
		{
			int			seen = first + (int) (walk->shared - slot + CUDA_BLOCK - 1) / CUDA_BLOCK;

			end = seen < end ? seen : end;
		}

		size_t		panel = (size_t) (slot / CUDA_PANEL);
		const uint32_t *k = keys(walk->cache, layer, h) + panel * H::key_words + lane * 4,
				   *v = values(walk->cache, layer, h) + panel * H::value_words + lane * 4;
		uint32_t   *to = early_place() + first * words;

		ROLLED
		for (int block = first; block < end; block++)
		{
			UNROLL
			for (int i = 0; i < 2 * H::key_tiles; i++)
				copy_ahead(to + i * 128, k + i * 128);
			UNROLL
			for (int i = 0; i < 2 * H::value_words / 128; i++)
				copy_ahead(to + (2 * H::key_tiles + i) * 128, v + i * 128);
			k += 2 * H::key_words;
			v += 2 * H::value_words;
			to += words;
		}
		close_copies();
	}

	/*
	 * The chunk of shared keys from slot `from`, for tiles first ... first + MT - 1; begins: the
	 * first of those up to slot `last`, which follow.
	 */
	template <int MT> DEVICE void
	shared_chunk(Softmax<NV, MT> &state, const Queries &query, Next &ahead, int layer, int head,
				 int first, Slot from, Slot last, bool begins) const
	{
		int			limit[MT][2];
		Slot		most = 0,
					least = places ? INT32_MAX : INT64_MAX,
					end = from + CUDA_CHUNK;

		UNROLL
		for (int m = 0; m < MT; m++)
		{
			UNROLL
			for (int half = 0; half < 2; half++)
				limit[m][half] = rows.visible[(first + m) * 16 + lane / 4 + 8 * half] -
					(places ? lane % 4 * 2 : 0);
			most = rows.most[first + m] > most ? rows.most[first + m] : most;
			least = rows.least[first + m] < least ? rows.least[first + m] : least;
		}
		most = (most + CUDA_BLOCK - 1) / CUDA_BLOCK * CUDA_BLOCK;
		attend_chunk<T, NV, MT, ahead_kind>(state, query, keys(walk->cache, layer, head),
											values(walk->cache, layer, head), from,
											end < most ? end : most, least,
											last < most ? last : most, !begins, ahead, lane,
											[&](int m, int half, int at, Slot block)
											{
												return places ? at < limit[m][half] - block
													: block + at + lane % 4 * 2 < limit[m][half];
											});
	}

	/* All private keys of tile m. */
	DEVICE void
	private_chunk(Softmax<NV, 1> &state, const OneOf<Queries> &query, Next &ahead, int layer,
				  int head, int m) const
	{
		CudaCache	cache = own_cache(m);
		int			group = walk->group,
					shift = group / 2 - group / 8,	/* its logarithm */
					stream = lane / 4 & (group - 1),
					limit[2][2];
		Slot		end = ((Slot) rows.most_own[m] * group + CUDA_BLOCK - 1) / CUDA_BLOCK *
			CUDA_BLOCK;

		/* even and odd columns are of the same streams in every block: of others none is seen */
		UNROLL
		for (int half = 0; half < 2; half++)
			UNROLL
			for (int odd = 0; odd < 2; odd++)
			{
				limit[half][odd] = rows.own[m * 16 + lane / 4 + 8 * half];
				if (places)
					limit[half][odd] = ((lane % 4 * 2 + odd) & (group - 1)) != stream ? 0
						: limit[half][odd] * group - lane % 4 * 2;
			}
		/* a group is 1, 2, 4 or 8, and its slots fit 32 bits: no division for every logit */
		attend_chunk<T, NV, 1, ahead_kind>(state, query, keys(cache, layer, head),
										   values(cache, layer, head), (Slot) 0, end, (Slot) 0,
										   end, false, ahead, lane,
										   [&](int, int half, int at, Slot block)
										   {
											   int			slot = (int) block + at + lane % 4 * 2;

											   return places ? at < limit[half][at % 2] - block
												   : (slot & (group - 1)) == stream
												   && slot >> shift < limit[half][0];
										   });
	}

	DEVICE void
	put_result(int head, int row, int feature, float a, float b) const
	{
		int			width = model->head_width,
					column = head * width + feature;

		/* bells count rows that are there alone */
		if (pushes() && (rows.flags[row] & ROW_ACTIVE) == 0)
			return;
		if (width % 2 == 0 && feature < width)
			push(x1, row, column, a, b, pushes());
		else
		{
			if (feature < width)
				push_one(x1, row, column, a);
			if (feature + 1 < width)
				push_one(x1, row, column + 1, b);
		}
	}

	/* x1 = a lane's part of tile m of a head's attention, for tile `first` + m of the rows. */
	DEVICE void
	put_results(const Softmax<NV, together> &all, int head, int first, int m, int lane) const
	{
		/* the usual case: one block, and features that fill the head's tiles */
		bool		alone = team == 1 && model->head_width == NV * 8;
		T		   *to = x1 + ((first + m) * 16 + lane / 4) * walk->row_x + head * NV * 8 +
			lane % 4 * 2;

		UNROLL
		for (int half = 0; half < 2; half++)
		{
			int			row = (first + m) * 16 + half * 8 + lane / 4;
			float		scale = closing_scale(all.base[m][half], all.sum[m][half],
											  rows.visible[row] + rows.own[row]);

			if (alone)
				UNROLL
				for (int n = 0; n < NV; n++)
					P::store_pair(to + half * 8 * walk->row_x + n * 8,
								  P::pair(product(all.values[m][n][2 * half], scale),
										  product(all.values[m][n][2 * half + 1], scale)));
			else
				UNROLL
				for (int n = 0; n < NV; n++)
					put_result(head, row, n * 8 + lane % 4 * 2,
							   product(all.values[m][n][2 * half], scale),
							   product(all.values[m][n][2 * half + 1], scale));
		}
	}

	/* Chunks of this tile, the private keys' counted as one more. */
	DEVICE int
	chunks(void) const
	{
		int			most = 0;

		for (int m = 0; m < tiles; m++)
			most = rows.most[m] > most ? rows.most[m] : most;
		return (most + CUDA_CHUNK - 1) / CUDA_CHUNK + 1;
	}

	/* Teams that compute the same tile. */
	DEVICE int
	copies(void) const
	{
		return copied ? walk->copies : 1;
	}

	/*
	 * Which partial results are those of a head. Blocks that share a head leave theirs where all of
	 * them can read. Teams that share one use two places in turn: of two layers only one barrier
	 * apart, one team may still read the first when another writes the second.
	 */
	DEVICE int
	parts_of(int layer, int local) const
	{
		int			turn = layer < model->layers ? layer : layer - model->layers;

		if (copies() > 1)
			return head(local) + (turn & 1) * model->heads;
		return share > 1 ? head(local) : local;
	}

	/* Where the partial result of a row begins, in numbers. */
	DEVICE int64_t
	part_at(int layer, int local, int chunk, int n_chunks, int row) const
	{
		return ((int64_t) (parts_of(layer, local) * n_chunks + chunk) * R + row) * part_width;
	}

	/* Both memories are named, so that neither is accessed by an address of unknown kind. */
	DEVICE float
	get_part(int64_t at) const
	{
		return parts_here ? part_here[at] : part_there[at];
	}

	/* A lane's part of rows lane / 4 and lane / 4 + 8 of MT tiles; the first begins at `to`. */
	template <int MT> DEVICE void
	put_rows(float *to, const Softmax<NV, MT> &state, int first, int lane) const
	{
		UNROLL
		for (int m = 0; m < MT; m++)
			UNROLL
			for (int half = 0; half < 2; half++)
			{
				int			below = m * 16 + half * 8;
				float	   *row = to + below * part_width;

				if ((rows.flags[first * 16 + below + lane / 4] & ROW_ACTIVE) == 0)
					continue;
				UNROLL
				for (int n = 0; n < NV; n++)
					store_two(row + n * 8 + lane % 4 * 2, state.values[m][n][2 * half],
							  state.values[m][n][2 * half + 1]);
				if (lane % 4 == 0)
					store_two(row + NV * 8, state.base[m][half], state.sum[m][half]);
			}
	}

	template <int MT> DEVICE void
	put_part(const Softmax<NV, MT> &state, int layer, int local, int chunk, int n_chunks,
			 int first) const
	{
		int			lane = own_lane();
		int64_t		to = part_at(layer, local, chunk, n_chunks, first * 16 + lane / 4);

		if (parts_here)
			put_rows<MT>(part_here + to, state, first, lane);
		else
			put_rows<MT>(in_device_memory(part_there + to), state, first, lane);
	}

	/*
	 * What one warp does in one go: tiles first ... of a head, their shared chunks chunk ... end -
	 * 1, then the private keys of `own` of the tiles. Either everything, with the result in x1; or
	 * one chunk, whose partial result is put down, and which may have come early.
	 */
	DEVICE void
	attend_task(int layer, int local, int first, int chunk, int end, int own, int n_chunks,
				bool came_early) const
	{
		Queries		query;
		Softmax<NV, together> all;
		Next		ahead;

		find_queries(query, local, first);
		all.clear();
		find_ring(ahead);
		find_early(ahead, came_early);
		for (int at = chunk; at < end; at++)
		{
			Softmax<NV, together> one;

			shared_chunk<together>(one, query, ahead, layer, head(local), first,
								   (Slot) at * CUDA_CHUNK, (Slot) end * CUDA_CHUNK,
								   ahead_kind != AHEAD_RING || at == chunk);
			if (walk->split)
				put_part<together>(one, layer, local, at, n_chunks, first);
			else
				UNROLL
				for (int m = 0; m < together; m++)
					fold<NV, together, together>(all, m, one, m);
		}
		UNROLL
		for (int m = 0; m < together; m++)
			if (m < own && rows.most_own[first + m] > 0)
			{
				Softmax<NV, 1> one;

				private_chunk(one, OneOf<Queries>{query, m}, ahead, layer, head(local), first + m);
				if (walk->split)
					put_part<1>(one, layer, local, n_chunks - 1, n_chunks, first + m);
				else
					fold<NV, together, 1>(all, m, one, 0);
			}
		if (walk->split)
			return;

		int			lane = own_lane();

		UNROLL
		for (int m = 0; m < together; m++)
			put_results(all, head(local), first, m, lane);
	}

	/* Numbers of a row's values that a lane folds; chunks that it reads ahead; few chunks. */
	static const int each = (NV * 8 + WARP - 1) / WARP;
	static const int ahead = WARP / each;
	static const int few = 8;
	/* chunks that are folded at once */
	static const int folded = copied ? WARP : few;

	/*
	 * A row's values in `count` chunks at most, from chunk `start` on, eight by eight: of those
	 * behind the last nothing is known.
	 */
	DEVICE void
	get_values(int layer, int local, int start, int count, int n_chunks, int row,
			   float value[ahead][each]) const
	{
		int64_t		from = part_at(layer, local, start, n_chunks, row) + lane;

		UNROLL
		for (int c = 0; c < ahead; c++)
		{
			if (c % 8 == 0 && c >= count)
				break;
			UNROLL
			for (int i = 0; i < each; i++)
				value[c][i] = c < count && lane + i * WARP < NV * 8
					? get_part(from + (int64_t) c * R * part_width + i * WARP) : 0.0f;
		}
	}

	/*
	 * Fold chunks start ... start + count - 1 of a row, 32 at most: a lane finds the factors of one
	 * of them, from the largest logit of those before it, as fold_factors() does; then the sums go
	 * on in order.
	 */
	DEVICE void
	fold_lanes(int layer, int local, int start, int count, int n_chunks, int row, float *most,
			   float *sum, float value[each]) const
	{
		int64_t		from = part_at(layer, local, start + lane, n_chunks, row) + NV * 8;
		float		chunk_most = lane < count ? get_part(from) : MINUS_INFINITY,
					chunk_sum = lane < count ? get_part(from + 1) : 0.0f,
					chunk_value[ahead][each],
					next = chunk_most,
					before,
					keep,
					add;

		get_values(layer, local, start, count, n_chunks, row, chunk_value);
		UNROLL
		for (int delta = 1; delta < WARP; delta *= 2)
			next = fmaxf(next, shuffle_up(next, delta));
		next = fmaxf(*most, next);
		before = shuffle_up(next, 1);
		before = lane == 0 ? *most : before;
		chunk_factors(before, next, chunk_most, &chunk_sum, &keep, &add);
		*most = shuffle_from(next, WARP - 1);
		ROLLED
		for (int first = 0; first < count; first += ahead)
		{
			if (first > 0)
				get_values(layer, local, start + first, count - first, n_chunks, row, chunk_value);
			UNROLL
			for (int c = 0; c < ahead; c++)
			{
				if (c % 8 == 0 && first + c >= count)
					break;
				if (first + c < count)
				{
					float		k = shuffle_from(keep, first + c),
								a = shuffle_from(add, first + c);

					*sum = fused(*sum, k, shuffle_from(chunk_sum, first + c));
					UNROLL
					for (int i = 0; i < each; i++)
						value[i] = fold_value(value[i], k, chunk_value[c][i], a);
				}
			}
		}
	}

	/*
	 * The same of chunks start ... last - 1, few at most: so few that it takes less time when every
	 * lane finds the factors of all of them.
	 */
	DEVICE void
	fold_few(int layer, int local, int start, int last, int n_chunks, int row, float *most,
			 float *sum, float value[each]) const
	{
		float		chunk_most[few],
					chunk_sum[few],
					chunk_value[few][each];

		UNROLL
		for (int c = 0; c < few; c++)
		{
			int64_t		from = part_at(layer, local, start + c, n_chunks, row);
			bool		there = start + c < last;

			/* a chunk that is not there changes nothing */
			chunk_most[c] = there ? get_part(from + NV * 8) : MINUS_INFINITY;
			chunk_sum[c] = there ? get_part(from + NV * 8 + 1) : 0.0f;
			UNROLL
			for (int i = 0; i < each; i++)
				chunk_value[c][i] = there && lane + i * WARP < NV * 8
					? get_part(from + lane + i * WARP) : 0.0f;
		}
		UNROLL
		for (int c = 0; c < few; c++)
		{
			float		keep,
						add;

			fold_factors(most, sum, chunk_most[c], chunk_sum[c], &keep, &add);
			UNROLL
			for (int i = 0; i < each; i++)
				value[i] = fold_value(value[i], keep, chunk_value[c][i], add);
		}
	}

	/*
	 * Rows whose partial results are folded by this warp: x1 = their attention. Chunks are folded
	 * one after the other, because that is what a warp does that computes them all, but read, and
	 * their factors found, 32 at a time, or 8 if there are no more.
	 */
	DEVICE void
	fold_parts(int layer, int n_chunks) const
	{
		ROLLED
		for (int item = warp; item < n_heads * R; item += CUDA_WARPS)
		{
			int			local = item / R,
						row = item % R,
						last = rows.most_own[row / 16] > 0 ? n_chunks : n_chunks - 1;
			float		value[each],
						most = MINUS_INFINITY,
						sum = 0.0f,
						scale;

			if ((row & (share - 1)) != slice || (rows.flags[row] & ROW_ACTIVE) == 0)
				continue;
			UNROLL
			for (int i = 0; i < each; i++)
				value[i] = 0.0f;
			ROLLED
			for (int start = 0; start < last; start += folded)
			{
				if (folded > few && last - start > few)
					fold_lanes(layer, local, start, last - start < WARP ? last - start : WARP,
							   n_chunks, row, &most, &sum, value);
				else
					fold_few(layer, local, start, last, n_chunks, row, &most, &sum,
							 value);
			}
			scale = closing_scale(most, sum, rows.visible[row] + rows.own[row]);
			UNROLL
			for (int i = 0; i < each; i++)
			{
				/* a bell counts no less than two numbers of 16 bits */
				if (pushes())
				{
					float		v = product(value[i], scale),
								next = shuffle_xor(v, 1);

					if (lane % 2 == 0 && lane + i * WARP < model->head_width)
						push(x1, row, head(local) * model->head_width + lane + i * WARP, v, next,
							 true);
				}
				else if (lane + i * WARP < model->head_width)
					push_one(x1, row, head(local) * model->head_width + lane + i * WARP,
							 product(value[i], scale));
			}
		}
	}

	/*
	 * Chunks of shared keys that any team may read: in CUDA_APPEND not those with rows that are
	 * being appended, because the first team alone waits for their keys.
	 */
	DEVICE int
	common_chunks(int n_chunks) const
	{
		int			before = (int) (walk->first_slot / CUDA_CHUNK);

		return copies() > 1 && walk->mode == CUDA_APPEND && before < n_chunks - 1
			? before : n_chunks - 1;
	}

	/* How many of n things are every `by`th one, from the first on; n is more than -by. */
	DEVICE int
	in_turns(int n, int by) const
	{
		return by == 1 ? n : (int) ((unsigned) (n + by - 1) / (unsigned) by);
	}

	/*
	 * x1 = attention of q to cache layer `layer`, in all blocks of the team. Ends with the team's
	 * barrier, but in kernels where carry() has one for all results.
	 */
	DEVICE void
	attend(int layer) const
	{
		const int	groups = tiles / together;
		int			n_chunks = chunks(),
					common = common_chunks(n_chunks),
					units = n_heads * groups,
					/* this block's chunks: begin, begin + stride, ...; then those of one team */
					begin = slice + share * copy,
					stride = share * copies(),
					mine = walk->split ? in_turns(common - begin, stride) : 1,
					last = copied && walk->split && copy == 0
						? in_turns(n_chunks - 1 - common - slice, share) : 0,
					chunk_tasks = units * (mine + last),
					tasks = chunk_tasks + (walk->split && slice == 0 && copy == 0
										   ? n_heads * tiles : 0);

		ROLLED
		for (int task = warp; task < tasks; task += CUDA_WARPS)
		{
			/* of one head and one group of tiles, all units; they are few: no sign, one division */
			int			unit = n_heads == 1 ? task : (int) ((unsigned) task / (unsigned) n_heads),
						local = task - unit * n_heads,
						first = unit % groups * together,
						number = unit / groups,
						chunk = 0,
						end = n_chunks - 1,
						own = together;

			if (walk->split && task < chunk_tasks)
			{
				chunk = !copied || number < mine ? begin + number * stride
					: common + slice + (number - mine) * share;
				end = chunk + 1;
				own = 0;
			}
			else if (walk->split)
			{
				/* private keys of one tile; that of a pair is not loaded for them */
				first = unit - groups * (mine + last);
				end = 0;
				own = 1;
				if (rows.most_own[first] == 0)
					continue;
			}
			/* only tasks of one chunk have `early` chunks, and a warp's first is that one */
			attend_task(layer, local, first, chunk, end, own, n_chunks,
						copied && task == warp && end > 0 && chunk == early);
		}
		if (walk->split)
		{
			if (copies() > 1)
				sync_grid(walk->arrived + layer, walk->tiles * walk->copies * team);
			else if (share > 1)
				sync_team(team);
			else
				sync_block();
			fold_parts(layer, n_chunks);
		}
		if (!copied)
			sync_team(team);
	}
};

#endif							/* CUDA_ATTENTION_H */
