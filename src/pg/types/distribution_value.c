/*
 * distribution_value.c: making values of posterior.distribution, constructors in SQL, binary input
 * and output.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/base/bridge.h"
#include "pg/types/distribution_value.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "libpq/pqformat.h"
#include "mb/pg_wchar.h"
#include "utils/array.h"
#include "utils/builtins.h"

PosteriorDistribution *
posterior_make_distribution(TnpDistributionKind kind, int n, const double *params,
							const char *labels, int label_bytes)
{
	Size		numbers = (Size) tnp_distribution_size(kind, n) * sizeof(double),
				size = offsetof(PosteriorDistribution, params) + numbers + label_bytes;
	PosteriorDistribution *d = palloc0(size);

	SET_VARSIZE(d, size);
	d->version = POSTERIOR_DISTRIBUTION_VERSION;
	d->kind = (uint8) kind;
	d->n = n;
	d->label_bytes = label_bytes;
	memcpy(d->params, params, numbers);
	/* -0 and 0 are one value, so that equal distributions have equal bytes */
	for (Size i = 0; i < numbers / sizeof(double); i++)
		d->params[i] += 0.0;
	if (label_bytes > 0)
		memcpy((char *) d->params + numbers, labels, label_bytes);
	return d;
}

PosteriorDistribution *
posterior_answer(TnpDistributionKind kind, int n, const double *params,
				 const PosteriorLabelList *labels)
{
	/* a classifier has room for more classes than the context has */
	return posterior_make_distribution(kind, kind == TNP_CLASSES ? labels->n : n, params,
									   labels->text, labels->bytes);
}

static int
compare_labels(const void *a, const void *b)
{
	return strcmp(*(const char *const *) a, *(const char *const *) b);
}

/* A label that is there twice would have two probabilities. */
static void
check_labels(int n, const char *labels)
{
	const char **sorted = palloc(Max(n, 1) * sizeof(*sorted));

	for (int i = 0; i < n; i++, labels += strlen(labels) + 1)
		sorted[i] = labels;
	qsort(sorted, n, sizeof(*sorted), compare_labels);
	for (int i = 1; i < n; i++)
		if (strcmp(sorted[i - 1], sorted[i]) == 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("invalid distribution: a label is there twice"),
					 errdetail("It is \"%s\".", sorted[i])));
	pfree(sorted);
}

PosteriorDistribution *
posterior_check_distribution(TnpDistributionKind kind, int n, const double *params,
							 const char *labels, int label_bytes)
{
	TnpDistribution d = {kind, n, params};
	TnpError	error;

	if (tnp_distribution_check(&d, &error) != TNP_OK)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid distribution: %s", error.message),
				 error.detail[0] != '\0' ? errdetail("%s", posterior_sentence(error.detail)) : 0,
				 errhint("Numbers must be finite, standard deviations positive, weights "
						 "non-negative with sum 1, borders and quantiles increasing.")));
	if (kind == TNP_CLASSES)
		check_labels(n, labels);
	return posterior_make_distribution(kind, n, params, labels, label_bytes);
}

/* ---- binary input and output ----------------------------------------------------------------- */

PG_FUNCTION_INFO_V1(posterior_distribution_send);
Datum
posterior_distribution_send(PG_FUNCTION_ARGS)
{
	PosteriorDistribution *d = PG_GETARG_DISTRIBUTION(0);
	int			size = tnp_distribution_size((TnpDistributionKind) d->kind, d->n);
	const char *label = posterior_labels(d);
	StringInfoData buffer;

	pq_begintypsend(&buffer);
	pq_sendint8(&buffer, d->version);
	pq_sendint8(&buffer, d->kind);
	pq_sendint32(&buffer, d->n);
	for (int i = 0; i < size; i++)
		pq_sendfloat8(&buffer, d->params[i]);
	for (int i = 0; d->label_bytes > 0 && i < d->n; i++, label += strlen(label) + 1)
		pq_sendstring(&buffer, label);
	PG_RETURN_BYTEA_P(pq_endtypsend(&buffer));
}

PG_FUNCTION_INFO_V1(posterior_distribution_recv);
Datum
posterior_distribution_recv(PG_FUNCTION_ARGS)
{
	StringInfo	buffer = (StringInfo) PG_GETARG_POINTER(0);
	int			version = pq_getmsgbyte(buffer),
				kind = pq_getmsgbyte(buffer),
				n = (int) pq_getmsgint(buffer, 4),
				size;
	double	   *params;
	StringInfoData labels;

	if (version != POSTERIOR_DISTRIBUTION_VERSION || kind < TNP_GAUSSIAN || kind > TNP_QUANTILES
		|| n < 1 || n > tnp_distribution_most((TnpDistributionKind) kind)
		|| (kind == TNP_GAUSSIAN && n != 1))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("invalid binary distribution"),
				 errdetail("Version %d, kind %d, %d components.", version, kind, n)));
	size = tnp_distribution_size((TnpDistributionKind) kind, n);
	if (buffer->len - buffer->cursor < size * 8)
		ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
						errmsg("invalid binary distribution"),
						errdetail("%d parameters are announced, %d bytes follow.", size,
								  buffer->len - buffer->cursor)));
	params = palloc(size * sizeof(double));
	for (int i = 0; i < size; i++)
		params[i] = pq_getmsgfloat8(buffer);
	initStringInfo(&labels);
	for (int i = 0; kind == TNP_CLASSES && i < n; i++)
	{
		appendStringInfoString(&labels, pq_getmsgstring(buffer));
		appendStringInfoChar(&labels, 0);
	}
	PG_RETURN_POINTER(posterior_check_distribution((TnpDistributionKind) kind, n, params,
												   labels.data, labels.len));
}

/* ---- constructors ---------------------------------------------------------------------------- */

PG_FUNCTION_INFO_V1(posterior_normal);
Datum
posterior_normal(PG_FUNCTION_ARGS)
{
	double		params[2] = {PG_GETARG_FLOAT8(0), PG_GETARG_FLOAT8(1)};

	PG_RETURN_POINTER(posterior_check_distribution(TNP_GAUSSIAN, 1, params, NULL, 0));
}

/* The numbers of a one-dimensional float8[] without NULLs. */
static double *
array_numbers(ArrayType *array, const char *name, int *n)
{
	if (ARR_NDIM(array) > 1 || array_contains_nulls(array))
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("%s must be a one-dimensional array without NULLs", name)));
	*n = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	return (double *) ARR_DATA_PTR(array);
}

static void
check_length(const char *name, int have, int want, int most)
{
	if (have != want || want < 1 || want > most)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR), errmsg("%s has the wrong length", name),
				 have != want
					 ? errdetail("It has %d element%s; %d were expected.", have,
								 have == 1 ? "" : "s", want)
					 : errdetail("It has %d elements; the range is 1 to %d.", have, most)));
}

PG_FUNCTION_INFO_V1(posterior_mixture);
Datum
posterior_mixture(PG_FUNCTION_ARGS)
{
	static const char *const names[3] = {"weights", "means", "standard deviations"};
	double	   *params = NULL;
	int			n = 0;

	for (int i = 0; i < 3; i++)
	{
		int			have;
		double	   *part = array_numbers(PG_GETARG_ARRAYTYPE_P(i), names[i], &have);

		if (i == 0)
			n = have;
		check_length(names[i], have, n, tnp_distribution_most(TNP_MIXTURE));
		if (i == 0)
			params = palloc(3 * n * sizeof(double));
		memcpy(params + i * n, part, n * sizeof(double));
	}
	PG_RETURN_POINTER(posterior_check_distribution(TNP_MIXTURE, n, params, NULL, 0));
}

PG_FUNCTION_INFO_V1(posterior_bars);
Datum
posterior_bars(PG_FUNCTION_ARGS)
{
	int			n,
				n_borders;
	double	   *masses = array_numbers(PG_GETARG_ARRAYTYPE_P(0), "masses", &n),
			   *borders = array_numbers(PG_GETARG_ARRAYTYPE_P(1), "borders", &n_borders),
			   *params;

	check_length("masses", n, n, tnp_distribution_most(TNP_BARS));
	check_length("borders", n_borders, n + 1, tnp_distribution_most(TNP_BARS) + 1);
	params = palloc((2 * n + 1) * sizeof(double));
	memcpy(params, masses, n * sizeof(double));
	memcpy(params + n, borders, (n + 1) * sizeof(double));
	PG_RETURN_POINTER(posterior_check_distribution(
		PG_GETARG_BOOL(2) ? TNP_BARS_HALF_NORMAL : TNP_BARS, n, params, NULL, 0));
}

PG_FUNCTION_INFO_V1(posterior_from_quantiles);
Datum
posterior_from_quantiles(PG_FUNCTION_ARGS)
{
	int			n;
	double	   *quantiles = array_numbers(PG_GETARG_ARRAYTYPE_P(0), "quantiles", &n),
			   *params;

	check_length("quantiles", n, n, tnp_distribution_most(TNP_QUANTILES));
	params = palloc((n + 2) * sizeof(double));
	memcpy(params, quantiles, n * sizeof(double));
	params[n] = PG_GETARG_FLOAT8(1);
	params[n + 1] = PG_GETARG_FLOAT8(2);
	PG_RETURN_POINTER(posterior_check_distribution(TNP_QUANTILES, n, params, NULL, 0));
}

PG_FUNCTION_INFO_V1(posterior_categorical);
Datum
posterior_categorical(PG_FUNCTION_ARGS)
{
	Datum	   *elements;
	bool	   *nulls;
	int			n,
				n_labels;
	double	   *probabilities = array_numbers(PG_GETARG_ARRAYTYPE_P(1), "probabilities", &n);
	StringInfoData labels;

	deconstruct_array(PG_GETARG_ARRAYTYPE_P(0), TEXTOID, -1, false, TYPALIGN_INT, &elements, &nulls,
					  &n_labels);
	check_length("probabilities", n, n, tnp_distribution_most(TNP_CLASSES));
	check_length("labels", n_labels, n, n);
	initStringInfo(&labels);
	for (int i = 0; i < n; i++)
	{
		if (nulls[i])
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("a label must not be NULL")));
		appendStringInfoString(&labels, TextDatumGetCString(elements[i]));
		appendStringInfoChar(&labels, '\0');
	}
	PG_RETURN_POINTER(
		posterior_check_distribution(TNP_CLASSES, n, probabilities, labels.data, labels.len));
}
