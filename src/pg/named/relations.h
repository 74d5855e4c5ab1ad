/*
 * relations.h: the relation of a named context: its name, its owner, and that it is gone.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_RELATIONS_H
#define POSTERIOR_RELATIONS_H

#include "pg/base/compat.h"

/* The qualified, quoted name of a relation for queries; NULL when it is gone. */
char	   *posterior_relation_name(Oid relation);

/* The owner of a relation, or InvalidOid when it is gone. */
Oid			posterior_relation_owner(Oid relation);

/* Whether the current role has the rights of a relation's owner. */
bool		posterior_relation_is_owned(Oid relation);

/* Raise that the relation of a context is gone (42P01). */
pg_noreturn void posterior_no_relation(const char *context);

#endif							/* POSTERIOR_RELATIONS_H */
