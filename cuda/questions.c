/*
 * questions.c: requests to answers. Marginal questions about the same rows are computed together,
 * whatever they ask for; joint ones are in chains.c.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "host.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_ROWS 32768		/* queries of a launch */
#define LEAST_ROWS 64			/* and when memory is short */
#define MOST_QUERIES (INT32_MAX / 16)	/* steps and slots of a chain are counted in 32 bits */

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

/* Compute one chunk; answers and statuses go to the requests. */
static TnpStatus
answer_chunk(const Batch *b, const Chunk *c, TnpError *error)
{
	TnpDeviceEncoding *e = b->e;
	TnpDeviceModel *m = e->model;
	TnpDevice  *device = m->device;
	int			width = cuda_x_width(m, &e->stats);
	size_t		x_bytes = (size_t) c->n * width * sizeof(float),
				of_bytes = (size_t) c->n * sizeof(int),
				y_bytes = c->wants_y ? (size_t) c->n * sizeof(double) : 0,
				answers_bytes = (size_t) c->requests * sizeof(CudaAnswer),
				levels_bytes = (size_t) b->n_levels * sizeof(double),
				flags_bytes,
				out_bytes = (size_t) c->doubles * sizeof(double);
	CudaWalk	walk = cuda_walk_of(e, b->context, CUDA_QUERY);
	CudaPlan	plan;
	CudaAnswer *answers;
	float	   *x;
	double	   *levels,
			   *y,
			   *out;
	int		   *of,
			   *flags,
				used = 0,
				level = 0;
	int64_t		at = 0,
				done = 0,
				out_at = 0;
	size_t		in_bytes;
	char	   *in,
			   *in_device;
	GpuResult	result;
	TnpStatus	status;

	walk.n = c->n;
	walk.x_is_half = m->halves_on_host;
	walk.x_width = width;
	status = cuda_plan(m, walk.shared, 0, &walk, &plan, error);
	flags_bytes = (size_t) (c->requests + plan.arrived) * sizeof(int);
	in_bytes = cuda_piece(x_bytes) + cuda_piece(of_bytes) + cuda_piece(y_bytes) +
		cuda_piece(answers_bytes) + cuda_piece(levels_bytes) + cuda_piece(flags_bytes);
	if (status == TNP_OK)
		status = cuda_begin(device, in_bytes + cuda_piece(out_bytes) + cuda_piece(plan.raw_bytes) +
							cuda_piece(plan.params_bytes) + cuda_piece(plan.part_bytes),
							in_bytes + cuda_piece(out_bytes), error);
	if (status != TNP_OK)
		return status;

	/*
	 * what goes in lies in the same order on both sides and travels as one, zeroed flags at its
	 * end; so does what comes back, which begins with the flags
	 */
	in = cuda_staging(device, 0);
	in_device = cuda_scratch(device, 0);
	x = cuda_staging(device, x_bytes);
	of = cuda_staging(device, of_bytes);
	y = cuda_staging(device, y_bytes);
	answers = cuda_staging(device, answers_bytes);
	levels = cuda_staging(device, levels_bytes);
	walk.x = cuda_scratch(device, x_bytes);
	cuda_lean(m, &e->stats, walk.x, width, &walk);
	walk.answer_of = cuda_scratch(device, of_bytes);
	walk.y = cuda_scratch(device, y_bytes);
	walk.answers = cuda_scratch(device, answers_bytes);
	walk.levels = cuda_scratch(device, levels_bytes);
	flags = cuda_staging(device, flags_bytes);
	out = cuda_staging(device, out_bytes);
	walk.flags = cuda_scratch(device, flags_bytes);
	walk.arrived = (unsigned *) walk.flags + c->requests;
	walk.out = cuda_scratch(device, out_bytes);
	walk.raw = cuda_scratch(device, plan.raw_bytes);
	walk.params = cuda_scratch(device, plan.params_bytes);
	walk.part = cuda_scratch(device, plan.part_bytes);
	memset(flags, 0, flags_bytes);

	for (int i = 0; i < b->n; i++)
	{
		TnpRequest *r = b->requests[i];
		int64_t		from = at > c->first ? at : c->first,
					end = at + r->queries.n < c->first + c->n ? at + r->queries.n : c->first + c->n,
					n = end - from;

		if (n > 0)
		{
			bool		reduce = r->kind == TNP_REQUEST_REDUCE;

			answers[used] = (CudaAnswer) {
				.reductions = reduce ? (int) r->reductions : 0, .n_levels = r->n_levels,
				.level = level,
				.width = answer_width(m, r), .first = done, .out = out_at
			};
			if (reduce && (r->reductions & TNP_REDUCE_QUANTILES) != 0)
			{
				memcpy(levels + level, r->levels, (size_t) r->n_levels * sizeof(double));
				level += r->n_levels;
			}
			if (r->status == TNP_INTERRUPTED)
			{
				/*
				 * a value that the model cannot take fails this request and none else; its rows are
				 * computed as zeros
				 */
				TnpStatus	filled = cuda_fill_x(m, &e->stats, &r->queries, from - at, n, false,
												 x + (size_t) done * width, &r->error);

				if (filled == TNP_INTERRUPTED || filled == TNP_NO_MEMORY)
					return *error = r->error, filled;
				if (filled != TNP_OK)
					r->status = filled;
			}
			if (r->status != TNP_INTERRUPTED)
				memset(x + (size_t) done * width, 0, (size_t) n * width * sizeof(float));
			for (int64_t j = 0; j < n; j++)
			{
				of[done + j] = used;
				if (c->wants_y)
					y[done + j] = r->queries.y != NULL ? r->queries.y[from - at + j] : NAN;
			}
			out_at += n * answer_width(m, r);
			done += n;
			used++;
		}
		at += r->queries.n;
	}

	result = gpu_upload(in_device, in, in_bytes);
	if (result != GPU_OK)
		return cuda_failed(device, result, error);
	if ((status = cuda_launch(device, &plan, &walk, error)) != TNP_OK)
		return status;
	result = gpu_download(flags, walk.flags, cuda_piece(flags_bytes) + out_bytes);
	status = result == GPU_OK ? cuda_wait(device, error) : cuda_failed(device, result, error);
	if (status != TNP_OK)
		return status;

	at = used = 0;
	for (int i = 0; i < b->n; i++)
	{
		TnpRequest *r = b->requests[i];
		int64_t		from = at > c->first ? at : c->first,
					end = at + r->queries.n < c->first + c->n ? at + r->queries.n : c->first + c->n;

		if (from < end)
		{
			int			wide = answer_width(m, r);

			if (r->status == TNP_INTERRUPTED)
			{
				memcpy(r->answer + (from - at) * wide, out + answers[used].out,
					   (size_t) (end - from) * wide * sizeof(double));
				if (flags[used] != 0)
					r->status = tnp_fail(&r->error, TNP_BAD_VALUE,
										 "the model's prediction is not finite for these values");
			}
			used++;
		}
		at += r->queries.n;
	}
	return TNP_OK;
}

/* All queries of a batch, as many at a time as memory allows. */
static TnpStatus
answer_batch(const Batch *b, TnpError *error)
{
	int64_t		most = CHUNK_ROWS;

	for (int64_t first = 0; first < b->rows;)
	{
		int64_t		n = b->rows - first < most ? b->rows - first : most;
		Chunk		chunk = measure(b, first, n);
		TnpStatus	status = answer_chunk(b, &chunk, error);

		if (status == TNP_NO_MEMORY && n > LEAST_ROWS)
		{
			most = n / 2;
			continue;
		}
		if (cuda_again(b->e->model->device))
			continue;
		if (status != TNP_OK)
			return status;
		first += n;
	}
	for (int i = 0; i < b->n; i++)
		if (b->requests[i]->status == TNP_INTERRUPTED)
			b->requests[i]->status = TNP_OK;
	return TNP_OK;
}

/* What can be said of a request before anything is computed. */
static TnpStatus
check_request(const TnpDeviceEncoding *e, const TnpRequest *r, TnpError *error)
{
	int64_t		settled = e->prefix > e->stats.n0 ? e->prefix : e->stats.n0;
	TnpStatus	status;

	if (r->rows < settled || r->rows > e->n)
	{
		tnp_fail(error, TNP_BAD_ARGUMENT, "these rows are not an encoding of their own");
		tnp_detail(error, "first %lld of %lld rows, at least %lld needed", (long long) r->rows,
				   (long long) e->n, (long long) settled);
		return TNP_BAD_ARGUMENT;
	}
	if ((status = tnp_request_check(r, error)) != TNP_OK)
		return status;
	/* models with such a head are refused */
	if (r->kind == TNP_REQUEST_JOINT)
		return tnp_fail(error, TNP_BAD_ARGUMENT, "the model has no joint Gaussian");
	if (r->queries.n > MOST_QUERIES)
		return tnp_fail(error, TNP_BAD_ARGUMENT, "the number of rows is out of range");
	return cuda_rows_check(e, &r->queries, r->kind == TNP_REQUEST_SCORE, error);
}

static bool
is_marginal(const TnpRequest *r)
{
	return r->kind == TNP_REQUEST_PREDICT || r->kind == TNP_REQUEST_REDUCE;
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
		if (requests[i].status == TNP_INTERRUPTED && is_marginal(&requests[i])
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
		if (requests[i].status == TNP_INTERRUPTED && is_marginal(&requests[i]))
			status = answer_alike(e, n, requests, i, error);
	return status;
}

/* Whether answers depend on what the model's process learns from rows of the chain. */
static bool
learns_in_chains(const TnpDeviceEncoding *e, const TnpRequest *r)
{
	return e->model->model->config.process_chain && r->queries.n > 1
		&& (r->kind == TNP_REQUEST_SAMPLE || r->orders != TNP_AS_APPENDED);
}

/* A request with an answer of its own: a joint one, or one about rows that lack cells. */
static TnpStatus
answer_alone(TnpDeviceEncoding *e, TnpRequest *r, bool variants, TnpError *error)
{
	if (is_marginal(r))
		return cuda_answer_variants(e, r, error);
	if (variants)
		return tnp_fail(error, TNP_NOT_HERE,
						"the device has no chains of rows that lack cells");
	if (learns_in_chains(e, r))
		return tnp_fail(error, TNP_NOT_HERE,
						"the device has no chains that a process learns from");
	return r->kind == TNP_REQUEST_SAMPLE ? cuda_sample(e, r, error) : cuda_score(e, r, error);
}

TnpStatus
cuda_answer(TnpDeviceEncoding *e, int n, TnpRequest *requests, TnpError *error)
{
	TnpStatus	status = TNP_OK;

	for (int i = 0; i < n; i++)
	{
		requests[i].status = check_request(e, &requests[i], &requests[i].error);
		/* no status of its own yet */
		if (requests[i].status == TNP_OK)
			requests[i].status = TNP_INTERRUPTED;
	}
	for (int i = 0; status == TNP_OK && i < n; i++)
	{
		TnpRequest *r = &requests[i];
		bool		variants;

		if (r->status != TNP_INTERRUPTED)
			continue;
		variants = cuda_wants_variants(e, r);
		if (is_marginal(r) && !variants)
			continue;
		status = answer_alone(e, r, variants, error);
		if (status == TNP_OK)
			r->status = TNP_OK;
		else if (status != TNP_INTERRUPTED && status != TNP_NO_MEMORY && !e->model->device->lost)
		{
			r->status = status;
			r->error = *error;
			status = TNP_OK;
		}
	}
	return status == TNP_OK ? cuda_answer_marginals(e, n, requests, error) : status;
}
