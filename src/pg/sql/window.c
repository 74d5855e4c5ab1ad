/*
 * window.c: posterior.regress(y, x…) OVER (…) and posterior.classify(label, x…) OVER (…): the
 * frame's rows are the context, the current row is the query.
 *
 * Rows of the frame whose target is NULL are not context. A frame that starts at UNBOUNDED
 * PRECEDING and has a moving end grows: its rows are encoded under the canonical prefix rule and
 * the encoding is carried from row to row. In every other frame all rows see each other, and the
 * encoding is made anew when the frame's content has changed; with models whose rows can be taken
 * over, of the rows that have come and gone (tnp_revise).
 *
 * With fewer rows than the model needs, the answer is NULL. A model that needs none answers an
 * empty frame with its prior, as it does a context of 0 rows; labels have no prior, because a frame
 * without rows has no labels.
 *
 * Where all rows of the partition have the same frame, the partition, rows are answered ahead in
 * blocks: as many as have been answered before, so that a query that reads only the first rows does
 * not pay for many.
 *
 * The classes of a frame are the labels of its rows: where a growing frame gains a label, its rows
 * are encoded anew.
 *
 * State lies in the partition's memory and ends with it.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/cache/execute.h"
#include "pg/base/bridge.h"
#include "pg/sql/call_site.h"
#include "pg/sql/window.h"
#include "pg/types/distribution_value.h"
#include "pg/models/row_limit.h"
#include "pg/rows/targets.h"

#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "utils/memutils.h"
#include "windowapi.h"

#define MOST_QUERIES 256		/* rows answered at once */

bool		posterior_leak_notice = true;

/* What is carried from row to row of a partition; zeroed at its start. */
typedef struct Window
{
	PosteriorModel *model;
	bool		labelled;		/* classify */
	PosteriorLabelType label;	/* then: how labels are read */
	PosteriorContextHandle *encoding;	/* of `rows`, or NULL */
	PosteriorRows *rows;		/* context rows of the current frame */
	PosteriorRows *last;		/* the other buffer: the previous frame's rows */
	bool		grows,			/* frames only ever grow */
				same,			/* all rows have one frame */
				tells;			/* frames contain the current row */
	/* rows of a growing frame that have been read, with a target or not */
	int64		seen;
	PosteriorRows *queries;		/* the rows that were asked about last, in a block */
	int64		first;			/* their first in the partition */
	TnpDistributionKind kind;	/* of the answers */
	int			components,
				size;
	double	   *answers;		/* [n queries, size] */
	bool		some;			/* there are any */
} Window;

static void
forget_encoding(Window *w)
{
	PosteriorContextHandle *e = w->encoding;

	w->encoding = NULL;
	if (e != NULL)
		posterior_handle_release(e);
}

static void
end_partition(void *window)
{
	forget_encoding(window);
}

/*
 * What the frame clause makes of frames. Without an order all rows are peers of the current one, so
 * that a frame that ends with these is the partition.
 */
static void
classify_frames(Window *w, WindowObject object)
{
	WindowAggState *state = ((PosteriorWindowHead *) object)->winstate;
	int			options = state->frameOptions;
	bool whole_end =
			 (options & FRAMEOPTION_END_UNBOUNDED_FOLLOWING) != 0
			 || ((options & FRAMEOPTION_END_CURRENT_ROW) != 0 && (options & FRAMEOPTION_ROWS) == 0
				 && castNode(WindowAgg, state->ss.ps.plan)->ordNumCols == 0),
		 from_start = (options & FRAMEOPTION_START_UNBOUNDED_PRECEDING) != 0
				   && (options & FRAMEOPTION_EXCLUSION) == 0;

	w->tells = (options
				& (FRAMEOPTION_START_UNBOUNDED_PRECEDING | FRAMEOPTION_START_OFFSET_PRECEDING
				   | FRAMEOPTION_START_CURRENT_ROW))
				!= 0
			&& (options
				& (FRAMEOPTION_END_UNBOUNDED_FOLLOWING | FRAMEOPTION_END_OFFSET_FOLLOWING
				   | FRAMEOPTION_END_CURRENT_ROW))
				   != 0
			&& (options & (FRAMEOPTION_EXCLUDE_CURRENT_ROW | FRAMEOPTION_EXCLUDE_GROUP)) == 0;
	w->same = from_start && whole_end;
	w->grows = from_start && !whole_end;
}

/* Labels for rows of a frame. */
static PosteriorLabels *
no_labels(const Window *w, MemoryContext memory)
{
	return posterior_labels_make(memory, w->label.base, tnp_model_info(w->model->model)->n_classes);
}

static void
start_partition(Window *w, WindowObject object, FunctionCallInfo fcinfo, bool labelled)
{
	MemoryContext memory = GetMemoryChunkContext(w);
	MemoryContextCallback *callback = MemoryContextAlloc(memory, sizeof(MemoryContextCallback));
	Oid			types[FUNC_MAX_ARGS];
	int			n = posterior_argument_types(fcinfo, 1, types);

	w->rows = posterior_rows_make(memory, n, types);
	w->last = posterior_rows_make(memory, n, types);
	w->queries = posterior_rows_make(memory, n, types);
	callback->func = end_partition;
	callback->arg = w;
	MemoryContextRegisterResetCallback(memory, callback);
	w->labelled = labelled;
	classify_frames(w, object);
	if (labelled)
		posterior_label_type_init(&w->label, get_fn_expr_argtype(fcinfo->flinfo, 0), memory);
	/* last: this is what says that the partition has begun */
	w->model =
		posterior_model_pin(labelled ? posterior_class_model_name : posterior_model_name, memory);
	posterior_check_model_labels(w->model->model, w->model->name, labelled);
	posterior_check_model_targets(w->model->model, w->model->name, 1);
	tnp_answer_shape(w->model->model, &w->kind, &w->components);
	w->size = tnp_distribution_size(w->kind, w->components);
	if (labelled)
	{
		w->rows->labels = no_labels(w, memory);
		w->last->labels = no_labels(w, memory);
	}
}

/* Forget the rows of a frame. */
static void
frame_is_empty(PosteriorRows *rows)
{
	rows->n = 0;
	if (rows->labels != NULL)
		posterior_labels_reset(rows->labels);
}

/* The target of a row of the frame; of a label, its number. */
static double
read_target(Window *w, Datum y, PosteriorRows *rows)
{
	char	   *text;
	int			number;

	if (!w->labelled)
		return posterior_check_target(DatumGetFloat8(y));
	text = posterior_label_text(&w->label, y);
	number = posterior_labels_add(rows->labels, text);
	pfree(text);
	return number;
}

/*
 * Read the frame from row `from` on into rows, those with a target; returns the number of rows in
 * the frame.
 */
static int64
read_frame(Window *w, WindowObject object, int64 from, PosteriorRows *rows)
{
	int64		most = posterior_row_limit_of(w->model);

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
		y = WinGetFuncArgInFrame(object, 0, (int) position, WINDOW_SEEK_HEAD, false, &isnull,
								 &isout);
		if (isout)
			return position;
		CHECK_FOR_INTERRUPTS();
		if (isnull)
			continue;
		target = read_target(w, y, rows);
		x = posterior_rows_next(rows);
		for (int f = 0; f < rows->n_features; f++)
		{
			Datum value = WinGetFuncArgInFrame(object, 1 + f, (int) position, WINDOW_SEEK_HEAD,
											   false, &isnull, &isout);

			x[f] = posterior_feature_cell(&rows->features[f], value, isnull, f + 1);
		}
		rows->y[rows->n++] = target;
		if (rows->n > most)
			posterior_beyond_row_limit(w->model, "a window frame", rows->n_features);
	}
}

/*
 * The engine's view of rows from `from` on; y and the list of labels are made in the current memory
 * context.
 */
static TnpRows
view_rows(const PosteriorRows *rows, int64 from, PosteriorLabelList *list)
{
	TnpRows		view = posterior_rows_view(rows, true);

	*list = (PosteriorLabelList) {0, 0, NULL};
	view.n -= from;
	view.x += from * rows->n_features;
	view.y += from;
	if (rows->labels != NULL)
	{
		view.y = posterior_rows_classes(rows, from, list);
		view.n_classes = list->n;
	}
	return view;
}

static int64
frame_prefix(const Window *w, const PosteriorRows *rows)
{
	const TnpModel *model = w->model->model;

	return w->grows ? tnp_canonical_prefix(model, rows->n) : tnp_whole_prefix(model, rows->n);
}

static bool
frame_suffices(const Window *w, const PosteriorRows *rows)
{
	return rows->n >= tnp_model_info(w->model->model)->min_rows && (!w->labelled || rows->n > 0);
}

/* Encode rows of a growing or of a whole frame; NULL when they are too few. */
static PosteriorContextHandle *
frame_encode(Window *w, const PosteriorRows *rows)
{
	PosteriorLabelList list;
	PosteriorLookup lookup = {.model = w->model,.kinds = rows->kinds,
	.prefix = frame_prefix(w, rows)};

	if (!frame_suffices(w, rows))
		return NULL;
	lookup.rows = view_rows(rows, 0, &list);
	lookup.labels = list;
	return posterior_handle_build_uncached(&lookup);
}

/* Whether equal numbers stand for equal labels. */
static bool
same_labels(const PosteriorLabels *a, const PosteriorLabels *b)
{
	if (a->n != b->n)
		return false;
	for (int i = 0; i < a->n; i++)
		if (strcmp(a->text[i], b->text[i]) != 0)
			return false;
	return true;
}

static bool
same_rows(const PosteriorRows *a, const PosteriorRows *b)
{
	return a->n == b->n
		&& (a->n == 0
			|| (memcmp(a->x, b->x, a->n * a->n_features * sizeof(double)) == 0
				&& memcmp(a->y, b->y, a->n * sizeof(double)) == 0))
		&& (a->labels == NULL || same_labels(a->labels, b->labels));
}

/* Bring a growing frame's encoding up to date: read what is new and append it. */
static void
follow_growing(Window *w, WindowObject object)
{
	int64		known = w->rows->n;
	int			known_labels = w->labelled ? w->rows->labels->n : 0;
	PosteriorLabelList list;
	TnpRows		fresh;

	w->seen = read_frame(w, object, w->seen, w->rows);
	/* another label may move the others */
	if (w->labelled && w->rows->labels->n > known_labels)
		forget_encoding(w);
	if (w->encoding == NULL)
		w->encoding = frame_encode(w, w->rows);
	else if (w->rows->n > known)
	{
		fresh = view_rows(w->rows, known, &list);
		posterior_handle_grow(w->encoding, &fresh);
	}
}

/* Make the frame's encoding from that of the previous frame. False where it is to be made anew. */
static bool
frame_revise(Window *w)
{
	TnpRows		rows = posterior_rows_view(w->rows, true);

	return w->encoding != NULL && !w->labelled && tnp_model_info(w->model->model)->revisable
		&& frame_suffices(w, w->rows)
		&& posterior_handle_revise(w->encoding, &rows, frame_prefix(w, w->rows));
}

/* Bring any other frame's encoding up to date: read all of it, encode when it has changed. */
static void
follow_whole(Window *w, WindowObject object)
{
	PosteriorRows *rows = w->last;

	frame_is_empty(rows);
	read_frame(w, object, 0, rows);
	w->last = w->rows;
	w->rows = rows;
	if (w->encoding != NULL && same_rows(w->rows, w->last))
		return;
	if (frame_revise(w))
		return;
	forget_encoding(w);
	w->encoding = frame_encode(w, w->rows);
}

/* Read the current row, and those that follow it in its partition, `most` in all, as queries. */
static void
read_queries(Window *w, WindowObject object, int64 most)
{
	PosteriorRows *queries = w->queries;

	queries->n = 0;
	while (queries->n < most)
	{
		double	   *x = posterior_rows_next(queries);

		for (int f = 0; f < queries->n_features; f++)
		{
			bool		isnull,
						isout;
			Datum value = WinGetFuncArgInPartition(object, 1 + f, (int) queries->n,
												   WINDOW_SEEK_CURRENT, false, &isnull, &isout);

			if (isout)
				return;
			x[f] = posterior_feature_cell(&queries->features[f], value, isnull, f + 1);
		}
		queries->n++;
	}
}

static TnpRequest
make_request(const Window *w, double *answers)
{
	TnpRows		queries = posterior_rows_view(w->queries, false);

	queries.before = TNP_UNNUMBERED;
	return (TnpRequest) {.kind = TNP_REQUEST_PREDICT,.queries = queries,.answer = answers};
}

/* The answers to the queries; false when there is no encoding to ask. */
static bool
frame_answer(Window *w, PosteriorContextHandle *encoding)
{
	TnpRequest	request = make_request(w, w->answers);

	if (encoding == NULL)
		return false;
	posterior_execute(encoding, &request);
	return true;
}

/*
 * The answers from nothing but the frame, for comparison. The encoding is w's while it exists, so
 * that an error does not leak it.
 */
static bool
answer_from_scratch(Window *w, WindowObject object)
{
	bool		some;

	forget_encoding(w);
	frame_is_empty(w->rows);
	w->seen = read_frame(w, object, 0, w->rows);
	w->encoding = frame_encode(w, w->rows);
	some = frame_answer(w, w->encoding);
	if (posterior_cache_mode == POSTERIOR_CACHE_OFF)
		forget_encoding(w);
	return some;
}

/*
 * Answer from the carried encoding, and in verify mode once more from scratch, keeping the carried
 * one.
 */
static bool
answer_carried(Window *w, WindowObject object)
{
	bool		some;

	if (w->grows)
		follow_growing(w, object);
	else if (!w->same || w->encoding == NULL)
		follow_whole(w, object);
	some = frame_answer(w, w->encoding);
	if (posterior_cache_mode == POSTERIOR_CACHE_VERIFY)
	{
		PosteriorRows *rows = w->last;
		int			size = (int) w->queries->n * w->size;
		double	   *again = palloc(size * sizeof(double));
		bool		also;
		Window		scratch = *w;

		/* read into the spare buffer; compare answers, then restore it */
		frame_is_empty(rows);
		read_frame(w, object, 0, rows);
		scratch.rows = rows;
		scratch.encoding = frame_encode(&scratch, rows);
		also = scratch.encoding != NULL;
		if (also != some)
			elog(ERROR, "a frame has an answer from the cache or from scratch, but not both");
		if (also)
		{
			TnpRequest	request = make_request(w, again);

			posterior_execute_uncached(scratch.encoding, w->encoding, &request);
		}
		if (some)
			posterior_verify("a prediction over a frame", size, w->answers, again,
							 posterior_executed_exactly(w->encoding));
		pfree(again);
	}
	return some;
}

/*
 * Answer the current row, at this position of the partition, and, where all have one frame, rows
 * after it.
 */
static void
answer_block(Window *w, WindowObject object, int64 position)
{
	bool		alone = !w->same || posterior_cache_mode == POSTERIOR_CACHE_OFF;

	read_queries(w, object, alone ? 1 : Max(Min(position, MOST_QUERIES), 1));
	if (w->answers != NULL)
		pfree(w->answers);
	w->answers =
		MemoryContextAlloc(GetMemoryChunkContext(w), w->queries->n * w->size * sizeof(double));
	w->some = posterior_cache_mode == POSTERIOR_CACHE_OFF ? answer_from_scratch(w, object)
														  : answer_carried(w, object);
	w->first = position;
}

/*
 * A row's prediction from a frame that holds the row and its target is none: tell it once per call
 * in a statement (fn_extra).
 */
static void
notice_leak(Window *w, WindowObject object, FmgrInfo *call)
{
	bool		isnull;

	if (!w->tells || !posterior_leak_notice || call->fn_extra != NULL)
		return;
	WinGetFuncArgCurrent(object, 0, &isnull);
	if (isnull)
		return;
	call->fn_extra = call;
	ereport(NOTICE,
			(errmsg("the frame contains the current row with its target"),
			 errdetail("The answer has seen what it predicts, and bands are too good to be true."),
			 errhint("End the frame with 1 PRECEDING, or add EXCLUDE CURRENT ROW. SET "
					 "posterior.leak_notice = off if this is meant.")));
}

/* Both functions. */
static Datum
answer_row(FunctionCallInfo fcinfo, bool labelled)
{
	WindowObject object = PG_WINDOW_OBJECT();
	Window	   *w = WinGetPartitionLocalMemory(object, sizeof(Window));
	int64		position = WinGetCurrentPosition(object);
	PosteriorLabelList list = {0, 0, NULL};

	if (w->model == NULL)
		start_partition(w, object, fcinfo, labelled);
	notice_leak(w, object, fcinfo->flinfo);
	if (position >= w->first + w->queries->n)
		answer_block(w, object, position);
	if (!w->some)
		PG_RETURN_NULL();
	if (labelled)
	{
		int			class[POSTERIOR_MOST_LABELS];

		list = posterior_labels_order(w->rows->labels, class);
	}
	PG_RETURN_POINTER(posterior_answer(w->kind, w->components,
									   w->answers + (position - w->first) * w->size, &list));
}

PG_FUNCTION_INFO_V1(posterior_regress);
Datum
posterior_regress(PG_FUNCTION_ARGS)
{
	return answer_row(fcinfo, false);
}

/* classify(label "any", VARIADIC "any") */
PG_FUNCTION_INFO_V1(posterior_classify);
Datum
posterior_classify(PG_FUNCTION_ARGS)
{
	return answer_row(fcinfo, true);
}
