/*
 * predict_functions.c: posterior.predict and posterior.predict_rows: marginal predictive
 * distributions given a context value.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/cache/execute.h"
#include "pg/base/bridge.h"
#include "pg/base/materialize.h"
#include "pg/sql/call_site.h"
#include "pg/device/device_client.h"
#include "pg/sql/argument_row.h"
#include "pg/sql/watch.h"
#include "pg/types/distribution_value.h"

#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/tuplestore.h"

#define BATCH 256				/* rows of one request, where a device may answer: */
#define DEVICE_BATCH 65536

/* The row in the call's arguments. */
static TnpRows
row_view(FunctionCallInfo fcinfo, PosteriorCall *call)
{
	TnpRows		row = posterior_rows_view(posterior_argument_row(fcinfo, call), false);

	row.n = 1;
	row.before = TNP_UNNUMBERED;
	return row;
}

/* Answers of n queries. params [n, size]. */
static void
row_answer(PosteriorCall *call, const TnpRows *queries, int size, double *params)
{
	TnpRequest	request = {.kind = TNP_REQUEST_PREDICT,.queries = *queries,.answer = params};

	posterior_call_execute(call, &request, queries->n * size, "a prediction");
}

/* predict(context, VARIADIC "any") */
PG_FUNCTION_INFO_V1(posterior_predict);
Datum
posterior_predict(PG_FUNCTION_ARGS)
{
	PosteriorCall *call = posterior_call(fcinfo);
	TnpDistributionKind kind;
	TnpRows		query;
	double	   *params;
	int			n;

	if (posterior_argument_row_missing(fcinfo))
		PG_RETURN_NULL();
	posterior_argument_row_types(fcinfo, call);
	posterior_call_context(call, PG_GETARG_DATUM(0));
	query = row_view(fcinfo, call);
	tnp_answer_shape(call->model->model, &kind, &n);
	params = palloc(tnp_distribution_size(kind, n) * sizeof(double));
	row_answer(call, &query, tnp_distribution_size(kind, n), params);
	PG_RETURN_POINTER(posterior_answer(kind, n, params, &call->encoding->labels));
}

/* The answers about a row, params [D, size], as an array. */
static Datum
answer_array(FunctionCallInfo fcinfo, const PosteriorCall *call, const double *params)
{
	return posterior_call_answers(call, get_element_type(get_fn_expr_rettype(fcinfo->flinfo)),
								  params);
}

/* predict_targets(context, VARIADIC "any") returns posterior.distribution[], one for each target */
PG_FUNCTION_INFO_V1(posterior_predict_targets);
Datum
posterior_predict_targets(PG_FUNCTION_ARGS)
{
	PosteriorCall *call = posterior_call(fcinfo);
	TnpRows		query;
	double	   *params;
	int			size;

	if (posterior_argument_row_missing(fcinfo))
		PG_RETURN_NULL();
	call->several = true;
	posterior_argument_row_types(fcinfo, call);
	posterior_call_context(call, PG_GETARG_DATUM(0));
	query = row_view(fcinfo, call);
	size = tnp_answer_size(call->model->model);
	params = palloc(size * sizeof(double));
	row_answer(call, &query, size, params);
	return answer_array(fcinfo, call, params);
}

/*
 * The answers about a row for a named context, argument 1, to the call's context of this name:
 * parameters [tnp_answer_size].
 */
static double *
named_answer(FunctionCallInfo fcinfo, PosteriorCall *call)
{
	TnpRequest	request = {.kind = TNP_REQUEST_PREDICT};
	PosteriorPendingRequest pending = {.request = &request};
	const PosteriorNamed *named;
	TnpRows		query;
	double	   *params;
	Oid			type = get_fn_expr_argtype(fcinfo->flinfo, 1);
	bool		there;
	int			size;

	posterior_refuse_array(type);
	there = posterior_call_definition(call, NameStr(*PG_GETARG_NAME(0)));
	named = call->named;
	/* a user that may not read the rows is refused here, and learns nothing of their columns */
	if (!there && !posterior_named_readable(named))
	{
		posterior_call_acquire(call, NULL);
		there = true;
	}
	query = (TnpRows) {.n = 1,.n_features = named->n_features,
					   .kinds = palloc(named->n_features * sizeof(TnpColumnKind)),
					   .before = TNP_UNNUMBERED};
	query.x = palloc(query.n_features * sizeof(double));
	posterior_match_value(call, type, PG_GETARG_DATUM(1), false, (double *) query.x);
	for (int f = 0; f < named->n_features; f++)
		((TnpColumnKind *) query.kinds)[f] =
			named->kinds[f] == POSTERIOR_CATEGORY ? TNP_CATEGORICAL : TNP_NUMERIC;
	size = tnp_answer_size(call->model->model);
	request.queries = query;
	request.answer = params = palloc(size * sizeof(double));
	/* the first prediction of a statement is often what brings new rows into the encoding */
	if (!there)
		posterior_call_acquire(call, &pending);
	if (pending.answered)
		ereport(DEBUG1,
				(errmsg_internal(
					"context \"%s\": its new rows and the query went through the model together",
					named->name)));
	else
		posterior_execute(call->encoding, &request);
	posterior_call_check(call, &request, size, "a prediction");
	return params;
}

/* predict(name name, row anyelement): a row for a named context */
PG_FUNCTION_INFO_V1(posterior_predict_named);
Datum
posterior_predict_named(PG_FUNCTION_ARGS)
{
	PosteriorCall *call = posterior_call(fcinfo);
	double	   *params = named_answer(fcinfo, call);
	TnpDistributionKind kind;
	int			n;

	tnp_answer_shape(call->model->model, &kind, &n);
	PG_RETURN_POINTER(posterior_answer(kind, n, params, &call->encoding->labels));
}

/*
 * predict_watched(name name, row anyelement): predict, by what the statement has at hand whose
 * trigger this is
 */
PG_FUNCTION_INFO_V1(posterior_predict_watched);
Datum
posterior_predict_watched(PG_FUNCTION_ARGS)
{
	PosteriorCall *call = posterior_watching();
	TnpDistributionKind kind;
	volatile Datum answer;
	int			n;

	if (call == NULL)
		return posterior_predict_named(fcinfo);
	/* the subtransaction that an error ends may have what the encoding came from */
	PG_TRY();
	{
		double	   *params = named_answer(fcinfo, call);

		tnp_answer_shape(call->model->model, &kind, &n);
		answer = PointerGetDatum(posterior_answer(kind, n, params, &call->encoding->labels));
	}
	PG_CATCH();
	{
		posterior_call_forget(call);
		PG_RE_THROW();
	}
	PG_END_TRY();
	return answer;
}

/* predict_targets(name name, row anyelement) */
PG_FUNCTION_INFO_V1(posterior_predict_targets_named);
Datum
posterior_predict_targets_named(PG_FUNCTION_ARGS)
{
	PosteriorCall *call = posterior_call(fcinfo);

	call->several = true;
	return answer_array(fcinfo, call, named_answer(fcinfo, call));
}


/* Fill the function's result with the predictions of rows. */
static void
predict_rows(PosteriorCall *call, PosteriorRows *rows, ReturnSetInfo *result)
{
	TnpDistributionKind kind;
	double	   *params;
	int64 batch =
		Max(Min(rows->n, posterior_device == POSTERIOR_DEVICE_CPU ? BATCH : DEVICE_BATCH), 1);
	TnpRequest	request = {.kind = TNP_REQUEST_PREDICT};
	bool		shown = posterior_call_show(call, &request, rows->n);
	int			n,
				size;

	tnp_answer_shape(call->model->model, &kind, &n);
	size = tnp_distribution_size(kind, n);
	params = MemoryContextAllocHuge(CurrentMemoryContext, (Size) batch * size * sizeof(double));
	for (int64 start = 0; start < rows->n; start += batch)
	{
		TnpRows		all = posterior_rows_view(rows, false),
					queries = tnp_rows_part(&all, start, Min(batch, rows->n - start));

		CHECK_FOR_INTERRUPTS();
		posterior_show_asked(start);
		row_answer(call, &queries, size, params);
		for (int64 i = 0; i < queries.n; i++)
		{
			PosteriorDistribution *d =
				posterior_answer(kind, n, params + i * size, &call->encoding->labels);
			Datum		values[2] = {Int32GetDatum((int32) (start + i + 1)), PointerGetDatum(d)};
			bool		nulls[2] = {false, false};

			tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
			pfree(d);
		}
	}
	if (shown)
		posterior_show_end();
}

/*
 * predict_rows(context, rows anyarray) returns table (ord int, prediction posterior.distribution)
 */
PG_FUNCTION_INFO_V1(posterior_predict_rows);
Datum
posterior_predict_rows(PG_FUNCTION_ARGS)
{
	PosteriorCall *call = posterior_call(fcinfo);
	ReturnSetInfo *result = posterior_materialize(fcinfo);

	posterior_call_context(call, PG_GETARG_DATUM(0));
	predict_rows(call, posterior_rows_of_array(call, PG_GETARG_ARRAYTYPE_P(1)), result);
	return (Datum) 0;
}

/* predict(name text, rows anyarray), which is predict_rows(name text, rows anyarray) */
PG_FUNCTION_INFO_V1(posterior_predict_rows_named);
Datum
posterior_predict_rows_named(PG_FUNCTION_ARGS)
{
	PosteriorCall *call = posterior_call(fcinfo);
	ReturnSetInfo *result = posterior_materialize(fcinfo);

	posterior_call_named(call, text_to_cstring(PG_GETARG_TEXT_PP(0)));
	predict_rows(call, posterior_match_rows(call, PG_GETARG_ARRAYTYPE_P(1)), result);
	return (Datum) 0;
}
