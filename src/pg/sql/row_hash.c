/*
 * row_hash.c: a number by which rows are put in an order that says nothing of them.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/rows/column_types.h"
#include "pg/rows/feature_cells.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/lsyscache.h"

/* How to read one argument. */
typedef struct HashedArgument
{
	PosteriorFeature value;		/* of an array: its elements */
	bool		array;
	int16		length;			/* of elements */
	bool		by_value;
	char		align;
} HashedArgument;

/* Every bit of the result depends on every bit of the argument (the finalizer of MurmurHash3). */
static uint64
mixed(uint64 v)
{
	v = (v ^ (v >> 33)) * UINT64CONST(0xff51afd7ed558ccd);
	v = (v ^ (v >> 33)) * UINT64CONST(0xc4ceb9fe1a85ec53);
	return v ^ (v >> 33);
}

/* What a model sees of a value; whatever is missing or not a number is the same. */
static uint64
value_bits(const PosteriorFeature *feature, Datum value, bool isnull)
{
	double		cell = posterior_feature_value(feature, value, isnull);
	uint64		bits = UINT64CONST(0x7ff8000000000000);

	if (!isnan(cell))
		memcpy(&bits, &cell, sizeof(bits));
	return bits;
}

static uint64
add_array(uint64 hash, const HashedArgument *argument, Datum value)
{
	ArrayType  *array = DatumGetArrayTypeP(value);
	Datum	   *elements;
	bool	   *nulls;
	int			n;

	deconstruct_array(array, ARR_ELEMTYPE(array), argument->length, argument->by_value,
					  argument->align, &elements, &nulls, &n);
	for (int i = 0; i < n; i++)
		hash = mixed(hash ^ value_bits(&argument->value, elements[i], nulls[i]));
	pfree(elements);
	pfree(nulls);
	return hash;
}

static HashedArgument *
arguments_resolve(FunctionCallInfo fcinfo)
{
	MemoryContext memory = fcinfo->flinfo->fn_mcxt;
	HashedArgument *arguments =
		MemoryContextAllocZero(memory, Max(PG_NARGS(), 1) * sizeof(HashedArgument));

	if (get_fn_expr_variadic(fcinfo->flinfo))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("columns cannot be given as a VARIADIC array"),
				 errhint("Give them one by one.")));
	for (int i = 0; i < PG_NARGS(); i++)
	{
		Oid			type = getBaseType(get_fn_expr_argtype(fcinfo->flinfo, i)),
					element = get_element_type(type);

		arguments[i].array = OidIsValid(element);
		if (arguments[i].array)
			get_typlenbyvalalign(element, &arguments[i].length, &arguments[i].by_value,
								 &arguments[i].align);
		posterior_feature_init(&arguments[i].value, arguments[i].array ? element : type, i + 1,
							   memory);
	}
	return arguments;
}

/*
 * row_hash(VARIADIC "any") returns int8: of what models see of the values, which are what features
 * and targets can be. The same in every session and on every machine; labels of enums may be
 * renamed, so it is stable and no more.
 */
PG_FUNCTION_INFO_V1(posterior_row_hash);
Datum
posterior_row_hash(PG_FUNCTION_ARGS)
{
	const HashedArgument *arguments = fcinfo->flinfo->fn_extra;
	uint64		hash = 0;

	if (arguments == NULL)
		arguments = fcinfo->flinfo->fn_extra = arguments_resolve(fcinfo);
	for (int i = 0; i < PG_NARGS(); i++)
	{
		/* so that the place of a value counts, and zeros are not lost */
		hash = mixed(hash + UINT64CONST(0x9e3779b97f4a7c15));
		if (arguments[i].array && !PG_ARGISNULL(i))
			hash = add_array(hash, &arguments[i], PG_GETARG_DATUM(i));
		else
			hash = mixed(hash ^ value_bits(&arguments[i].value, PG_ARGISNULL(i) ? (Datum) 0
										   : PG_GETARG_DATUM(i), PG_ARGISNULL(i)));
	}
	PG_RETURN_INT64((int64) hash);
}
