/*
 * near_rows.h: a context of which each question gets the rows that are nearest to it.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_NEAR_ROWS_H
#define POSTERIOR_NEAR_ROWS_H

#include "pg/cache/handle.h"

/* What else than the rows the neighbours' encodings are told by. */
typedef struct PosteriorNearOptions
{
	pg_uuid_t	context;		/* version of the named context */
	pg_uuid_t	id;				/* the context that is shown to work */
	int64		k;				/* rows of a question */
	int			views;			/* as in PosteriorLookup */
	bool		fresh;			/* encoded now, whatever the cache holds */
} PosteriorNearOptions;

/*
 * Have requests about a handle of plain rows answered from the rows near to their questions: each
 * prediction from the rows of its question's block; draws, densities and joint distributions from
 * the rows of the blocks of all their questions together.
 */
void		posterior_near_begin(PosteriorContextHandle *e, const PosteriorNearOptions *options);

/* The most rows that a joint request about n questions to such a handle is answered from. */
int64		posterior_near_most(const PosteriorContextHandle *e, int64 n);

#endif							/* POSTERIOR_NEAR_ROWS_H */
