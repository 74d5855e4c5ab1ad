/*
 * maintenance_turns.h: which tables have contexts to be encoded ahead, and when.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_MAINTENANCE_TURNS_H
#define POSTERIOR_MAINTENANCE_TURNS_H

#include "pg/visibility/writer_log.h"

/*
 * Note that the contexts of a table are to be encoded ahead; true if that was not noted yet. Cannot
 * fail: called when the transaction has committed.
 */
bool		posterior_writer_log_mark_dirty(Oid relation, int number);

/*
 * The tables of a database whose contexts are to be encoded ahead, if any: whether some have been
 * written, and the earliest turn of those that wait, or DT_NOEND.
 */
typedef struct PosteriorDue
{
	Oid			database;
	bool		dirty;
	TimestampTz later;
} PosteriorDue;

/* All such databases, at most POSTERIOR_WRITER_LOGS; the number of them. */
int			posterior_writer_log_due(PosteriorDue *due);

/* A table whose contexts have their turn, since `later` if they had to wait. */
typedef struct PosteriorMaintenanceTurn
{
	Oid			relation;
	TimestampTz later;
} PosteriorMaintenanceTurn;

/*
 * The tables of a database whose contexts have their turn, at most POSTERIOR_WRITER_LOGS; from now
 * on they have not.
 */
int			posterior_writer_log_take(Oid database, TimestampTz now,
									  PosteriorMaintenanceTurn *turns);

/*
 * A worker is about to be started in a database. If it does not get there, turns of what was
 * written before are dropped, and those of what is written from now on stay.
 */
void		posterior_writer_log_offer(Oid database);
void		posterior_writer_log_drop(Oid database);

/* Let contexts of a table of this database wait until then. */
void		posterior_writer_log_postpone(Oid relation, TimestampTz until);

struct Latch;

/* The launcher of the worker that encodes ahead, which posterior_wake_launcher wakes; or NULL. */
void		posterior_writer_logs_set_launcher(struct Latch *launcher);
void		posterior_wake_launcher(void);

#endif							/* POSTERIOR_MAINTENANCE_TURNS_H */
