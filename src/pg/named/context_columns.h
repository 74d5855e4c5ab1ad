/*
 * context_columns.h: the columns of a definition, from the names that the user gave.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_CONTEXT_COLUMNS_H
#define POSTERIOR_CONTEXT_COLUMNS_H

#include "pg/base/compat.h"

#include "access/htup_details.h"
#include "utils/array.h"

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

#endif							/* POSTERIOR_CONTEXT_COLUMNS_H */
