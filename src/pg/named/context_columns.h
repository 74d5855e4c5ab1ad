/*
 * context_columns.h: the columns of a definition, from the names that the user gave.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_CONTEXT_COLUMNS_H
#define POSTERIOR_CONTEXT_COLUMNS_H

#include "pg/base/compat.h"
#include "pg/rows/targets.h"

#include "access/htup_details.h"
#include "utils/array.h"

/* The columns of a definition. */
typedef struct PosteriorColumns
{
	Oid			relation;
	int			n_targets,
				n_features,
				n_order;
	AttrNumber	targets[TNP_MAX_TARGETS];
	AttrNumber	features[MaxHeapAttributeNumber],
				order[MaxHeapAttributeNumber];
	bool		descending[MaxHeapAttributeNumber];
} PosteriorColumns;

/*
 * Fill in parts of the columns from the names that the user gave, or by default where NULL is
 * given. Raise what is wrong with them.
 */
void		posterior_set_features(PosteriorColumns *c, ArrayType *names);
void		posterior_set_order(PosteriorColumns *c, const char *order);

/*
 * The target: the name of a column, or where no column has this name and it begins with a brace an
 * array of 1 to TNP_MAX_TARGETS names, '{y1,y2}'. Several columns are of numbers.
 */
void		posterior_set_target(PosteriorColumns *c, const char *given);

/* Whether a column is one of the targets. */
bool		posterior_is_target(const PosteriorColumns *c, AttrNumber column);

/*
 * Tell what it costs where no order was given and none was found. Callers do so last, when no
 * error can make it moot any more.
 */
void		posterior_note_order(const PosteriorColumns *c, const char *context);

#endif							/* POSTERIOR_CONTEXT_COLUMNS_H */
