/*
 * search.h: the first double at which a monotone statement becomes true.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_SEARCH_H
#define TNP_SEARCH_H

#include <stdbool.h>

/* "The point looked for is not above y." */
typedef bool (*TnpReached) (double y, const void *arg);

/*
 * The first y in (below, above] with reached(y), given that reached is false at below and
 * everywhere under it, and true at above and everywhere over it.
 */
double		tnp_first_reached(double below, double above, TnpReached reached, const void *arg);

#endif							/* TNP_SEARCH_H */
