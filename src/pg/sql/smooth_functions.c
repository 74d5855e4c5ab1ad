/*
 * smooth_functions.c: what posterior.forecast asks about a series by itself: which of its values
 * are far from all others; exponential smoothing and random walks with drift, members of its pool.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/smoothing.h"

#include <math.h>

#include "pg/base/bridge.h"
#include "pg/models/engine_env.h"
#include "pg/models/model_cache.h"
#include "pg/types/distribution_value.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/lsyscache.h"

static int
array_items(ArrayType *array)
{
	return ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
}

/* The columns of x [steps, pitch] from number `from` on, of n steps at least; none of NULL. */
static TnpStepColumns
step_columns(ArrayType *x, int from, int n)
{
	int			pitch;

	if (x == NULL)
		return (TnpStepColumns) {NULL, 0, 0};
	if (ARR_NDIM(x) != 2 || ARR_DIMS(x)[0] < n || from < 0 || from > ARR_DIMS(x)[1]
		|| array_contains_nulls(x))
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("columns of a series must be known of all its steps, without NULLs")));
	pitch = ARR_DIMS(x)[1];
	return (TnpStepColumns) {(double *) ARR_DATA_PTR(x) + from, pitch - from, pitch};
}

/*
 * near_series(y float8[], x float8[], yearly integer) returns float8[], with NaN for what is far to
 * the session's model and not foretold by columns of x, the first `yearly` of them left out
 */
PG_FUNCTION_INFO_V1(posterior_near_series);
Datum
posterior_near_series(PG_FUNCTION_ARGS)
{
	ArrayType  *values,
			   *x = PG_ARGISNULL(1) ? NULL : PG_GETARG_ARRAYTYPE_P(1);
	PosteriorModel *model;
	TnpStepColumns columns;
	int			n,
				bound[1] = {1};
	double	   *near;
	Datum	   *items;
	TnpError	error;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(2))
		PG_RETURN_NULL();
	values = PG_GETARG_ARRAYTYPE_P(0);
	if (array_contains_nulls(values))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("a series has no NULL")));
	model = posterior_model_pin(posterior_model_name, CurrentMemoryContext);
	n = array_items(values);
	columns = step_columns(x, PG_GETARG_INT32(2), n);
	near = palloc(Max(n, 1) * sizeof(double));
	items = palloc(Max(n, 1) * sizeof(Datum));
	if (tnp_series_near(model->model, (double *) ARR_DATA_PTR(values), n, &columns, near,
						&error) != TNP_OK)
		posterior_raise(&error, model->name);
	for (int i = 0; i < n; i++)
		items[i] = Float8GetDatum(near[i]);
	PG_RETURN_ARRAYTYPE_P(construct_md_array(items, NULL, 1, &n, bound, FLOAT8OID, sizeof(float8),
											 FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

/*
 * smooth(y float8[], season, until, origins integer[], steps integer[], form) returns
 * posterior.distribution[]: by a form of TnpSmoothForm for each pair the value `steps` after the
 * first `origins` values, with parameters chosen by the first `until` values. NULL where the series
 * tells nothing.
 */
PG_FUNCTION_INFO_V1(posterior_smooth);
Datum
posterior_smooth(PG_FUNCTION_ARGS)
{
	ArrayType  *values = PG_GETARG_ARRAYTYPE_P(0),
			   *origins = PG_GETARG_ARRAYTYPE_P(3),
			   *steps = PG_GETARG_ARRAYTYPE_P(4);
	TnpSeries	series = {.y = (double *) ARR_DATA_PTR(values),
						  .n = array_items(values),
						  .season = PG_GETARG_INT32(1),
						  .until = PG_GETARG_INT32(2)};
	TnpEnv		env = posterior_env(CurrentMemoryContext);
	TnpError	error;
	int			pairs = array_items(origins),
				dimension[1] = {pairs},
				bound[1] = {1};
	double	   *params = palloc(Max(pairs, 1) * 2 * sizeof(double));
	bool	   *nulls = palloc(Max(pairs, 1) * sizeof(bool));
	Datum	   *answers = palloc0(Max(pairs, 1) * sizeof(Datum));
	Oid			element = get_element_type(get_fn_expr_rettype(fcinfo->flinfo));

	if (array_contains_nulls(values) || array_contains_nulls(origins) || array_contains_nulls(steps)
		|| array_items(steps) != pairs)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a series to smooth needs values, and as many origins as steps")));
	if (tnp_smooth(&env, &series, (TnpSmoothForm) PG_GETARG_INT32(5), pairs,
				   (int32 *) ARR_DATA_PTR(origins), (int32 *) ARR_DATA_PTR(steps), params,
				   &error) != TNP_OK)
		posterior_raise(&error, NULL);
	for (int i = 0; i < pairs; i++)
	{
		nulls[i] = isnan(params[2 * i]);
		if (!nulls[i])
			answers[i] = PointerGetDatum(posterior_make_distribution(TNP_GAUSSIAN, 1,
																	 params + 2 * i, NULL, 0));
	}
	PG_RETURN_ARRAYTYPE_P(construct_md_array(answers, nulls, 1, dimension, bound, element, -1,
											 false, TYPALIGN_DOUBLE));
}
