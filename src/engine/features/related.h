/*
 * related.h: what the cells that a row has tell of those that it lacks, by the rows that lend
 * theirs (docs/model-format.md section 5, "Related cells").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_RELATED_H
#define TNP_RELATED_H

#include "engine/features/statistics.h"

#define TNP_LENDERS 256			/* rows of the prefix that may lend */
#define TNP_MOVED 16			/* numbers of one row that are foretold */

/* What the rows that lend to a query count, and by how much their cells move. */
typedef struct TnpLoan
{
	int			n,				/* rows that lend */
				row[TNP_LENDERS];	/* which, in ascending order */
	bool		equal;			/* all weigh the same */
	double		weight[TNP_LENDERS];	/* of each; their sum is one */
	int			n_moved;
	struct
	{
		int			feature;
		double		low,		/* of all rows' cells */
					high,
					by[TNP_LENDERS];
	}			moved[TNP_MOVED];
} TnpLoan;

/* Of the rows x [n, n_features] that lend, of which not all may be there. */
TnpStatus	tnp_related_build(const TnpModel *model, const TnpStats *stats, const double *x, int n,
							  int n_features, TnpRelated *related, TnpError *error);

/* False when memory ran out: `to` can be freed. */
bool		tnp_related_copy(const TnpEnv *env, const TnpRelated *from, TnpRelated *to);
void		tnp_related_free(const TnpEnv *env, TnpRelated *related);
size_t		tnp_related_bytes(const TnpRelated *related);

/*
 * A row x [F] lacks the cells of the features lacks [n_lacks]: of loan, which has those of `rows`
 * [n, width] that can lend all of these, fewer may be left, and the rest of it is set.
 */
void		tnp_related_apply(const TnpStats *stats, const TnpRelated *related, const double *rows,
							  int width, const double *x, const int *lacks, int n_lacks,
							  TnpLoan *loan);

#endif							/* TNP_RELATED_H */
