/*
 * scale.h: from raw rows to what the network sees: what is refused, scaling, clipping, cells
 * (docs/model-format.md sections 3 and 5).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_SCALE_H
#define TNP_SCALE_H

#include "engine/features/statistics.h"

/*
 * Refuse rows that the model cannot take: wrong count or kind of columns, missing cells,
 * infinities, NaN targets when y is needed.
 */
TnpStatus	tnp_rows_check(const TnpModel *model, const TnpRows *rows, bool need_y,
						   TnpError *error);

/* Width of the vector that tnp_scale_features writes for a row. */
int			tnp_features_width(const TnpModel *model, const TnpStats *stats);

/*
 * Scaled features [n, tnp_features_width] of rows first … first + n - 1; for the row tokeniser its
 * regression features [tnp_regression_features_width], if it has them, and its cells [n_slots, cell
 * width]. What is said of a row of the context (in_context) that is one of the n0 is said without
 * it. Rows do not depend on those beside them; of a process, which is what takes time, many at once
 * take less.
 */
void		tnp_scale_features(const TnpModel *model, const TnpStats *stats, const TnpRows *rows,
							   int64_t first, int n, bool in_context, float *out);

/*
 * The scaled feature of one column in double precision, of a model with a fixed number of columns.
 */
double		tnp_scale_feature(const TnpModel *model, const TnpStats *stats, int column, double x);

/* Whether all of n numbers are finite. */
bool		tnp_all_finite(size_t n, const float *x);

/*
 * Refuse a row whose features [tnp_features_width], or what becomes of them, are too large for
 * float32; names the column and, unless rows are unnumbered, the row.
 */
TnpStatus	tnp_feature_too_large(const TnpModel *model, const TnpStats *stats,
								  const TnpRows *rows, int64_t row, const float *features,
								  TnpError *error);

/* The target as the network's input, of a model with one target. */
float		tnp_scale_target(const TnpModel *model, const TnpStats *stats, double y);

/* A row's targets y [D] as the network's input, out [D]; whether all of it is finite. */
bool		tnp_scale_targets(const TnpModel *model, const TnpStats *stats, const double *y,
							  float *out);

#endif							/* TNP_SCALE_H */
