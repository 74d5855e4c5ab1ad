/*
 * trees_known.h: of which rows trees may speak (docs/model-format.md section 8, "Trees").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_TREES_KNOWN_H
#define TNP_TREES_KNOWN_H

#include "engine/features/statistics.h"

/*
 * Note the cells of the prefix in its slots of few values; polls for an interrupt before each slot.
 * On failure what was made is freed by tnp_trees_free.
 */
TnpStatus	tnp_trees_note_known(const TnpEnv *env, const TnpRows *rows, const TnpStats *stats,
								 TnpTrees *trees, TnpError *error);

/* Whether the prefix has all cells of a row x [F] in those slots. */
bool		tnp_trees_know(const TnpStats *stats, const double *x);

#endif							/* TNP_TREES_KNOWN_H */
