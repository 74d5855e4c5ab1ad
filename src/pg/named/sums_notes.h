/*
 * sums_notes.h: what writers note for contexts that keep sums.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_SUMS_NOTES_H
#define POSTERIOR_SUMS_NOTES_H

#include "pg/named/definition.h"

#include "utils/snapshot.h"

/*
 * Whether a snapshot of this session's shows notes of all rows that it shows of the transaction's
 * own: the triggers have fired for each, before the snapshot was taken.
 */
bool		posterior_own_rows_noted(const PosteriorNamed *named, Snapshot snapshot);

#endif							/* POSTERIOR_SUMS_NOTES_H */
