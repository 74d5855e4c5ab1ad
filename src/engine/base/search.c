/*
 * search.c: the first double at which a monotone statement becomes true.
 *
 * Doubles are bisected as ordered integers, always at the integer of the interval with the most
 * trailing zero bits. Whatever the first interval was, the points tried are then the nodes of one
 * fixed binary tree over all doubles. That is what keeps quantiles in order: of two statements
 * "F(y) >= p" the one with the smaller p holds wherever the other does, so at the first node where
 * their paths part it goes left. This stays so when F, being computed with rounding errors, is
 * monotone only up to a few units in the last place.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/base/search.h"

#include <stdint.h>
#include <string.h>

#define SIGN_BIT (UINT64_C(1) << 63)

/* The rank of y among all doubles. */
static uint64_t
rank_of(double y)
{
	uint64_t	bits;

	memcpy(&bits, &y, sizeof(bits));
	return (bits & SIGN_BIT) ? ~bits : bits | SIGN_BIT;
}

static double
double_of(uint64_t rank)
{
	uint64_t	bits = (rank & SIGN_BIT) ? rank & ~SIGN_BIT : ~rank;
	double		y;

	memcpy(&y, &bits, sizeof(y));
	return y;
}

/* The number in (low, high) with the most trailing zero bits; needs high - low >= 2. */
static uint64_t
roundest_between(uint64_t low, uint64_t high)
{
	uint64_t	different = low ^ (high - 1);

	different |= different >> 1;
	different |= different >> 2;
	different |= different >> 4;
	different |= different >> 8;
	different |= different >> 16;
	different |= different >> 32;
	return (high - 1) & ~(different >> 1);
}

double
tnp_first_reached(double below, double above, TnpReached reached, const void *arg)
{
	uint64_t	low = rank_of(below);
	uint64_t	high = rank_of(above);

	while (high > low && high - low > 1)
	{
		uint64_t	middle = roundest_between(low, high);

		if (reached(double_of(middle), arg))
			high = middle;
		else
			low = middle;
	}
	return double_of(high) + 0.0;	/* no negative zero */
}
