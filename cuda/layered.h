/*
 * layered.h: the kernels of models that are computed layer by layer, because their rows' states do
 * not fit shared memory: what lies between two matrix products of the library (gpu.h). States,
 * operands and queries lie in device memory; each kernel makes one pass over them.
 *
 * What is done with a row is what walk.h does with it, by the same functions, whose pointers lead
 * into device memory here: no number of a row depends on others of the launch.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef CUDA_LAYERED_H
#define CUDA_LAYERED_H

#include "step.h"
#include "walk.h"

/* A tile of STEP_ROWS rows whose state lies in device memory. */
template <class Base> struct Layered : Base
{
	typedef typename Base::P P;
	using Base::walk;
	using Base::model;
	using Base::lane;
	using Base::warp;
	using Base::rows;
	using Base::x0;
	using Base::x1;
	using Base::q;
	using Base::h;

	const CudaStep *step;
	int64_t		from;			/* first row of the tile among those of the launch */

	DEVICE void
	begin(const CudaStep *s)
	{
		const CudaWalk *w = &s->walk;
		char	   *memory = shared_memory();

		step = s;
		walk = w;
		model = &w->model;
		lane = thread_index() % WARP;
		warp = thread_index() / WARP;
		this->team = 1;
		this->rank = 0;
		this->copy = 0;
		from = (int64_t) block_index() * STEP_ROWS;
		this->tile = (int) (s->first / STEP_ROWS) + block_index();
		this->find_rows((int *) (memory + w->at_rows));
		this->input = (float *) (memory + w->at_input);
		h = in_device_memory(w->state + (int64_t) this->tile * STEP_ROWS * w->row_h);
	}

	/* Where a row's outputs lie. */
	DEVICE const float *
	outputs(int row) const
	{
		return in_device_memory(step->wide + (from + row) * step->row_wide);
	}
};

/* Blocks of its kernel on a multiprocessor: with 16 bits registers just allow so many. */
#define ROW_WISE_BESIDE(precision) ((precision) == 0 ? 4 : 1)

template <class T> struct RowWise : Layered<EmbedderTile<T, STEP_ROWS, 2>>
{
	typedef Layered<EmbedderTile<T, STEP_ROWS, 2>> Base;
	typedef Precision<T> P;
	using Base::walk;
	using Base::model;
	using Base::step;
	using Base::rows;
	using Base::x0;
	using Base::x1;
	using Base::q;
	using Base::from;
	using Base::outputs;
	using Base::thread;

	/* Zeros behind the first `used` columns of an operand, as far as a product reads. */
	DEVICE void
	pad(int used, int in) const
	{
		int			more = cuda_columns(P::code, in) - used;

		if (more > 0)
			for (int item = thread(); item < STEP_ROWS * more; item += CUDA_THREADS)
				x0[item / more * walk->row_x + used + item % more] = P::from(0.0f);
	}

	/* Two neighbouring outputs of each row that is there, to put(row, column, a, b). */
	template <class Put> DEVICE void
	each_pair(int columns, Put put) const
	{
		int			pairs = columns / 2;

		ROLLED
		for (int item = thread(); item < STEP_ROWS * pairs; item += CUDA_THREADS)
		{
			int			row = item / pairs,
						column = item % pairs * 2;

			if ((rows.flags[row] & ROW_ACTIVE) != 0)
				put(row, column, outputs(row)[column], outputs(row)[column + 1]);
		}
	}

	/* A query, as attention reads it. */
	DEVICE void
	keep_query(int row, int column, float a, float b) const
	{
		int			head = column / (model->head_tiles * 8),
					columns = cuda_query_columns(P::code, model->head_tiles);
		float		scale = this->logit_scale(step->log_scale, head, row);

		P::store_pair(q + row * walk->row_q + head * columns + column % (model->head_tiles * 8),
					  within_key(a) * scale, within_key(b) * scale);
	}

	/* The cache's place of a slot's number `at` of a key (or value). */
	DEVICE void
	keep_number(bool value, int row, int column, float a) const
	{
		int			tiles = model->head_tiles,
					head = column / (tiles * 8),
					feature = column % (tiles * 8);
		int64_t		slot = rows.store[row];
		size_t		panel = (size_t) (step->at * model->heads + head) * walk->cache.panels;
		T		   *to;

		/* a slot that is not seen is multiplied as well: by zero, which NaN would survive */
		a = value ? a : within_key(a);
		if (!(fabsf(a) <= P::largest()))
		{
			atomic_or(walk->flags, 1);
			a = 0.0f;
		}
		to = (T *) (value ? walk->cache.v + panel * cuda_value_words(P::code, tiles)
					: walk->cache.k + panel * cuda_key_words(P::code, tiles));
		to = in_device_memory(to);
		to[value ? cuda_value_at(P::code, tiles, slot, feature)
		   : cuda_key_at(P::code, tiles, slot, feature)] = P::from(a);
	}

	/* Outputs: queries, keys and values side by side, each head padded to whole tiles. */
	DEVICE void
	keep_all(void) const
	{
		int			columns = model->heads * model->head_tiles * 8,
					used = model->head_tiles * 8,
					more = cuda_query_columns(P::code, model->head_tiles) - used;

		each_pair(3 * columns, [&](int row, int column, float a, float b)
				  {
					  int		which = column / columns,
								at = column % columns;

					  if (which == 0 && step->asks)
						  keep_query(row, at, a, b);
					  else if (which > 0 && step->stores)
					  {
						  keep_number(which == 2, row, at, a);
						  keep_number(which == 2, row, at + 1, b);
					  }
				  });
		/* and zeros where a product reads more columns than a head has */
		if (step->asks && more > 0)
			for (int item = thread(); item < STEP_ROWS * model->heads * more;
				 item += CUDA_THREADS)
			{
				int			row = item / (model->heads * more),
							head = item / more % model->heads;

				if ((rows.flags[row] & ROW_ACTIVE) != 0)
					q[row * walk->row_q + head * (used + more) + used + item % more] =
						P::from(0.0f);
			}
	}

	DEVICE void
	run(const CudaStep *s)
	{
		int			operation = s->operation,
					n_x = s->encoder == CUDA_MLP_Y ? 0
						: s->walk.model.concat ? s->walk.model.features : s->walk.x_width;
		Result<T>	r = {nullptr, s->activation, s->keep, 0, 0, 0, nullptr, nullptr, false};

		this->begin(s);
		x0 = x1 = r.to = in_device_memory((T *) s->operand + from * walk->row_x);
		q = in_device_memory((T *) walk->query + (int64_t) this->tile * STEP_ROWS * walk->row_q);
		this->describe(0);
		if (operation == STEP_TOKENS)
			this->begin_tokens();
		else if (operation == STEP_NUMBERS || operation == STEP_DIRECT)
			this->fill(s->linear, s->encoder == CUDA_MLP_Y ? 1
					   : model->concat ? s->linear.in : n_x, n_x);
		else if (operation == STEP_NORM)
			this->norm(s->norm, s->keep);
		else if (operation == STEP_OPERAND)
			each_pair(s->linear.n_tiles * 8, [&](int row, int column, float a, float b)
					  { this->put_direct(RESULT_OPERAND, r, row, column, a, b); });
		else if (operation == STEP_STATE)
			each_pair(s->linear.n_tiles * 8, [&](int row, int column, float a, float b)
					  { this->template put<RESULT_STATE>(r, row, column, a, b, true); });
		else
			keep_all();
		if (operation == STEP_DIRECT)
			this->linear_direct(s->to_state ? RESULT_STATE : RESULT_OPERAND, s->linear, r);
		if (operation == STEP_NORM)
			pad(model->width, model->width);
		else if (operation == STEP_NUMBERS)
			pad(s->linear.in, s->linear.in);
		else if (operation == STEP_OPERAND || (operation == STEP_DIRECT && !s->to_state))
			pad(s->linear.n_tiles * 8, s->linear.out);
	}
};

template <class T> KERNEL(CUDA_THREADS, ROW_WISE_BESIDE(Precision<T>::code))
cuda_row_wise(const GRID_CONSTANT CudaStep step)
{
	RowWise<T>	tile;

	tile.run(&step);
}

/* ---- attention ------------------------------------------------------------------------------- */

/* Queries of 16 rows in shared memory, where a lane finds what it has put there itself. */
template <class T, int NV> struct KeptQueries
{
	static const bool held = false;

	uint32_t   *place;			/* this lane's */

	DEVICE void
	keep(int tile, const uint32_t a[4]) const
	{
		store_shared(place + tile * 128, Words{a[0], a[1], a[2], a[3]});
	}

	DEVICE void
	get(uint32_t a[4], int, int tile) const
	{
		Words		words = load_shared(place + tile * 128);

		a[0] = words.x;
		a[1] = words.y;
		a[2] = words.z;
		a[3] = words.w;
	}
};

template <class T, int NV, int MT, bool HELD> struct LayeredQueries
{
	typedef KeptQueries<T, NV> type;
};

template <class T, int NV, int MT> struct LayeredQueries<T, NV, MT, true>
{
	typedef HeldQueries<T, NV, MT> type;
};

/*
 * Attention of a warp's rows of one head to all keys that they see, in one pass. Nothing is shared
 * with other warps: queries come from device memory into registers, or, where these are too few,
 * into shared memory, keys and values into registers, or through the warp's own ring.
 */
template <class T, int NV> struct LayeredAttention
{
	typedef Precision<T> P;
	typedef Head<T, NV> H;
	static const bool ring = ATTEND_HAS_RING(Precision<T>::code, NV);
	static const int MT = ring ? 2 : 1;
	static const AheadKind kind = ring ? AHEAD_RING : AHEAD_NONE;
	typedef Ahead<T, NV, kind> Next;
	static const bool held = ATTEND_KEPT(Precision<T>::code, NV) == 0;
	typedef typename LayeredQueries<T, NV, MT, held>::type Queries;

	const CudaStep *step;
	int			lane,
				head;
	int64_t		first;			/* row of the warp's first, among those of the walk */

	/* The row whose queries and keys stand for row i of the warp's: the last for those beyond. */
	DEVICE int64_t
	row(int i) const
	{
		int64_t		end = step->first + step->n;

		return first + i < end ? first + i : end - 1;
	}

	/* Slots that it sees, as RowTile::describe_row() has it. */
	DEVICE int64_t
	sees(int64_t i) const
	{
		const CudaWalk *w = &step->walk;
		bool		stores = w->mode == CUDA_APPEND || w->mode == CUDA_ENCODE;
		int64_t		slot = w->first_slot + i;

		if (!stores || slot < w->prefix_slots)
			return w->shared;
		return slot + (w->model.strict ? 0 : 1);
	}

	/* What a lane holds of a tile of queries at `place`, as portable.h says. */
	DEVICE void
	load(half16, uint32_t a[4], const uint32_t *here, const uint32_t *below, int tile) const
	{
		a[0] = here[tile * 8 + lane % 4];
		a[1] = below[tile * 8 + lane % 4];
		a[2] = here[tile * 8 + 4 + lane % 4];
		a[3] = below[tile * 8 + 4 + lane % 4];
	}

	DEVICE void
	load(float, uint32_t a[4], const uint32_t *here, const uint32_t *below, int tile) const
	{
		load(half16(), a, here, below, tile);
	}

	DEVICE const uint32_t *
	query(int64_t i) const
	{
		const CudaWalk *w = &step->walk;
		int			words = cuda_query_columns(P::code, NV) * (int) sizeof(T) / 4;

		return in_device_memory(w->query + i * (w->row_q * (int) sizeof(T) / 4) + head * words);
	}

	DEVICE void
	find_ring(Ahead<T, NV, AHEAD_RING> &ahead, int warp) const
	{
		ahead.ring = (uint32_t *) shared_memory() + warp * cuda_attend_ring(P::code, NV) +
			lane * 4;
	}

	DEVICE void
	find_ring(Ahead<T, NV, AHEAD_NONE> &, int) const
	{
	}

	/* Operand `tile` of queries of tile t of rows. */
	DEVICE void
	keep(HeldQueries<T, NV, MT> &q, int t, int tile, const uint32_t *here,
		 const uint32_t *below) const
	{
		load(T(), q.words[t][tile], here, below, tile);
	}

	DEVICE void
	keep(const KeptQueries<T, NV> &q, int, int tile, const uint32_t *here,
		 const uint32_t *below) const
	{
		uint32_t	a[4];

		load(T(), a, here, below, tile);
		q.keep(tile, a);
	}

	DEVICE void
	find_kept(HeldQueries<T, NV, MT> &, int) const
	{
	}

	DEVICE void
	find_kept(KeptQueries<T, NV> &q, int warp) const
	{
		q.place = (uint32_t *) shared_memory() + warp * ATTEND_KEPT(P::code, NV) + lane * 4;
	}

	/* Two neighbouring numbers of a row's result. */
	DEVICE void
	put(int i, int feature, float a, float b) const
	{
		const CudaModel *m = &step->walk.model;
		T		   *to = in_device_memory((T *) step->operand + (first - step->first + i) *
										  step->walk.row_x);

		to += head * m->head_width + feature;
		if (m->head_width % 2 == 0 && feature < m->head_width)
			P::store_pair(to, a, b);
		else if (feature < m->head_width)
		{
			to[0] = P::from(a);
			if (feature + 1 < m->head_width)
				to[1] = P::from(b);
		}
	}

	/* Zeros behind the last head's, as far as the next product reads. */
	DEVICE void
	pad(int i) const
	{
		const CudaModel *m = &step->walk.model;
		T		   *to = in_device_memory((T *) step->operand + (first - step->first + i) *
										  step->walk.row_x);

		if (head == m->heads - 1)
			for (int c = m->width + lane; c < cuda_columns(P::code, m->width); c += WARP)
				to[c] = P::from(0.0f);
	}

	DEVICE void
	run(const CudaStep *s)
	{
		const CudaModel *m = &s->walk.model;
		const CudaCache *cache = &s->walk.cache;
		int			warp = thread_index() / WARP;
		size_t		panel;
		Queries		q;
		int64_t		limit[MT][2],
					most,
					least;
		Softmax<NV, MT> all;
		Next		ahead;

		step = s;
		lane = thread_index() % WARP;
		head = block_index() % m->heads;
		first = s->first + ((int64_t) (block_index() / m->heads) * ATTEND_WARPS + warp) * MT * 16;
		if (first >= s->first + s->n)
			return;
		panel = (size_t) (s->at * m->heads + head) * cache->panels;
		find_kept(q, warp);
		UNROLL
		for (int t = 0; t < MT; t++)
		{
			int64_t		here = row(t * 16 + lane / 4),
						below = row(t * 16 + lane / 4 + 8);

			UNROLL
			for (int i = 0; i < H::key_tiles; i++)
				keep(q, t, i, query(here), query(below));
			limit[t][0] = sees(here);
			limit[t][1] = sees(below);
		}
		/* later rows see no less */
		least = sees(row(0));
		most = (sees(row(MT * 16 - 1)) + CUDA_BLOCK - 1) / CUDA_BLOCK * CUDA_BLOCK;
		find_ring(ahead, warp);
		attend_chunk<T, NV, MT, kind>(all, q, cache->k + panel * H::key_words,
									  cache->v + panel * H::value_words, (int64_t) 0, most, least,
									  most, false, ahead, lane,
									  [&](int t, int half, int at, int64_t block)
									  { return block + at + lane % 4 * 2 < limit[t][half]; });
		UNROLL
		for (int t = 0; t < MT; t++)
			UNROLL
			for (int half = 0; half < 2; half++)
			{
				int			i = t * 16 + half * 8 + lane / 4;
				float		scale = closing_scale(all.base[t][half], all.sum[t][half],
												  limit[t][half] > 0);

				if (first + i < s->first + s->n)
					UNROLL
					for (int n = 0; n < NV; n++)
						put(i, n * 8 + lane % 4 * 2, product(all.values[t][n][2 * half], scale),
							product(all.values[t][n][2 * half + 1], scale));
			}
		for (int i = 0; i < MT * 16 && first + i < s->first + s->n; i++)
			pad(i);
	}
};

template <class T, int NV> KERNEL(ATTEND_WARPS * WARP, 1)
cuda_attend(const GRID_CONSTANT CudaStep step)
{
	LayeredAttention<T, NV> rows;

	rows.run(&step);
}

/* ---- answers --------------------------------------------------------------------------------- */

/* From the outputs of the head's last linear, which are 32 bits wide in either precision. */
template <class T> struct LayeredAnswers : Layered<Walker<T, STEP_ROWS, 2>>
{
	typedef Layered<Walker<T, STEP_ROWS, 2>> Base;
	using Base::walk;
	using Base::rows;
	using Base::thread;
	using Base::outputs;

	DEVICE void
	run(const CudaStep *s)
	{
		int			n = s->walk.model.outputs;
		float	   *raw;

		this->begin(s);
		this->describe(0);
		raw = in_device_memory(walk->raw + (int64_t) this->tile * STEP_ROWS * n);
		for (int item = thread(); item < STEP_ROWS * n; item += CUDA_THREADS)
			if ((rows.flags[item / n] & ROW_ACTIVE) != 0)
				raw[item] = outputs(item / n)[item % n];
		sync_block();
		this->answer(raw);
	}
};

/* A template, so that it is compiled where it is named. */
template <class T> KERNEL(CUDA_THREADS, 1)
cuda_answers(const GRID_CONSTANT CudaStep step)
{
	LayeredAnswers<T> tile;

	tile.run(&step);
}

#endif							/* CUDA_LAYERED_H */
