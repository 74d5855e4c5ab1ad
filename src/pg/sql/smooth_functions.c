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

/* near_series(y float8[]) returns float8[], with NaN for what is far to the session's model */
PG_FUNCTION_INFO_V1(posterior_near_series);
Datum
posterior_near_series(PG_FUNCTION_ARGS)
{
	ArrayType  *values = PG_GETARG_ARRAYTYPE_P(0);
	PosteriorModel *model = posterior_model_pin(posterior_model_name, CurrentMemoryContext);
	int			n = array_items(values),
				bound[1] = {1};
	double	   *near = palloc(Max(n, 1) * sizeof(double));
	Datum	   *items = palloc(Max(n, 1) * sizeof(Datum));
	TnpError	error;

	if (array_contains_nulls(values))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("a series has no NULL")));
	if (tnp_series_near(model->model, (double *) ARR_DATA_PTR(values), n, near, &error) != TNP_OK)
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
