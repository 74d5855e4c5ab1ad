/*
 * exact.h: sums of 128 bits, kept as pairs of words, the low one first, so that memory need not be
 * aligned for them and means the same on every machine.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_EXACT_H
#define TNP_EXACT_H

#include <stdint.h>

__extension__ typedef __int128 TnpExact;

static inline TnpExact
tnp_exact(const int64_t *pair)
{
	return (TnpExact) pair[1] * ((TnpExact) 1 << 64) + (uint64_t) pair[0];
}

/* The sum must fit. */
static inline void
tnp_exact_add(int64_t *pair, TnpExact more)
{
	TnpExact	sum = tnp_exact(pair) + more;

	pair[0] = (int64_t) (uint64_t) sum;
	pair[1] = (int64_t) (sum >> 64);
}

#endif							/* TNP_EXACT_H */
