/*
 * mean_merge.h: contexts of the mean process that are sums (docs/families.md, "Contexts that are
 * sums").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_MEAN_MERGE_H
#define TNP_MEAN_MERGE_H

#include "engine/families/sums_ops.h"

/* Places of a basis's words; targets follow, as many as the model takes, and columns. */
enum { MEAN_VERSION, MEAN_MODEL, MEAN_COLUMNS, MEAN_BASIS_ROWS, MEAN_HEAD };

/* Of a target. */
enum { MEAN_CENTER, MEAN_SCALE, MEAN_TARGET };

/* Of a column, all 0 where the model does not scale by its rows. */
enum { MEAN_COLUMN_CENTER, MEAN_COLUMN_SCALE, MEAN_COLUMN_CONSTANT, MEAN_COLUMN };

static inline const int64_t *
mean_target(const int64_t *basis, int target)
{
	return basis + MEAN_HEAD + (size_t) target * MEAN_TARGET;
}

/* Of a basis with so many targets. */
static inline const int64_t *
mean_column(const int64_t *basis, int targets, int column)
{
	return mean_target(basis, targets) + (size_t) column * MEAN_COLUMN;
}

/* As TnpSumsOps'. */
size_t		mean_basis_words(const TnpModel *model, int n_features);
TnpStatus	mean_basis_make(const TnpModel *model, const TnpRows *rows, int64_t *basis,
							TnpError *error);
TnpStatus	mean_basis_check(const TnpModel *model, int n_features, const TnpColumnKind *kinds,
							 size_t words, const int64_t *basis, TnpError *error);

#endif							/* TNP_MEAN_MERGE_H */
