/*
 * far.h: numbers of a column that are far from all others (docs/model-format.md section 3, "Far
 * cells").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_FAR_H
#define TNP_FAR_H

#include "engine/features/statistics.h"

/*
 * Say which numbers of a column count as missing, by its m cells v, ascending: those that are
 * `times` as far from the middle as all others, or farther. Returns how many of the m are left.
 */
int64_t		tnp_column_bind(const double *v, int64_t m, double times, TnpColumn *column);

#endif							/* TNP_FAR_H */
