/*
 * twister.c: the Mersenne Twister MT19937, as in the paper of Matsumoto and Nishimura (1998) with
 * its later initialisation by an array, which Python's random module uses for whole numbers.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/base/twister.h"

#define N TNP_TWISTER_WORDS
#define M 397

static void
seed_word(TnpTwister *t, uint32_t seed)
{
	t->state[0] = seed;
	for (int i = 1; i < N; i++)
		t->state[i] = 1812433253u * (t->state[i - 1] ^ (t->state[i - 1] >> 30)) + (uint32_t) i;
	t->at = N;
}

/* Initialisation by an array of one word. */
void
tnp_twister_seed(TnpTwister *t, uint32_t seed)
{
	uint32_t   *s = t->state;
	int			i = 1;

	seed_word(t, 19650218u);
	for (int k = 0; k < N; k++)
	{
		s[i] = (s[i] ^ ((s[i - 1] ^ (s[i - 1] >> 30)) * 1664525u)) + seed;
		if (++i == N)
		{
			s[0] = s[N - 1];
			i = 1;
		}
	}
	for (int k = 0; k < N - 1; k++)
	{
		s[i] = (s[i] ^ ((s[i - 1] ^ (s[i - 1] >> 30)) * 1566083941u)) - (uint32_t) i;
		if (++i == N)
		{
			s[0] = s[N - 1];
			i = 1;
		}
	}
	s[0] = 0x80000000u;
}

static void
refill(TnpTwister *t)
{
	uint32_t   *s = t->state;

	for (int i = 0; i < N; i++)
	{
		uint32_t	y = (s[i] & 0x80000000u) | (s[(i + 1) % N] & 0x7fffffffu);

		s[i] = s[(i + M) % N] ^ (y >> 1) ^ (y & 1 ? 0x9908b0dfu : 0);
	}
	t->at = 0;
}

uint32_t
tnp_twister_next(TnpTwister *t)
{
	uint32_t	y;

	if (t->at >= N)
		refill(t);
	y = t->state[t->at++];
	y ^= y >> 11;
	y ^= (y << 7) & 0x9d2c5680u;
	y ^= (y << 15) & 0xefc60000u;
	return y ^ (y >> 18);
}

uint32_t
tnp_twister_below(TnpTwister *t, uint32_t n)
{
	int			bits = 1;
	uint32_t	r;

	while (bits < 32 && n >> bits != 0)
		bits++;
	do
		r = tnp_twister_next(t) >> (32 - bits);
	while (r >= n);
	return r;
}

void
tnp_twister_shuffle(TnpTwister *t, int n, int size, int *items)
{
	for (int i = n - 1; i > 0; i--)
	{
		int			j = (int) tnp_twister_below(t, (uint32_t) i + 1);

		for (int k = 0; k < size; k++)
		{
			int			held = items[i * size + k];

			items[i * size + k] = items[j * size + k];
			items[j * size + k] = held;
		}
	}
}
