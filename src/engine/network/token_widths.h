/*
 * token_widths.h: sizes of what becomes of a row on its way to a token.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_TOKEN_WIDTHS_H
#define TNP_TOKEN_WIDTHS_H

#include "engine/features/statistics.h"

/* Numbers of a half, and floats of scratch per row while it is made. */
int			tnp_feature_embedding_width(const TnpModel *model, const TnpStats *stats);
int			tnp_feature_embedding_scratch(const TnpModel *model);

/* Floats of scratch that tnp_embed needs per row. */
int			tnp_embed_scratch(const TnpModel *model);

#endif							/* TNP_TOKEN_WIDTHS_H */
