/*
 * context_ddl.h: the parts of defining a named context.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_CONTEXT_DDL_H
#define POSTERIOR_CONTEXT_DDL_H

#include "pg/named/definition.h"

#include "access/htup_details.h"

/* The columns of a definition. */
typedef struct PosteriorColumns
{
	Oid			relation;
	AttrNumber	target;
	int			n_features,
				n_order;
	AttrNumber	features[MaxHeapAttributeNumber],
				order[MaxHeapAttributeNumber];
	bool		descending[MaxHeapAttributeNumber];
} PosteriorColumns;

/*
 * Fill in parts of the columns from the names that the user gave, or by default where NULL is
 * given. Raise what is wrong with them.
 */
void		posterior_set_target(PosteriorColumns *c, const char *name);
void		posterior_set_features(PosteriorColumns *c, ArrayType *names);
void		posterior_set_order(PosteriorColumns *c, const char *order);

/*
 * Tell what it costs where no order was given and none was found. Callers do so last, when no
 * error can make it moot any more.
 */
void		posterior_note_order(const PosteriorColumns *c, const char *context);

/*
 * Whether triggers can tell everything that changes the relation's rows: an ordinary table that has
 * no parents and no children.
 */
bool		posterior_can_be_maintained(Oid relation);

/*
 * Give a context a new definition whose prefix is the rows that are there now, for all that see it.
 * The caller has locked the relation and checked the user's rights. While another transaction
 * changes the definition it waits, or does nothing.
 */
void		posterior_refresh(const char *name, const pg_uuid_t *id, bool wait);

/*
 * Make the triggers of a table unless they are there; drop them when no context needs them any
 * more.
 */
void		posterior_make_triggers(Oid relation);
void		posterior_drop_triggers(Oid relation);

#endif							/* POSTERIOR_CONTEXT_DDL_H */
