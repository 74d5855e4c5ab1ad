/*
 * noise.h: numbers without a pattern, the same on every machine.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef NOISE_H
#define NOISE_H

/* A number in (-1, 1) of a place. */
static inline double
noise(unsigned i)
{
	i = (i ^ 61u) * 2654435761u;
	i ^= i >> 15;
	i *= 2246822519u;
	i ^= i >> 13;
	return (i % 20011) / 10005.5 - 1;
}

#endif							/* NOISE_H */
