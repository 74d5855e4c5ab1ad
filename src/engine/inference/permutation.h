/*
 * permutation.h: random orders of rows, and means of densities over them.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_PERMUTATION_H
#define TNP_PERMUTATION_H

#include <stdint.h>

/* The order number `order` of n rows: the given one for -1, else a random permutation. */
void		tnp_fill_order(int64_t n, uint64_t seed, int64_t order, int64_t *place);

/* ln(exp(a) + exp(b)) */
double		tnp_log_add(double a, double b);

#endif							/* TNP_PERMUTATION_H */
