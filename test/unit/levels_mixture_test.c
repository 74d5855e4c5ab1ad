/*
 * levels_mixture_test.c: narrow components of a mixture go to the values that targets have
 * (docs/model-format.md section 8, "Levels"), and which these are.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <string.h>

#include "engine/features/target_levels.h"
#include "engine/network/levels_mixture.h"
#include "tap.h"

#define ROWS 520
#define COMPONENTS 7

static double y[ROWS];

/* Levels of the first n rows, of `values` values, in steps of 2 from 10 on; scale 4, center 10. */
static TnpTargetLevels
found(int n, int values, double scale, bool certain)
{
	static TnpStats stats;
	TnpRows		rows = {.n = n, .y = y, .n_targets = 1};

	memset(&stats, 0, sizeof(stats));
	stats.n0 = n;
	stats.y_center = 10;
	stats.y_scale = scale;
	stats.process.is_certain = certain;
	for (int i = 0; i < n; i++)
		y[i] = 10 + 2 * (7 * i % values);
	tnp_target_levels_build(&rows, &stats);
	return stats.target_levels;
}

static void
test_which(void)
{
	TnpTargetLevels levels = found(40, 5, 4, false);

	ok(levels.n == 5 && levels.value[0] == 0 && levels.value[1] == 0.5 && levels.value[4] == 2,
	   "values stand in order, scaled");
	levels = found(40, 5, -4, false);
	ok(levels.n == 5 && levels.value[0] == -2 && levels.value[4] == 0, "those of turned ones, too");
	ok(found(39, 5, 4, false).n == 0, "none with less than eight rows each");
	ok(found(40, 1, 4, false).n == 0, "none of one value");
	ok(found(512, 64, 4, false).n == 64 && found(520, 65, 4, false).n == 0, "at most 64");
	ok(found(40, 5, 4, true).n == 0, "none where a line is certain");
}

static void
test_mixture(void)
{
	static const double before[3 * (COMPONENTS + 1)] = {
		0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.3,
		-1.25, -0.5, -0.4, 0.5, 2, 2, 5.5, 0.1,
		0.125, 0.2, 0.3, 0.125, 0.7, 0.8, 0.7, 0.01
	};
	static const double wanted[COMPONENTS + 1] = {-1, -1, -0.4, 0, 3, 2, 3, 0.1};
	static const double beyond[2][COMPONENTS] = {
		{-7, -1.6, -0.5, 0.51, 1.5, 40, 1e9}, {0.1, 0.125, 0.1, 0.125, 0.3, 0.7, 0.7}
	};
	TnpTargetLevels levels = {3, {-1, 0, 3}};
	double		params[3 * (COMPONENTS + 1)];

	memcpy(params, before, sizeof(before));
	tnp_mixture_levels(&levels, 0.25, COMPONENTS, COMPONENTS + 1, params);
	ok(memcmp(params + COMPONENTS + 1, wanted, sizeof(wanted)) == 0,
	   "narrow ones are on the nearest, the process stays");
	ok(memcmp(params, before, (COMPONENTS + 1) * sizeof(double)) == 0
	   && memcmp(params + 2 * (COMPONENTS + 1), before + 2 * (COMPONENTS + 1),
				 (COMPONENTS + 1) * sizeof(double)) == 0, "weights and widths stay");
	for (int k = 0; k < 2; k++)
		memcpy(params + (k + 1) * (COMPONENTS + 1), beyond[k], sizeof(beyond[k]));
	tnp_mixture_levels(&levels, 0.25, COMPONENTS, COMPONENTS + 1, params);
	ok(memcmp(params + COMPONENTS + 1, beyond[0], sizeof(beyond[0])) == 0,
	   "those farther than four of their deviations stay");
	levels.n = 0;
	memcpy(params, before, sizeof(before));
	tnp_mixture_levels(&levels, 0.25, COMPONENTS, COMPONENTS + 1, params);
	ok(memcmp(params, before, sizeof(before)) == 0, "without levels nothing changes");
}

int
main(void)
{
	test_which();
	test_mixture();
	return done_testing();
}
