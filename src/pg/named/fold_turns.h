/*
 * fold_turns.h: which contexts that keep sums have many notes, for the launcher and its workers.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_FOLD_TURNS_H
#define POSTERIOR_FOLD_TURNS_H

#include "pg/shmem/segment.h"
#include "pg/visibility/maintenance_turns.h"

#include "datatype/timestamp.h"
#include "utils/uuid.h"

#define POSTERIOR_FOLD_TURNS 64	/* contexts that are remembered */
#define POSTERIOR_MANY_NOTES 1024	/* that a worker is started for */

extern PosteriorSharedPart posterior_fold_turns_part;

/*
 * Have a worker fold the notes under `kept`, if there is a launcher. Cannot fail: called when the
 * transaction has committed.
 */
void		posterior_fold_turn_mark(const pg_uuid_t *kept);

/*
 * Let that wait until then; `again`: without being marked once more. Where there is no room for
 * another context it is forgotten until it is marked.
 */
void		posterior_fold_turn_rest(const pg_uuid_t *kept, TimestampTz until, bool again);

/* Add databases with such contexts to n due ones, POSTERIOR_WRITER_LOGS at most; how many. */
int			posterior_fold_turns_due(PosteriorDue *due, int n);

/*
 * A worker is about to be started in a database; if it does not get there, those marked before are
 * dropped.
 */
void		posterior_fold_turns_offer(Oid database);
void		posterior_fold_turns_drop(Oid database);

/* Those of a database that have their turn [POSTERIOR_FOLD_TURNS]; from now on they have not. */
int			posterior_fold_turns_take(Oid database, TimestampTz now, pg_uuid_t *kept);

#endif							/* POSTERIOR_FOLD_TURNS_H */
