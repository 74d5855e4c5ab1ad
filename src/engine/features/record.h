/*
 * record.h: what a gate reads of how the process of the prefix has done there, beside regressions,
 * and of what it has learnt (docs/model-format.md section 8, "The process's record").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_RECORD_H
#define TNP_RECORD_H

#include "engine/features/statistics.h"

/* stats->record; needs the process and the regressions. */
void		tnp_record_build(TnpStats *stats);

#endif							/* TNP_RECORD_H */
