/*
 * parts.h: the embedder of parts (docs/families.md, "The embedder of parts").
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_PARTS_H
#define TNP_PARTS_H

#include "engine/file/model.h"

/* Tokens [n, d] of rows with targets y, or of queries; as tnp_embed. */
void		tnp_embed_parts(const TnpModel *model, int n, const float *const *row, const float *y,
							float *scratch, float *tokens);

#endif							/* TNP_PARTS_H */
