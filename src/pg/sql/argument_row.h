/*
 * argument_row.h: the row that the arguments of posterior.predict make.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_ARGUMENT_ROW_H
#define POSTERIOR_ARGUMENT_ROW_H

#include "pg/sql/call_site.h"

/* Whether an argument that predict(context, ...) cannot do without is NULL: so is the answer. */
bool		posterior_argument_row_missing(FunctionCallInfo fcinfo);

/* Find out how to read the arguments, at the first call; raises for types that are no features. */
void		posterior_argument_row_types(FunctionCallInfo fcinfo, PosteriorCall *call);

/*
 * The row that the features, arguments 1 and on, make for call->encoding. It is the first of the
 * rows returned, whose count is undefined, and stays until the next call.
 */
PosteriorRows *posterior_argument_row(FunctionCallInfo fcinfo, PosteriorCall *call);

/* Raise if a row for a named context is of this type and the type is an array. */
void		posterior_refuse_array(Oid type);

#endif							/* POSTERIOR_ARGUMENT_ROW_H */
