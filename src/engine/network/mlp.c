/*
 * mlp.c: linears with activations between them, on a tile of rows.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#include "engine/network/mlp.h"

int
tnp_mlp_width(const TnpMlp *mlp)
{
	int			width = 1;

	for (int i = 0; i + 1 < mlp->n; i++)
		if (mlp->linear[i].out > width)
			width = mlp->linear[i].out;
	return width;
}

void
tnp_mlp(const TnpModel *model, const TnpMlp *mlp, int n, const float *x, float *scratch, float *y)
{
	float	   *other = scratch + (size_t) n * tnp_mlp_width(mlp);

	for (int i = 0; i < mlp->n; i++)
	{
		bool		last = i == mlp->n - 1;
		float	   *out = last ? y : (i % 2 == 0 ? scratch : other);

		model->kernels->linear(&mlp->linear[i], n, x, last ? TNP_IDENTITY : mlp->activation, false,
							   out);
		x = out;
	}
}
