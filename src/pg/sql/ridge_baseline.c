/*
 * ridge_baseline.c: ridge regression of the rows of a context, the baseline of posterior.evaluate.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/baseline.h"

#include "pg/base/bridge.h"
#include "pg/models/engine_env.h"
#include "pg/types/context_value.h"
#include "pg/types/distribution_value.h"

#include "utils/array.h"
#include "utils/lsyscache.h"

/* The engine's view of a context's rows. */
static TnpRows
context_rows(const PosteriorContext *context)
{
	TnpColumnKind *kinds = palloc(Max(context->n_features, 1) * sizeof(TnpColumnKind));

	for (int f = 0; f < context->n_features; f++)
		kinds[f] = context->kinds[f] == POSTERIOR_CATEGORY ? TNP_CATEGORICAL : TNP_NUMERIC;
	return (TnpRows){.n = context->n,
					 .n_features = context->n_features,
					 .kinds = kinds,
					 .x = posterior_context_x(context),
					 .y = posterior_context_y(context)};
}

/* ridge(context, rows context) returns posterior.distribution[], one for each row */
PG_FUNCTION_INFO_V1(posterior_ridge);
Datum
posterior_ridge(PG_FUNCTION_ARGS)
{
	PosteriorContext *given = PG_GETARG_CONTEXT(0),
					 *asked = PG_GETARG_CONTEXT(1);
	TnpEnv		env = posterior_env(CurrentMemoryContext);
	TnpRows		context,
				queries;
	TnpError	error;
	Datum	   *answers = palloc(Max(asked->n, 1) * sizeof(Datum));
	double	   *params = palloc(Max(asked->n, 1) * 2 * sizeof(double));

	if (posterior_context_labelled(given) || posterior_context_is_sums(given)
		|| posterior_context_is_sums(asked) || given->n == 0
		|| posterior_context_targets(given) > 1 || posterior_context_targets(asked) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a ridge regression needs rows whose targets are numbers")));
	if (asked->n_features != given->n_features
		|| memcmp(given->kinds, asked->kinds, given->n_features) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("the rows have other columns than the context")));
	context = context_rows(given);
	queries = context_rows(asked);
	if (tnp_baseline_ridge(&env, &context, &queries, params, &error) != TNP_OK)
		posterior_raise(&error, NULL);
	for (int64 i = 0; i < asked->n; i++)
		answers[i] =
			PointerGetDatum(posterior_check_distribution(TNP_GAUSSIAN, 1, params + 2 * i, NULL, 0));
	PG_RETURN_ARRAYTYPE_P(construct_array(answers, (int) asked->n,
										  get_element_type(get_fn_expr_rettype(fcinfo->flinfo)),
										  -1, false, TYPALIGN_DOUBLE));
}
