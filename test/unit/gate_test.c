/*
 * gate_test.c: what the gate to a process's answer reads of the number of rows in the prefix and
 * behind it, and how much a line weighs that is certain (docs/model-format.md section 8,
 * "process").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include <math.h>

#include "engine/network/gate.h"
#include "tap.h"

static TnpStats
of_rows(int64_t n0)
{
	return (TnpStats) {.n0 = n0};
}

int
main(void)
{
	TnpStats	few = of_rows(20),
				most = of_rows(TNP_GATE_ROWS),
				more = of_rows(TNP_GATE_ROWS + 1),
				many = of_rows(100000);

	ok(fabs(tnp_gate_rows(&few) - log(21) / 8) < 1e-6, "the log of the rows");
	ok(tnp_gate_rows(&most) == tnp_gate_rows(&many) && tnp_gate_rows(&most) == tnp_gate_rows(&more),
	   "of more than %d no more is read", TNP_GATE_ROWS);
	ok(tnp_gate_rows(&most) > tnp_gate_rows(&few), "of fewer it is");
	ok(fabs(tnp_gate_certain(&few) - 20.0 / 21) < 1e-12, "a certain line: rows against one more");
	ok(fabs(tnp_gate_certain(&many) - 100000.0 / 100001) < 1e-12, "of however many rows");
	ok(tnp_gate_behind(0) == 0, "nothing where no rows are behind the prefix");
	ok(fabs(tnp_gate_behind(20) - log(21) / 8) < 1e-6, "the log of those that are");
	ok(tnp_gate_behind(TNP_GATE_BEHIND) > tnp_gate_behind(TNP_GATE_BEHIND - 1)
	   && tnp_gate_behind(TNP_GATE_BEHIND) == tnp_gate_behind(TNP_GATE_BEHIND + 1),
	   "of more than %d no more is read", TNP_GATE_BEHIND);
	return done_testing();
}
