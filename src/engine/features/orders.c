/*
 * orders.c: orders of columns and shifts of classes, as TabICL's package draws them.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/features/orders.h"

#include <string.h>

#include "engine/base/twister.h"

#define SEED 42					/* the package's default */

/* A Latin square of n symbols: symbols leave one after the other and come back on the diagonal. */
static void
build_square(TnpTwister *random, int n, int *symbols, int *left, int *square)
{
	for (int i = 0; i < n; i++)
		left[i] = i;
	for (int k = n; k > 1; k--)
	{
		int			at = (int) tnp_twister_below(random, (uint32_t) k);

		symbols[k - 1] = left[at];
		memmove(left + at, left + at + 1, (k - 1 - at) * sizeof(int));
	}
	symbols[0] = left[0];

	square[0] = symbols[0];
	for (int k = 2; k <= n; k++)
	{
		/* rows of k - 1 become rows of k, which lie n apart */
		memcpy(square + (size_t) (k - 1) * n, square, (k - 1) * sizeof(int));
		for (int i = 0; i < k; i++)
		{
			int		   *row = square + (size_t) i * n;

			memmove(row + i + 1, row + i, (k - 1 - i) * sizeof(int));
			row[i] = symbols[k - 1];
		}
	}
}

/* square [n, n] := its transpose */
static void
transpose(int n, int *square)
{
	for (int i = 0; i < n; i++)
		for (int j = 0; j < i; j++)
		{
			int			held = square[(size_t) i * n + j];

			square[(size_t) i * n + j] = square[(size_t) j * n + i];
			square[(size_t) j * n + i] = held;
		}
}

int
tnp_orders(const TnpEnv *env, int n, int classes, int wanted, TnpOrder *orders, int *column)
{
	int			shifts = classes > 0 ? classes : 1,
				pairs = n * shifts,
				count = wanted < pairs * TNP_NORMALS ? wanted : pairs * TNP_NORMALS;
	int		   *square,
			   *symbols,
			   *pair;
	TnpTwister	random;

	if (wanted == 1)
	{
		orders[0] = (TnpOrder) {TNP_NORMAL_NONE, 0};
		for (int i = 0; i < n; i++)
			column[i] = i;
		return 1;
	}
	square = tnp_alloc(env, (size_t) n * n, sizeof(int));
	symbols = tnp_alloc(env, 2 * (size_t) n, sizeof(int));
	pair = tnp_alloc(env, pairs, sizeof(int));
	if (square != NULL && symbols != NULL && pair != NULL)
	{
		tnp_twister_seed(&random, SEED);
		build_square(&random, n, symbols, symbols + n, square);
		tnp_twister_shuffle(&random, n, n, square);
		transpose(n, square);
		tnp_twister_shuffle(&random, n, n, square);

		/* pairs of an order and a shift, numbered row by row, in an order of their own */
		tnp_twister_seed(&random, SEED);
		for (int i = 0; i < pairs; i++)
			pair[i] = i;
		tnp_twister_shuffle(&random, pairs, 1, pair);
		for (int e = 0; e < count; e++)
		{
			int			chosen = pair[e / TNP_NORMALS];

			orders[e] = (TnpOrder) {e % TNP_NORMALS, chosen % shifts};
			memcpy(column + (size_t) e * n, square + (size_t) (chosen / shifts) * n,
				   n * sizeof(int));
		}
	}
	else
		count = -1;
	tnp_free(env, square);
	tnp_free(env, symbols);
	tnp_free(env, pair);
	return count;
}
