/*
 * sample_functions.c: posterior.sample: joint draws for several rows. Rows of one draw belong
 * together.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/cache/execute.h"
#include "pg/base/bridge.h"
#include "pg/base/materialize.h"
#include "pg/sql/call_site.h"

#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#define MAX_VALUES INT64CONST(1000000000)	/* draws times rows */
#define BATCH_VALUES 65536		/* values held in memory at once, or those of one draw */

/* One batch of draws, in verify mode compared with those from a fresh encoding. */
static void
draw_batch(PosteriorCall *call, const TnpRows *queries, int64 seed, int64 first, int64 draws,
		   double *y)
{
	TnpRequest request = {.kind = TNP_REQUEST_SAMPLE,
						  .queries = *queries,
						  .seed = (uint64) seed,
						  .first_draw = (uint64) first,
						  .draws = draws,
						  .answer = y};

	posterior_execute(call->encoding, &request);
	/*
	 * draws that are not bitwise reproducible may fall on the other side of a boundary: nothing can
	 * be said of one alone
	 */
	if (posterior_executed_exactly(call->encoding))
		posterior_call_check(call, &request,
							 draws * queries->n * tnp_model_info(call->model->model)->n_targets,
							 "a draw");
}

/* Raise unless the context has labels as targets, or numbers. */
static void
check_labelled(const PosteriorCall *call, bool labelled)
{
	if (labelled == (call->encoding->labels.n > 0))
		return;
	ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
					errmsg("the targets of the context are %s",
						   labelled ? "numbers, not labels" : "labels, not numbers"),
					errhint("Use posterior.%s.", labelled ? "sample" : "sample_labels")));
}

/* The labels of a list, each a text. */
static Datum *
label_datums(const PosteriorLabelList *list)
{
	Datum	   *datums = palloc(list->n * sizeof(Datum));
	const char *text = list->text;

	for (int i = 0; i < list->n; i++, text += strlen(text) + 1)
		datums[i] = CStringGetTextDatum(text);
	return datums;
}

/* What a draw of a row is in SQL. */
typedef enum DrawnForm
{
	DRAWN_NUMBER,
	DRAWN_LABEL,
	DRAWN_ARRAY					/* of all targets of the row */
} DrawnForm;

/* A drawn row, its targets y [D], in this form. */
static Datum
drawn_datum(DrawnForm form, const Datum *labels, int targets, const double *y)
{
	Datum		values[TNP_MAX_TARGETS];

	if (form == DRAWN_LABEL)
		return labels[(int) *y];
	if (form == DRAWN_NUMBER)
		return Float8GetDatum(*y);
	for (int t = 0; t < targets; t++)
		values[t] = Float8GetDatum(y[t]);
	return PointerGetDatum(construct_array(values, targets, FLOAT8OID, sizeof(float8),
										   FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

/*
 * All forms: (context or name, rows anyarray, draws int, seed bigint) returns table (draw int, ord
 * int, y float8 or float8[] or label text).
 */
static Datum
rows_sample(FunctionCallInfo fcinfo, bool named, DrawnForm form)
{
	PosteriorCall *call = posterior_call(fcinfo);
	bool		labelled = form == DRAWN_LABEL;
	int			targets;
	int64		draws = PG_GETARG_INT32(2),
				seed = PG_GETARG_INT64(3),
				batch;
	ReturnSetInfo *result;
	PosteriorRows *rows;
	TnpRows		queries;
	TnpRequest	request = {.kind = TNP_REQUEST_SAMPLE};
	bool		shown;
	Datum	   *labels = NULL;
	double	   *y;

	if (draws < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the number of draws must be positive"),
				 errdetail("It is %lld.", (long long) draws)));
	result = posterior_materialize(fcinfo);
	call->several = form == DRAWN_ARRAY;
	if (named)
		posterior_call_named(call, text_to_cstring(PG_GETARG_TEXT_PP(0)));
	else
		posterior_call_context(call, PG_GETARG_DATUM(0));
	check_labelled(call, labelled);
	if (labelled)
		labels = label_datums(&call->encoding->labels);
	rows = named ? posterior_match_rows(call, PG_GETARG_ARRAYTYPE_P(1))
				 : posterior_rows_of_array(call, PG_GETARG_ARRAYTYPE_P(1));
	queries = posterior_rows_view(rows, false);
	targets = tnp_model_info(call->model->model)->n_targets;
	if (rows->n == 0)
		return (Datum) 0;
	posterior_call_check_joint(call, rows->n, draws);
	if (draws > MAX_VALUES / targets / rows->n)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("too many draws"),
						errdetail("%lld draws of %lld rows are more than %lld values.",
								  (long long) draws, (long long) rows->n,
								  (long long) (MAX_VALUES / targets)),
						errhint("Ask for fewer draws, or in several calls with different seeds.")));
	batch = Max(1, Min(draws, BATCH_VALUES / targets / rows->n));
	y = MemoryContextAllocHuge(CurrentMemoryContext, batch * rows->n * targets * sizeof(double));
	shown = posterior_call_show(call, &request, draws * rows->n);
	for (int64 first = 0; first < draws; first += batch)
	{
		int64		n = Min(batch, draws - first);

		posterior_show_asked(first * rows->n);
		draw_batch(call, &queries, seed, first, n, y);
		for (int64 i = 0; i < n * rows->n; i++)
		{
			Datum values[3] = {Int32GetDatum((int32) (first + i / rows->n + 1)),
							   Int32GetDatum((int32) (i % rows->n + 1)),
							   drawn_datum(form, labels, targets, y + i * targets)};
			bool		nulls[3] = {false, false, false};

			if (i % 1024 == 0)
				CHECK_FOR_INTERRUPTS();
			tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
			if (form == DRAWN_ARRAY)
				pfree(DatumGetPointer(values[2]));
		}
	}
	if (shown)
		posterior_show_end();
	return (Datum) 0;
}

PG_FUNCTION_INFO_V1(posterior_sample);
Datum
posterior_sample(PG_FUNCTION_ARGS)
{
	return rows_sample(fcinfo, false, DRAWN_NUMBER);
}

PG_FUNCTION_INFO_V1(posterior_sample_named);
Datum
posterior_sample_named(PG_FUNCTION_ARGS)
{
	return rows_sample(fcinfo, true, DRAWN_NUMBER);
}

PG_FUNCTION_INFO_V1(posterior_sample_labels);
Datum
posterior_sample_labels(PG_FUNCTION_ARGS)
{
	return rows_sample(fcinfo, false, DRAWN_LABEL);
}

PG_FUNCTION_INFO_V1(posterior_sample_labels_named);
Datum
posterior_sample_labels_named(PG_FUNCTION_ARGS)
{
	return rows_sample(fcinfo, true, DRAWN_LABEL);
}

/* sample_targets(context, rows, draws, seed): y is an array of the targets of a row */
PG_FUNCTION_INFO_V1(posterior_sample_targets);
Datum
posterior_sample_targets(PG_FUNCTION_ARGS)
{
	return rows_sample(fcinfo, false, DRAWN_ARRAY);
}

PG_FUNCTION_INFO_V1(posterior_sample_targets_named);
Datum
posterior_sample_targets_named(PG_FUNCTION_ARGS)
{
	return rows_sample(fcinfo, true, DRAWN_ARRAY);
}
