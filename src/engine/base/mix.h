/*
 * mix.h: a mixing function of 64-bit integers: one to one, and what goes in is not seen in what
 * comes out (the finaliser of SplitMix64; Steele, Lea and Flood 2014, Fast splittable pseudorandom
 * number generators).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_MIX_H
#define TNP_MIX_H

#include <stdint.h>

static inline uint64_t
tnp_mix(uint64_t z)
{
	z += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

#endif							/* TNP_MIX_H */
