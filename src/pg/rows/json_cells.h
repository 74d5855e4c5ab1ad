/*
 * json_cells.h: a row of features written as JSON, for clients that know no types.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef POSTERIOR_JSON_CELLS_H
#define POSTERIOR_JSON_CELLS_H

#include "pg/rows/feature_cells.h"

#include "utils/jsonb.h"

/*
 * The cells x [n_features] of an array, by position, or, where features have names, of an object,
 * by name. Raises where a feature is not there or is of another kind than in the context; JSON's
 * null is a missing feature.
 */
void		posterior_json_cells(Jsonb *json, int n_features, const uint8 *kinds,
								 char *const *names, double *x);

#endif							/* POSTERIOR_JSON_CELLS_H */
