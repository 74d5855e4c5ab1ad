/*
 * window.c: posterior.regress(y, x…) OVER (…): the frame's rows are the context, the current row is the query.
 *
 * Rows of the frame whose target is NULL are not context. A frame that starts at UNBOUNDED PRECEDING and has a moving end grows: its rows are
 * encoded under the canonical prefix rule and the encoding is carried from row to row. In every other frame all rows see each other,
 * and the encoding is made anew when the frame's content has changed. With fewer rows than the model needs, or none, the answer is NULL.
 *
 * State lives in the partition's memory and ends with it.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "ask.h"
#include "bridge.h"
#include "call.h"
#include "distribution.h"

#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "utils/memutils.h"
#include "windowapi.h"

/* What is carried from row to row of a partition; zeroed at its start. */
typedef struct Window
{
	PosteriorModel *model;
	PosteriorEncoding *encoding;	/* of `rows`, or NULL */
	PosteriorRows *rows;		/* context rows of the current frame */
	PosteriorRows *last;		/* the other buffer: the previous frame's rows */
	PosteriorRows *query;		/* one row */
	int64		seen;			/* rows of a growing frame that have been read, with a target or not */
	int			kernels;
} Window;

static void
forget_encoding(Window *w)
{
	PosteriorEncoding *e = w->encoding;

	w->encoding = NULL;
	if (e != NULL)
		posterior_encoding_release(e);
}

static void
end_partition(void *window)
{
	forget_encoding(window);
}

/* Whether the frame clause makes frames that only ever grow. */
static bool
frame_grows(WindowObject object)
{
	int			options = ((PosteriorWindowHead *) object)->winstate->frameOptions;

	return (options & FRAMEOPTION_START_UNBOUNDED_PRECEDING) != 0
		&& (options & FRAMEOPTION_END_UNBOUNDED_FOLLOWING) == 0
		&& (options & FRAMEOPTION_EXCLUSION) == 0;
}

static void
start_partition(Window *w, FunctionCallInfo fcinfo)
{
	MemoryContext memory = GetMemoryChunkContext(w);
	MemoryContextCallback *callback = MemoryContextAlloc(memory, sizeof(MemoryContextCallback));
	Oid			types[FUNC_MAX_ARGS];
	int			n = posterior_argument_types(fcinfo, 1, types);

	w->rows = posterior_rows_make(memory, n, types);
	w->last = posterior_rows_make(memory, n, types);
	w->query = posterior_rows_make(memory, n, types);
	callback->func = end_partition;
	callback->arg = w;
	MemoryContextRegisterResetCallback(memory, callback);
	w->model = posterior_model_pin(posterior_model_name, memory);
	w->kernels = posterior_kernels;
}

/* Read the frame from row `from` on into rows, those with a target; returns the number of rows in the frame. */
static int64
read_frame(WindowObject object, int64 from, PosteriorRows *rows)
{
	for (int64 position = from;; position++)
	{
		bool		isnull,
					isout;
		Datum		y;
		double	   *x,
					target;

		if (position > INT32_MAX)
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("too many rows in a window frame")));
		y = WinGetFuncArgInFrame(object, 0, (int) position, WINDOW_SEEK_HEAD, false, &isnull, &isout);
		if (isout)
			return position;
		CHECK_FOR_INTERRUPTS();
		if (isnull)
			continue;
		target = posterior_check_target(DatumGetFloat8(y));
		x = posterior_rows_next(rows);
		for (int f = 0; f < rows->n_features; f++)
		{
			Datum		value = WinGetFuncArgInFrame(object, 1 + f, (int) position, WINDOW_SEEK_HEAD, false, &isnull, &isout);

			x[f] = posterior_feature_cell(&rows->features[f], value, isnull, f + 1);
		}
		rows->y[rows->n++] = target;
	}
}

/* Encode rows as a growing or as a whole frame; NULL when they are too few. */
static PosteriorEncoding *
encode(Window *w, const PosteriorRows *rows, bool grows)
{
	const TnpModel *model = w->model->model;
	PosteriorWanted wanted = {.model = w->model,.classes = rows->classes,.rows = posterior_rows_view(rows, true),
	.prefix = grows ? tnp_canonical_prefix(model, rows->n) : tnp_whole_prefix(model, rows->n)};

	if (rows->n < Max(tnp_model_info(model)->min_rows, 1))
		return NULL;
	return posterior_encoding_fresh(&wanted);
}

static bool
same_rows(const PosteriorRows *a, const PosteriorRows *b)
{
	return a->n == b->n && (a->n == 0 || (memcmp(a->x, b->x, a->n * a->n_features * sizeof(double)) == 0
										  && memcmp(a->y, b->y, a->n * sizeof(double)) == 0));
}

/* Bring a growing frame's encoding up to date: read what is new and append it. */
static void
follow_growing(Window *w, WindowObject object)
{
	int64		known = w->rows->n;
	TnpRows		fresh;

	w->seen = read_frame(object, w->seen, w->rows);
	if (w->encoding == NULL)
		w->encoding = encode(w, w->rows, true);
	else if (w->rows->n > known)
	{
		fresh = posterior_rows_view(w->rows, true);
		fresh.n = w->rows->n - known;
		fresh.x += known * w->rows->n_features;
		fresh.y += known;
		posterior_encoding_grow(w->encoding, &fresh);
	}
}

/* Bring any other frame's encoding up to date: read all of it, encode when it has changed. */
static void
follow_whole(Window *w, WindowObject object)
{
	PosteriorRows *rows = w->last;

	rows->n = 0;
	read_frame(object, 0, rows);
	w->last = w->rows;
	w->rows = rows;
	if (w->encoding != NULL && same_rows(w->rows, w->last))
		return;
	forget_encoding(w);
	w->encoding = encode(w, w->rows, false);
}

/* What is asked for the current row. */
static TnpRequest
make_request(const Window *w, double *params)
{
	TnpRequest	request = {.kind = TNP_REQUEST_PREDICT,.queries = posterior_rows_view(w->query, false),.answer = params};

	request.queries.n = 1;
	return request;
}

/* The answer to the query; false when there is no encoding to ask. */
static bool
answer(Window *w, PosteriorEncoding *encoding, double *params)
{
	TnpRequest	request = make_request(w, params);

	if (encoding == NULL)
		return false;
	posterior_ask(encoding, &request);
	return true;
}

/* The same answer from nothing but the frame. The encoding is w's while it exists, so that an error does not leak it. */
static bool
answer_from_scratch(Window *w, WindowObject object, bool grows, double *params)
{
	bool		some;

	forget_encoding(w);
	w->rows->n = w->seen = 0;
	w->seen = read_frame(object, 0, w->rows);
	w->encoding = encode(w, w->rows, grows);
	some = answer(w, w->encoding, params);
	if (posterior_cache_mode == POSTERIOR_CACHE_OFF)
		forget_encoding(w);
	return some;
}

/* Answer from the carried encoding, and in verify mode once more from scratch, keeping the carried one. */
static bool
answer_carried(Window *w, WindowObject object, bool grows, int size, double *params)
{
	bool		some;

	if (grows)
		follow_growing(w, object);
	else
		follow_whole(w, object);
	some = answer(w, w->encoding, params);
	if (posterior_cache_mode == POSTERIOR_CACHE_VERIFY)
	{
		PosteriorRows *rows = w->last;
		double	   *again = palloc(size * sizeof(double));
		bool		also;
		Window		scratch = *w;

		/* read into the spare buffer; compare answers, then restore it */
		rows->n = 0;
		read_frame(object, 0, rows);
		scratch.rows = rows;
		scratch.encoding = encode(&scratch, rows, grows);
		also = scratch.encoding != NULL;
		if (also != some)
			elog(ERROR, "a frame has an answer from the cache or from scratch, but not both");
		if (also)
		{
			TnpRequest	request = make_request(w, again);

			posterior_ask_fresh(scratch.encoding, w->encoding, &request);
		}
		if (some)
			posterior_verify("a prediction over a frame", size, params, again, posterior_answered_exactly(w->encoding));
		pfree(again);
	}
	return some;
}

PG_FUNCTION_INFO_V1(posterior_regress);
Datum
posterior_regress(PG_FUNCTION_ARGS)
{
	WindowObject object = PG_WINDOW_OBJECT();
	Window	   *w = WinGetPartitionLocalMemory(object, sizeof(Window));
	TnpDistributionKind kind;
	double	   *x,
			   *params;
	bool		some;
	int			n,
				size;

	if (w->model == NULL)
		start_partition(w, fcinfo);
	x = posterior_rows_next(w->query);
	for (int f = 0; f < w->query->n_features; f++)
	{
		bool		isnull;
		Datum		value = WinGetFuncArgCurrent(object, 1 + f, &isnull);

		x[f] = posterior_feature_cell(&w->query->features[f], value, isnull, f + 1);
	}
	tnp_answer_shape(w->model->model, &kind, &n);
	size = tnp_distribution_size(kind, n);
	params = palloc(size * sizeof(double));
	if (posterior_cache_mode == POSTERIOR_CACHE_OFF)
		some = answer_from_scratch(w, object, frame_grows(object), params);
	else
		some = answer_carried(w, object, frame_grows(object), size, params);
	if (!some)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(posterior_make_distribution(kind, n, params, NULL, 0));
}
