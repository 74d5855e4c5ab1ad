/*
 * filter_text.h: the text of a row filter, parsed, analysed and printed.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_FILTER_TEXT_H
#define POSTERIOR_FILTER_TEXT_H

#include "pg/base/compat.h"

#include "nodes/parsenodes.h"

/* Where the text names a column. */
typedef struct PosteriorColumnPlace
{
	int32		offset,
				length;
	int32		column;
} PosteriorColumnPlace;

/*
 * The raw statements of `sql`, which was made around the user's text. Errors show `what` and the
 * user's text, not a place in the whole.
 */
List	   *posterior_parse(const char *sql, const char *what, const char *shown);

/* The raw condition of `source`, "RELATION WHERE condition", and its relation. */
Node	   *posterior_filter_parse(const char *source, const char *shown, RangeVar **relation);

/* A raw condition on the rows of a relation, analysed and checked (filter_rules.h). */
Node	   *posterior_filter_analyse(Oid relation, Node *raw, const char *shown);

/*
 * From here to AtEOXact_GUC(true, level), constants are printed so that every session reads them
 * alike, and read as they are printed. Returns the level.
 */
int			posterior_filter_printing(void);

/* Set a setting until the end of that level. */
void		posterior_filter_set(const char *name, const char *value);

/* An analysed condition as text, with the names of the moment. */
char	   *posterior_filter_print(Oid relation, Node *condition);

/* Where a printed condition names columns of its relation: [*n], in the order of the text. */
PosteriorColumnPlace *posterior_filter_places(Oid relation, const char *condition, int *n);

#endif							/* POSTERIOR_FILTER_TEXT_H */
