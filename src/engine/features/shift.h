/*
 * shift.h: by what a missing cell shifts the target of its row, by what rows of the prefix that
 * lack cells say of it (docs/model-format.md section 5, "Shift").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_SHIFT_H
#define TNP_SHIFT_H

#include "engine/distribution/join.h"
#include "engine/features/statistics.h"

/* Needs the process and the donors of stats. */
TnpStatus	tnp_shifts_build(const TnpModel *model, const TnpRows *rows, TnpStats *stats,
							 TnpError *error);

/* False when memory ran out: `to` can be freed. */
bool		tnp_shifts_copy(const TnpEnv *env, const TnpShifts *from, TnpShifts *to);
void		tnp_shifts_free(const TnpEnv *env, TnpShifts *shifts);
size_t		tnp_shifts_bytes(const TnpShifts *shifts);

/*
 * What the target of a row with cells x [F] is shifted by, if it has donors: normal numbers in
 * units of the target, shift [TNP_MOST_SHIFTS], of weights that sum to one; the first is no shift.
 * Returns how many, 0 for a row that lacks no cell which might.
 */
int			tnp_shifts_of(const TnpStats *stats, const double *x, TnpShift *shift);

#endif							/* TNP_SHIFT_H */
