/*
 * definition_rights.h: the table with the definitions of named contexts, and the users that may
 * know what its rows tell.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_DEFINITION_RIGHTS_H
#define POSTERIOR_DEFINITION_RIGHTS_H

#include "pg/base/compat.h"

#include "utils/uuid.h"

/* Name of the table. */
#define POSTERIOR_DEFINITIONS "posterior.context_definition"

/* The user before the definitions were read. */
typedef struct PosteriorCaller
{
	Oid			user;
	int			security;
} PosteriorCaller;

/*
 * Read the definitions as their table's owner, between these two: users have no right on the table,
 * for its rows count those of other tables. An error ends it with the (sub)transaction. What is
 * read is not told before the caller's own rights are looked at, or read by a query that looks at
 * them.
 */
void		posterior_definitions_begin(PosteriorCaller *caller);
void		posterior_definitions_end(const PosteriorCaller *caller);

/*
 * Whether the current user may know how many rows a context has: could have counted them. False
 * also if the active snapshot shows no such context: *shown. *version is that of its definition.
 */
bool		posterior_may_count(const pg_uuid_t *context, bool *shown, pg_uuid_t *version);

/*
 * Whether the table of definitions has the columns of 1.1: a database that has not been upgraded
 * goes on predicting without them.
 */
bool		posterior_definitions_extended(void);

#endif							/* POSTERIOR_DEFINITION_RIGHTS_H */
