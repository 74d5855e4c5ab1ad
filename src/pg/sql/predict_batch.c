/*
 * predict_batch.c: rows of one call of posterior.predict that are answered together.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/sql/predict_batch.h"

#include "pg/cache/execute.h"
#include "pg/base/bridge.h"
#include "pg/models/engine_env.h"
#include "pg/sql/argument_row.h"
#include "pg/types/distribution_value.h"

#include "utils/lsyscache.h"
#include "utils/memutils.h"

/* Where an answer goes. */
typedef struct BatchPlace
{
	Datum	   *answer;
	bool	   *isnull;
} BatchPlace;

struct PosteriorBatch
{
	PosteriorCall *call;		/* that of the function, which calls of it share */
	MemoryContext memory;		/* what waits; reset with every answer */
	bool		named;
	bool		targets;		/* answers are arrays, of all targets */
	Oid			row_type;		/* of the row for a named context */
	Oid			answer_type;	/* of the elements of an array */
	PosteriorRows *rows;		/* that wait, or NULL */
	BatchPlace *places;			/* [room] */
	int64		room;
	PosteriorEncodeCounters before;	/* when the present row was begun */
	PosteriorBatchSummary summary;
};

PosteriorBatch *
posterior_batch_make(MemoryContext owner, FmgrInfo *function, bool named, bool targets)
{
	PosteriorBatch *batch = MemoryContextAllocZero(owner, sizeof(PosteriorBatch));

	if (function->fn_extra == NULL)
		function->fn_extra = posterior_call_make(function->fn_mcxt);
	batch->call = function->fn_extra;
	batch->memory = AllocSetContextCreate(owner, "posterior batch", ALLOCSET_DEFAULT_SIZES);
	batch->named = named;
	batch->targets = targets;
	if (named)
		batch->row_type = get_fn_expr_argtype(function, 1);
	if (targets)
	{
		batch->call->several = true;
		batch->answer_type = get_element_type(get_fn_expr_rettype(function));
	}
	batch->summary.model = "";
	return batch;
}

void
posterior_batch_clear(PosteriorBatch *batch)
{
	batch->rows = NULL;
	batch->places = NULL;
	batch->room = 0;
	MemoryContextReset(batch->memory);
}

Size
posterior_batch_answer_size(const PosteriorBatch *batch)
{
	const PosteriorModel *model = batch->call->model;

	return model == NULL ? 0 : tnp_answer_size(model->model) * sizeof(double);
}

/* Count what has been encoded since `before`. */
static void
batch_count_encodes(PosteriorBatch *batch)
{
	batch->summary.encodes += posterior_encode_counters.calls - batch->before.calls;
	batch->summary.encode_seconds += posterior_encode_counters.seconds - batch->before.seconds;
}

void
posterior_batch_answer(PosteriorBatch *batch)
{
	PosteriorCall *call = batch->call;
	TnpDistributionKind kind;
	TnpRequest	request = {.kind = TNP_REQUEST_PREDICT};
	bool		shown;
	int			n,
				size;

	if (batch->rows == NULL)
		return;
	tnp_answer_shape(call->model->model, &kind, &n);
	size = tnp_answer_size(call->model->model);
	request.queries = posterior_rows_view(batch->rows, false);
	request.queries.before = TNP_UNNUMBERED;
	request.answer = MemoryContextAllocHuge(batch->memory,
											(Size) batch->rows->n * size * sizeof(double));
	batch->before = posterior_encode_counters;
	/* of the rows that have come so far: how many will come is not known */
	shown = posterior_call_show(call, &request, batch->summary.rows + batch->rows->n);
	posterior_show_asked(batch->summary.rows);
	posterior_call_execute(call, &request, batch->rows->n * size, "a prediction");
	if (shown)
		posterior_show_end();
	/* of the rows near to questions (near_rows.h), which become known with these */
	if (call->encoding->delegate != NULL)
		batch_count_encodes(batch);
	for (int64 i = 0; i < batch->rows->n; i++)
	{
		const double *answer = request.answer + i * size;

		*batch->places[i].answer =
			batch->targets ? posterior_call_answers(call, batch->answer_type, answer)
			: PointerGetDatum(posterior_answer(kind, n, answer, &call->encoding->labels));
		*batch->places[i].isnull = false;
	}
	batch->summary.rows += batch->rows->n;
	batch->summary.requests++;
	posterior_batch_clear(batch);
}

/*
 * Make the call's encoding that of these arguments; what waits for another one is answered first.
 */
static void
batch_adopt_context(PosteriorBatch *batch, FunctionCallInfo fcinfo)
{
	PosteriorCall *call = batch->call;
	Datum		context = PG_GETARG_DATUM(0);

	if (batch->named ? posterior_call_has_named(call, NameStr(*DatumGetName(context)))
		: posterior_call_has_context(call, context))
		return;
	posterior_batch_answer(batch);
	batch->before = posterior_encode_counters;
	if (batch->named)
		posterior_call_named(call, NameStr(*DatumGetName(context)));
	else
		posterior_call_context(call, context);
	batch_count_encodes(batch);
}

void
posterior_batch_add(PosteriorBatch *batch, FunctionCallInfo fcinfo, Datum *answer, bool *isnull)
{
	PosteriorCall *call = batch->call;
	int			n_features;
	const uint8 *kinds;
	double	   *x;

	*answer = (Datum) 0;
	*isnull = true;
	if (batch->named)
	{
		/* the function is strict */
		if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
			return;
		posterior_refuse_array(batch->row_type);
	}
	else
	{
		if (posterior_argument_row_missing(fcinfo))
			return;
		posterior_argument_row_types(fcinfo, call);
	}
	batch_adopt_context(batch, fcinfo);
	n_features = call->encoding->n_features;
	kinds = call->encoding->kinds;
	if (batch->rows == NULL)
		batch->rows = posterior_rows_of_kinds(batch->memory, n_features, kinds);
	if (batch->rows->n == batch->room)
	{
		Size		room = Max(batch->room * 2, 16);

		if (batch->places == NULL)
			batch->places = MemoryContextAlloc(batch->memory, room * sizeof(BatchPlace));
		else
			batch->places = repalloc_huge(batch->places, room * sizeof(BatchPlace));
		batch->room = room;
	}
	x = posterior_rows_next(batch->rows);
	if (batch->named)
		posterior_match_value(call, batch->row_type, PG_GETARG_DATUM(1), false, x);
	else
		memcpy(x, posterior_argument_row(fcinfo, call)->x, n_features * sizeof(double));
	batch->places[batch->rows->n++] = (BatchPlace) {answer, isnull};
}

void
posterior_batch_begin_alone(PosteriorBatch *batch)
{
	batch->before = posterior_encode_counters;
}

void
posterior_batch_end_alone(PosteriorBatch *batch)
{
	batch_count_encodes(batch);
	batch->summary.rows++;
	batch->summary.requests++;
}

void
posterior_batch_summary(const PosteriorBatch *batch, PosteriorBatchSummary *summary)
{
	const PosteriorCall *call = batch->call;

	*summary = batch->summary;
	if (call->model != NULL)
		summary->model = call->name;
	if (call->encoding != NULL)
		summary->context_rows = posterior_cached_rows(call->encoding->cached);
}
