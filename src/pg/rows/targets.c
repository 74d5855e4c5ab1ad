/*
 * targets.c: rows with several targets: arrays of numbers, and the models that take them.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "pg/rows/targets.h"

#include "catalog/pg_type.h"

int
posterior_array_targets(ArrayType *array, double *y, bool *known)
{
	Datum	   *values;
	bool	   *nulls;
	int			n,
				missing = 0,
				first = -1;

	deconstruct_array(array, FLOAT8OID, sizeof(float8), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE, &values,
					  &nulls, &n);
	if (ARR_NDIM(array) != 1 || n > TNP_MAX_TARGETS)
		ereport(ERROR,
				(errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				 errmsg("the targets of a row are an array of 1 to %d numbers", TNP_MAX_TARGETS),
				 errdetail("It has %d dimensions and %d numbers.", ARR_NDIM(array), n)));
	for (int t = 0; t < n; t++)
		if (nulls[t])
		{
			missing++;
			first = first < 0 ? t : first;
		}
	if (missing > 0 && missing < n)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("target %d of %d is NULL", first + 1, n),
				 errdetail("The targets of a row are known all or none."),
				 errhint("Leave such rows out, by FILTER or WHERE.")));
	*known = missing == 0;
	for (int t = 0; *known && t < n; t++)
		y[t] = posterior_check_target(DatumGetFloat8(values[t]));
	pfree(values);
	pfree(nulls);
	return n;
}

void
posterior_rows_check_targets(PosteriorRows *rows, int n)
{
	/* one target is also what rows have of which nothing is known yet */
	if (rows->n == 0 && rows->y == NULL && rows->n_targets == 1)
		rows->n_targets = n;
	if (rows->n_targets != n)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("a row has %d target%s, the rows before it have %d", n, n == 1 ? "" : "s",
						rows->n_targets),
				 errhint("Give as many targets for each row, in the same order.")));
}

void
posterior_check_model_targets(const TnpModel *model, const char *name, int targets)
{
	int			taken = tnp_model_info(model)->n_targets;

	if (taken == targets)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("model \"%s\" takes %d target%s per row, not %d", name, taken,
					taken == 1 ? "" : "s", targets),
			 taken > 1 ? errhint("Choose a model of one target (targets in the view "
								 "posterior.models), or give all targets as an array, "
								 "ARRAY[y1, y2, ...].")
					   : errhint("Choose a model of so many targets, or of any number (any_targets "
								 "in the view posterior.models), or make a context for each of "
								 "them.")));
}
