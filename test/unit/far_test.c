/*
 * far_test.c: numbers that are far from all others, of a column and of the targets
 * (docs/model-format.md section 3, "Far cells" and "Far targets"): which they are, on both sides
 * alike.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>
#include <stdlib.h>

#include "engine/features/column.h"
#include "engine/features/far.h"
#include "tap.h"

#define CELLS 80
#define TIMES 32

static int
compare(const void *a, const void *b)
{
	double		x = *(const double *) a,
				y = *(const double *) b;

	return (x > y) - (x < y);
}

/* How many cells are far, of numbers from -1 to 1 but for those given; and of their negatives. */
static void
far_of(int n, const double *given, int expected, const char *what)
{
	for (int sign = 1; sign >= -1; sign -= 2)
	{
		TnpColumn	column = {.kind = TNP_NUMERIC};
		double		v[CELLS];
		int64_t		left;
		int			lacking = 0;

		for (int i = 0; i < CELLS; i++)
			v[i] = sign * (i < n ? given[i] : (i - n) * 2.0 / (CELLS - n) - 1);
		qsort(v, CELLS, sizeof(double), compare);
		left = tnp_cells_bind(v, CELLS, TIMES, &column.reach);
		for (int i = 0; i < CELLS; i++)
			lacking += tnp_column_lacks(&column, v[i]);
		ok(left == CELLS - expected && lacking == expected && column.reach.is_set == (expected > 0),
		   "%s: %d are far, %d", what, lacking, sign);
		ok(!tnp_column_lacks(&column, 0.5) && tnp_column_lacks(&column, NAN)
		   && tnp_column_lacks(&column, sign * 1e200) == (expected > 0), "%s: and others", what);
		ok(expected == 0 || isnan(tnp_column_value(&column, sign * 1e200)), "%s: no number", what);
	}
}

/*
 * How many targets are far, of n from -1 to 1 but for the `given` first ones; and of their
 * negatives. Far ones count as the nearest other one on their side does.
 */
static void
targets_of(int n, int given, const double *first, int expected, const char *what)
{
	for (int sign = 1; sign >= -1; sign -= 2)
	{
		TnpTargetBound bound;
		double		v[600],
					limit = 0;
		int			moved = 0;
		bool		near = true;

		for (int i = 0; i < n; i++)
		{
			v[i] = sign * (i < given ? first[i] : (i - given) * 2.0 / (n - given) - 1);
			if (i >= given || fabs(first[i]) < 1e3)
				limit = fmax(limit, fabs(v[i]));
		}
		qsort(v, n, sizeof(double), compare);
		tnp_targets_bind(v, n, TIMES, &bound);
		for (int i = 0; i < n; i++)
		{
			double		y = tnp_bounded_target(&bound, v[i]);

			moved += y != v[i];
			near = near && (fabs(v[i]) < 1e3 ? y == v[i] : expected == 0
							|| fabs(y - v[i] / fabs(v[i]) * limit) < 0.2);
		}
		ok(moved == expected && near && bound.is_set == (expected > 0), "%s: %d targets, %d", what,
		   moved, sign);
	}
}

static void
check_targets(void)
{
	static const double one[] = {1e6},
				two[] = {1e6, -2e7},
				pair[] = {1e6, 1e6},
				huge[] = {1e308},
				near[] = {20};
	double		none[400] = {0},
				events[400] = {1e6, 1, 2, 1, 3, 1, 2, 2, 5},
				few[400] = {1e6, 1, 2, 1, 3, 1, 2, 2};

	targets_of(80, 0, NULL, 0, "none far");
	targets_of(80, 1, one, 1, "one far");
	targets_of(10, 1, one, 1, "one far of ten");
	targets_of(8, 1, one, 0, "too few to tell");
	targets_of(80, 1, huge, 1, "one as large as numbers are");
	targets_of(80, 1, near, 0, "not so far");
	targets_of(256, 2, two, 0, "two of 256, on both sides");
	targets_of(257, 2, two, 2, "two of 257");
	targets_of(257, 2, pair, 2, "two alike");
	targets_of(400, 400, none, 0, "nothing else");
	targets_of(400, 400, events, 1, "one among events");
	targets_of(400, 400, few, 0, "one among few events");
}

int
main(void)
{
	static const double wrong[] = {1e6},
				code[] = {-999, -999, -999, -999, -999, -999},
				codes[] = {-999, -9999, -999, -9999, -999},
				group[] = {1000, 1001, 1002, 1003, 1004},
				many[] = {-999, -999, -999, -999, -999, -999, -999, -999, -999, -999, -999},
				near[] = {20, -30},
				huge[] = {1e308};
	double		zeros[CELLS / 2 + 2] = {0},
				wide[8];
	TnpColumn	column = {.kind = TNP_NUMERIC};

	far_of(0, NULL, 0, "none");
	far_of(1, wrong, 1, "one too large");
	far_of(1, huge, 1, "one as large as numbers are");
	far_of(6, code, 6, "a number for none");
	far_of(5, codes, 5, "two numbers for none");
	far_of(5, group, 0, "a group of its own");
	far_of(11, many, 0, "more than one of eight");
	far_of(2, near, 0, "not so far");
	for (int i = 0; i < 8; i++)
		wide[i] = i == 0 ? -1.2e308 : 1.2e308 + i * 1e306;
	ok(tnp_cells_bind(wide, 8, TIMES, &column.reach) == 8 && !column.reach.is_set,
	   "a distance without room is none");
	for (int i = 0; i < 8; i++)
		wide[i] = i == 7 ? 1e-300 : 5e-324;
	ok(tnp_cells_bind(wide, 8, TIMES, &column.reach) == 8 && !column.reach.is_set,
	   "most are the smallest number");
	zeros[0] = 1e6;
	far_of(CELLS / 2 + 2, zeros, 0, "one event among nothing");
	ok(tnp_cells_bind((const double[]) {1, 2, 3, 4, 5, 6, 1e9}, 7, TIMES, &column.reach) == 7
	   && !column.reach.is_set, "too few to tell");
	check_targets();
	return done_testing();
}
