/*
 * marginals.c: marginal questions about the same rows, computed together, whatever they ask for.
 *
 * Many queries are cut into chunks. While the device has one, the host makes the next one ready and
 * hands it over, on the other queue and in a room of its own, before it waits for the first. So a
 * copy of one chunk goes beside the launch of another, and the device, where it is the slower of
 * the two, always has something to do. What does not fit twice is answered chunk by chunk, in one
 * room.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "host.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * Queries of a launch, at least, of several: the time that the device takes for them is many times
 * that of a launch and two copies, and what no other work goes beside, the first chunk's making and
 * the last one's end, is small.
 */
#define CHUNK_ROWS 8192
#define TALLEST_TILE 64
#define LEAST_ROWS 64			/* when memory is short */

int64_t		cuda_chunk_rows = 0;

/* Marginal requests that are computed together: their queries one after the other. */
typedef struct Batch
{
	TnpDeviceEncoding *e;
	int			n;
	TnpRequest **requests;		/* [n] */
	int64_t		context;		/* rows */
	int64_t		rows;			/* queries of all */
	int			n_levels;		/* of all */
} Batch;

/* Doubles per query. */
static int
answer_width(const TnpDeviceModel *m, const TnpRequest *r)
{
	return r->kind == TNP_REQUEST_PREDICT ? m->shape.params : tnp_reduction_width(r);
}

/* One launch over queries [first, first + n) of the batch. */
typedef struct Chunk
{
	int64_t		first,
				n;
	int64_t		doubles;		/* of answers */
	int			requests;		/* that have queries here */
	bool		wants_y;
} Chunk;

/* What a launch over this chunk needs. */
static Chunk
measure(const Batch *b, int64_t first, int64_t n)
{
	Chunk		c = {first, n, 0, 0, false};
	int64_t		at = 0;

	for (int i = 0; i < b->n; i++)
	{
		const TnpRequest *r = b->requests[i];
		int64_t		from = at > first ? at : first,
					end = at + r->queries.n < first + n ? at + r->queries.n : first + n;

		at += r->queries.n;
		if (from >= end)
			continue;
		c.doubles += (end - from) * answer_width(b->e->model, r);
		c.requests++;
		c.wants_y = c.wants_y
			|| (r->kind == TNP_REQUEST_REDUCE && (r->reductions & TNP_REDUCE_LOG_DENSITY) != 0);
	}
	return c;
}

/* A chunk on its way: made ready in the room of a queue, then asked of the device there. */
typedef struct Flight
{
	int			queue;
	bool		flying;			/* asked of the device; its answers have not been taken */
	Chunk		chunk;
	/* in host memory: for each query, */
	float	   *x;				/* [n, width] */
	float	   *prior;			/* [n, prior width] */
	int		   *of;				/* [n] the request that it belongs to */
	double	   *y;				/* [n] its target, where one is wanted */
	/* for each request that has queries here, */
	CudaAnswer *answers;
	int		   *flags;			/* not 0: an answer is not finite */
	/* and of all */
	double	   *levels;
	double	   *out;
} Flight;

/* Where the chunk's queries [*from, *end) of a request whose first query is number `at` are. */
static bool
in_chunk(const Chunk *c, const TnpRequest *r, int64_t at, int64_t *from, int64_t *end)
{
	*from = at > c->first ? at : c->first;
	*end = at + r->queries.n < c->first + c->n ? at + r->queries.n : c->first + c->n;
	return *from < *end;
}

/* Wait for a chunk; answers and statuses go to the requests. */
static TnpStatus
land(const Batch *b, Flight *f, TnpError *error)
{
	TnpDeviceModel *m = b->e->model;
	TnpStatus	status = cuda_wait(m->device, f->queue, error);
	int64_t		at = 0,
				from,
				end;
	int			used = 0;

	if (status != TNP_OK)
		return status;
	f->flying = m->device->rooms[f->queue].busy = false;
	for (int i = 0; i < b->n; at += b->requests[i++]->queries.n)
	{
		TnpRequest *r = b->requests[i];
		int			wide = answer_width(m, r);

		if (!in_chunk(&f->chunk, r, at, &from, &end))
			continue;
		if (r->status == TNP_INTERRUPTED)
		{
			memcpy(r->answer + (from - at) * wide, f->out + f->answers[used].out,
				   (size_t) (end - from) * wide * sizeof(double));
			if (f->flags[used] != 0)
				r->status = tnp_fail(&r->error, TNP_BAD_VALUE,
									 "the model's prediction is not finite for these values");
		}
		used++;
	}
	return TNP_OK;
}

/*
 * Write the features of queries [first, first + n) of a request to x, and what the head takes a
 * share of to prior. A value that the model cannot take fails this request and none else; its rows
 * are computed as zeros.
 */
static TnpStatus
fill_queries(const Batch *b, TnpRequest *r, int64_t first, int64_t n, TnpTeam *team, float *x,
			 float *prior, TnpError *error)
{
	const TnpDeviceModel *m = b->e->model;
	const TnpStats *stats = &b->e->stats;

	if (r->status == TNP_INTERRUPTED)
	{
		TnpStatus	filled = cuda_fill_x(m, stats, &r->queries, first, n, false, team, x,
										 prior, &r->error);

		if (filled == TNP_INTERRUPTED || filled == TNP_NO_MEMORY)
			return *error = r->error, filled;
		if (filled != TNP_OK)
			r->status = filled;
	}
	if (r->status != TNP_INTERRUPTED)
	{
		memset(x, 0, (size_t) n * cuda_x_width(m, stats) * sizeof(float));
		memset(prior, 0, (size_t) n * cuda_prior_width(m, stats) * sizeof(float));
	}
	return TNP_OK;
}

/* Write a chunk's requests and queries to its host memory. */
static TnpStatus
fill_chunk(const Batch *b, Flight *f, TnpTeam *team, TnpError *error)
{
	const TnpDeviceModel *m = b->e->model;
	size_t		width = cuda_x_width(m, &b->e->stats),
				prior_width = cuda_prior_width(m, &b->e->stats);
	int64_t		at = 0,
				done = 0,
				out_at = 0,
				from,
				end;
	int			used = 0,
				level = 0;
	TnpStatus	status = TNP_OK;

	for (int i = 0; status == TNP_OK && i < b->n; at += b->requests[i++]->queries.n)
	{
		TnpRequest *r = b->requests[i];
		bool		reduce = r->kind == TNP_REQUEST_REDUCE;
		int64_t		n;

		if (!in_chunk(&f->chunk, r, at, &from, &end))
			continue;
		n = end - from;
		f->answers[used] = (CudaAnswer) {
			.reductions = reduce ? (int) r->reductions : 0, .n_levels = r->n_levels,
			.level = level,
			.width = answer_width(m, r), .first = done, .out = out_at
		};
		if (reduce && (r->reductions & TNP_REDUCE_QUANTILES) != 0)
		{
			memcpy(f->levels + level, r->levels, (size_t) r->n_levels * sizeof(double));
			level += r->n_levels;
		}
		status = fill_queries(b, r, from - at, n, team, f->x + (size_t) done * width,
							  f->prior + (size_t) done * prior_width, error);
		for (int64_t j = 0; j < n; j++)
		{
			f->of[done + j] = used;
			if (f->chunk.wants_y)
				f->y[done + j] = r->queries.y != NULL ? r->queries.y[from - at + j] : NAN;
		}
		out_at += n * answer_width(m, r);
		done += n;
		used++;
	}
	return status;
}

/* Make chunk f->chunk ready and ask the device about it. */
static TnpStatus
send(const Batch *b, Flight *f, TnpTeam *team, TnpError *error)
{
	TnpDeviceEncoding *e = b->e;
	TnpDeviceModel *m = e->model;
	TnpDevice  *device = m->device;
	const Chunk *c = &f->chunk;
	int			width = cuda_x_width(m, &e->stats);
	size_t		x_bytes = (size_t) c->n * width * sizeof(float),
				prior_bytes = (size_t) c->n * cuda_prior_width(m, &e->stats) * sizeof(float),
				of_bytes = (size_t) c->n * sizeof(int),
				y_bytes = c->wants_y ? (size_t) c->n * sizeof(double) : 0,
				answers_bytes = (size_t) c->requests * sizeof(CudaAnswer),
				levels_bytes = (size_t) b->n_levels * sizeof(double),
				flags_bytes,
				out_bytes = (size_t) c->doubles * sizeof(double),
				in_bytes;
	CudaWalk	walk = cuda_walk_of(e, b->context, CUDA_QUERY);
	CudaPlan	plan;
	char	   *in,
			   *in_device;
	GpuResult	result;
	TnpStatus	status;

	walk.n = c->n;
	walk.x_is_half = m->halves_on_host;
	walk.x_width = width;
	status = cuda_plan(m, walk.shared, 0, &walk, &plan, error);
	flags_bytes = (size_t) (c->requests + plan.arrived) * sizeof(int);
	in_bytes = cuda_piece(x_bytes) + cuda_piece(prior_bytes) + cuda_piece(of_bytes) +
		cuda_piece(y_bytes) + cuda_piece(answers_bytes) + cuda_piece(levels_bytes) +
		cuda_piece(flags_bytes);
	if (status == TNP_OK)
		status = cuda_begin(device, f->queue, in_bytes + cuda_piece(out_bytes) +
							cuda_piece(plan.raw_bytes) + cuda_piece(plan.params_bytes) +
							cuda_piece(plan.part_bytes) + cuda_piece(plan.state_bytes) +
							cuda_piece(plan.query_bytes), in_bytes + cuda_piece(out_bytes), error);
	if (status != TNP_OK)
		return status;

	/*
	 * what goes in lies in the same order on both sides and travels as one, zeroed flags at its
	 * end; so does what comes back, which begins with the flags
	 */
	in = cuda_staging(device, 0);
	in_device = cuda_scratch(device, 0);
	f->x = cuda_staging(device, x_bytes);
	f->prior = cuda_staging(device, prior_bytes);
	f->of = cuda_staging(device, of_bytes);
	f->y = cuda_staging(device, y_bytes);
	f->answers = cuda_staging(device, answers_bytes);
	f->levels = cuda_staging(device, levels_bytes);
	walk.x = cuda_scratch(device, x_bytes);
	cuda_lean(m, &e->stats, walk.x, cuda_scratch(device, prior_bytes), &walk);
	walk.answer_of = cuda_scratch(device, of_bytes);
	walk.y = cuda_scratch(device, y_bytes);
	walk.answers = cuda_scratch(device, answers_bytes);
	walk.levels = cuda_scratch(device, levels_bytes);
	f->flags = cuda_staging(device, flags_bytes);
	f->out = cuda_staging(device, out_bytes);
	walk.flags = cuda_scratch(device, flags_bytes);
	walk.arrived = (unsigned *) walk.flags + c->requests;
	walk.out = cuda_scratch(device, out_bytes);
	walk.raw = cuda_scratch(device, plan.raw_bytes);
	walk.params = cuda_scratch(device, plan.params_bytes);
	walk.part = cuda_scratch(device, plan.part_bytes);
	walk.state = cuda_scratch(device, plan.state_bytes);
	walk.query = cuda_scratch(device, plan.query_bytes);
	memset(f->flags, 0, flags_bytes);
	status = fill_chunk(b, f, team, error);
	if (status != TNP_OK)
		return status;

	result = gpu_upload(f->queue, in_device, in, in_bytes);
	if (result != GPU_OK)
		return cuda_failed(device, result, error);
	status = m->layered ? cuda_layers_answer(m, f->queue, &walk, error)
		: cuda_launch(device, f->queue, &plan, &walk, error);
	if (status != TNP_OK)
		return status;
	result = gpu_download(f->queue, f->flags, walk.flags, cuda_piece(flags_bytes) + out_bytes);
	if (result != GPU_OK)
		return cuda_failed(device, result, error);
	f->flying = device->rooms[f->queue].busy = true;
	return TNP_OK;
}

/* Queries of a chunk where there are several: as many as fill all multiprocessors some times. */
static int64_t
chunk_rows(const TnpDeviceModel *m)
{
	int64_t		wave = (int64_t) m->device->facts.multiprocessors * TALLEST_TILE;

	if (m->layered && cuda_chunk_rows == 0)
		return cuda_layers_chunk();
	return cuda_chunk_rows > 0 ? cuda_chunk_rows : (CHUNK_ROWS + wave - 1) / wave * wave;
}

/* All queries of a batch, in flights[0] and, beside it, flights[1]. */
static TnpStatus
fly(const Batch *b, TnpTeam *team, Flight *flights, TnpError *error)
{
	TnpDevice  *device = b->e->model->device;
	int64_t		most = chunk_rows(b->e->model);
	bool		both = b->rows > most;
	int			at = 0;
	TnpStatus	status = TNP_OK;

	/* what queue 0 was asked before need not have been awaited */
	if (both)
	{
		GpuResult	result = gpu_follow();

		if (result != GPU_OK)
			return cuda_failed(device, result, error);
	}
	for (int64_t first = 0; status == TNP_OK && first < b->rows;)
	{
		int64_t		n = b->rows - first < most ? b->rows - first : most;
		Flight	   *other = &flights[1 - at];

		flights[at].chunk = measure(b, first, n);
		status = send(b, &flights[at], team, error);
		if (status == TNP_OK)
		{
			first += n;
			at = both ? 1 - at : at;
			if (flights[at].flying)
				status = land(b, &flights[at], error);
		}
		else if (cuda_again(device))
			status = TNP_OK;
		else if (status == TNP_NO_MEMORY && both)
		{
			/* one room must do */
			both = false;
			at = 0;
			status = other->flying ? land(b, other, error) : TNP_OK;
		}
		else if (status == TNP_NO_MEMORY && n > LEAST_ROWS)
		{
			most = n / 2;
			status = TNP_OK;
		}
	}
	return status == TNP_OK && flights[1 - at].flying ? land(b, &flights[1 - at], error) : status;
}

static TnpStatus
answer_batch(const Batch *b, TnpError *error)
{
	TnpDevice  *device = b->e->model->device;
	TnpTeam    *team = cuda_fill_team(b->e->model, &b->e->stats, 0, b->rows, false);
	Flight		flights[GPU_QUEUES] = {{.queue = 0}, {.queue = 1}};
	TnpStatus	status = fly(b, team, flights, error);

	tnp_team_free(team);
	if (status != TNP_OK)
	{
		/* nothing may use the rooms when they are begun or given back next */
		if (flights[0].flying || flights[1].flying)
			(void) cuda_drain(device);
		device->rooms[0].busy = device->rooms[1].busy = false;
		return status;
	}
	for (int i = 0; i < b->n; i++)
		if (b->requests[i]->status == TNP_INTERRUPTED)
			b->requests[i]->status = TNP_OK;
	return TNP_OK;
}

/*
 * The marginal requests from number `first` on that have no status yet and ask about the same rows
 * as it does.
 */
static TnpStatus
answer_alike(TnpDeviceEncoding *e, int n, TnpRequest *requests, int first, TnpError *error)
{
	Batch		b = {e, 0, malloc((size_t) n * sizeof(TnpRequest *)), requests[first].rows, 0, 0};
	TnpStatus	status;

	if (b.requests == NULL)
		return tnp_no_memory(error);
	for (int i = first; i < n; i++)
		if (requests[i].status == TNP_INTERRUPTED && cuda_is_marginal(&requests[i])
			&& requests[i].rows == b.context)
		{
			b.requests[b.n++] = &requests[i];
			b.rows += requests[i].queries.n;
			if (requests[i].kind == TNP_REQUEST_REDUCE
				&& (requests[i].reductions & TNP_REDUCE_QUANTILES) != 0)
				b.n_levels += requests[i].n_levels;
		}
	status = answer_batch(&b, error);
	/* what the device refuses are these alone */
	if (status == TNP_BAD_CONFIG)
	{
		for (int i = 0; i < b.n; i++)
			if (b.requests[i]->status == TNP_INTERRUPTED)
			{
				b.requests[i]->status = status;
				b.requests[i]->error = *error;
			}
		status = TNP_OK;
	}
	free(b.requests);
	return status;
}

TnpStatus
cuda_answer_marginals(TnpDeviceEncoding *e, int n, TnpRequest *requests, TnpError *error)
{
	TnpStatus	status = TNP_OK;

	for (int i = 0; status == TNP_OK && i < n; i++)
		if (requests[i].status == TNP_INTERRUPTED && cuda_is_marginal(&requests[i]))
			status = answer_alike(e, n, requests, i, error);
	return status;
}

