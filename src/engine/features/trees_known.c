/*
 * trees_known.c: of which rows trees may speak (docs/model-format.md section 8, "Trees").
 *
 * Rows come in groups often: those of one person, of one day. A tree knows a group by heart from a
 * few of its rows, and the others, left out, make it look good; of a group that it has not seen it
 * knows less than a smooth function does. A column of few values tells new groups from others; one
 * of a single value tells nothing.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/trees_known.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/compare.h"
#include "engine/features/column.h"

#define ROWS_OF_VALUE 8			/* on average, or more: as many as a leaf has */

/* A slot's cell; what is missing is equal, and above all others. */
static double
cell_of(const TnpStats *stats, int slot, const double *x)
{
	double		value = tnp_slot_cell(stats, slot, x);

	return tnp_column_lacks(tnp_slot_column(stats, slot), value) ? INFINITY : value;
}

/* The values of a slot in the prefix, ascending, into values [n]; returns how many. */
static int64_t
list_values(const TnpRows *rows, const TnpStats *stats, int slot, double *values)
{
	int64_t		found = 0;

	for (int64_t i = 0; i < stats->n0; i++)
		values[i] = cell_of(stats, slot, rows->x + i * rows->n_features);
	qsort(values, (size_t) stats->n0, sizeof(double), tnp_compare_doubles);
	for (int64_t i = 0; i < stats->n0; i++)
		if (i == 0 || values[i] > values[i - 1])
			values[found++] = values[i];
	return found;
}

TnpStatus
tnp_trees_note_known(const TnpEnv *env, const TnpRows *rows, const TnpStats *stats,
					 TnpTrees *trees, TnpError *error)
{
	int64_t		few = stats->n0 / ROWS_OF_VALUE,
				noted = 0;
	/* each slot is listed behind those before it */
	double	   *values = tnp_alloc(env, (size_t) (trees->n_slots * few + stats->n0),
								   sizeof(double));
	TnpStatus	status;

	trees->known_until = tnp_alloc_zero(env, (size_t) trees->n_slots, sizeof(int64_t));
	status = values == NULL || trees->known_until == NULL ? tnp_no_memory(error) : TNP_OK;
	for (int s = 0; status == TNP_OK && s < trees->n_slots; s++)
	{
		int64_t		found;

		if (tnp_interrupted(env))
		{
			status = tnp_fail(error, TNP_INTERRUPTED, "interrupted");
			break;
		}
		found = list_values(rows, stats, s, values + noted);
		noted += found > 1 && found <= few ? found : 0;
		trees->known_until[s] = noted;
	}
	if (status == TNP_OK)
	{
		/* a byte more: no slot may have few values */
		trees->known = tnp_alloc(env, 1, noted * sizeof(double) + 1);
		if (trees->known == NULL)
			status = tnp_no_memory(error);
		else
			memcpy(trees->known, values, noted * sizeof(double));
	}
	tnp_free(env, values);
	return status;
}

bool
tnp_trees_know(const TnpStats *stats, const double *x)
{
	const TnpTrees *trees = &stats->trees;
	int64_t		from = 0;

	for (int s = 0; s < trees->n_slots; s++)
	{
		double		cell = cell_of(stats, s, x);
		size_t		values = (size_t) (trees->known_until[s] - from);

		if (values > 0 && bsearch(&cell, trees->known + from, values, sizeof(double),
								  tnp_compare_doubles) == NULL)
			return false;
		from += (int64_t) values;
	}
	return true;
}
