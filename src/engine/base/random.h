/*
 * random.h: the counter-based random numbers of docs/model-format.md section 11.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_RANDOM_H
#define TNP_RANDOM_H

#include <stdint.h>

#define TNP_STREAM_VALUES 0		/* draws of values */
#define TNP_STREAM_ORDERS 1		/* permutations of orders */

/* The two uniform numbers in (0, 1) that belong to (seed, draw, step, stream): a pure function. */
void		tnp_random(uint64_t seed, uint64_t draw, uint32_t step, uint32_t stream, double u[2]);

#endif							/* TNP_RANDOM_H */
