/*
 * process_directions.h: directions as further axes of the process of the prefix.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_PROCESS_DIRECTIONS_H
#define TNP_PROCESS_DIRECTIONS_H

#include "engine/features/statistics.h"

/*
 * Find the directions of stats->process, if the model asks for any; needs slots and columns. What
 * was made is freed with stats.
 */
TnpStatus	tnp_process_direct(const TnpModel *model, const TnpRows *rows, TnpStats *stats,
							   TnpError *error);

#endif							/* TNP_PROCESS_DIRECTIONS_H */
