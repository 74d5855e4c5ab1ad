/*
 * far.c: numbers that are far from all others, of a column and of the targets (docs/model-format.md
 * section 3, "Far cells" and "Far targets").
 *
 * -999 that stands for nothing, or a decimal point in the wrong place, would make all other cells
 * of a column nearly equal. What such a cell says is what a missing one says. A row with such a
 * target still says on which side it lies. A target that a flag foretells is no mistake.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/far.h"

#include <math.h>

#define ROWS_OF_FAR 8			/* at most one cell of so many is far, */
#define FEW_DIFFERENT 2			/* with so many values at most, */
#define ROWS_OF_MISTAKE 64		/* or one of so many: else they are a group of their own */

#define OTHERS_OF_TARGET 8		/* targets away from the middle, beside far ones */
#define ROWS_OF_TARGET 256		/* for each that is begun, one target may be far */
#define MOST_TOLD 50.0			/* times as far as others, that a column may foretell */

/* Numbers in ascending order, taken from the farthest from their middle inwards. */
typedef struct Inwards
{
	const double *v;
	int64_t		m,
				low,			/* what is left */
				high;
	double		middle;
} Inwards;

static Inwards
begin_outside(const double *v, int64_t m)
{
	double		low = v[(m - 1) / 2],
				high = v[m / 2];

	/* half of the smallest number is none */
	return (Inwards) {v, m, 0, m - 1, low == high ? low : 0.5 * low + 0.5 * high};
}

/* How far the farthest number of those left is from the middle. */
static double
distance(const Inwards *in)
{
	return fmax(in->middle - in->v[in->low], in->v[in->high] - in->middle);
}

/* Take it; returns whether it is another number than those taken. */
static bool
take(Inwards *in)
{
	if (in->middle - in->v[in->low] == distance(in))
	{
		in->low++;
		return in->low == 1 || in->v[in->low - 1] != in->v[in->low - 2];
	}
	in->high--;
	return in->high == in->m - 2 || in->v[in->high + 1] != in->v[in->high + 2];
}

/* How many of the numbers are their middle. */
static int64_t
count_middle(const Inwards *in)
{
	int64_t		equal = 0;

	for (int64_t i = 0; i < in->m; i++)
		equal += in->v[i] == in->middle;
	return equal;
}

int64_t
tnp_cells_bind(const double *v, int64_t m, double times, TnpReach *reach)
{
	Inwards		in;
	int64_t		left = m,
				different = 0;

	reach->is_set = false;
	if (m < ROWS_OF_FAR)
		return m;
	in = begin_outside(v, m);
	/* events among nothing are no mistakes */
	if (2 * count_middle(&in) > m)
		return m;
	for (int64_t k = 1; k <= m / ROWS_OF_FAR; k++)
	{
		double		outer = distance(&in),
					inner;

		different += take(&in);
		inner = distance(&in);
		if (inner > 0 && outer >= times * inner && isfinite(outer)
			&& (different <= FEW_DIFFERENT || k <= m / ROWS_OF_MISTAKE))
		{
			left = m - k;
			*reach = (TnpReach) {true, in.middle, sqrt(inner) * sqrt(outer)};
		}
	}
	return left;
}

void
tnp_targets_bind(const double *v, int64_t m, double times, TnpTargetBound *bound)
{
	Inwards		in;
	int64_t		apart;

	bound->is_set = false;
	if (m <= OTHERS_OF_TARGET)
		return;
	in = begin_outside(v, m);
	/* few events among nothing say too little of how large events are */
	apart = m - count_middle(&in);
	for (int64_t k = 1; k <= (m - 1) / ROWS_OF_TARGET + 1 && k + OTHERS_OF_TARGET <= apart; k++)
	{
		double		outer = distance(&in);

		take(&in);
		if (outer >= times * distance(&in) && isfinite(outer))
		{
			double		limit = distance(&in);

			*bound = (TnpTargetBound) {true, in.middle, sqrt(limit) * sqrt(outer), limit};
		}
	}
}

/*
 * Whether that column tells which of the first m rows have a far target, none of which is so far
 * that all others would be one.
 */
static bool
foretells(const TnpRows *rows, int64_t m, int column, const TnpTargetBound *bound)
{
	double		near = NAN,
				far = NAN;
	int64_t		lacking = 0,
				others = 0;

	for (int64_t i = 0; i < m; i++)
	{
		double		x = rows->x[i * rows->n_features + column],
				   *own = tnp_bounded_target(bound, rows->y[i]) == rows->y[i] ? &near : &far;

		if (own == &far && !(fabs(rows->y[i] - bound->middle) <= MOST_TOLD * bound->limit))
			return false;
		if (isnan(*own))
			*own = x;
		others += own == &near;
		lacking += own == &near && isnan(x);
		/* a far target without the cell, or two kinds of cells on one side */
		if (own == &far ? !(x == far) : !isnan(x) && x != near)
			return false;
	}
	/* two cells that are there, of which one is that of a mistake, tell nothing */
	return !isnan(near) && !isnan(far) && near != far && 2 * lacking < others;
}

bool
tnp_targets_foretold(const TnpRows *rows, int64_t m, const TnpTargetBound *bound)
{
	for (int f = 0; bound->is_set && f < rows->n_features; f++)
		if (foretells(rows, m, f, bound))
			return true;
	return false;
}
