/*
 * distribution_accessors.c: what SQL asks of a distribution. The mathematics is the engine's
 * (distribution*.c there).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/base/materialize.h"
#include "pg/types/distribution_value.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/rangetypes.h"
#include "utils/tuplestore.h"
#include "utils/typcache.h"

#define MAX_DRAWS 100000000

/* The view of argument 0; a categorical distribution has no such property. */
static TnpDistribution
numeric_view(FunctionCallInfo fcinfo, const char *property)
{
	PosteriorDistribution *d = PG_GETARG_DISTRIBUTION(0);

	if (d->kind == TNP_CLASSES)
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("a categorical distribution has no %s", property),
						errhint("Use posterior.probability(d, label), posterior.probabilities(d), "
								"posterior.most_probable(d) or posterior.entropy(d).")));
	return posterior_view(d);
}

/* A probability argument in [0, 1]. */
static double
check_probability(double p, const char *name)
{
	if (!(p >= 0 && p <= 1))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("%s must be between 0 and 1", name),
				 errdetail("It is %g.", p),
				 errhint("90 %% is 0.9.")));
	return p;
}

/* A point at which a density is asked for. */
static double
check_point(double y)
{
	if (isnan(y))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("a density is not defined at NaN"),
				 errhint("Use NULL for a missing value.")));
	return y;
}

#define ACCESSOR(name, property, expression) \
	PG_FUNCTION_INFO_V1(posterior_##name); \
	Datum \
	posterior_##name(PG_FUNCTION_ARGS) \
	{ \
		TnpDistribution d = numeric_view(fcinfo, property); \
		PG_RETURN_FLOAT8(expression); \
	} \
	struct posterior_##name		/* so that a use ends with a semicolon */

ACCESSOR(mean, "mean", tnp_mean(&d));
ACCESSOR(variance, "variance", tnp_variance(&d));
ACCESSOR(stddev, "standard deviation", sqrt(tnp_variance(&d)));
ACCESSOR(mode, "numeric mode", tnp_mode(&d));
ACCESSOR(median, "median", tnp_quantile(&d, 0.5));
ACCESSOR(quantile, "quantiles",
		 tnp_quantile(&d, check_probability(PG_GETARG_FLOAT8(1), "the probability of a quantile")));
ACCESSOR(pdf, "density", tnp_pdf(&d, check_point(PG_GETARG_FLOAT8(1))));
ACCESSOR(log_pdf, "density", tnp_log_pdf(&d, check_point(PG_GETARG_FLOAT8(1))));
ACCESSOR(cdf, "distribution function", tnp_cdf(&d, check_point(PG_GETARG_FLOAT8(1))));
ACCESSOR(crps, "continuous ranked probability score",
		 tnp_crps(&d, check_point(PG_GETARG_FLOAT8(1))));

PG_FUNCTION_INFO_V1(posterior_entropy);
Datum
posterior_entropy(PG_FUNCTION_ARGS)
{
	PosteriorDistribution *d = PG_GETARG_DISTRIBUTION(0);
	TnpDistribution view = posterior_view(d);

	PG_RETURN_FLOAT8(tnp_entropy(&view));
}

PG_FUNCTION_INFO_V1(posterior_kind);
Datum
posterior_kind(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"",		"normal",			"mixture",
										"bars", "bars_half_normal", "categorical", "quantiles"};

	PG_RETURN_TEXT_P(cstring_to_text(names[PG_GETARG_DISTRIBUTION(0)->kind]));
}

PG_FUNCTION_INFO_V1(posterior_quantiles);
Datum
posterior_quantiles(PG_FUNCTION_ARGS)
{
	TnpDistribution d = numeric_view(fcinfo, "quantiles");
	Datum	   *elements;
	bool	   *nulls;
	int			n;

	deconstruct_array(PG_GETARG_ARRAYTYPE_P(1), FLOAT8OID, 8, FLOAT8PASSBYVAL, TYPALIGN_DOUBLE,
					  &elements, &nulls, &n);
	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("the probability of a quantile must not be NULL")));
		elements[i] = Float8GetDatum(tnp_quantile(
			&d, check_probability(DatumGetFloat8(elements[i]), "the probability of a quantile")));
	}
	PG_RETURN_ARRAYTYPE_P(
		construct_array(elements, n, FLOAT8OID, 8, FLOAT8PASSBYVAL, TYPALIGN_DOUBLE));
}

PG_FUNCTION_INFO_V1(posterior_bounds);
Datum
posterior_bounds(PG_FUNCTION_ARGS)
{
	TnpDistribution d = numeric_view(fcinfo, "intervals");
	double		level = check_probability(PG_GETARG_FLOAT8(1), "the level of an interval"),
				low = tnp_quantile(&d, (1 - level) / 2),
				high = tnp_quantile(&d, (1 + level) / 2);
	TypeCacheEntry *type = range_get_typcache(fcinfo, get_fn_expr_rettype(fcinfo->flinfo));
	RangeBound	lower = {Float8GetDatum(low), isinf(low), true, true},
				upper = {Float8GetDatum(high), isinf(high), true, false};

	PG_RETURN_RANGE_P(posterior_make_range(type, &lower, &upper));
}

/* ---- categorical ----------------------------------------------------------------------------- */

static PosteriorDistribution *
categorical_argument(FunctionCallInfo fcinfo)
{
	PosteriorDistribution *d = PG_GETARG_DISTRIBUTION(0);

	if (d->kind != TNP_CLASSES)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("a distribution over numbers has no labels"),
				 errhint("Use posterior.cdf(d, y) for probabilities of intervals.")));
	return d;
}

/* The probability of a label; NULL for what is none of the distribution's: that is not known. */
static Datum
label_probability(FunctionCallInfo fcinfo, const char *label)
{
	PosteriorDistribution *d = categorical_argument(fcinfo);
	PosteriorLabelList list = {d->n, d->label_bytes, posterior_labels(d)};
	int			class = posterior_label_find(&list, label);

	if (class < 0)
		PG_RETURN_NULL();
	PG_RETURN_FLOAT8(d->params[class]);
}

PG_FUNCTION_INFO_V1(posterior_probability);
Datum
posterior_probability(PG_FUNCTION_ARGS)
{
	return label_probability(fcinfo, text_to_cstring(PG_GETARG_TEXT_PP(1)));
}

/* probability(d, label "any"): of a value of any type that can be a label */
PG_FUNCTION_INFO_V1(posterior_probability_of);
Datum
posterior_probability_of(PG_FUNCTION_ARGS)
{
	return label_probability(fcinfo, posterior_label_argument(fcinfo, 1));
}

PG_FUNCTION_INFO_V1(posterior_most_probable);
Datum
posterior_most_probable(PG_FUNCTION_ARGS)
{
	PosteriorDistribution *d = categorical_argument(fcinfo);
	const char *label = posterior_labels(d),
			   *best = label;
	double		most = -1;

	for (int i = 0; i < d->n; i++, label += strlen(label) + 1)
		if (d->params[i] > most)
		{
			most = d->params[i];
			best = label;
		}
	PG_RETURN_TEXT_P(cstring_to_text(best));
}

/* probabilities(d) returns table (label text, probability float8), in the order of the classes */
PG_FUNCTION_INFO_V1(posterior_probabilities);
Datum
posterior_probabilities(PG_FUNCTION_ARGS)
{
	PosteriorDistribution *d = categorical_argument(fcinfo);
	ReturnSetInfo *result = posterior_materialize(fcinfo);
	const char *label = posterior_labels(d);

	for (int i = 0; i < d->n; i++, label += strlen(label) + 1)
	{
		Datum		values[2] = {CStringGetTextDatum(label), Float8GetDatum(d->params[i])};
		bool		nulls[2] = {false, false};

		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/* ---- draws ----------------------------------------------------------------------------------- */

PG_FUNCTION_INFO_V1(posterior_draw);
Datum
posterior_draw(PG_FUNCTION_ARGS)
{
	FuncCallContext *call;
	PosteriorDistribution *d;
	TnpDistribution view;

	if (SRF_IS_FIRSTCALL())
	{
		int64		n = PG_GETARG_INT32(1);
		MemoryContext old;

		numeric_view(fcinfo, "numeric draws");
		if (n < 1 || n > MAX_DRAWS)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("the number of draws must be between 1 and %d", MAX_DRAWS),
					 errdetail("It is %lld.", (long long) n)));
		call = SRF_FIRSTCALL_INIT();
		old = MemoryContextSwitchTo(call->multi_call_memory_ctx);
		call->max_calls = n;
		call->user_fctx = PG_DETOAST_DATUM_COPY(PG_GETARG_DATUM(0));
		MemoryContextSwitchTo(old);
	}
	call = SRF_PERCALL_SETUP();
	if (call->call_cntr >= call->max_calls)
		SRF_RETURN_DONE(call);
	CHECK_FOR_INTERRUPTS();
	d = call->user_fctx;
	view = posterior_view(d);
	SRF_RETURN_NEXT(
		call, Float8GetDatum(tnp_draw(&view, (uint64) PG_GETARG_INT64(2), call->call_cntr, 0)));
}
