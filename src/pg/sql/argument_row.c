/*
 * argument_row.c: the row that the arguments of posterior.predict make.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/sql/argument_row.h"

#include "pg/rows/json_cells.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

/* Whether the features are one jsonb. */
static bool
arguments_are_json(FunctionCallInfo fcinfo)
{
	return PG_NARGS() == 2 && !get_fn_expr_variadic(fcinfo->flinfo)
		&& getBaseType(get_fn_expr_argtype(fcinfo->flinfo, 1)) == JSONBOID;
}

bool
posterior_argument_row_missing(FunctionCallInfo fcinfo)
{
	return PG_ARGISNULL(0) || (arguments_are_json(fcinfo) && PG_ARGISNULL(1));
}

void
posterior_argument_row_types(FunctionCallInfo fcinfo, PosteriorCall *call)
{
	Oid			types[FUNC_MAX_ARGS];
	int			n_features;

	if (call->rows != NULL || arguments_are_json(fcinfo))
		return;
	n_features = posterior_argument_types(fcinfo, 1, types);
	call->rows = posterior_rows_make(call->memory, n_features, types);
}

PosteriorRows *
posterior_argument_row(FunctionCallInfo fcinfo, PosteriorCall *call)
{
	const PosteriorContextHandle *encoding = call->encoding;
	PosteriorRows *row = call->rows;
	double	   *x;

	if (arguments_are_json(fcinfo))
	{
		row =
			posterior_rows_of_kinds(CurrentMemoryContext, encoding->n_features, encoding->kinds);
		posterior_json_cells(PG_GETARG_JSONB_P(1), row->n_features, row->kinds, NULL,
							 posterior_rows_next(row));
		return row;
	}
	posterior_adopt_columns(encoding->n_features, encoding->kinds, row);
	row->n = 0;
	x = posterior_rows_next(row);
	for (int f = 0; f < row->n_features; f++)
		x[f] = posterior_feature_cell(&row->features[f], PG_GETARG_DATUM(1 + f),
									  PG_ARGISNULL(1 + f), f + 1);
	return row;
}

void
posterior_refuse_array(Oid type)
{
	/* a column of type name says which function is meant, before its second argument does */
	if (OidIsValid(get_element_type(type)))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("a row is needed, not %s", format_type_be(type)),
				 errhint("For an array of rows give the context's name as text.")));
}
