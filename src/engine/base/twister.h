/*
 * twister.h: the Mersenne Twister MT19937 (Matsumoto and Nishimura 1998), seeded and used as
 * Python's random.Random does, so that models that were trained with its orders get the same ones.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_TWISTER_H
#define TNP_TWISTER_H

#include <stdint.h>

#define TNP_TWISTER_WORDS 624

typedef struct TnpTwister
{
	uint32_t	state[TNP_TWISTER_WORDS];
	int			at;
} TnpTwister;

/* random.Random(seed) */
void		tnp_twister_seed(TnpTwister *t, uint32_t seed);

/* The next 32 bits. */
uint32_t	tnp_twister_next(TnpTwister *t);

/* A number in [0, n), n at least 1: _randbelow(n), what choice takes and shuffle swaps with. */
uint32_t	tnp_twister_below(TnpTwister *t, uint32_t n);

/* shuffle(): items [n] of `size` ints each. */
void		tnp_twister_shuffle(TnpTwister *t, int n, int size, int *items);

#endif							/* TNP_TWISTER_H */
