/*
 * targets.h: rows with several targets: arrays of numbers.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_TARGETS_H
#define POSTERIOR_TARGETS_H

#include "pg/rows/rows.h"

#include "utils/array.h"

/*
 * The targets y [TNP_MAX_TARGETS] of an array, and their number. Where all of them are NULL, which
 * is a row without targets, known is false and y as it was. Raises unless they are 1 to
 * TNP_MAX_TARGETS finite numbers; some of them NULL is an error, since the rows of a context have
 * all their targets.
 */
int			posterior_array_targets(ArrayType *array, double *y, bool *known);

/*
 * To be called before a row of n targets is put into rows, and for a row whose targets are unknown:
 * the first one decides how many targets they have, so that rows without any known target tell it.
 * Raises for another number.
 */
void		posterior_rows_check_targets(PosteriorRows *rows, int n);

/* Raise unless the model's rows have so many targets. */
void		posterior_check_model_targets(const TnpModel *model, const char *name, int targets);

#endif							/* POSTERIOR_TARGETS_H */
