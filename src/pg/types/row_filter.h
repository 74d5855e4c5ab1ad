/*
 * row_filter.h: type posterior.row_filter: a condition on the rows of one relation.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_ROW_FILTER_H
#define POSTERIOR_ROW_FILTER_H

#include "pg/base/compat.h"

#include "nodes/nodes.h"

/*
 * A condition on `relation`, from the text of a boolean expression over its columns; checked. The
 * result is a varlena.
 */
Datum		posterior_make_row_filter(Oid relation, const char *condition);

/*
 * The condition as text with the names of the moment, for a query of this context whose only
 * relation is the filter's. NULL when the relation or a column is gone; raises when it means
 * nothing there any more. *stable becomes false where it can come to hold for other rows although
 * none is written.
 */
char	   *posterior_row_filter_query(Datum filter, const char *context, bool *stable);

/*
 * The condition as an analysed expression over the columns of the filter's relation, range table
 * entry 1; NULL and errors as above.
 */
Node	   *posterior_row_filter_expression(Datum filter, const char *context);

#endif							/* POSTERIOR_ROW_FILTER_H */
