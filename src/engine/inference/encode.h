/*
 * encode.h: the encoding of a context, and the parts of it that the questions share.
 *
 * SPDX-License-Identifier: PostgreSQL
 */
#ifndef TNP_ENCODE_H
#define TNP_ENCODE_H

#include "engine/network/kv_cache.h"
#include "engine/network/embed.h"
#include "engine/features/scale.h"
#include "engine/features/stats.h"
#include "engine/network/trunk.h"

struct TnpEncoding
{
	const TnpModel *model;
	int64_t		n,				/* rows */
				prefix,			/* rows that see each other */
				capacity;		/* rows that x and y have room for */
	int			n_features;
	TnpColumnKind *kinds;		/* [n_features] */
	double	   *x,				/* [n, n_features] raw rows, for re-encoding */
			   *y;				/* [n] */
	TnpStats	stats;
	bool		borrowed_stats;	/* a merged encoding: they belong to another */
	bool		borrowed;		/* a view: all memory but the struct belongs to another */
	bool		kept;			/* in the environment's lasting memory */
	TnpKvCache	cache;			/* slots: sinks, then rows */
};

/* Slots in use: sinks and rows. */
int64_t		tnp_encoding_slots(const TnpEncoding *e);

/*
 * An encoding of the same rows and further `more` rows, all in the prefix, with the statistics of
 * `e`: how a finished block of a chain is merged. more->kinds is ignored.
 */
TnpStatus	tnp_merge(const TnpEncoding *e, const TnpRows *more, TnpEncoding **merged,
					  TnpError *error);

/* Query rows fit the encoding: same columns, acceptable cells. */
TnpStatus	tnp_queries_check(const TnpEncoding *e, const TnpRows *rows, bool need_y,
							  TnpError *error);

/*
 * What appending begins with: the rows are as they must be, and lie behind those that are there,
 * not yet counted.
 */
TnpStatus	tnp_append_begin(TnpEncoding *e, const TnpRows *rows, TnpError *error);

/*
 * Tokens h [n, d] of rows [start, start + n) of the encoding, counted or not; n is at most the
 * scratch's rows.
 */
TnpStatus	tnp_embed_rows(const TnpEncoding *e, TnpScratch *work, int64_t start, int n, float *h,
						   TnpError *error);

/* What row i sees, itself included unless the mask is strict, and where it stores. */
TnpToken	tnp_row_token(const TnpEncoding *e, int64_t i);

/*
 * Answers of n query states h [n, d] (overwritten): final norm, head, back to original units.
 * params [n, size]. What the head takes a share of (embed.h) lies at said + i * step for answer i;
 * step is tnp_prior_logits_width, or 0 where all n are about the same row.
 */
TnpStatus	tnp_answers(const TnpModel *model, const TnpStats *stats, int64_t n, float *h,
						const float *prior_logits, int step, TnpScratch *work, double *params,
						TnpError *error);

#endif							/* TNP_ENCODE_H */
