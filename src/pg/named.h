/*
 * named.h: named contexts: what one is made of, and the rows that a snapshot shows of it.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_NAMED_H
#define POSTERIOR_NAMED_H

#include "models.h"
#include "rows.h"

#include "access/attnum.h"

/* A row of posterior.context_definition, resolved against the catalogs. */
typedef struct PosteriorNamed
{
	char		name[NAMEDATALEN];
	pg_uuid_t	id;				/* of the context, for life */
	pg_uuid_t	version;		/* of this definition: another one after alter_context and refresh_context */
	Oid			owner;
	Oid			relation;
	char		model[NAMEDATALEN];
	bool		maintained;		/* triggers note who writes the relation */
	int64		max_rows;		/* 0: all */
	AttrNumber	target;
	int			n_features;
	AttrNumber *features;		/* [n_features] */
	Oid		   *types;			/* [n_features] */
	uint8	   *classes;		/* [n_features] PosteriorClass */
	char	   *query;			/* SELECT target::float8, features … of the rows with a target, in canonical order */
} PosteriorNamed;

/*
 * The context of this name as the active snapshot shows it, in `memory`. Raises 42704 when there is none, and clear errors when its relation or
 * a column of it is gone.
 */
PosteriorNamed *posterior_named_find(const char *name, MemoryContext memory);

/*
 * Raise unless the current user may read what the context reads: SELECT on all its columns. Row-level security that applies to the user is refused with a hint.
 */
void		posterior_named_check(const PosteriorNamed *named);

/*
 * The rows that the active snapshot shows, in canonical order, cut to the window of max_rows, in `memory`. Read with the rights of the current user.
 */
PosteriorRows *posterior_named_rows(const PosteriorNamed *named, MemoryContext memory);

#endif							/* POSTERIOR_NAMED_H */
