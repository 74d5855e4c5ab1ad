/*
 * chains.c: joint draws and joint densities (docs/model-format.md section 9). A launch carries all
 * streams through all steps of a block; where a model's buffer is full, the finished block is
 * merged into an encoding of its own, stream by stream, and the chain goes on from there.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "host.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/random.h"

/* steps of one launch, so that interrupts are looked for between them */
#define LAUNCH_STEPS 64

size_t		cuda_own_bytes = (size_t) 256 << 20;
int64_t		cuda_order_steps = (int64_t) 1 << 20;

/* One block of a chain: streams that all start on the first `rows` rows of an encoding. */
typedef struct Chain
{
	TnpDeviceEncoding *e;
	int64_t		rows;
	int64_t		position;		/* chain rows that the encoding's buffer holds already */
	const TnpRows *queries;		/* of the block */
	int64_t		streams;
	bool		score;
	const int  *order;			/* [streams, queries->n] or NULL */
	uint64_t	seed,
				first_draw;
	int64_t		draw_step;
	double	   *out;			/* [streams, queries->n]: host */
} Chain;

/* Rows of E_x that all streams share: computed once. */
static TnpStatus
launch_halves(TnpDeviceModel *m, const CudaWalk *chain, int64_t n, const float *x, int width,
			  float *halves, TnpError *error)
{
	CudaWalk	walk = *chain;
	CudaPlan	plan;
	TnpStatus	status;

	walk.mode = CUDA_HALVES;
	walk.n = n;
	walk.x = x;
	walk.x_width = width;
	walk.x_is_half = 0;
	walk.halves = halves;
	status = cuda_plan(m, 0, 0, &walk, &plan, error);
	if (status != TNP_OK)
		return status;
	/* nothing attends here, so partial results have no place */
	return cuda_launch(m->device, 0, &plan, &walk, error);
}

/*
 * Steps of a stream that stand side by side in a tile: draws follow one another, given targets do
 * not wait.
 */
static int
pairs_of(const Chain *c)
{
	int			pairs = 1;

	while (c->score && pairs < 8 && pairs < c->queries->n)
		pairs *= 2;
	return pairs;
}

/* Streams [first, first + n) of a chain. */
static TnpStatus
run_streams(const Chain *c, int64_t first, int64_t n, TnpError *error)
{
	TnpDeviceEncoding *e = c->e;
	TnpDeviceModel *m = e->model;
	TnpDevice  *device = m->device;
	int			width = cuda_x_width(m, &e->stats),
				pairs = pairs_of(c);
	int64_t		steps = c->queries->n;
	bool		halves_on_device = !m->shape.concat && !m->halves_on_host;
	size_t		x_bytes = (size_t) steps * width * sizeof(float),
				prior_bytes = (size_t) steps * cuda_prior_width(m, &e->stats) * sizeof(float),
				y_bytes = c->score ? (size_t) steps * sizeof(double) : 0,
				target_bytes = c->score ? (size_t) steps * sizeof(float) : 0,
				order_bytes = c->order != NULL ? (size_t) (n * steps) * sizeof(int) : 0,
				halves_bytes = halves_on_device ? (size_t) steps * m->shape.width * sizeof(float)
					: 0,
				out_bytes = (size_t) (n * steps) * sizeof(double),
				in_bytes = cuda_piece(x_bytes) + cuda_piece(prior_bytes) + cuda_piece(y_bytes) +
					cuda_piece(target_bytes) + cuda_piece(order_bytes) + cuda_piece(sizeof(int));
	CudaWalk	walk = cuda_walk_of(e, c->rows, CUDA_CHAIN);
	CudaPlan	plan;
	char	   *in,
			   *in_device;
	float	   *x,
			   *prior,
			   *target,
			   *halves;
	double	   *y,
			   *out;
	int		   *order,
			   *flag;
	GpuResult	result;
	TnpStatus	status;

	walk.group = 8 / pairs;
	walk.n = n;
	walk.steps = (int) steps;
	walk.score = c->score;
	walk.seed = c->seed;
	walk.first_draw = c->first_draw + (uint64_t) first;
	walk.draw_step = c->draw_step;
	walk.position = m->model->config.positions > 0 ? (int) c->position : -1;
	walk.x_is_half = halves_on_device || m->halves_on_host;
	walk.x_width = halves_on_device ? m->shape.width : width;
	status = cuda_plan(m, walk.shared, steps * walk.group, &walk, &plan, error);
	if (status == TNP_OK)
		status = cuda_begin(device, 0, in_bytes + cuda_piece(halves_bytes) + cuda_piece(out_bytes) +
							cuda_piece(plan.raw_bytes) + cuda_piece(plan.params_bytes) +
							cuda_piece(plan.part_bytes) + cuda_piece(plan.own_bytes),
							in_bytes + cuda_piece(out_bytes), error);
	if (status != TNP_OK)
		return status;
	in = cuda_staging(device, 0);
	in_device = cuda_scratch(device, 0);
	x = cuda_staging(device, x_bytes);
	prior = cuda_staging(device, prior_bytes);
	y = cuda_staging(device, y_bytes);
	target = cuda_staging(device, target_bytes);
	order = cuda_staging(device, order_bytes);
	walk.x = cuda_scratch(device, x_bytes);
	cuda_lean(m, &e->stats, walk.x, cuda_scratch(device, prior_bytes), &walk);
	walk.y = cuda_scratch(device, y_bytes);
	walk.target = cuda_scratch(device, target_bytes);
	walk.order = cuda_scratch(device, order_bytes);
	flag = cuda_staging(device, sizeof(int));
	out = cuda_staging(device, out_bytes);
	/* a zeroed flag goes in last and comes back first */
	*flag = 0;
	walk.flags = cuda_scratch(device, sizeof(int));
	walk.chain_out = cuda_scratch(device, out_bytes);
	halves = cuda_scratch(device, halves_bytes);
	walk.raw = cuda_scratch(device, plan.raw_bytes);
	walk.params = cuda_scratch(device, plan.params_bytes);
	walk.part = cuda_scratch(device, plan.part_bytes);
	walk.own.k = cuda_scratch(device, plan.own_bytes);
	walk.own.v = walk.own.k + plan.own_bytes / 4 / (walk.own_words_k + walk.own_words_v) *
		walk.own_words_k;
	if (c->order == NULL)
		walk.order = NULL;

	status = cuda_fill_x(m, &e->stats, c->queries, 0, steps, false, NULL, x, prior, error);
	if (status != TNP_OK)
		return status;
	for (int64_t i = 0; c->score && i < steps; i++)
	{
		y[i] = c->queries->y[i];
		target[i] = tnp_scale_target(m->model, &e->stats, y[i]);
	}
	if (c->order != NULL)
		memcpy(order, c->order + first * steps, order_bytes);
	result = gpu_upload(0, in_device, in, in_bytes);
	/* slots of a started block of keys are read before they are written */
	if (result == GPU_OK)
		result = gpu_clear(walk.own.k, plan.own_bytes);
	if (result != GPU_OK)
		return cuda_failed(device, result, error);
	if (halves_on_device)
	{
		status = launch_halves(m, &walk, steps, walk.x, width, halves, error);
		if (status != TNP_OK)
			return status;
		walk.x = halves;
	}
	for (int step = 0, last = (int) ((steps + pairs - 1) / pairs); step < last;
		 step += LAUNCH_STEPS)
	{
		walk.first_step = step;
		walk.last_step = step + LAUNCH_STEPS < last ? step + LAUNCH_STEPS : last;
		status = cuda_launch(device, 0, &plan, &walk, error);
		if (status == TNP_OK && walk.last_step < last)
			status = cuda_wait(device, 0, error);
		if (status != TNP_OK)
			return status;
	}
	result = gpu_download(0, flag, walk.flags, cuda_piece(sizeof(int)) + out_bytes);
	status = result == GPU_OK ? cuda_wait(device, 0, error) : cuda_failed(device, result, error);
	if (status != TNP_OK)
		return status;
	if (*flag != 0)
		return tnp_fail(error, TNP_BAD_VALUE,
						"the model's prediction is not finite for these values");
	memcpy(c->out + first * steps, out, out_bytes);
	return TNP_OK;
}

/* All streams of a chain, as many at a time as their private keys allow. */
static TnpStatus
run_chain(const Chain *c, TnpError *error)
{
	CudaWalk	own;
	int64_t		group = 8 / pairs_of(c),
				most;

	/* the streams of 16 rows share whole blocks of slots */
	cuda_own_words(&c->e->model->shape, c->queries->n * group, &own);
	most = (int64_t) cuda_own_bytes / 4 * group / (own.own_words_k + own.own_words_v) / 8 * 8;
	most = most > 8 ? most : 8;
	for (int64_t first = 0; first < c->streams;)
	{
		int64_t		n = c->streams - first < most ? c->streams - first : most;
		TnpStatus	status = run_streams(c, first, n, error);

		if (status == TNP_NO_MEMORY && n > 8)
		{
			most = (n / 2 + 7) / 8 * 8;
			if (most >= n)
				most = 8;
			continue;
		}
		if (cuda_again(c->e->model->device))
			continue;
		if (status != TNP_OK)
			return status;
		first += n;
	}
	return TNP_OK;
}

/* Steps that may follow on `rows` rows before the block must be merged. */
static int64_t
chain_room(const TnpDeviceEncoding *e, int64_t rows)
{
	const TnpConfig *c = &e->model->model->config;

	if (c->context != TNP_FULL || c->buffer == 0)
		return INT64_MAX;
	return c->buffer - (rows - e->prefix);
}

static TnpRows
slice(const TnpRows *rows, int64_t first, int64_t n)
{
	return (TnpRows) {n, rows->n_features, rows->kinds, rows->x + first * rows->n_features,
					  rows->y != NULL ? rows->y + first : NULL, rows->n_classes, 0, 1};
}

/*
 * The steps from `done` on of one stream, whose rows and targets so far are `rows` (in the stream's
 * order): merge, encode again, go on. y receives draws, or, when scoring, log densities go to out.
 */
static TnpStatus
continue_stream(TnpDeviceEncoding *root, int64_t context, const TnpRows *rows, double *y,
				int64_t done, Chain chain, double *out, TnpError *error)
{
	TnpDeviceEncoding *e = NULL;
	TnpStatus	status = TNP_OK;
	int64_t		merged = 0;

	while (status == TNP_OK && done < rows->n)
	{
		TnpRows		more = slice(rows, merged, done - merged),
					block;
		TnpDeviceEncoding *next;
		int64_t		n;

		more.y = y + merged;
		status = cuda_encoding_merge(e != NULL ? e : root, e != NULL ? e->n : context, &more, &next,
									 error);
		if (status != TNP_OK)
			break;
		cuda_encoding_free(e);
		e = next;
		merged = done;
		n = rows->n - done < chain_room(e, e->n) ? rows->n - done : chain_room(e, e->n);
		block = slice(rows, done, n);
		block.y = chain.score ? y + done : NULL;
		chain.e = e;
		chain.rows = e->n;
		chain.position = 0;
		chain.queries = &block;
		chain.streams = 1;
		chain.order = NULL;
		chain.draw_step = done;
		chain.out = out + done;
		status = run_chain(&chain, error);
		done += n;
	}
	cuda_encoding_free(e);
	return status;
}

TnpStatus
cuda_sample(TnpDeviceEncoding *e, TnpRequest *r, TnpError *error)
{
	int64_t		m = r->queries.n,
				first = m < chain_room(e, r->rows) ? m : chain_room(e, r->rows);
	TnpRows		block = slice(&r->queries, 0, first);
	Chain		chain = {e, r->rows, r->rows - e->prefix, &block, r->draws, false, NULL, r->seed,
						 r->first_draw, 0, NULL};
	double	   *values;
	TnpStatus	status;

	if (m == 0)
		return TNP_OK;
	if (first == m)
	{
		chain.out = r->answer;
		return run_chain(&chain, error);
	}
	values = malloc((size_t) (r->draws * first) * sizeof(double));
	if (values == NULL)
		return tnp_no_memory(error);
	chain.out = values;
	status = run_chain(&chain, error);
	for (int64_t b = 0; status == TNP_OK && b < r->draws; b++)
	{
		double	   *y = r->answer + b * m;

		memcpy(y, values + b * first, (size_t) first * sizeof(double));
		chain.first_draw = r->first_draw + (uint64_t) b;
		status = continue_stream(e, r->rows, &r->queries, y, first, chain, y, error);
	}
	free(values);
	return status;
}

/* Order number `order` of n places (section 11): the given one for -1. */
static void
fill_order(int64_t n, uint64_t seed, int64_t order, int *place)
{
	for (int64_t i = 0; i < n; i++)
		place[i] = (int) i;
	for (int64_t i = n - 1; order >= 0 && i > 0; i--)
	{
		double		u[2];
		int64_t		other;
		int			keep = place[i];

		tnp_random(seed, (uint64_t) order, (uint32_t) i, TNP_STREAM_ORDERS, u);
		other = (int64_t) floor(u[0] * (double) (i + 1));
		place[i] = place[other];
		place[other] = keep;
	}
}

/* ln(exp(a) + exp(b)) */
static double
log_add(double a, double b)
{
	double		most = fmax(a, b);

	return isinf(most) ? most : most + log(exp(a - most) + exp(b - most));
}

/* One order whose blocks must be merged: rows in that order. steps receives the conditionals. */
static TnpStatus
score_long(TnpDeviceEncoding *e, const TnpRequest *r, const int *place, double *steps,
		   TnpError *error)
{
	int64_t		n = r->queries.n,
				first = n < chain_room(e, r->rows) ? n : chain_room(e, r->rows);
	int			features = r->queries.n_features;
	double	   *x = malloc((size_t) n * features * sizeof(double)),
			   *y = malloc((size_t) n * sizeof(double));
	TnpRows		rows = {n, features, r->queries.kinds, x, y, r->queries.n_classes, 0, 1},
				block;
	Chain		chain = {e, r->rows, r->rows - e->prefix, &block, 1, true, NULL, 0, 0, 0, steps};
	TnpStatus	status = x == NULL || y == NULL ? tnp_no_memory(error) : TNP_OK;

	if (status == TNP_OK)
	{
		for (int64_t i = 0; i < n; i++)
		{
			memcpy(x + i * features, r->queries.x + (int64_t) place[i] * features,
				   (size_t) features * sizeof(double));
			y[i] = r->queries.y[place[i]];
		}
		block = slice(&rows, 0, first);
		status = run_chain(&chain, error);
	}
	if (status == TNP_OK)
		status = continue_stream(e, r->rows, &rows, y, first, chain, steps, error);
	free(x);
	free(y);
	return status;
}

TnpStatus
cuda_score(TnpDeviceEncoding *e, TnpRequest *r, TnpError *error)
{
	int64_t		n = r->queries.n,
				orders = r->orders > 0 ? r->orders : 1,
				most = n < cuda_order_steps ? cuda_order_steps / (n > 0 ? n : 1) : 1,
				portion = orders < most ? orders : most;
	int		   *place;
	double	   *steps,
				total = -INFINITY;
	TnpStatus	status = TNP_OK;

	r->answer[0] = 0;
	if (n == 0)
		return TNP_OK;
	for (int64_t i = 0; i < n; i++)
		if (!isfinite(tnp_scale_target(e->model->model, &e->stats, r->queries.y[i])))
			return tnp_fail(error, TNP_BAD_VALUE, "a target is too large for the model");
	place = malloc((size_t) (portion * n) * sizeof(int));
	steps = malloc((size_t) (portion * n) * sizeof(double));
	if (place == NULL || steps == NULL)
		status = tnp_no_memory(error);
	for (int64_t first = 0; status == TNP_OK && first < orders; first += portion)
	{
		int64_t		now = orders - first < portion ? orders - first : portion;

		for (int64_t o = 0; o < now; o++)
			fill_order(n, r->seed, r->orders > 0 ? first + o : -1, place + o * n);
		if (n <= chain_room(e, r->rows))
		{
			Chain		chain = {e, r->rows, r->rows - e->prefix, &r->queries, now, true, place, 0,
								 0, 0, steps};

			status = run_chain(&chain, error);
		}
		else
			for (int64_t o = 0; status == TNP_OK && o < now; o++)
				status = score_long(e, r, place + o * n, steps + o * n, error);
		for (int64_t o = 0; status == TNP_OK && o < now; o++)
		{
			double		joint = 0;

			for (int64_t i = 0; i < n; i++)
				joint += steps[o * n + i];
			total = log_add(total, joint);
		}
	}
	if (status == TNP_OK)
		r->answer[0] = r->orders > 0 ? total - log((double) orders) : total;
	free(place);
	free(steps);
	return status;
}
