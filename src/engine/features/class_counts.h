/*
 * class_counts.h: what is different where targets are classes: their check, their column cards and
 * their cells.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_CLASSES_H
#define TNP_CLASSES_H

#include "engine/features/statistics.h"

/* Refuse a target that is no index below `classes`; row is for the detail. */
TnpStatus	tnp_class_check(double y, int classes, int64_t row, TnpError *error);

/*
 * Memory for the classes' statistics of stats->n_columns columns, and the classes' shares of the
 * first n0 rows.
 */
TnpStatus	tnp_class_stats_make(const TnpModel *model, const TnpRows *rows, TnpStats *stats,
								 TnpError *error);

/*
 * Give `to`, a flat copy of `from`, memory of its own for them. False when memory ran out: `to` has
 * none then.
 */
bool		tnp_class_stats_copy(const TnpEnv *env, const TnpStats *from, TnpStats *to);

/*
 * Logs of the classes' shares of the first n0 rows, [n_classes], each class with half a row more.
 */
void		tnp_class_log_shares(const TnpStats *stats, double *out);

/* ln of the sum of e^z[c]; z [n]. */
double		tnp_log_sum(int n, const double *z);

/* Their size. */
size_t		tnp_class_stats_bytes(const TnpStats *stats);

/*
 * Members of the classes in every bin of column f, correlation ratio and between-bin share (section
 * 5).
 */
TnpStatus	tnp_class_card(const TnpModel *model, TnpStats *stats, const TnpRows *rows, int f,
						   TnpError *error);

/*
 * The cell of value x in column f, [tnp_cell_width]; y is the row's class if it is one of the n0
 * rows, else NaN.
 */
void		tnp_class_cell(const TnpModel *model, const TnpStats *stats, int f, double x, double y,
						   float *cell);

#endif							/* TNP_CLASSES_H */
