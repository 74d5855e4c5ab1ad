/*
 * rare_mixture.c: components of a mixture that stand for rare targets (docs/model-format.md section
 * 8, "Rare targets").
 *
 * A distribution has as many components as its model says. The one that weighs least is not missed:
 * networks leave many of theirs all but without weight.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/network/rare_mixture.h"

void
tnp_mixture_rare(const TnpRare *rare, int n, int all, double *params)
{
	int			taken = -1;

	for (int k = 0; k < rare->n; k++)
	{
		int			least = -1;
		double		rest;

		for (int i = 0; i < n; i++)
			if (i != taken && (least < 0 || params[i] < params[least]))
				least = i;
		rest = (1 - rare->weight[k]) / (1 - params[least]);
		for (int i = 0; i < all; i++)
			params[i] *= rest;
		params[least] = rare->weight[k];
		params[all + least] = rare->mean[k];
		params[2 * all + least] = rare->sd[k];
		taken = least;
	}
}
