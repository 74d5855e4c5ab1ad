/*
 * target_levels.h: the values that a prefix's targets have, where these are few
 * (docs/model-format.md section 8, "Levels").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_TARGET_LEVELS_H
#define TNP_TARGET_LEVELS_H

#include "engine/features/statistics.h"

/* Needs the process. */
void		tnp_target_levels_build(const TnpRows *rows, TnpStats *stats);

#endif							/* TNP_TARGET_LEVELS_H */
