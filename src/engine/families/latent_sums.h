/*
 * latent_sums.h: the sums over rows that latents begin with, which an encoding keeps for one of
 * more rows.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_LATENT_SUMS_H
#define TNP_LATENT_SUMS_H

#include "engine/network/encoding.h"

/*
 * Sums of all latents, one after the other, of the first `rows` rows, which are whole blocks: of
 * whole spans, added up, and of the blocks of the span after these. NULL: of none.
 */
typedef struct LatentSums
{
	int64_t		rows;			/* 0: there are no sums */
	float	   *whole,
			   *started;
} LatentSums;

/* Those that an encoding keeps. */
LatentSums	latent_sums_of(const TnpEncoding *e, int latents);

/*
 * Room in the encoding for those of its prefix; none where no encoding could go on with them, or
 * the kernels make no sums by themselves.
 */
TnpStatus	latent_sums_make(TnpEncoding *e, int latents, TnpError *error);

/* Floats that `work` below has. */
size_t		latent_sums_floats(const TnpModel *model, int latents);

/* Some of the rows that latents read: those whose keys are there. */
typedef struct LatentRows
{
	int64_t		base,			/* number of the row of slot 0, at the start of a span */
				first,			/* of those that are read, in the span of base or later */
				end,			/* after which a span ends, or all rows */
				rows;			/* of all */
} LatentRows;

/*
 * What attend() does for a tile of latents from number `start` on that see the first `rows` rows,
 * going on with the sums `from` and keeping those of `to`; part by part, work keeping what has been
 * read, and the output is there after the last one. visible: what a->context is.
 */
void		latent_sums_attend(const TnpModel *model, const TnpAttention *a, int64_t *visible,
							   int64_t start, const LatentRows *part, const LatentSums *from,
							   const LatentSums *to, float *work);

#endif							/* TNP_LATENT_SUMS_H */
