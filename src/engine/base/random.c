/*
 * random.c: the counter-based random numbers of docs/model-format.md section 11.
 *
 * Philox 4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011) from the Random123 headers.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/base/random.h"

#include <Random123/philox.h>

#define LARGEST_BELOW_ONE 0x1.fffffffffffffp-1

/*
 * 53 random bits and a half, over 2^53. Above one half the half is rounded away (to even), and for
 * the largest number that would give 1: the result is kept below it.
 */
static double
uniform(uint32_t high, uint32_t low)
{
	double		bits = (double) (high >> 5) * 67108864.0 + (double) (low >> 6);
	double		u = (bits + 0.5) * 0x1p-53;

	return u < 1.0 ? u : LARGEST_BELOW_ONE;
}

void
tnp_random(uint64_t seed, uint64_t draw, uint32_t step, uint32_t stream, double u[2])
{
	philox4x32_ctr_t counter = {{(uint32_t) draw, (uint32_t) (draw >> 32), step, stream}};
	philox4x32_key_t key = {{(uint32_t) seed, (uint32_t) (seed >> 32)}};
	philox4x32_ctr_t words = philox4x32(counter, key);

	u[0] = uniform(words.v[0], words.v[1]);
	u[1] = uniform(words.v[2], words.v[3]);
}
