/*
 * decision_functions.c: what decisions ask of a distribution: how surprising a value is,
 * expected excess and improvement, other units, pools of several distributions, and wider ones.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/base/bridge.h"
#include "pg/rows/labels.h"
#include "pg/types/distribution_value.h"

#include <math.h>

#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

/* The view of a distribution over numbers; a categorical one has no `property`. */
static TnpDistribution
number_view(PosteriorDistribution *d, const char *property)
{
	if (d->kind == TNP_CLASSES)
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("a categorical distribution has no %s", property),
						errhint("Use posterior.probability(d, label), posterior.surprise(d, label) "
								"or posterior.entropy(d).")));
	return posterior_view(d);
}

static double
check_not_nan(double y, const char *name)
{
	if (isnan(y))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("%s must not be NaN", name),
				 errhint("Use NULL for a missing value.")));
	return y;
}

/* scale * d + shift as a checked value. */
static PosteriorDistribution *
distribution_affine(PosteriorDistribution *d, double scale, double shift)
{
	TnpDistribution view = posterior_view(d);
	double	   *params = palloc(tnp_distribution_size(view.kind, view.n) * sizeof(double));

	tnp_affine(&view, scale, shift, params);
	return posterior_check_distribution(view.kind, view.n, params, NULL, 0);
}

/* P(Y > y), with full relative accuracy: the lower tail of -Y. */
static double
upper_tail(const TnpDistribution *d, double y)
{
	double	   *params = palloc(tnp_distribution_size(d->kind, d->n) * sizeof(double));
	TnpDistribution mirrored = {d->kind, d->n, params};
	double		result;

	tnp_affine(d, -1, 0, params);
	result = tnp_cdf(&mirrored, -y);
	pfree(params);
	return result;
}

/* ---- surprise -------------------------------------------------------------------------------- */

PG_FUNCTION_INFO_V1(posterior_surprise);
Datum
posterior_surprise(PG_FUNCTION_ARGS)
{
	TnpDistribution d = number_view(PG_GETARG_DISTRIBUTION(0), "tails");
	double		y = check_not_nan(PG_GETARG_FLOAT8(1), "an outcome");

	PG_RETURN_FLOAT8(fmin(2 * fmin(tnp_cdf(&d, y), upper_tail(&d, y)), 1.0));
}

/* The probability of a label that is at most as probable; NULL for what is no label. */
static Datum
label_surprise(FunctionCallInfo fcinfo, const char *label)
{
	PosteriorDistribution *d = PG_GETARG_DISTRIBUTION(0);
	PosteriorLabelList list;
	int			found;
	double		sum = 0;

	if (d->kind != TNP_CLASSES)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("a distribution over numbers has no labels"),
				 errhint("Give the outcome as a number.")));
	list = (PosteriorLabelList) {d->n, d->label_bytes, posterior_labels(d)};
	found = posterior_label_find(&list, label);
	if (found < 0)
		PG_RETURN_NULL();
	for (int i = 0; i < d->n; i++)
		if (d->params[i] <= d->params[found])
			sum += d->params[i];
	PG_RETURN_FLOAT8(fmin(sum, 1.0));
}

/* surprise(d, label text) */
PG_FUNCTION_INFO_V1(posterior_surprise_label);
Datum
posterior_surprise_label(PG_FUNCTION_ARGS)
{
	return label_surprise(fcinfo, text_to_cstring(PG_GETARG_TEXT_PP(1)));
}

/* surprise(d, label boolean), surprise(d, label anyenum) */
PG_FUNCTION_INFO_V1(posterior_surprise_of);
Datum
posterior_surprise_of(PG_FUNCTION_ARGS)
{
	return label_surprise(fcinfo, posterior_label_argument(fcinfo, 1));
}

/* ---- expected excess and improvement --------------------------------------------------------- */

PG_FUNCTION_INFO_V1(posterior_expected_excess);
Datum
posterior_expected_excess(PG_FUNCTION_ARGS)
{
	TnpDistribution d = number_view(PG_GETARG_DISTRIBUTION(0), "expected excess");

	PG_RETURN_FLOAT8(tnp_expected_excess(&d, check_not_nan(PG_GETARG_FLOAT8(1), "a threshold")));
}

/* expected_improvement(d, best, maximize): on the best so far, upwards or downwards */
PG_FUNCTION_INFO_V1(posterior_expected_improvement);
Datum
posterior_expected_improvement(PG_FUNCTION_ARGS)
{
	TnpDistribution d = number_view(PG_GETARG_DISTRIBUTION(0), "expected improvement");
	double		best = check_not_nan(PG_GETARG_FLOAT8(1), "the best so far");
	double	   *params;
	TnpDistribution mirrored;

	if (PG_GETARG_BOOL(2))
		PG_RETURN_FLOAT8(tnp_expected_excess(&d, best));
	params = palloc(tnp_distribution_size(d.kind, d.n) * sizeof(double));
	mirrored = (TnpDistribution) {d.kind, d.n, params};
	tnp_affine(&d, -1, 0, params);
	PG_RETURN_FLOAT8(tnp_expected_excess(&mirrored, -best));
}

PG_FUNCTION_INFO_V1(posterior_probability_of_improvement);
Datum
posterior_probability_of_improvement(PG_FUNCTION_ARGS)
{
	TnpDistribution d = number_view(PG_GETARG_DISTRIBUTION(0), "probability of improvement");
	double		best = check_not_nan(PG_GETARG_FLOAT8(1), "the best so far");

	PG_RETURN_FLOAT8(PG_GETARG_BOOL(2) ? upper_tail(&d, best) : tnp_cdf(&d, best));
}

/* ---- other units, pools ---------------------------------------------------------------------- */

PG_FUNCTION_INFO_V1(posterior_affine);
Datum
posterior_affine(PG_FUNCTION_ARGS)
{
	PosteriorDistribution *d = PG_GETARG_DISTRIBUTION(0);
	double		scale = PG_GETARG_FLOAT8(1),
				shift = PG_GETARG_FLOAT8(2);

	number_view(d, "other units");
	if (!isfinite(scale) || scale == 0 || !isfinite(shift))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("a scale must be finite and not 0, a shift finite"),
				 errdetail("The scale is %g, the shift %g.", scale, shift),
				 errhint("Scale by how many of the new units one of the old ones is.")));
	PG_RETURN_POINTER(distribution_affine(d, scale, shift));
}

/* Components of a normal distribution or a mixture; other kinds cannot be pooled. */
static int
component_count(const PosteriorDistribution *d)
{
	if (d->kind != TNP_GAUSSIAN && d->kind != TNP_MIXTURE)
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						errmsg("only normal distributions and mixtures of them can be pooled"),
						errhint("Choose a model that answers with mixtures: posterior.models shows "
								"the head of each.")));
	return d->kind == TNP_GAUSSIAN ? 1 : d->n;
}

/* Component i of d with weight `share` into place `at` of params [3, total]. */
static void
put_component(const PosteriorDistribution *d, int i, double share, double *params, int total,
			  int at)
{
	bool		single = d->kind == TNP_GAUSSIAN;

	params[at] = share * (single ? 1 : d->params[i]);
	params[total + at] = single ? d->params[0] : d->params[d->n + i];
	params[2 * total + at] = single ? d->params[1] : d->params[2 * d->n + i];
}

/* The weights of a pool: n finite numbers, none negative, not all 0; divided by their sum. */
static double *
pool_weights(ArrayType *array, int n)
{
	double	   *weights = palloc(n * sizeof(double)),
			   *given = (double *) ARR_DATA_PTR(array),
				sum = 0;

	if (ARR_NDIM(array) != 1 || array_contains_nulls(array)
		|| ArrayGetNItems(1, ARR_DIMS(array)) != n)
		ereport(ERROR, (errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
						errmsg("weights must be a one-dimensional array without NULLs, of one "
							   "weight for each distribution"),
						errdetail("There are %d distributions.", n)));
	for (int i = 0; i < n; i++)
	{
		if (!(given[i] >= 0) || isinf(given[i]))
			ereport(ERROR,
					(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
					 errmsg("a weight must be a finite number that is not negative"),
					 errdetail("Weight %d is %g.", i + 1, given[i])));
		sum += given[i];
	}
	if (!(sum > 0) || isinf(sum))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("weights must have a finite sum above 0")));
	for (int i = 0; i < n; i++)
		weights[i] = given[i] / sum;
	return weights;
}

/* pool(distributions, weights): their mixture, the linear opinion pool */
PG_FUNCTION_INFO_V1(posterior_pool);
Datum
posterior_pool(PG_FUNCTION_ARGS)
{
	ArrayType  *array = PG_GETARG_ARRAYTYPE_P(0);
	Datum	   *elements;
	bool	   *nulls;
	int			n,
				kept = 0,
				total = 0,
				at = 0;
	double	   *weights,
			   *params;
	PosteriorDistribution **d;

	deconstruct_array(array, ARR_ELEMTYPE(array), -1, false, TYPALIGN_DOUBLE, &elements, &nulls,
					  &n);
	if (n == 0)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("there is no distribution to pool"),
				 errhint("Give an array of at least one, with a weight for each.")));
	weights = pool_weights(PG_GETARG_ARRAYTYPE_P(1), n);
	d = palloc(n * sizeof(*d));
	for (int i = 0; i < n; i++)
	{
		if (weights[i] == 0)
			continue;
		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("a distribution of a pool must not be NULL"),
					 errhint("Give it weight 0, or leave it out.")));
		d[kept] = (PosteriorDistribution *) PG_DETOAST_DATUM(elements[i]);
		weights[kept++] = weights[i];
	}
	if (kept == 1)
		PG_RETURN_POINTER(d[0]);
	for (int i = 0; i < kept; i++)
		total += component_count(d[i]);
	if (total > tnp_distribution_most(TNP_MIXTURE))
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("a pool has too many components"),
				 errdetail("It has %d; a mixture has at most %d.", total,
						   tnp_distribution_most(TNP_MIXTURE))));
	params = palloc(3 * total * sizeof(double));
	for (int i = 0; i < kept; i++)
		for (int c = 0; c < component_count(d[i]); c++)
			put_component(d[i], c, weights[i], params, total, at++);
	PG_RETURN_POINTER(posterior_check_distribution(TNP_MIXTURE, total, params, NULL, 0));
}

/* widen(d, factor): a normal distribution or a mixture, so many times as wide (tnp_widen) */
PG_FUNCTION_INFO_V1(posterior_widen);
Datum
posterior_widen(PG_FUNCTION_ARGS)
{
	PosteriorDistribution *d = PG_GETARG_DISTRIBUTION(0);
	TnpDistribution mixture = {TNP_MIXTURE, component_count(d), NULL};
	double		factor = PG_GETARG_FLOAT8(1),
			   *given = palloc(3 * mixture.n * sizeof(double)),
			   *params = palloc(3 * mixture.n * sizeof(double));

	if (!(factor > 0) || isinf(factor))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("a factor must be finite and above 0"), errdetail("It is %g.", factor)));
	for (int i = 0; i < mixture.n; i++)
		put_component(d, i, 1, given, mixture.n, i);
	mixture.params = given;
	tnp_widen(&mixture, factor, params);
	PG_RETURN_POINTER(posterior_check_distribution(TNP_MIXTURE, mixture.n, params, NULL, 0));
}
