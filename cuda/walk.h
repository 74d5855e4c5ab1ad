/*
 * walk.h: the kernel. A team of blocks carries a tile of rows from their features to their answers:
 * embedder, all layers, head, and, for chains, all steps with the draw of each; nothing but keys,
 * values and answers leaves the chip between the first layer and the last.
 *
 * CUDA_ENCODE is the exception: the rows of a context must all have stored their keys of a layer
 * before any attends, so there a launch ends after the keys of its layer, and the next begins by
 * attending to them.
 *
 * All of it is one loop over halves of layers, and every part of it is inlined: what a function is
 * given by reference, or a member of an object whose address it takes, lies in memory, and each use
 * of it waits for that.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef CUDA_WALK_H
#define CUDA_WALK_H

#include "answers.h"
#include "embedder.h"
#include "gate.h"
#include "levels.h"
#include "pull.h"
#include "rare.h"

/* Where a tile is: what is decided while the kernel runs. */
enum Stage
{
	STAGE_MLP,					/* a linear of an encoder, or of the head */
	STAGE_KEYS,					/* of a block: norm; keys, values and queries; then */
	STAGE_ATTEND,				/* attention and its output */
	STAGE_WIDEN,				/* norm; the feed-forward part */
	STAGE_CLOSE,				/* post-norm: the norm at the end */
	STAGE_DONE,
	/* where kernels with bells have none: the second linear of a half, behind a barrier */
	STAGE_OUTPUT,
	STAGE_NARROW
};

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
	using Base::copy;
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
	using Base::linear_of_mlp;
	using Base::linear_direct;
	using Base::norm;
	using Base::fill;
	using Base::encoders;
	using Base::begin_tokens;

	/* ---- the stages -------------------------------------------------------------------------- */

	/*
	 * Queries, and keys and values of the rows that store, of this block's heads, from x0. at is
	 * the layer of the cache. Of blocks that share a head the first stores; the others read its
	 * keys in CUDA_APPEND alone, because private keys are attended to by the first one. Of teams
	 * that compute the same tile the first stores, too. Where weights are asked for before, those
	 * of the first head's queries were, which `queries` describes.
	 */
	DEVICE void
	project(const CudaLayer *layer, int at, bool ask, bool store, const CudaLinear &queries,
			Asked &asked) const
	{
		bool		keeps = store && this->slice == 0 && copy == 0;
		int			used = 0;
		CudaLinear	q = Base::copied ? queries : constant(&layer->q),
					k = q,
					v = q;
		const float *log_scale = constant(&layer->log_scale);

		if (keeps)
		{
			k = constant(&layer->k);
			v = constant(&layer->v);
		}
		ROLLED
		for (int local = 0; local < n_heads; local++)
		{
			int			own = head(local);
			Result<T>	r = {nullptr, 0, 0, at, local, own, log_scale, nullptr, false};

			/* the next warps in turn */
			if (ask)
			{
				this->template columns<RESULT_QUERY>(q, x0, own * NV, own * NV + NV,
									  (warp + used) % CUDA_WARPS, Base::copied && local == 0,
									  asked, r);
				used += CUDA_WARPS - NV % CUDA_WARPS;
			}
			if (keeps)
			{
				this->template columns<RESULT_KEY>(k, x0, own * NV, own * NV + NV,
									(warp + used) % CUDA_WARPS, false, asked, r);
				used += CUDA_WARPS - NV % CUDA_WARPS;
				this->template columns<RESULT_VALUE>(v, x0, own * NV, own * NV + NV,
									  (warp + used) % CUDA_WARPS, false, asked, r);
				used += CUDA_WARPS - NV % CUDA_WARPS;
			}
		}
		if (this->share > 1 && walk->mode == CUDA_APPEND)
			sync_team(team);
		else
			sync_block();
	}

	/*
	 * A quarter of the next attention's early keys at a time, behind the first weights of a stage,
	 * of which `of_next` are for the layer after this one: these wait for none of them, and those
	 * of the next linear with first weights come so much later that they do not, either. The
	 * feed-forward part asks for weights twice, and for keys with the first of them.
	 */
	DEVICE void
	ask_keys_early(int first, int end, bool of_next, int l, bool asks, bool again) const
	{
		int			next = !of_next ? l : l + 1 < model->layers ? l + 1
			: again ? 0 : model->layers;

		/* rows that only store do not attend in the last layer */
		if (next < (asks ? model->layers : model->layers - 1))
			this->ask_early(next, first, end);
	}

	/* The head's outputs of the tile. */
	DEVICE float *
	raw_outputs(void) const
	{
		return walk->raw + (int64_t) tile * R * model->outputs;
	}

	/*
	 * From `stage` on, of MLP or block `number`: encoders, then blocks, then the head; ends after
	 * the keys of block `stop`. Blocks are the layers, or, with two streams, those of each in turn.
	 * stores, asks: whether there are such rows; again: whether all layers follow once more.
	 */
	DEVICE void
	carry(Stage stage, int number, int stop, bool stores, bool asks, bool again, float *raw)
	{
		int			layers = model->layers,
					blocks = walk->mode == CUDA_HALVES ? 0
						: model->two_stream ? 2 * layers : layers,
					present = encoders(),
					i = -1;			/* linear of an MLP; -1: before it */
		bool		from_x1 = false,	/* what it reads: x1, or x0, */
					direct = false;		/* or `input` */
		bool		first_block = false;
		/* in kernels that have one place for it: what must come before the next stage begins */
		int			due = RESULT_OF_NOTHING,
					due_bytes = 0;	/* of a row */
		Asked		asked;
		CudaLinear	next;			/* a description that was fetched before its stage, */
		const CudaLinear *known = nullptr;	/* and whose */

		ROLLED
		while (stage != STAGE_DONE || (Base::copied && due != RESULT_OF_NOTHING))
		{
			/* which block */
			bool		crossing = model->two_stream && number % 2 != 0;
			int			l = model->two_stream ? number / 2 : number,
						at = crossing ? layers + l : l;
			const CudaLayer *layer = (crossing ? model->cross : model->layer) + l;
			/* after the last layer the states of rows that only store are not read */
			bool		ask = model->two_stream ? !crossing || asks : l < layers - 1 || asks,
						store = stores || (model->two_stream && !crossing),
						rest = model->two_stream && !crossing ? stores : ask;
			int			keep = !model->two_stream ? KEEP_ALL : crossing ? ROW_ASKS : ROW_STORES;
			bool		next_block = false,
						to_x0 = false;
			CudaLinear	w;
			ResultKind	kind = RESULT_STATE;
			Result<T>	r = {x1, 0, keep, at, 0, 0, nullptr, raw, false};

			if (stage == STAGE_MLP && number != CUDA_MLP_HEAD && (present >> number & 1) == 0)
			{
				number++;
				if (number == CUDA_MLP_HEAD)
					first_block = next_block = true;
			}
			else if (stage == STAGE_KEYS && model->two_stream && !crossing && !stores)
				next_block = true;
			else
			{
				/* weights come while results of other blocks do */
				if (Base::copied && (stage == STAGE_KEYS || stage == STAGE_WIDEN))
				{
					const CudaLinear *its = stage == STAGE_KEYS ? &layer->q : &layer->ff0;

					w = known == its ? next : constant(its);
					this->ask_first(w, stage == STAGE_KEYS, asked);
					if (stage == STAGE_KEYS)
						ask_keys_early(3, 4, false, l, asks, again);
					else
						ask_keys_early(1, 3, true, l, asks, again);
				}
				if (Base::copied && due != RESULT_OF_NOTHING)
					this->receive(due, due_bytes);
				due = RESULT_OF_NOTHING;
				if (Base::copied && stage == STAGE_DONE)
					return;
				/* and what they are of comes while the stage before computes */
				if (Base::copied && (stage == STAGE_KEYS || stage == STAGE_WIDEN))
				{
					known = stage == STAGE_KEYS ? &layer->o : &layer->ff1;
					next = constant(known);
				}

				/* the norm before it; post-norm: after the part before */
				if (stage == STAGE_KEYS || stage == STAGE_WIDEN || stage == STAGE_CLOSE
					|| (stage == STAGE_MLP && number == CUDA_MLP_HEAD && i < 0))
				{
					CudaNorm	n = {nullptr, nullptr, 0.0f, 0};

					if (stage == STAGE_KEYS)
						n = model->post_norm ? n : constant(&layer->norm1);
					else if (stage == STAGE_WIDEN)
						n = constant(model->post_norm ? &layer->norm1 : &layer->norm2);
					else if (stage == STAGE_CLOSE)
						n = constant(&layer->norm2);
					else if (model->has_final_norm)
						n = model->final_norm;
					/* rows that do not change are normed into x0 as well, not into h */
					norm(n, model->post_norm && (stage == STAGE_WIDEN || stage == STAGE_CLOSE)
						 ? keep : 0);
				}
				if (stage == STAGE_KEYS)
				{
					project(layer, at, ask, store, w, asked);
					if (number == stop)
						return;
				}
				if (stage == STAGE_MLP)
				{
					const CudaEncoder *mlp = &model->mlps[number];
					bool		begins = i < 0,
								skip = begins && mlp->skip != 0;

					r.keep = model->concat ? ROW_X | ROW_Y
						: number == CUDA_MLP_X ? ROW_X : ROW_Y;
					i = begins ? 0 : i;
					w = skip ? mlp->first : mlp->mlp.linear[i];
					if (begins)
					{
						bool		y = number == CUDA_MLP_Y;
						int			n_x = y ? 0 : model->concat ? model->features : walk->x_width;

						from_x1 = direct = false;
						if (number != CUDA_MLP_HEAD)
							direct = fill(w, y ? 1 : model->concat ? w.in : n_x, n_x);
					}
					/* u of a skip-mlp is its operand and added to the state */
					if (skip)
						kind = RESULT_OPERAND;
					else if (i == mlp->mlp.n - 1)
						kind = number == CUDA_MLP_HEAD ? RESULT_RAW : RESULT_STATE;
					else
					{
						kind = RESULT_OPERAND;
						r.activation = mlp->mlp.activation;
						r.keep = 0;
						r.to = from_x1 ? x0 : x1;
						to_x0 = from_x1;
					}
					i += !skip;
					if (direct)
						linear_direct(kind, w, r);
					else
						linear_of_mlp(kind, w, from_x1 ? x1 : x0, asked, r);
					due = RESULT_OF_BARRIER;

					/* what comes next */
					from_x1 = !to_x0;
					direct = false;
					if (i >= model->mlps[number].mlp.n)
					{
						i = -1;
						if (number == CUDA_MLP_HEAD)
							stage = STAGE_DONE;
						else if (++number == CUDA_MLP_HEAD)
							first_block = next_block = true;
					}
				}
				else if ((stage <= STAGE_WIDEN || (Base::copied && stage > STAGE_DONE))
						 && (stage != STAGE_KEYS || rest))
				{
					/* x1: what attention found, or the wide features; then its linear */
					bool		attends = stage != STAGE_WIDEN &&
						!(Base::copied && stage == STAGE_NARROW),
								first = !Base::copied || stage < STAGE_DONE;
					const CudaLinear *its = attends ? &layer->o : &layer->ff1;

					r.rings = this->pushes();
					if (first && attends)
					{
						this->attend(at);
						due = r.rings ? 0 : RESULT_OF_BARRIER;
						due_bytes = model->heads * model->head_width * (int) sizeof(T);
						/* what can be found again takes no registers meanwhile */
						if (Base::tight)
							this->find(walk);
						if (Base::crowded)
						{
							int			mode = anew(walk->mode);

							stores = mode != CUDA_QUERY;
							asks = mode == CUDA_QUERY || mode == CUDA_CHAIN;
							stop = mode == CUDA_ENCODE
								? walk->layer * (model->two_stream ? 2 : 1) : -1;
							layers = model->layers;
							blocks = model->two_stream ? 2 * layers : layers;
							raw = raw_outputs();
						}
					}
					else if (first)
					{
						if (!Base::copied)
							w = constant(&layer->ff0);
						r.activation = model->activation;
						r.keep = 0;
						this->template linear<RESULT_OPERAND>(w, x0, Base::copied, asked, r);
						if (!Base::copied)
							sync_team(team);
						due = r.rings ? 2 : RESULT_OF_BARRIER;
						/* of every column, those beyond the last too */
						due_bytes = w.n_tiles * 8 * (int) sizeof(T);
						r.activation = 0;
						r.keep = keep;
					}
					w = known == its ? next : constant(its);
					if (Base::copied && first)
					{
						this->ask_first(w, false, asked);
						if (attends)
							ask_keys_early(0, 1, true, l, asks, again);
					}
					/* the one barrier is where the loop begins */
					if (Base::copied && first && !r.rings)
						stage = attends ? STAGE_OUTPUT : STAGE_NARROW;
					else
					{
						if (Base::copied)
						{
							if (first)
								this->receive_pushes(due, due_bytes);
							known = attends ? &layer->ff0 : &layer[l + 1 < layers].q;
							next = constant(known);
						}
						this->template linear<RESULT_STATE>(w, x1, Base::copied, asked, r);
						due = !r.rings ? RESULT_OF_BARRIER : attends ? 1 : 3;
						due_bytes = w.n_tiles * 8 * 4;
						if (attends)
							stage = STAGE_WIDEN;
						else if (model->post_norm)
							stage = STAGE_CLOSE;
						else
							next_block = true;
					}
				}
				else
					next_block = true;
				/* in other kernels; a norm, and keys without attention, end with their block's */
				if (!Base::copied && due != RESULT_OF_NOTHING)
					sync_team(team);
			}
			if (next_block)
			{
				number = first_block ? 0 : number + 1;
				first_block = false;
				stage = STAGE_KEYS;
				if (number == blocks)
				{
					stage = asks && copy == 0 ? STAGE_MLP : STAGE_DONE;
					number = CUDA_MLP_HEAD;
					i = -1;
				}
			}
		}
	}

	/* ---- answers ----------------------------------------------------------------------------- */

	/*
	 * A classifier's logits become a mean with what its logistic regression says of the row, as in
	 * the engine (head.c). A lane changes those alone that it reads in Distribution::make().
	 */
	DEVICE void
	blend(int row, float *raw) const
	{
		const float *prior_logits = walk->prior_logits +
			(int64_t) rows.source[row] * walk->said_step;
		double		share = walk->share;

		if (walk->share_alone != share && load_float(prior_logits + model->components) == 0.0f)
			share = walk->share_alone;
		for (int i = lane; i < model->components; i += WARP)
			raw[i] = (float) ((1.0 - share) * raw[i] + share * prior_logits[i]);
	}

	/* Whether the process's answer, of a gated model, is a component that may be: lane 0 says. */
	DEVICE bool
	add_process(int row, const float *raw, double *params) const
	{
		const float *said = walk->prior_logits + (int64_t) rows.source[row] * walk->said_step;
		int			n = model->components;
		GateShare	gate = gate_share(model->gate, walk, said, raw, params, n, rows.own[row],
									  lane);
		float		share = gate.share;

		ROLLED
		for (int i = lane; i < n; i += WARP)
		{
			params[i] *= 1.0 - (double) share;
			params[n + i] += walk->y_scale * (double) gate.away;
		}
		sync_warp();
		if (lane != 0)
			return true;
		params[n - 1] = (double) share;
		params[2 * n - 1] = walk->y_center + walk->y_scale * (double) load_float(said);
		params[3 * n - 1] = fabs(walk->y_scale) * (double) expf(load_float(said + 1));
		return is_finite((double) share) && is_location(params[2 * n - 1]) &&
			is_deviation(params[3 * n - 1]);
	}

	/*
	 * Answers of the rows that ask, from raw; they are dealt out to the blocks and warps of the
	 * team.
	 */
	DEVICE void
	answer(float *raw) const
	{
		int			size = model->params,
					lane = this->own_lane();
		double	   *scratch = walk->params + (int64_t) tile * R * size;

		ROLLED
		for (int row = warp * team + rank; row < R; row += CUDA_WARPS * team)
		{
			int64_t		stream = rows.stream[row];
			bool		query = walk->mode == CUDA_QUERY;
			int			which = 0,
						wanted,
						levels = 0,
						level = 0;
			double	   *params = scratch + (int64_t) row * size,
					   *to;
			Distribution d;

			if ((rows.flags[row] & ROW_ASKS) == 0)
				continue;
			if (query)
			{
				which = walk->answer_of[stream];

				CudaAnswer	answer = constant(&walk->answers[which]);

				wanted = answer.reductions;
				levels = answer.n_levels;
				level = answer.level;
				to = walk->out + answer.out + (stream - answer.first) *
					(wanted == 0 ? size : answer.width);
				if (wanted == 0)
					params = to;
			}
			else
			{
				wanted = walk->score ? WANTED_DENSITY : WANTED_DRAW;
				to = walk->chain_out + stream * walk->steps + rows.step[row];
			}
			if (walk->share > 0.0)
				blend(row, raw + (int64_t) row * model->outputs);
			if (!Distribution::make(*model, raw + (int64_t) row * model->outputs, walk->y_center,
									walk->y_scale, walk->classes, params, lane) && lane == 0)
				atomic_or(&walk->flags[which], 1);
			sync_warp();
			/* kernels of wider heads have no registers left for it, and no gated model */
			if (NV <= CUDA_GATED_TILES && model->gate != nullptr)
			{
				if (!add_process(row, raw + (int64_t) row * model->outputs, params))
					atomic_or(&walk->flags[which], 1);
				sync_warp();
				/* a lane changes those components alone that it reads of a mixture */
				put_levels(&walk->target_levels, params, model->components - 1,
						   model->components, lane);
				put_rare(&walk->rare, params, model->components - 1, model->components, lane);
				if (walk->pull > 0.0)
					pull_mean(params, walk->pull, walk->y_center + walk->y_scale *
							  (double) load_float(walk->prior_logits + CUDA_PROCESS_NUMBERS +
												  (int64_t) rows.source[row] * walk->said_step),
							  model->components, lane);
			}
			d.kind = model->head_kind;
			d.half_normal = model->half_normal != 0;
			d.n = model->components;
			d.params = params;

			/* mean, standard deviation, quantiles or a draw, log density, in this order */
			ROLLED
			for (int kind = WANTED_MEAN; kind <= WANTED_DRAW; kind *= 2)
			{
				if ((wanted & kind) == 0)
					continue;
				ROLLED
				for (int j = 0; j < (kind == WANTED_QUANTILES ? levels : 1); j++)
				{
					double		value;

					if (kind == WANTED_DENSITY)
						value = d.log_density(walk->y[query ? stream : rows.source[row]], lane);
					else if (kind <= WANTED_SD)
						value = d.moment(kind == WANTED_SD, lane);
					else
					{
						bool		draws = kind == WANTED_DRAW;
						double		p[2] = {0.0, 0.0};

						if (draws)
							random_pair(walk->seed, walk->first_draw + (uint64_t) stream,
										(uint32_t) (walk->draw_step + rows.step[row]), p);
						else
							p[0] = p[1] = walk->levels[level + j];
						value = d.point(draws, p[0], p[1], lane);
					}
					if (lane == 0)
						*to = value;
					to++;
				}
			}
		}
		sync_team(team);
	}

	/* ---- encoding a layer per launch --------------------------------------------------------- */

	/* Move a tile's states, and its queries, from or to memory. */
	DEVICE void
	move_state(bool load) const
	{
		int			d = model->width;

		ROLLED
		for (int row = warp; row < R && (int64_t) tile * R + row < walk->n; row += CUDA_WARPS)
		{
			float	   *here = h + row * walk->row_h,
					   *there = in_device_memory(walk->state + ((int64_t) tile * R + row) * d);

			if (d % 4 == 0)
				ROLLED
				for (int i = 4 * lane; i < d; i += 4 * WARP)
					if (load)
						store_four(here + i, load_four(there + i));
					else
						store_four(there + i, load_four(here + i));
			else
				ROLLED
				for (int i = lane; i < d; i += WARP)
					if (load)
						here[i] = there[i];
					else
						there[i] = here[i];
		}
	}

	DEVICE void
	move_queries(bool load) const
	{
		/* rows are as long there as here, and follow each other */
		int			words = walk->row_q * (int) sizeof(T) / 4;
		int64_t		left = walk->n - (int64_t) tile * R;
		int			end = (left < R ? (int) left : R) * words;
		uint32_t   *here = (uint32_t *) q,
				   *there = in_device_memory(walk->query + (int64_t) tile * R * words);

		ROLLED
		for (int i = 4 * thread(); i < end; i += 4 * CUDA_THREADS)
			if (load)
				store_shared(here + i, load_words(there + i));
			else
				store_words(there + i, load_shared(here + i));
	}

	/* ---- the whole --------------------------------------------------------------------------- */

	/* One step of a chain, or all there is; again: more follow. */
	DEVICE void
	run_step(int step, bool again)
	{
		int			mode = walk->mode,
					l = walk->layer,
					streams = model->two_stream ? 2 : 1;
		bool		encodes = mode == CUDA_ENCODE,
					resumes = encodes && l > 0,
					asks = mode == CUDA_QUERY || mode == CUDA_CHAIN;
		float	   *raw = raw_outputs();

		describe(step);
		if (resumes)
		{
			move_state(true);
			move_queries(true);
		}
		else
			begin_tokens();
		sync_team(team);
		carry(resumes ? STAGE_ATTEND : STAGE_MLP, resumes ? (l - 1) * streams : 0,
			  encodes ? l * streams : -1, mode != CUDA_QUERY, asks, again, raw);
		if (asks && copy == 0)
			answer(Base::crowded ? raw_outputs() : raw);
		else if (encodes && (l < model->layers - 1 || (model->two_stream && l < model->layers)))
		{
			move_state(false);
			move_queries(false);
		}
		else if (mode == CUDA_HALVES)
			for (int item = thread(); item < R * model->width; item += CUDA_THREADS)
			{
				int64_t		i = (int64_t) tile * R + item / model->width;

				if (i < walk->n && rank == 0)
					walk->halves[i * model->width + item % model->width] =
						h[item / model->width * walk->row_h + item % model->width];
			}
	}

	/*
	 * No block writes into another one that has not begun or has ended: run_step() has a barrier of
	 * the team before the first stage, and every stage that writes into other blocks ends with one,
	 * or with a bell of each that tells that all of it has come.
	 */
	DEVICE void
	run(const CudaWalk *w)
	{
		bool		chain = w->mode == CUDA_CHAIN;

		begin(w);
		/* what ask_keys_early() leaves to the layer before */
		if (Base::copied && (w->mode != CUDA_APPEND || model->layers > 1))
			this->ask_early(0, 0, 3);
		ROLLED
		for (int step = chain ? w->first_step : 0; step < (chain ? w->last_step : 1); step++)
			run_step(step, step + 1 < (chain ? w->last_step : 1));
	}
};

template <class T, int R, int NV> KERNEL(CUDA_THREADS, CUDA_BESIDE(Precision<T>::code, R, NV))
cuda_walk(const GRID_CONSTANT CudaWalk walk)
{
	Walker<T, R, NV> walker;

	walker.run(&walk);
}

#endif							/* CUDA_WALK_H */
