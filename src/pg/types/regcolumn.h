/*
 * regcolumn.h: type posterior.regcolumn: a column, as regclass is a relation.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_REGCOLUMN_H
#define POSTERIOR_REGCOLUMN_H

#include "pg/base/compat.h"

#include "access/attnum.h"

/*
 * Passed by value in 8 bytes: the relation above, the column's number below. 0 is the invalid
 * column "-".
 */
static inline Datum
posterior_regcolumn_datum(Oid relation, AttrNumber column)
{
	return Int64GetDatum((int64) (((uint64) relation << 16) | (uint16) column));
}

static inline Oid
posterior_regcolumn_relation(Datum column)
{
	return (Oid) ((uint64) DatumGetInt64(column) >> 16);
}

static inline AttrNumber
posterior_regcolumn_number(Datum column)
{
	return (AttrNumber) (DatumGetInt64(column) & 0xffff);
}

/* The numbers of the columns in an array of posterior.regcolumn without NULLs. */
AttrNumber *posterior_regcolumn_numbers(Datum array, int *n);

/* The name of a column, or NULL when it is gone. */
char	   *posterior_column_name(Oid relation, AttrNumber column);

#endif							/* POSTERIOR_REGCOLUMN_H */
