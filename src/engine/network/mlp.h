/*
 * mlp.h: linears with activations between them.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_MLP_H
#define TNP_MLP_H

#include "engine/file/model.h"

/*
 * y [n, out] = MLP(x [n, in]); scratch holds two rows of the widest hidden size per row. n at most
 * TNP_TILE.
 */
void		tnp_mlp(const TnpModel *model, const TnpMlp *mlp, int n, const float *x, float *scratch,
					float *y);

/* Widest hidden size of an MLP. */
int			tnp_mlp_width(const TnpMlp *mlp);

#endif							/* TNP_MLP_H */
