/*
 * joint_functions.c: posterior.joint: means and covariances of the targets of several rows, in
 * closed form, of models that have them. Several targets of a row stand side by side.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/cache/execute.h"
#include "pg/sql/call_site.h"

#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/builtins.h"

/* Raise unless the model has one Gaussian for all rows of a question. */
static void
check_joint(const PosteriorCall *call)
{
	const TnpModelInfo *info = tnp_model_info(call->model->model);

	if (strcmp(info->head, "joint-gaussian") == 0)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("model \"%s\" has no joint distribution in closed form", call->model->name),
			 errdetail("Its head is \"%s\", and posterior.joint needs \"joint-gaussian\".",
					   info->head),
			 errhint("posterior.%s draws from the joint distribution, and posterior.log_density is "
					 "the logarithm of its density.", info->n_classes > 0 ? "sample_labels"
					 : "sample")));
}

/* An array of float8 with these numbers of elements in each dimension; empty, if one is 0. */
static Datum
float_array(const double *values, int dimensions, int n)
{
	int			counts[2] = {n, n},
				from[2] = {1, 1},
				total = dimensions == 1 ? n : n * n;
	Datum	   *elements = palloc(Max(total, 1) * sizeof(Datum));

	if (total == 0)
		return PointerGetDatum(construct_empty_array(FLOAT8OID));
	for (int i = 0; i < total; i++)
		elements[i] = Float8GetDatum(values[i]);
	return PointerGetDatum(construct_md_array(elements, NULL, dimensions, counts, from, FLOAT8OID,
											  sizeof(float8), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

/*
 * Both forms: (context or name, rows anyarray) returns (mean float8[n], covariance float8[n][n]), n
 * the targets of all rows.
 */
static Datum
rows_joint(FunctionCallInfo fcinfo, bool named)
{
	PosteriorCall *call = posterior_call(fcinfo);
	TnpRequest	request = {.kind = TNP_REQUEST_JOINT};
	PosteriorRows *rows;
	TupleDesc	row;
	Datum		values[2];
	bool		nulls[2] = {false, false};
	int			n,
				targets;

	if (get_call_result_type(fcinfo, NULL, &row) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	call->several = true;
	if (named)
		posterior_call_named(call, text_to_cstring(PG_GETARG_TEXT_PP(0)));
	else
		posterior_call_context(call, PG_GETARG_DATUM(0));
	check_joint(call);
	rows = named ? posterior_match_rows(call, PG_GETARG_ARRAYTYPE_P(1))
				 : posterior_rows_of_array(call, PG_GETARG_ARRAYTYPE_P(1));
	targets = tnp_model_info(call->model->model)->n_targets;
	if (rows->n > TNP_MAX_JOINT / targets)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						errmsg("too many rows for a covariance"),
						errdetail("There are %lld rows, at most %d are taken.",
								  (long long) rows->n, TNP_MAX_JOINT / targets),
						errhint("posterior.%s draws for more rows.",
								targets > 1 ? "sample_targets" : "sample")));
	n = (int) rows->n * targets;
	request.queries = posterior_rows_view(rows, false);
	request.answer = palloc((Size) (n + 1) * (n + 1) * sizeof(double));
	if (n > 0)
		posterior_call_execute(call, &request, (int64) n * (n + 1), "a joint distribution");
	values[0] = float_array(request.answer, 1, n);
	values[1] = float_array(request.answer + n, 2, n);
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(row), values, nulls));
}

/* joint(context, rows) */
PG_FUNCTION_INFO_V1(posterior_joint);
Datum
posterior_joint(PG_FUNCTION_ARGS)
{
	return rows_joint(fcinfo, false);
}

/* joint(name, rows) */
PG_FUNCTION_INFO_V1(posterior_joint_named);
Datum
posterior_joint_named(PG_FUNCTION_ARGS)
{
	return rows_joint(fcinfo, true);
}
