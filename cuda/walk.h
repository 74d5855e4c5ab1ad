/*
 * walk.h: the kernel. A team of blocks carries a tile of rows from their features to their answers:
 * embedder, all layers, head, and, for chains, all steps with the draw of each; nothing but keys,
 * values and answers leaves the chip between the first layer and the last.
 *
 * CUDA_ENCODE is the exception: the rows of a context must all have stored their keys of a layer
 * before any attends, so there a launch ends after the keys of its layer, and the next begins by
 * attending to them.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef CUDA_WALK_H
#define CUDA_WALK_H

#include "answers.h"
#include "embedder.h"

template <class T, int R, int NV> struct Walker : EmbedderTile<T, R, NV>
{
	typedef EmbedderTile<T, R, NV> Base;
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
	using Base::rows;
	using Base::n_heads;
	using Base::head;
	using Base::thread;
	using Base::begin;
	using Base::describe;
	using Base::columns;
	using Base::linear;
	using Base::norm;
	using Base::mlp;
	using Base::embed;

	/* ---- a layer ----------------------------------------------------------------------------- */

	/*
	 * Queries, and keys and values of the rows that store, of this block's heads, from x0. at is
	 * the layer of the cache.
	 */
	DEVICE void
	project(const CudaLayer *layer, int at, bool ask, bool store) const
	{
		int			used = 0;

		for (int local = 0; local < n_heads; local++)
			for (int kind = ask ? 0 : 1; kind < (store ? 3 : 1); kind++)
			{
				int			own = head(local);
				const CudaLinear *w = kind == 0 ? &layer->q : kind == 1 ? &layer->k : &layer->v;
				Result<T>	r = {(ResultKind) (RESULT_QUERY + kind), nullptr, 0, 0, layer, at,
								 local, own, nullptr};

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

	/* ---- answers ----------------------------------------------------------------------------- */

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

	/*
	 * A classifier's logits become a mean with what its logistic regression says of the row, as in
	 * the engine (head.c).
	 */
	DEVICE void
	blend(int row, float *raw) const
	{
		const float *prior_logits = walk->prior_logits +
			(int64_t) rows.source[row] * walk->said_step;

		for (int i = lane; i < model->components; i += WARP)
			raw[i] = (float) ((1.0 - walk->share) * raw[i] + walk->share * prior_logits[i]);
		sync_warp();
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
			if (walk->share > 0.0)
				blend(row, raw + (int64_t) row * model->outputs);
			if (!Distribution::make(model, raw + (int64_t) row * model->outputs, walk->y_center,
									walk->y_scale, walk->classes, params, lane) && lane == 0)
				atomic_or(&walk->flags[wanted != nullptr ? walk->answer_of[stream] : 0], 1);
			sync_warp();
			d.kind = model->head_kind;
			d.half_normal = model->half_normal != 0;
			d.n = model->components;
			d.params = params;
			if (wanted != nullptr)
			{
				if (wanted->reductions != 0)
					reduce(&d, wanted, stream,
						   walk->out + wanted->out + (stream - wanted->first) * wanted->width);
				continue;
			}
			if (walk->score)
				value = d.log_density(walk->y[rows.source[row]], lane);
			else
				value = d.draw(walk->seed, walk->first_draw + (uint64_t) stream,
							   (uint32_t) (walk->draw_step + rows.step[row]), lane);
			if (lane == 0)
				walk->chain_out[stream * walk->steps + rows.step[row]] = value;
		}
		sync_team(team);
	}

	/* ---- encoding a layer per launch --------------------------------------------------------- */

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

	/* ---- the whole --------------------------------------------------------------------------- */

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
					w->halves[i * model->width + item % model->width] =
						h[item / model->width * w->row_h + item % model->width];
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
