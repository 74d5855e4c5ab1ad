/*
 * levels.h: the labels of categorical columns: their bins and codes, and the parts that a feature
 * of many labels is split into.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_LEVELS_H
#define TNP_LEVELS_H

#include "engine/features/statistics.h"

/* Labels of a column with a bin of their own; the others share one more. */
#define TNP_OWN_LABELS 15

/*
 * Levels, bins and codes of a categorical column from the m sorted identities of its prefix cells,
 * and how many parts its feature has. The column's feature and kind are set; the targets' scale is
 * known.
 */
TnpStatus	tnp_levels_build(const TnpModel *model, const TnpStats *stats, const TnpRows *rows,
							 const double *sorted, int64_t m, TnpColumn *column, TnpError *error);

/*
 * Levels of a numeric column whose cells name groups, from the m sorted ones of the prefix, and how
 * many parts its feature has: the number itself and its labels. What else its statistics are stays.
 */
TnpStatus	tnp_levels_of_number(const TnpModel *model, const TnpStats *stats, const TnpRows *rows,
								 const double *sorted, int64_t m, TnpColumn *column,
								 TnpError *error);

/*
 * Make `column` that part, 1 … n_parts - 1, of the feature whose first part is `first`: its bins
 * and codes; the levels are those of the first.
 */
TnpStatus	tnp_levels_part(const TnpModel *model, const TnpStats *stats, const TnpRows *rows,
							const TnpColumn *first, int part, TnpColumn *column, TnpError *error);

/* Give back what the column owns. */
void		tnp_levels_free(const TnpEnv *env, TnpColumn *column);

/* Bytes that the column owns. */
size_t		tnp_levels_bytes(const TnpColumn *column);

#endif							/* TNP_LEVELS_H */
