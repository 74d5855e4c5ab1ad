/*
 * summary.c: posterior.predict_summary: of the predictions for many rows, their means, standard
 * deviations, quantiles and the log densities of what was observed, and nothing else.
 *
 * The distribution of a row is some hundred numbers where these are a few. So the provider reduces
 * it: a device sends the few back, and a result of a million rows fits memory. The numbers are
 * those that the accessors have of posterior.predict_rows.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/cache/execute.h"
#include "pg/base/bridge.h"
#include "pg/base/materialize.h"
#include "pg/sql/call_site.h"
#include "pg/device/device_client.h"

#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#include <math.h>

#define BATCH 256				/* rows of one request, where a device may answer: */
#define DEVICE_BATCH 65536

/* What is wanted of every row. */
typedef struct Lookup
{
	int			n_levels;
	double	   *levels;			/* [n_levels] */
	double	   *observed;		/* [rows]; NULL: no log densities */
	bool	   *unobserved;		/* [rows]: those without one */
} Lookup;

/* The elements of a one-dimensional float8[]. */
static Datum *
elements_of(ArrayType *array, const char *name, bool **nulls, int *n)
{
	Datum	   *elements;

	if (ARR_NDIM(array) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("%s must be a one-dimensional array", name)));
	deconstruct_array(array, FLOAT8OID, sizeof(float8), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE, &elements,
					  nulls, n);
	return elements;
}

static void
take_levels(Lookup *w, ArrayType *array)
{
	bool	   *nulls;
	Datum	   *elements = elements_of(array, "levels", &nulls, &w->n_levels);

	if (w->n_levels > TNP_MAX_LEVELS)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						errmsg("at most %d levels can be asked for at once", TNP_MAX_LEVELS),
						errdetail("%d are given.", w->n_levels),
						errhint("posterior.predict_rows gives distributions, of which "
								"posterior.quantile takes any number.")));
	w->levels = palloc(Max(w->n_levels, 1) * sizeof(double));
	for (int i = 0; i < w->n_levels; i++)
	{
		double		level = nulls[i] ? NAN : DatumGetFloat8(elements[i]);

		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("a level must not be NULL")));
		if (!(level >= 0 && level <= 1))
			ereport(ERROR,
					(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
					 errmsg("a level must be between 0 and 1"),
					 errdetail("Level %d is %g.", i + 1, level),
					 errhint("90 %% is 0.9.")));
		w->levels[i] = level;
	}
}

static void
take_observed(Lookup *w, ArrayType *array, int64 rows)
{
	int			n;
	Datum	   *elements = elements_of(array, "observed", &w->unobserved, &n);

	if (n != rows)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("there must be as many observed values as rows"),
				 errdetail("%d values, %lld rows.", n, (long long) rows),
				 errhint("What was not observed is NULL.")));
	w->observed = palloc(Max(n, 1) * sizeof(double));
	for (int i = 0; i < n; i++)
		w->observed[i] = w->unobserved[i] ? 0 : posterior_check_target(DatumGetFloat8(elements[i]));
}

/* One row of the result, from its numbers. */
static void
put_row(ReturnSetInfo *result, const Lookup *w, int64 row, const double *numbers)
{
	Datum values[5] = {Int32GetDatum((int32) (row + 1)), Float8GetDatum(numbers[0]),
					   Float8GetDatum(numbers[1])},
		  quantiles[TNP_MAX_LEVELS];
	bool		nulls[5] = {false};
	ArrayType  *array;

	for (int l = 0; l < w->n_levels; l++)
		quantiles[l] = Float8GetDatum(numbers[2 + l]);
	array = construct_array(quantiles, w->n_levels, FLOAT8OID, sizeof(float8), FLOAT8PASSBYVAL,
							TYPALIGN_DOUBLE);
	values[3] = PointerGetDatum(array);
	nulls[4] = w->observed == NULL || w->unobserved[row];
	if (!nulls[4])
		values[4] = Float8GetDatum(numbers[2 + w->n_levels]);
	tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	pfree(array);
}

static void
rows_summarize(FunctionCallInfo fcinfo, PosteriorCall *call, const PosteriorRows *rows,
			   ReturnSetInfo *result)
{
	int64 batch =
		Max(Min(rows->n, posterior_device == POSTERIOR_DEVICE_CPU ? BATCH : DEVICE_BATCH), 1);
	Lookup		w = {0};
	TnpRequest request = {.kind = TNP_REQUEST_REDUCE,
						  .reductions = TNP_REDUCE_MEAN | TNP_REDUCE_SD};
	bool		shown;
	int			width;
	double	   *numbers;

	if (call->encoding->labels.n > 0)
		ereport(
			ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("predictions of labels have no mean"),
			 errhint(
				 "Use posterior.predict_rows, and posterior.probabilities of its predictions.")));
	if (!PG_ARGISNULL(2))
		take_levels(&w, PG_GETARG_ARRAYTYPE_P(2));
	if (!PG_ARGISNULL(3))
		take_observed(&w, PG_GETARG_ARRAYTYPE_P(3), rows->n);
	request.n_levels = w.n_levels;
	request.levels = w.levels;
	request.reductions |= (w.n_levels > 0 ? TNP_REDUCE_QUANTILES : 0)
						| (w.observed != NULL ? TNP_REDUCE_LOG_DENSITY : 0);
	width = tnp_reduction_width(&request);
	numbers = MemoryContextAllocHuge(CurrentMemoryContext, (Size) batch * width * sizeof(double));
	shown = posterior_call_show(call, &request, rows->n);
	for (int64 start = 0; start < rows->n; start += batch)
	{
		TnpRows		all = posterior_rows_view(rows, false);

		CHECK_FOR_INTERRUPTS();
		posterior_show_asked(start);
		request.queries = tnp_rows_part(&all, start, Min(batch, rows->n - start));
		request.queries.y = w.observed != NULL ? w.observed + start : NULL;
		request.answer = numbers;
		posterior_call_execute(call, &request, request.queries.n * width,
							   "a summary of predictions");
		for (int64 i = 0; i < request.queries.n; i++)
			put_row(result, &w, start + i, numbers + i * width);
	}
	if (shown)
		posterior_show_end();
}

/*
 * predict_summary(context, rows anyarray, levels float8[], observed float8[]) returns table (ord,
 * mean, stddev, quantiles, log_density)
 */
PG_FUNCTION_INFO_V1(posterior_predict_summary);
Datum
posterior_predict_summary(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = posterior_materialize(fcinfo);
	PosteriorCall *call = posterior_call(fcinfo);

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		return (Datum) 0;
	posterior_call_context(call, PG_GETARG_DATUM(0));
	rows_summarize(fcinfo, call, posterior_rows_of_array(call, PG_GETARG_ARRAYTYPE_P(1)), result);
	return (Datum) 0;
}

/* predict_summary(name text, rows anyarray, levels float8[], observed float8[]) */
PG_FUNCTION_INFO_V1(posterior_predict_summary_named);
Datum
posterior_predict_summary_named(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *result = posterior_materialize(fcinfo);
	PosteriorCall *call = posterior_call(fcinfo);

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		return (Datum) 0;
	posterior_call_named(call, text_to_cstring(PG_GETARG_TEXT_PP(0)));
	rows_summarize(fcinfo, call, posterior_match_rows(call, PG_GETARG_ARRAYTYPE_P(1)), result);
	return (Datum) 0;
}
