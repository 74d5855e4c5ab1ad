/*
 * embed.h: from rows to tokens (docs/model-format.md sections 4 and 5).
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_EMBED_H
#define TNP_EMBED_H

#include "engine/features/scale.h"
#include "engine/network/mlp.h"
#include "engine/network/scratch.h"
#include "engine/network/team.h"
#include "engine/network/token_widths.h"

/*
 * The part of a token that depends on its features alone, computed once however often the row is
 * used: E_x(x) [n, d] for additive embedders, the scaled features [n, F] for concatenating ones.
 */
typedef struct TnpFeatureEmbedding
{
	int64_t		n;
	int			width;
	float	   *values;			/* [n, width] */
	float	   *prior_logits;			/* [n, tnp_prior_logits_width], or NULL where that is 0 */
} TnpFeatureEmbedding;

/*
 * What the head takes a share of for a row x [F] with these numbers of the regressions: those of
 * its process and what trees say, or its classes' logits, into out [tnp_prior_logits_width].
 */
void		tnp_note_prior_logits(const TnpModel *model, const TnpStats *stats, const double *x,
								  const float *numbers, float *out);

/*
 * Halves [n, half width] of rows first … first + n - 1, n at most work->rows; what is said of rows
 * below stats->n0 of a context (in_context) is said without them. said receives [n,
 * tnp_prior_logits_width] numbers for the head, or is NULL: rows of a context have no answer.
 */
TnpStatus	tnp_feature_embedding_tile(const TnpModel *model, const TnpStats *stats,
									   const TnpRows *rows, int64_t first, int n, bool in_context,
									   TnpScratch *work,
						  float *values, float *prior_logits, TnpError *error);

/* Halves of all rows, none of a context, by a team. */
TnpStatus	tnp_feature_embedding_build(const TnpModel *model, const TnpStats *stats,
										const TnpRows *rows, TnpTeam *team,
										TnpFeatureEmbedding *half, TnpError *error);
void		tnp_feature_embedding_free(const TnpEnv *env, TnpFeatureEmbedding *half);

/*
 * What the head takes a share of for one of the rows [tnp_prior_logits_width]; NULL where that is
 * 0.
 */
const float *tnp_feature_embedding_prior_logits(const TnpModel *model,
												const TnpFeatureEmbedding *half, int64_t row);

/*
 * Tokens of n rows (at most TNP_TILE), each given by its half row[i] [width]: with targets y [n, D]
 * (network's units), or y NULL for queries. position is the row of the position table, or -1.
 */
void		tnp_embed(const TnpModel *model, int n, const float *const *row, const float *y,
					  TnpRole role, const int *position,
					  float *scratch, float *tokens);

/* E_y [n, d] of targets y [n, D] (network's units); scratch as tnp_embed_scratch says. */
void		tnp_embed_targets(const TnpModel *model, int n, const float *y, float *scratch,
							  float *out);

#endif							/* TNP_EMBED_H */
