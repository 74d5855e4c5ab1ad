/*
 * tile.h: what the functions of a tile of rows share: its rows, its place in a team, where keys and
 * values lie, and results that are pushed into all blocks of the team.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef CUDA_TILE_H
#define CUDA_TILE_H

#include "softmax.h"

/* Rows of the tile, in shared memory; each member has one entry per row. */
struct TileRows
{
	int		   *visible,		/* shared slots that it sees */
			   *own,			/* private rows that it sees */
			   *store,			/* slot for its key and value: private row, or shared slot */
			   *source,			/* row of x, or of the sinks */
			   *flags,
			   *role,
			   *position,
			   *stream,
			   *step;
	float	   *log_keys,		/* ln of the number of visible keys */
			   *target;
	int		   *most,			/* per 16 rows: largest and smallest visible, largest own */
			   *least,
			   *most_own,
			   *active;			/* rows that are there */
};

/* R rows, NV tiles of 8 features per head. */
template <class T, int R, int NV> struct TileBase
{
	typedef Precision<T> P;
	typedef Head<T, NV> H;
	static const int tiles = R / 16, together = CUDA_TOGETHER(P::code, R, NV);
	static const int ring_words = CUDA_RING_WORDS(Precision<T>::code, R, NV);
	/* where the keys and values of the next block of keys come to */
	static const AheadKind ahead_kind = ring_words > 0 ? AHEAD_RING
		: together == 1 && R == 16 && NV <= 4 && Precision<T>::code == 0 ? AHEAD_REGISTERS
		: AHEAD_NONE;
	static const int head_columns = H::key_tiles * P::depth, part_width = NV * 8 + 2;
	/* whether there are registers for places in tiles, and slots are numbers of 32 bits */
	static const bool places = Precision<T>::code == 0 && NV <= 8;
	typedef typename SlotOf<places>::type Slot;
	/* whether there may be teams that share out the keys of a tile, and chunks folded by lanes */
	static const bool copied = CUDA_HAS_ROOM(Precision<T>::code, NV) && R == 16;
	typedef Ahead<T, NV, ahead_kind> Next;
	/* whether all registers are taken, so that what can be found again must not keep any */
	static const bool tight = Precision<T>::code == 0 ? NV * tiles >= 16 : NV >= 4;
	/* and of the whole walk, too */
	static const bool crowded = Precision<T>::code == 1 && NV > 8;
	/* whether a warp's queries are in registers while it goes over keys */
	static const bool held = !tight || (Precision<T>::code == 0 && NV * together <= 8);
	typedef typename QueriesOf<T, NV, together, held>::type Queries;
	/* rows that a warp norms side by side: all of its own, or, without registers to spare, one */
	static const int norms = CUDA_HAS_ROOM(Precision<T>::code, NV) ? R / CUDA_WARPS : 1;

	const CudaWalk *walk;		/* the parameters of the launch: read like constants */
	const CudaModel *model;
	int			lane,
				warp,
				rank,			/* of this block in its team */
				team,
				tile,			/* the team's: others compute the same one, */
				copy;			/* of which this is number `copy` */
	T		   *x0,				/* in shared memory, as h, input, and rows are */
			   *x1,
			   *q;
	float	   *h,
			   *input,
			   *part_here,		/* partial softmaxes: in shared memory, */
			   *part_there;		/* or in device memory */
	bool		parts_here;		/* which of the two */
	TileRows	rows;

	/*
	 * heads of this block: head(0) ... head(n_heads - 1); `share` blocks have the same ones, this
	 * is number `slice` of them
	 */
	int			n_heads,
				share,
				slice;
	int			early;			/* the chunk of keys that this warp asks for early, or -1 */

	/* This lane's number, made anew: else what is made of it is kept in registers over all keys. */
	DEVICE int
	own_lane(void) const
	{
		return tight ? anew(lane) : lane;
	}

	/* Where blocks share heads each has one, and only there is a slice more than 0. */
	DEVICE int
	head(int local) const
	{
		return rank - slice * model->heads + local * team;
	}

	DEVICE const uint32_t *
	keys(const CudaCache &cache, int layer, int head) const
	{
		return cache.k + (size_t) ((layer * model->heads + head) * cache.panels) * H::key_words;
	}

	DEVICE const uint32_t *
	values(const CudaCache &cache, int layer, int head) const
	{
		return cache.v + (size_t) ((layer * model->heads + head) * cache.panels) * H::value_words;
	}

	/* The private cache of the group of streams in tile m of 16 rows. */
	DEVICE CudaCache
	own_cache(int m) const
	{
		CudaCache	cache = walk->own;
		int64_t		group = (int64_t) tile * tiles + m;

		cache.k += group * walk->own_words_k;
		cache.v += group * walk->own_words_v;
		return cache;
	}

	/* Where a storing row puts its key and value: row is of the tile. */
	DEVICE CudaCache
	target_cache(int row, int64_t *slot) const
	{
		if (walk->mode != CUDA_CHAIN)
		{
			*slot = rows.store[row];
			return walk->cache;
		}
		/* a group is 1, 2, 4 or 8 */
		*slot = (int64_t) rows.store[row] * walk->group + (row & 7 & (walk->group - 1));
		return own_cache(row / 16);
	}

	DEVICE void
	store_key(int layer, int head, int row, int feature, float a, float b) const
	{
		int64_t		slot;
		CudaCache	cache = target_cache(row, &slot);
		T		   *to = in_device_memory((T *) keys(cache, layer, head));

		if (P::code == 0)
			P::store_pair(to + cuda_key_at(P::code, NV, slot, feature), a, b);
		else
		{
			to[cuda_key_at(P::code, NV, slot, feature)] = P::from(a);
			to[cuda_key_at(P::code, NV, slot, feature + 1)] = P::from(b);
		}
	}

	DEVICE void
	store_value(int layer, int head, int row, int feature, float a, float b) const
	{
		int64_t		slot;
		CudaCache	cache = target_cache(row, &slot);
		T		   *to = in_device_memory((T *) values(cache, layer, head));

		to[cuda_value_at(P::code, NV, slot, feature)] = P::from(a);
		to[cuda_value_at(P::code, NV, slot, feature + 1)] = P::from(b);
	}

	/* Whether results of the layers are pushed to bells. */
	DEVICE bool
	pushes(void) const
	{
		return copied && walk->pushes != 0;
	}

	/* Bell 0 counts what is pushed into x1, bell 1 what is pushed into h. */
	DEVICE Bell *
	bell(int number) const
	{
		return (Bell *) (shared_memory() + walk->at_bells) + number;
	}

	/* Columns column and column + 1 of a row of x1, in all blocks; rings: pushed to their bells. */
	DEVICE void
	push(T *buffer, int row, int column, float a, float b, bool rings) const
	{
		T		   *place = buffer + row * walk->row_x + column;
		typename P::Pair pair = P::pair(a, b);

		if (team == 1)
			return P::store_pair(place, pair);
		if (copied && rings)
			ROLLED
			for (int peer = 0; peer < team; peer++)
				P::ring_pair(place, bell(0), peer, team, pair);
		else
			ROLLED
			for (int peer = 0; peer < team; peer++)
				P::push_pair(place, peer, team, pair);
	}

	DEVICE void
	push_one(T *buffer, int row, int column, float a) const
	{
		T			v = P::from(a);

		ROLLED
		for (int peer = 0; peer < team; peer++)
			team_store(buffer + row * walk->row_x + column, peer, team, v);
	}
};

#endif							/* CUDA_TILE_H */
