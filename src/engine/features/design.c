/*
 * design.c: the numbers and indicators that regressions of the prefix make of a row
 * (docs/model-format.md section 5, "Ridge").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/design.h"

#include <math.h>

#include "engine/features/column.h"

#define KNOTS 3
#define FARTHEST 1048576.0		/* of numbers that are not clipped */

static const double knots[KNOTS] = {-0.7, 0, 0.7};

/*
 * What an entry of the design is: its slot's value, a hinge at a knot, or (from FIRST_BIN on) the
 * indicator of a bin.
 */
enum
{
	ENTRY_VALUE, FIRST_HINGE, FIRST_BIN = FIRST_HINGE + KNOTS
};

/* The kinds of entries that a column has; returns how many. */
static int
column_entries(const TnpColumn *column, bool splines, unsigned char *kind)
{
	int			n = 0;

	if (column->kind == TNP_CATEGORICAL)
	{
		for (int b = 0; b < TNP_MISSING_BIN; b++)
			if (column->count[b] > 0)
				kind[n++] = (unsigned char) (FIRST_BIN + b);
	}
	else
	{
		kind[n++] = ENTRY_VALUE;
		for (int j = 0; splines && j < KNOTS; j++)
			kind[n++] = (unsigned char) (FIRST_HINGE + j);
	}
	if (column->count[TNP_MISSING_BIN] > 0)
		kind[n++] = FIRST_BIN + TNP_MISSING_BIN;
	return n;
}

void
tnp_design_choose(const TnpStats *stats, bool splines, TnpDesign *design)
{
	unsigned char kind[TNP_BINS + 1 + KNOTS];
	int			n = 0;

	for (int s = 0; s < stats->n_slots; s++)
	{
		int			more = column_entries(tnp_slot_column(stats, s), splines, kind);

		if (n + more > TNP_LARGEST_DESIGN - 1)
			break;
		for (int i = 0; i < more; i++)
		{
			design->slot[n] = (unsigned char) s;
			design->kind[n++] = kind[i];
		}
	}
	design->n = n + 1;
	design->is_whole = false;
}

/* A number as it is but for its scale, with room for its square. */
static double
whole_value(const TnpColumn *column, double value)
{
	if (column->constant)
		return 0;
	return fmin(fmax(tnp_column_standardise(column, value), -FARTHEST), FARTHEST);
}

void
tnp_design_row(const TnpModel *model, const TnpStats *stats, const TnpDesign *design,
			   const double *x, double *u)
{
	int			slot = -1,
				bin = 0;
	double		z = 0;

	for (int i = 0; i < design->n - 1; i++)
	{
		int			kind = design->kind[i];

		if (design->slot[i] != slot)
		{
			const TnpColumn *column = tnp_slot_column(stats, design->slot[i]);
			double		cell = tnp_slot_cell(stats, design->slot[i], x),
						value = tnp_column_value(column, cell);

			slot = design->slot[i];
			bin = tnp_column_bin(column, cell);
			z = isnan(value) ? 0 : design->is_whole ? whole_value(column, value)
				: tnp_column_scale(model, column, value);
		}
		if (kind == ENTRY_VALUE)
			u[i] = z;
		else if (kind < FIRST_BIN)
			u[i] = fmax(z - knots[kind - FIRST_HINGE], 0);
		else
			u[i] = bin == kind - FIRST_BIN;
	}
	u[design->n - 1] = 1;
}
