/*
 * donors.h: rows of the prefix that lend their cells to queries that lack them
 * (docs/model-format.md section 5, "Donors").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_DONORS_H
#define TNP_DONORS_H

#include "engine/features/statistics.h"

/* Those of the prefix, for a model that has them. */
TnpStatus	tnp_donors_build(const TnpModel *model, const TnpRows *rows, TnpStats *stats,
							 TnpError *error);

/* False when memory ran out: `to` can be freed. */
bool		tnp_donors_copy(const TnpEnv *env, const TnpDonors *from, TnpDonors *to);
void		tnp_donors_free(const TnpEnv *env, TnpDonors *donors);
size_t		tnp_donors_bytes(const TnpDonors *donors);

/*
 * Whether cells of column f that a row lacks are lent. Where many rows of the prefix lack them the
 * network has learnt from these what that means.
 */
bool		tnp_column_is_lent(const TnpStats *stats, int f);

#define TNP_MOST_VARIANTS (TNP_MOST_DONORS + 1)

/* Whether a row with cells x [F] has donors. */
bool		tnp_donors_lend(const TnpStats *stats, const double *x);

/*
 * A row with cells x [F] that lacks some, with those of each of its donors, and perhaps, last, as
 * it is: variants [TNP_MOST_VARIANTS, F]; the weights [TNP_MOST_VARIANTS] of what follows from each
 * sum to one. Returns how many, 0 of a row that has no donors. *sample receives how many of them,
 * the first ones, are drawn from more different ones.
 */
int			tnp_donors_of(const TnpModel *model, const TnpStats *stats, const double *x,
						  double *variants, double *weight, int *sample);

/* A feature of which a row has a label that the prefix does not have. */
typedef struct TnpNewLabel
{
	int			feature;
	double		alike;			/* how probably two rows of the prefix have one label, below 1 */
} TnpNewLabel;

#define TNP_MOST_NEW 8			/* of one row that count */

/* Those of a row that has donors: found [TNP_MOST_NEW]; none where the targets have few values. */
int			tnp_donors_new(const TnpStats *stats, const double *x, TnpNewLabel *found);

#endif							/* TNP_DONORS_H */
