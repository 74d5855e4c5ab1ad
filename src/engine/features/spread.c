/*
 * spread.c: some rows of the prefix, evenly spaced along the targets (docs/model-format.md section
 * 5): those that carry the process, and those that lend their cells to queries.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/spread.h"

#include <math.h>
#include <stdlib.h>

#include "engine/features/column.h"

/* A row of the prefix, and what orders it. */
typedef struct Place
{
	const double *key;			/* the target, the slots' values, which cells are missing */
	int			width;			/* of key */
	int64_t		row;
} Place;

static int
compare_places(const void *a, const void *b)
{
	const Place *x = a,
			   *y = b;

	for (int k = 0; k < x->width; k++)
		if (x->key[k] != y->key[k])
			return x->key[k] > y->key[k] ? 1 : -1;
	return (x->row > y->row) - (x->row < y->row);
}

int
tnp_spread_rows(const TnpModel *model, const TnpRows *rows, const TnpStats *stats, int most,
				int64_t *chosen)
{
	int64_t		n = stats->n0,
				m = n < most ? n : most;
	int			slots = stats->n_slots,
				width = 1 + 2 * slots;
	Place	   *places = tnp_alloc_zero(&model->env, n, sizeof(Place));
	double	   *keys = tnp_alloc(&model->env, (size_t) n * width, sizeof(double));

	if (places == NULL || keys == NULL)
	{
		tnp_free(&model->env, keys);
		tnp_free(&model->env, places);
		return -1;
	}
	for (int64_t i = 0; i < n; i++)
	{
		double	   *key = keys + i * width;

		places[i] = (Place) {key, width, i};
		key[0] = stats->y_scale < 0 ? -rows->y[i] : rows->y[i];
		for (int s = 0; s < slots; s++)
		{
			const TnpColumn *column = tnp_slot_column(stats, s);
			double		value = tnp_column_value(column, tnp_slot_cell(stats, s, rows->x
																	   + i * rows->n_features));

			key[1 + s] = isnan(value) ? 0 : tnp_column_scale(model, column, value);
			key[1 + slots + s] = isnan(value);
		}
	}
	qsort(places, n, sizeof(Place), compare_places);
	for (int64_t i = 0; i < m; i++)
		chosen[i] = places[(2 * i + 1) * n / (2 * m)].row;
	tnp_free(&model->env, keys);
	tnp_free(&model->env, places);
	return (int) m;
}
