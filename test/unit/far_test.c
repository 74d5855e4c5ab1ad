/*
 * far_test.c: numbers of a column that are far from all others (docs/model-format.md section 3,
 * "Far cells"): which they are, on both sides alike.
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
		left = tnp_column_bind(v, CELLS, TIMES, &column);
		for (int i = 0; i < CELLS; i++)
			lacking += tnp_column_lacks(&column, v[i]);
		ok(left == CELLS - expected && lacking == expected && column.bounded == (expected > 0),
		   "%s: %d are far, %d", what, lacking, sign);
		ok(!tnp_column_lacks(&column, 0.5) && tnp_column_lacks(&column, NAN)
		   && tnp_column_lacks(&column, sign * 1e200) == (expected > 0), "%s: and others", what);
		ok(expected == 0 || isnan(tnp_column_value(&column, sign * 1e200)), "%s: no number", what);
	}
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
	double		zeros[CELLS / 2 + 2] = {0};
	TnpColumn	column = {.kind = TNP_NUMERIC};

	far_of(0, NULL, 0, "none");
	far_of(1, wrong, 1, "one too large");
	far_of(1, huge, 1, "one as large as numbers are");
	far_of(6, code, 6, "a number for none");
	far_of(5, codes, 5, "two numbers for none");
	far_of(5, group, 0, "a group of its own");
	far_of(11, many, 0, "more than one of eight");
	far_of(2, near, 0, "not so far");
	zeros[0] = 1e6;
	far_of(CELLS / 2 + 2, zeros, 0, "one event among nothing");
	ok(tnp_column_bind((const double[]) {1, 2, 3, 4, 5, 6, 1e9}, 7, TIMES, &column) == 7
	   && !column.bounded, "too few to tell");
	return done_testing();
}
