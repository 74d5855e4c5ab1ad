/*
 * aggregate.c: the aggregates over rows: posterior.context and posterior.log_evidence.
 *
 * Both gather rows; a row whose target is NULL is left out. With ORDER BY inside the aggregate, or
 * in the window it runs over, the rows keep that order; without, they are put in canonical byte
 * order at the end, so that serial and parallel plans give the same value. The state is a set of
 * rows in any order until then, which is why combining may simply append. In a growing window frame
 * a state gets more rows after a final function has looked at it.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/types/context_value.h"

#include "pg/cache/execute.h"
#include "pg/base/bridge.h"
#include "pg/models/model_cache.h"
#include "pg/models/row_limit.h"
#include "pg/rows/targets.h"

#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "utils/builtins.h"

static MemoryContext
aggregate_context(FunctionCallInfo fcinfo, const char *function)
{
	MemoryContext context;

	if (!AggCheckCallContext(fcinfo, &context))
		elog(ERROR, "%s called in non-aggregate context", function);
	return context;
}

/* How the labels of a call are read, made at its first row. */
static PosteriorLabelType *
label_type(FunctionCallInfo fcinfo)
{
	PosteriorLabelType *label = fcinfo->flinfo->fn_extra;

	if (label == NULL)
	{
		Oid			type = get_fn_expr_argtype(fcinfo->flinfo, 1);

		label = MemoryContextAlloc(fcinfo->flinfo->fn_mcxt, sizeof(PosteriorLabelType));
		posterior_label_type_init(label, type, fcinfo->flinfo->fn_mcxt);
		fcinfo->flinfo->fn_extra = label;
	}
	return label;
}

/* Add a row: target in argument 1, which is a label or a number, and the features after it. */
static Datum
rows_accumulate(FunctionCallInfo fcinfo, bool labelled)
{
	MemoryContext context =
		aggregate_context(fcinfo, labelled ? "posterior_class_rows_accum" : "posterior_rows_accum");
	PosteriorRows *rows = PG_ARGISNULL(0) ? NULL : (PosteriorRows *) PG_GETARG_POINTER(0);
	double	   *x,
				y;

	if (rows == NULL)
	{
		Oid			types[FUNC_MAX_ARGS];
		int			n = posterior_argument_types(fcinfo, 2, types);

		rows = posterior_rows_make(context, n, types);
		if (labelled)
			rows->labels =
				posterior_labels_make(context, label_type(fcinfo)->base, POSTERIOR_MOST_LABELS);
	}
	if (PG_ARGISNULL(1))
		PG_RETURN_POINTER(rows);
	if (labelled)
	{
		char	   *label = posterior_label_text(label_type(fcinfo), PG_GETARG_DATUM(1));

		y = posterior_labels_add(rows->labels, label);
		pfree(label);
	}
	else
		y = posterior_check_target(PG_GETARG_FLOAT8(1));
	x = posterior_rows_next(rows);
	for (int f = 0; f < rows->n_features; f++)
		x[f] = posterior_feature_cell(&rows->features[f], PG_GETARG_DATUM(2 + f),
									  PG_ARGISNULL(2 + f), f + 1);
	rows->y[rows->n++] = y;
	PG_RETURN_POINTER(rows);
}

/* rows_accum(internal, y float8, VARIADIC "any") */
PG_FUNCTION_INFO_V1(posterior_rows_accum);
Datum
posterior_rows_accum(PG_FUNCTION_ARGS)
{
	return rows_accumulate(fcinfo, false);
}

/* class_rows_accum(internal, label "any", VARIADIC "any") */
PG_FUNCTION_INFO_V1(posterior_class_rows_accum);
Datum
posterior_class_rows_accum(PG_FUNCTION_ARGS)
{
	return rows_accumulate(fcinfo, true);
}

/* target_rows_accum(internal, y float8[], VARIADIC "any"): several targets */
PG_FUNCTION_INFO_V1(posterior_target_rows_accum);
Datum
posterior_target_rows_accum(PG_FUNCTION_ARGS)
{
	MemoryContext context = aggregate_context(fcinfo, "posterior_target_rows_accum");
	PosteriorRows *rows = PG_ARGISNULL(0) ? NULL : (PosteriorRows *) PG_GETARG_POINTER(0);
	double	   *x,
				y[TNP_MAX_TARGETS];
	int			targets;
	bool		known;

	if (rows == NULL)
	{
		Oid			types[FUNC_MAX_ARGS];
		int			n = posterior_argument_types(fcinfo, 2, types);

		rows = posterior_rows_make(context, n, types);
	}
	if (PG_ARGISNULL(1))
		PG_RETURN_POINTER(rows);
	targets = posterior_array_targets(PG_GETARG_ARRAYTYPE_P(1), y, &known);
	/* one unknown target tells nothing, whether it comes first or last */
	if (known || targets > 1)
		posterior_rows_check_targets(rows, targets);
	if (!known)
		PG_RETURN_POINTER(rows);
	x = posterior_rows_next(rows);
	for (int f = 0; f < rows->n_features; f++)
		x[f] = posterior_feature_cell(&rows->features[f], PG_GETARG_DATUM(2 + f),
									  PG_ARGISNULL(2 + f), f + 1);
	memcpy(rows->y + rows->n * targets, y, targets * sizeof(double));
	rows->n++;
	PG_RETURN_POINTER(rows);
}

PG_FUNCTION_INFO_V1(posterior_rows_combine);
Datum
posterior_rows_combine(PG_FUNCTION_ARGS)
{
	MemoryContext context = aggregate_context(fcinfo, "posterior_rows_combine");
	PosteriorRows *into = PG_ARGISNULL(0) ? NULL : (PosteriorRows *) PG_GETARG_POINTER(0),
			   *from = PG_ARGISNULL(1) ? NULL : (PosteriorRows *) PG_GETARG_POINTER(1);

	if (from == NULL)
	{
		if (into == NULL)
			PG_RETURN_NULL();
		PG_RETURN_POINTER(into);
	}
	if (into == NULL)
		into = posterior_rows_of_kinds(context, from->n_features, from->kinds);
	if (from->n > 0 || from->n_targets > 1)
		posterior_rows_check_targets(into, from->n_targets);
	posterior_rows_append(into, from->n, from->x, from->y);
	PG_RETURN_POINTER(into);
}

/* The serialized state is a context value in binary form. */
PG_FUNCTION_INFO_V1(posterior_rows_serialize);
Datum
posterior_rows_serialize(PG_FUNCTION_ARGS)
{
	PosteriorContext *c;
	StringInfoData buffer;

	aggregate_context(fcinfo, "posterior_rows_serialize");
	c = posterior_make_context((PosteriorRows *) PG_GETARG_POINTER(0));
	pq_begintypsend(&buffer);
	posterior_send_context(&buffer, c);
	pfree(c);
	PG_RETURN_BYTEA_P(pq_endtypsend(&buffer));
}

PG_FUNCTION_INFO_V1(posterior_rows_deserialize);
Datum
posterior_rows_deserialize(PG_FUNCTION_ARGS)
{
	bytea	   *bytes = PG_GETARG_BYTEA_PP(0);
	StringInfoData buffer;

	aggregate_context(fcinfo, "posterior_rows_deserialize");
	initStringInfo(&buffer);
	appendBinaryStringInfo(&buffer, VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes));
	PG_RETURN_POINTER(posterior_receive_rows(&buffer));
}

PG_FUNCTION_INFO_V1(posterior_context_final);
Datum
posterior_context_final(PG_FUNCTION_ARGS)
{
	PosteriorRows *rows;

	aggregate_context(fcinfo, "posterior_context_final");
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	rows = posterior_rows_settled((PosteriorRows *) PG_GETARG_POINTER(0));
	if (!posterior_aggregate_ordered(fcinfo))
		posterior_rows_sort(rows);
	PG_RETURN_POINTER(posterior_make_context(rows));
}

/*
 * The log evidence of rows in their order; false if they are too few and that shall not stop the
 * query. While the prefix stays where it is, all conditionals are one request about the rows
 * before; it moves a logarithmic number of times.
 */
static bool
rows_evidence(PosteriorModel *model, const PosteriorRows *rows, bool may_be_few, double *sum)
{
	TnpRows		all = posterior_rows_view(rows, true);
	int64		n,
				given;
	bool		shown;
	TnpError	error;
	TnpStatus	status = tnp_evidence_begin(model->model, &all, &given, &error);

	*sum = 0;
	if (status == TNP_TOO_FEW_ROWS && may_be_few)
		return false;
	if (status != TNP_OK)
		posterior_raise(&error, model->name);
	shown = posterior_show_question(NULL, TNP_REQUEST_SCORE, all.n - given);
	for (n = given; n < all.n;)
	{
		int64		end = tnp_evidence_end(model->model, n, all.n);
		double		part;
		TnpRequest	request = {.kind = TNP_REQUEST_SCORE,
								.queries = tnp_rows_part(&all, n, end - n),
								.orders = TNP_AS_APPENDED,.answer = &part};
		PosteriorLookup lookup = {.model = model,
								  .kinds = rows->kinds,
								  .labels = rows->list,
								  .rows = all,
								  .prefix = tnp_canonical_prefix(model->model, n)};

		CHECK_FOR_INTERRUPTS();
		lookup.rows.n = n;
		posterior_execute_uncached(posterior_handle_build_uncached(&lookup), NULL, &request);
		posterior_show_asked(end - given);
		*sum += part;
		n = end;
	}
	if (shown)
		posterior_show_end();
	return true;
}

PG_FUNCTION_INFO_V1(posterior_evidence_final);
Datum
posterior_evidence_final(PG_FUNCTION_ARGS)
{
	PosteriorRows *rows;
	PosteriorModel *model;
	double		sum;

	aggregate_context(fcinfo, "posterior_evidence_final");
	if (!posterior_aggregate_ordered(fcinfo))
		ereport(
			ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("posterior.log_evidence needs ORDER BY"),
			 errdetail("The chain rule depends on the order of the rows, and a table has none."),
			 errhint("Write posterior.log_evidence(y, x ORDER BY ...), or OVER (ORDER BY ...).")));
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	rows = posterior_rows_settled((PosteriorRows *) PG_GETARG_POINTER(0));
	model = posterior_model_pin_targets(rows->labels != NULL ? posterior_class_model_name
															 : posterior_model_name,
										rows->n_targets, CurrentMemoryContext);
	posterior_check_row_limit(model, "the sequence of posterior.log_evidence", rows->n,
							  rows->n_features);
	posterior_check_joint_cost(model, "posterior.log_evidence", 0, 0, rows->n, 1);
	posterior_check_model_labels(model->model, model->name, rows->labels != NULL);
	posterior_check_model_targets(model->model, model->name,
								  rows->n > 0 || rows->n_targets > 1 ? rows->n_targets
								  : tnp_model_info(model->model)->n_targets);
	if (rows->labels != NULL)
		posterior_check_model_room(model->model, model->name, rows->list.n);
	/* the first rows of a growing frame shall not stop the query */
	if (!rows_evidence(model, rows, AggCheckCallContext(fcinfo, NULL) == AGG_CONTEXT_WINDOW, &sum))
		PG_RETURN_NULL();
	PG_RETURN_FLOAT8(sum);
}
