/*
 * column_types.c: SQL types as features and targets.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/rows/column_types.h"

#include "pg/rows/labels.h"

#include "catalog/pg_type.h"
#include "utils/lsyscache.h"

bool
posterior_can_be_feature(Oid type)
{
	switch (getBaseType(type))
	{
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case FLOAT4OID:
		case FLOAT8OID:
		case NUMERICOID:
		case BOOLOID:
		case DATEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
		case INTERVALOID:
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
		case NAMEOID:
			return true;
		default:
			return type_is_enum(getBaseType(type));
	}
}

bool
posterior_can_be_target(Oid type)
{
	return posterior_is_number(type) || posterior_can_be_label(type)
		|| getBaseType(type) == FLOAT8ARRAYOID;
}

bool
posterior_is_number(Oid type)
{
	switch (getBaseType(type))
	{
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case FLOAT4OID:
		case FLOAT8OID:
		case NUMERICOID:
			return true;
		default:
			return false;
	}
}

bool
posterior_has_attributes(Oid type)
{
	Oid			base = getBaseType(type),
				element = get_element_type(base);

	if (OidIsValid(element))
		return posterior_has_attributes(element);
	switch (get_typtype(base))
	{
		case TYPTYPE_COMPOSITE:
			return true;
		case TYPTYPE_RANGE:
			return posterior_has_attributes(get_range_subtype(base));
		case TYPTYPE_MULTIRANGE:
			return posterior_has_attributes(get_multirange_range(base));
		default:
			return false;
	}
}
