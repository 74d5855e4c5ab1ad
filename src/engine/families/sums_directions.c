/*
 * sums_directions.c: directions of a basis, found by the search of features/directions.c. Once a
 * basis is made they are integers in it, and their features are as exact as others
 * (sums_features.c).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/families/sums.h"

#include <math.h>

#define ROWS 4096				/* that directions are found on, at most */

/* What the search reads and finds. */
typedef struct Found
{
	int			n,				/* rows at even distances */
				columns;		/* numeric ones */
	int		   *column;			/* [columns] their places */
	double	   *z,				/* [n, columns] standard scores, 0 where missing */
			   *y;				/* [n] targets in units of the basis */
	int64_t    *weight;			/* [directions, columns] */
} Found;

static bool
found_room(const TnpModel *model, const TnpRows *rows, Found *f)
{
	f->n = rows->n < ROWS ? (int) rows->n : ROWS;
	f->column = tnp_alloc(&model->env, rows->n_features, sizeof(int));
	if (f->column == NULL)
		return false;
	for (int i = 0; i < rows->n_features; i++)
		if (rows->kinds == NULL || rows->kinds[i] == TNP_NUMERIC)
			f->column[f->columns++] = i;
	if (f->columns == 0)
		return true;
	f->z = tnp_alloc(&model->env, (size_t) f->n * (f->columns + 1), sizeof(double));
	f->weight = tnp_alloc(&model->env, (size_t) sums_config(model)->directions * f->columns,
						  sizeof(int64_t));
	f->y = f->z == NULL ? NULL : f->z + (size_t) f->n * f->columns;
	return f->z != NULL && f->weight != NULL;
}

static void
found_read(const SumsConfig *c, const TnpRows *rows, const int64_t *basis, Found *f)
{
	for (int i = 0; i < f->n; i++)
	{
		int64_t		row = (int64_t) i * rows->n / f->n;

		f->y[i] = (rows->y[row] - sums_number(basis[SUMS_CENTER]))
			/ sums_number(basis[SUMS_SCALE]);
		for (int k = 0; k < f->columns; k++)
		{
			double		x = rows->x[row * rows->n_features + f->column[k]];

			f->z[(size_t) i * f->columns + k] = isnan(x) ? 0
				: sums_wide_score(sums_column(c, basis, f->column[k]), x);
		}
	}
}

TnpStatus
sums_find_directions(const TnpModel *model, const TnpRows *rows, int64_t *basis, TnpError *error)
{
	const TnpEnv *env = &model->env;
	const SumsConfig *c = sums_config(model);
	int64_t    *words = (int64_t *) sums_directions(c, basis);
	int			found = 0;
	Found		f = {0};
	TnpStatus	status = TNP_OK;

	if (c->directions == 0)
		return TNP_OK;
	if (!found_room(model, rows, &f))
		status = tnp_no_memory(error);
	else if (f.columns > 0)
	{
		found_read(c, rows, basis, &f);
		status = tnp_directions_find(env, f.n, f.columns, f.z, f.y, c->directions,
									 (SUMS_MOST_FEATURES - sums_width(c, basis)) / (1 + c->waves),
									 f.weight, &found, error);
	}
	for (int i = 0; i < found; i++)
		for (int k = 0; k < f.columns; k++)
			words[1 + (size_t) i * rows->n_features + f.column[k]]
				= f.weight[(size_t) i * f.columns + k];
	words[0] += found;
	tnp_free(env, f.column);
	tnp_free(env, f.z);
	tnp_free(env, f.weight);
	return status;
}
