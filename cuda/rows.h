/*
 * rows.h: a tile begins: where its state lies in shared memory, which heads are its block's, and
 * what each of its rows is: its features and target, what it sees, what it stores and where,
 * whether it asks.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef CUDA_ROWS_H
#define CUDA_ROWS_H

#include "attention.h"

template <class T, int R, int NV> struct RowTile : Tile<T, R, NV>
{
	typedef Tile<T, R, NV> Base;
	typedef Precision<T> P;
	using Base::walk;
	using Base::model;
	using Base::lane;
	using Base::warp;
	using Base::rank;
	using Base::team;
	using Base::tile;
	using Base::copy;
	using Base::x0;
	using Base::x1;
	using Base::q;
	using Base::h;
	using Base::input;
	using Base::part_here;
	using Base::part_there;
	using Base::parts_here;
	using Base::rows;
	using Base::n_heads;
	using Base::share;
	using Base::slice;
	using Base::tiles;

	DEVICE int
	thread(void) const
	{
		int			number = warp * WARP + lane;

		return Base::tight ? anew(number) : number;
	}

	/* Where the descriptions of rows lie. */
	DEVICE void
	find_rows(int *at)
	{
		/* one by one: members whose addresses were taken would lie in memory */
		rows.visible = at;
		rows.own = at + R;
		rows.store = at + 2 * R;
		rows.source = at + 3 * R;
		rows.flags = at + 4 * R;
		rows.role = at + 5 * R;
		rows.position = at + 6 * R;
		rows.stream = at + 7 * R;
		rows.step = at + 8 * R;
		rows.log_keys = (float *) (at + (TILE_ROW_ARRAYS - 2) * R);
		rows.target = (float *) (at + (TILE_ROW_ARRAYS - 1) * R);
		rows.most = at + TILE_ROW_ARRAYS * R;
		rows.least = rows.most + tiles;
		rows.most_own = rows.least + tiles;
		rows.active = rows.most_own + tiles;
	}

	/*
	 * Where a block's tile is, and which part of it is this thread's. Found again behind what needs
	 * all registers, it takes none of them meanwhile.
	 */
	DEVICE void
	find(const CudaWalk *w)
	{
		char	   *memory = shared_memory() + (Base::tight ? anew(0) : 0);
		int			number = Base::tight ? anew(thread_index()) : thread_index();
		int		   *at = (int *) (memory + w->at_rows);

		walk = w;
		model = &w->model;
		lane = number % WARP;
		warp = number / WARP;
		team = Base::tight ? anew(w->team) : w->team;
		rank = team > 1 ? team_rank() : 0;
		tile = block_index() / team;
		copy = 0;
		if (this->copies() > 1)
		{
			copy = tile / w->tiles;
			tile %= w->tiles;
		}
		x0 = (T *) (memory + w->at_x0);
		x1 = (T *) (memory + w->at_x1);
		q = (T *) (memory + w->at_q);
		h = (float *) (memory + w->at_h);
		input = (float *) (memory + w->at_input);
		find_rows(at);
		if (team > model->heads)
		{
			share = team / model->heads;
			slice = rank / model->heads;
			n_heads = slice < share ? 1 : 0;
		}
		else
		{
			share = 1;
			slice = 0;
			n_heads = (model->heads - rank + team - 1) / team;
		}
		parts_here = w->at_part >= 0;
		part_here = (float *) (memory + (parts_here ? w->at_part : 0));
		part_there = w->part + w->part_floats *
			(share > 1 || this->copies() > 1 ? tile : (int64_t) tile * team + rank);

		this->early = this->early_chunk();
	}

	DEVICE void
	begin(const CudaWalk *w)
	{
		find(w);
		/*
		 * operands are read to the end of their last step, beyond what was written: zero times
		 * whatever is there must be zero
		 */
		for (int i = thread(); i < R * w->row_x; i += CUDA_THREADS)
			x0[i] = x1[i] = P::from(0.0f);
		for (int i = thread(); i < R * w->row_q; i += CUDA_THREADS)
			q[i] = P::from(0.0f);
		for (int i = thread(); i < R * w->row_h; i += CUDA_THREADS)
			h[i] = 0.0f;
		if (this->pushes() && thread() == 0)
		{
			open_bell(this->bell(0));
			open_bell(this->bell(1));
		}
	}

	/*
	 * A row of CUDA_CHAIN at `step`: rows 0-7 of 16 are the chain rows of 8 pairs, rows 8-15 their
	 * queries.
	 */
	DEVICE void
	describe_pair(int row, int step)
	{
		int			group = walk->group,
					pair = row % 8,
					query = (step * (8 / group)) + pair / group,
					j = row % 16 / 8 == 0 ? query - 1 : query;
		int64_t		stream = ((int64_t) tile * tiles + row / 16) * group + pair % group;
		bool		stores = row % 16 < 8,
					active = stream < walk->n && query < walk->steps && j >= 0;
		int			source = 0;

		rows.visible[row] = (int) walk->shared;
		rows.own[row] = active ? (stores && !model->strict ? j + 1 : j) : 0;
		rows.store[row] = j;
		rows.flags[row] = active ? ROW_ACTIVE | ROW_X | (stores ? ROW_STORES | ROW_Y : ROW_ASKS)
			: 0;
		rows.role[row] = stores ? 2 : 0;
		rows.position[row] = stores && walk->position >= 0 ? walk->position + j : -1;
		rows.stream[row] = (int) stream;
		rows.step[row] = j;
		rows.target[row] = 0.0f;
		if (active)
		{
			source = walk->order != nullptr ? walk->order[stream * walk->steps + j] : j;
			if (stores && walk->score)
				rows.target[row] = walk->target[source];
			else if (stores)
				rows.target[row] = scale_target(walk->chain_out[stream * walk->steps + j]);
		}
		rows.source[row] = source;
	}

	/* A row of any other mode. */
	DEVICE void
	describe_row(int row)
	{
		int64_t		i = (int64_t) tile * R + row,
					slot = walk->first_slot + i;
		int			sinks = walk->with_sinks ? model->sinks : 0;
		bool		active = i < walk->n,
					stores = walk->mode == CUDA_APPEND || walk->mode == CUDA_ENCODE,
					later = slot >= walk->prefix_slots,
					sink = stores && i < sinks;

		rows.own[row] = 0;
		rows.store[row] = (int) slot;
		rows.stream[row] = (int) i;
		rows.step[row] = 0;
		rows.source[row] = (int) (sink ? i : i - sinks);
		rows.target[row] = 0.0f;
		rows.position[row] = -1;
		if (!stores)
		{
			rows.visible[row] = (int) walk->shared;
			rows.role[row] = 0;
			rows.flags[row] = ROW_X | ROW_ASKS;
		}
		else
		{
			rows.visible[row] = (int) (later ? slot + (model->strict ? 0 : 1) : walk->shared);
			rows.role[row] = later ? 2 : 1;
			rows.flags[row] = sink ? ROW_STORES | ROW_SINK : ROW_STORES | ROW_X | ROW_Y;
			if (later && !sink && walk->position >= 0)
				rows.position[row] = (int) (walk->position + slot - walk->prefix_slots);
			if (active && !sink)
				rows.target[row] = walk->target[i - sinks];
		}
		if (active)
			rows.flags[row] |= ROW_ACTIVE;
		else
		{
			rows.flags[row] = 0;
			rows.source[row] = 0;
			/* a row that is not there asks for no more keys than its neighbours do */
			rows.visible[row] = stores ? 0 : (int) walk->shared;
		}
	}

	/*
	 * Fill the descriptions of all rows. Nothing reads them before the first step, and answers of
	 * the step before end with a barrier of the team; after it lies one before any stage reads
	 * what a tile needs (run_step()). Its own barrier orders what begin() wrote, too.
	 */
	DEVICE void
	describe(int step)
	{
		for (int row = thread(); row < R; row += CUDA_THREADS)
		{
			int			keys;

			if (walk->mode == CUDA_CHAIN)
				describe_pair(row, step);
			else
				describe_row(row);
			keys = rows.visible[row] + rows.own[row];
			rows.log_keys[row] = keys > 0 ? (float) log((double) keys) : 0.0f;
		}
		sync_block();
		for (int m = thread(); m < tiles; m += CUDA_THREADS)
		{
			int			most = 0,
						least = INT32_MAX,
						own = 0,
						active = 0;

			for (int row = m * 16; row < m * 16 + 16; row++)
			{
				most = rows.visible[row] > most ? rows.visible[row] : most;
				least = rows.visible[row] < least ? rows.visible[row] : least;
				own = rows.own[row] > own ? rows.own[row] : own;
				active += (rows.flags[row] & ROW_ACTIVE) != 0;
			}
			rows.most[m] = most;
			rows.least[m] = least;
			rows.most_own[m] = own;
			if (Base::copied)
				rows.active[m] = active;
		}
	}

	/* A raw target in the network's units, near and soft-clipped; of a classifier its place. */
	DEVICE float
	scale_target(double y) const
	{
		if (walk->classes.ordered)
			return walk->classes.place[(int) y];

		const CudaBound &bound = walk->y_bound;

		if (bound.is_set && fabs(y - bound.middle) > bound.farthest)
			y = bound.middle + copysign(bound.limit, y - bound.middle);

		double		z = (y - walk->y_center) / walk->y_scale,
					size = fabs(z),
					knee = walk->y_clip;

		if (knee > 0.0 && size > knee)
			z = copysign(knee + log1p(size - knee), z);
		return (float) z;
	}
};

#endif							/* CUDA_ROWS_H */
