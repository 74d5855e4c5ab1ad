/*
 * walk.h: the kernel. A team of blocks carries a tile of rows from their features to their answers: embedder, all layers, head, and, for chains, all
 * steps with the draw of each; nothing but keys, values and answers leaves the chip between the first layer and the last.
 *
 * State of the tile is kept in every block of the team: the residual stream h in 32 bits, two operand buffers x0 and x1. Each linear's columns are dealt out to the
 * blocks, which push their results into all of them; each block attends with its own heads. Between a push and its reader lies one barrier of the
 * team; x0 takes what a block computes for itself (norms), x1 what is pushed, so that no block can overwrite what a slower one still reads.
 *
 * CUDA_ENCODE is the exception: the rows of a context must all have stored their keys of a layer before any attends, so there a launch ends after the
 * keys of its layer, and the next begins by attending to them.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef CUDA_WALK_H
#define CUDA_WALK_H

#include "answers.h"
#include "attention.h"

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
	const CudaLayer *layer;		/* queries, keys, values: of `own`, this block's head number local, to layer `at` of the cache */
	int			at,
				local,
				own;
	float	   *raw;
};

template <class T, int R, int NV> struct Walker : Tile<T, R, NV>
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
	using Base::x0;
	using Base::x1;
	using Base::q;
	using Base::h;
	using Base::input;
	using Base::part;
	using Base::rows;
	using Base::n_heads;
	using Base::share;
	using Base::slice;
	using Base::tiles;
	using Base::push;
	using Base::head;

	DEVICE int
	thread(void) const
	{
		return warp * WARP + lane;
	}

	/* ---- setting up -------------------------------------------------------------------------------------------------- */

	DEVICE void
	begin(const CudaWalk *w)
	{
		char	   *memory = shared_memory();
		int		   *at = (int *) (memory + w->at_rows);
		int		  **arrays[TILE_ROW_ARRAYS - 2] = {&rows.visible, &rows.own, &rows.store, &rows.source, &rows.flags, &rows.role, &rows.position, &rows.stream,
		&rows.step};

		walk = w;
		model = w->model;
		lane = thread_index() % WARP;
		warp = thread_index() / WARP;
		team = w->team;
		rank = team > 1 ? team_rank() : 0;
		tile = block_index() / team;
		x0 = (T *) (memory + w->at_x0);
		x1 = (T *) (memory + w->at_x1);
		q = (T *) (memory + w->at_q);
		h = (float *) (memory + w->at_h);
		input = (float *) (memory + w->at_input);
		for (int i = 0; i < TILE_ROW_ARRAYS - 2; i++)
			*arrays[i] = at + i * R;
		rows.log_keys = (float *) (at + (TILE_ROW_ARRAYS - 2) * R);
		rows.target = (float *) (at + (TILE_ROW_ARRAYS - 1) * R);
		rows.most = at + TILE_ROW_ARRAYS * R;
		rows.least = rows.most + tiles;
		rows.most_own = rows.least + tiles;
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
		if (w->at_part >= 0)
			part = (float *) (memory + w->at_part);
		else
			part = w->part + (share > 1 ? tile : (int64_t) tile * team + rank) * w->part_floats;

		/* operands are read to the end of their last step, beyond what was written: zero times whatever is there must be zero */
		for (int i = thread(); i < R * w->row_x; i += CUDA_THREADS)
			x0[i] = x1[i] = P::from(0.0f);
		for (int i = thread(); i < R * w->row_q; i += CUDA_THREADS)
			q[i] = P::from(0.0f);
		for (int i = thread(); i < R * w->row_h; i += CUDA_THREADS)
			h[i] = 0.0f;
	}

	/* A row of CUDA_CHAIN at `step`: rows 0-7 of 16 are the chain rows of 8 pairs, rows 8-15 their queries. */
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
		rows.flags[row] = active ? ROW_ACTIVE | ROW_X | (stores ? ROW_STORES | ROW_Y : ROW_ASKS) : 0;
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

	/* Fill the descriptions of all rows. */
	DEVICE_CALL void
	describe(int step)
	{
		sync_block();
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
						own = 0;

			for (int row = m * 16; row < m * 16 + 16; row++)
			{
				most = rows.visible[row] > most ? rows.visible[row] : most;
				least = rows.visible[row] < least ? rows.visible[row] : least;
				own = rows.own[row] > own ? rows.own[row] : own;
			}
			rows.most[m] = most;
			rows.least[m] = least;
			rows.most_own[m] = own;
		}
		sync_block();
	}

	/* A raw target in the network's units, soft-clipped. */
	DEVICE float
	scale_target(double y) const
	{
		double		z = (y - walk->y_center) / walk->y_scale,
					size = fabs(z),
					knee = walk->y_clip;

		if (knee > 0.0 && size > knee)
			z = copysign(knee + log1p(size - knee), z);
		return (float) z;
	}

	/* ---- linears and norms ----------------------------------------------------------------------------------------- */

	/* Whether a result of this row is kept. */
	DEVICE bool
	keeps(int row, int keep) const
	{
		return (rows.flags[row] & keep) != 0;
	}

	/* Two neighbouring outputs of a row. alone: every block computes all of them, nothing is pushed. */
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

					P::store_pair(q + row * walk->row_q + r.local * Base::head_columns + column - r.own * NV * 8, a * scale, b * scale);
				}
				break;
			case RESULT_KEY:
			case RESULT_VALUE:
				if ((rows.flags[row] & (ROW_ACTIVE | ROW_STORES)) != (ROW_ACTIVE | ROW_STORES))
					break;
				if (r.kind == RESULT_KEY)
					this->store_key(r.at, r.own, row, column - r.own * NV * 8, a, b);
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
	columns(const CudaLinear *w, const T *x, int first, int end, int own_warp, const Result<T> &r) const
	{
		multiply_rows<T, tiles>(w, x, walk->row_x, first, end, own_warp, lane,
								[&](int row, int column, float a, float b) { put(r, row, column, a, b, false); });
	}

	/* A linear on x, its columns dealt out to the team. Ends with the team's barrier. */
	DEVICE void
	linear(const CudaLinear *w, const T *x, const Result<T> &r) const
	{
		columns(w, x, (int) ((int64_t) w->n_tiles * rank / team), (int) ((int64_t) w->n_tiles * (rank + 1) / team), warp, r);
		sync_team(team);
	}

	/* The same for raw inputs, input [R, in], in 32 bits; each block computes all columns for itself. */
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
			scale = 1.0f / sqrtf(warp_sum(square) / (float) d + n->eps);
			for (int i = lane; i < d; i += WARP)
			{
				float		v = product(product(from[i] - mean, scale), n->weight[i]) + (n->bias != nullptr ? n->bias[i] : 0.0f);

				to[i] = P::from(v);
				if (keeps(row, keep))
					from[i] = v;
			}
		}
		sync_block();
	}

	/* An MLP on x, or, without x, on `input`, its first linear being direct then; `last` says what becomes of its outputs. */
	DEVICE_CALL void
	mlp(const CudaMlp *m, T *x, const Result<T> &last) const
	{
		for (int i = 0; i < m->n; i++)
		{
			Result<T>	hidden = {RESULT_OPERAND, x == nullptr || x == x0 ? x1 : x0, m->activation, 0, nullptr, 0, 0, 0, nullptr};
			const Result<T> &r = i == m->n - 1 ? last : hidden;

			if (x == nullptr)
				linear_direct(&m->linear[i], r);
			else
				linear(&m->linear[i], x, r);
			x = hidden.to;
		}
	}

	/* ---- embedder -------------------------------------------------------------------------------------------------- */

	/* Number i of what the first linear reads: 0 ... n_x - 1 features, then the target and the flag. */
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
		if (!direct)
			for (int item = thread(); item < R * (w->in - n); item += CUDA_THREADS)
				x0[item / (w->in - n) * walk->row_x + n + item % (w->in - n)] = P::from(0.0f);
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
		bool		targets = walk->mode == CUDA_CHAIN || walk->mode == CUDA_APPEND || walk->mode == CUDA_ENCODE;

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
					v = walk->x[(int64_t) rows.source[row] * d + i];
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

	/* ---- a layer --------------------------------------------------------------------------------------------------- */

	/* What multiplies q.k, times log2(e). */
	DEVICE float
	logit_scale(const CudaLayer *layer, int head, int row) const
	{
		float		scale = (float) CUDA_LOG2E / sqrtf((float) model->head_width);

		if (layer->log_scale != nullptr)
			scale *= layer->log_scale[2 * head] * rows.log_keys[row] + layer->log_scale[2 * head + 1];
		return scale;
	}

	/* Queries, and keys and values of the rows that store, of this block's heads, from x0. at is the layer of the cache. */
	DEVICE void
	project(const CudaLayer *layer, int at, bool ask, bool store) const
	{
		int			used = 0;

		for (int local = 0; local < n_heads; local++)
			for (int kind = ask ? 0 : 1; kind < (store ? 3 : 1); kind++)
			{
				int			own = head(local);
				const CudaLinear *w = kind == 0 ? &layer->q : kind == 1 ? &layer->k : &layer->v;
				Result<T>	r = {(ResultKind) (RESULT_QUERY + kind), nullptr, 0, 0, layer, at, local, own, nullptr};

				/* the next warps in turn */
				columns(w, x0, own * NV, own * NV + NV, (warp + used) % CUDA_WARPS, r);
				used += CUDA_WARPS - NV % CUDA_WARPS;
			}
		sync_block();
	}

	/* The first part of a block: keys, values and queries of what enters it. */
	DEVICE_CALL void
	block_keys(const CudaLayer *layer, int at, bool ask, bool store) const
	{
		norm(model->post_norm ? nullptr : &layer->norm1, 0);
		project(layer, at, ask, store);
	}

	/* The second part: attention and feed-forward; h changes for the rows of `keep`. */
	DEVICE_CALL void
	block_rest(const CudaLayer *layer, int at, int keep) const
	{
		Result<T>	state = {RESULT_STATE, nullptr, 0, keep, nullptr, 0, 0, 0, nullptr},
					hidden = {RESULT_OPERAND, x1, model->activation, 0, nullptr, 0, 0, 0, nullptr};

		this->attend(at);
		linear(&layer->o, x1, state);
		/* post-norm: rows that do not change are normed into x0 as well; nothing of them is kept */
		if (model->post_norm)
			norm(&layer->norm1, keep);
		else
			norm(&layer->norm2, 0);
		linear(&layer->ff0, x0, hidden);
		linear(&layer->ff1, x1, state);
		if (model->post_norm)
			norm(&layer->norm2, keep);
	}

	/* All layers. stores, asks: whether there are such rows. */
	DEVICE void
	layers(bool stores, bool asks) const
	{
		int			n = model->layers;

		for (int l = 0; l < n; l++)
		{
			if (model->two_stream)
			{
				if (stores)
				{
					block_keys(&model->layer[l], l, true, true);
					block_rest(&model->layer[l], l, ROW_STORES);
				}
				block_keys(&model->cross[l], n + l, asks, stores);
				if (asks)
					block_rest(&model->cross[l], n + l, ROW_ASKS);
				continue;
			}
			/* after the last layer nobody reads the states of rows that only store */
			bool		last = l == n - 1 && !asks;

			block_keys(&model->layer[l], l, !last, stores);
			if (!last)
				block_rest(&model->layer[l], l, KEEP_ALL);
		}
	}

	/* ---- answers --------------------------------------------------------------------------------------------------- */

	/* Raw outputs of the head for all rows. */
	DEVICE float *
	run_head(void) const
	{
		float	   *raw = walk->raw + (int64_t) tile * R * model->outputs;
		Result<T>	outputs = {RESULT_RAW, nullptr, 0, 0, nullptr, 0, 0, 0, raw};

		norm(model->has_final_norm ? &model->final_norm : nullptr, 0);
		mlp(&model->head, x0, outputs);
		return raw;
	}

	/* What is wanted of a query's distribution. */
	DEVICE_CALL void
	reduce(const Distribution *d, const CudaAnswer *wanted, int64_t i, double *to) const
	{
		int			at = 0;
		double		value;

		if ((wanted->reductions & 1) != 0)
		{
			value = d->mean(lane);
			if (lane == 0)
				to[at] = value;
			at++;
		}
		if ((wanted->reductions & 2) != 0)
		{
			value = sqrt(d->variance(lane));
			if (lane == 0)
				to[at] = value;
			at++;
		}
		if ((wanted->reductions & 4) != 0)
			for (int level = 0; level < wanted->n_levels; level++)
			{
				value = d->quantile(walk->levels[wanted->level + level], lane);
				if (lane == 0)
					to[at] = value;
				at++;
			}
		if ((wanted->reductions & 8) != 0)
		{
			value = d->log_density(walk->y[i], lane);
			if (lane == 0)
				to[at] = value;
		}
	}

	/* Answers of the rows that ask; they are dealt out to the blocks and warps of the team. */
	DEVICE void
	answer(void) const
	{
		float	   *raw = run_head();
		int			size = model->params;
		double	   *scratch = walk->params + (int64_t) tile * R * size;

		for (int item = warp * team + rank; item < R; item += CUDA_WARPS * team)
		{
			int			row = item;
			int64_t		stream = rows.stream[row];
			const CudaAnswer *wanted = nullptr;
			double	   *params = scratch + (int64_t) row * size;
			double		value;
			Distribution d;

			if ((rows.flags[row] & ROW_ASKS) == 0)
				continue;
			if (walk->mode == CUDA_QUERY)
			{
				wanted = &walk->answers[walk->answer_of[stream]];
				if (wanted->reductions == 0)
					params = walk->out + wanted->out + (stream - wanted->first) * size;
			}
			if (!Distribution::make(model, raw + (int64_t) row * model->outputs, walk->y_center, walk->y_scale, walk->classes, params, lane) && lane == 0)
				atomic_or(&walk->flags[wanted != nullptr ? walk->answer_of[stream] : 0], 1);
			sync_warp();
			d.kind = model->head_kind;
			d.half_normal = model->half_normal != 0;
			d.n = model->components;
			d.params = params;
			if (wanted != nullptr)
			{
				if (wanted->reductions != 0)
					reduce(&d, wanted, stream, walk->out + wanted->out + (stream - wanted->first) * wanted->width);
				continue;
			}
			if (walk->score)
				value = d.log_density(walk->y[rows.source[row]], lane);
			else
				value = d.draw(walk->seed, walk->first_draw + (uint64_t) stream, (uint32_t) (walk->draw_step + rows.step[row]), lane);
			if (lane == 0)
				walk->chain_out[stream * walk->steps + rows.step[row]] = value;
		}
		sync_team(team);
	}

	/* ---- encoding a layer per launch ------------------------------------------------------------------------------- */

	/* Move a tile's states, and its queries, from or to memory. */
	DEVICE void
	move_state(bool load) const
	{
		int			d = model->width;

		for (int item = thread(); item < R * d; item += CUDA_THREADS)
		{
			int64_t		i = (int64_t) tile * R + item / d;
			float	   *here = h + item / d * walk->row_h + item % d;

			if (i >= walk->n)
				continue;
			if (load)
				*here = walk->state[i * d + item % d];
			else
				walk->state[i * d + item % d] = *here;
		}
	}

	DEVICE void
	move_queries(bool load) const
	{
		int			words = walk->row_q * (int) sizeof(T) / 4;
		uint32_t   *here = (uint32_t *) q;

		for (int item = thread(); item < R * words; item += CUDA_THREADS)
		{
			int64_t		i = (int64_t) tile * R + item / words;

			if (i >= walk->n)
				continue;
			if (load)
				here[item] = walk->query[i * words + item % words];
			else
				walk->query[i * words + item % words] = here[item];
		}
	}

	DEVICE void
	encode_layer(void) const
	{
		int			l = walk->layer,
					n = model->layers;

		if (l == 0)
			embed();
		else
		{
			move_state(true);
			move_queries(true);
			sync_block();
			block_rest(&model->layer[l - 1], l - 1, ROW_STORES);
			if (model->two_stream)
				block_keys(&model->cross[l - 1], n + l - 1, false, true);
		}
		if (l == n)
			return;
		block_keys(&model->layer[l], l, l < n - 1 || model->two_stream, true);
		if (l == n - 1 && !model->two_stream)
			return;
		move_state(false);
		move_queries(false);
	}

	/* ---- the whole ------------------------------------------------------------------------------------------------- */

	DEVICE void
	run(const CudaWalk *w)
	{
		begin(w);
		sync_team(team);
		if (w->mode == CUDA_CHAIN)
		{
			for (int step = w->first_step; step < w->last_step; step++)
			{
				describe(step);
				embed();
				layers(true, true);
				answer();
			}
			return;
		}
		describe(0);
		if (w->mode == CUDA_ENCODE)
			encode_layer();
		else if (w->mode == CUDA_HALVES)
		{
			embed();
			for (int item = thread(); item < R * model->width; item += CUDA_THREADS)
			{
				int64_t		i = (int64_t) tile * R + item / model->width;

				if (i < w->n && rank == 0)
					w->halves[i * model->width + item % model->width] = h[item / model->width * w->row_h + item % model->width];
			}
		}
		else
		{
			embed();
			layers(w->mode == CUDA_APPEND, w->mode == CUDA_QUERY);
			if (w->mode == CUDA_QUERY)
				answer();
		}
		/* no block may end while another still writes into it */
		sync_team(team);
	}
};

template <class T, int R, int NV> KERNEL(CUDA_THREADS)
cuda_walk(const GRID_CONSTANT CudaWalk walk)
{
	Walker<T, R, NV> walker;

	walker.run(&walk);
}

#endif							/* CUDA_WALK_H */
