/*
 * definition_write.h: the definitions of named contexts, written.
 *
 * Definitions are rows of a table that only its owner may write. Callers check the user's rights
 * first, then write, by fixed statements, as the table's owner.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_DEFINITION_WRITE_H
#define POSTERIOR_DEFINITION_WRITE_H

#include "pg/named/context_columns.h"
#include "pg/named/definition.h"

/*
 * Run a statement that writes the definitions, as their owner, on those that the transaction's
 * snapshot shows, or (seen: now) on those that are there now; the number of rows.
 */
uint64		posterior_definitions_write(const char *statement, int n, Oid *types, Datum *values,
										const char *nulls);
uint64		posterior_definitions_write_seen(bool now, const char *statement, int n, Oid *types,
											 Datum *values, const char *nulls);

/* Raise: a context that was there was dropped or renamed meanwhile. */
pg_noreturn void posterior_definition_vanished(const char *name);

/*
 * The relation, target and upkeep of a context that the caller may change, and its identity; raises
 * where the caller may not. While this waits for the relation, the name may become another
 * context's: what is written must name the identity.
 */
pg_uuid_t  *posterior_own_context(const char *name, PosteriorColumns *columns, bool *maintained);

/* Whether the context of this name keeps sums, and the identity of its notes. */
bool		posterior_keeps_sums(const char *name, pg_uuid_t *kept);

/* The OID of a type of this extension. */
Oid			posterior_own_type(const char *name);

/*
 * Keep the relation from being dropped until the transaction ends. Taken before a definition is
 * written: a session that drops a table comes to the definitions last, so that the other way round
 * would be a deadlock.
 */
void		posterior_keep_relation(Oid relation);

#endif							/* POSTERIOR_DEFINITION_WRITE_H */
