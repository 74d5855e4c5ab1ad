/*
 * context_triggers.h: the triggers that note what is written to a table with contexts.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_CONTEXT_TRIGGERS_H
#define POSTERIOR_CONTEXT_TRIGGERS_H

#include "pg/named/definition.h"

/*
 * Whether triggers can tell everything that changes the relation's rows: an ordinary table that has
 * no parents and no children.
 */
bool		posterior_can_be_maintained(Oid relation);

/*
 * Make the triggers of a table unless they are there; drop them when no context needs them any
 * more.
 */
void		posterior_make_triggers(Oid relation);
void		posterior_drop_triggers(Oid relation);

/*
 * The triggers of posterior.watch on a context's table, which name it: drop them, or have them name
 * it anew.
 */
void		posterior_watch_follows(Oid relation, const char *name, const char *new_name);

/*
 * The same for the triggers that note rows under an identity (sums_notes.c), which a context that
 * keeps sums has for itself.
 */
void		posterior_make_note_triggers(Oid relation, const pg_uuid_t *kept);
void		posterior_drop_note_triggers(Oid relation, const pg_uuid_t *kept);

#endif							/* POSTERIOR_CONTEXT_TRIGGERS_H */
